"""How many tokens to speculate: K by marginal gain, a schedule over batch sizes, and three arms to compare.

Arms: baseline (no speculation), static (one K), schedule (K by batch size, its own overhead charged).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from specdec.plan.acceptance import Acceptance
from specdec.plan.setup import Setup
from specdec.plan.speed import Engine

MOST_TOKENS = 12
MOST_RANGES = 4
# What a schedule costs a step: fixed, and for each running sequence. V1: vllm-project/vllm issue comment of
# 2026-08-24, K=0
# in a schedule against no speculation at 2 and 189 sequences. V2 prepares its batch on the GPU; half the fixed part
# is assumed.
SCHEDULE_TAX = {"v1": (0.78, 0.084), "v2": (0.39, 0.0)}


@dataclass(frozen=True)
class Range:
    """Batch sizes `first` to `last`, both included, speculate `tokens`."""

    first: int
    last: int
    tokens: int


@dataclass(frozen=True)
class Choice:
    """static: the best K at `batch`, 0 where none pays. crossover: the batch from which that K is slower than none."""

    batch: int
    static: int
    schedule: tuple[Range, ...]
    crossover: int | None


def most_tokens(setup: Setup) -> int:
    spec = setup.speculation
    if spec is None:
        return 0
    if spec.method == "medusa" and spec.draft:
        return spec.draft.layers
    return MOST_TOKENS


def allowed(setup: Setup, k: int) -> bool:
    """Whether the engine takes that K: of prediction layers, up to their number or whole rounds of them."""
    spec = setup.speculation
    layers = spec.draft.layers if spec and spec.draft and spec.method == "mtp" else 1
    return k <= layers or k % layers == 0


def best_k(cost: Callable[[int], float], most: int, *, least: int = 0, steps: Sequence[int] | None = None) -> int:
    """The K of the lowest time per output token, of `steps` where given. Past the best one each further token costs
    more than it gives, so the search stops after two that do not help."""
    best, best_cost, worse = least, cost(least), 0
    for k in range(least + 1, most + 1) if steps is None else steps:
        value = cost(k)
        if value < best_cost:
            best, best_cost, worse = k, value, 0
        elif (worse := worse + 1) > 2:
            break
    return best


def time_ms(engine: Engine, acceptance: Acceptance, batch: float, k: int) -> float:
    return engine.baseline_ms(batch) if k == 0 else engine.speculative_ms(batch, acceptance, k)


def choose(engine: Engine, acceptance: Acceptance, *, batch: int, most_batch: int) -> Choice:
    """K for `batch` requests at once, and a schedule up to `most_batch`."""
    most = most_tokens(engine.setup)
    steps = [k for k in range(1, most + 1) if allowed(engine.setup, k)]
    static = best_k(lambda k: time_ms(engine, acceptance, batch, k), most, steps=steps)
    schedule = ranges(lambda b: best_k(lambda k: time_ms(engine, acceptance, b, k), most, steps=steps), most_batch)
    return Choice(batch, static, schedule, crossover(engine, acceptance, static or configured(engine), most_batch))


def configured(engine: Engine) -> int:
    spec = engine.setup.speculation
    return spec.k if spec else 0


def grid(most: int) -> list[int]:
    """1, 2, 3, 4, 6, 8, 12, 16, ... : two sizes an octave."""
    sizes = {1}
    value = 1
    while value <= most:
        sizes |= {value, min(most, value * 3 // 2)}
        value *= 2
    return sorted(sizes | {most})


def ranges(best: Callable[[int], int], most_batch: int) -> tuple[Range, ...]:
    """Few ranges of batch sizes with the best K of each; K never rises with the batch, which keeps the engine's graphs
    few."""
    found: list[Range] = []
    limit = None
    sizes = grid(most_batch)
    for index, size in enumerate(sizes):
        k = best(size)
        limit = k if limit is None else min(limit, k)
        last = sizes[index + 1] - 1 if index + 1 < len(sizes) else most_batch
        if found and found[-1].tokens == limit:
            found[-1] = Range(found[-1].first, last, limit)
        else:
            found.append(Range(size, last, limit))
    while len(found) > MOST_RANGES:
        # Merge the neighbours whose K differ least; the wider range keeps its K.
        at = min(
            range(len(found) - 1), key=lambda i: (found[i].tokens - found[i + 1].tokens, found[i].last / found[i].first)
        )
        left, right = found[at], found[at + 1]
        wider = left if left.last / left.first >= right.last / right.first else right
        found[at : at + 2] = [Range(left.first, right.last, wider.tokens)]
    if len(found) > 1 and found[-1].first == found[-1].last:
        # One size at the end is the end of the grid, and no load of its own.
        found[-2:] = [Range(found[-2].first, found[-1].last, found[-2].tokens)]
    return tuple(found)


def crossover(engine: Engine, acceptance: Acceptance, k: int, most_batch: int) -> int | None:
    """The smallest batch from which K tokens are no faster than none; None where they always are up to `most_batch`."""
    if k == 0:
        return 1

    def loses(batch: int) -> bool:
        return engine.speculative_ms(batch, acceptance, k) >= engine.baseline_ms(batch)

    if loses(1):
        return 1
    if not loses(most_batch):
        return None
    low, high = 1, most_batch
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if loses(middle) else (middle, high)
    return high


def schedule_ms(engine: Engine, acceptance: Acceptance, batch: int, schedule: Sequence[Range]) -> tuple[float, int]:
    """(time per output token under the schedule, its K) at a batch size. The overhead is a step's, shared by its
    tokens."""
    k = next((r.tokens for r in schedule if r.first <= batch <= r.last), schedule[-1].tokens if schedule else 0)
    fixed, each = SCHEDULE_TAX.get(engine.setup.runner, SCHEDULE_TAX["v1"])
    tax = (fixed + each * batch) * engine.scale
    length = acceptance.mean_length(k) if k else 1.0
    return time_ms(engine, acceptance, batch, k) + tax / length, k


# How far a single measured step is off (relative), and how far the computed cost of a speculative token.
MEASUREMENT_ERROR, PRIOR_ERROR = 0.06, 0.5


@dataclass(frozen=True)
class TwoPoints:
    """Milliseconds of a step as fixed + each x K, from two measured times per output token."""

    fixed: float
    each: float

    @classmethod
    def of(
        cls, points: Sequence[tuple[int, float]], acceptance: Acceptance, expected_share: float | None = None
    ) -> TwoPoints:
        """points: (K, ms a token), K=0 without speculation. Raises ValueError on fewer than two different K.

        expected_share: what a speculative token should cost, as a share of a step without (the planner's own figure, or
        the draft's size over the target's). Two close K measure a slope badly; it is then weighed by both errors.
        """
        steps = sorted({k: ms * (acceptance.mean_length(k) if k else 1.0) for k, ms in points}.items())
        if len(steps) < 2:
            raise ValueError("two different K are needed")
        (k0, t0), (k1, t1) = steps[0], steps[-1]
        each = (t1 - t0) / (k1 - k0)
        if expected_share is not None:
            expected = expected_share * t0
            measured_weight = ((k1 - k0) / (MEASUREMENT_ERROR * math.hypot(t0, t1))) ** 2
            expected_weight = 1 / (PRIOR_ERROR * expected) ** 2
            each = (each * measured_weight + expected * expected_weight) / (measured_weight + expected_weight)
        each = max(each, 0.0)
        middle, at = (t0 + t1) / 2, (k0 + k1) / 2
        return cls(middle - each * at, each)

    def ms(self, k: int, acceptance: Acceptance) -> float:
        return (self.fixed + self.each * k) / (acceptance.mean_length(k) if k else 1.0)

    def best(self, acceptance: Acceptance, most: int = MOST_TOKENS) -> int:
        return best_k(lambda k: self.ms(k, acceptance), most)


def spread(acceptance: Acceptance, k: int, tokens: int) -> float:
    """The 99th percentile of a request's time per token over its mean: tokens a step vary."""
    if k == 0 or tokens < 1:
        return 1.0
    mean = acceptance.mean_length(k)
    at = [1.0, *acceptance.cut(k)]
    # P(length > i) is acceptance at position i; E[L^2] = sum (2 i + 1) P(L > i).
    second = sum((2 * i + 1) * p for i, p in enumerate(at))
    deviation = math.sqrt(max(0.0, second - mean * mean))
    steps = max(1.0, tokens / mean)
    return 1.0 / max(0.2, 1.0 - 2.33 * deviation / mean / math.sqrt(steps))
