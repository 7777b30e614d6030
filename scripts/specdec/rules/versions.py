"""What an engine version has: flags, fields and names of methods, from the chart's engines.yaml and surfaces.yaml."""

from __future__ import annotations

from functools import cache
from typing import Any, Literal

from specdec import facts
from specdec.errors import SpecdecError, nearest
from specdec.facts import version_key

Part = Literal["flags", "fields", "methods"]
Span = tuple[facts.Version, facts.Version | None]


@cache
def has(part: Part, name: str, version: str | None) -> bool | None:
    """Whether that version has that name; None where the version is unknown. Outside of the table its ends count."""
    key = key_of(version)
    if key is None:
        return None
    key = max(key, _oldest())
    return any(first <= key and (gone is None or key < gone) for first, gone in _spans(part).get(name, []))


@cache
def known(part: Part, version: str | None) -> frozenset[str]:
    """Every name that the version has; empty when the version is unknown."""
    return frozenset(name for name in _spans(part) if has(part, name, version))


def anywhere(part: Part) -> frozenset[str]:
    """Every name that any version has."""
    return frozenset(_spans(part))


@cache
def nearest_name(part: Part, word: str, version: str | None) -> str | None:
    """The name of that version, or of any where it is unknown, that a word was most likely meant to be."""
    return nearest(word, known(part, version) or anywhere(part))


def versions_with(part: Part, name: str) -> str | None:
    """The versions that have a name, in words: "before 0.8.3", "from 0.13.0 on"; None when none has it."""
    spans = _spans(part).get(name)
    if not spans:
        return None
    first, ends = min(first for first, _ in spans), [gone for _, gone in spans]
    begin = facts.version_text(first)
    if None in ends:
        return f"from {begin} on"
    end = facts.version_text(max(gone for gone in ends if gone))
    return f"before {end}" if first == _oldest() else f"from {begin} to before {end}"


def not_run(method: str, version: str | None) -> str | None:
    """What the version does with a method whose name it accepts and that it does not run; None when it runs it."""
    return _does(facts.engines()["methods"].get(method, {}).get("notRun", []), version)


def without_effect(field: str, version: str | None) -> str | None:
    """What to say of a field that the version takes and does nothing with; None for any other."""
    return _does(facts.engines()["withoutEffect"].get(field, []), version)


def limit(name: str, version: str | None) -> list[dict[str, Any]]:
    """The rows of a limit in engines.yaml that hold for the version."""
    return facts.in_range(facts.engines().get("limits", {}).get(name, []), version)


def _does(rows: list[dict[str, Any]], version: str | None) -> str | None:
    row = next(iter(facts.in_range(rows, version)), None)
    return str(row["does"]) if row else None


@cache
def key_of(version: str | None) -> facts.Version | None:
    """The version as sortable numbers, None where it is unknown."""
    try:
        return version_key(version) if version else None
    except SpecdecError:
        return None


@cache
def _oldest() -> facts.Version:
    return version_key(facts.engines()["versions"][0]["from"])


@cache
def _spans(part: Part) -> dict[str, list[Span]]:
    spans: dict[str, list[Span]] = {}
    for name, bounds in facts.surfaces()[part].items():
        first, gone = bounds if isinstance(bounds, list) else (bounds, None)
        spans[name] = [(version_key(first), version_key(gone) if gone else None)]
    kind = part.removesuffix("s")
    for row in (row for argument in facts.engines()["arguments"] for row in argument["rows"] if kind in row):
        gone = row.get("before")
        spans.setdefault(row[kind], []).append((version_key(row["from"]), version_key(gone) if gone else None))
    return spans
