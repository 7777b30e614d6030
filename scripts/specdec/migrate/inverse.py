"""The chart's table of arguments read backwards: which typed value a flag or a field of any version stands for."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from typing import Any

from specdec import engine_args, facts
from specdec.errors import SpecdecError


@dataclass(frozen=True)
class Typed:
    """value: dotted path. row: the row of engines.yaml that spells it so."""

    value: str
    row: dict[str, Any]


@cache
def _by(kind: str) -> dict[str, list[Typed]]:
    found: dict[str, list[Typed]] = {}
    for argument in facts.engines()["arguments"]:
        for row in argument["rows"]:
            if kind in row:
                found.setdefault(row[kind], []).append(Typed(argument["value"], row))
    return found


def of_flag(flag: str, version: str | None) -> Typed | None:
    """The value behind a flag; of several, the one that the version means by it."""
    return _of("flag", flag, version)


def of_field(field: str, value: Any, version: str | None) -> list[tuple[Typed, Any]]:
    """The values behind a field of the speculative configuration: several where it is an object of its own."""
    rows = _by("field").get(field, [])
    keyed = {typed.row["key"]: typed for typed in rows if "key" in typed.row}
    if keyed and isinstance(value, dict):
        return [(keyed[key], each) for key, each in value.items() if key in keyed]
    # The same field means how drafts are sampled or how they are accepted, by what it says.
    able = [typed for typed in rows if typed.row["kind"] != "choice" or value in typed.row["choices"].values()]
    chosen = _first(able, version)
    return [(chosen, value)] if chosen else []


def of_variable(name: str, version: str | None) -> Typed | None:
    return _of("env", name, version)


def _of(kind: str, name: str, version: str | None) -> Typed | None:
    return _first(_by(kind).get(name, []), version)


def _first(typed: list[Typed], version: str | None) -> Typed | None:
    rows = facts.in_range([each.row for each in typed], version)
    return next((each for each in typed if each.row in rows), typed[0] if typed else None)


def value_of(typed: Typed, given: Any) -> Any:
    """What was given, as the value has it. Raises SpecdecError where it is not of its kind."""
    kind = typed.row["kind"]
    try:
        return _READ.get(kind, str)(given) if kind != "choice" else _choice(typed, given)
    except (ValueError, TypeError, KeyError, IndexError):
        name = typed.row.get("flag") or typed.row.get("field") or typed.row.get("env")
        raise SpecdecError(
            f"{name} is {given!r}, not a value that {typed.value} can take", code="migrate-value", fix=f"kind: {kind}"
        ) from None


def _choice(typed: Typed, given: Any) -> str:
    return next(str(ours) for ours, theirs in typed.row["choices"].items() if theirs == given)


def _int(given: Any) -> int | None:
    if isinstance(given, bool):
        raise ValueError(given)
    return given if isinstance(given, int) else engine_args.length(str(given))


def _float(given: Any) -> float:
    return float(given)


def _bool(given: Any) -> bool:
    """A flag without a word behind it is true, as old versions' parsers have it."""
    words = {"true": True, "1": True, "false": False, "0": False}
    return True if given is None else given if isinstance(given, bool) else words[str(given).lower()]


def _schedule(given: Any) -> list[dict[str, int]]:
    rows = json.loads(given) if isinstance(given, str) else given
    return [{"from": int(row[0]), "to": int(row[1]), "tokens": int(row[2])} for row in rows]


def _floats(given: Any) -> list[float]:
    return [float(each) for each in (json.loads(given) if isinstance(given, str) else given)]


def _map(given: Any) -> dict[str, Any]:
    return dict(json.loads(given) if isinstance(given, str) else given)


def _words(given: Any) -> list[str]:
    return given if isinstance(given, list) else str(given).split()


def adapters(given: str) -> list[dict[str, str]]:
    """`name=path` words, or JSON objects with name and path, one behind the other."""
    found, rest, decoder = [], given.strip(), json.JSONDecoder()
    while rest:
        if rest.startswith("{"):
            document, end = decoder.raw_decode(rest)
            found.append({"servedName": str(document["name"]), "name": str(document["path"])})
            rest = rest[end:].strip()
        else:
            word, _, rest = rest.partition(" ")
            name, equals, path = word.partition("=")
            if not equals:
                raise ValueError(word)
            found.append({"servedName": name, "name": path})
    return found


_READ = {
    "int": _int,
    "float": _float,
    "bool": _bool,
    "switch": _bool,
    "schedule": _schedule,
    "floats": _floats,
    "map": _map,
    "words": _words,
    "adapters": adapters,
}
