"""Writes the chosen K or schedule into a values file; every line that need not change stays as it is."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from specdec.errors import SpecdecError
from specdec.objects import mapping
from specdec.output import check_file

Change = tuple[tuple[str, ...], Any]  # a key of the values and what it becomes, None: taken away


def write_choice(file: Path, documents: Sequence[dict[str, Any]]) -> list[str]:
    """What was written, in words: speculative.numTokens; speculative.schedule where one gains more than 2 % over the
    static K somewhere; autoscaling.maxConcurrencyPerReplica where autoscaling is on and it is not set.

    Raises SpecdecError where there is nothing to write, or the file is no values file.
    """
    from specdec.rules.edit import edited, overwrite
    from specdec.rules.model import REMOVED, Edit

    check_file(file, "--write")
    text, values = _read(file)
    speculating = [doc for doc in documents if doc["method"]]
    if not speculating:
        raise SpecdecError("the engine does not speculate: there is no K to write", code="nothing-to-write",
                           file=str(file), path="speculative.enabled", fix="true, with a method")  # fmt: skip
    changes = [change for doc in speculating for change in _changes(doc, values, file, len(speculating) > 1)]
    for (path, value), (other, another) in itertools.combinations(changes, 2):
        if path == other and value != another:
            raise SpecdecError(
                f"several engines, and one key for both: {value} and {another}", code="usage", file=str(file),
                path=".".join(path), fix="the engines' own values in engines.NAME, or a plan of one of them",
            )  # fmt: skip
    edits = [((0, ()), Edit(path, REMOVED if value is None else value)) for path, value in changes]
    try:
        new = edited(text, edits) if values else _first(text, changes)
    except (KeyError, TypeError, AttributeError) as error:
        raise SpecdecError(f"cannot be changed: {error!r}", code="values-broken", file=str(file)) from error
    try:
        overwrite(file, new) if file.exists() else file.write_text(new, encoding="utf-8")
    except OSError as error:
        raise SpecdecError(
            f"cannot be written: {error.strerror}", code="unwritable-file", file=str(file), path="--write"
        ) from error
    return [f"{'.'.join(path)}: {'taken away' if value is None else _said(value)}" for path, value in changes]


def _first(text: str, changes: Sequence[Change]) -> str:
    """A file that held no value yet: its comments, then the changes."""
    import yaml

    made: dict[str, Any] = {}
    for path, value in changes:
        holder = made
        for key in path[:-1]:
            holder = holder.setdefault(key, {})
        holder[path[-1]] = value
    kept = "".join(line for line in text.splitlines(keepends=True) if line.lstrip()[:1] in ("#", ""))
    return kept + ("\n" if kept and not kept.endswith("\n") else "") + yaml.safe_dump(made, sort_keys=False)


def _read(file: Path) -> tuple[str, dict[str, Any]]:
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        text = file.read_text(encoding="utf-8-sig") if file.is_file() else ""
        values = YAML(typ="safe").load(text)
    except (YAMLError, UnicodeDecodeError, OSError) as error:
        raise SpecdecError(f"not readable as YAML: {error}", code="values-broken", file=str(file)) from error
    if values is not None and not isinstance(values, dict):
        raise SpecdecError("has to be a mapping", code="values-broken", file=str(file))
    return text, values or {}


def _changes(doc: dict[str, Any], values: dict[str, Any], file: Path, several: bool) -> Iterator[Change]:
    tokens = doc["num_speculative_tokens"]
    if not tokens["static"]:
        raise SpecdecError(
            f"{doc['engine']}: no K pays at this load: there is nothing to write",
            code="nothing-to-write",
            file=str(file),
            fix="speculative.enabled: false",
        )
    name = next(
        (n for n in mapping(values.get("engines")) if doc["engine"] == n or doc["engine"].endswith(f"-{n}")), None
    )
    own = mapping(mapping(values.get("engines")).get(name)) if name else {}
    top = ("engines", name) if name and (several or "speculative" in own) else ()
    before = own if top else values
    wanted = max([tokens["static"], *(r["tokens"] for r in tokens["schedule"])]) if gains(doc) else tokens["static"]
    yield (*top, "speculative", "numTokens"), wanted
    if gains(doc):
        yield (*top, "speculative", "schedule"), [dict(r) for r in tokens["schedule"]]
    elif "schedule" in mapping(before.get("speculative")):
        yield (*top, "speculative", "schedule"), None
    scaling = mapping(values.get("autoscaling")) | mapping(own.get("autoscaling"))
    if scaling.get("kind") in ("keda", "hpa") and not scaling.get("maxConcurrencyPerReplica"):
        seconds = mapping(scaling.get("timePerOutputToken")).get("seconds")
        yield (*top, "autoscaling", "maxConcurrencyPerReplica"), replica_load(doc, seconds and float(seconds) * 1e3)


def _said(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(f"{r['from']} to {r['to']}: {r['tokens']}" for r in value)
    return str(value)


def gains(doc: dict[str, Any]) -> bool:
    static = {r["batch"]: r["tpot_ms"] for r in doc["curve"] if r["arm"] == "static"}
    return any(r["arm"] == "schedule" and r["tpot_ms"] < 0.98 * static[r["batch"]] for r in doc["curve"])


def replica_load(doc: dict[str, Any], most_ms: float | None = None) -> int:
    """Requests at once that one replica holds: its KV cache has room for them, speculation still pays, and the slowest
    hundredth of them keep `most_ms` an output token where that is given."""
    most = int(doc["requests_at_once"])
    if doc["crossover_batch"]:
        most = min(most, doc["crossover_batch"] - 1)
    if most_ms:
        arm = "schedule" if gains(doc) else "static"
        rows = [(r["batch"], r["tpot_p99_ms"]) for r in doc["curve"] if r["arm"] == arm]
        most = min(most, int(_batch_at(rows, most_ms)))
    return max(1, most)


def _batch_at(rows: Sequence[tuple[int, float]], ms: float) -> float:
    """Where the curve reaches that time, straight between its points."""
    if rows[-1][1] <= ms:
        return rows[-1][0]
    kept = rows[0]
    for left, right in itertools.pairwise(rows):
        if left[1] <= ms < right[1]:
            return left[0] + (ms - left[1]) / (right[1] - left[1]) * (right[0] - left[0])
    return kept[0]
