"""`specdec destroy`: take a release away; in the local environment the cluster too."""

from __future__ import annotations

import sys
from typing import Any

import typer

from specdec.errors import SpecdecError
from specdec.output import Format


def destroy(
    environment: str = typer.Argument(..., metavar="ENV", help="A folder of environments/."),
    yes: bool = typer.Option(False, "--yes", "-y", help="Do not ask."),
    timeout: float = typer.Option(300, min=1, help="Seconds to wait until the objects are gone."),
    context: str | None = typer.Option(None, help="Context of the kubeconfig."),
    release: str | None = typer.Option(None, help="Name of the release."),
    namespace: str | None = typer.Option(None, help="Namespace of the release."),
    format: Format = typer.Option(Format.text, help="text or json."),
) -> None:
    """Uninstall a release and wait until it is gone. Claims and the namespace stay, except in the local environment."""
    from specdec.deploy import lock
    from specdec.deploy.progress import Progress
    from specdec.environments import Environment
    from specdec.output import console, print_json

    env = Environment.named(environment, release, namespace, context)
    if not yes and env.name != "local":
        if not sys.stdin.isatty():
            raise SpecdecError("this removes a running release", code="not-confirmed", fix="say so with --yes")
        typer.confirm(f"Remove release {env.release} from namespace {env.namespace}?", abort=True, err=True)
    progress = Progress(quiet=format == Format.json and not sys.stderr.isatty())
    try:
        with lock.on_machine(lock.key_of(env)):
            result = local(env, timeout, progress) if env.name == "local" else elsewhere(env, timeout, progress)
    except KeyboardInterrupt:
        progress.out.print(f"interrupted: part of it may be gone; `specdec destroy {env.name}` goes on", markup=False)
        raise
    result = {"schema_version": 1, "environment": env.name, **result}
    if format == Format.json:
        print_json(result)
        return
    out = console()
    out.print(f"{env.name}: " + ("removed" if result["removed"] else "there was no release"))
    for line in result["remains"]:
        out.print(f"  stays: {line}", markup=False)


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
