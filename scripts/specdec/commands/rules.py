"""`specdec rules`: what the rules of `validate` are and why."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from specdec.errors import unknown
from specdec.output import Format


def rules(
    code: Annotated[str | None, typer.Argument(help="One rule, by code or name.")] = None,
    output: Annotated[Format, typer.Option("--format", help="text or json.")] = Format.text,
    write: Annotated[Path | None, typer.Option(help="Write the pages of all rules into this folder.")] = None,
) -> None:
    """List the rules, or explain one: why, a wrong and a right example, the fix, where the fact was read."""
    from specdec.output import console, make_folder, print_json
    from specdec.rules import all_rules, docs

    known = all_rules()
    if write is not None:
        make_folder(write, "--write")
        docs.write(write)
        return
    if code is None:
        chosen = list(known.values())
    else:
        chosen = [rule for rule in known.values() if code.upper() == rule.code or code == rule.name]
        if not chosen:
            _explain_chart_error(code, [*known, *(rule.name for rule in known.values())], output)
            return
    if output is Format.json:
        print_json(
            [
                {
                    key: getattr(rule, key)
                    for key in ("code", "name", "severity", "reason", "fix", "source", "bad", "good")
                }
                for rule in chosen
            ]
        )
    elif code is not None:
        from rich.markdown import Markdown

        out = console()
        out.print(Markdown(docs.page(chosen[0])) if out.is_terminal else docs.page(chosen[0]), markup=False)
    else:
        from rich.table import Table

        table = Table("code", "rule", "severity", box=None)
        for rule in chosen:
            table.add_row(rule.code, rule.name, rule.severity.value)
        console().print(table)


def _explain_chart_error(code: str, names: list[str], output: Format) -> None:
    """The chart stops with codes of its own while it renders. Raises SpecdecError for a code that nobody has."""
    from specdec import facts
    from specdec.output import console, print_json

    errors = facts.load(facts.files_dir() / "errors.yaml")["errors"]
    row = errors.get(code.upper())
    if row is None:
        raise unknown("rule", code, [*names, *errors])
    if output is Format.json:
        print_json([{"code": code.upper(), "severity": "error", **row}])
    else:
        console().print(f"{code.upper()}: {row['name']} (the chart stops with it)\n\n{row['reason']}", markup=False)
