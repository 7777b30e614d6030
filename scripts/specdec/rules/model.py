"""What a rule is, what it sees and what it says."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any

from specdec.manifests import EngineWorkload, Manifest, engines, pod_metadata, pod_specs
from specdec.objects import Path, mapping, sequence

if TYPE_CHECKING:
    from specdec.plan.findings import PlanFinding
    from specdec.rules.promql import Query


class Severity(StrEnum):
    """error: it does not start, loses requests or leaks a secret. warning: it may. Only an error makes the exit 1."""

    error = "error"
    warning = "warning"
    note = "note"


@dataclass(frozen=True)
class Pods:
    """The pods of one workload: the labels they get and their specification."""

    manifest: Manifest
    namespace: str | None
    labels: dict[str, Any]
    spec: dict[str, Any]


@dataclass(frozen=True)
class World:
    """Everything that was handed in together, so that rules can join objects."""

    manifests: Sequence[Manifest]
    engine_version: str | None = None

    @cached_property
    def engines(self) -> list[EngineWorkload]:
        return engines(self.manifests, self.engine_version)

    @cached_property
    def planned(self) -> list[tuple[EngineWorkload, PlanFinding]]:
        """What the planner finds in each engine whose models it knows without asking a network."""
        from specdec.plan.findings import engine_findings
        from specdec.rules.configs import known_to_the_planner

        found: list[tuple[EngineWorkload, PlanFinding]] = []
        for engine in self.engines:
            # A manifest that is no manifest (a number where a list belongs) is for other rules to call wrong.
            with suppress(AttributeError, TypeError, ValueError, KeyError, ArithmeticError):
                if known_to_the_planner(engine):
                    found += [(engine, finding) for finding in engine_findings(engine)]
        return found

    @cached_property
    def pods(self) -> list[Pods]:
        """Of every workload, engines and others."""
        return [
            Pods(manifest, manifest.namespace, mapping(pod_metadata(manifest, path).get("labels")), spec)
            for manifest in self.manifests
            for path, spec in pod_specs(manifest)
            if sequence(spec.get("containers"))
        ]

    @cached_property
    def by_kind(self) -> dict[str, list[Manifest]]:
        found: dict[str, list[Manifest]] = {}
        for manifest in self.manifests:
            found.setdefault(manifest.kind, []).append(manifest)
        return found

    def of_kind(self, *kinds: str) -> Iterator[Manifest]:
        """Objects of these kinds, kind by kind."""
        return (manifest for kind in kinds for manifest in self.by_kind.get(kind, ()))

    @cached_property
    def queries(self) -> list[Query]:
        """Every PromQL query of alerts, autoscalers and dashboards."""
        from specdec.rules.promql import queries

        return [query for manifest in self.manifests for query in queries(manifest)]


REMOVED = object()  # the value of an edit that takes its key or element away


@dataclass(frozen=True)
class Edit:
    """One certain change of the manifest: the value that belongs at that path, or REMOVED."""

    path: Path
    value: Any


@dataclass(frozen=True)
class Problem:
    """One place where a rule is broken. `fix` where it is more exact than the rule's; `edits` where it is certain."""

    manifest: Manifest
    path: Path
    message: str
    fix: str | None = None
    edits: tuple[Edit, ...] = ()


Check = Callable[[World], Iterable[Problem]]


@dataclass(frozen=True)
class Rule:
    """A code never changes its meaning and is never reused.

    bad, good  YAML: whole manifests, or the part of a pod's spec that shows it (`examples` completes those)
    source     where the fact can be read
    """

    code: str
    name: str
    severity: Severity
    reason: str
    fix: str
    source: str
    bad: str
    good: str
    check: Check


@dataclass(frozen=True)
class Finding:
    """What was found, where, and what would be right.

    ignored  the reason that a person gave for accepting it, None where nobody did
    place    the object's document in its file and its path in that; `edits` are below it
    """

    code: str
    severity: str
    file: str
    line: int
    resource: str
    path: str
    message: str
    fix: str
    ignored: str | None = None
    place: tuple[int, Path] = field(default=(0, ()), compare=False, repr=False)
    edits: tuple[Edit, ...] = field(default=(), compare=False, repr=False)

    def as_dict(self) -> dict[str, Any]:
        keys = ("code", "severity", "file", "line", "resource", "path", "message", "fix")
        shown = {key: getattr(self, key) for key in keys}
        return shown if self.ignored is None else {**shown, "ignored": self.ignored}


RULES: dict[str, Rule] = {}


def rule(
    code: str, name: str, severity: Severity, *, reason: str, fix: str, source: str, bad: str, good: str
) -> Callable[[Check], Check]:
    """Register a check of everything that was handed in."""

    def register(check: Check) -> Check:
        if code in RULES:
            raise ValueError(f"{code} is taken by {RULES[code].name}")
        RULES[code] = Rule(code, name, severity, reason, fix, source, bad.strip("\n"), good.strip("\n"), check)
        return check

    return register


EngineCheck = Callable[[EngineWorkload], Iterable[Problem]]


def each_engine(check: EngineCheck) -> Check:
    """A check of one engine, run on each."""

    def of_all(world: World) -> Iterator[Problem]:
        for engine in world.engines:
            yield from check(engine)

    return of_all
