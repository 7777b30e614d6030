"""Whether the engine would start at all: what the rules on arguments and pairs call an error.

A plan of memory and speed says nothing of an engine that ends on its command line.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from specdec.plan.workloads import Planned

if TYPE_CHECKING:
    from specdec.manifests import EngineWorkload
    from specdec.rules.model import Finding

Refusal = tuple[str, str]
FAMILIES = ("SD1", "SD2", "SD302")
# Errors of those families that an engine starts with: a field that does nothing, a draft that gains nothing.
STARTS_WITH = {"SD116", "SD205"}


def found_by_rules(
    workloads: Sequence[EngineWorkload], engine_version: str | None = None, configs: dict[str, Path] | None = None
) -> list[Finding]:
    """What the rules find in the manifests of these engines. `engine_version` wins over what the manifests say."""
    from specdec import rules
    from specdec.rules.configs import GIVEN

    GIVEN.update(configs or {})
    manifests = list({id(w.manifest): w.manifest for w in workloads}.values())
    return rules.check(manifests, engine_version)


def refuse(planned: Planned, workload: EngineWorkload, findings: Iterable[Finding]) -> None:
    """Put into `planned.refusals` what keeps this engine from starting."""
    manifest = workload.manifest
    for finding in findings:
        here = (finding.file, finding.resource) == (manifest.file, manifest.resource)
        if here and finding.severity == "error" and is_refusal(finding.code):
            planned.refusals.append((finding.code, f"{finding.message} (fix: {finding.fix})"))


def is_refusal(code: str) -> bool:
    return code.startswith(FAMILIES) and code not in STARTS_WITH
