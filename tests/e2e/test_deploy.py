"""What one command makes of a machine with nothing on it."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from machine import RELEASE, helm, run, specdec
from specdec import local
from specdec.deploy.cluster import Cluster


def test_one_command_deploys_a_pair_that_drafts_and_is_faster(deployment: dict[str, Any]) -> None:
    print(json.dumps(deployment, indent=2))
    measured = deployment["measurement"]
    assert deployment["answer"]
    assert measured["drafts"] > 0
    acceptance = measured["acceptance_by_position"]
    assert len(acceptance) == 4
    assert acceptance == sorted(acceptance, reverse=True), "accepted ÷ drafts by position never rises"
    assert 0.4 < measured["acceptance_rate"] < 0.8
    assert measured["repeats"] >= 5
    assert measured["ratio"] > 1.3


def test_a_second_deploy_finds_the_pods_running_and_changes_nothing(cluster: Cluster) -> None:
    pods = {pod["metadata"]["uid"] for pod in cluster.pods({"app.kubernetes.io/instance": RELEASE})}
    started = time.monotonic()
    again = specdec("deploy", "local")
    print(f"second deploy: {time.monotonic() - started:.0f} s")
    assert again["answer"]
    assert {pod["metadata"]["uid"] for pod in cluster.pods({"app.kubernetes.io/instance": RELEASE})} == pods


@pytest.mark.usefixtures("deployment")
def test_status_and_smoke_agree_that_it_speculates() -> None:
    status = specdec("status", "local")
    assert status["healthy"], status["reasons"]
    assert {engine["name"]: engine["speculation"] for engine in status["engines"]} == {
        RELEASE: "draft_model",
        f"{RELEASE}-baseline": None,
    }
    smoke = specdec("smoke", "local")
    assert {check["name"]: check["ok"] for check in smoke["checks"]} == {
        check["name"]: True for check in smoke["checks"]
    }


@pytest.mark.usefixtures("deployment")
def test_smoke_notices_when_speculation_is_expected_off_and_is_on() -> None:
    assert run("specdec", "smoke", "local", "--speculation", "off", check=False).returncode == 1


@pytest.mark.usefixtures("deployment")
def test_a_typo_and_a_missing_namespace_change_nothing() -> None:
    revision = helm("list", "--output", "json")
    typo = run("specdec", "deploy", "local", "--set", "speculative.numToken=3", check=False)
    assert typo.returncode == 2
    assert "numTokens" in typo.stderr
    gpus = run("specdec", "deploy", "dev", "--yes", "--namespace=no-such-place", "--context=vllm-speculative-local",
               check=False, KUBECONFIG=str(local.kubeconfig()))  # fmt: skip
    assert gpus.returncode == 2
    assert "no-such-place" in gpus.stderr, "the namespace is missing"
    assert "hf-token" in gpus.stderr, "and so is the Secret, and a node with the GPU: all of it is said at once"
    assert helm("list", "--output", "json") == revision
