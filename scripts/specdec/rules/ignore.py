"""Findings that a person has accepted: the annotation `vllm-speculative/ignore: "SD426=reason; SD703=reason"`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from specdec.objects import Manifest, Path, mapping

ANNOTATION = "vllm-speculative/ignore"
PLACES: tuple[Path, ...] = (
    ("metadata", "annotations", ANNOTATION),
    ("spec", "template", "metadata", "annotations", ANNOTATION),
)


def entries(manifest: Manifest) -> Iterator[tuple[Path, str, str]]:
    """(where it stands, code, reason) of everything that the annotation lists; the reason may be empty."""
    for place in PLACES:
        holder = mapping(manifest.get(place[:-1]))
        text = holder.get(ANNOTATION)
        if text is None:
            continue
        for item in re.split(r"[;\n]", str(text)):
            code, _, reason = item.partition("=")
            if code.strip():
                yield place, code.strip(), reason.strip()


def reason_for(manifest: Manifest, code: str) -> str | None:
    """Why that code is ignored there; None where it is not, or where no reason is given."""
    return next((reason for _, listed, reason in entries(manifest) if listed == code and reason), None)
