"""The version that the values are for."""

from __future__ import annotations

import re

from specdec import facts
from specdec.errors import SpecdecError


def is_known(version: str) -> bool:
    """Whether the tables answer for that version."""
    return bool(re.match(r"\d+\.\d+\.\d+", version) and facts.in_range(facts.engines()["versions"], version))


def known_version(text: str) -> str:
    """The version without a v before it. Raises SpecdecError, with the known ones, for an unknown one."""
    version = text.strip().removeprefix("v")
    if not is_known(version):
        ranges = facts.engines()["versions"]
        known = "; ".join(f"{row['from']} to before {row['before']}" for row in ranges)
        raise SpecdecError(
            f"the chart does not know vLLM {version}", code="migrate-version", path="--to", fix=f"known: {known}"
        )
    return version


def source_version(text: str) -> str:
    """The version that the arguments are of, which may be older than the tables. Raises SpecdecError for no version."""
    version = text.strip().removeprefix("v")
    if not re.match(r"\d+\.\d+\.\d+", version):
        raise SpecdecError(
            f"{text!r} is no version of vLLM", code="migrate-version", path="--from", fix="such as 0.7.3"
        )
    return version
