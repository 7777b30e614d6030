"""SD201 and SD302: what a known model's configuration says of its draft and of its length."""

from __future__ import annotations

from collections.abc import Iterator

from specdec.manifests import EngineWorkload
from specdec.objects import mapping
from specdec.rules.configs import config_of, method_is_certain
from specdec.rules.model import Problem, Severity, each_engine, rule
from specdec.rules.speculation import example, place, speculation

NGRAM = '{"method": "ngram", "num_speculative_tokens": 3}'


def vocabulary(engine: EngineWorkload, model: str | None) -> int | None:
    """The padded size that the engine compares, None for a model that nobody knows."""
    config = config_of(engine, model) or {}
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
    if not method_is_certain(engine):
        return
    target, draft = vocabulary(engine, engine.args.model), vocabulary(engine, asked.model)
    if target is not None and draft is not None and target != draft:
        message = f"vocab_size of {engine.args.model} is {target}, of {asked.model} {draft}"
        yield Problem(engine.manifest, place(engine, "model"), message)


LONGER = ("--hf-overrides", "--rope-scaling", "--rope-theta")


@rule(
    "SD302",
    "longer-than-the-model",
    Severity.error,
    reason="The engine compares --max-model-len with the positions that the model's configuration states, and ends "
    "when they are fewer. Where it is made to go on, answers beyond them are noise.",
    fix="--max-model-len of at most the model's positions, or its rope scaling with --hf-overrides",
    source="vllm/config/model.py: _get_and_verify_max_len",
    bad=example(NGRAM, "--max-model-len=65536").replace("/models/target", "Qwen/Qwen2.5-7B-Instruct"),
    good=example(NGRAM, "--max-model-len=32768").replace("/models/target", "Qwen/Qwen2.5-7B-Instruct"),
)
@each_engine
def longer_than_the_model(engine: EngineWorkload) -> Iterator[Problem]:
    asked, config = engine.args.max_model_len, config_of(engine, engine.args.model) or {}
    text = {**config, **mapping(config.get("text_config"))}
    known = text.get("max_position_embeddings")
    scaled = text.get("rope_scaling") or engine.args.has(*LONGER) or engine.env.get("VLLM_ALLOW_LONG_MAX_MODEL_LEN")
    if asked and isinstance(known, int) and asked > known and not scaled:
        message = f"--max-model-len is {asked}, and {engine.args.model} has {known} positions"
        yield Problem(engine.manifest, engine.path_of("--max-model-len"), message, f"--max-model-len {known}")
