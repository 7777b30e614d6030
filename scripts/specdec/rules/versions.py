"""What an engine version has: flags and fields as its source defines them (surface.yaml), limits from engines.yaml."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, Literal

from specdec import facts
from specdec.errors import SpecdecError
from specdec.facts import version_key
from specdec.manifests import EngineWorkload

Part = Literal["flags", "fields", "methods"]


@cache
def has(part: Part, name: str, version: str | None) -> bool | None:
    """Whether that version has that name; None where the read versions on both sides differ, or it is unknown."""
    key = _key(version)
    if key is None:
        return None
    spans = _spans(part).get(name, [])
    answers = {any(first <= read <= last for first, last in spans) for read in _around(key)}
    return answers.pop() if len(answers) == 1 else None


@cache
def known(part: Part, version: str | None) -> frozenset[str]:
    """Every name that the version has for certain; empty when the version is unknown."""
    return frozenset(name for name in _spans(part) if has(part, name, version))


def anywhere(part: Part) -> frozenset[str]:
    """Every name that any version has."""
    return frozenset(_spans(part))


def flags_of(engine: EngineWorkload) -> frozenset[str]:
    return known("flags", engine.engine_version)


def last_with(part: Part, name: str) -> str | None:
    """The newest read version that has the name."""
    spans = _spans(part).get(name)
    return ".".join(str(number) for number in spans[-1][1][:3]) if spans else None


def not_run(part: Part, name: str, version: str | None) -> str | None:
    """What the version does with a name that it accepts and does not run; None when it runs it."""
    rows = _surface().get("notRun", {}).get(part, {}).get(name, [])
    row = next(iter(facts.in_range(rows, version)), None)
    return str(row["does"]) if row else None


def limit(name: str, version: str | None) -> list[dict[str, Any]]:
    """The rows of a limit in engines.yaml that hold for the version."""
    return facts.in_range(facts.engines().get("limits", {}).get(name, []), version)


def _key(version: str | None) -> facts.Version | None:
    try:
        return version_key(version) if version else None
    except SpecdecError:
        return None


def _around(key: facts.Version) -> list[facts.Version]:
    """The nearest read versions at or below, and at or above; beyond either end only one."""
    read = _read()
    same = [version for version in read if version[:3] == key[:3]]
    if same:
        return same
    below, above = [version for version in read if version < key], [version for version in read if version > key]
    return [*below[-1:], *above[:1]]


@cache
def _read() -> list[facts.Version]:
    return [version_key(str(version)) for version in _surface()["versions"]]


@cache
def _spans(part: Part) -> dict[str, list[tuple[facts.Version, facts.Version]]]:
    surface = _surface()
    everything = [[surface["versions"][0], surface["versions"][-1]]]
    return {
        name: [(version_key(str(a)), version_key(str(b))) for a, b in (everything if spans == "all" else spans)]
        for name, spans in surface[part].items()
    }


def _surface() -> dict[str, Any]:
    return facts.load(Path(__file__).with_name("surface.yaml"))
