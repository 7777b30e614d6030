"""Medians over repeats, and bootstrap intervals that say whether a difference is one."""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Sequence

RESAMPLES = 10_000
LEVEL = 0.95
LEAST_REPEATS = 5

Interval = tuple[float, float]


def percentile(values: Sequence[float], share: float) -> float:
    """The percentile at `share` (0 to 1), linear between neighbours, as NumPy and vLLM take it."""
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


def median_interval(repeats: Sequence[float], seed: int = 0) -> Interval:
    """The 95 % percentile bootstrap interval of the median over repeats (Efron 1979)."""
    draw = random.Random(seed)
    return _interval([statistics.median(draw.choices(repeats, k=len(repeats))) for _ in range(RESAMPLES)])


def ratio_interval(baseline: Sequence[float], other: Sequence[float], seed: int = 0) -> Interval:
    """The 95 % bootstrap interval of median(baseline) ÷ median(other).

    Both hold one value a repeat. Arms take turns within a repeat, so that repeats are drawn for both together: what
    slowed the machine for a while slowed both. Raises ValueError where the numbers of repeats differ.
    """
    if len(baseline) != len(other) or not baseline:
        raise ValueError(f"{len(baseline)} and {len(other)} repeats do not pair")
    draw = random.Random(seed)
    ratios = []
    for _ in range(RESAMPLES):
        chosen = draw.choices(range(len(baseline)), k=len(baseline))
        ratios.append(
            statistics.median(baseline[index] for index in chosen) / statistics.median(other[index] for index in chosen)
        )
    return _interval(ratios)


def is_real(interval: Interval, repeats: int) -> bool:
    """Whether a ratio differs from 1: the interval leaves it out, and there are repeats enough for it to mean that.

    Of 2 repeats every second interval leaves out 1 where there is no difference, of 3 every fourth, of 4 every
    eighth; of 5 it is one in twenty, as an interval of 95 % should.
    """
    return repeats >= LEAST_REPEATS and not interval[0] <= 1 <= interval[1]


def _interval(values: Sequence[float]) -> Interval:
    tail = (1 - LEVEL) / 2
    return percentile(values, tail), percentile(values, 1 - tail)
