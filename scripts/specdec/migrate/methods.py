"""Which of the chart's methods a deployment means: by its name, else as the engine finds it, by the draft's model."""

from __future__ import annotations

import re
from functools import cache

from specdec import facts

# What the name of a head's repository says where files/models.yaml does not know it.
NAMES = (
    ("eagle3", r"eagle-?3"),
    ("eagle", r"eagle"),
    ("medusa", r"medusa"),
    ("mlp_speculator", r"accelerator|speculator"),
)
ARCHITECTURES = (
    ("eagle3", r"Eagle3"),
    ("eagle", r"^Eagle"),
    ("medusa", r"Medusa"),
    ("mlp_speculator", r"MLPSpeculator"),
    ("dflash", r"DFlash"),
    ("dspark", r"DSpark"),
    ("mtp", r"MTP"),
)


@cache
def _by_engine_name() -> dict[str, str]:
    names: dict[str, str] = {}
    for method, entry in facts.engines()["methods"].items():
        names |= {row["engineName"]: method for row in entry["rows"] if "engineName" in row}
    return names


def of_name(name: str) -> str | None:
    """The chart's method; a family's multi-token head is mtp. None for a method that the chart has not."""
    known = _by_engine_name()
    if name in known or name in facts.engines()["methods"]:
        return known.get(name, name)
    return "mtp" if name.endswith("_mtp") and name in facts.surfaces()["methods"] else None


def of_model(model: str) -> tuple[str, bool]:
    """(method, whether it is certain) for a draft that is named without a method."""
    if model in ("ngram", "[ngram]"):
        return "ngram", True
    known = facts.models().get(model)
    if known:
        architectures = " ".join(known["config"].get("architectures", []))
        return next((name for name, pattern in ARCHITECTURES if re.search(pattern, architectures)), "draft_model"), True
    last = model.rstrip("/").rsplit("/", 1)[-1]
    named = next((name for name, pattern in NAMES if re.search(pattern, last, re.IGNORECASE)), None)
    return named or "draft_model", False
