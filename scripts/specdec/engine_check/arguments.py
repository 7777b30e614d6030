"""What a person would write for the values of the chart, right or wrong: arguments of the engine without any check.

The chart refuses before it renders; the engine has to be asked for the same thing all the same.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from specdec import facts
from specdec.facts import version_key

Values = dict[str, Any]


@dataclass
class Arguments:
    argv: list[str] = field(default_factory=list)
    env: dict[str, str] = field(default_factory=dict)
    fields: dict[str, Any] = field(default_factory=dict)


def of_values(values: Values, version: str) -> Arguments:
    """The arguments of `values`, which hold what is set and nothing else, as the version spells them."""
    made = Arguments()
    speculative = values.get("speculative", {})
    for argument in facts.engines()["arguments"]:
        value = at(values, argument["value"])
        if argument["value"].startswith("speculative.") and speculative.get("enabled") is False:
            continue
        row = nearest_row(argument["rows"], version)
        value = "" if value is None else spelled(value, row, version)
        if value == "" or value == [] or (value is False and row["kind"] == "switch"):
            continue
        if "key" in row:
            made.fields.setdefault(row["field"], {})[row["key"]] = value
        elif "field" in row:
            made.fields[row["field"]] = value
        elif "env" in row:
            made.env[row["env"]] = str(value)
        elif row["kind"] == "switch":
            made.argv.append(row["flag"])
        else:
            made.argv += [row["flag"], *(map(str, value) if isinstance(value, list) else [str(value)])]
    if made.fields:
        made.argv += ["--speculative-config", json.dumps(made.fields)]
    made.argv += [str(word) for word in values.get("engine", {}).get("extraArgs", [])]
    return made


def spelled(value: Any, row: dict[str, Any], version: str) -> Any:
    """The value as the version's engine spells it."""
    if row["kind"] == "schedule":
        return [[step["from"], step["to"], step["tokens"]] for step in value]
    if row["kind"] == "method":
        return engine_name(value, version)
    if row["kind"] == "choice":
        return row["choices"].get(value, value)
    if row["kind"] == "adapters":
        return [json.dumps({"name": adapter["servedName"], "path": adapter["name"]}) for adapter in value]
    return value


def at(values: Values, path: str) -> Any:
    """The value at a dotted path, None where nothing is set."""
    found: Any = values
    for key in path.split("."):
        found = found.get(key) if isinstance(found, dict) else None
    return found


def nearest_row(rows: list[dict[str, Any]], version: str) -> dict[str, Any]:
    """The row that holds for the version, else the one that a person would take: the newest before it, or the first."""
    holds = facts.in_range(rows, version)
    before = [row for row in rows if version_key(row["from"]) <= version_key(version)]
    return (holds or before[-1:] or rows[:1])[0]


def engine_name(method: str, version: str) -> str:
    """What that version calls the method; empty where it finds it by the draft's configuration alone."""
    rows = facts.engines()["methods"].get(method, {}).get("rows", [])
    row = next(iter(facts.in_range(rows, version)), {"engineName": method})
    return str(row.get("engineName", ""))
