"""What a person does with the local environment, in this order: deploy, upgrade under load, roll back, take down."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from machine import CHART, NAMESPACE, RELEASE, ROOT, Machine, run, specdec
from specdec import local
from specdec.deploy import removal
from specdec.deploy.cluster import Cluster, connect
from streams import MAX_TOKENS, PROMPTS, Load

MODEL = "target"
VALUES = ROOT / "environments/local/values.yaml"


@pytest.fixture(scope="module")
def cluster(deployment: dict[str, Any]) -> Cluster:
    assert deployment
    return connect(NAMESPACE, kubeconfig=local.kubeconfig())


def helm(*arguments: str) -> str:
    return run("helm", *arguments, "--namespace", NAMESPACE, KUBECONFIG=str(local.kubeconfig())).stdout


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


def test_an_upgrade_of_k_under_four_streams_loses_no_token_and_rolls_back(cluster: Cluster) -> None:
    """Plain Helm, as the README of the chart says, with two engines so that one serves while the other restarts."""
    extra = local.values_file()
    files = ["-f", str(VALUES), *(["-f", str(extra)] if extra else [])]
    settings = [*files, "--set", "engine.replicas=2,baseline.enabled=false"]
    helm("upgrade", "--install", RELEASE, str(CHART), *settings, "--wait", "--timeout", "10m")
    router = f"{RELEASE}-router"

    with Load(cluster, router, MODEL) as undisturbed:
        pass
    with Load(cluster, router, MODEL) as disturbed:
        helm(
            "upgrade", RELEASE, str(CHART), *settings, "--set", "speculative.numTokens=2", "--wait", "--timeout", "10m"
        )

    print(f"undisturbed: {len(undisturbed.tally.answers)} answers, during the upgrade: {len(disturbed.tally.answers)}")
    assert undisturbed.tally.broken == []
    assert disturbed.tally.broken == []
    assert {index for _, index, _ in disturbed.tally.answers} == set(range(len(PROMPTS)))
    assert {tokens for _, _, tokens in undisturbed.tally.answers} == {MAX_TOKENS}
    assert {tokens for _, _, tokens in disturbed.tally.answers} == {MAX_TOKENS}
    assert drafted_tokens(cluster) == {2}

    helm("rollback", RELEASE, "--wait", "--timeout", "10m")
    assert drafted_tokens(cluster) == {4}
    helm("test", RELEASE, "--timeout", "5m")


def drafted_tokens(cluster: Cluster) -> set[int]:
    """K in the arguments of the engine pods that run."""
    found = set()
    for pod in cluster.pods({"app.kubernetes.io/component": "engine", "app.kubernetes.io/instance": RELEASE}):
        arguments = pod["spec"]["containers"][0]["args"]
        found.add(json.loads(arguments[arguments.index("--speculative-config") + 1])["num_speculative_tokens"])
    return found


@pytest.mark.usefixtures("deployment")
def test_a_pair_that_never_agrees_is_slower_with_speculation() -> None:
    result = specdec("deploy", "local", "--set", f"speculative.model.name={local.DISAGREEING_DRAFT}", "--no-smoke")
    measured = result["measurement"]
    print(json.dumps(measured["acceptance_by_position"]), measured["ratio"])
    assert measured["drafts"] > 0
    assert measured["acceptance_rate"] < 0.05
    assert measured["ratio"] < 1


def test_uninstall_and_destroy_leave_nothing_on_the_machine(cluster: Cluster, before: Machine) -> None:
    # Helm waits for what it deleted itself; pods go after their StatefulSet unless it is told to wait for them.
    helm("uninstall", RELEASE, "--wait", "--cascade=foreground")
    deadline = time.monotonic() + 120
    while (left := removal.present(cluster, RELEASE)) and time.monotonic() < deadline:
        time.sleep(1)
    assert left == []
    run("specdec", "destroy", "local", "--yes")
    assert Machine.now().left_since(before) == {}
    assert not Path(local.state_dir()).exists()
    assert run("specdec", "destroy", "local", "--yes").returncode == 0, "a second destroy has nothing to do"
