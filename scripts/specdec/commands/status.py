"""`specdec status`: is it healthy, does it speculate, and how much is accepted?"""

from __future__ import annotations

from typing import Any

import typer

from specdec.output import Format


def status(
    environment: str = typer.Argument(..., metavar="ENV", help="A folder of environments/."),
    context: str | None = typer.Option(None, help="Context of the kubeconfig."),
    release: str | None = typer.Option(None, help="Name of the release."),
    namespace: str | None = typer.Option(None, help="Namespace of the release."),
    format: Format = typer.Option(Format.text, help="text or json."),
) -> None:
    """Show a deployed environment. Exit 1 where anything of it is unhealthy."""
    from specdec.deploy import overview
    from specdec.deploy.live import Live
    from specdec.output import console, print_json

    found = overview.of(Live.of(environment, context, release, namespace))
    if format == Format.json:
        print_json(found)
    else:
        out = console()
        out.print(summary(found))
        out.print(pods(found))
        for reason in found["reasons"]:
            out.print(f"unhealthy: {reason}", style="red", markup=False)
    if not found["healthy"]:
        raise typer.Exit(1)


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
