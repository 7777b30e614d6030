"""Values that the chart refuses for the target version, taken out one by one until what is left renders."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from specdec import helm
from specdec.errors import SpecdecError

Values = dict[str, Any]
Note = dict[str, str]

# What the version has not, does not heed, or takes only as its own default: without the value the engine does that.
DROPPABLE = {
    "SD154": "argument-missing-in-version",
    "SD156": "extra-argument-typed",
    "SD157": "runner-unable",
    "SD164": "choice-missing-in-version",
    "SD165": "value-without-effect",
    "SD166": "lora-value-unused",
    "SD168": "extra-variable-typed",
    "SD171": "lora-unpinned",
    "SD254": "value-of-another-method",
    "SD258": "draft-quantization-unused",
    "SD259": "draft-length-above-target",
    "SD260": "schedule-ranges",
    "SD261": "schedule-above-tokens",
    "SD262": "schedule-with-data-parallel",
    "SD263": "draft-tensor-parallel",
    "SD264": "schedule-not-kept",
    "SD266": "sampling-combination",
    "SD269": "value-of-another-runner",
    "SD270": "dspark-top-k-sharded",
    "SD351": "two-cache-sizes",
    "SD353": "shm-above-limit",
    "SD354": "cpu-memory-limit",
    "SD753": "secret-in-clear",
    "SD754": "snapshot-path-unknown",
}
# What decides which weights run, on how many GPUs, and how many tokens are drafted: never taken out alone.
KEPT = (
    "engine.version",
    "engine.model",
    "engine.quantization",
    "engine.replicas",
    "engine.tensorParallelSize",
    "engine.pipelineParallelSize",
    "engine.dataParallelSize",
    "speculative.enabled",
    "speculative.method",
    "speculative.model",
    "speculative.numTokens",
    "speculative.quantization",
    "lora.enabled",
)
# What the chart refuses of an engine because it speculates, whatever value it names.
OF_SPECULATION = {
    "SD155": "method-missing-in-version",
    "SD157": "runner-unable",
    "SD160": "speculation-with-pipeline",
    "SD163": "lora-with-speculation",
    "SD257": "suffix-needs-arctic",
}
# Lists of which one entry goes, and those that go as a whole.
ENTRIES = ("engine.extraEnv", "lora.modules")
# Each rendering takes about a second, and no deployment that runs has so many values that its version lacks.
MOST = 20


def fit(values: Values, origin: Mapping[str, str] | None = None) -> list[Note]:
    """Takes out of `values`, in place, what the chart refuses and the engine can do without.

    Where the chart refuses what the speculation is made of, all of it goes: the engine answers the same without.
    origin: the words that a value came from, by its path. Each note has argument, why, code and value, and instead
    where the chart knows one. Raises SpecdecError with the chart's own words where it refuses anything else.
    """
    dropped: list[Note] = []
    while error := _refusal(values):
        path = _take(values, error) if len(dropped) < MOST else None
        if path is None:
            raise error
        argument = (origin or {}).get(path) or _section(path, origin or {}) or path
        note = {"argument": argument, "why": error.message, "code": error.code, "value": path}
        fix = error.fix or ""
        instead = fix if fix.startswith("leave") else f"{error.path}: {fix}"
        dropped.append(note | ({"instead": instead} if fix else {}))
    return dropped


def _refusal(values: Values) -> SpecdecError | None:
    import yaml

    with tempfile.TemporaryDirectory(prefix="specdec-migrate-") as folder:
        file = Path(folder) / "values.yaml"
        file.write_text(yaml.safe_dump(values), encoding="utf-8")
        try:
            helm.render([file])
        except SpecdecError as error:
            # The file is ours and gone when this is read.
            return SpecdecError(error.message, code=error.code, path=error.path, fix=error.fix)
    return None


def _section(path: str, origin: Mapping[str, str]) -> str | None:
    """What a whole section came from: what asked for the speculation."""
    return origin.get(path + ".method") if path.endswith("speculative") else None


def _take(values: Values, error: SpecdecError) -> str | None:
    """The path of what went; None where nothing may."""
    path = error.path or ""
    prefix = "".join(re.findall(r"^engines\.[^.]+\.", path))
    own = path.removeprefix(prefix)
    if error.code in DROPPABLE and not any(own == kept or own.startswith(kept + ".") for kept in KEPT):
        whole = prefix + _whole(own)
        if _remove(values, _keys(whole)):
            return whole
    if own.startswith("speculative.") or error.code in OF_SPECULATION:
        holder = values["engines"][prefix.split(".")[1]] if prefix else values
        if holder.get("speculative", {"enabled": False}).get("enabled", True):
            holder["speculative"] = {"enabled": False}
            return prefix + "speculative"
    return None


def _whole(path: str) -> str:
    """The entry of a list, or the list, that a path within it stands for."""
    match = re.match(r"([^\[]+)\[\d+\]", path)
    if match is None:
        return path
    return match.group(0) if match.group(1) in (*ENTRIES, "engine.extraArgs") else match.group(1)


def _keys(path: str) -> list[str]:
    return re.findall(r"[^.\[\]]+", path)


def _remove(place: Any, keys: list[str]) -> bool:
    """Whether there was a value at that path; sections that it leaves empty go with it."""
    first, *rest = keys
    if isinstance(place, list):
        return not rest and first.isdigit() and _remove_entry(place, int(first))
    if not isinstance(place, dict) or first not in place:
        return False
    taken = not rest or _remove(place[first], rest)
    if taken and (not rest or not place[first]):
        del place[first]
    return taken


def _remove_entry(entries: list[Any], position: int) -> bool:
    """A free argument goes with the words behind it."""
    if position >= len(entries):
        return False
    end = position + 1
    while isinstance(entries[position], str) and end < len(entries) and not str(entries[end]).startswith("-"):
        end += 1
    del entries[position:end]
    return True
