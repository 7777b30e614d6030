"""SD131, SD134 and SD141: the engine's environment variables against its version (variables.yaml)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

from specdec import facts
from specdec.errors import nearest
from specdec.manifests import EngineWorkload
from specdec.objects import Path, sequence
from specdec.rules.model import REMOVED, Edit, Problem, Severity, each_engine, rule

ENVS = "vllm/envs.py: environment_variables"
# What took a variable's place. The others are simply gone, or not there yet.
INSTEAD = {
    "VLLM_ATTENTION_BACKEND": "--attention-backend with the same name",
    "VLLM_FLASH_ATTN_VERSION": "--attention-config.flash_attn_version",
    "VLLM_TORCH_PROFILER_DIR": "--profiler-config",
}
TAKE_AWAY = "take it away"
# Of plugins and of Kubernetes, which vLLM itself does not know.
NOT_OURS = ("VLLM_ASCEND_", "VLLM_GAUDI_", "VLLM_HPU_", "VLLM_NEURON_", "VLLM_SPYRE_", "VLLM_TT_", "VLLM_SERVICE_")


@cache
def variables() -> dict[str, Any]:
    """The first version of each variable, or that and the first that no longer has it."""
    return dict(facts.load(facts.files_dir() / "variables.yaml")["variables"])


def variable_path(engine: EngineWorkload, name: str) -> Path:
    """Where that variable of the container stands."""
    for index, variable in enumerate(sequence(engine.container.get("env"))):
        if isinstance(variable, dict) and variable.get("name") == name:
            return (*engine.container_path, "env", index)
    return (*engine.container_path, "env")


def _named(engine: EngineWorkload) -> list[str]:
    return [name for name in engine.env if name.startswith("VLLM_") and not name.startswith(NOT_OURS)]


@rule(
    "SD131",
    "variable-without-effect",
    Severity.warning,
    reason="The engine reads its variables by name and goes on without a word about those that it does not know. One "
    "that its version no longer reads, or does not read yet, changes nothing while everyone believes that it does.",
    fix=TAKE_AWAY,
    source=f"{ENVS}; aws/sagemaker-python-sdk#6143",
    bad="""
containers:
  - env: [{name: VLLM_ATTENTION_BACKEND, value: FLASH_ATTN}]
""",
    good="""
containers:
  - args: [/models/target, --shutdown-timeout=60, --attention-backend=FLASH_ATTN]
""",
)
@each_engine
def variable_without_effect(engine: EngineWorkload) -> Iterator[Problem]:
    for name in _named(engine):
        bounds = variables().get(name)
        if bounds is None or engine.engine_version is None:
            continue
        first, gone = bounds if isinstance(bounds, list) else (bounds, None)
        row = {"from": first} | ({"before": gone} if gone else {})
        known = facts.version_of_tag(engine.engine_version)
        if known is None or facts.in_range([row], engine.engine_version):
            continue
        since = f"; it did before {gone}" if gone else f"; it does from {first} on"
        path = variable_path(engine, name)
        edits = (Edit(path, REMOVED),) if name not in INSTEAD and isinstance(path[-1], int) else ()
        message = f"vLLM {engine.engine_version} does not read {name}{since}"
        yield Problem(engine.manifest, path, message, INSTEAD.get(name, TAKE_AWAY), edits)


@rule(
    "SD134",
    "variable-misspelt",
    Severity.warning,
    reason="No version of the engine reads a variable of this name, and one with nearly this name exists. A typo in a "
    "variable is silent: the engine runs with its default.",
    fix="the variable's right name",
    source=ENVS,
    bad="""
containers:
  - env: [{name: VLLM_LOGGING_LEVELS, value: DEBUG}]
""",
    good="""
containers:
  - env: [{name: VLLM_LOGGING_LEVEL, value: DEBUG}]
""",
)
@each_engine
def variable_misspelt(engine: EngineWorkload) -> Iterator[Problem]:
    for name in _named(engine):
        guess = _near(name)
        if guess:
            path = variable_path(engine, name)
            yield Problem(engine.manifest, path, f"vLLM reads no {name}", f"did you mean {guess}?")


@cache
def _near(name: str) -> str | None:
    if name in variables():
        return None
    guess = nearest(name, variables())
    # A name that only shares a prefix is a variable of somebody else's.
    return guess if guess and abs(len(guess) - len(name)) <= 3 and guess[:10] == name[:10] else None


# Names under which other servers and older images take speculation: SageMaker's and DJL's OPTION_, TGI, scripts.
ASKS_FOR_DRAFTS = re.compile(r"(^|_)(SPECULATIVE|SPEC_DECODE|SPEC_DECODING|DRAFT_MODEL|SPECULATE)(_|$)")


@rule(
    "SD141",
    "speculation-in-a-variable",
    Severity.warning,
    reason="vLLM is told of speculation by its arguments alone. A variable that asks for it, and that nothing puts "
    "into the arguments, is passed over without a word: the engine serves, and speculation is off.",
    fix="--speculative-config in the arguments, or $(NAME) there in place of its value",
    source="aws/sagemaker-python-sdk#6143; vllm/engine/arg_utils.py",
    bad="""
containers:
  - env: [{name: SPECULATIVE_CONFIG, value: '{"method": "ngram", "num_speculative_tokens": 3}'}]
""",
    good="""
containers:
  - args: [/models/target, --shutdown-timeout=60, --speculative-config, $(SPECULATIVE_CONFIG)]
    env: [{name: SPECULATIVE_CONFIG, value: '{"method": "ngram", "num_speculative_tokens": 3}'}]
""",
)
@each_engine
def speculation_in_a_variable(engine: EngineWorkload) -> Iterator[Problem]:
    written = " ".join(str(word) for part in ("command", "args") for word in sequence(engine.container.get(part)))
    for name, value in engine.env.items():
        asks = ASKS_FOR_DRAFTS.search(name) and name not in variables()
        if asks and name not in written and engine.args.speculative is None and value not in ("", "0", "false"):
            message = f"{name} asks for speculation, and no argument does"
            yield Problem(engine.manifest, variable_path(engine, name), message)
