"""SD202 to SD206: the configuration of a draft head against the method, the version and the target.

A head's config.json comes from --model-config, from a folder of this machine that the pod mounts, or from models.yaml.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

from specdec import facts
from specdec.errors import SpecdecError, nearest
from specdec.facts import version_key
from specdec.manifests import EngineWorkload
from specdec.objects import mapping
from specdec.rules.configs import config_of, layers
from specdec.rules.model import Problem, Severity, each_engine, rule
from specdec.rules.speculation import example, place, speculation

# Before this version the engine puts the method right by the head's configuration.
METHOD_HOLDS_FROM = version_key("0.11.0")
# From this version on the engine knows both ways to write an EAGLE-3 head's architecture.
RENAMES_FROM = version_key("0.10.2")
HEADS = ("eagle", "eagle3", "medusa", "mlp_speculator")
LLAMA, EAGLE3 = "meta-llama/Llama-3.1-8B-Instruct", "yuhuili/EAGLE3-LLaMA3.1-Instruct-8B"


def on_llama(config: str, *more: str, version: str = "0.32.0") -> str:
    """An example whose target is a model that models.yaml knows."""
    pinned = ("--revision=0e9e39f249a16976918f6564b8830bc894c89659", *more)
    return example(config, *pinned, version=version).replace("/models/target", LLAMA)


@cache
def architectures() -> dict[str, dict[str, Any]]:
    """Architectures of drafts by name, each with the versions that load it (heads.yaml)."""
    rows = facts.load(facts.files_dir() / "heads.yaml")["architectures"]
    return {str(name): dict(row) for name, row in rows.items()}


def renamed(architecture: str, method: str) -> str:
    """The name under which the engine looks a head's architecture up (transformers_utils/configs/eagle.py)."""
    if method == "eagle" and not architecture.startswith("Eagle"):
        return f"Eagle{architecture}"
    if method == "eagle3" and not (architecture.startswith("Eagle3") or architecture.endswith("Eagle3")):
        return f"Eagle3{architecture}"
    return architecture


def loads(architecture: str, version: str | None) -> bool:
    row = architectures().get(architecture)
    return bool(row and facts.in_range([row], version))


@rule(
    "SD202",
    "head-of-another-method",
    Severity.error,
    reason="A head is trained for one method. An EAGLE-3 head has other weights than an EAGLE head, and neither is a "
    "model that drafts by itself: loading one as the other ends in a KeyError or in a draft that is never accepted.",
    fix="the method that the head was trained for; leave it out and the engine reads it from the head",
    source="vllm-project/vllm#18906, vllm-project/speculators#1065",
    bad=on_llama(f'{{"method": "eagle", "model": "{EAGLE3}", "num_speculative_tokens": 3}}'),
    good=on_llama(f'{{"method": "eagle3", "model": "{EAGLE3}", "num_speculative_tokens": 3}}'),
)
@each_engine
def head_of_another_method(engine: EngineWorkload) -> Iterator[Problem]:
    from specdec.plan.heads import kind

    asked = speculation(engine)
    if asked is None or not asked.method_given or asked.method not in ("eagle", "eagle3", "medusa", "draft_model"):
        return
    config = config_of(engine, asked.model)
    trained = kind(config) if config else None
    if config and trained is None and asked.method != "draft_model" and mapping(config).get("architectures"):
        # A whole model where a head is wanted; the architecture's rule says what the engine would look for.
        return
    older = engine.engine_version is not None and _before(engine.engine_version, METHOD_HOLDS_FROM)
    if trained and trained != asked.method and not older:
        message = f"{asked.model} is an {trained} head, and the method is {asked.method}"
        yield Problem(engine.manifest, place(engine, "method"), message, f'"method": "{trained}"')


def _before(version: str, key: facts.Version) -> bool:
    try:
        return version_key(version) < key
    except SpecdecError:
        return False


@rule(
    "SD203",
    "head-architecture-unknown",
    Severity.error,
    reason="The engine loads a head by the name of its architecture. One that the version has no class for ends with "
    "`Model architectures [...] are not supported`; the original EAGLE files have to be converted first.",
    fix="a head whose architecture the version knows, or a newer version",
    source="vllm/model_executor/models/registry.py; vllm-project/vllm#24967, #8849, #11126",
    bad=on_llama('{"method": "eagle", "model": "Qwen/Qwen2.5-0.5B-Instruct", "num_speculative_tokens": 3}'),
    good=on_llama(f'{{"method": "eagle3", "model": "{EAGLE3}", "num_speculative_tokens": 3}}'),
)
@each_engine
def head_architecture_unknown(engine: EngineWorkload) -> Iterator[Problem]:
    asked = speculation(engine)
    if asked is None or asked.method not in ("eagle", "eagle3", "medusa"):
        return
    version, config = engine.engine_version, config_of(engine, asked.model) or {}
    names = config.get("architectures")
    if version is None or not isinstance(names, list) or not names or "speculators_model_type" in config:
        return
    name = renamed(str(names[0]), asked.method)
    if loads(name, version) or _before(version, RENAMES_FROM):
        return
    row = architectures().get(name)
    prefix = {"eagle": "Eagle", "eagle3": "Eagle3", "medusa": "Medusa"}[asked.method]
    known = [other for other in architectures() if loads(other, version) and other.startswith(prefix)]
    guess = None if row else nearest(name, known)
    since = f"; vLLM has it from {row['from']} on" if row and _before(version, version_key(row["from"])) else ""
    message = f"vLLM {version} has no {name}, which {asked.model} asks for{since}"
    fix = f"a head of the class {guess}" if guess else None
    if name == "EagleModel":
        fix = "convert the original EAGLE files first: vLLM names the class after the target's, EagleLlamaForCausalLM"
    yield Problem(engine.manifest, place(engine, "model"), message, fix)


@rule(
    "SD204",
    "head-reads-other-layers",
    Severity.error,
    reason="An EAGLE-3 head reads the hidden states of three of its target's layers. A layer that the target does not "
    "have is a crash at start; another number of layers than three gives the head an input of the wrong size.",
    fix="the head that was trained for this target",
    source="vllm-project/vllm#54526; vllm/v1/worker/gpu/spec_decode/eagle/eagle3_utils.py",
    bad=on_llama('{"method": "eagle3", "model": "lmsys/Qwen3-235B-A22B-EAGLE3", "num_speculative_tokens": 3}'),
    good=on_llama(f'{{"method": "eagle3", "model": "{EAGLE3}", "num_speculative_tokens": 3}}'),
)
@each_engine
def head_reads_other_layers(engine: EngineWorkload) -> Iterator[Problem]:
    asked = speculation(engine)
    if asked is None or asked.method != "eagle3":
        return
    config = config_of(engine, asked.model) or {}
    inner = mapping(config.get("eagle_config"))
    wanted = config.get("eagle_aux_hidden_state_layer_ids") or inner.get("eagle_aux_hidden_state_layer_ids")
    if not isinstance(wanted, list) or not wanted:
        return
    target = layers(config_of(engine, engine.args.model))
    beyond = [layer for layer in wanted if isinstance(layer, int) and target and layer >= target]
    if beyond:
        message = f"{asked.model} reads layer {beyond[0]}, and {engine.args.model} has {target} layers"
        yield Problem(engine.manifest, place(engine, "model"), message)
    elif len(wanted) != 3:
        message = f"{asked.model} reads {len(wanted)} layers {wanted}, where the engine gives it three"
        yield Problem(engine.manifest, place(engine, "model"), message)


@rule(
    "SD205",
    "head-is-its-target",
    Severity.error,
    reason="The head and the target are the same checkpoint: the engine loads the target's weights twice and has "
    "nothing to draft with.",
    fix='"model": the head that was trained for this target',
    source="sgl-project/sglang#36528",
    bad=example('{"method": "eagle3", "model": "/models/target", "num_speculative_tokens": 3}'),
    good=example('{"method": "eagle3", "model": "/models/head", "num_speculative_tokens": 3}'),
)
@each_engine
def head_is_its_target(engine: EngineWorkload) -> Iterator[Problem]:
    asked = speculation(engine)
    if asked and asked.method in (*HEADS, "draft_model") and asked.model and asked.model == engine.args.model:
        message = f"{asked.model} is the target and, for method {asked.method}, the draft too"
        yield Problem(engine.manifest, place(engine, "model"), message)


@rule(
    "SD206",
    "head-of-another-target",
    Severity.warning,
    reason="A head in the speculators format names the model that it was trained for. With another target it loads, "
    "and few of its tokens are accepted.",
    fix="the head of this target",
    source="vllm-project/speculators#1065; vllm-project/vllm#54526",
    bad=on_llama('{"method": "eagle3", "model": "RedHatAI/Qwen3-8B-speculator.eagle3", "num_speculative_tokens": 3}'),
    good=on_llama(f'{{"method": "eagle3", "model": "{EAGLE3}", "num_speculative_tokens": 3}}'),
)
@each_engine
def head_of_another_target(engine: EngineWorkload) -> Iterator[Problem]:
    asked = speculation(engine)
    if asked is None or asked.method not in HEADS or not engine.args.model:
        return
    config = config_of(engine, asked.model) or {}
    verifier = mapping(mapping(config.get("speculators_config")).get("verifier")).get("name_or_path")
    # Without its configuration the checkpoint's name says it: TARGET-speculator.eagle3.
    named = re.fullmatch(r"(.+)-speculator\.\w+", str(asked.model))
    verifier = verifier or (named.group(1) if named else None)
    if verifier and _tail(str(verifier)) != _tail(engine.args.model):
        message = f"{asked.model} was trained for {verifier}, and the target is {engine.args.model}"
        yield Problem(engine.manifest, place(engine, "model"), message)


def _tail(name: str) -> str:
    """The model's own name out of a path or a name of the Hub."""
    from specdec.plan.catalogue import hub_name

    last = hub_name(name).rstrip("/").rsplit("/", 1)[-1].lower()
    return re.sub(r"[-_.](fp8|awq|gptq|quantized|w\d+a\d+|int\d+)([-_.].*)?$", "", last)
