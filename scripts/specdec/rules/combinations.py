"""SD122 to SD128: speculation together with batching, adapters, runners, schedules and lengths."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from specdec import facts
from specdec.errors import SpecdecError
from specdec.manifests import EngineWorkload
from specdec.objects import mapping, sequence
from specdec.rules.model import Problem, Severity, each_engine, rule
from specdec.rules.speculation import CONFIG, example, place, speculation
from specdec.rules.values import number
from specdec.rules.variables import variable_path
from specdec.rules.versions import limit

K_OF_PARALLEL = ("dflash", "dspark")


def slots(method: str, k: int) -> int:
    """Tokens of a step that each sequence keeps for its drafts (max_num_new_slots_for_drafting)."""
    return {"draft_model": 1}.get(method, k - 1 if method in K_OF_PARALLEL else 0)


def batching(engine: EngineWorkload) -> list[tuple[int, int]]:
    """(sequences, tokens) of a step, as given or by default: one pair for every class of GPU that it may run on."""
    from specdec.plan.defaults import batching as defaults
    from specdec.plan.gpus import accelerator_type

    version, rows = facts.version_key(engine.engine_version or ""), facts.accelerators()
    known = accelerator_type(engine.accelerator)
    kinds = [known] if known else ["h100-80gb", "h200-141gb", "l4", "a100-80gb"]
    pairs = set()
    for kind in kinds:
        gib = float(rows[kind]["memoryGiB"] or 0)
        default = defaults(version, engine.runner, kind, gib, number(engine, "--max-model-len") or 0)
        seqs, tokens = number(engine, "--max-num-seqs"), number(engine, "--max-num-batched-tokens")
        pairs.add((seqs or default.seqs, tokens or default.tokens))
    return sorted(pairs)


@rule(
    "SD122",
    "no-tokens-left-to-schedule",
    Severity.error,
    reason="From 0.17 to 0.27 the engine holds back tokens of every step for parallel drafting: slots of the method "
    "times --max-num-seqs. When that is all of --max-num-batched-tokens it ends with `max_num_scheduled_tokens is set "
    "to -1792` and names no flag. From 0.28 on it reckons otherwise.",
    fix="--max-num-batched-tokens of at least slots x --max-num-seqs + 8192, or fewer sequences",
    source="vllm-project/vllm#50708, #56025; vllm/config/vllm.py of 0.26.0",
    bad=example(
        '{"method": "dflash", "model": "/models/head", "num_speculative_tokens": 16}',
        "--max-num-seqs=256",
        "--max-num-batched-tokens=2048",
        "--shutdown-timeout=60",
        version="0.26.0",
    ),
    good=example(
        '{"method": "dflash", "model": "/models/head", "num_speculative_tokens": 16}',
        "--max-num-seqs=64",
        "--max-num-batched-tokens=12288",
        "--shutdown-timeout=60",
        version="0.26.0",
    ),
)
@each_engine
def no_tokens_left_to_schedule(engine: EngineWorkload) -> Iterator[Problem]:
    from specdec.plan.checks import SLOTS_BEFORE, SLOTS_FROM

    asked = speculation(engine)
    k = asked.num_speculative_tokens if asked else None
    if asked is None or k is None or not slots(asked.method, k):
        return
    try:
        held = SLOTS_FROM <= facts.version_key(engine.engine_version or "") < SLOTS_BEFORE
    except SpecdecError:
        return
    each = slots(asked.method, k)
    left = [(tokens - each * seqs, seqs, tokens) for seqs, tokens in batching(engine)] if held else []
    if left and all(rest <= 0 for rest, _, _ in left):
        rest, seqs, tokens = left[0]
        message = (
            f"max_num_scheduled_tokens would be {rest}: {tokens} tokens a step less {each} slots for each of "
            f"{seqs} sequences"
        )
        fix = f"--max-num-batched-tokens {each * seqs + 8192}, or --max-num-seqs {max(tokens // (each * 2), 1)}"
        yield Problem(engine.manifest, engine.path_of("--max-num-batched-tokens"), message, fix)


@rule(
    "SD123",
    "adapters-with-speculation",
    Severity.error,
    reason="Up to 0.11.0 the engine cannot run LoRA adapters and speculation together: V0 refuses it, V1 fails on the "
    "shapes of a batch with drafts in it.",
    fix="one of the two, or vLLM 0.11.1 and newer",
    source="vllm-project/vllm#4872, #6912; vllm/v1/worker/lora_model_runner_mixin.py",
    bad=example('{"method": "ngram", "num_speculative_tokens": 3}', "--enable-lora", version="0.10.2"),
    good=example('{"method": "ngram", "num_speculative_tokens": 3}', "--enable-lora"),
)
@each_engine
def adapters_with_speculation(engine: EngineWorkload) -> Iterator[Problem]:
    refused = any(row.get("allowed") is False for row in limit("lora", engine.engine_version))
    if engine.args.enable_lora and engine.args.speculative and refused:
        message = f"vLLM {engine.engine_version} cannot speculate with LoRA adapters"
        yield Problem(engine.manifest, engine.path_of("--enable-lora"), message)


@rule(
    "SD124",
    "suffix-without-its-package",
    Severity.error,
    reason="Suffix decoding imports arctic-inference, which vLLM's own image does not have: the engine ends with an "
    "ImportError.",
    fix="an image of your own with arctic-inference==0.1.1, or n-gram",
    source="vllm/config/speculative.py: _validate_suffix_decoding; vllm-project/vllm#25784",
    bad=example('{"method": "suffix"}'),
    good=example('{"method": "suffix"}').replace("vllm/vllm-openai:v", "registry.example/vllm-arctic:v"),
)
@each_engine
def suffix_without_its_package(engine: EngineWorkload) -> Iterator[Problem]:
    asked = speculation(engine)
    if asked is None or asked.method != "suffix" or "vllm/vllm-openai" not in engine.image:
        return
    around = [*engine.argv, *(str(item) for item in sequence(engine.pod_spec.get("initContainers")))]
    if any("arctic" in text for text in around) or "PYTHONPATH" in engine.env:
        return
    message = f"method suffix needs arctic-inference, which {engine.image} does not have"
    yield Problem(engine.manifest, place(engine, "method"), message)


@rule(
    "SD125",
    "runner-without-the-method",
    Severity.error,
    reason="A variable chooses the model runner, and that runner does not have the method: the engine ends with a "
    "NotImplementedError or a failed validation. Left alone it takes the runner that has it.",
    fix="take the variable away",
    source="vllm/config/vllm.py: _get_v2_model_runner_unsupported_features; intel/intel-xpu-backend-for-triton#7166",
    bad="""
containers:
  - image: vllm/vllm-openai:v0.30.0
    args:
      - /models/target
      - --shutdown-timeout=60
      - '--speculative-config={"method": "ngram", "num_speculative_tokens": 3}'
    env: [{name: VLLM_USE_V2_MODEL_RUNNER, value: "1"}]
""",
    good="""
containers:
  - image: vllm/vllm-openai:v0.30.0
    args:
      - /models/target
      - --shutdown-timeout=60
      - '--speculative-config={"method": "ngram", "num_speculative_tokens": 3}'
""",
)
@each_engine
def runner_without_the_method(engine: EngineWorkload) -> Iterator[Problem]:
    asked = speculation(engine)
    row = next(iter(facts.in_range(facts.engines().get("runners", []), engine.engine_version)), {})
    name = row.get("env")
    if asked is None or not name or engine.env.get(name) is None:
        return
    for runner, methods in mapping(row.get("only")).items():
        if asked.method in methods and engine.runner != runner:
            message = f"{name}={engine.env[name]} takes runner {engine.runner.upper()}, and {asked.method} runs on "
            message += f"{runner.upper()} alone in vLLM {engine.engine_version}"
            yield Problem(engine.manifest, variable_path(engine, name), message)


SCHEDULE = "num_speculative_tokens_per_batch_size"


def scheduled(*rows: str, k: int = 4) -> str:
    """An example with that schedule."""
    return example(f'{{"method": "ngram", "num_speculative_tokens": {k}, "{SCHEDULE}": [{", ".join(rows)}]}}')


@rule(
    "SD126",
    "schedule-ranges",
    Severity.error,
    reason="A schedule is a list of [first, last, tokens] over batch sizes: it has to begin at 1, each range has to "
    "end where it begins or later, and none may overlap another. The engine refuses others at start.",
    fix="[[1, 16, 4], [17, 64, 2]]",
    source="vllm/v1/spec_decode/dynamic/utils.py: validate_and_normalize_dynamic_sd_schedule",
    bad=scheduled("[1, 16, 4]", "[16, 64, 2]"),
    good=scheduled("[1, 16, 4]", "[17, 64, 2]"),
)
@each_engine
def schedule_ranges(engine: EngineWorkload) -> Iterator[Problem]:
    asked = speculation(engine)
    given = asked.raw.get(SCHEDULE) if asked else None
    if given is None:
        return
    wrong = _wrong_schedule(given)
    if wrong:
        yield Problem(engine.manifest, place(engine, SCHEDULE), f"{SCHEDULE}: {wrong}")


def _wrong_schedule(given: object) -> str | None:
    if not isinstance(given, list) or not given:
        return f"{given!r} is not a list of [first, last, tokens]"
    for row in given:
        whole = isinstance(row, list) and all(isinstance(x, int) and not isinstance(x, bool) for x in row)
        if not whole or len(row) != 3:
            return f"{row!r} is not [first, last, tokens]"
        if row[0] < 1 or row[0] > row[1] or row[2] < 0:
            return f"{row!r} is no range of batch sizes with a number of tokens"
    ranges = sorted(given)
    if ranges[0][0] != 1:
        return f"begins at {ranges[0][0]}, not at 1"
    for left, right in itertools.pairwise(ranges):
        if right[0] <= left[1]:
            return f"{left!r} and {right!r} overlap"
    return None


@rule(
    "SD127",
    "schedule-above-its-maximum",
    Severity.warning,
    reason="num_speculative_tokens is the most that a step drafts. A step of the schedule that asks for more is cut "
    "to it without a word.",
    fix="num_speculative_tokens of at least the schedule's greatest number",
    source="vllm/v1/spec_decode/dynamic/utils.py: build_dynamic_sd_schedule_lookup",
    bad=scheduled("[1, 16, 8]", "[17, 64, 2]"),
    good=scheduled("[1, 16, 8]", "[17, 64, 2]", k=8),
)
@each_engine
def schedule_above_its_maximum(engine: EngineWorkload) -> Iterator[Problem]:
    asked = speculation(engine)
    most = max((tokens for _, _, tokens in asked.schedule), default=0) if asked else 0
    # Another rule says of a number below 1 that it is none.
    if asked and (asked.num_speculative_tokens or 0) > 0 and most > (asked.num_speculative_tokens or 0):
        message = f"a schedule with {most} tokens where num_speculative_tokens is {asked.num_speculative_tokens}"
        yield Problem(engine.manifest, place(engine, SCHEDULE), message)


@rule(
    "SD128",
    "draft-longer-than-its-target",
    Severity.error,
    reason="The draft's max_model_len is the length up to which it drafts. The engine refuses one above the target's.",
    fix="max_model_len of the speculative config at most --max-model-len",
    source=f"{CONFIG}: _maybe_override_draft_max_model_len",
    bad=example(
        '{"method": "draft_model", "model": "/models/draft", "num_speculative_tokens": 3, "max_model_len": 16384}',
        "--max-model-len=8192",
    ),
    good=example(
        '{"method": "draft_model", "model": "/models/draft", "num_speculative_tokens": 3, "max_model_len": 4096}',
        "--max-model-len=8192",
    ),
)
@each_engine
def draft_longer_than_its_target(engine: EngineWorkload) -> Iterator[Problem]:
    asked, target = speculation(engine), engine.args.max_model_len
    if asked and asked.max_model_len and target and asked.max_model_len > target:
        message = f"the draft's max_model_len is {asked.max_model_len}, the target's {target}"
        yield Problem(engine.manifest, place(engine, "max_model_len"), message)
