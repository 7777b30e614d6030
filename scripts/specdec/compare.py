"""Two sets of manifests side by side: what an upgrade changes in objects and arguments, and what is risky in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from specdec.manifests import EngineWorkload, Manifest, engines
from specdec.objects import Path, dotted, mapping
from specdec.rules.security import SECRET_FLAGS

# Fields of a StatefulSet's spec that may change; the API server refuses a change of any other.
# Source: https://kubernetes.io/docs/concepts/workloads/controllers/statefulset/
STATEFUL_SET_MAY_CHANGE = {
    "replicas", "ordinals", "template", "updateStrategy", "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy", "minReadySeconds",
}  # fmt: skip
SPECULATION = "--speculative-config"


@dataclass(frozen=True)
class Change:
    """One value of an object, None where it is not there."""

    path: str
    old: Any
    new: Any


@dataclass(frozen=True)
class ObjectChange:
    """kind of change: added, removed or changed (then with its fields)."""

    change: str
    resource: str
    fields: list[Change] = field(default_factory=list)


@dataclass(frozen=True)
class ArgumentChange:
    """One argument of an engine; a switch has the value "" and a flag that is not there None."""

    engine: str
    flag: str
    old: str | None
    new: str | None


@dataclass(frozen=True)
class Comparison:
    objects: list[ObjectChange]
    arguments: list[ArgumentChange]
    risks: list[str]

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def compare(old: Sequence[Manifest], new: Sequence[Manifest]) -> Comparison:
    """What turning `old` into `new` changes. Helm's hooks are left out: they are no part of a release."""
    before, after = _by_identity(old), _by_identity(new)
    objects = [
        *(ObjectChange("removed", gone.resource) for key, gone in before.items() if key not in after),
        *(ObjectChange("added", come.resource) for key, come in after.items() if key not in before),
        *(
            ObjectChange("changed", after[key].resource, changes)
            for key in before
            if key in after and (changes := _changes(before[key], after[key]))
        ),
    ]
    arguments = list(_arguments(engines(list(before.values())), engines(list(after.values()))))
    return Comparison(objects, arguments, list(_risks(before, after)))


Identity = tuple[str, str, str | None]


def _by_identity(manifests: Sequence[Manifest]) -> dict[Identity, Manifest]:
    return {
        (manifest.kind, manifest.name, manifest.namespace): manifest
        for manifest in manifests
        if "helm.sh/hook" not in manifest.annotations
    }


def _changes(old: Manifest, new: Manifest) -> list[Change]:
    """Field by field; of a Secret only where, never what."""
    changes = list(_differences(old.data, new.data))
    if old.kind != "Secret":
        return changes
    return [Change(change.path, _hidden(change.old), _hidden(change.new)) for change in changes]


def _hidden(value: Any) -> str | None:
    return None if value is None else "(hidden)"


def _differences(old: Any, new: Any, path: Path = ()) -> Iterator[Change]:
    if old == new:
        return
    if isinstance(old, dict) and isinstance(new, dict):
        for key in [*old, *(key for key in new if key not in old)]:
            yield from _differences(old.get(key), new.get(key), (*path, str(key)))
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, (left, right) in enumerate(zip(old, new, strict=True)):
            yield from _differences(left, right, (*path, index))
    else:
        yield Change(dotted(path), old, new)


def _arguments(old: Sequence[EngineWorkload], new: Sequence[EngineWorkload]) -> Iterator[ArgumentChange]:
    before = {engine.name: engine for engine in old}
    for engine in new:
        if engine.name not in before:
            continue
        left, right = _flags(before[engine.name]), _flags(engine)
        for flag in [*left, *(flag for flag in right if flag not in left)]:
            if left.get(flag) != right.get(flag):
                yield ArgumentChange(engine.name, flag, left.get(flag), right.get(flag))


def _flags(engine: EngineWorkload) -> dict[str, str]:
    """Arguments by flag; the fields of the speculative config each by themselves."""
    flags = {
        flag: "(hidden)" if flag in SECRET_FLAGS and value else value or ""
        for flag, value in engine.args.raw
        if flag != SPECULATION
    }
    fields = engine.args.speculative.raw if engine.args.speculative and engine.args.has(SPECULATION) else {}
    model = {"model": engine.args.model} if engine.args.model and "--model" not in flags else {}
    return {**model, **flags, **{f"{SPECULATION}.{name}": str(value) for name, value in fields.items()}}


def _risks(before: dict[Identity, Manifest], after: dict[Identity, Manifest]) -> Iterator[str]:
    for key, old in before.items():
        new = after.get(key)
        if new is None and old.kind == "PersistentVolumeClaim":
            yield f"{old.resource} is deleted, and with it what it holds unless its class keeps it"
        if new is None or old.kind != new.kind:
            continue
        if old.kind == "StatefulSet":
            yield from _stateful_set(old, new)
        elif old.kind == "Deployment" and old.get("spec.selector") != new.get("spec.selector"):
            yield f"{old.resource}: spec.selector cannot change; the upgrade is refused"
    yield from _engine_risks(engines(list(before.values())), engines(list(after.values())))


def _stateful_set(old: Manifest, new: Manifest) -> Iterator[str]:
    left, right = mapping(old.data.get("spec")), mapping(new.data.get("spec"))
    for name in sorted({*left, *right} - STATEFUL_SET_MAY_CHANGE):
        if left.get(name) != right.get(name):
            yield f"{old.resource}: spec.{name} of a StatefulSet cannot change; the upgrade is refused"


def _engine_risks(old: Sequence[EngineWorkload], new: Sequence[EngineWorkload]) -> Iterator[str]:
    after = {engine.name: engine for engine in new}
    for left in old:
        right = after.get(left.name)
        if right is None:
            yield f"engine {left.name} is removed"
            continue
        template = (*left.path[:-1],) if left.path[-1] == "spec" else left.path
        if left.manifest.get(template) != right.manifest.get(template):
            yield f"engine {left.name}: its {right.replicas} pods restart and load their weights again"
        if left.engine_version != right.engine_version:
            yield f"engine {left.name}: vLLM {left.engine_version} becomes {right.engine_version}, plan it again"
        if left.args.model != right.args.model:
            yield f"engine {left.name}: clients get another model, {right.args.model} for {left.args.model}"
        if right.replicas < left.replicas:
            yield f"engine {left.name}: {left.replicas} replicas become {right.replicas}"
        if left.args.speculative and not right.args.speculative:
            yield f"engine {left.name}: speculation goes off"
