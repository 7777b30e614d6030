"""Speculation that changes no answer passes; another target and a lossy acceptance do not."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

import pytest
from specdec.deploy import equivalence
from specdec.deploy.equivalence import Tokens, agreement, p_value
from specdec.deploy.smoke import Check

VOCABULARY = 12


@dataclass
class Model:
    """A language model of few words: each word's followers have fixed weights, drawn from `seed`."""

    seed: int
    rows: list[list[float]] = field(default_factory=list)

    def __post_init__(self) -> None:
        draw = random.Random(self.seed)
        self.rows = [[draw.expovariate(1.0) ** 2 for _ in range(VOCABULARY)] for _ in range(VOCABULARY)]


@dataclass
class Arm:
    """Answers as an engine of the model would. `flips`: chance that a token comes out otherwise, as rounding does in
    bfloat16; `lossy`: chance that a drafted token is kept though the target would have drawn another."""

    name: str
    model: Model
    flips: float = 0.0
    lossy: float = 0.0

    def tokens(self, prompt: str, count: int, n: int = 1, **options: Any) -> list[Tokens]:
        draw = random.Random(f"{self.name} {prompt} {options.get('seed')}")
        greedy = options["temperature"] == 0
        return [self._answer(draw, len(prompt) % VOCABULARY, count, greedy) for _ in range(n)]

    def _answer(self, draw: random.Random, word: int, count: int, greedy: bool) -> Tokens:
        found = []
        for _ in range(count):
            row = self.model.rows[word]
            best = max(range(VOCABULARY), key=row.__getitem__)
            kept = draw.random() < self.lossy
            word = best if greedy or kept else draw.choices(range(VOCABULARY), row)[0]
            if greedy and draw.random() < self.flips:
                word = (word + 1) % VOCABULARY
            found.append(word)
        return tuple(found)


def compare(speculative: Arm, baseline: Arm, dtype: str = "bfloat16") -> dict[str, Check]:
    checks = equivalence.run(speculative, baseline, dtype, samples=200)  # type: ignore[arg-type]
    return {check.name: check for check in checks}


def test_an_engine_that_speculates_without_loss_passes_both_ways() -> None:
    checks = compare(Arm("speculative", Model(1)), Arm("baseline", Model(1)), "float32")
    assert [check.ok for check in checks.values()] == [True, True]
    assert "8 of 8 answers to the end" in checks["greedy equivalence"].detail


def test_rounding_in_bfloat16_passes_and_is_a_fault_in_float32() -> None:
    rounded, exact = Arm("speculative", Model(1), flips=0.01), Arm("baseline", Model(1))
    assert compare(rounded, exact, "bfloat16")["greedy equivalence"].ok
    assert not compare(rounded, exact, "float32")["greedy equivalence"].ok


def test_another_target_fails_both_ways() -> None:
    checks = compare(Arm("speculative", Model(2)), Arm("baseline", Model(1)))
    assert [check.ok for check in checks.values()] == [False, False]
    assert "same target" in checks["greedy equivalence"].detail


def test_a_lossy_acceptance_fails_where_greedy_answers_cannot_show_it() -> None:
    checks = compare(Arm("speculative", Model(1), lossy=0.4), Arm("baseline", Model(1)))
    assert checks["greedy equivalence"].ok
    assert not checks["sampled equivalence"].ok


def test_two_samples_of_one_distribution_are_rarely_called_different() -> None:
    chances = []
    for seed in range(60):
        draw = random.Random(seed)
        left, right = ([min(draw.randrange(30), draw.randrange(30)) for _ in range(150)] for _ in range(2))
        chances.append(p_value(left, right, shuffles=400, seed=seed))
    assert sum(chance < 0.05 for chance in chances) <= 8, "about one in twenty"
    assert min(chances) < 0.5 < max(chances)


def test_what_follows_a_difference_is_not_compared() -> None:
    assert agreement([((1, 2, 3, 4), (1, 2, 9, 4)), ((5, 6), (5, 6))]) == (4, 5)


@pytest.mark.parametrize("answer", [{"choices": []}, {"choices": [{"text": "no ids"}]}])
def test_a_server_that_tells_no_tokens_is_said_to_be_too_old(answer: dict[str, Any]) -> None:
    class Endpoint:
        label = "Service old"

        def post(self, *_: Any, **__: Any) -> dict[str, Any]:
            return answer

    arm = equivalence.Arm("baseline", Endpoint(), "model")  # type: ignore[arg-type]
    with pytest.raises(equivalence.FoundWrong, match="does not tell its tokens"):
        arm.tokens("x", 4)
