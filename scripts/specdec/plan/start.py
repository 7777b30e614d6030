"""Whether the engine would start at all: what the rules on arguments and pairs call an error.

A plan of memory and speed says nothing of an engine that ends on its command line.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from specdec.plan.checks import ENDS_ON
from specdec.plan.workloads import Planned

if TYPE_CHECKING:
    from specdec.manifests import EngineWorkload
    from specdec.rules.model import Finding

Refusal = tuple[str, str]
FAMILIES = ("SD1", "SD2", "SD302")
# Errors of those families that an engine starts with: a field that does nothing, a label of another version, a draft
# that gains nothing, a head that ends the engine at a longer prompt.
STARTS_WITH = {"SD116", "SD135", "SD205", "SD227"}
# What a rule on the arguments and the planner both find: said once, by the rule.
SAME = {"SD228": "SD114", "SD230": "SD115", "SD231": "SD122", "SD336": "SD302"}


def found_by_rules(
    workloads: Sequence[EngineWorkload], engine_version: str | None = None, configs: dict[str, Path] | None = None
) -> list[Finding]:
    """What the rules find in the manifests of these engines. `engine_version` wins over what the manifests say."""
    from specdec import rules
    from specdec.rules.configs import GIVEN

    GIVEN.clear()
    GIVEN.update(configs or {})
    manifests = list({id(w.manifest): w.manifest for w in workloads}.values())
    return rules.check(manifests, engine_version)


def refuse(planned: Planned, workload: EngineWorkload, findings: Iterable[Finding]) -> None:
    """Put into `planned.refusals` what keeps this engine from starting."""
    manifest = workload.manifest
    for finding in findings:
        here = (finding.file, finding.resource) == (manifest.file, manifest.resource)
        if here and finding.severity == "error" and is_refusal(finding.code):
            planned.refusals.append(said(finding))


def said(finding: Finding) -> Refusal:
    return finding.code, f"{finding.message} (fix: {finding.fix})"


def is_refusal(code: str) -> bool:
    return code.startswith(FAMILIES) and code not in STARTS_WITH


def parted(refusals: Sequence[Refusal], findings: Iterable[Refusal]) -> tuple[list[Refusal], list[Refusal]]:
    """(what keeps it from starting, what does not): the planner's own findings put to the rules' refusals, once."""
    codes = {code for code, _ in refusals}
    own = [f for f in findings if f[0] in ENDS_ON]
    new = [f for f in own if f[0] not in codes and SAME.get(f[0]) not in codes]
    return [*refusals, *new], [f for f in findings if f[0] not in ENDS_ON]


def refusals_of_arguments(
    target: str,
    speculative: dict[str, Any],
    version: str,
    *,
    tp: int,
    quantization: str | None,
    configs: dict[str, Path],
) -> list[Refusal]:
    """What the rules refuse of an engine that no manifest describes yet: its arguments in a container of that version.

    What the image would have to bring, and what nobody was asked, is not judged.
    """
    from specdec import manifests

    words = [target, f"--tensor-parallel-size={tp}", f"--speculative-config={json.dumps(speculative)}"]
    words += [f"--quantization={quantization}"] if quantization else []
    container = {"name": "vllm", "image": f"vllm/vllm-openai:v{version}", "args": words}
    document = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "engine"},
        "spec": {"template": {"spec": {"containers": [container]}}},
    }
    parsed = manifests.parse(json.dumps(document), "the command line")
    found = found_by_rules(manifests.engines(parsed, version), version, configs)
    unasked = {"SD124"} | (set() if "model" in speculative else {"SD117"})
    return [said(f) for f in found if f.severity == "error" and is_refusal(f.code) and f.code not in unasked]
