"""Single published points that nothing was fitted to: time per token and speed-up from the mean length that they state.

python benchmarks/points.py [POINTS.csv]
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path

from specdec import facts
from specdec.plan import catalogue
from specdec.plan.acceptance import Acceptance
from specdec.plan.setup import Accelerator, build
from specdec.plan.speculation import make_speculation
from specdec.plan.speed import engine

DATA = Path(__file__).parent / "data" / "speculation_public.csv"


def compared(row: dict[str, str]) -> str:
    """One row beside the planner's figures."""
    target, k, batch = catalogue.load(row["target"]), int(row["K"]), int(row["batch"])
    spec = None
    if row["method"]:
        spec, _ = make_speculation(row["method"], target, k=k, draft_name=row["draft"] or None, usual_head=True)
    gpu = Accelerator.of(row["gpu"], facts.accelerators()[row["gpu"]])
    setup = build(target, gpu, version=row["engine"], runner="v1", tp=int(row["tp"]), speculation=spec)
    model = engine(setup)
    words = (
        f"{row['target'].rsplit('/', 1)[-1]:28} {row['method'] or '-':7} K={k} {row['gpu']} x{row['tp']} @{batch:<3}"
    )
    if row["baseline_tpot_ms"]:
        measured, planned = float(row["baseline_tpot_ms"]), model.baseline_ms(batch)
        words += f" | without: {measured:5.1f} ms, planned {planned:5.1f} ({planned / measured - 1:+.0%})"
    if row["speedup"]:
        measured = float(row["speedup"])
        planned = model.speedup(batch, Acceptance.of_mean_length(float(row["mean_length"]), k), k)
        words += f" | speed-up {measured:.2f}, planned {planned:.2f} ({planned / measured - 1:+.0%})"
    return words + f" | {row['note']}"


def main() -> None:
    with (Path(sys.argv[1]) if len(sys.argv) > 1 else DATA).open(encoding="utf-8") as stream:
        for row in csv.DictReader(stream):
            print(compared(row))


if __name__ == "__main__":
    main()
