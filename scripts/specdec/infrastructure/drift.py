"""What is in the cloud against what the state and the files say: a plan that nobody applies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from specdec.deploy.cloud.roots import Root
from specdec.deploy.cloud.target import Target, made
from specdec.deploy.progress import Progress

NOTHING = (("no-op",), ("read",))


class Look(Root):
    """A root whose plan lies in another place: the one that waits for its approval stays what it was."""

    @property
    def plan_file(self) -> Path:
        return made(self.target.folder) / "drift" / f"{self.name}.tfplan"


def look(target: Target, name: str, progress: Progress) -> dict[str, Any]:
    """What drifted in one root: {"clean", "summary", "changed_outside", "planned"}. Raises SpecdecError.

    A resource whose attributes changed outside counts even where the next apply would leave it so.
    """
    from specdec.plan_check import read

    root = Look(target, name, progress)
    with progress.step(f"{name}: init"):
        root.init()
    with progress.step(f"{name}: plan"):
        root.plan()
    plan = read(root.plan_json, root.terraform.where)
    planned = [change for change in plan.changes if change.actions not in NOTHING]
    outside = [change.address for change in plan.drift if change.actions not in NOTHING]
    clean = not planned and not outside
    return {
        "clean": clean,
        "summary": "as it was applied" if clean else f"{root.changes}; {len(outside)} changed outside Terraform",
        "changed_outside": outside,
        "planned": [{"address": change.address, "action": "/".join(change.actions)} for change in planned],
    }
