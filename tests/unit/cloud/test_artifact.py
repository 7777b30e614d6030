"""The plan that a pipeline approves is applied on another machine, from the files that the workflow hands over."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from .conftest import ROOT, World

CLUSTER = [
    "module.cluster.google_compute_network.this[0]",
    "module.cluster.google_container_cluster.this",
    'module.gpu_pool["l4"].google_container_node_pool.this',
]


def handed_over(source: Path, target: Path) -> None:
    """Copies what apply.yml uploads, as it downloads it."""
    workflow: dict[str, Any] = yaml.safe_load((ROOT / ".github/workflows/apply.yml").read_text())
    steps = workflow["jobs"]["plan"]["steps"]
    upload = next(step["with"] for step in steps if "upload-artifact" in step.get("uses", ""))
    download = next(
        step["with"] for step in workflow["jobs"]["apply"]["steps"] if "download-artifact" in step.get("uses", "")
    )
    assert upload["name"] == download["name"]
    assert upload["include-hidden-files"] is True
    for path in upload["path"].split("\n")[:-1]:
        # The artifact's top is the deepest folder that all of its paths are in, which is where it is unpacked.
        inside = path.removeprefix(download["path"] + "/").rstrip("/")
        assert inside != path
        if (source / inside).is_dir():
            shutil.copytree(source / inside, target / inside)
        else:
            target.mkdir(parents=True, exist_ok=True)
            shutil.copy(source / inside, target / inside)


@pytest.fixture
def runners(tmp_path: Path) -> tuple[Path, Path]:
    return tmp_path / "plans", tmp_path / "applies"


APPLY = {"start": "apply", "end": "apply"}


def test_the_approved_plan_is_applied_on_another_machine(world: World, runners: tuple[Path, Path]) -> None:
    planner, applier = runners
    status, result, said = world.run(options={"plan_only": True}, SPECDEC_STATE=str(planner))
    assert status == 0, said
    assert world.made == []
    assert result["plan"] == {"add": 3, "change": 0, "destroy": 0}
    handed_over(planner / "test", applier / "test")
    status, _, said = world.run(options=APPLY, SPECDEC_STATE=str(applier))
    assert status == 0, said
    assert world.made == CLUSTER
    plans = [line for line in world.journal if " plan " in line]
    assert len(plans) == 1, "the plan that was approved, and no other"


def test_a_plan_of_other_files_is_not_applied(world: World, runners: tuple[Path, Path]) -> None:
    planner, applier = runners
    assert world.run(options={"plan_only": True}, SPECDEC_STATE=str(planner))[0] == 0
    handed_over(planner / "test", applier / "test")
    variables = world.environments / "test/terraform.tfvars"
    variables.write_text(variables.read_text().replace("max_nodes    = 2", "max_nodes    = 9"))
    status, error, _ = world.run(options=APPLY, SPECDEC_STATE=str(applier))
    assert status == 2
    assert error["code"] == "SD874"
    assert "other files" in error["message"]
    assert world.made == []


def test_without_a_plan_nothing_is_applied(world: World, runners: tuple[Path, Path]) -> None:
    status, error, _ = world.run(options=APPLY, SPECDEC_STATE=str(runners[1]))
    assert status == 2
    assert error["code"] == "SD874"
    assert world.made == []
    assert "--from preflight" in error["fix"]
