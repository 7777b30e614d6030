"""`specdec destroy`: take a release away; with it the cluster that we made, on this machine or in a cloud."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import typer

from specdec.errors import SpecdecError
from specdec.output import Format

if TYPE_CHECKING:
    from specdec.deploy.cloud.target import Target


def destroy(
    environment: str = typer.Argument(..., metavar="ENV", help="A folder of environments/."),
    yes: bool = typer.Option(False, "--yes", "-y", help="Do not ask."),
    timeout: float = typer.Option(300, min=1, help="Seconds to wait until the objects are gone."),
    context: str | None = typer.Option(None, help="Context of the kubeconfig."),
    release: str | None = typer.Option(None, help="Name of the release."),
    namespace: str | None = typer.Option(None, help="Namespace of the release."),
    force_finalizers: bool = typer.Option(
        False, "--force-finalizers", help="Cloud: let objects go that only finalizers hold."
    ),
    start: str | None = typer.Option(
        None, "--from", metavar="STAGE", help="Cloud: begin at chart, platform or cluster."
    ),
    unlock: str | None = typer.Option(None, metavar="ID", help="Cloud: take away the state lock of a dead run."),
    format: Format = typer.Option(Format.text, help="text or json."),
) -> None:
    """Uninstall a release and wait until it is gone. Claims and the namespace stay, except in the local environment.

    What Terraform made for an environment goes too, backwards: release, platform, cluster. What then still costs
    money is listed. A context of your own (--context, KUBECONTEXT) has only the release taken away.
    """
    from specdec.deploy import lock
    from specdec.deploy.cloud.target import Target
    from specdec.deploy.progress import Progress
    from specdec.environments import Environment
    from specdec.output import console, print_json

    env = Environment.named(environment, release, namespace, context)
    target = Target.of(env) if env.kubecontext is None else None
    if target is None and (force_finalizers or start or unlock):
        what = "a context was named" if env.kubecontext else f"{env.name} has no terraform.tfvars"
        raise SpecdecError(f"{what}: there is nothing for Terraform to do", code="usage", fix="leave these options out")
    if not yes and env.name != "local":
        if not sys.stdin.isatty():
            raise SpecdecError("this removes a running release", code="not-confirmed", fix="say so with --yes")
        if target is None:
            typer.confirm(f"Remove release {env.release} from namespace {env.namespace}?", abort=True, err=True)
    progress = Progress(quiet=format == Format.json and not sys.stderr.isatty())
    try:
        with lock.on_machine(lock.key_of(env)):
            if target is not None:
                result = cloud(target, force_finalizers, timeout, start, unlock, yes, progress)
            elif env.name == "local":
                result = local(env, timeout, progress)
            else:
                result = elsewhere(env, timeout, progress)
    except KeyboardInterrupt:
        progress.out.print(f"interrupted: part of it may be gone; `specdec destroy {env.name}` goes on", markup=False)
        raise
    result = {"schema_version": 1, "environment": env.name, **result}
    if format == Format.json:
        print_json(result)
        return
    out = console()
    nothing = "there was no release" if target is None else "there was nothing in the state"
    out.print(f"{env.name}: " + ("removed" if result["removed"] else nothing))
    for line in result["remains"]:
        out.print(f"  stays: {line}", markup=False)


def cloud(
    target: Target, force: bool, timeout: float, start: str | None, unlock: str | None, yes: bool, progress: Any
) -> dict[str, Any]:
    """The release, the platform and the cluster. Asks once, where it knows what there is to lose."""
    from specdec.deploy.cloud.removal import CloudDestroy, DestroyOptions

    def ask(question: str) -> None:
        if not yes:
            typer.confirm(question, abort=True, err=True)

    def may_force(question: str) -> bool:
        return sys.stdin.isatty() and typer.confirm(question, err=True)

    options = DestroyOptions(True if force else None, timeout, start, unlock)
    return CloudDestroy(target, options, progress, ask=ask, may_force=may_force).run()


def elsewhere(env: Any, timeout: float, progress: Any) -> dict[str, Any]:
    """The release alone: the cluster is not ours."""
    from specdec.deploy import removal
    from specdec.deploy.cluster import connect

    cluster = connect(env.namespace, context=env.kubecontext)
    with progress.step("uninstall"):
        return removal.uninstall(env, cluster, timeout=timeout, report=progress.note)


def local(env: Any, timeout: float, progress: Any) -> dict[str, Any]:
    """The release, where its cluster still answers, and then the cluster."""
    from dataclasses import replace

    from specdec.deploy import local_cluster, removal
    from specdec.deploy.cluster import connect

    result: dict[str, Any] = {"removed": False, "remains": []}
    with progress.step("uninstall"):
        try:
            where = local_cluster.running(env)
            cluster = connect(env.namespace, kubeconfig=where.kubeconfig, context=where.context)
            result = removal.uninstall(
                replace(env, kubecontext=where.context), cluster,
                kubeconfig=where.kubeconfig, timeout=timeout, report=progress.note,
            )  # fmt: skip
        except SpecdecError as error:
            # A cluster that is gone or broken is what the next step removes.
            progress.note(error.message.splitlines()[0])
    if not local_cluster.is_ours(env):
        return result
    with progress.step("cluster"):
        local_cluster.down(progress.note)
    return result | {"remains": []}
