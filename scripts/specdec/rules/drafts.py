"""SD137 to SD140: numbers of the speculative config: their type, and how many drafts a step can check or gain from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from specdec.engine_args import SpeculativeArgs
from specdec.facts import version_key
from specdec.manifests import EngineWorkload
from specdec.plan.acceptance import Acceptance
from specdec.plan.setup import ONE_PASS, WITHOUT_WEIGHTS
from specdec.plan.speculation import MOST_TOKENS, SAMPLER_TAKES
from specdec.rules.arguments import not_yet_known
from specdec.rules.model import Problem, Severity, each_engine, rule
from specdec.rules.speculation import CONFIG, example, place, speculation
from specdec.rules.values import number
from specdec.rules.versions import key_of

NUMBERS = (
    "num_speculative_tokens",
    "draft_tensor_parallel_size",
    "max_model_len",
    "prompt_lookup_min",
    "prompt_lookup_max",
    "disable_by_batch_size",
)
TEXTS = ("method", "model", "revision", "quantization")
# Versions before hand the text on as it is and fail where they compare it with a number.
READS_DIGITS_FROM = version_key("0.12.0")
SAMPLER = "vllm/v1/sample/rejection_sampler.py: MAX_SPEC_LEN"
# Drafts one after the other cost a pass each; what is looked up or drafted at once costs little.
SERIAL, AT_ONCE = 16, 32
DRAFTS_AT_ONCE = ONE_PASS | WITHOUT_WEIGHTS | {"mlp_speculator"}


def _digits(value: Any) -> bool:
    return isinstance(value, str) and value.strip().lstrip("-").isdigit()


@rule(
    "SD137",
    "field-of-another-type",
    Severity.error,
    reason="The engine checks the type of each field of the speculative config and ends when a number is a text, or "
    "a name is a number. Up to 0.11 it takes even digits in quotes for text, and fails where it compares them.",
    fix='numbers bare and names in quotes: {"method": "ngram", "num_speculative_tokens": 4}',
    source=CONFIG,
    bad=example('{"method": "ngram", "num_speculative_tokens": "4"}', version="0.9.2"),
    good=example('{"method": "ngram", "num_speculative_tokens": 4}', version="0.9.2"),
)
@each_engine
def field_of_another_type(engine: EngineWorkload) -> Iterator[Problem]:
    asked = speculation(engine)
    for field, value in asked.raw.items() if asked and not asked.legacy else ():
        if isinstance(value, str) and not_yet_known(value):
            continue
        digits = _digits(value) and _reads_digits(engine)
        if field in NUMBERS and value is not None and not digits and not _whole(value):
            # K has a rule of its own for what is no number at all.
            if field != "num_speculative_tokens" or _digits(value):
                message = f"{field} is {_shown(value)}, and has to be a whole number"
                yield Problem(engine.manifest, place(engine, field), message)
        elif field in TEXTS and value is not None and not isinstance(value, str):
            message = f"{field} is {_shown(value)}, and has to be a text"
            yield Problem(engine.manifest, place(engine, field), message, f'"{field}": "..."')


def _whole(value: Any) -> bool:
    return (isinstance(value, int) and not isinstance(value, bool)) or (isinstance(value, float) and value.is_integer())


def _shown(value: Any) -> str:
    return f"the text {value!r}" if isinstance(value, str) else repr(value)


def _reads_digits(engine: EngineWorkload) -> bool:
    key = key_of(engine.engine_version)
    return key is None or key >= READS_DIGITS_FROM


@rule(
    "SD138",
    "number-in-quotes",
    Severity.warning,
    reason="From 0.12 on the engine reads digits in quotes as the number; versions before end with a TypeError, and so "
    "may other programs that read the same config.",
    fix="the number without quotes",
    source=CONFIG,
    bad=example('{"method": "ngram", "num_speculative_tokens": "4"}'),
    good=example('{"method": "ngram", "num_speculative_tokens": 4}'),
)
@each_engine
def number_in_quotes(engine: EngineWorkload) -> Iterator[Problem]:
    asked = speculation(engine)
    for field, value in asked.raw.items() if asked and not asked.legacy else ():
        if field in NUMBERS and _digits(value) and _reads_digits(engine):
            yield Problem(engine.manifest, place(engine, field), f"{field} is the text {value!r}")


def greatest(engine: EngineWorkload) -> int:
    """The most drafts of a step that runner V1's sampler takes. The others state none, and 128 helps nowhere."""
    key = key_of(engine.engine_version)
    if engine.runner != "v1" or key is None:
        return MOST_TOKENS
    return next(most for first, most in SAMPLER_TAKES if key >= first)


@rule(
    "SD139",
    "more-drafts-than-a-step-can-check",
    Severity.error,
    reason="The rejection sampler of runner V1 takes 128 drafts of a sequence, 32 before 0.11, and ends the engine at "
    "the first step with more. On any runner a step has to have room for K drafts and one token, and so has the "
    "longest sequence.",
    fix='"num_speculative_tokens": 3',
    source=SAMPLER,
    bad=example('{"method": "ngram", "num_speculative_tokens": 999}'),
    good=example('{"method": "ngram", "num_speculative_tokens": 5}'),
)
@each_engine
def more_drafts_than_a_step_can_check(engine: EngineWorkload) -> Iterator[Problem]:
    asked = speculation(engine)
    k = asked.num_speculative_tokens if asked else None
    if asked is None or k is None:
        return
    why = None
    if k > (most := greatest(engine)):
        why = f"a step checks {most} at most"
    else:
        for flag in ("--max-num-batched-tokens", "--max-model-len"):
            room = number(engine, flag)
            if room is not None and 1 <= room <= k:
                why = f"{flag} is {room}"
                break
    if why:
        yield Problem(engine.manifest, place(engine, "num_speculative_tokens"), f"{k} drafts in a step, and {why}")


def sane(asked: SpeculativeArgs) -> int:
    """The number of drafts above which more of them cannot pay."""
    at_once = asked.method in DRAFTS_AT_ONCE or asked.raw.get("parallel_drafting") is True
    return AT_ONCE if at_once else SERIAL


def expected(k: int, acceptance: float) -> float:
    """Tokens that a step of k drafts gives, each accepted with that probability (arXiv:2211.17192, equation 1)."""
    return Acceptance(tuple(acceptance**position for position in range(1, k + 1))).mean_length(k)


@rule(
    "SD140",
    "more-drafts-than-pay",
    Severity.warning,
    reason="Each draft counts only when all before it were accepted, so tokens of a step have a ceiling: 10 when nine "
    "of ten drafts are accepted, and 16 of them give 8.3 of those. A draft model or head runs once for each; n-gram, "
    "suffix and parallel heads draft at once and may go to 32.",
    fix="what specdec plan finds: 2 to 5 for a draft model, 1 to 5 for a head",
    source="Leviathan et al., https://arxiv.org/abs/2211.17192, equation 1",
    bad=example('{"method": "draft_model", "model": "/models/draft", "num_speculative_tokens": 24}'),
    good=example('{"method": "draft_model", "model": "/models/draft", "num_speculative_tokens": 5}'),
)
@each_engine
def more_drafts_than_pay(engine: EngineWorkload) -> Iterator[Problem]:
    asked = speculation(engine)
    k = asked.num_speculative_tokens if asked else None
    if asked and k is not None and sane(asked) < k <= greatest(engine):
        most = sane(asked)
        message = (
            f"{k} drafts in a step of {asked.method}: with nine of ten accepted {expected(k, 0.9):.1f} tokens, and "
            f"{expected(5, 0.9):.1f} with 5"
        )
        yield Problem(engine.manifest, place(engine, "num_speculative_tokens"), message, f"{most} at most; 3 to begin")
