"""What every command prints: tables for people, one JSON document for machines, errors on stderr."""

from __future__ import annotations

import json
import sys
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from specdec.errors import SpecdecError

if TYPE_CHECKING:
    from rich.console import Console


class Format(StrEnum):
    text = "text"
    json = "json"


# Columns where there is no terminal: no table is so wide, so a pipe gets whole words and a row on each line.
UNBOUNDED = 10_000


def console(*, stderr: bool = False) -> Console:
    """A rich console; colour only on a terminal, width of the terminal, and nothing cut or wrapped where there is none."""
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    return Console(
        stderr=stderr, width=None if stream.isatty() else UNBOUNDED, highlight=False, soft_wrap=not stream.isatty()
    )


def print_json(document: Any) -> None:
    json.dump(document, sys.stdout, indent=2, sort_keys=False)
    sys.stdout.write("\n")


def print_error(error: SpecdecError, *, as_json: bool) -> None:
    if as_json:
        json.dump({"error": error.as_dict()}, sys.stderr)
        sys.stderr.write("\n")
        return
    out = console(stderr=True)
    out.print(f"[bold red]error[/] [dim]\\[{error.code}][/] ", end="")
    out.print(str(error), markup=False)
    if error.fix:
        out.print("  fix: ", style="bold", end="")
        out.print(error.fix, markup=False)
