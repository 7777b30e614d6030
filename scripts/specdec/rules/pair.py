"""SD20x: whether target and draft fit together, for models that files/models.yaml knows."""

from __future__ import annotations

from collections.abc import Iterator

from specdec import facts
from specdec.errors import SpecdecError
from specdec.manifests import EngineWorkload
from specdec.objects import mapping
from specdec.rules.model import Problem, Severity, each_engine, rule
from specdec.rules.speculation import example, place, speculation


def vocabulary(model: str | None) -> int | None:
    """The padded size that the engine compares, None for a model that nobody knows."""
    try:
        config = mapping(mapping(facts.models().get(model or "")).get("config"))
    except SpecdecError:
        return None
    size = config.get("vocab_size", mapping(config.get("text_config")).get("vocab_size"))
    return size if isinstance(size, int) else None


@rule(
    "SD201",
    "vocabulary-sizes-differ",
    Severity.error,
    reason="A draft model has to have the target's vocab_size, padding included: the engine compares the numbers and "
    "ends when they differ, even where the tokenizer is the same. Equal sizes are needed, and not yet enough.",
    fix="a draft with the target's vocab_size, an EAGLE-3 head or n-gram; use_heterogeneous_vocab from 0.26 on",
    source="vllm-project/vllm#7252, #10913; vllm/config/speculative.py: verify_equal_vocab_size_if_draft_model",
    bad=example(
        '{"method": "draft_model", "model": "Qwen/Qwen2.5-0.5B-Instruct", "num_speculative_tokens": 3}',
    ).replace("/models/target", "Qwen/Qwen2.5-72B-Instruct"),
    good=example(
        '{"method": "draft_model", "model": "Qwen/Qwen2.5-7B-Instruct", "num_speculative_tokens": 3}',
    ).replace("/models/target", "Qwen/Qwen2.5-72B-Instruct"),
)
@each_engine
def vocabulary_sizes_differ(engine: EngineWorkload) -> Iterator[Problem]:
    asked = speculation(engine)
    if asked is None or asked.method != "draft_model" or asked.raw.get("use_heterogeneous_vocab") is True:
        return
    # Without a method the draft may be a head, whose vocabulary follows another rule.
    if not asked.method_given and not asked.legacy:
        return
    target, draft = vocabulary(engine.args.model), vocabulary(asked.model)
    if target is not None and draft is not None and target != draft:
        message = f"vocab_size of {engine.args.model} is {target}, of {asked.model} {draft}"
        yield Problem(engine.manifest, place(engine, "model"), message)
