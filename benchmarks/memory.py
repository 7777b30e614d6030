"""Available KV memory: the planner against real engine logs, beside three rules of thumb.

python benchmarks/memory.py [LOGS.csv]
"""

from __future__ import annotations

import statistics
import sys
from pathlib import Path

from logs import DATA, Log, read
from specdec.plan import kvcache, memory


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


def main() -> None:
    logs = read(Path(sys.argv[1]) if len(sys.argv) > 1 else DATA / "memory_logs.csv")
    print(
        f"{'row':>4} {'model':34} {'version':8} {'run':3} {'tp':>2} | weights meas/plan | act meas/plan | nt meas/plan | kv measured planned   error | band        | stated"
    )
    errors: dict[bool, list[tuple[float, float]]] = {True: [], False: []}
    others: dict[str, list[tuple[float, float]]] = {}
    inside, widths = 0, []
    for log in logs:
        s = log.setup
        plan = memory.plan(s)
        rank = of_line(log, plan)
        measured = log.number("available_kv_gib")
        show = lambda key: f"{log.number(key):6.2f}" if log.number(key) is not None else "     -"  # noqa: E731
        line = f"{log.row['row']:>4} {s.target.name[-34:]:34} {s.version:8} {s.runner:3} {s.tp:2} | {show('weights_gib')} {rank.target_weights + rank.draft_weights:6.2f} | {show('activation_gib')} {rank.activation:6.2f} | {show('non_torch_gib')} {rank.non_torch:6.2f} |"
        if measured is not None:
            error = rank.kv_cache - measured
            line += f" {measured:7.2f} {rank.kv_cache:7.2f} {error:+7.2f} | {rank.band[0]:5.1f} {rank.band[1]:5.1f} | {log.stated}"
            if measured > 0:
                errors[log.stated].append((abs(error), abs(error) / measured))
                for name, value in rules(log).items():
                    others.setdefault(name, []).append((abs(value - measured), abs(value - measured) / measured))
                inside += rank.band[0] <= measured <= rank.band[1]
                widths.append(rank.band[1] - rank.band[0])
        expected = log.number("bytes_per_token_expected")
        if expected and not s.speculation:
            line += f" | B/token {kvcache.bytes_per_token(s):.0f} ({kvcache.bytes_per_token(s) / expected - 1:+.1%})"
        fits = plan.kv_cache_tokens >= s.max_model_len
        failed = log.row["outcome"].startswith("fail")
        line += "" if fits != failed else f"   WRONG VERDICT: {'fits' if fits else 'refused'}, was {log.row['outcome']}"
        print(line)
    for stated, label in ((True, "rows that state version, utilisation and GPU total"), (False, "the other rows")):
        if errors[stated]:
            report(label, errors[stated])
    for name, pairs in others.items():
        report(f"rule of thumb: {name}", pairs)
    print(f"band: {inside}/{len(widths)} rows inside, median width {statistics.median(widths):.2f} GiB")


def report(label: str, pairs: list[tuple[float, float]]) -> None:
    absolute, relative = [p[0] for p in pairs], [p[1] for p in pairs]
    print(
        f"{label}: n={len(pairs)} mean {statistics.mean(absolute):.2f} GiB, worst {max(absolute):.2f} GiB, median {statistics.median(relative):.1%}"
    )


if __name__ == "__main__":
    main()
