"""The way back: nothing is touched while it is protected, what hangs is named, and what still costs money is said."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from specdec.deploy.cloud import finalizers, removal
from specdec.deploy.cloud.clouds import Remain
from specdec.deploy.cloud.removal import CloudDestroy, DestroyOptions
from specdec.deploy.cloud.target import Target
from specdec.deploy.cluster import Cluster
from specdec.deploy.progress import Progress
from specdec.errors import FoundWrong, SpecdecError

from .conftest import World

Read = Callable[..., Target]


def unprotect(world: World) -> None:
    """What the first of the two steps leaves in the state."""
    state = world.read("state-gke.json")
    for values in state.values():
        values.pop("deletion_protection", None)
        values.pop("deletion_policy", None)
    (world.folder / "state-gke.json").write_text(json.dumps(state))


def test_a_protected_cluster_is_not_touched_and_the_two_steps_are_said(world: World) -> None:
    world.run()
    before = world.there
    status, found, _ = world.run("destroy")
    assert (status, found["code"]) == (2, "SD870")
    assert "module.cluster.google_container_cluster.this" in found["message"]
    assert 'module.gpu_pool["l4"]' in found["message"]
    assert "deletion_protection = false" in found["fix"]
    assert "specdec deploy test --to apply --allow SD804" in found["fix"]
    assert world.there == before


def test_everything_goes_backwards(world: World) -> None:
    world.run()
    unprotect(world)
    status, found, said = world.run("destroy")
    assert status == 0, said
    assert found["removed"] is True
    assert world.there == []
    applied = [line for line in world.journal if " apply " in line]
    assert [line.split()[0] for line in applied] == ["gke", "platform", "platform", "gke"]
    assert "the bucket of the state, test-state" in found["remains"][-1]
    assert not (world.environments / "test" / ".specdec" / "kubeconfig").exists()


def test_the_two_steps_take_a_protected_environment_down(world: World) -> None:
    world.run()
    world.run(options={"end": "apply", "allow": ["SD804"]})
    assert len((world.folder / "releases").read_text().splitlines()) == 1  # the second ended before the chart
    unprotect(world)
    status, _, said = world.run("destroy")
    assert status == 0, said
    assert world.there == []


def test_from_the_cluster_on_the_platforms_state_is_forgotten_with_it(world: World) -> None:
    world.run()
    unprotect(world)
    status, _, said = world.run("destroy", {"start": "cluster"})
    assert status == 0, said
    assert world.read("state-gke.json") == world.read("state-platform.json") == {}
    assert not [line for line in world.journal if line.startswith("platform plan -destroy")]


def test_what_was_never_made_is_no_error(world: World) -> None:
    status, found, said = world.run("destroy")
    assert (status, found["removed"]) == (0, False), said


@pytest.mark.parametrize("stage", ["destroy platform", "destroy cluster"])
@pytest.mark.parametrize("when", ["KILL_AT", "KILL_AFTER"])
def test_a_killed_destroy_goes_on(world: World, stage: str, when: str) -> None:
    world.run()
    unprotect(world)
    status, _, _ = world.run("destroy", **{when: stage})
    assert status == -signal.SIGKILL
    status, _, said = world.run("destroy")
    assert status == 0, said
    assert world.there == []
    # What is in a cluster is not looked for again once it is gone: the cluster may be gone as well.
    times = 1 if (stage, when) != ("destroy platform", "KILL_AT") else 2
    assert len((world.folder / "reached").read_text().splitlines()) == times


def test_a_deploy_after_half_a_destroy_makes_the_rest_anew(world: World) -> None:
    world.run()
    unprotect(world)
    everything = world.there
    world.run("destroy", KILL_AT="destroy cluster")
    status, _, said = world.run()
    assert status == 0, said
    assert "the last run stopped at destroy cluster" in said
    assert world.there == everything
    unprotect(world)
    status, _, said = world.run("destroy")
    assert status == 0, said
    assert len((world.folder / "reached").read_text().splitlines()) == 2


def test_a_destroy_that_fails_halfway_goes_on(world: World) -> None:
    world.run()
    unprotect(world)
    world.script(
        fail_at="module.cluster.google_compute_network.this[0]", error="Error 400: resourceInUseByAnotherResource"
    )
    status, found, _ = world.run("destroy")
    assert (status, found["code"]) == (1, "SD878")
    assert world.there == ["module.cluster.google_compute_network.this[0]"]
    world.script()
    status, _, said = world.run("destroy")
    assert status == 0, said
    assert world.there == []


def test_a_platform_whose_cluster_is_gone_is_forgotten(world: World) -> None:
    world.run()
    network = "module.cluster.google_compute_network.this[0]"
    (world.folder / "state-gke.json").write_text(json.dumps({network: {"name": "inference-test"}}))
    status, _, said = world.run("destroy")
    assert status == 0, said
    assert "2 entries of the platform's state are forgotten" in said
    assert world.read("state-platform.json") == {}


def test_a_deploy_after_a_destroy_makes_it_anew(world: World) -> None:
    world.run()
    unprotect(world)
    world.run("destroy")
    status, result, said = world.run()
    assert status == 0, said
    assert result["plan"]["add"] == 3
    assert len(world.made) == 10


KEDA = "/apis/keda.sh/v1alpha1"


class Silent:
    def check(self, _: Any) -> list[Any]:
        return []

    def offers(self, _: str) -> None:
        return None

    def remains(self, _: Any = ()) -> list[Remain]:
        return [Remain("disk pvc-1", "gcloud compute disks delete pvc-1")]


class Server:
    """An API server that is a dict of objects by path. What has finalizers stays until somebody takes them off."""

    def __init__(self) -> None:
        self.objects: dict[str, dict[str, Any]] = {}
        self.requests: list[tuple[str, str]] = []
        self.keda_works, self.down = True, False

    def put(self, path: str, value: dict[str, Any]) -> None:
        value["metadata"] |= {"name": path.rsplit("/", 1)[1]}
        self.objects[path] = value

    def __call__(self, request: httpx.Request) -> httpx.Response:
        if self.down:
            raise httpx.ConnectError("Connection refused", request=request)
        path = request.url.path
        self.requests.append((request.method, path))
        if request.method == "GET":
            group, plural = path.rsplit("/", 1)
            items = [one for key, one in self.objects.items() if key.startswith(group) and f"/{plural}/" in key]
            return httpx.Response(200, json={"items": items})
        one = self.objects[path]
        if request.method == "DELETE" and one["metadata"].get("finalizers") and not self.keda_works:
            one["metadata"]["deletionTimestamp"] = "2026-12-03T07:00:00Z"
        elif request.method == "DELETE" or json.loads(request.content) == {"metadata": {"finalizers": None}}:
            del self.objects[path]
        return httpx.Response(200, json={})


def cluster_of(server: Server) -> Cluster:
    return Cluster(httpx.Client(transport=httpx.MockTransport(server), base_url="https://cluster.test"), "ai-inference")


@pytest.fixture
def server() -> Server:
    found = Server()
    for namespace in ("ai-inference", "other"):
        scaler = {"metadata": {"namespace": namespace, "finalizers": ["finalizer.keda.sh"]}}
        found.put(f"{KEDA}/namespaces/{namespace}/scaledobjects/engine", scaler)
    balancer = {"metadata": {"namespace": "ai-inference"}, "spec": {"type": "LoadBalancer"},
                "status": {"loadBalancer": {"ingress": [{"ip": "203.0.113.7"}]}}}  # fmt: skip
    found.put("/api/v1/namespaces/ai-inference/services/gateway", balancer)
    found.put("/api/v1/namespaces/ai-inference/services/inner", {"metadata": {"namespace": "ai-inference"}})
    system = {"metadata": {"namespace": "kube-system"}, "spec": {"type": "LoadBalancer"}}
    found.put("/api/v1/namespaces/kube-system/services/theirs", system)
    return found


@pytest.fixture
def destroy(targets: Read, server: Server, monkeypatch: pytest.MonkeyPatch) -> Callable[..., CloudDestroy]:
    monkeypatch.setattr(removal.release, "uninstall", lambda *_, **__: {"removed": True, "remains": []})

    def make(**options: Any) -> CloudDestroy:
        chosen = DestroyOptions(timeout=0, **options)
        return CloudDestroy(
            targets(), chosen, Progress(quiet=True), ask=lambda _: None, may_force=lambda _: False, cloud=Silent()
        )

    assert server
    return make


def test_scalers_go_while_keda_is_there_and_load_balancers_before_their_cluster(
    destroy: Callable[..., CloudDestroy], server: Server
) -> None:
    destroy()._chart(cluster_of(server))
    gone = [path for method, path in server.requests if method == "DELETE"]
    assert gone == [
        f"{KEDA}/namespaces/ai-inference/scaledobjects/engine",
        f"{KEDA}/namespaces/other/scaledobjects/engine",
        "/api/v1/namespaces/ai-inference/services/gateway",
    ]


def test_addresses_of_load_balancers_are_noted_while_the_cluster_stands(server: Server) -> None:
    gateway = {"metadata": {"namespace": "ai-inference"}, "status": {"addresses": [{"value": "203.0.113.9"}]}}
    server.put("/apis/gateway.networking.k8s.io/v1/namespaces/ai-inference/gateways/engine", gateway)
    assert sorted(finalizers.addresses(cluster_of(server))) == ["203.0.113.7", "203.0.113.9"]


def test_what_hangs_is_named_with_its_finalizer(destroy: Callable[..., CloudDestroy], server: Server) -> None:
    server.keda_works = False
    with pytest.raises(FoundWrong) as caught:
        destroy()._chart(cluster_of(server))
    assert caught.value.code == "SD871"
    assert "scaledobjects/engine (finalizer.keda.sh)" in caught.value.message
    assert "--force-finalizers" in (caught.value.fix or "")
    assert not [path for method, path in server.requests if method == "PATCH"]


def test_finalizers_go_when_told(destroy: Callable[..., CloudDestroy], server: Server) -> None:
    server.keda_works = False
    run = destroy(force_finalizers=True)
    run._chart(cluster_of(server))
    assert finalizers.hanging(cluster_of(server), finalizers.ALL) == []
    assert "finalizers taken off: scaledobjects/engine (finalizer.keda.sh)" in run.progress.warnings


def test_a_cluster_that_does_not_answer_says_how_to_go_on(
    destroy: Callable[..., CloudDestroy], server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    server.down = True
    run = destroy()
    monkeypatch.setattr(removal.kubeconfig, "write", lambda *_: (tmp_path / "kubeconfig", "context"))
    run.reach = lambda *_: cluster_of(server)
    with pytest.raises(SpecdecError) as caught:
        run._reach({"cloud": "gke"})
    assert "specdec destroy test --from cluster" in (caught.value.fix or "")


def test_what_still_costs_money_is_listed(targets: Read, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in world.settings.items():
        monkeypatch.setenv(name, value)
    run = CloudDestroy(
        targets(), DestroyOptions(), Progress(quiet=True), ask=lambda _: None, may_force=lambda _: False, cloud=Silent()
    )
    assert run.run()["remains"][0] == "disk pvc-1: gcloud compute disks delete pvc-1"
