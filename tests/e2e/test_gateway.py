"""Streams through a real Gateway and a real Ingress, and what a pod that is killed costs them."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

import controllers
import engines
import httpx
import pytest
from machine import RELEASE
from specdec.deploy.cluster import CORE, Cluster, Object
from specdec.local.containerd import Containerd
from streams import MAX_TOKENS, PROMPTS, Load

pytestmark = controllers.needs("traefik")
MODEL = "target"
HOST = "traefik.traefik"  # as pods reach it, and the name that routes are for
INGRESS, GATEWAY = 8000, 8001
PORTS = pytest.mark.parametrize("port", [INGRESS, GATEWAY], ids=["ingress", "gateway"])
TRAFFIC = {
    "hosts": [{"host": HOST}],
    "ingress": {"enabled": True, "className": "traefik", "controller": "traefik"},
    "gateway": {"enabled": True, "parentRefs": [{"name": "models", "namespace": "traefik"}]},
}
LONG = 300  # tokens, so that a stream outlasts the questions to the engines


@pytest.fixture(scope="module")
def entry(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Two engines behind their router, behind Traefik; its address as the machine reaches it."""
    with controllers.traefik(tmp_path_factory.mktemp("traefik")):
        traffic = f"traffic={json.dumps(TRAFFIC)}"
        try:
            engines.release("--set-json", traffic, "--set", "engine.replicas=2,baseline.enabled=false")
            service = cluster.get("/api/v1/namespaces/traefik/services/traefik")
            assert service
            yield service["spec"]["clusterIP"]
        finally:
            # While the kinds of its objects are still there.
            engines.release(wait=False)


def through(entry: str, port: int) -> httpx.Client:
    return httpx.Client(base_url=f"http://{entry}:{port}", headers={"Host": HOST}, timeout=60)


def wait_for_route(entry: str, port: int) -> None:
    with through(entry, port) as client:
        engines.wait_for("the route leads to the models", lambda: client.get("/v1/models").is_success, seconds=60)


def test_the_gateway_accepts_the_route(cluster: Cluster, entry: str) -> None:
    wait_for_route(entry, GATEWAY)
    routes = "/apis/gateway.networking.k8s.io/v1/namespaces/{}/httproutes/{}"
    route = cluster.get(routes.format(cluster.namespace, f"{RELEASE}-router"))
    assert route
    (parent,) = route["status"]["parents"]
    conditions = {condition["type"]: condition["status"] for condition in parent["conditions"]}
    assert conditions["Accepted"] == conditions["ResolvedRefs"] == "True", parent["conditions"]


@PORTS
def test_answers_arrive_as_a_stream_and_nothing_is_lost(cluster: Cluster, entry: str, port: int) -> None:
    wait_for_route(entry, port)
    with Load(cluster, HOST, MODEL, clients=2, port=port) as load:
        pass
    assert load.tally.broken == []
    assert {index for _, index, _ in load.tally.answers} == set(range(len(PROMPTS)))
    assert {tokens for _, _, tokens in load.tally.answers} == {MAX_TOKENS}
    waits = [(first - begun) / (end - begun) for begun, first, end in load.tally.times]
    print(f"share of an answer's time until its first token: {min(waits):.2f} to {max(waits):.2f}")
    assert sorted(waits)[len(waits) // 2] < 0.5, "the first token comes long before the last"


@PORTS
def test_only_the_paths_of_the_api_and_the_host_of_the_route_are_let_through(entry: str, port: int) -> None:
    wait_for_route(entry, port)
    with through(entry, port) as client:
        assert [model["id"] for model in client.get("/v1/models").json()["data"]] == [MODEL]
        for path in ("/metrics", "/readiness", "/get_loads", "/"):
            assert client.get(path).status_code == 404, path
        assert client.get("/v1/models", headers={"Host": "other.example.com"}).status_code == 404


@PORTS
def test_a_pod_that_is_killed_costs_its_own_streams_and_no_others(cluster: Cluster, entry: str, port: int) -> None:
    wait_for_route(entry, port)
    with Load(cluster, HOST, MODEL, port=port, tokens=LONG) as undisturbed:
        pass
    assert undisturbed.tally.broken == []

    with Load(cluster, HOST, MODEL, port=port, tokens=LONG) as load:
        victim, streams = with_streams(cluster)
        killed = time.time()
        kill(cluster, victim)
    print(f"{victim['metadata']['name']} had {streams} streams:", *load.tally.broken, sep="\n")
    assert 1 <= len(load.tally.broken) <= streams, "the streams that ran there, and no others"
    assert max(load.tally.broken_begun) < killed, "whoever asked later got an answer"
    assert {tokens for _, _, tokens in load.tally.answers} == {tokens for _, _, tokens in undisturbed.tally.answers}
    assert {tokens for _, _, tokens in load.tally.answers} == {LONG}
    others = [begun for begun, _, end in load.tally.times if begun < killed < end]
    assert others, "the other pod's streams went on"
    engines.wait_for("the killed pod is back", lambda: len(engines.pods(cluster, ready=True)) == 2, seconds=600)


def with_streams(cluster: Cluster) -> tuple[Object, int]:
    """A pod that works on streams while another does too, and how many it has."""
    counts: list[tuple[int, Object]] = []

    def both() -> bool:
        counts[:] = [(engines.streams(cluster, pod), pod) for pod in engines.pods(cluster)]
        return len(counts) == 2 and all(count for count, _ in counts)

    engines.wait_for("both pods work on streams", both, seconds=120, every=0.2)
    return counts[1][1], counts[1][0]


def kill(cluster: Cluster, pod: Object) -> None:
    """At once and without a word, as a node that fails: its processes, then the pod."""
    container = pod["status"]["containerStatuses"][0]["containerID"].removeprefix("containerd://")
    Containerd(controllers.socket()).ctr("tasks", "kill", "--signal", "SIGKILL", container)
    path = cluster.path(CORE, "pods", pod["metadata"]["name"])
    cluster.request("DELETE", path, params={"gracePeriodSeconds": "0"})
