"""A whole engine under load: what each user sees and what it yields in all, against requests at once."""

from __future__ import annotations

from dataclasses import dataclass

from specdec.plan import choose
from specdec.plan.acceptance import Acceptance
from specdec.plan.choose import Range
from specdec.plan.memory import Memory
from specdec.plan.speed import Engine


@dataclass(frozen=True)
class Point:
    """One arm at one number of requests at once.

    tpot_ms          decode time / tokens, without waiting for other requests' prompts
    tpot_p99_ms      its 99th percentile over requests, other prompts counted
    tokens_per_second  output tokens of the whole engine in a closed loop, prompts and waiting counted
    waiting          requests that do not fit in the KV cache at once
    """

    batch: int
    arm: str
    k: int
    tpot_ms: float
    tpot_p99_ms: float
    ttft_ms: float
    user_tokens_per_second: float
    tokens_per_second: float
    waiting: int
    speedup: float = 1.0


def capacity(engine: Engine, memory: Memory) -> int:
    """Requests of this load that run at once: bounded by max_num_seqs and by the KV cache at half the output, both of
    each data-parallel replica."""
    setup = engine.setup
    tokens = min(engine.load.context, setup.max_model_len)
    in_cache = int(memory.kv_cache_tokens / tokens) if tokens else setup.max_num_seqs
    return max(1, min(setup.max_num_seqs, in_cache)) * setup.dp if memory.kv_cache_tokens > 0 else 0


def points(
    engine: Engine,
    acceptance: Acceptance | None,
    batches: list[int],
    *,
    most: int,
    static: int,
    schedule: tuple[Range, ...],
    prefix_hits: float = 0.0,
) -> list[Point]:
    """Three arms at each number of requests; `most` run at once, the rest waits."""
    out: list[Point] = []
    for batch in batches:
        running = max(1, min(batch, most))
        base = point(engine, None, batch, running, 0, engine.baseline_ms(running), "baseline", prefix_hits)
        out.append(base)
        if acceptance is None:
            continue
        if static:
            out.append(
                compared(
                    base,
                    point(
                        engine,
                        acceptance,
                        batch,
                        running,
                        static,
                        engine.speculative_ms(running, acceptance, static),
                        "static",
                        prefix_hits,
                    ),
                )
            )
        if schedule:
            ms, k = choose.schedule_ms(engine, acceptance, running, schedule)
            out.append(compared(base, point(engine, acceptance, batch, running, k, ms, "schedule", prefix_hits)))
    return out


def compared(base: Point, other: Point) -> Point:
    return Point(**{**other.__dict__, "speedup": base.tpot_ms / other.tpot_ms})


def point(
    engine: Engine,
    acceptance: Acceptance | None,
    batch: int,
    running: int,
    k: int,
    ms: float,
    arm: str,
    prefix_hits: float,
) -> Point:
    load = engine.load
    prompt = load.input_len * (1.0 - prefix_hits)
    # The others' prompts run between this request's steps: in a closed loop, one each for every request that ends.
    prefill = engine.prefill_ms(prompt)
    own = max(0.0, prefill - engine.prefill_ms(1))
    shared = (engine.each(running) - 1) * own / load.output_len
    tail = choose.spread(acceptance, k, load.output_len) if acceptance else 1.0
    seconds = (prefill + load.output_len * (ms + shared)) / 1e3
    total = running * load.output_len / seconds
    wait = max(0, batch - running)
    ttft = (
        prefill + ms * (acceptance.mean_length(k) if acceptance and k else 1.0) / 2 + (wait / running) * seconds * 1e3
    )
    return Point(
        batch,
        arm,
        k,
        ms,
        (ms + shared) * tail * (1.05 if acceptance is None else 1.0),
        ttft,
        1e3 / (ms + shared),
        total,
        wait,
    )
