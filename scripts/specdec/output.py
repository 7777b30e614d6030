"""What every command prints: tables for people, one JSON document for machines, errors on stderr."""

from __future__ import annotations

import json
import os
import sys
from enum import StrEnum
from pathlib import Path
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
    """A rich console; colour and the width of the terminal where there is one, else nothing cut or wrapped."""
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    return Console(
        stderr=stderr, width=None if stream.isatty() else UNBOUNDED, highlight=False, soft_wrap=not stream.isatty()
    )


def print_json(document: Any) -> None:
    json.dump(document, sys.stdout, indent=2, sort_keys=False)
    sys.stdout.write("\n")


def check_file(file: Path, option: str) -> None:
    """Raises SpecdecError where no file can be written there: before the work is done, not after."""
    folder = file.parent
    if file.is_dir():
        wrong, fix = "is a folder", f"{option} {file / 'NAME'}: the name of a file"
    elif not folder.is_dir():
        wrong, fix = f"there is no folder {folder}", f"mkdir -p {folder}"
    elif not os.access(file if file.exists() else folder, os.W_OK):
        wrong, fix = "may not be written", "another file, or its permissions"
    else:
        return
    raise SpecdecError(wrong, code="unwritable-file", file=str(file), path=option, fix=fix)


def save(file: Path, text: str, option: str) -> None:
    """Write what an option of the command line asked for. Raises SpecdecError where that cannot be."""
    check_file(file, option)
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        wrong = f"cannot be written: {error.strerror or error}"
        raise SpecdecError(wrong, code="unwritable-file", file=str(file), path=option, fix="another file") from None


def make_folder(folder: Path, option: str) -> None:
    """The folder that an option asked for, made where it is missing. Raises SpecdecError where that cannot be."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        wrong = "is a file" if folder.is_file() else f"cannot be made: {error.strerror or error}"
        raise SpecdecError(
            wrong, code="unwritable-file", file=str(folder), path=option, fix="a folder that may be written"
        ) from None
    if not os.access(folder, os.W_OK):
        raise SpecdecError(
            "may not be written", code="unwritable-file", file=str(folder), path=option, fix="another folder"
        )


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
