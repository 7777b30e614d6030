"""SD10x and SD30x: the engine's arguments by themselves, and against its version."""

from __future__ import annotations

import re
from collections.abc import Iterator

from specdec import engine_args
from specdec.engine_args import JSON_FLAG
from specdec.manifests import EngineWorkload
from specdec.rules.changes import replace_flags, set_value
from specdec.rules.model import Problem, Severity, each_engine, rule
from specdec.rules.versions import has, nearest_name, versions_with


def not_yet_known(text: str) -> bool:
    """Whether Kubernetes, a shell or a template puts something into it: $(NAME), $NAME, ${NAME}, {{ .Name }}."""
    return bool(re.search(r"\$[\w({]|\{\{", text))


SHELL_VARIABLE = re.compile(r"(?<!\\)\$\{?([A-Za-z_]\w*)\}?")
ARG_UTILS = "vllm/engine/arg_utils.py"
# Switches for what newer engines do without being told.
THE_ONLY_WAY_NOW = ("--use-v2-block-manager", "--disable-log-requests")


@rule(
    "SD101",
    "unknown-flag",
    Severity.error,
    reason="The engine's parser ends with `unrecognized arguments`, and the pod restarts for ever. Flags come and go "
    "with almost every release.",
    fix="use the flags of the version that the image has",
    source=ARG_UTILS,
    bad="""
containers:
  - image: vllm/vllm-openai:v0.32.0
    args: [/models/target, --shutdown-timeout, "60", --max-model-length, "8192"]
""",
    good="""
containers:
  - image: vllm/vllm-openai:v0.32.0
    args: [/models/target, --shutdown-timeout, "60", --max-model-len, "8192"]
""",
)
@each_engine
def unknown_flag(engine: EngineWorkload) -> Iterator[Problem]:
    version = engine.engine_version
    for flag, _ in engine.args.raw:
        name = flag.partition(".")[0]
        stem = "--" + name.removeprefix("--no-") if name.startswith("--no-") else name
        if name in engine_args.LEGACY_FLAGS.values() or re.match(r"-O\.?\d?$|-cc$|-ac$", name):
            continue
        # An unknown version decides nothing.
        missing = [has("flags", spelling, version) for spelling in {name, stem}]
        if not all(answer is False for answer in missing):
            continue
        guess = nearest_name("flags", name, version)
        others = versions_with("flags", stem)
        elsewhere = f"; vLLM has it {others}" if others else ""
        fix = f"did you mean {guess}?" if guess and not others else None
        edits = replace_flags(engine, [flag], []) if name in THE_ONLY_WAY_NOW else ()
        message = f"vLLM {version} has no flag {name}{elsewhere}"
        yield Problem(engine.manifest, engine.path_of(flag), message, fix, edits)


@rule(
    "SD102",
    "legacy-speculative-flags",
    Severity.error,
    reason="From 0.8 on speculation is one JSON object after --speculative-config. The single flags of before are "
    "refused as unrecognized arguments. Versions before 0.8 need them.",
    fix=f"{JSON_FLAG} with a JSON object, one element of args",
    source="vllm-project/vllm#24888; https://docs.vllm.ai/en/latest/features/speculative_decoding/",
    bad="""
containers:
  - image: vllm/vllm-openai:v0.32.0
    args: [/models/target, --shutdown-timeout, "60", --speculative-model, /models/draft, --num-speculative-tokens, "4"]
""",
    good="""
containers:
  - image: vllm/vllm-openai:v0.32.0
    args:
      - /models/target
      - --shutdown-timeout=60
      - --speculative-config
      - '{"method": "draft_model", "model": "/models/draft", "num_speculative_tokens": 4}'
""",
)
@each_engine
def legacy_speculative_flags(engine: EngineWorkload) -> Iterator[Problem]:
    import json

    old = [flag for flag, _ in engine.args.raw if flag in engine_args.LEGACY_FLAGS.values()]
    if not old or has("flags", JSON_FLAG, engine.engine_version) is not True:
        return
    fields = dict(engine.args.speculative.raw) if engine.args.speculative else {}
    if fields.get("model"):
        fields = {"method": engine.args.speculative.method if engine.args.speculative else "draft_model"} | fields
    message = f"vLLM {engine.engine_version} has no {', '.join(old)}"
    edits = () if engine.args.has(JSON_FLAG) else replace_flags(engine, old, [JSON_FLAG, json.dumps(fields)])
    fix = f"{JSON_FLAG} '{json.dumps(fields)}'"
    yield Problem(engine.manifest, engine.path_of(old[0]), message, fix, edits if engine.args.speculative else ())


@rule(
    "SD103",
    "speculative-config-not-json",
    Severity.error,
    reason="The value of --speculative-config is parsed as JSON. Templates and shells break it: Go prints map[a:b], an "
    "extra pair of quotes becomes part of the value, a shell eats the inner ones.",
    fix="one element of args with the JSON object in it, made by toJson and not by a shell",
    source="coreweave/reference-architecture#78",
    bad="""
containers:
  - args: [/models/target, --shutdown-timeout=60, --speculative-config, "map[method:ngram num_speculative_tokens:3]"]
""",
    good="""
containers:
  - args:
      - /models/target
      - --shutdown-timeout=60
      - --speculative-config
      - '{"method": "ngram", "num_speculative_tokens": 3, "prompt_lookup_max": 4}'
""",
)
@each_engine
def speculative_config_not_json(engine: EngineWorkload) -> Iterator[Problem]:
    for error in engine.args.errors:
        if error.startswith(JSON_FLAG) and not not_yet_known(engine.args.value(JSON_FLAG) or ""):
            value = (engine.args.value(JSON_FLAG) or "").strip()
            quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "'\"`"
            fix = "take the quotes away from inside the value" if quoted else None
            edits = set_value(engine, JSON_FLAG, value[1:-1]) if quoted and _is_json(value[1:-1]) else ()
            yield Problem(engine.manifest, engine.path_of(JSON_FLAG), error, fix, edits)


def _is_json(text: str) -> bool:
    import json

    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False


@rule(
    "SD104",
    "unreadable-argument",
    Severity.error,
    reason="The engine's parser refuses it and the pod restarts for ever.",
    fix="one element of args for each flag, and one for its value",
    source=ARG_UTILS,
    bad="""
containers:
  - args: [/models/target, --shutdown-timeout=60, --max-num-seqs, many]
""",
    good="""
containers:
  - args: [/models/target, --shutdown-timeout=60, --max-num-seqs, "128"]
""",
)
@each_engine
def unreadable_argument(engine: EngineWorkload) -> Iterator[Problem]:
    for error in engine.args.errors:
        flag = error.split(" ", 1)[0]
        # What is left over after a flag that we do not know may belong to that flag.
        if not error.startswith(JSON_FLAG) and "belongs to no flag" not in error and not not_yet_known(error):
            yield Problem(engine.manifest, engine.path_of(flag), error)


@rule(
    "SD105",
    "variable-left-in-argument",
    Severity.error,
    reason="Kubernetes replaces $(NAME) in arguments by a variable of the same container. Where there is none it "
    "leaves the text as it is, and the engine gets it. $NAME is a shell's, and not in single quotes.",
    fix="set the variable with env, or write $$(NAME) where the text is meant",
    source="https://kubernetes.io/docs/tasks/inject-data-application/define-command-argument-container/",
    bad="""
containers:
  - args: [/models/target, --shutdown-timeout=60, --max-model-len, $(MAX_LEN)]
""",
    good="""
containers:
  - args: [/models/target, --shutdown-timeout=60, --max-model-len, $(MAX_LEN)]
    env: [{name: MAX_LEN, value: "8192"}]
""",
)
@each_engine
def variable_left_in_argument(engine: EngineWorkload) -> Iterator[Problem]:
    if engine_args.shell_script(engine.argv) is not None:
        yield from _kept_by_quotes(engine)
        return
    if engine.container.get("envFrom"):
        return
    for part in ("command", "args"):
        words = engine.container.get(part)
        for index, word in enumerate(words if isinstance(words, list) else []):
            text = str(word).replace("$$", "")
            for name in re.findall(r"\$\(([A-Za-z_][\w.-]*)\)", text):
                if name not in engine.env:
                    path = (*engine.container_path, part, index)
                    yield Problem(engine.manifest, path, f"$({name}) is not a variable of the container")
            for name in SHELL_VARIABLE.findall(text):
                if name in engine.env:
                    path = (*engine.container_path, part, index)
                    message = f"${name} is text to the engine: without a shell only $({name}) is replaced"
                    yield Problem(engine.manifest, path, message, f"$({name})")


def _kept_by_quotes(engine: EngineWorkload) -> Iterator[Problem]:
    """Variables whose values are known and that are still there: nothing but single quotes keeps them from a shell."""
    for flag, value in engine.args.raw:
        for name in SHELL_VARIABLE.findall(value or ""):
            if engine.env.get(name) is not None:
                message = f"${name} stands in single quotes, where the shell leaves it as it is"
                fix = f"end the quotes before it: '...'\"${name}\"'...', or take the shell away and write $({name})"
                yield Problem(engine.manifest, engine.path_of(flag), message, fix)


@rule(
    "SD106",
    "engine-version-unknown",
    Severity.warning,
    reason="The image's tag does not say which vLLM it holds, so nobody can check the arguments against it, and what "
    "runs may change under the same manifest.",
    fix="a tag with a version, the annotation vllm-speculative/engine-version, or --engine-version",
    source=ARG_UTILS,
    bad="""
containers:
  - image: vllm/vllm-openai:latest
""",
    good="""
containers:
  - image: vllm/vllm-openai:v0.32.0
""",
)
@each_engine
def engine_version_unknown(engine: EngineWorkload) -> Iterator[Problem]:
    if engine.engine_version is None:
        message = f"{engine.image or 'no image'}: the arguments are not checked against a version"
        yield Problem(engine.manifest, (*engine.container_path, "image"), message)


@rule(
    "SD301",
    "memory-utilization-range",
    Severity.error,
    reason="The share of memory has to be above 0 and at most 1. The engine refuses anything else at start.",
    fix="--gpu-memory-utilization 0.9",
    source="vllm/config/cache.py: gpu_memory_utilization",
    bad="""
containers:
  - args: [/models/target, --shutdown-timeout=60, --gpu-memory-utilization, "92"]
""",
    good="""
containers:
  - args: [/models/target, --shutdown-timeout=60, --gpu-memory-utilization, "0.92"]
""",
)
@each_engine
def memory_utilization_range(engine: EngineWorkload) -> Iterator[Problem]:
    share = engine.args.gpu_memory_utilization
    if share is not None and not 0 < share <= 1:
        fix = f"--gpu-memory-utilization {share / 100:g}" if 1 < share <= 100 else None
        path = engine.path_of("--gpu-memory-utilization")
        edits = set_value(engine, "--gpu-memory-utilization", f"{share / 100:g}") if fix else ()
        yield Problem(engine.manifest, path, f"the share of memory is {share:g}", fix, edits)


# What has been reported to end in "out of memory", and to start one hundredth below.
LITTLE_HEADROOM = 0.97


@rule(
    "SD304",
    "little-headroom",
    Severity.warning,
    reason="The engine takes its share of the GPU's memory at start; CUDA's context, NCCL's buffers, fragments and, "
    "before 0.20, CUDA graphs are outside of it. Above 0.97 less than 2.4 of 80 GB is left for them: it may start, and "
    "end under load with `CUDA out of memory`. 0.98 has failed where 0.97 ran.",
    fix="--gpu-memory-utilization 0.92, and 0.97 at most after a load test",
    source="vllm-project/vllm#57475, #17549; https://docs.vllm.ai/en/latest/configuration/conserving_memory.html",
    bad="""
containers:
  - args: [/models/target, --shutdown-timeout=60, --gpu-memory-utilization=0.99]
""",
    good="""
containers:
  - args: [/models/target, --shutdown-timeout=60, --gpu-memory-utilization=0.92]
""",
)
@each_engine
def little_headroom(engine: EngineWorkload) -> Iterator[Problem]:
    share = engine.args.gpu_memory_utilization
    # A fixed size of the cache makes the engine ignore the share; on CPUs it is of the node's memory.
    if share is None or engine.args.kv_cache_memory_bytes or engine.accelerator == "cpu" or "cpu" in engine.image:
        return
    if LITTLE_HEADROOM < share <= 1:
        path = engine.path_of("--gpu-memory-utilization")
        yield Problem(engine.manifest, path, f"{(1 - share) * 100:.2g} % of the GPU's memory are left outside")
