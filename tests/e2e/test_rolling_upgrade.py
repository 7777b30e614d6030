"""A change of K while people talk to the engines."""

from __future__ import annotations

import json

from machine import CHART, RELEASE, VALUES, helm
from specdec import local
from specdec.deploy.cluster import Cluster
from streams import MAX_TOKENS, PROMPTS, Load

MODEL = "target"


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
