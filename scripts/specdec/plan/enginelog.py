"""What an engine's own log says about its KV cache, and what two logs at different lengths say together.

One log gives no rate: "GPU KV cache size" is concurrency x max_model_len, and windows, states and padding cost a
sequence the same at any length. Bytes of a sequence = each x tokens + fixed; two values of max_model_len give both.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from specdec.errors import SpecdecError
from specdec.plan import kvcache
from specdec.plan.memory import Memory
from specdec.plan.setup import Setup
from specdec.plan.weights import GIB

AVAILABLE = re.compile(r"(?:Available KV cache memory:|reserved for KV Cache is) *(-?[\d.]+) *GiB")
CONCURRENCY = re.compile(r"Maximum concurrency for ([\d,]+) tokens per request: ([\d.]+)x")


@dataclass(frozen=True)
class CacheLog:
    """One engine's start: GiB of KV cache on its least rank, and sequences of `length` tokens that it holds."""

    gib: float
    length: int
    sequences: float

    @property
    def sequence_bytes(self) -> float:
        return self.gib * GIB / self.sequences


def read(file: Path) -> CacheLog:
    """Raises SpecdecError where the log has not both lines. With several ranks the least counts."""
    try:
        text = file.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise SpecdecError(f"not readable: {error}", code="SD332", file=str(file), path="--engine-log") from error
    gib = [float(value) for value in AVAILABLE.findall(text)]
    found = CONCURRENCY.findall(text)
    if not gib or not found or min(gib) <= 0 or float(found[-1][1]) <= 0:
        raise SpecdecError(
            "no KV cache in this log",
            code="SD332",
            file=str(file),
            path="--engine-log",
            fix='a log of an engine that started, with "Available KV cache memory" and "Maximum concurrency for"',
        )
    length, sequences = found[-1]
    return CacheLog(min(gib), int(length.replace(",", "")), float(sequences))


def fit(one: CacheLog, other: CacheLog) -> tuple[float, float]:
    """(bytes a token, bytes a sequence at any length). Raises SpecdecError on the same length twice."""
    if one.length == other.length:
        raise SpecdecError(
            f"both logs are of max_model_len {one.length}",
            code="SD333",
            path="--engine-log",
            fix="two starts with different --max-model-len",
        )
    each = (one.sequence_bytes - other.sequence_bytes) / (one.length - other.length)
    return each, one.sequence_bytes - each * one.length


def document(setup: Setup, plan: Memory, logs: list[CacheLog]) -> dict[str, Any]:
    """What was measured beside what was computed, for the plan's JSON."""
    planned = plan.ranks[plan.least].kv_cache
    out: dict[str, Any] = {
        "kv_cache_gib": {"measured": logs[0].gib, "computed": round(planned, 2)},
        "sequences": [
            {
                "max_model_len": log.length,
                "measured": log.sequences,
                "computed": round(log.gib * GIB / kvcache.sequence_bytes(setup, plan.least, length=log.length), 2),
            }
            for log in logs
        ],
    }
    if len(logs) > 1:
        each, fixed = fit(logs[0], logs[1])
        out |= {"kv_bytes_per_token": round(each), "kv_bytes_per_sequence": round(fixed)}
    return out
