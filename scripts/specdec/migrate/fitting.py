"""Values that the chart refuses for the target version, taken out one by one until what is left renders."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from specdec import helm
from specdec.errors import SpecdecError

Values = dict[str, Any]
Note = dict[str, str]

# What the version has not, does not heed, or takes only as its own default: without the value the engine does that.
DROPPABLE = {
    "SD154": "argument-missing-in-version",
    "SD157": "runner-unable",
    "SD164": "choice-missing-in-version",
    "SD165": "value-without-effect",
    "SD166": "lora-value-unused",
    "SD254": "value-of-another-method",
    "SD258": "draft-quantization-unused",
    "SD259": "draft-length-above-target",
    "SD263": "draft-tensor-parallel",
    "SD266": "sampling-combination",
    "SD269": "value-of-another-runner",
}
# What decides which weights run, on how many GPUs, and how many tokens are drafted: never taken out.
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
    "speculative.schedule",
    "speculative.quantization",
    "lora.enabled",
    "lora.modules",
)
# Each rendering takes about a second, and no deployment that runs has so many values that its version lacks.
MOST = 20


def fit(values: Values) -> list[Note]:
    """Takes out of `values`, in place, what the chart refuses and the engine can do without: {argument, why, code}.

    Raises SpecdecError with the chart's own words where it refuses anything else.
    """
    dropped: list[Note] = []
    while error := _refusal(values):
        path = error.path or ""
        droppable = error.code in DROPPABLE and not _is_kept(path) and len(dropped) < MOST
        if not droppable or not _take(values, path.split(".")):
            raise error
        dropped.append({"argument": path, "why": error.message, "code": error.code})
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


def _is_kept(path: str) -> bool:
    own = ".".join(path.split(".")[2:]) if path.startswith("engines.") else path
    return any(own == kept or own.startswith(kept + ".") for kept in KEPT)


def _take(values: Values, keys: list[str]) -> bool:
    """Whether there was a value at that path; sections that it leaves empty go with it."""
    first, *rest = keys
    if first not in values:
        return False
    if not rest:
        del values[first]
        return True
    below = values[first]
    taken = isinstance(below, dict) and _take(below, rest)
    if taken and not below:
        del values[first]
    return taken
