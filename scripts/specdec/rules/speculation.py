"""SD110 to SD118: what --speculative-config asks for, against the version and the rest of the arguments."""

from __future__ import annotations

from collections.abc import Iterator

from specdec import facts
from specdec.engine_args import JSON_FLAG, LEGACY_FLAGS, SHORT_FLAGS, SpeculativeArgs
from specdec.errors import nearest
from specdec.facts import version_key
from specdec.manifests import EngineWorkload
from specdec.objects import Path
from specdec.rules.changes import renamed_field, without_field
from specdec.rules.configs import method_is_certain
from specdec.rules.model import Problem, Severity, each_engine, rule
from specdec.rules.versions import anywhere, has, known, limit, not_run, without_effect

CONFIG = "vllm/config/speculative.py"
# Methods whose checkpoints state no n_predict: the engine has nothing to take K from.
NO_NUMBER_OF_THEIR_OWN = ("ngram", "ngram_gpu", "draft_model", "eagle", "eagle3")
# An older version's literal of methods is a hint to type checkers and not what its code compares with.
LITERAL_HOLDS_FROM = version_key("0.9.2")


def example(config: str, *more: str, version: str = "0.32.0", gpus: int = 1) -> str:
    """The part of a pod's spec with that speculative config."""
    flags = [*more, *(["--shutdown-timeout=60"] if version == "0.32.0" else [])]
    lines = "".join(f"\n      - {flag}" for flag in flags)
    return f"""
containers:
  - image: vllm/vllm-openai:v{version}
    args:
      - /models/target{lines}
      - --speculative-config
      - '{config}'
    resources: {{limits: {{nvidia.com/gpu: "{gpus}"}}}}
"""


def speculation(engine: EngineWorkload) -> SpeculativeArgs | None:
    """What was asked for, None where it could not be read (SD103 says that)."""
    broken = any(error.startswith(JSON_FLAG) for error in engine.args.errors)
    return None if broken else engine.args.speculative


def place(engine: EngineWorkload, field: str) -> Path:
    """Where that field was given."""
    flags = (f"{JSON_FLAG}.{field}", SHORT_FLAGS.get(field, ""), LEGACY_FLAGS.get(field, ""), JSON_FLAG)
    return engine.path_of(next((flag for flag in flags if flag in engine.args.index), JSON_FLAG))


def methods_without_model() -> set[str]:
    """Methods whose draft needs no checkpoint of its own."""
    return {name for name, row in facts.engines().get("methods", {}).items() if not row.get("needsModel")}


@rule(
    "SD110",
    "number-of-speculative-tokens",
    Severity.error,
    reason="K has to be a whole number above 0. Without it the engine starts only when the draft's own configuration "
    "gives a number (MTP, some heads), or for suffix decoding.",
    fix='"num_speculative_tokens": 3',
    source=CONFIG,
    bad=example('{"method": "ngram", "num_speculative_tokens": 0}'),
    good=example('{"method": "ngram", "num_speculative_tokens": 3}'),
)
@each_engine
def number_of_speculative_tokens(engine: EngineWorkload) -> Iterator[Problem]:
    asked = speculation(engine)
    if asked is None:
        return
    given, number = asked.raw.get("num_speculative_tokens"), asked.num_speculative_tokens
    if given is None:
        # A draft that was named without a method may be a head that states its own number.
        if asked.method in NO_NUMBER_OF_THEIR_OWN and (asked.method_given or asked.method == "ngram"):
            message = f"num_speculative_tokens is missing, and {asked.method} has no default"
            yield Problem(engine.manifest, place(engine, "num_speculative_tokens"), message)
    elif number is None or number <= 0:
        message = f"num_speculative_tokens is {given!r}, not a whole number above 0"
        fix = "take speculation out of the arguments to switch it off" if given == 0 else None
        yield Problem(engine.manifest, place(engine, "num_speculative_tokens"), message, fix)


@rule(
    "SD111",
    "unknown-speculative-field",
    Severity.error,
    reason="SpeculativeConfig refuses a field that it does not have. Names inside the JSON differ from those of the "
    "old flags, and come and go with versions.",
    fix="use the fields of the version that the image has",
    source="vllm-project/vllm#24888, #35573",
    bad=example('{"method": "ngram", "num_speculative_tokens": 3, "ngram_prompt_lookup_max": 4}'),
    good=example('{"method": "ngram", "num_speculative_tokens": 3, "prompt_lookup_max": 4}'),
)
@each_engine
def unknown_speculative_field(engine: EngineWorkload) -> Iterator[Problem]:
    asked = speculation(engine)
    if asked is None or asked.legacy:
        return
    version = engine.engine_version
    for written in asked.raw:
        name = str(written)
        message = None
        if has("fields", name, version) is False:
            message = f"vLLM {version} knows no field {written!r} of the speculative config"
        elif version is None and name not in anywhere("fields"):
            message = f"no vLLM knows a field {written!r} of the speculative config"
        elif name == "tensor_parallel_size":
            message = "the speculative config refuses 'tensor_parallel_size'"
        if message is None:
            continue
        names = known("fields", version) or anywhere("fields")
        guess = next((old for old in names if name.endswith(old)), None) or nearest(name, names)
        guess = "draft_tensor_parallel_size" if name == "tensor_parallel_size" else guess
        fix = f"did you mean {guess}?" if guess else f"known: {', '.join(sorted(names))}"
        # The old flag's name with its prefix, or the target's word for it: what was meant is certain.
        certain = guess and (name.endswith(guess) or name == "tensor_parallel_size")
        edits = renamed_field(engine, str(written), guess) if certain and guess else ()
        yield Problem(engine.manifest, place(engine, str(written)), message, fix, edits)


@rule(
    "SD112",
    "unknown-method",
    Severity.error,
    reason="The engine compares the method with the names that its version has, and refuses any other.",
    fix="a method of the version that the image has",
    source=CONFIG,
    bad=example('{"method": "eagle-3", "model": "/models/head", "num_speculative_tokens": 3}'),
    good=example('{"method": "eagle3", "model": "/models/head", "num_speculative_tokens": 3}'),
)
@each_engine
def unknown_method(engine: EngineWorkload) -> Iterator[Problem]:
    asked = speculation(engine)
    if asked is None or not asked.method_given or asked.method == "[ngram]":
        return
    version = engine.engine_version
    nowhere = asked.method not in anywhere("methods")
    missing = has("methods", asked.method, version) is False and version_key(str(version)) >= LITERAL_HOLDS_FROM
    if not nowhere and not missing:
        return
    names = known("methods", version) or anywhere("methods")
    guess = nearest(asked.method, names)
    fix = f"did you mean {guess}?" if guess else f"known: {', '.join(sorted(names))}"
    subject = f"vLLM {version} has" if missing else "there is"
    yield Problem(engine.manifest, place(engine, "method"), f"{subject} no method {asked.method!r}", fix)


@rule(
    "SD113",
    "method-does-not-run",
    Severity.error,
    reason="The version accepts the method's name and has no code for it: the engine ends at start.",
    fix="draft_model needs 0.15 or newer, or 0.9 and older; mlp_speculator 0.9 and older; eagle3 runs from 0.9 on",
    source="vllm-project/vllm#31883, #24322",
    bad=example('{"method": "draft_model", "model": "/models/draft", "num_speculative_tokens": 5}', version="0.13.0"),
    good=example('{"method": "draft_model", "model": "/models/draft", "num_speculative_tokens": 5}'),
)
@each_engine
def method_does_not_run(engine: EngineWorkload) -> Iterator[Problem]:
    asked = speculation(engine)
    # Without a method the engine may still find a head's method in its configuration.
    if asked is None or not method_is_certain(engine):
        return
    does = not_run(asked.method, engine.engine_version)
    if does:
        message = f"vLLM {engine.engine_version} {does} on method {asked.method}"
        yield Problem(engine.manifest, place(engine, "method"), message)


@rule(
    "SD114",
    "draft-tensor-parallel-size",
    Severity.error,
    reason="A draft's tensor parallel size can be 1 or the target's, and the engine refuses any other at start. For "
    "method draft_model it has to be the target's from 0.15 on: runner V1 refuses another, V2 shards the draft like "
    "the target whatever is written. Before 0.8 it could be 1 alone.",
    fix="leave draft_tensor_parallel_size out: the engine takes the target's",
    source="vllm/v1/spec_decode/draft_model.py; vllm-project/vllm#31345",
    bad=example(
        '{"method": "draft_model", "model": "/m", "num_speculative_tokens": 5, "draft_tensor_parallel_size": 1}',
        "--tensor-parallel-size=4",
        gpus=4,
    ),
    good=example(
        '{"method": "draft_model", "model": "/m", "num_speculative_tokens": 5, "draft_tensor_parallel_size": 4}',
        "--tensor-parallel-size=4",
        gpus=4,
    ),
)
@each_engine
def draft_tensor_parallel_size(engine: EngineWorkload) -> Iterator[Problem]:
    asked = speculation(engine)
    if asked is None or asked.draft_tensor_parallel_size is None:
        return
    target = engine.args.tensor_parallel_size
    for row in limit("draftTensorParallelSize", engine.engine_version):
        # A model without a method may be a head, whose own configuration decides; the wider row holds for it.
        exact = method_is_certain(engine) and row["methods"] != "*" and asked.method in row["methods"]
        if row["methods"] != "*" and not exact:
            continue
        allowed = sorted({target if size == "target" else size for size in row["allowed"]})
        if asked.draft_tensor_parallel_size not in allowed:
            sizes = " or ".join(str(size) for size in allowed)
            message = f"the draft's tensor parallel size is {asked.draft_tensor_parallel_size}; here it can be {sizes}"
            edits = without_field(engine, "draft_tensor_parallel_size")
            yield Problem(engine.manifest, place(engine, "draft_tensor_parallel_size"), message, None, edits)
        return


@rule(
    "SD115",
    "speculation-with-pipeline-parallel",
    Severity.error,
    reason="Speculation with pipeline parallelism is refused by most versions, and where it starts it has given wrong "
    "text.",
    fix="--pipeline-parallel-size 1 and a larger tensor parallel size, or no speculation",
    source="vllm-project/vllm#14117, #49355, #57755",
    bad=example('{"method": "ngram", "num_speculative_tokens": 3}', "--pipeline-parallel-size=2", gpus=2),
    good=example('{"method": "ngram", "num_speculative_tokens": 3}', "--tensor-parallel-size=2", gpus=2),
)
@each_engine
def speculation_with_pipeline_parallel(engine: EngineWorkload) -> Iterator[Problem]:
    stages = engine.args.pipeline_parallel_size
    refused = any(row.get("allowed") is False for row in limit("pipelineParallel", engine.engine_version))
    if engine.args.speculative and stages > 1 and refused:
        path = engine.path_of("--pipeline-parallel-size")
        yield Problem(engine.manifest, path, f"speculation over {stages} pipeline stages")


@rule(
    "SD116",
    "field-without-effect",
    Severity.error,
    reason="The version takes the field and does nothing with it: what it was set for does not happen, and nothing "
    "says so.",
    fix="leave it out; num_speculative_tokens_per_batch_size does this from 0.24 on",
    source="vllm-project/vllm#35060",
    bad=example('{"method": "ngram", "num_speculative_tokens": 3, "disable_by_batch_size": 32}', version="0.14.0"),
    good=example('{"method": "ngram", "num_speculative_tokens": 3}', version="0.14.0"),
)
@each_engine
def field_without_effect(engine: EngineWorkload) -> Iterator[Problem]:
    asked = speculation(engine)
    for field in asked.raw if asked else {}:
        if does := without_effect(str(field), engine.engine_version):
            message = f"{field} {does} in vLLM {engine.engine_version}"
            edits = without_field(engine, str(field))
            yield Problem(engine.manifest, place(engine, str(field)), message, None, edits)


@rule(
    "SD117",
    "draft-missing",
    Severity.error,
    reason="The method proposes with a model or a head of its own, and none is named: the engine ends with "
    "`num_speculative_tokens was provided but without speculative model`.",
    fix='"model": the draft model or head',
    source=CONFIG,
    bad=example('{"method": "eagle3", "num_speculative_tokens": 3}'),
    good=example('{"method": "eagle3", "model": "/models/head", "num_speculative_tokens": 3}'),
)
@each_engine
def draft_missing(engine: EngineWorkload) -> Iterator[Problem]:
    asked = speculation(engine)
    if asked is None or asked.model is not None:
        return
    needs = facts.engines().get("methods", {}).get(asked.method, {}).get("needsModel")
    if needs:
        yield Problem(engine.manifest, place(engine, "method"), f"method {asked.method} without a model")


@rule(
    "SD118",
    "speculation-given-twice",
    Severity.error,
    reason="--spec-method, --spec-model and --spec-tokens write into the same object as --speculative-config, and the "
    "engine refuses a field that both give.",
    fix=f"{JSON_FLAG} alone",
    source=f"{CONFIG}; vllm/engine/arg_utils.py: create_speculative_config",
    bad=example('{"method": "ngram", "num_speculative_tokens": 3}', "--spec-tokens=4"),
    good=example('{"method": "ngram", "num_speculative_tokens": 3}'),
)
@each_engine
def speculation_given_twice(engine: EngineWorkload) -> Iterator[Problem]:
    import json

    asked = speculation(engine)
    if asked is None or not engine.args.has(JSON_FLAG):
        return
    inside = json.loads(engine.args.value(JSON_FLAG) or "{}")
    for field, flag in SHORT_FLAGS.items():
        if engine.args.has(flag) and field in inside:
            yield Problem(engine.manifest, engine.path_of(flag), f"{flag} and {JSON_FLAG} both give {field}")
