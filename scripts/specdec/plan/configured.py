"""What the K that is configured gives, beside the K that the planner would choose."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from specdec.plan import choose, serving
from specdec.plan.acceptance import Acceptance
from specdec.plan.choose import Choice, Range
from specdec.plan.speed import Engine

# Closer than this two times are one: less than the model's own error.
SAME = 0.005


def document(
    engine: Engine, accepted: Acceptance, choice: Choice, most: int, batches: Sequence[int]
) -> dict[str, Any] | None:
    """The configured K or schedule for each of `batches` (requests at once), and against the recommended K at the
    load of the plan.

    ms: decode time / tokens. difference: configured / recommended - 1, above zero where the configured one is slower.
    """
    spec = engine.setup.speculation
    if spec is None:
        return None
    schedule = tuple(Range(*row) for row in spec.schedule)

    def ms(batch: int) -> tuple[float, int]:
        if schedule:
            return choose.schedule_ms(engine, accepted, batch, schedule)
        return engine.speculative_ms(batch, accepted, spec.k), spec.k

    rows = []
    for batch in batches:
        running = max(1, min(batch, most))
        time, k = ms(running)
        point = serving.point(engine, accepted, batch, running, k, time, "configured", 0.0)
        rows.append(
            {
                "batch": batch,
                "k": k,
                "tpot_ms": round(time, 3),
                "speedup": round(engine.baseline_ms(running) / time, 3),
                "tokens_per_second": round(point.tokens_per_second, 1),
            }
        )
    here, k = ms(choice.batch)
    best = choose.time_ms(engine, accepted, choice.batch, choice.static)
    return {
        "num_speculative_tokens": spec.k,
        "schedule": [{"from": r.first, "to": r.last, "tokens": r.tokens} for r in schedule],
        "speed": rows,
        "tpot_ms": round(here, 3),
        "recommended_tpot_ms": round(best, 3),
        "difference": round(here / best - 1, 4),
        "text": text(f"schedule (K={k} here)" if schedule else f"K={k}", here, choice, best, k),
    }


def text(name: str, here: float, choice: Choice, best: float, k: int) -> str:
    at = f"at {choice.batch} requests"
    if k == choice.static:
        return f"configured {name}: the recommended K {at}, {here:.1f} ms a token"
    wanted = f"K={choice.static}" if choice.static else "no speculation"
    gap = here / best - 1
    if abs(gap) < SAME:
        return f"configured {name}: {here:.1f} ms a token {at}, as good as the recommended {wanted}"
    how = "slower" if gap > 0 else "faster"
    found = f"configured {name}: {here:.1f} ms a token {at}"
    return f"{found}, {abs(gap):.1%} {how} than the recommended {wanted} ({best:.1f})"
