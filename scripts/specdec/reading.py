"""Text that a command line names: a file, a folder of manifests, or - for standard input."""

from __future__ import annotations

import sys
from pathlib import Path

from specdec.errors import SpecdecError


def text(target: str | Path, *, code: str = "unreadable-file") -> str:
    """The content of a file, or of standard input for "-", without its byte order mark.

    Raises SpecdecError (`code`) where it cannot be read or is not UTF-8.
    """
    try:
        if str(target) == "-":
            return sys.stdin.buffer.read().decode("utf-8-sig")
        return Path(target).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        message = f"not text in UTF-8: {error.reason}"
    except OSError as error:
        message = error.strerror or "cannot be read"
    raise SpecdecError(message, code=code, file=str(target))


def manifests_in(folder: Path) -> list[Path]:
    """The YAML files in a folder and the folders below it, in order."""
    return [file for file in sorted(folder.rglob("*")) if file.suffix in (".yaml", ".yml") and file.is_file()]
