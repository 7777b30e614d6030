"""Two sets of manifests side by side: what an upgrade changes in objects and arguments, and what is risky in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from specdec.manifests import EngineWorkload, Manifest, engines
from specdec.objects import Path, dotted
from specdec.risks import Identity, Memory, memory_changes, new_findings, risks
from specdec.rules.model import Finding
from specdec.rules.security import SECRET_FLAGS

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
    """findings: what the rules find in the new manifests and did not find in the old ones.
    memory: KV cache of engines where it changes, as the planner reckons it."""

    objects: list[ObjectChange]
    arguments: list[ArgumentChange]
    risks: list[str]
    findings: list[Finding] = field(default_factory=list)
    memory: list[Memory] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        shown = asdict(self)
        return shown | {"findings": [finding.as_dict() for finding in self.findings]}


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
    left, right = engines(list(before.values())), engines(list(after.values()))
    return Comparison(
        objects,
        list(_arguments(left, right)),
        list(risks(before, after, left, right)),
        new_findings(list(before.values()), list(after.values())),
        list(memory_changes(left, right)),
    )


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
