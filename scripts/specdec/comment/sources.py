"""Everything that the comment tells: Terraform's plans, the guard, the rules, memory and speed, price, what changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from specdec import reading
from specdec.environments import Environment

if TYPE_CHECKING:
    from specdec.compare import Comparison
    from specdec.deploy.cloud.price import Bill
    from specdec.plan_check.plan import Plan
    from specdec.rules.model import Finding


@dataclass(frozen=True)
class Sources:
    """`bill` None: the environment has no Terraform. `comparison` None: there was nothing to compare with."""

    environment: str
    terraform: list[Plan]
    guard: list[Finding]
    rules: list[Finding]
    engines: list[dict[str, Any]]
    bill: Bill | None
    comparison: Comparison | None
    skipped: list[str] = field(default_factory=list)
    disagreement: list[dict[str, str]] = field(default_factory=list)

    @property
    def is_refused(self) -> bool:
        """Whether something in it stops the change."""
        errors = any(finding.severity == "error" for finding in [*self.guard, *self.rules])
        run = all(engine["fits"] and engine["starts"] for engine in self.engines)
        return errors or bool(self.disagreement) or not run


def gather(
    where: Environment,
    plans: Sequence[Path] = (),
    root: Path | None = None,
    against: Path | None = None,
    allow: Sequence[str] = (),
) -> Sources:
    """Reads the plans and the manifests to compare with; renders, plans and checks the rest.

    Raises SpecdecError for a plan or a file that cannot be read, and for values that do not render.
    """
    from specdec import helm, plan_check, rules
    from specdec.compare import compare
    from specdec.deploy.cloud.price import bill
    from specdec.deploy.cloud.target import Target
    from specdec.infrastructure.bought import disagreement, wishes_for
    from specdec.infrastructure.configs import beside
    from specdec.manifests import engines, parse
    from specdec.plan.document import plan_document
    from specdec.plan.start import refuse
    from specdec.plan.wishes import Wishes
    from specdec.plan.workloads import plan_input

    manifests = parse(helm.render(where.values, [], where.release, where.namespace), f"{where.name} (rendered)")
    workloads = engines(manifests)
    target = Target.of(where)
    read = [plan_check.read(file, root) for file in plans]
    skipped = []
    if target is not None and not read:
        skipped.append("Terraform: no plan was made, so what would change in the cloud is not known")
    if against is None:
        skipped.append("manifests: nothing to compare with")
    configs = beside([where.name])
    planned = [plan_input(engine, configs=configs, cloud=target.cloud if target else None) for engine in workloads]
    found = rules.check(manifests, None)
    for engine, p in zip(workloads, planned, strict=True):
        refuse(p, engine, found)
    return Sources(
        environment=where.name,
        terraform=read,
        guard=[finding for plan in read for finding in plan_check.check(plan, allow=allow)],
        rules=found,
        engines=[plan_document(p, wishes_for(Wishes(), target, p.setup.accelerator.key)) for p in planned],
        bill=bill(target, workloads) if target else None,
        comparison=compare(_manifests(against), manifests) if against else None,
        skipped=skipped,
        disagreement=disagreement(target, workloads),
    )


def _manifests(file: Path) -> Any:
    from specdec.manifests import parse

    return parse(reading.text(file), str(file))
