"""vLLM's counters of speculative decoding, read from /metrics pages and summed over pods."""

from __future__ import annotations

import re
from dataclasses import dataclass

from specdec.errors import FoundWrong

SAMPLE = re.compile(r"^(?P<name>[a-zA-Z_:][\w:]*)(?:\{(?P<labels>[^}]*)\})?\s+(?P<value>\S+)")
POSITION = re.compile(r'position="(\d+)"')

DRAFTS = "vllm:spec_decode_num_drafts_total"
DRAFTED = "vllm:spec_decode_num_draft_tokens_total"
ACCEPTED = "vllm:spec_decode_num_accepted_tokens_total"
BY_POSITION = "vllm:spec_decode_num_accepted_tokens_per_pos_total"
GENERATED = "vllm:generation_tokens_total"


@dataclass(frozen=True)
class Counters:
    """Totals since the engines started. `exported`: whether any page has the counters of speculation at all."""

    drafts: float = 0
    drafted: float = 0
    accepted: float = 0
    by_position: tuple[float, ...] = ()
    generated: float = 0
    exported: bool = False

    def __add__(self, other: Counters) -> Counters:
        return self._combine(other, 1)

    def __sub__(self, earlier: Counters) -> Counters:
        """What happened since `earlier`. Raises FoundWrong where a counter fell: an engine restarted in between."""
        change = self._combine(earlier, -1)
        if min(change.drafts, change.drafted, change.accepted, change.generated) < 0:
            raise FoundWrong("the engine's counters fell while they were watched: a pod restarted", code="restarted")
        return change

    def _combine(self, other: Counters, sign: int) -> Counters:
        longest = max(len(self.by_position), len(other.by_position))
        mine, theirs = (c.by_position + (0,) * (longest - len(c.by_position)) for c in (self, other))
        return Counters(
            self.drafts + sign * other.drafts,
            self.drafted + sign * other.drafted,
            self.accepted + sign * other.accepted,
            tuple(a + sign * b for a, b in zip(mine, theirs, strict=True)),
            self.generated + sign * other.generated,
            self.exported or other.exported,
        )

    @property
    def moved(self) -> bool:
        """Whether anything was drafted. (V0 engines count drafted tokens and no drafts.)"""
        return self.drafts > 0 or self.drafted > 0

    @property
    def acceptance_rate(self) -> float | None:
        """Accepted ÷ drafted."""
        return self.accepted / self.drafted if self.drafted else None

    @property
    def acceptance_by_position(self) -> list[float]:
        """Accepted at each position ÷ drafts: never rises from one position to the next."""
        return [count / self.drafts for count in self.by_position] if self.drafts else []

    @property
    def mean_length(self) -> float | None:
        """Tokens a verification gives: 1 + accepted ÷ drafts."""
        return 1 + self.accepted / self.drafts if self.drafts else None


def parse(page: str) -> Counters:
    """The counters of one /metrics page in Prometheus' text format, summed over its engines."""
    totals = dict.fromkeys((DRAFTS, DRAFTED, ACCEPTED, GENERATED), 0.0)
    positions: dict[int, float] = {}
    exported = False
    for line in page.splitlines():
        match = SAMPLE.match(line)
        if not match:
            continue
        name, value = match["name"], match["value"]
        if name in totals:
            totals[name] += float(value)
            exported |= name in (DRAFTS, DRAFTED)
        elif name == BY_POSITION and (position := POSITION.search(match["labels"] or "")):
            positions[int(position[1])] = positions.get(int(position[1]), 0) + float(value)
    return Counters(
        totals[DRAFTS],
        totals[DRAFTED],
        totals[ACCEPTED],
        tuple(positions.get(index, 0) for index in range(max(positions, default=-1) + 1)),
        totals[GENERATED],
        exported,
    )
