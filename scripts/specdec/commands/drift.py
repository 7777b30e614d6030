"""`specdec drift`: what the cloud has that the state and the files do not say."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from specdec.output import Format


def drift(
    environment: Annotated[str, typer.Argument(metavar="ENV", help="An environment's name.")],
    with_platform: Annotated[
        bool, typer.Option("--platform/--no-platform", help="Look at what runs in the cluster too.")
    ] = True,
    output: Annotated[Format, typer.Option("--format", help="text or json.")] = Format.text,
) -> int:
    """Plan an environment's Terraform without keeping the plan. Exit 1 when something would change or has changed."""
    from specdec import environments
    from specdec.deploy.cloud.target import Target
    from specdec.deploy.progress import Progress
    from specdec.errors import SpecdecError
    from specdec.infrastructure.drift import look
    from specdec.output import print_json

    where = environments.load(environment)
    target = Target.of(where)
    if target is None:
        raise SpecdecError(f"{environment} has no Terraform", code="SD888", file=str(where.directory))
    names = [target.cloud, *(["platform"] if with_platform else [])]
    progress = Progress(quiet=output is Format.json)
    found = {name: look(target, name, progress) for name in names}
    drifted = any(not root["clean"] for root in found.values())
    if output is Format.json:
        print_json({"environment": environment, "drift": drifted, "roots": found})
    else:
        _print(found)
    return 1 if drifted else 0


def _print(found: dict[str, dict[str, Any]]) -> None:
    from rich.text import Text

    from specdec.output import console

    out = console()
    for name, root in found.items():
        out.print(Text(f"{name}: {root['summary']}", style="bold" if root["clean"] else "bold yellow"))
        for address in root["changed_outside"]:
            out.print(Text(f"    changed outside Terraform: {address}"))
        for change in root["planned"]:
            out.print(Text(f"    {change['action']}: {change['address']}"))
