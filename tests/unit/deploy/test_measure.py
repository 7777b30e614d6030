"""Time per output token is decode time over tokens, whatever number of tokens a chunk carries."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from specdec.deploy import measure
from specdec.deploy.endpoint import Chunk, at_url
from specdec.deploy.metrics import Counters, parse
from specdec.errors import FoundWrong, SpecdecError

Start = Callable[..., Any]


def chunk(at: float, tokens: int | None, text: str = "x", last: bool = False) -> Chunk:
    data: dict[str, Any] = {"choices": [] if last else [{"text": text}]}
    if tokens is not None:
        data["usage"] = {"completion_tokens": tokens}
    return Chunk(at, data)


def test_one_token_a_chunk_is_time_over_chunks() -> None:
    # First token at 1.0 s, four more 50 ms apart.
    marks = [(1.0, 1), (1.05, 2), (1.10, 3), (1.15, 4), (1.20, 5)]
    assert measure.time_per_output_token(marks) == pytest.approx(50.0)


def test_several_tokens_a_chunk_divide_the_time_by_tokens_and_not_by_chunks() -> None:
    # Steps of 100 ms that bring 3, 5 and 2 tokens: 300 ms for 10 tokens. By chunks it would be 100 ms.
    marks = [(2.0, 1), (2.1, 4), (2.2, 9), (2.3, 11)]
    assert measure.time_per_output_token(marks) == pytest.approx(30.0)


def test_tokens_of_the_first_chunk_are_not_part_of_the_decode_time() -> None:
    # The first chunk brings 4 tokens; 200 ms bring 4 more.
    assert measure.time_per_output_token([(0.0, 4), (0.2, 8)]) == pytest.approx(50.0)


def test_an_answer_in_one_piece_cannot_be_timed() -> None:
    with pytest.raises(SpecdecError, match="8 tokens came in one piece"):
        measure.time_per_output_token([(0.0, 8)])


def test_chunks_without_new_tokens_do_not_move_the_end() -> None:
    # The detokenizer holds bytes back: a chunk may come without a token, and the usage chunk comes last of all.
    chunks = [chunk(1.0, 1), chunk(1.2, 5, text=""), chunk(1.9, 5, text=""), chunk(5.0, 5, last=True)]
    assert measure.marks_of(chunks) == [(1.0, 1), (1.2, 5)]


def test_a_server_that_says_only_the_total_is_timed_from_its_first_token() -> None:
    chunks = [chunk(1.0, None), chunk(1.1, None), chunk(1.3, None), chunk(1.3, 7, last=True)]
    assert measure.time_per_output_token(measure.marks_of(chunks)) == pytest.approx(50.0)


def test_a_server_that_never_says_how_many_tokens_is_refused() -> None:
    with pytest.raises(FoundWrong, match="how many tokens"):
        measure.marks_of([chunk(1.0, None), chunk(1.1, None)])


class FakeEndpoint:
    """Streams 1 token, then `each` tokens every `step` seconds of a clock of its own."""

    def __init__(self, clock: list[float], step: float, each: int, log: list[str], name: str) -> None:
        self.clock, self.step, self.each, self.log, self.name = clock, step, each, log, name
        self.drafts = 0
        self.prompts: list[str] = []
        self.speculates = each > 1

    def stream(self, path: str, body: dict[str, Any], timeout: float) -> Iterator[Chunk]:
        assert path == "/v1/completions"
        assert body["temperature"] == 0
        assert body["ignore_eos"] is True
        assert timeout > 0
        self.log.append(self.name)
        self.prompts.append(body["prompt"])
        self.clock[0] += 0.5
        tokens = 1
        yield chunk(self.clock[0], tokens)
        while tokens < body["max_tokens"]:
            self.clock[0] += self.step
            tokens = min(body["max_tokens"], tokens + self.each)
            self.drafts += int(self.speculates)
            yield chunk(self.clock[0], tokens)

    def counters(self) -> Counters:
        steps = self.drafts
        if not self.speculates:
            return Counters(generated=1)
        return Counters(steps, 4 * steps, 2 * steps, (steps, 0.6 * steps, 0.4 * steps, 0), steps * 3, True)


def arms(clock: list[float], log: list[str]) -> tuple[measure.Arm, measure.Arm, FakeEndpoint, FakeEndpoint]:
    fast, slow = FakeEndpoint(clock, 0.09, 3, log, "speculative"), FakeEndpoint(clock, 0.06, 1, log, "baseline")
    return (
        measure.Arm("speculative", fast, "m", fast.counters),  # type: ignore[arg-type]
        measure.Arm("baseline", slow, "m", slow.counters),  # type: ignore[arg-type]
        fast,
        slow,
    )


def test_the_ratio_is_of_medians_of_time_per_token() -> None:
    clock, log = [0.0], list[str]()
    speculative, baseline, _, _ = arms(clock, log)
    found = measure.compare(speculative, baseline, repeats=5, max_tokens=97, clock=lambda: clock[0])
    # 96 tokens in 32 steps of 90 ms are 30 ms a token; 96 steps of 60 ms are 60 ms a token.
    assert found.tpot("speculative") == pytest.approx(30.0)
    assert found.tpot("baseline") == pytest.approx(60.0)
    assert found.ratio == pytest.approx(2.0)


def test_arms_take_turns_and_both_are_warmed_up_once() -> None:
    clock, log = [0.0], list[str]()
    speculative, baseline, fast, slow = arms(clock, log)
    measure.compare(speculative, baseline, repeats=3, max_tokens=10, clock=lambda: clock[0])
    assert log == [
        "speculative", "baseline",
        "baseline", "speculative",
        "speculative", "baseline",
        "baseline", "speculative",
    ]  # fmt: skip
    assert fast.prompts[1:] == slow.prompts[1:]


def test_drafts_of_the_warm_up_are_not_counted() -> None:
    clock, log = [0.0], list[str]()
    speculative, baseline, _, _ = arms(clock, log)
    document = measure.compare(speculative, baseline, repeats=5, max_tokens=97, clock=lambda: clock[0]).as_dict()
    assert document["drafts"] == 5 * 32
    assert document["acceptance_by_position"] == pytest.approx([1, 0.6, 0.4, 0])
    assert document["acceptance_rate"] == pytest.approx(0.5)
    assert document["mean_length"] == pytest.approx(3.0)
    assert [sample["repeat"] for sample in document["arms"]["baseline"]["samples"]] == [1, 2, 3, 4, 5]
    assert document["arms"]["speculative"]["ttft_ms"] == pytest.approx(500)


def test_an_arm_that_drafts_nothing_is_not_called_speculative() -> None:
    clock, log = [0.0], list[str]()
    speculative, baseline, fast, _ = arms(clock, log)
    fast.speculates = False
    with pytest.raises(FoundWrong, match="made no draft"):
        measure.compare(speculative, baseline, repeats=1, max_tokens=10, clock=lambda: clock[0])


def test_a_baseline_that_speculates_is_not_a_baseline() -> None:
    clock, log = [0.0], list[str]()
    speculative, baseline, _, slow = arms(clock, log)
    slow.speculates = True
    with pytest.raises(FoundWrong, match="the baseline arm speculates"):
        measure.compare(speculative, baseline, repeats=1, max_tokens=10, clock=lambda: clock[0])


def test_against_a_server_with_three_tokens_a_chunk_all_tokens_are_counted(serve: Start) -> None:
    server, plain = serve(), serve(speculates=False)

    def arm(name: str, one: Any) -> measure.Arm:
        endpoint = at_url(one.url)
        return measure.Arm(name, endpoint, "org/target", lambda: parse(endpoint.get("/metrics").text))

    found = measure.compare(arm("speculative", server), arm("baseline", plain), repeats=2, max_tokens=31)
    assert {(sample.tokens, sample.chunks) for sample in found.samples} == {(31, 11)}
    assert found.counters.drafts == 20
