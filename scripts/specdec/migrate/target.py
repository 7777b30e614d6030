"""The version that the values are for."""

from __future__ import annotations

import re

from specdec import facts
from specdec.errors import SpecdecError


def known_version(text: str) -> str:
    """The version without a v before it. Raises SpecdecError with the known ones where the tables answer for no such."""
    version = text.strip().removeprefix("v")
    ranges = facts.engines()["versions"]
    if not re.match(r"\d+\.\d+\.\d+", version) or not facts.in_range(ranges, version):
        known = "; ".join(f"{row['from']} to before {row['before']}" for row in ranges)
        raise SpecdecError(
            f"the chart does not know vLLM {version}", code="migrate-version", path="--to", fix=f"known: {known}"
        )
    return version
