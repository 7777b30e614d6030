"""Acceptance and time from what a person knows: positions, a mean length, one measured speed-up, or a benchmark's
result."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from specdec.errors import SpecdecError
from specdec.plan import acceptance as acc
from specdec.plan.acceptance import Acceptance
from specdec.plan.speed import Engine, length_from_speedup
from specdec.plan.tasks import assumed


def acceptance_of(
    engine: Engine, k: int, positions: str | None, mean_length: float | None, measured: str | None, task: str = "chat"
) -> Acceptance:
    """Acceptance from the one way that was given; an assumption by method where none was. Raises SpecdecError on two
    ways."""
    given = [
        name
        for name, value in (("--acceptance", positions), ("--mean-length", mean_length), ("--measured", measured))
        if value is not None
    ]
    if len(given) > 1:
        raise SpecdecError(f"{' and '.join(given)} say the same thing twice", code="usage", fix="give one of them")
    if positions is not None:
        return acc.parse(positions)
    if mean_length is not None:
        return Acceptance.of_mean_length(mean_length, k, "computed from the mean length")
    if measured is not None:
        batch, speedup = pair(measured)
        return Acceptance.of_mean_length(
            length_from_speedup(engine, batch, speedup, k), k, f"computed from {speedup} measured at batch {batch:g}"
        )
    method = engine.setup.speculation.method if engine.setup.speculation else "draft_model"
    return assumed(method, task)


def pair(text: str) -> tuple[float, float]:
    left, _, right = text.partition("=")
    try:
        batch, speedup = float(left), float(right)
    except ValueError as error:
        raise SpecdecError(f"--measured {text!r}", code="usage", fix="BATCH=SPEEDUP, for example 1=1.73") from error
    if batch < 1 or speedup <= 0:
        raise SpecdecError(
            f"--measured {text!r}", code="bad-number", path="--measured", fix="a batch of 1 or more, a speed-up above 0"
        )
    return batch, speedup


def numbers(text: str) -> list[int]:
    """ "1,16,64" as batch sizes. Raises SpecdecError for anything below 1."""
    try:
        values = [int(part) for part in text.split(",") if part.strip()]
    except ValueError as error:
        raise SpecdecError(
            f"--batch {text!r}", code="usage", fix="whole numbers with commas between: 1,16,64"
        ) from error
    if not values or min(values) < 1:
        raise SpecdecError(f"batch {min(values, default=0)}", code="bad-number", path="--batch", fix="1 or more")
    return values


def positive(value: int, name: str) -> None:
    if value < 1:
        raise SpecdecError(f"{name} {value}", code="bad-number", path=name, fix="1 or more")


def above_zero(value: float | None, name: str) -> None:
    if value is not None and not 0 < value < math.inf:
        raise SpecdecError(f"{name} {value:g}", code="bad-number", path=name, fix="above 0")


def from_benchmark(file: Path) -> tuple[Acceptance, list[tuple[int, int, float]]]:
    """A benchmark's JSON result: acceptance by position of its speculative arm, and (batch, K, ms a token) of every
    arm."""
    try:
        document: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise SpecdecError(f"not a benchmark result: {error}", code="bad-benchmark", file=str(file)) from error
    arms = document.get("arms") if isinstance(document, dict) else None
    if not isinstance(arms, list) or not arms:
        raise SpecdecError("a benchmark result has arms", code="bad-benchmark", file=str(file), path="arms")
    times: list[tuple[int, int, float]] = []
    positions: list[float] = []
    for index, arm in enumerate(arms):
        try:
            k = int(arm.get("k") or arm.get("num_speculative_tokens") or 0)
            if (ms := arm.get("tpot_ms") or arm.get("median_tpot_ms")) is not None:
                times.append((int(arm.get("concurrency") or arm.get("batch") or 1), k, float(ms)))
            if stated := arm.get("acceptance_by_position"):
                positions = [float(p) for p in stated] if isinstance(stated, list) else [float(stated)]
            good = k >= 0 and all(batch >= 1 and 0 < ms < math.inf for batch, _, ms in times)
        except (AttributeError, TypeError, ValueError):
            good = False
        if not good:
            raise SpecdecError(
                f"not a measured arm: {json.dumps(arm)[:120]}",
                code="bad-benchmark",
                file=str(file),
                path=f"arms[{index}]",
                fix="k, concurrency and tpot_ms as numbers above zero, acceptance_by_position as a list of numbers",
            )
    if not positions:
        raise SpecdecError("no arm states acceptance by position", code="bad-benchmark", file=str(file), path="arms")
    return Acceptance(tuple(positions), f"measured: {file.name}"), times
