"""Keys that stand twice in one mapping of YAML: parsers take the last without a word."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path as File
from typing import TYPE_CHECKING

from specdec.errors import SpecdecError
from specdec.objects import Path, documents, dotted

if TYPE_CHECKING:
    from yaml.nodes import Node

Repeated = tuple[Path, int, int]


def repeated(node: Node | None, path: Path = ()) -> Iterator[Repeated]:
    """(path, line of the first, line of the one after it) of each key that stands twice in its mapping."""
    if node is None or not isinstance(node.value, list):
        return
    lines: dict[str, int] = {}
    for index, item in enumerate(node.value):
        if not isinstance(item, tuple):
            yield from repeated(item, (*path, index))
            continue
        key, value = item
        name, line = str(key.value), key.start_mark.line + 1
        here = (*path, name)
        if name in lines and name != "<<":
            yield here, lines[name], line
        lines[name] = line
        yield from repeated(value, here)


def refuse(files: Sequence[File]) -> None:
    """Raises SpecdecError (duplicate-key) that names file, line and key for values files; unreadable ones are left to
    whoever reads them."""
    for file in files:
        try:
            values = documents(file.read_text(encoding="utf-8-sig"), str(file))
        except (OSError, UnicodeDecodeError, SpecdecError):
            continue
        for path, first, line in (found for each in values for found in repeated(each.node)):
            raise SpecdecError(
                f"the key stands on line {first} already, and the last one would win",
                code="duplicate-key",
                file=f"{file}:{line}",
                path=dotted(path),
                fix="one of the two, with everything that both hold",
            )
