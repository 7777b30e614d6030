"""Two arms of one release, speculation on and off, asked in turn: time per output token, acceptance, their ratio."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from specdec.deploy.endpoint import Chunk, Endpoint
from specdec.deploy.metrics import Counters
from specdec.errors import FoundWrong, SpecdecError

PROMPTS = (
    "Speculative decoding is a way to make a large language model answer faster:",
    "The values of an environment are rendered to manifests, and the same manifests are",
    "def acceptance_rate(accepted: int, drafted: int) -> float:\n",
    "Kubernetes starts a pod on a node when",
    "A plan of the memory says, for each rank, how many bytes",
)

LOCAL_NOTE = (
    "The local pair is made for this: its draft agrees with its target as often as it was built to. "
    "These figures show the engine's mechanics, not a model's quality."
)


@dataclass(frozen=True)
class Arm:
    """One engine: where it answers, the name of its model, and its counters summed over its pods."""

    name: str
    endpoint: Endpoint
    model: str
    counters: Callable[[], Counters]


@dataclass(frozen=True)
class Sample:
    """One streamed answer. Milliseconds; `chunks` are those that brought tokens."""

    arm: str
    repeat: int
    ttft_ms: float
    tpot_ms: float
    tokens: int
    chunks: int


def time_per_output_token(marks: Sequence[tuple[float, int]]) -> float:
    """Milliseconds per output token of one answer; `marks`: (seconds, tokens so far) of each chunk that brought tokens.

    Decode time ÷ tokens decoded in it: from the first chunk to the last, over the tokens that came after the first
    chunk. A chunk carries several tokens under speculation, so that time ÷ chunks is step latency and no measure of
    an arm. Raises SpecdecError where all tokens came at once.
    """
    (begin, first), (end, last) = marks[0], marks[-1]
    if last <= first or end <= begin:
        raise SpecdecError(f"{last} tokens came in one piece: there is nothing to time", code="one-chunk",
                           fix="ask for more tokens, and stream past anything that buffers")  # fmt: skip
    return (end - begin) * 1000 / (last - first)


def marks_of(chunks: Iterable[Chunk]) -> list[tuple[float, int]]:
    """(seconds, tokens so far) of each chunk that brought tokens.

    vLLM says the tokens so far in every chunk (`continuous_usage_stats`). A server that only says the total gets one
    token assumed in its first chunk, which is what a prefill gives.
    """
    marks: list[tuple[float, int]] = []
    texts: list[float] = []
    total = 0
    for chunk in chunks:
        if chunk.data.get("choices"):
            if chunk.text:
                texts.append(chunk.at)
            if (chunk.tokens or 0) > total:
                total = chunk.tokens or 0
                marks.append((chunk.at, total))
        elif chunk.tokens is not None:
            total = max(total, chunk.tokens)
    if not marks and len(texts) > 1 and total > 1:
        return [(texts[0], 1), (texts[-1], total)]
    if not marks:
        raise FoundWrong("the stream says nowhere how many tokens it brought", code="usage")
    return marks


def ask(arm: Arm, prompt: str, max_tokens: int, repeat: int, clock: Callable[[], float], timeout: float) -> Sample:
    """One greedy answer of exactly `max_tokens` tokens, timed."""
    body = {
        "model": arm.model,
        "prompt": prompt,
        "max_tokens": max_tokens,
        "temperature": 0,
        "ignore_eos": True,
        "stream_options": {"include_usage": True, "continuous_usage_stats": True},
    }
    begin = clock()
    marks = marks_of(arm.endpoint.stream("/v1/completions", body, timeout=timeout))
    return Sample(
        arm.name, repeat, (marks[0][0] - begin) * 1000, time_per_output_token(marks), marks[-1][1], len(marks)
    )


@dataclass(frozen=True)
class Comparison:
    """Both arms' samples, and what the speculative engines counted while these were taken."""

    samples: list[Sample]
    counters: Counters
    max_tokens: int
    repeats: int

    def tpot(self, arm: str) -> float:
        """Median time per output token of an arm, milliseconds."""
        return statistics.median(sample.tpot_ms for sample in self.samples if sample.arm == arm)

    @property
    def ratio(self) -> float:
        """Baseline ÷ speculative: above 1, speculation is faster."""
        return self.tpot("baseline") / self.tpot("speculative")

    def as_dict(self) -> dict[str, Any]:
        arms = {}
        for arm in ("baseline", "speculative"):
            mine = [sample for sample in self.samples if sample.arm == arm]
            arms[arm] = {
                "tpot_ms": self.tpot(arm),
                "ttft_ms": statistics.median(sample.ttft_ms for sample in mine),
                "tokens": sum(sample.tokens for sample in mine),
                "samples": [asdict(sample) for sample in mine],
            }
        return {
            "schema_version": 1,
            "repeats": self.repeats,
            "max_tokens": self.max_tokens,
            "drafts": self.counters.drafts,
            "drafted": self.counters.drafted,
            "accepted": self.counters.accepted,
            "accepted_by_position": list(self.counters.by_position),
            "acceptance_by_position": self.counters.acceptance_by_position,
            "acceptance_rate": self.counters.acceptance_rate,
            "mean_length": self.counters.mean_length,
            "arms": arms,
            "ratio": self.ratio,
        }


def compare(
    speculative: Arm,
    baseline: Arm,
    *,
    repeats: int = 5,
    max_tokens: int = 96,
    prompts: Sequence[str] = PROMPTS,
    timeout: float = 600,
    clock: Callable[[], float] | None = None,
    report: Callable[[str], None] = lambda _: None,
) -> Comparison:
    """Each repeat asks both arms the same prompt, one after the other, and the order changes from repeat to repeat.

    One answer of each arm before that is not counted. Raises FoundWrong when the speculative arm drafted nothing or
    the baseline drafted: such a run compares nothing.
    """
    import time

    now = clock or time.perf_counter
    for arm in (speculative, baseline):
        report(f"warming up {arm.name}")
        ask(arm, prompts[0], max_tokens, 0, now, timeout)
    before, before_baseline = speculative.counters(), baseline.counters()
    samples: list[Sample] = []
    for repeat in range(1, repeats + 1):
        order = (baseline, speculative) if repeat % 2 else (speculative, baseline)
        for arm in order:
            report(f"repeat {repeat} of {repeats}: {arm.name}")
            samples.append(ask(arm, prompts[(repeat - 1) % len(prompts)], max_tokens, repeat, now, timeout))
    counted = speculative.counters() - before
    if not counted.moved:
        raise FoundWrong("the speculative arm made no draft: this run compares nothing", code="off")
    if (baseline.counters() - before_baseline).moved:
        raise FoundWrong("the baseline arm speculates: this run compares nothing", code="on")
    return Comparison(samples, counted, max_tokens, repeats)
