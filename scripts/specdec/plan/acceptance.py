"""Acceptance of drafted tokens by position: accepted at that position / drafts, so it never rises."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from specdec.errors import SpecdecError

# Each further position is accepted somewhat less often, given the one before: ratio of consecutive conditional
# probabilities. Median over published traces with several K (benchmarks/data/speculation.csv).
DECAY = 0.93


@dataclass(frozen=True)
class Acceptance:
    """positions[i]: share of drafts whose token i+1 was accepted. Beyond what was measured it is continued."""

    positions: tuple[float, ...]
    source: str = "measured"

    def __post_init__(self) -> None:
        if not self.positions:
            raise SpecdecError(
                "no acceptance",
                code="bad-acceptance",
                path="--acceptance",
                fix="one number a position, for example 0.8,0.6,0.4",
            )
        for index, value in enumerate(self.positions):
            if not 0 <= value <= 1:
                raise SpecdecError(
                    f"acceptance {value} at position {index + 1}",
                    code="bad-acceptance",
                    path="--acceptance",
                    fix="between 0 and 1",
                )
            if index and value > self.positions[index - 1] + 1e-9:
                raise SpecdecError(
                    f"acceptance rises from {self.positions[index - 1]} to {value} at position {index + 1}",
                    code="rising-acceptance",
                    path="--acceptance",
                    fix="accepted at that position / drafts, which never rises",
                )

    def at(self, position: int) -> float:
        """Acceptance at a position (from 1). Past the last known one, each conditional probability is DECAY of that
        before."""
        known = len(self.positions)
        if position <= known:
            return self.positions[position - 1]
        last = self.positions[-1]
        before = self.positions[-2] if known > 1 else 1.0
        conditional = last / before if before > 0 else 0.0
        value = last
        for _ in range(position - known):
            conditional *= DECAY
            value *= conditional
        return value

    def mean_length(self, k: int) -> float:
        """Tokens a step: 1 + accepted."""
        return 1.0 + sum(self.at(i) for i in range(1, k + 1))

    def rate(self, k: int) -> float:
        """Accepted / drafted."""
        return (self.mean_length(k) - 1) / k if k else 0.0

    def cut(self, k: int) -> tuple[float, ...]:
        return tuple(self.at(i) for i in range(1, k + 1))

    @classmethod
    def of_mean_length(cls, length: float, k: int, source: str = "computed") -> Acceptance:
        """A profile of K positions with that mean length: a constant conditional probability that decays by DECAY."""
        if not 1 <= length <= k + 1 + 1e-9:
            raise SpecdecError(
                f"mean length {length} with K={k}",
                code="bad-mean-length",
                path="--mean-length",
                fix=f"between 1 and {k + 1}",
            )
        return cls(_profile(round(length, 9), k), source)

    @classmethod
    def of_rate(cls, rate: float, k: int, source: str = "assumed") -> Acceptance:
        """A profile with that rate (accepted / drafted) at K."""
        if not 0 <= rate <= 1:
            raise SpecdecError(
                f"acceptance rate {rate}", code="bad-acceptance", path="acceptance", fix="between 0 and 1"
            )
        return cls.of_mean_length(1 + rate * k, k, source)


@lru_cache(maxsize=4096)
def _profile(length: float, k: int) -> tuple[float, ...]:
    """Bisection on the first position's probability; the decay yields where the length needs more than it allows."""
    wanted = length - 1
    for decay in (DECAY, 0.97, 0.99, 1.0):
        if wanted <= sum(_positions(1.0, decay, k)) + 1e-12:
            break
    low, high = 0.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if sum(_positions(middle, decay, k)) < wanted else (low, middle)
    return _positions((low + high) / 2, decay, k)


def _positions(first: float, decay: float, k: int) -> tuple[float, ...]:
    values, conditional, value = [], first, 1.0
    for _ in range(k):
        value *= conditional
        values.append(value)
        conditional *= decay
    return tuple(values)


def parse(text: str) -> Acceptance:
    """ "0.8,0.6,0.4" from the command line."""
    parts: Sequence[str] = [p.strip() for p in text.split(",") if p.strip()]
    try:
        return Acceptance(tuple(float(p) for p in parts))
    except ValueError as error:
        raise SpecdecError(
            f"acceptance {text!r}",
            code="bad-acceptance",
            path="--acceptance",
            fix="numbers with commas between: 0.8,0.6,0.4",
        ) from error
