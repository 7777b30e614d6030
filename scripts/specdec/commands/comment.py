"""`specdec comment`: what a change would do, for a pull request."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def comment(
    environment: Annotated[str, typer.Argument(metavar="ENV", help="An environment's name.")],
    plan: Annotated[
        list[Path] | None, typer.Option(help="A Terraform plan as JSON: terraform show -json tfplan. Repeatable.")
    ] = None,
    root: Annotated[
        Path | None, typer.Option(help="Where terraform init ran, to see how the state is kept. Default: the plan's.")
    ] = None,
    against: Annotated[
        Path | None, typer.Option(help="Manifests as they are now (specdec render on the base branch), to compare.")
    ] = None,
    allow: Annotated[
        list[str] | None, typer.Option(help="A code of the guard that may be: it becomes a warning.")
    ] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write to a file, not to the screen.")] = None,
) -> None:
    """Write a pull request's comment: Terraform's changes, the guard's findings, memory, speed, cost and the diff.

    Exit 0 whatever it says: plan-check, validate and plan are the ones that stop a change.
    """
    from specdec import environments
    from specdec.comment import gather, render
    from specdec.errors import unknown
    from specdec.output import check_file, save
    from specdec.plan_check import NAMES

    for code in allow or ():
        if code not in NAMES:
            raise unknown("code", code, NAMES)
    if output is not None:
        check_file(output, "--output")
    text = render(gather(environments.load(environment), plan or [], root, against, allow or []))
    if output is None:
        typer.echo(text, nl=False)
    else:
        save(output, text, "--output")
