"""Whether the GPU pools of an environment's Terraform can hold its engines, as findings of `specdec validate`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from specdec.deploy.cloud.target import Target
from specdec.environments import Environment
from specdec.errors import SpecdecError
from specdec.infrastructure import pools
from specdec.infrastructure.agreement import Ask, place
from specdec.infrastructure.pools import Nodes
from specdec.manifests import EngineWorkload, Manifest, engines
from specdec.rules.ignore import reason_for
from specdec.rules.model import Finding
from specdec.rules.scaling import BOUNDS, SCALERS, target


def findings(environment: Environment, manifests: Sequence[Manifest]) -> list[Finding]:
    """An error for an engine that no pool can run, or not all replicas of; a warning where its autoscaler may ask for
    more than fit. None for an environment without Terraform. Raises SpecdecError for variables that cannot be read."""
    terraform = Target.of(environment)
    if terraform is None:
        return []
    nodes, file = pools.of(terraform), terraform.file
    return [finding for engine in engines(manifests) for finding in _of(engine, manifests, nodes, file)]


def _of(engine: EngineWorkload, manifests: Sequence[Manifest], nodes: Sequence[Nodes], file: Path) -> Iterator[Finding]:
    ask = Ask.of(engine)
    if not ask.gpus:
        return
    try:
        place([ask], nodes, file.name)
    except SpecdecError as error:
        yield _finding(engine, error, file, "error")
        return
    greatest = _greatest(engine, manifests)
    try:
        place([replace(ask, replicas=max(greatest, ask.replicas))], nodes, file.name)
    except SpecdecError as error:
        yield _finding(engine, error, file, "warning")


def _greatest(engine: EngineWorkload, manifests: Sequence[Manifest]) -> int:
    """The most replicas that an autoscaler may ask for; 0 where none is for the engine."""
    found = [0]
    for manifest in manifests:
        if manifest.kind in SCALERS and target(manifest) == (engine.manifest.kind, engine.name):
            most = manifest.get(("spec", BOUNDS[manifest.kind][1]))
            found.append(most if isinstance(most, int) else 0)
    return max(found)


def _finding(engine: EngineWorkload, error: SpecdecError, file: Path, severity: str) -> Finding:
    scaled = "the autoscaler may ask for " if severity == "warning" else ""
    return Finding(
        code=error.code,
        severity=severity,
        file=_shown(file),
        line=_line(file, error.path or ""),
        resource=engine.manifest.resource,
        path=error.path or "",
        message=scaled + error.message,
        fix=error.fix or "",
        ignored=reason_for(engine.manifest, error.code),
    )


def _shown(file: Path) -> str:
    """The path as it is typed here, which annotations of a pipeline need."""
    here = Path.cwd()
    return str(file.resolve().relative_to(here) if file.resolve().is_relative_to(here) else file)


def _line(file: Path, path: str) -> int:
    """Where `gpu_pools.NAME.key` stands in the variables: the last of the keys that is found, one after the other."""
    text, position = file.read_text(encoding="utf-8"), 0
    for key in path.split("."):
        match = re.compile(rf"^\s*\"?{re.escape(key)}\"?\s*[=:]", re.MULTILINE).search(text, position)
        if match is None:
            break
        position = match.start() + len(match.group()) - len(match.group().lstrip())
    return text.count("\n", 0, position) + 1
