"""`specdec status`: is it healthy, does it speculate, and how much is accepted?"""

from __future__ import annotations

from typing import Any

import typer

from specdec.errors import SpecdecError
from specdec.output import Format


def status(
    environment: str = typer.Argument(..., metavar="ENV", help="A folder of environments/."),
    context: str | None = typer.Option(None, help="Context of the kubeconfig."),
    release: str | None = typer.Option(None, help="Name of the release."),
    namespace: str | None = typer.Option(None, help="Namespace of the release."),
    format: Format = typer.Option(Format.text, help="text or json."),
) -> None:
    """Show a deployed environment. Exit 1 where anything of it is unhealthy.

    Where Terraform makes its cluster, also the stages of its deploy, what exists, and the price an hour.
    """
    from specdec.deploy import overview
    from specdec.deploy.live import Live
    from specdec.output import console, print_json

    cloud = infrastructure(environment, context)
    # Where there is no cluster to ask, or it does not answer, what Terraform knows is all.
    found: dict[str, Any] = {"schema_version": 1, "environment": environment, "healthy": False, "reasons": []}
    try:
        if cloud is not None and not cloud["reachable"]:
            raise SpecdecError("not deployed", fix=f"specdec deploy {environment}")
        found = overview.of(Live.of(environment, context, release, namespace))
    except SpecdecError as error:
        if cloud is None:
            raise
        found["reasons"] = [f"{error.message}: {error.fix}" if error.fix else error.message]
    if cloud is not None:
        found["infrastructure"] = cloud
    if format == Format.json:
        print_json(found)
    else:
        from specdec.deploy.cloud import show

        out = console()
        if cloud is not None:
            out.print(show.infrastructure(cloud))
        if "engines" in found:
            out.print(summary(found))
            out.print(pods(found))
        for reason in found["reasons"]:
            out.print(f"unhealthy: {reason}", style="red", markup=False)
    if not found["healthy"]:
        raise typer.Exit(1)


def infrastructure(environment: str, context: str | None) -> dict[str, Any] | None:
    """What Terraform made, None for an environment without it or where a cluster was brought along."""
    from specdec.deploy.cloud import kubeconfig, overview
    from specdec.deploy.cloud.target import Target
    from specdec.environments import Environment

    env = Environment.named(environment, kubecontext=context)
    target = Target.of(env) if env.kubecontext is None else None
    return None if target is None else overview.of(target) | {"reachable": kubeconfig.of(env) is not None}


def summary(found: dict[str, Any]) -> Any:
    """The release, its engines and its router."""
    from specdec.deploy.report import number, rows

    pairs = [("release", f"{found['release']} in {found['namespace']}, revision {found['revision']}, {found['state']}")]
    for engine in found["engines"]:
        speculation = (
            f"speculation {engine['speculation']}, K={engine['num_speculative_tokens']}"
            if engine["speculation"]
            else "no speculation"
        )
        pairs.append((f"engine {engine['name']}", f"vLLM {engine['version']}, {engine['model']}, {speculation}"))
        if engine["drafts"]:
            positions = " ".join(f"{value:.2f}" for value in engine["acceptance_by_position"])
            rate = number(engine["acceptance_rate"], ".2f")
            pairs.append(
                ("  since its start", f"{engine['drafts']:.0f} drafts, acceptance {rate}, by position {positions}")
            )
    if router := found["router"]:
        pairs.append((f"router {router['service']}", f"leads to {', '.join(router['targets']) or 'nobody'}"))
    return rows(f"Environment {found['environment']}", pairs)


def pods(found: dict[str, Any]) -> Any:
    """One row a pod."""
    from rich.table import Table
    from rich.text import Text

    table = Table(title="Pods", title_justify="left")
    for column in ("pod", "state", "restarts", "age", "node"):
        table.add_column(column)
    for pod in found["pods"]:
        table.add_row(
            Text(pod["name"]), Text(pod["phase"], "green" if pod["ready"] else "red"), str(pod["restarts"]),
            age(pod["age_seconds"]), pod["node"] or "",
        )  # fmt: skip
    return table


def age(seconds: int | None) -> str:
    """As kubectl shows it: 45s, 12m, 3h, 5d."""
    if seconds is None:
        return ""
    for size, unit in ((86400, "d"), (3600, "h"), (60, "m")):
        if seconds >= 2 * size:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"
