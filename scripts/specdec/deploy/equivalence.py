"""Losslessness: an engine that speculates has to answer as its target alone does, greedily and in distribution."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from specdec.deploy.endpoint import Endpoint
from specdec.deploy.smoke import Check
from specdec.errors import FoundWrong

Tokens = tuple[int, ...]

PROMPTS = (
    "The days: Monday, Tuesday, Wednesday, Thursday, Friday, Saturday, Sunday. The days again: Monday,",
    "Speculative decoding lets a small draft model propose tokens that the large target model then",
    "for i in range(10):\n    print(i)\nfor j in range(10):\n",
    "A pod that loads a large model is not ready until",
    "Question: What does the engine count? Answer:",
    "The acceptance rate of a pair is the number of",
    "apiVersion: v1\nkind: Service\nmetadata:\n  name:",
    "In the beginning the cluster had one node, and",
)
GREEDY_TOKENS = 64
# A sample is this long, so that its later tokens come out of drafts that were verified.
SAMPLED_TOKENS = 6
# Tokens in float32 agree exactly. In bfloat16 verifying several tokens at once rounds otherwise than decoding one, so
# that answers part where two tokens are nearly as likely; a wrong target or a lossy mode parts within a few tokens.
AGREEMENT = {"float32": 1.0}
DEFAULT_AGREEMENT = 0.97
# Chance that two engines with the same distribution are called different, over all positions together.
SIGNIFICANCE = 0.001
SHUFFLES = 12000


@dataclass(frozen=True)
class Arm:
    """One engine: where it answers and the name of its model."""

    name: str
    endpoint: Endpoint
    model: str

    def tokens(self, prompt: str, count: int, n: int = 1, **options: Any) -> list[Tokens]:
        """The token ids of `n` answers of exactly `count` tokens. Raises FoundWrong where the server tells none."""
        body = {"model": self.model, "prompt": prompt, "max_tokens": count, "n": n, "ignore_eos": True,
                "return_token_ids": True, **options}  # fmt: skip
        choices = self.endpoint.post("/v1/completions", body, timeout=600).get("choices") or []
        found = [tuple(choice.get("token_ids") or ()) for choice in choices]
        if len(found) != n or not all(found):
            raise FoundWrong(
                f"{self.endpoint.label} does not tell its tokens",
                code="no-token-ids",
                fix="engines before 0.11 have no return_token_ids: compare a newer one",
            )
        return found


def agreement(pairs: Sequence[tuple[Tokens, Tokens]]) -> tuple[int, int]:
    """(tokens that agree, tokens that were compared) of greedy answers: each pair up to its first difference.

    What follows a difference has another context, and says nothing.
    """
    agreed = compared = 0
    for left, right in pairs:
        same = next(
            (i for i, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), min(len(left), len(right))
        )
        agreed += same
        compared += same + (same < min(len(left), len(right)))
    return agreed, compared


def p_value(left: Sequence[int], right: Sequence[int], shuffles: int = SHUFFLES, seed: int = 0) -> float:
    """Chance of frequencies at least as far apart between two samples of one distribution, by permutation.

    The distance is Pearson's statistic. Exact whatever the number of values and however rare they are, where a
    chi-squared table would not be (Good, Permutation Tests, 2000).
    """
    import numpy

    n, m = len(left), len(right)
    codes = numpy.unique([*left, *right], return_inverse=True)[1]
    totals = numpy.bincount(codes)

    def distance(order: Any) -> float:
        mine = numpy.bincount(codes[order[:n]], minlength=totals.size)
        return float((((n + m) * mine - n * totals) ** 2 / totals).sum() / (n * m))

    seen = distance(numpy.arange(n + m))
    random = numpy.random.default_rng(seed)
    larger = 0
    for done in range(1, shuffles + 1):
        larger += distance(random.permutation(n + m)) >= seen - 1e-9
        if larger == 50:  # plainly no rare event: the rest would only make it more exact
            return larger / done
    return (larger + 1) / (shuffles + 1)


def greedy(speculative: Arm, baseline: Arm, least: float, report: Callable[[str], None]) -> str:
    """Raises FoundWrong where less than `least` of the compared tokens agree."""
    pairs = []
    for number, prompt in enumerate(PROMPTS, 1):
        report(f"greedy answer {number} of {len(PROMPTS)}")
        pairs.append(tuple(arm.tokens(prompt, GREEDY_TOKENS, temperature=0)[0] for arm in (speculative, baseline)))
    agreed, compared = agreement([(left, right) for left, right in pairs])
    whole = sum(left == right for left, right in pairs)
    seen = f"{agreed} of {compared} tokens agree ({agreed / compared:.1%}), {whole} of {len(pairs)} answers to the end"
    if agreed < least * compared:
        raise FoundWrong(
            f"{seen}; at least {least:.0%} are expected",
            code="not-lossless",
            fix="see that both arms run the same target and that no lossy acceptance is on (speculative.* values)",
        )
    return seen


def sampled(speculative: Arm, baseline: Arm, samples: int, report: Callable[[str], None]) -> str:
    """Raises FoundWrong where the frequencies of sampled tokens differ at any position."""
    batch = 25
    found: dict[str, list[Tokens]] = {speculative.name: [], baseline.name: []}
    for start in range(0, samples, batch):
        report(f"{start} of {samples} samples")
        for number, arm in enumerate((speculative, baseline)):
            options = {"temperature": 1.0, "seed": 1 + 2 * start + number}
            found[arm.name] += arm.tokens(PROMPTS[1], SAMPLED_TOKENS, n=min(batch, samples - start), **options)
    worst, position = 1.0, 0
    for index in range(SAMPLED_TOKENS):
        left, right = ([tokens[index] for tokens in found[arm.name]] for arm in (speculative, baseline))
        chance = p_value(left, right)
        if chance < worst:
            worst, position = chance, index + 1
    chance = min(1.0, worst * SAMPLED_TOKENS)  # Bonferroni: one of several positions had to be the worst
    seen = f"{samples} samples of each arm, least p {chance:.3f} at position {position}"
    if chance < SIGNIFICANCE:
        raise FoundWrong(
            f"{seen}: the arms sample from different distributions",
            code="not-lossless",
            fix="see that both arms run the same target and that no lossy acceptance is on (speculative.* values)",
        )
    return seen


def run(
    speculative: Arm,
    baseline: Arm,
    dtype: str | None,
    *,
    least: float | None = None,
    samples: int = 200,
    report: Callable[[str], None] = lambda _: None,
) -> list[Check]:
    """Both checks. `dtype` of the target decides how much has to agree where `least` does not say it."""
    import time

    wanted = least if least is not None else AGREEMENT.get(dtype or "", DEFAULT_AGREEMENT)

    def checked(name: str, check: Callable[..., str], limit: float) -> Check:
        started = time.monotonic()
        try:
            ok, detail = True, check(speculative, baseline, limit, report)
        except FoundWrong as error:
            ok, detail = False, error.message + (f" ({error.fix})" if error.fix else "")
        return Check(name, ok, detail, round(time.monotonic() - started, 2))

    return [checked("greedy equivalence", greedy, wanted), checked("sampled equivalence", sampled, samples)]
