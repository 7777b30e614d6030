"""Combinations that hold every allowed pair of choices, far fewer than all combinations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations, product
from typing import Any

Row = dict[str, Any]


def covering(choices: Mapping[str, Sequence[Any]], allowed: Callable[[Row], bool]) -> list[Row]:
    """Rows that together hold every pair of choices that an allowed row has; greedy, and the same every time."""
    names: dict[tuple[str, str, str, str], int] = {}
    rows: list[Row] = []
    held: list[int] = []
    for values in product(*choices.values()):
        row = dict(zip(choices, values, strict=True))
        if allowed(row):
            pairs = [(a, repr(row[a]), b, repr(row[b])) for a, b in combinations(choices, 2)]
            rows.append(row)
            held.append(sum(1 << names.setdefault(pair, len(names)) for pair in pairs))
    left = (1 << len(names)) - 1
    chosen: list[Row] = []
    while left:
        best = max(range(len(rows)), key=lambda i: (held[i] & left).bit_count())
        chosen.append(rows[best])
        left &= ~held[best]
    return chosen
