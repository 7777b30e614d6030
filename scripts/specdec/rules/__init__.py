"""Rules on Kubernetes manifests that run vLLM: each with a code, a reason, an example and a fix."""

from __future__ import annotations

from collections.abc import Sequence

from specdec.manifests import Manifest
from specdec.objects import dotted
from specdec.rules.ignore import reason_for
from specdec.rules.model import RULES, Finding, Problem, Rule, Severity, World

__all__ = ["Finding", "Problem", "Rule", "Severity", "World", "all_rules", "check", "examine"]


def all_rules() -> dict[str, Rule]:
    """Every rule by its code, sorted."""
    from specdec.rules import (  # noqa: F401  importing registers
        arguments,
        caches,
        combinations,
        drafts,
        exposure,
        fetching,
        gateways,
        graceful,
        heads,
        ignore_rules,
        labels,
        lookup,
        metrics,
        monitors,
        pair,
        planned,
        probe_shape,
        probes,
        resources,
        rollout,
        scaling,
        scheduling,
        security,
        speculation,
        storage,
        traffic,
        values,
        variables,
    )

    return dict(sorted(RULES.items()))


def check(manifests: Sequence[Manifest], engine_version: str | None = None) -> list[Finding]:
    """What the rules find and nobody has accepted, in the order of files and lines.

    `engine_version` wins over what the manifests say.
    """
    return [finding for finding in examine(manifests, engine_version) if finding.ignored is None]


def examine(manifests: Sequence[Manifest], engine_version: str | None = None) -> list[Finding]:
    """What the rules find, accepted findings with their reasons among them."""
    world = World(manifests, engine_version)
    findings = [_finding(rule, problem) for rule in all_rules().values() for problem in rule.check(world)]
    return sorted(dict.fromkeys(findings), key=lambda found: (found.file, found.line, found.code, found.message))


def _finding(rule: Rule, problem: Problem) -> Finding:
    return Finding(
        code=rule.code,
        severity=rule.severity.value,
        file=problem.manifest.file,
        line=problem.manifest.line_of(problem.path),
        resource=problem.manifest.resource,
        path=dotted(problem.path),
        message=problem.message,
        fix=problem.fix or rule.fix,
        ignored=reason_for(problem.manifest, rule.code),
        place=problem.manifest.place,
        edits=problem.edits,
    )
