"""Available KV memory: the planner against real engine logs, beside three rules of thumb.

    python benchmarks/memory.py [LOGS.csv]

The last lines fit the constants again without each source and report the error on what was left out.
"""

from __future__ import annotations

import random
import statistics
import sys
from dataclasses import replace
from pathlib import Path

from logs import DATA, Log, read
from specdec.plan import kvcache, memory
from specdec.plan.memory import Constants
from specdec.plan.verdict import fits
from specdec.plan.weights import GIB

FREE = {
    "sort_copies": (6.0, 12.0),
    "kernel_copies": (1.0, 5.0),
    "alone": (0.0, 0.5),
    "peer": (0.0, 0.4),
    "nvlink": (0.0, 0.8),
    "persistent": (0.0, 0.4),
    "context": (0.0, 0.04),
    "pcie": (0.0, 0.3),
    "state": (0.0, 1.5),
    "graph_each": (0.0, 0.04),
}
START = Constants(
    sort_copies=9.0, kernel_copies=3.0, alone=0.2, peer=0.2, nvlink=0.2, persistent=0.2, context=0.01, graph_each=0.01
)


def rules(log: Log) -> dict[str, float]:
    """What others take off the budget, from the planner's own weights."""
    s = log.setup
    rank = memory.plan(s).ranks[0]
    budget, weights = rank.budget, rank.target_weights + rank.draft_weights
    classes = 5.5 if s.target.experts else 4.8 if s.tp == 1 else 5.6
    return {
        "weights only": budget - weights,
        "constant a class": budget - weights - classes,
        "2.3 GiB + 5 %": budget - weights - 2.3 - 0.05 * weights,
    }


def of_line(log: Log, plan: memory.Memory) -> memory.Rank:
    """The rank whose line the log shows: that of the stated activation, else the least."""
    stated = log.number("activation_gib")
    if stated is None:
        return plan.ranks[plan.least]
    return min(plan.ranks, key=lambda r: abs(r.activation - stated))


def error(log: Log) -> float | None:
    """Planned less measured GiB of available KV memory."""
    measured = log.number("available_kv_gib")
    return None if measured is None else of_line(log, memory.plan(log.setup)).kv_cache - measured


def mean_error(logs: list[Log]) -> float:
    return statistics.mean(abs(e) for log in logs if (e := error(log)) is not None)


def fit(logs: list[Log], rounds: int = 600) -> Constants:
    """The free constants by a random walk that starts away from the shipped ones."""
    draw = random.Random(0)
    best = memory.CONSTANTS = START
    score = mean_error(logs)
    for _ in range(rounds):
        name = draw.choice(list(FREE))
        low, high = FREE[name]
        value = min(high, max(low, getattr(best, name) + draw.gauss(0, (high - low) * 0.1)))
        memory.CONSTANTS = replace(best, **{name: value})
        if (tried := mean_error(logs)) < score:
            score, best = tried, memory.CONSTANTS
    memory.CONSTANTS = best
    return best


def capacity_error(log: Log) -> float | None:
    """Planned over logged sequences (or tokens) in the cache that the log itself states, less 1.

    Sequences first: older engines divide a hybrid model's tokens by its groups ("GPU KV cache size").
    """
    s, gib = log.setup, log.number("available_kv_gib")
    stated = log.number("max_concurrency_x") or (log.number("kv_tokens") or 0) / (s.max_model_len or 1)
    if not gib or not stated or gib <= 0:
        return None
    return gib * GIB / kvcache.sequence_bytes(s) / stated - 1


def line(log: Log) -> str:
    s, plan = log.setup, memory.plan(log.setup)
    rank = of_line(log, plan)

    def shown(key: str) -> str:
        value = log.number(key)
        return "     -" if value is None else f"{value:6.2f}"

    text = f"{log.row['row']:>4} {s.target.name[-32:]:32} {s.version:8} {s.runner:2} {s.tp:2}"
    for key, value in (
        ("weights_gib", rank.target_weights + rank.draft_weights),
        ("activation_gib", rank.activation),
        ("non_torch_gib", rank.non_torch),
        ("available_kv_gib", rank.kv_cache),
    ):
        text += f" |{shown(key)} {value:6.2f}"
    if (off := error(log)) is not None:
        text += f" {off:+6.2f} | {rank.band[0]:5.1f} to {rank.band[1]:5.1f}"
    expected = log.number("bytes_per_token_expected")
    if expected:
        text += f" | B/token {kvcache.bytes_per_token(s) / expected - 1:+.1%}"
    if (off := capacity_error(log)) is not None:
        text += f" | capacity {off:+.1%}"
    failed = log.row["outcome"].startswith("fail")
    if fits(plan, s) == failed:
        text += f" | WRONG VERDICT: {'refused' if not failed else 'fits'}, was {log.row['outcome']}"
    return text + ("" if log.stated else " | not all stated")


def report(label: str, pairs: list[tuple[float, float]]) -> None:
    absolute, relative = [abs(e) for e, _ in pairs], [abs(e / m) for e, m in pairs if m > 0]
    print(
        f"{label}: n={len(pairs)} mean {statistics.mean(absolute):.2f} GiB, worst {max(absolute):.2f} GiB, "
        f"median {statistics.median(relative):.1%}"
    )


def main() -> None:
    logs = read(Path(sys.argv[1]) if len(sys.argv) > 1 else DATA / "memory_logs.csv")
    print(
        "each pair of columns: measured, planned GiB of weights | activation | non-torch | available KV, error | band"
    )
    for log in logs:
        print(line(log))
    known = [(log, e, m) for log in logs if (e := error(log)) is not None and (m := log.number("available_kv_gib"))]
    for stated, label in ((True, "rows that state version, utilisation and GPU total"), (False, "the other rows")):
        if pairs := [(e, m) for log, e, m in known if log.stated is stated]:
            report(label, pairs)
    for name in rules(logs[0]):
        report(f"rule of thumb: {name}", [(rules(log)[name] - m, m) for log, _, m in known])
    bands = [(of_line(log, memory.plan(log.setup)).band, m) for log, _, m in known]
    inside = sum(low <= m <= high for (low, high), m in bands)
    width = statistics.median(high - low for (low, high), _ in bands)
    print(f"band: {inside} of {len(bands)} rows inside, median width {width:.2f} GiB")
    shipped, held = memory.CONSTANTS, []
    for source in sorted({log.row["source_url"] for log in logs}):
        # Rows that leave the version or the GPU's memory open would teach the constants what they do not know.
        fit([log for log, *_ in known if log.row["source_url"] != source and log.stated])
        held += [
            (e, m, log) for log, _, m in known if log.row["source_url"] == source and (e := error(log)) is not None
        ]
    memory.CONSTANTS = shipped
    report("leave one source out, stated rows", [(e, m) for e, m, log in held if log.stated])
    report("leave one source out, all rows", [(e, m) for e, m, _ in held])


if __name__ == "__main__":
    main()
