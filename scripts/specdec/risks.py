"""What is risky in an upgrade: fields that cannot change, pods that restart, engines that lose memory or clients."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from specdec.errors import SpecdecError
from specdec.manifests import EngineWorkload
from specdec.objects import Manifest, mapping
from specdec.quantities import to_bytes
from specdec.rules import check
from specdec.rules.model import Finding

Identity = tuple[str, str, str | None]

# Fields of a StatefulSet's spec that may change; the API server refuses a change of any other.
# Source: https://kubernetes.io/docs/concepts/workloads/controllers/statefulset/
STATEFUL_SET_MAY_CHANGE = {
    "replicas", "ordinals", "template", "updateStrategy", "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy", "minReadySeconds",
}  # fmt: skip
# Of a claim only its size may grow. Source: https://kubernetes.io/docs/concepts/storage/persistent-volumes/
CLAIM_MAY_CHANGE = {"resources", "volumeAttributesClassName"}
# Flags that change what a model answers, or what clients may ask, and how.
ANSWERS = {
    "--quantization": "the answers may differ",
    "--dtype": "the answers may differ",
    "--kv-cache-dtype": "the answers may differ",
    "--revision": "the weights are others",
    "--chat-template": "prompts are written otherwise",
    "--tool-call-parser": "tool calls are read otherwise",
}


def risks(
    before: Mapping[Identity, Manifest],
    after: Mapping[Identity, Manifest],
    left: Sequence[EngineWorkload],
    right: Sequence[EngineWorkload],
) -> Iterator[str]:
    """Everything that somebody should know before the upgrade, in words."""
    for key, old in before.items():
        new = after.get(key)
        if new is None:
            yield from _gone(old, after)
        elif old.kind in IMMUTABLE:
            yield from IMMUTABLE[old.kind](old, new)
    by_name = {engine.name: engine for engine in right}
    for old_engine in left:
        if old_engine.name not in by_name:
            yield f"engine {old_engine.name} is removed"
        else:
            yield from _engine(old_engine, by_name[old_engine.name])


def _gone(old: Manifest, after: Mapping[Identity, Manifest]) -> Iterator[str]:
    if old.kind == "PersistentVolumeClaim":
        yield f"{old.resource} is deleted, and with it what it holds unless its class keeps it"
    same = next((kind for kind, name, namespace in after if (name, namespace) == (old.name, old.namespace)), None)
    if old.kind in ("StatefulSet", "Deployment") and same in ("StatefulSet", "Deployment"):
        yield f"{old.resource} becomes a {same}: its pods stop before the others are Ready"


def _stateful_set(old: Manifest, new: Manifest) -> Iterator[str]:
    left, right = mapping(old.data.get("spec")), mapping(new.data.get("spec"))
    for name in sorted({*left, *right} - STATEFUL_SET_MAY_CHANGE):
        if left.get(name) != right.get(name):
            yield f"{old.resource}: spec.{name} of a StatefulSet cannot change; the upgrade is refused"


def _deployment(old: Manifest, new: Manifest) -> Iterator[str]:
    if old.get("spec.selector") != new.get("spec.selector"):
        yield f"{old.resource}: spec.selector cannot change; the upgrade is refused"


def _claim(old: Manifest, new: Manifest) -> Iterator[str]:
    left, right = mapping(old.data.get("spec")), mapping(new.data.get("spec"))
    for name in sorted({*left, *right} - CLAIM_MAY_CHANGE):
        if left.get(name) != right.get(name):
            yield f"{old.resource}: spec.{name} of a claim cannot change; the upgrade is refused"
    sizes = [to_bytes(manifest.get("spec.resources.requests.storage")) for manifest in (old, new)]
    if sizes[0] and sizes[1] and sizes[1] < sizes[0]:
        yield f"{old.resource}: a claim cannot shrink; the upgrade is refused"


def _service(old: Manifest, new: Manifest) -> Iterator[str]:
    if (old.get("spec.clusterIP") == "None") != (new.get("spec.clusterIP") == "None"):
        yield f"{old.resource}: spec.clusterIP cannot change; the upgrade is refused"
    if old.get("spec.selector") != new.get("spec.selector"):
        yield f"{old.resource}: other pods get its requests"
    if old.get("spec.ports") != new.get("spec.ports"):
        yield f"{old.resource}: its ports change, and clients that have them written down do not"


def _job(old: Manifest, new: Manifest) -> Iterator[str]:
    if old.get("spec.template") != new.get("spec.template"):
        yield f"{old.resource}: spec.template of a Job cannot change; the upgrade is refused"


def _fixed(old: Manifest, new: Manifest) -> Iterator[str]:
    changes = any(old.data.get(key) != new.data.get(key) for key in ("data", "stringData", "binaryData"))
    if old.data.get("immutable") is True and changes:
        yield f"{old.resource} is immutable; the upgrade is refused"
    if old.kind == "Secret" and old.data.get("type", "Opaque") != new.data.get("type", "Opaque"):
        yield f"{old.resource}: the type of a Secret cannot change; the upgrade is refused"


IMMUTABLE = {
    "StatefulSet": _stateful_set,
    "Deployment": _deployment,
    "PersistentVolumeClaim": _claim,
    "Service": _service,
    "Job": _job,
    "ConfigMap": _fixed,
    "Secret": _fixed,
}


def _engine(old: EngineWorkload, new: EngineWorkload) -> Iterator[str]:
    who = f"engine {old.name}"
    template = (*old.path[:-1],) if old.path[-1] == "spec" else old.path
    if old.manifest.get(template) != new.manifest.get(template):
        yield f"{who}: its {new.replicas} pods restart and load their weights again"
    if old.engine_version != new.engine_version:
        yield f"{who}: vLLM {old.engine_version} becomes {new.engine_version}, plan it again"
    if old.args.model != new.args.model:
        yield f"{who}: clients get another model, {new.args.model} for {old.args.model}"
    lost = set(_served(old)) - set(_served(new))
    if lost and old.args.model == new.args.model:
        yield f"{who}: clients that ask for {', '.join(sorted(lost))} get 404"
    if new.replicas < old.replicas:
        yield f"{who}: {old.replicas} replicas become {new.replicas}"
    yield from _sizes(who, old, new)
    yield from _speculation(who, old, new)
    for flag, meaning in ANSWERS.items():
        was, becomes = old.args.value(flag), new.args.value(flag)
        if was != becomes and old.args.model == new.args.model:
            yield f"{who}: {flag} {was or '(none)'} becomes {becomes or '(none)'}: {meaning}"


def _served(engine: EngineWorkload) -> list[str]:
    return engine.args.served_model_names or [engine.args.model or ""]


def _sizes(who: str, old: EngineWorkload, new: EngineWorkload) -> Iterator[str]:
    sizes = [(a.tensor_parallel_size, a.pipeline_parallel_size, a.data_parallel_size) for a in (old.args, new.args)]
    if sizes[0] != sizes[1]:
        shown = " becomes ".join("TP {} x PP {} x DP {}".format(*size) for size in sizes)
        yield f"{who}: {shown}; each of its {new.replicas} pods needs {new.gpus} GPUs where it had {old.gpus}"
    elif new.gpus != old.gpus:
        yield f"{who}: each of its {new.replicas} pods needs {new.gpus} GPUs where it had {old.gpus}"
    shorter, longer = new.args.max_model_len, old.args.max_model_len
    if shorter and longer and shorter < longer:
        yield f"{who}: requests of more than {shorter} tokens are refused; up to {longer} were answered"


def _speculation(who: str, old: EngineWorkload, new: EngineWorkload) -> Iterator[str]:
    left, right = old.args.speculative, new.args.speculative
    if left and not right:
        yield f"{who}: speculation goes off"
    elif right and not left:
        yield f"{who}: speculation goes on ({right.method}), and the draft takes memory from the KV cache"
    elif left and right:
        if (left.method, left.model) != (right.method, right.model):
            named = [f"{given.method} {given.model or ''}".strip() for given in (left, right)]
            yield f"{who}: drafts come from {named[1]} and no longer from {named[0]}; measure acceptance again"
        k = [given.num_speculative_tokens for given in (left, right)]
        if k[0] and k[1] and k[1] > k[0]:
            yield f"{who}: K {k[0]} becomes {k[1]}: later positions are accepted less, and a full batch gets slower"


@dataclass(frozen=True)
class Memory:
    """KV cache of one engine by the planner, tokens; None where it cannot be planned."""

    engine: str
    old_tokens: int | None
    new_tokens: int | None


def memory_changes(left: Sequence[EngineWorkload], right: Sequence[EngineWorkload]) -> Iterator[Memory]:
    """Engines whose KV cache becomes another."""
    after = {engine.name: engine for engine in right}
    for old in left:
        if old.name in after:
            tokens = _tokens(old), _tokens(after[old.name])
            if tokens[0] != tokens[1]:
                yield Memory(old.name, *tokens)


def _tokens(engine: EngineWorkload) -> int | None:
    from specdec.plan import memory
    from specdec.plan.workloads import plan_input
    from specdec.rules.configs import known_to_the_planner

    with suppress(SpecdecError):
        if known_to_the_planner(engine):
            return memory.plan(plan_input(engine).setup).kv_cache_tokens
    return None


def new_findings(before: Sequence[Manifest], after: Sequence[Manifest]) -> list[Finding]:
    """What the rules find after the change and did not find before it."""
    known = {(found.code, found.resource, found.message) for found in check(before)}
    return [found for found in check(after) if (found.code, found.resource, found.message) not in known]
