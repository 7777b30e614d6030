"""The smoke test: does a server answer in every way that clients use, and does it speculate, or not, as told?"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

from specdec.deploy.endpoint import Endpoint, EndpointError
from specdec.deploy.metrics import Counters
from specdec.errors import FoundWrong, nearest

Json = dict[str, Any]

# Every part is bounded, so that even a model that writes gibberish comes to the end of a valid document.
SCHEMA: Json = {
    "type": "object",
    "properties": {
        "colour": {"type": "string", "enum": ["red", "green", "blue"]},
        "count": {"type": "integer", "enum": [1, 2, 3]},
        "done": {"type": "boolean"},
    },
    "required": ["colour", "count", "done"],
    "additionalProperties": False,
}

# Text that repeats itself as well as prose, so that n-gram and suffix methods find something to propose.
PROMPTS = (
    "The days: Monday, Tuesday, Wednesday, Thursday, Friday, Saturday, Sunday. The days again: Monday, Tuesday,",
    "Speculative decoding lets a small draft model propose tokens that the large target model then",
    "for i in range(10):\n    print(i)\nfor j in range(10):\n    print(j)\nfor k in range(10):\n",
)
ANSWER_TOKENS = 64
LONG_ANSWER_TOKENS = 16


@dataclass(frozen=True)
class Check:
    """One line of the result. `detail` says what was seen, or what is wrong and what would be right."""

    name: str
    ok: bool
    detail: str
    seconds: float


@dataclass(frozen=True)
class Target:
    """What is tested.

    speculation      what the values say; None where nobody says
    counters         the engines' counters now, summed over all pods behind `endpoint`
    draft_positions  the draft's or head's max_position_embeddings, in tokens; None where unknown
    max_model_len    the server's context, in tokens; None: as /v1/models says
    """

    endpoint: Endpoint
    model: str
    speculation: bool | None
    counters: Callable[[], Counters]
    min_acceptance: float = 0.1
    draft_positions: int | None = None
    max_model_len: int | None = None
    timeout: float = 300
    settle: float = 3.0
    found: Json = field(default_factory=dict)

    def complete(self, prompt: str, max_tokens: int, **options: Any) -> Json:
        """A greedy completion; raises unless it brought at least one token."""
        body = {"model": self.model, "prompt": prompt, "max_tokens": max_tokens, "temperature": 0, **options}
        answer = self.endpoint.post("/v1/completions", body, timeout=self.timeout)
        if not answer.get("choices") or not (answer.get("usage") or {}).get("completion_tokens"):
            raise FoundWrong("the completion holds no token", code="empty")
        return answer


def health(target: Target) -> str:
    """/health answers; servers that have none are asked for their models."""
    try:
        target.endpoint.get("/health", timeout=min(30, target.timeout))
    except EndpointError as error:
        if error.code != "http-404":
            raise
        target.endpoint.models()
        return "no /health here; /v1/models answers"
    return "/health answers"


def served_model(target: Target) -> str:
    """The model is offered under the name that clients will use."""
    models = {entry["id"]: entry for entry in target.endpoint.models()}
    if target.model not in models:
        guess = nearest(target.model, models)
        raise FoundWrong(
            f"{target.model!r} is not served; served: {', '.join(models) or 'nothing'}",
            code="model",
            fix=f"did you mean {guess}?" if guess else None,
        )
    target.found["max_model_len"] = models[target.model].get("max_model_len") or target.max_model_len
    return target.model


def completion(target: Target) -> str:
    answer = target.complete(PROMPTS[0], ANSWER_TOKENS)
    text, tokens = preview(answer["choices"][0].get("text", "")), answer["usage"]["completion_tokens"]
    target.found["answer"] = {"through": target.endpoint.label, "tokens": tokens, "text": text}
    return f"{tokens} tokens: {text}"


def streamed_chat(target: Target) -> str:
    body = {
        "model": target.model,
        "messages": [{"role": "user", "content": "Name three colours."}],
        "max_tokens": ANSWER_TOKENS,
        "temperature": 0,
        "ignore_eos": True,
        "stream_options": {"include_usage": True},
    }
    chunks = list(target.endpoint.stream("/v1/chat/completions", body, timeout=target.timeout))
    tokens = next((chunk.tokens for chunk in reversed(chunks) if chunk.tokens is not None), None)
    text = "".join(chunk.text for chunk in chunks)
    if not tokens and not text:
        raise FoundWrong(f"{len(chunks)} chunks and no token in them", code="empty")
    return f"{tokens if tokens is not None else '?'} tokens in {len(chunks)} chunks: {preview(text)}"


def long_prompt(target: Target) -> str:
    """A prompt beyond the draft's positions: heads trained on 2k crash some engines there; short prompts hide it."""
    limit = target.found.get("max_model_len") or target.max_model_len
    positions = target.draft_positions
    if limit is None and positions is None:
        raise FoundWrong("neither the server nor the values say how long a prompt may be", code="unknown-length",
                         fix="give --draft-positions")  # fmt: skip
    beyond_draft = positions is not None and (limit is None or positions + LONG_ANSWER_TOKENS < limit * 0.95)
    wanted = positions + 1 if beyond_draft and positions else int((limit or 0) * 0.95) - LONG_ANSWER_TOKENS
    unit = "the quick brown fox jumps over the lazy dog "
    sample = 8
    per_unit = max(1.0, target.complete(unit * sample, 1)["usage"]["prompt_tokens"] / sample)
    # Rounded up where the prompt must pass the draft's positions, down where it must stay within the context.
    count = math.ceil(wanted * 1.02 / per_unit) + 1 if beyond_draft else max(1, int(wanted / per_unit))
    seen = target.complete(unit * count, LONG_ANSWER_TOKENS)["usage"]["prompt_tokens"]
    target.endpoint.get("/v1/models", timeout=30)  # an engine that died of the prompt no longer answers
    if beyond_draft and positions is not None and seen <= positions:
        raise FoundWrong(f"the prompt had {seen} tokens, not more than the draft's {positions}", code="too-short")
    reach = f"beyond the draft's {positions} positions" if beyond_draft else f"of a context of {limit}"
    return f"{seen} tokens, {reach}"


# A weak model may fill a document with blanks for ever: a penalty on repeats brings it on. Plain comes first, because
# some versions refuse penalties together with speculation.
JSON_TRIES: tuple[Json, ...] = (
    {"max_tokens": 96},
    {"max_tokens": 200, "frequency_penalty": 2.0},
    {"max_tokens": 300, "frequency_penalty": 2.0, "presence_penalty": 2.0},
)


def json_schema(target: Target) -> str:
    """An answer bound to a JSON schema parses and validates. One that only ran out of tokens is asked for again."""
    import jsonschema

    question = "Answer in JSON: a colour, a count from 1 to 3, and whether you are done."
    body: Json = {
        "model": target.model,
        "messages": [{"role": "user", "content": question}],
        "temperature": 0,
        "response_format": {"type": "json_schema", "json_schema": {"name": "answer", "schema": SCHEMA, "strict": True}},
    }
    for options in JSON_TRIES:
        answer = target.endpoint.post("/v1/chat/completions", {**body, **options}, timeout=target.timeout)
        choice = (answer.get("choices") or [{}])[0]
        text = (choice.get("message") or {}).get("content") or ""
        if choice.get("finish_reason") == "length":
            continue
        try:
            jsonschema.validate(json.loads(text), SCHEMA)
        except (ValueError, jsonschema.ValidationError) as error:
            reason = getattr(error, "message", None) or str(error)
            raise FoundWrong(f"not what the schema asks for: {preview(text)} ({reason})", code="json") from error
        return preview(json.dumps(json.loads(text)))
    raise FoundWrong("three answers of up to 300 tokens and none came to its end", code="json")


def speculation(target: Target) -> str:
    """Drafts are counted while the server generates, or are not, as the values say."""
    before = target.counters()
    for prompt in PROMPTS:
        target.complete(prompt, ANSWER_TOKENS, ignore_eos=True)
    deadline = time.monotonic() + target.settle
    while True:
        seen = target.counters() - before
        if (seen.moved and seen.generated > 0) or time.monotonic() >= deadline:
            break
        time.sleep(0.2)
    target.found["counters"] = seen
    if target.speculation is False:
        if seen.moved:
            raise FoundWrong(f"speculation is off in the values, and {seen.drafts:.0f} drafts were made", code="on")
        return "off, as the values say: no draft was counted"
    if not seen.exported:
        raise FoundWrong(
            "the engine exports no counters of speculation: it runs without",
            code="off",
            fix="see speculative_config in the engine's first log lines; with --url name the engines by --metrics-url",
        )
    if not seen.moved:
        raise FoundWrong("no draft was counted while the server generated: speculation is off", code="off")
    return f"{seen.drafts:.0f} drafts, {seen.drafted:.0f} tokens drafted, {seen.accepted:.0f} accepted"


def acceptance(target: Target) -> str:
    """The rate (accepted ÷ drafted) in the generation above."""
    seen: Counters | None = target.found.get("counters")
    if seen is None or seen.acceptance_rate is None:
        raise FoundWrong("nothing was drafted, so there is no acceptance", code="off")
    positions = " ".join(f"{value:.2f}" for value in seen.acceptance_by_position)
    detail = f"{seen.acceptance_rate:.2f}; by position {positions or 'unknown'}"
    if seen.acceptance_rate < target.min_acceptance:
        raise FoundWrong(f"{detail}: below {target.min_acceptance:.2f}", code="acceptance",
                         fix="a draft of another model or revision, or a wrong tokenizer, does this")  # fmt: skip
    return detail


def preview(text: str, width: int = 48) -> str:
    """The beginning of a text, printable, in one line."""
    clean = json.dumps(text, ensure_ascii=False)[1:-1]
    return f'"{clean[:width]}{"…" if len(clean) > width else ""}"'


CHECKS: tuple[Callable[[Target], str], ...] = (
    health, served_model, completion, streamed_chat, long_prompt, json_schema, speculation, acceptance,
)  # fmt: skip
# When one of these fails, all that follow would only repeat its message.
NEEDED_BY_ALL = (health, served_model)


def run(target: Target) -> Iterator[Check]:
    """The checks in order, each as it ends. Never raises for a server that is wrong: that is a check that failed."""
    broken: str | None = None
    for check in CHECKS:
        name = check.__name__.replace("_", " ")
        if check is acceptance and target.speculation is False:
            continue
        if broken:
            yield Check(name, False, f"not run: {broken} failed", 0.0)
            continue
        begin = time.perf_counter()
        try:
            ok, detail = True, check(target)
        except FoundWrong as error:
            ok, detail = False, error.message + (f" ({error.fix})" if error.fix else "")
        yield Check(name, ok, detail, round(time.perf_counter() - begin, 2))
        if not ok and check in NEEDED_BY_ALL:
            broken = name


def joined(documents: list[Json]) -> Json:
    """Several targets' documents as one: a check's name then begins with the target's."""
    if len(documents) == 1:
        return documents[0]
    checks = [
        {**check, "name": f"{document['target']}: {check['name']}"}
        for document in documents
        for check in document["checks"]
    ]
    ok = all(document["ok"] for document in documents)
    return {"schema_version": 1, "ok": ok, "checks": checks, "targets": documents}


def as_dict(target: Target, checks: list[Check]) -> Json:
    """The JSON form of a smoke test."""
    seen: Counters | None = target.found.get("counters")
    return {
        "schema_version": 1,
        "ok": all(check.ok for check in checks),
        "target": target.endpoint.label,
        "model": target.model,
        "speculation": target.speculation,
        "checks": [asdict(check) for check in checks],
        "drafts": seen.drafts if seen else None,
        "acceptance_rate": seen.acceptance_rate if seen else None,
        "acceptance_by_position": seen.acceptance_by_position if seen else [],
    }
