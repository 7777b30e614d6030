"""A deploy that is killed, interrupted or refused at any stage goes on, and nothing is ever made twice."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from specdec.deploy import lock as locks
from specdec.deploy.cloud.pipeline import STAGES

from .conftest import World

CLUSTER = [
    "module.cluster.google_compute_network.this[0]",
    "module.cluster.google_container_cluster.this",
    'module.gpu_pool["l4"].google_container_node_pool.this',
]
PLATFORM = ["module.addons.helm_release.keda[0]", "module.gpu_operator.helm_release.this[0]"]
EVERYTHING = [*CLUSTER, *PLATFORM]


def test_one_command_makes_cluster_platform_and_release(world: World) -> None:
    status, result, said = world.run()
    assert status == 0, said
    assert world.made == EVERYTHING
    assert result["plan"] == {"add": 3, "change": 0, "destroy": 0}
    assert result["price"]["per_hour"] == 0.4
    assert [step["name"] for step in result["steps"]] == [stage for stage in STAGES if stage != "chart"]
    for address in EVERYTHING:
        assert f"{address}: Creation complete after 0s" in said


def test_a_second_deploy_is_a_no_op(world: World) -> None:
    world.run()
    status, result, said = world.run()
    assert status == 0, said
    assert result["plan"] == {"add": 0, "change": 0, "destroy": 0}
    assert world.made == EVERYTHING
    assert not [line for line in world.journal if " apply " in line][2:]


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("when", ["KILL_AT", "KILL_AFTER"])
def test_killed_at_a_stage_it_goes_on(world: World, stage: str, when: str) -> None:
    status, _, _ = world.run(**{when: stage})
    assert status == -signal.SIGKILL
    status, _, said = world.run()
    assert status == 0, said
    assert world.made == EVERYTHING
    if when == "KILL_AT":
        assert f"the last run stopped at {stage}" in said


@pytest.mark.parametrize("root", ["gke", "platform"])
@pytest.mark.parametrize("command", ["init", "plan", "apply"])
def test_terraform_outlives_a_killed_deploy_and_is_waited_for(world: World, command: str, root: str) -> None:
    world.script(pause=f"{command} {root}")
    first = world.start()
    world.paused()
    first.send_signal(signal.SIGKILL)
    first.end()
    second = world.start()
    second.hear("goes on (process")
    world.go()
    status, _, said = second.end()
    assert status == 0, said
    assert world.made == EVERYTHING


def test_a_machine_that_dies_with_terraform_leaves_a_deploy_that_goes_on(world: World) -> None:
    world.script(pause="apply gke")
    first = world.start()
    terraform = world.paused()
    first.send_signal(signal.SIGKILL)
    first.end()
    os.kill(terraform, signal.SIGKILL)
    world.go()
    assert world.made == CLUSTER[:1]
    status, result, said = world.run()
    assert status == 0, said
    assert result["plan"]["add"] == 2
    assert world.made == EVERYTHING


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_goes_to_terraform_once_and_is_waited_for(world: World, number: int) -> None:
    world.script(pause="apply gke", seconds=0.3)
    process = world.start()
    world.paused()
    for _ in range(3):
        process.send_signal(number)
        time.sleep(0.3)
    status, out, said = process.end()
    assert status == 130, said
    assert (world.folder / "interrupts").read_text() == "1"
    assert "ends what it has begun" in said
    assert "part of the cluster exists and is in the state" in out["interrupted"]
    assert world.made == CLUSTER[:1]
    world.script()
    status, _, said = world.run()
    assert status == 0, said
    assert world.made == EVERYTHING


FAILURES: list[tuple[str, dict[str, Any], str, list[str]]] = [
    (
        "a missing bucket",
        {"fail": {"init gke": "Error: querying Cloud Storage failed: storage: bucket doesn't exist"}},
        "SD851",
        ["gcloud storage buckets create gs://test-state --project my-project", "backend.gke.hcl"],
    ),
    (
        "expired credentials",
        {"fail": {"init gke": 'Error: oauth2: "invalid_grant" "reauth related error (invalid_rapt)"'}},
        "SD853",
        ["gcloud auth application-default login"],
    ),
    (
        "a quota",
        {"fail_at": CLUSTER[2], "error": "Error waiting for creating GKE NodePool",
         "detail": "Insufficient quota to satisfy the request: Quota 'PREEMPTIBLE_NVIDIA_L4_GPUS' exceeded."},
        "SD856",
        ["pool l4 may take 2 GPUs (2 × g2-standard-12) in us-central1", "ask for more"],
    ),
    (
        "a stock-out",
        {"fail_at": CLUSTER[2], "error": "error creating NodePool",
         "detail": "ZONE_RESOURCE_POOL_EXHAUSTED: The zone 'projects/my-project/zones/us-central1-a' does not have "
         "enough resources available to fulfill the request."},
        "SD863",
        ["us-central1-b of its zones remain", "us-central1-f sell g2-standard-12 too"],
    ),
    (
        "a right that is missing",
        {"fail_at": CLUSTER[1], "error": "googleapi: Error 403: Required 'container.clusters.create' permission",
         "detail": "forbidden"},
        "SD864",
        [CLUSTER[1]],
    ),
    (
        "a name that is taken",
        {"fail_at": CLUSTER[0], "error": "googleapi: Error 409: The resource 'inference-test' already exists"},
        "SD859",
        [CLUSTER[0], "terraform import"],
    ),
    (
        "a timeout",
        {"fail_at": PLATFORM[0], "error": "context deadline exceeded"},
        "SD868",
        ["terraform apply", PLATFORM[0]],
    ),
    (
        "something new",
        {"fail": {"plan gke": "Invalid function argument\nthe moon is full"}},
        "SD869",
        ["the moon is full"],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("what", "script", "code", "words"), FAILURES, ids=[one[0] for one in FAILURES])
def test_a_failure_is_explained_and_the_next_deploy_goes_on(
    world: World, what: str, script: dict[str, Any], code: str, words: list[str]
) -> None:
    world.script(**script)
    status, found, said = world.run()
    assert status == (1 if "fail_at" in script else 2), said
    assert found["code"] == code
    text = f"{found['file']} {found['message']} {found['fix']}"
    for word in words:
        assert word in text, what
    world.script()
    status, _, said = world.run()
    assert status == 0, said
    assert world.made == EVERYTHING


def test_a_state_locked_by_someone_says_who_since_when_and_how(world: World) -> None:
    world.run(options={"plan_only": True})
    lock = '{"ID": "1784", "Path": "gs://test-state/test/gke/default.tflock", "Operation": "OperationTypeApply", ' \
        '"Who": "ann@laptop", "Created": "2026-12-03 07:38:46.18 +0000 UTC"}'  # fmt: skip
    (world.folder / "lock-gke.json").write_text(lock)
    status, found, _ = world.run()
    assert (status, found["code"]) == (2, "SD862")
    assert "ann@laptop has held it since 2026-12-03 07:38:46 UTC for apply" in found["message"]
    assert "--unlock 1784" in found["fix"]
    assert world.made == []
    status, _, said = world.run(options={"unlock": "1784"})
    assert status == 0, said
    assert world.made == EVERYTHING


def test_a_lock_of_ones_own_dead_run_says_so(world: World) -> None:
    me = locks.identity().split(" (")[0]
    lock = {"ID": "1784", "Who": me, "Created": "2026-12-03 07:38:46", "Operation": "OperationTypeApply"}
    (world.folder / "lock-gke.json").write_text(json.dumps(lock))
    status, found, _ = world.run()
    assert (status, found["code"]) == (2, "SD862")
    assert "that is you, on this machine" in found["message"]
    assert "specdec deploy test --unlock 1784" in found["fix"]


def test_an_unlock_of_another_lock_changes_nothing(world: World) -> None:
    (world.folder / "lock-gke.json").write_text('{"ID": "1784", "Who": "ann@laptop", "Created": "2026-12-03"}')
    status, found, said = world.run(options={"unlock": "99"})
    assert (status, found["code"]) == (2, "SD862")
    assert "lock 99 stays" in said


def test_a_plan_that_changes_an_output_alone_is_applied(world: World) -> None:
    world.run()
    world.script(outputs={"platform": {"actions": ["update"]}})
    before = len([line for line in world.journal if line.startswith("gke apply")])
    status, result, said = world.run()
    assert status == 0, said
    assert result["plan"] == {"add": 0, "change": 0, "destroy": 0}
    assert len([line for line in world.journal if line.startswith("gke apply")]) == before + 1


def test_plan_only_makes_nothing_and_does_not_ask(world: World) -> None:
    status, result, said = world.run(options={"plan_only": True, "yes": False})
    assert status == 0, said
    assert world.made == []
    assert [one["address"] for one in result["resources"]] == CLUSTER
    assert "the platform is not planned" in " ".join(result["warnings"])


def test_without_a_yes_nothing_is_spent(world: World) -> None:
    status, found, _ = world.run(options={"yes": False})
    assert (status, found["code"]) == (2, "SD867")
    assert "$0.40 an hour" in found["message"]
    assert world.made == []


def test_the_saved_plan_is_what_is_applied(world: World) -> None:
    world.run(options={"plan_only": True})
    before = len([line for line in world.journal if line.startswith("gke plan")])
    status, _, said = world.run(options={"start": "apply"})
    assert status == 0, said
    assert len([line for line in world.journal if line.startswith("gke plan")]) == before
    assert world.made == EVERYTHING


def test_a_stage_is_not_skipped_on_other_files(world: World) -> None:
    world.run(options={"plan_only": True})
    variables = world.environments / "test" / "terraform.tfvars"
    variables.write_text(variables.read_text().replace("max_nodes    = 2", "max_nodes    = 3"))
    status, found, _ = world.run(options={"start": "apply"})
    assert (status, found["code"]) == (2, "SD874")
    assert world.made == []


def test_a_plan_that_the_guard_refuses_is_not_applied(world: World) -> None:
    world.run()
    pool = {"node_config": [{"guest_accelerator": [{"type": "nvidia-l4"}]}]}
    change = {"address": CLUSTER[2], "type": "google_container_node_pool", "mode": "managed",
              "change": {"actions": ["delete", "create"], "before": pool, "after": pool}}  # fmt: skip
    world.script(changes=[change])
    status, found, _ = world.run()
    assert (status, found["code"]) == (1, "SD866")
    assert "SD801" in found["message"]
    assert world.made == EVERYTHING


def test_pools_and_values_that_disagree_stop_before_terraform(world: World) -> None:
    variables = world.environments / "test" / "terraform.tfvars"
    variables.write_text(variables.read_text().replace("g2-standard-12", "a2-ultragpu-1g"))
    status, found, _ = world.run()
    assert (status, found["code"]) == (2, "preflight")
    assert "wants l4, and the pools have l4: a100-80gb (a2-ultragpu-1g)" in found["message"]
    assert [line for line in world.journal if "version" not in line] == []


def test_a_token_helper_that_is_missing_is_said_before_a_cluster_is_paid_for(world: World, tmp_path: Path) -> None:
    (tmp_path / "bin" / "gke-gcloud-auth-plugin").unlink()
    world.settings["PATH"] = str(tmp_path / "bin")
    status, found, _ = world.run()
    assert (status, found["code"]) == (2, "preflight")
    assert "gcloud components install gke-gcloud-auth-plugin" in found["message"]
    assert world.made == []
    status, _, said = world.run(options={"plan_only": True})
    assert status == 0, said


def test_an_old_terraform_is_refused(world: World) -> None:
    world.script(version="1.5.7")
    status, found, _ = world.run()
    assert (status, found["code"]) == (2, "SD850")


def test_two_deploys_at_once_are_told_apart(world: World) -> None:
    world.script(pause="apply gke")
    first = world.start()
    world.paused()
    status, found, _ = world.run()
    assert (status, found["code"]) == (2, "locked")
    world.go()
    status, _, said = first.end()
    assert status == 0, said
    assert world.made == EVERYTHING
