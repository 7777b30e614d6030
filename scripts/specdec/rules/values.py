"""SD107 to SD109, SD130, SD132 and SD133: values of single arguments that the engine refuses or overlooks."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from specdec.engine_args import JSON_FLAG, ONE_VALUE, length
from specdec.errors import nearest
from specdec.manifests import EngineWorkload
from specdec.rules.changes import set_value
from specdec.rules.model import Problem, Severity, each_engine, rule

ARG_UTILS = "vllm/engine/arg_utils.py"
COUNTS = (
    "--tensor-parallel-size",
    "--pipeline-parallel-size",
    "--data-parallel-size",
    "--max-model-len",
    "--max-num-seqs",
    "--max-num-batched-tokens",
    "--block-size",
)


def number(engine: EngineWorkload, flag: str) -> int | None:
    """The flag's whole number, None where there is none to read (SD104 says so)."""
    try:
        return length(engine.args.value(flag) or "auto")
    except ValueError:
        return None


@rule(
    "SD107",
    "count-below-one",
    Severity.error,
    reason="Sizes and counts start at 1: the engine refuses 0 and negative numbers when it reads its configuration.",
    fix="1 or more, or leave the flag out for the engine's default",
    source="vllm/config/parallel.py, vllm/config/scheduler.py",
    bad="""
containers:
  - args: [/models/target, --shutdown-timeout=60, --max-num-seqs, "0"]
""",
    good="""
containers:
  - args: [/models/target, --shutdown-timeout=60, --max-num-seqs, "1"]
""",
)
@each_engine
def count_below_one(engine: EngineWorkload) -> Iterator[Problem]:
    for flag in COUNTS:
        value = number(engine, flag)
        if value is not None and value < 1:
            yield Problem(engine.manifest, engine.path_of(flag), f"{flag} is {value}")


@rule(
    "SD108",
    "batch-smaller-than-its-sequences",
    Severity.error,
    reason="A step has to have a token for each running sequence, and without chunked prefill a whole prompt: the "
    "engine compares --max-num-batched-tokens with --max-num-seqs, and with --max-model-len where chunked prefill is "
    "off, and ends.",
    fix="--max-num-batched-tokens of at least --max-num-seqs",
    source="vllm/config/scheduler.py: verify_max_model_len",
    bad="""
containers:
  - args: [/models/target, --shutdown-timeout=60, --max-num-seqs=512, --max-num-batched-tokens=256]
""",
    good="""
containers:
  - args: [/models/target, --shutdown-timeout=60, --max-num-seqs=512, --max-num-batched-tokens=512]
""",
)
@each_engine
def batch_smaller_than_its_sequences(engine: EngineWorkload) -> Iterator[Problem]:
    tokens = number(engine, "--max-num-batched-tokens")
    if tokens is None or tokens < 1:
        return
    path = engine.path_of("--max-num-batched-tokens")
    sequences, longest = number(engine, "--max-num-seqs"), number(engine, "--max-model-len")
    if sequences is not None and tokens < sequences:
        message = f"--max-num-batched-tokens is {tokens}, less than --max-num-seqs {sequences}"
        yield Problem(engine.manifest, path, message, f"--max-num-batched-tokens {max(sequences, 2048)}")
    elif longest is not None and tokens < longest and engine.args.has("--no-enable-chunked-prefill"):
        message = f"--max-num-batched-tokens is {tokens}, less than --max-model-len {longest}, and nothing is chunked"
        yield Problem(engine.manifest, path, message, f"--max-num-batched-tokens {longest}")


@rule(
    "SD109",
    "argument-given-twice",
    Severity.warning,
    reason="Of a flag that is given twice the engine takes the last without a word. Whoever reads or changes the first "
    "is misled: this is what typed values beside a free list of arguments end in.",
    fix="give the flag once",
    source="https://docs.python.org/3/library/argparse.html; kserve/kserve#5370",
    bad="""
containers:
  - args: [/models/target, --shutdown-timeout=60, --max-num-seqs=64, --max-num-seqs=256]
""",
    good="""
containers:
  - args: [/models/target, --shutdown-timeout=60, --max-num-seqs=256]
""",
)
@each_engine
def argument_given_twice(engine: EngineWorkload) -> Iterator[Problem]:
    given: dict[str, list[str]] = {}
    for flag, value in engine.args.raw:
        if flag in ONE_VALUE:
            given.setdefault(flag, []).append(str(value))
    for flag, values in given.items():
        if len(set(values)) > 1:
            message = f"{flag} is given as {' and as '.join(dict.fromkeys(values))}; the last one holds"
            yield Problem(engine.manifest, engine.path_of(flag), message)
    for field in _fields_twice(engine.args.value(JSON_FLAG) or ""):
        yield Problem(engine.manifest, engine.path_of(JSON_FLAG), f"{JSON_FLAG} has {field} twice; the last one holds")


def _fields_twice(text: str) -> list[str]:
    """Fields that a JSON object has more than once."""
    twice: list[str] = []

    def note(pairs: list[tuple[str, Any]]) -> None:
        names = [name for name, _ in pairs]
        twice.extend(name for name in dict.fromkeys(names) if names.count(name) > 1)

    with suppress(ValueError, RecursionError):
        json.loads(text, object_pairs_hook=note)
    return twice


# Every name of any version from 0.6.3 to 0.33. Quantisation is open to plugins, so there only a near miss is wrong.
CHOICES = {
    "--dtype": ("auto", "half", "float16", "bfloat16", "float", "float32"),
    "--kv-cache-dtype": (
        "auto", "float16", "bfloat16", "fp8", "fp8_e4m3", "fp8_e5m2", "fp8_inc", "fp8_ds_mla", "nvfp4_ds_mla", "int8",
        "turboquant_k8v4", "turboquant_4bit_nc", "turboquant_k3v4_nc", "turboquant_3bit_nc", "ultraquant_4bit",
        "int4_per_token_head", "int8_per_token_head", "fp8_per_token_head", "nvfp4", "nvfp4_4over6",
    ),
}  # fmt: skip
QUANTIZATION = (
    "awq", "auto_awq", "fp8", "fbgemm_fp8", "fp_quant", "modelopt", "modelopt_fp4", "modelopt_mxfp8", "auto_gptq",
    "gptq", "gptq_marlin", "awq_marlin", "humming", "compressed-tensors", "experts_int8", "quark", "moe_wna16",
    "torchao", "inc", "mxfp4", "bitsandbytes", "gguf", "marlin", "hqq", "aqlm", "deepspeedfp", "tpu_int8", "ipex",
)  # fmt: skip


@rule(
    "SD130",
    "no-such-type",
    Severity.error,
    reason="The engine's parser knows a fixed list of names for the types of weights and KV cache and refuses others.",
    fix="--dtype bfloat16, --kv-cache-dtype fp8, --quantization awq: the engine's own spelling",
    source="vllm/config/model.py: ModelDType; vllm/config/cache.py: CacheDType",
    bad="""
containers:
  - args: [/models/target, --shutdown-timeout=60, --dtype=bf16]
""",
    good="""
containers:
  - args: [/models/target, --shutdown-timeout=60, --dtype=bfloat16]
""",
)
@each_engine
def no_such_type(engine: EngineWorkload) -> Iterator[Problem]:
    short = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32", "f16": "float16", "f32": "float32"}
    for flag, names in CHOICES.items():
        value = engine.args.value(flag)
        if value is None or value in names or "$(" in value:
            continue
        guess = short.get(value.lower()) or nearest(value, names)
        fix = f"did you mean {guess}?" if guess else f"one of {', '.join(names[:6])}"
        edits = set_value(engine, flag, short[value.lower()]) if value.lower() in short else ()
        yield Problem(engine.manifest, engine.path_of(flag), f"{flag} {value}: there is no such type", fix, edits)
    value = engine.args.quantization
    if value and value not in QUANTIZATION and (guess := nearest(value, QUANTIZATION)) and guess.lower() != value:
        path = engine.path_of("--quantization")
        yield Problem(
            engine.manifest, path, f"--quantization {value}: there is no such format", f"did you mean {guess}?"
        )


@rule(
    "SD132",
    "tools-without-a-parser",
    Severity.error,
    reason="The API server ends at start when tools may be chosen automatically and no parser reads the model's calls.",
    fix="--tool-call-parser with the parser of the model's family: hermes, llama3_json, qwen3_coder, mistral, ...",
    source="vllm/entrypoints/openai/cli_args.py: validate_parsed_serve_args",
    bad="""
containers:
  - args: [/models/target, --shutdown-timeout=60, --enable-auto-tool-choice]
""",
    good="""
containers:
  - args: [/models/target, --shutdown-timeout=60, --enable-auto-tool-choice, --tool-call-parser=hermes]
""",
)
@each_engine
def tools_without_a_parser(engine: EngineWorkload) -> Iterator[Problem]:
    if engine.args.has("--enable-auto-tool-choice") and not engine.args.has("--tool-call-parser"):
        path = engine.path_of("--enable-auto-tool-choice")
        yield Problem(engine.manifest, path, "--enable-auto-tool-choice without --tool-call-parser")


@rule(
    "SD133",
    "two-cache-sizes",
    Severity.warning,
    reason="--kv-cache-memory-bytes fixes the KV cache, and the engine then ignores --gpu-memory-utilization: whoever "
    "turns that one wonders why nothing happens.",
    fix="one of the two",
    source="vllm/config/cache.py: kv_cache_memory_bytes",
    bad="""
containers:
  - args: [/models/target, --shutdown-timeout=60, --kv-cache-memory-bytes=20G, --gpu-memory-utilization=0.9]
""",
    good="""
containers:
  - args: [/models/target, --shutdown-timeout=60, --kv-cache-memory-bytes=20G]
""",
)
@each_engine
def two_cache_sizes(engine: EngineWorkload) -> Iterator[Problem]:
    if engine.args.kv_cache_memory_bytes and engine.args.gpu_memory_utilization is not None:
        path = engine.path_of("--gpu-memory-utilization")
        yield Problem(engine.manifest, path, "--kv-cache-memory-bytes makes --gpu-memory-utilization mean nothing")
