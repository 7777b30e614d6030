"""The values as a file, with a word on what is not in it."""

from __future__ import annotations

import re
import textwrap
from typing import Any


def document(values: dict[str, Any], notes: list[str]) -> str:
    """YAML below the notes, which are comments."""
    import yaml

    lines = [
        line
        for note in notes
        for line in textwrap.wrap(
            " ".join(note.split()),
            width=120,
            initial_indent="# ",
            subsequent_indent="#   ",
            break_long_words=False,
            break_on_hyphens=False,
        )
    ]
    head = "\n".join(lines) + "\n" if lines else ""
    return head + yaml.safe_dump(values, sort_keys=False, allow_unicode=True, width=120)


def engine_name(name: str) -> str:
    """A name as the chart takes it for an engine: lower-case letters, digits and hyphens."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:30].strip("-")
