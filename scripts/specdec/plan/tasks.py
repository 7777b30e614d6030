"""Acceptance where nothing has been measured: assumptions, each with where it is from. A measurement always replaces
them."""

from __future__ import annotations

from specdec.errors import unknown
from specdec.plan.acceptance import Acceptance

# (K, accepted / drafted) of a draft model by task; an article's tuning matrix, unverified.
DRAFT_MODEL = {"code": (4, 0.78), "chat": (3, 0.62), "translation": (5, 0.81), "json": (5, 0.89)}
# Mean length at K of methods in published sweeps (benchmarks/data/speculation.csv): median over data sets.
METHODS = {
    "eagle": (3, 2.32),
    "eagle3": (3, 2.40),
    "mtp": (2, 2.43),
    "ngram": (3, 1.27),
    "ngram_gpu": (3, 1.27),
    "suffix": (3, 1.40),
    "medusa": (4, 2.30),
    "mlp_speculator": (3, 2.00),
    "dflash": (7, 3.30),
    "dspark": (3, 2.30),
}


def assumed(method: str, task: str = "chat") -> Acceptance:
    """Raises SpecdecError for an unknown task."""
    if task not in DRAFT_MODEL:
        raise unknown("task", task, DRAFT_MODEL, path="speculative.task")
    if method in METHODS:
        k, length = METHODS[method]
        return Acceptance.of_mean_length(
            length, k, f"assumed: mean length {length} at K={k}, the median of published sweeps of {method}"
        )
    k, rate = DRAFT_MODEL[task]
    return Acceptance.of_rate(
        rate,
        k,
        f"assumed: {rate:.0%} of {k} drafted tokens accepted for {task} (an article's tuning matrix, unverified)",
    )
