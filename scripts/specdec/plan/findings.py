"""What the planner finds wrong with an engine of the manifests, for rules and diffs: pair and memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from specdec.errors import SpecdecError
from specdec.plan.checks import ENDS_ON, pair_findings
from specdec.plan.verdict import judge
from specdec.plan.workloads import plan_input

if TYPE_CHECKING:
    from specdec.manifests import EngineWorkload

# What only says that nothing can be said: a model, an accelerator or a version that nobody named.
SILENT = {
    "unknown-model",
    "bad-model-config",
    "unknown-accelerator",
    "unknown-method",
    "unknown-kv-dtype",
    "version-unknown",
    "no-model",
    "bad-arguments",
}
GPU_ASSUMED = "SD331"


@dataclass(frozen=True)
class PlanFinding:
    """code and severity as of a rule; path is a key of the values."""

    code: str
    severity: str
    message: str
    fix: str | None
    path: str | None = None


def engine_findings(engine: EngineWorkload) -> list[PlanFinding]:
    """Refusals, pair checks, and SD320 where it does not fit. Memory is judged for a GPU that is stated alone."""
    try:
        planned = plan_input(engine)
    except SpecdecError as error:
        if error.code in SILENT:
            return []
        return [PlanFinding(error.code, "error", error.message, error.fix, error.path)]
    found = [
        PlanFinding(code, "error" if code in ENDS_ON else "warning", text, None)
        for code, text in pair_findings(planned.setup)
    ]
    if any(code == GPU_ASSUMED for code, _ in planned.warnings):
        return found
    verdict = judge(planned.setup)
    if not verdict.fits:
        fix = "; ".join(verdict.changes) or f"a GPU with more memory than {planned.setup.accelerator.key}"
        found.append(PlanFinding("SD320", "error", verdict.reasons[0], fix, "accelerator"))
    return found
