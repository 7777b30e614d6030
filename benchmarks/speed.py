"""Speed-up over batch sizes, predicted from the batch-1 point alone, against published sweeps.

    python benchmarks/speed.py [MEASUREMENTS.csv]

Prints the error with one load for all data sets and with each data set's own lengths, and the error on each data set
with the constants fitted to the others.
"""

from __future__ import annotations

import csv
import random
import statistics
import sys
from dataclasses import dataclass, replace
from pathlib import Path

from specdec import facts
from specdec.plan import catalogue, speed
from specdec.plan.setup import Accelerator, build
from specdec.plan.speculation import make_speculation
from specdec.plan.speed import Constants, Engine, Load, engine, length_from_speedup

DATA = Path(__file__).parent / "data" / "speculation.csv"
DRAFTS = {
    ("Llama-3.1-8B-Instruct", "EAGLE"): "yuhuili/EAGLE-LLaMA3.1-Instruct-8B",
    ("Llama-3.1-8B-Instruct", "EAGLE-3"): "yuhuili/EAGLE3-LLaMA3.1-Instruct-8B",
}
METHODS = {"ngram": "ngram", "EAGLE": "eagle", "EAGLE-3": "eagle3", "draft-model": "draft_model"}
# Tokens in and out of one request, typical of the data set.
LOADS = {"GSM8K": Load(100, 250), "CNN/DM": Load(1000, 128), "ShareGPT": Load(300, 300)}
FREE = {"arithmetic": (0.5, 0.95), "overlap": (1.0, 3.0), "draft_host_ms": (0.05, 0.8), "lookup_first": (0.2, 0.9)}


@dataclass(frozen=True)
class Sweep:
    target: str
    method: str
    dataset: str
    k: int
    points: dict[int, float]


def sweeps(file: Path) -> list[Sweep]:
    found: dict[tuple[str, str, str, int], dict[int, float]] = {}
    with file.open(encoding="utf-8") as stream:
        for row in csv.DictReader(stream):
            if (
                row["load_kind"] == "batch"
                and row["speedup"]
                and row["K"].isdigit()
                and row["target"].startswith("Llama-3.1-8B")
            ):
                key = (row["target"], row["method"], row["dataset"], int(row["K"]))
                found.setdefault(key, {})[int(row["batch_or_concurrency"])] = float(row["speedup"])
    return [Sweep(*key, points) for key, points in found.items() if 1 in points and len(points) > 1]


def model(s: Sweep, load: Load) -> Engine:
    target = catalogue.load("meta-llama/" + s.target)
    draft = DRAFTS.get((s.target, s.method))
    spec, _ = make_speculation(METHODS[s.method], target, k=s.k, draft_name=draft)
    gpu = Accelerator.of("h100-80gb", facts.accelerators()["h100-80gb"])
    return engine(build(target, gpu, version="0.11.0", runner="v1", speculation=spec), load)


def predict(s: Sweep, load: Load) -> dict[int, float]:
    from specdec.plan.acceptance import Acceptance

    m = model(s, load)
    length = length_from_speedup(m, 1, s.points[1], s.k)
    acceptance = Acceptance.of_mean_length(length, s.k)
    return {b: m.speedup(b, acceptance, s.k) for b in s.points if b > 1}


def errors(all_sweeps: list[Sweep], loads: dict[str, Load]) -> list[tuple[Sweep, int, float, float]]:
    return [(s, b, p, s.points[b]) for s in all_sweeps for b, p in predict(s, loads.get(s.dataset, Load())).items()]


def mean_error(all_sweeps: list[Sweep]) -> float:
    both = errors(all_sweeps, {}) + errors(all_sweeps, LOADS)
    return statistics.mean(abs(p / t - 1) for _, _, p, t in both)


def fit(all_sweeps: list[Sweep], rounds: int, start: Constants) -> Constants:
    """A random walk over the few free constants."""
    draw = random.Random(0)
    best, speed.CONSTANTS = start, start
    score = mean_error(all_sweeps)
    for _ in range(rounds):
        name = draw.choice(list(FREE))
        low, high = FREE[name]
        value = min(high, max(low, getattr(best, name) + draw.gauss(0, (high - low) * 0.1)))
        speed.CONSTANTS = replace(best, **{name: value})
        if (tried := mean_error(all_sweeps)) < score:
            score, best = tried, speed.CONSTANTS
    speed.CONSTANTS = best
    return best


def summary(label: str, rows: list[tuple[Sweep, int, float, float]]) -> None:
    relative = [abs(p / t - 1) for _, _, p, t in rows]
    wrong = [f"{s.method}/{s.dataset}@{b}" for s, b, p, t in rows if abs(t - 1) > 0.05 and (p > 1) != (t > 1)]
    print(
        f"{label}: n={len(rows)} mean {statistics.mean(relative):.1%}, worst {max(relative):.1%}, wrong sign:"
        f" {wrong or 'none'}"
    )


def main() -> None:
    all_sweeps = sweeps(next((Path(a) for a in sys.argv[1:] if not a.startswith("-")), DATA))
    shipped = speed.CONSTANTS
    for s, b, p, t in errors(all_sweeps, {}):
        print(f"{s.method:8} {s.dataset:9} batch {b:4}: measured {t:.3f} planned {p:.3f} {p / t - 1:+.1%}")
    summary("512 in, 256 out for all", errors(all_sweeps, {}))
    summary("each data set's lengths", errors(all_sweeps, LOADS))
    if "--fit" in sys.argv:
        print(fit(all_sweeps, 300, shipped))
    held: list[tuple[Sweep, int, float, float]] = []
    held_own: list[tuple[Sweep, int, float, float]] = []
    for dataset in sorted({s.dataset for s in all_sweeps}):
        fit([s for s in all_sweeps if s.dataset != dataset], 60, shipped)
        rest = [s for s in all_sweeps if s.dataset == dataset]
        held += errors(rest, {})
        held_own += errors(rest, LOADS)
    speed.CONSTANTS = shipped
    summary("leave one data set out, 512 in, 256 out", held)
    summary("leave one data set out, own lengths", held_own)


if __name__ == "__main__":
    main()
