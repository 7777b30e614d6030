"""`specdec deploy`: one command from values to a release that serves and speculates."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import typer

from specdec.errors import SpecdecError
from specdec.output import Format

if TYPE_CHECKING:
    from specdec.deploy.cloud.pipeline import CloudDeploy
    from specdec.deploy.pipeline import Deploy


def deploy(
    environment: str = typer.Argument(..., metavar="ENV", help="A folder of environments/."),
    values: list[Path] = typer.Option([], "--values", "-f", help="Further values files, later ones win."),
    set_values: list[str] = typer.Option([], "--set", help="Single values, KEY=VALUE."),
    timeout: str | None = typer.Option(
        None, help="Longest time without a further pod becoming Ready, e.g. 90s or 20m. Default: by the startup probes."
    ),
    smoke: bool = typer.Option(True, "--smoke/--no-smoke", help="Test that it serves and speculates."),
    measure: bool | None = typer.Option(
        None, "--measure/--no-measure", help="Compare with the baseline engine. Default: in the local environment."
    ),
    repeats: int = typer.Option(5, min=1, help="Repeats of the comparison."),
    min_acceptance: float = typer.Option(0.1, min=0, max=1, help="Least acceptance rate (accepted ÷ drafted)."),
    create_namespace: bool = typer.Option(
        False, "--create-namespace", help="Create the namespace where it is missing."
    ),
    context: str | None = typer.Option(None, help="Context of the kubeconfig. Default: KUBECONTEXT, else the current."),
    release: str | None = typer.Option(None, help="Name of the release. Default: RELEASE, else speculative."),
    namespace: str | None = typer.Option(None, help="Namespace. Default: NAMESPACE, else ai-inference."),
    plan_only: bool = typer.Option(False, "--plan-only", help="Cloud: stop after plan, guard and price."),
    start: str | None = typer.Option(None, "--from", metavar="STAGE", help="Cloud: begin at a stage."),
    end: str | None = typer.Option(None, "--to", metavar="STAGE", help="Cloud: apply, kubeconfig or platform ends it."),
    allow: list[str] = typer.Option([], "--allow", help="Cloud: a code of the guard that is meant so."),
    unlock: str | None = typer.Option(None, metavar="ID", help="Cloud: take away the state lock of a dead run."),
    yes: bool = typer.Option(False, "--yes", "-y", help="Do not ask."),
    format: Format = typer.Option(Format.text, help="text or json."),
) -> None:
    """Check, apply, wait, test and measure a release of an environment.

    An environment with terraform.tfvars gets its cluster first, by Terraform, in the stages preflight, init, plan,
    guard, price, apply, kubeconfig, platform and chart; a context of your own (--context, KUBECONTEXT) leaves it out.
    """
    from dataclasses import replace

    from specdec.deploy.cloud.target import Target
    from specdec.deploy.pipeline import Deploy, Options
    from specdec.deploy.progress import Progress
    from specdec.environments import Environment

    env = Environment.named(environment, release, namespace, context)
    missing = next((file for file in values if not file.is_file()), None)
    if missing:
        raise SpecdecError("no such file", code="values-missing", file=str(missing))
    env = replace(env, values=[*env.values, *values])
    options = Options(
        set_values=set_values,
        timeout=seconds(timeout),
        smoke=smoke,
        measure=measure,
        create_namespace=create_namespace,
        min_acceptance=min_acceptance,
        repeats=repeats,
    )
    target = Target.of(env) if env.kubecontext is None else None
    if target is None and (plan_only or start or end or allow or unlock):
        what = "a context was named" if env.kubecontext else f"{env.name} has no terraform.tfvars"
        raise SpecdecError(f"{what}: there is nothing for Terraform to do", code="usage", fix="leave these options out")
    signal.signal(signal.SIGTERM, interrupt)
    if target is not None:
        from specdec.deploy.cloud.pipeline import CloudDeploy, CloudOptions

        chosen = CloudOptions(plan_only, start, end, yes, tuple(allow), unlock)
        cloud_run = CloudDeploy(target, chosen, options, Progress(quiet=silent(format)), ask=confirmed)
        finish(cloud_run, format)
        return
    if env.name != "local" and not yes and sys.stdin.isatty():
        where = f"context {env.kubecontext}" if env.kubecontext else "the kubeconfig's current context"
        typer.confirm(
            f"Deploy {env.name} as {env.release} to namespace {env.namespace}, {where}?", abort=True, err=True
        )
    finish(Deploy(env, options, Progress(quiet=silent(format))), format)


def finish(run: Deploy | CloudDeploy, format: Format) -> None:
    """Run it to its end, or say what an interruption left; then show the result."""
    try:
        result = run.run()
    except KeyboardInterrupt:
        run.progress.out.print(f"interrupted: {run.state()}", markup=False)
        raise
    show(result, format)


def confirmed(question: str) -> None:
    """Raises typer.Abort unless the answer is yes."""
    typer.confirm(question, abort=True, err=True)


def silent(format: Format) -> bool:
    """A machine reads JSON on both streams: then no progress is mixed in."""
    return format == Format.json and not sys.stderr.isatty()


def interrupt(_signal: int, _frame: FrameType | None) -> None:
    """SIGTERM ends a deploy as Ctrl-C does: locks are given back and the state is said."""
    raise KeyboardInterrupt


def show(result: dict[str, object], format: Format) -> None:
    """The result; exit 1 where the smoke test failed."""
    from specdec.deploy import report
    from specdec.deploy.smoke import Check
    from specdec.output import console, print_json

    if format == Format.json:
        print_json(result)
    elif "revision" not in result:
        from specdec.deploy.cloud import show as cloud_show

        console().print(cloud_show.planned(result))
    else:
        out = console()
        found = result.get("smoke")
        if isinstance(found, dict):
            out.print(report.checks([Check(**check) for check in found["checks"]]))
        out.print(report.deployed(result))
        measurement = result.get("measurement")
        if isinstance(measurement, dict) and measurement.get("note"):
            out.print(measurement["note"], style="dim")
    if not result["ok"]:
        raise typer.Exit(1)


def seconds(text: str | None) -> float | None:
    """ "90", "90s", "20m", "1h" in seconds. Raises SpecdecError for anything else."""
    if text is None:
        return None
    number, unit = (text[:-1], text[-1]) if text[-1:] in ("s", "m", "h") else (text, "s")
    try:
        value = float(number) * {"s": 1, "m": 60, "h": 3600}[unit]
    except ValueError:
        value = 0
    if not value > 0:
        raise SpecdecError(
            f"{text!r} is not a duration", code="bad-duration", path="--timeout", fix="for example 90s or 20m"
        )
    return value
