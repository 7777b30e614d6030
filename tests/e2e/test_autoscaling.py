"""KEDA's own operator scales the real engine on what a real Prometheus saw of it, and back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import controllers
import engines
import pytest
from engines import wait_for
from machine import NAMESPACE, RELEASE
from prometheus import Prometheus
from specdec.deploy.cluster import Cluster
from streams import Load

pytestmark = controllers.needs("keda")
MODEL = "target"
LIMIT = 2  # requests for each pod
AUTOSCALING = {
    "kind": "keda",
    "minReplicas": 1,
    "maxReplicas": 2,
    "maxConcurrencyPerReplica": LIMIT,
    "kvCacheUsage": None,
    "waitingRequests": None,
    "pollingSeconds": 5,
    "scaleDownAfterSeconds": 30,
    "prometheus": {"serverAddress": f"http://prometheus.{NAMESPACE}:9090"},
}
PROMPT = {"prompt": "A draft model proposes tokens and", "max_tokens": 16, "temperature": 0, "ignore_eos": True}


@pytest.fixture(scope="module")
def keda(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """KEDA, and the release with one engine that it scales."""
    assert cluster
    with controllers.keda(tmp_path_factory.mktemp("keda")):
        try:
            engines.release("--set", "baseline.enabled=false", "--set-json", f"autoscaling={json.dumps(AUTOSCALING)}")
            yield
        finally:
            # While the operator that lets go of its objects is still there.
            engines.release(wait=False)


def scaled_object(cluster: Cluster) -> dict[str, str]:
    """The conditions of the ScaledObject: Ready, Active, Fallback."""
    found = cluster.get(cluster.path("/apis/keda.sh/v1alpha1", "scaledobjects", RELEASE)) or {}
    return {one["type"]: one["status"] for one in found.get("status", {}).get("conditions", [])}


def autoscaler(cluster: Cluster) -> dict[str, Any]:
    """The status of the HorizontalPodAutoscaler that KEDA made."""
    found = cluster.get(cluster.path("/apis/autoscaling/v2", "horizontalpodautoscalers", f"keda-hpa-{RELEASE}"))
    return dict((found or {}).get("status", {}))


def measured(cluster: Cluster) -> list[str]:
    """What the autoscaler last saw, for each pod, as quantities: ["2500m"]."""
    metrics = autoscaler(cluster).get("currentMetrics") or []
    return [one["external"]["current"]["averageValue"] for one in metrics if one["type"] == "External"]


def names(cluster: Cluster, ready: bool = False) -> list[str]:
    return [pod["metadata"]["name"] for pod in engines.pods(cluster, ready=ready)]


@pytest.mark.usefixtures("keda")
def test_load_adds_a_pod_that_answers_and_quiet_takes_it_away(cluster: Cluster, tmp_path: Path) -> None:
    def ready() -> list[str]:
        return names(cluster, ready=True)

    # The chart leaves the number out, and the autoscaler begins with the least. The other arm may still be going.
    wait_for("one pod serves", lambda: names(cluster) == ready() == [f"{RELEASE}-0"], seconds=120)
    with Prometheus(cluster, tmp_path) as prometheus:
        wait_for("KEDA reads the signal", lambda: scaled_object(cluster).get("Ready") == "True", seconds=90)
        wait_for("an idle engine is zero", lambda: measured(cluster) == ["0"], seconds=90)
        assert autoscaler(cluster)["desiredReplicas"] == 1
        assert scaled_object(cluster)["Fallback"] == "False"

        with Load(cluster, f"{RELEASE}-router", MODEL, clients=3 * LIMIT) as load:
            asked = wait_for("two are wanted", lambda: autoscaler(cluster)["desiredReplicas"] == 2, seconds=120)
            print(f"under load: {measured(cluster)} requests for each pod, two wanted after {asked:.0f} s")
            assert scaled_object(cluster)["Active"] == "True"
            served = wait_for("the second pod serves", lambda: len(ready()) == 2, seconds=600)
            prometheus.discover()
            second = engines.pods(cluster)[1]
            heard = wait_for(
                "the router asks the second pod too",
                lambda: engines.metric(cluster, second, "vllm:request_success_total"),
                seconds=120,
            )
            print(f"the second pod serves after {served:.0f} s more and answers the load {heard:.0f} s later")
        assert load.tally.broken == []
        answer = cluster.pod(second["metadata"]["name"]).post("/v1/completions", {"model": MODEL, **PROMPT})
        assert answer["usage"]["completion_tokens"] == PROMPT["max_tokens"]
        assert engines.metric(cluster, second, "vllm:spec_decode_num_drafts_total") > 0, "it speculates"

        quiet = wait_for("one pod is left", lambda: names(cluster) == ready() == [f"{RELEASE}-0"], seconds=300)
        print(f"one pod is left after {quiet:.0f} s without load")
        assert quiet > AUTOSCALING["scaleDownAfterSeconds"] / 2, "it waited for the window"
        assert autoscaler(cluster)["desiredReplicas"] == autoscaler(cluster)["currentReplicas"] == 1
        assert measured(cluster) == ["0"]
