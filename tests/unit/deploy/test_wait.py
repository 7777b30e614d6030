"""A user watches pods load, and reads why one does not. Objects are a 1.34 cluster's, cut to what matters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from specdec.deploy import pods, wait
from specdec.deploy.cluster import Cluster
from specdec.deploy.pods import State
from specdec.deploy.workloads import pod_templates
from specdec.errors import FoundWrong
from specdec.manifests import parse

from .conftest import ApiServer

SET = """
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: speculative}
spec:
  replicas: 1
  selector: {matchLabels: {app: x}}
  template:
    metadata: {labels: {app: x}}
    spec:
      initContainers: [{name: prefetch, image: i}]
      containers:
        - {name: engine, image: i, args: [--model, m], startupProbe: {periodSeconds: 10, failureThreshold: 90}}
"""
APPS = "/apis/apps/v1"


def workload(api: ApiServer, ready: int = 0, revision: str = "r1", **changes: Any) -> None:
    status = {
        "observedGeneration": 1, "readyReplicas": ready, "updatedReplicas": ready,
        "currentRevision": "r1", "updateRevision": revision,
    }  # fmt: skip
    value = {
        "kind": "StatefulSet",
        "metadata": {"generation": 1},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "x"}}},
        "status": status | changes,
    }
    api.add("statefulsets", "speculative", value, APPS)


def pod(api: ApiServer, name: str = "speculative-0", revision: str = "r1", **status: Any) -> None:
    labels = {"app": "x", "controller-revision-hash": revision, "vllm-speculative/engine": "speculative"}
    value = {
        "metadata": {"labels": labels, "creationTimestamp": "2026-11-29T13:00:00Z"},
        "spec": {"nodeName": "h100"},
        "status": {"phase": "Pending", **status},
    }
    api.add("pods", name, value)


def event(api: ApiServer, name: str, reason: str, message: str, about: str = "speculative-0") -> None:
    api.add(
        "events", name, {"involvedObject": {"name": about}, "reason": reason, "message": message, "lastTimestamp": name}
    )


def engine(state: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"containerStatuses": [{"name": "engine", "ready": False, "restartCount": 0, "state": state, **more}]}


READY = {"conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-11-29T13:00:41Z"}]}


class Clock:
    """Sleeps that take no time; `then` happens after each."""

    def __init__(self, *then: Callable[[], None]) -> None:
        self.now, self.then = 0.0, list(then)

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        if self.then:
            self.then.pop(0)()


def watch(cluster: Cluster, clock: Clock, seconds: float = 300) -> tuple[list[Any], list[list[State]]]:
    shown: list[list[State]] = []
    waiter = wait.Waiter(cluster, pod_templates(parse(SET, "x")), show=shown.append, clock=clock, sleep=clock.sleep)
    return waiter.run(seconds), shown


def fails(cluster: Cluster, clock: Clock | None = None, seconds: float = 300) -> FoundWrong:
    with pytest.raises(FoundWrong) as failed:
        watch(cluster, clock or Clock(), seconds)
    return failed.value


def test_a_pod_is_followed_from_scheduling_to_ready(api: ApiServer, cluster: Cluster) -> None:
    def scheduled() -> None:
        event(api, "1", "Pulling", 'Pulling image "i"')

    def fetching() -> None:
        running = {"name": "prefetch", "ready": False, "started": True, "state": {"running": {}}}
        pod(api, initContainerStatuses=[running])
        api.logs["speculative-0", "prefetch", False] = "fetching org/draft\n3 of 9 files\n"

    def loading() -> None:
        pod(api, **engine({"running": {}}))
        api.logs["speculative-0", "engine", False] = "Loading safetensors checkpoint shards:  40% Completed | 2/5\n"

    def ready() -> None:
        pod(api, **READY)
        workload(api, ready=1)

    workload(api)
    pod(api)
    done, shown = watch(cluster, Clock(scheduled, fetching, loading, ready))
    assert [states[0].phase for states in shown] == [
        "starting", "pulling the image", "prefetch: 3 of 9 files", "loading weights 40%", "ready",
    ]  # fmt: skip
    assert [one["metadata"]["name"] for one in done] == ["speculative-0"]
    assert pods.seconds_to_ready(done[0]) == 41


def test_a_router_that_runs_waits_for_its_engines(api: ApiServer, cluster: Cluster) -> None:
    workload(api)
    pod(api, **engine({"running": {}}))
    labels = api.objects["/api/v1/namespaces/ai-inference/pods/speculative-0"]["metadata"]["labels"]
    del labels["vllm-speculative/engine"]
    labels["app.kubernetes.io/component"] = "router"
    _, _, states = wait.Waiter(cluster, pod_templates(parse(SET, "x"))).look()
    assert [state.phase for state in states] == ["waiting for an engine"]


def test_pods_that_run_already_are_done_at_the_first_look(api: ApiServer, cluster: Cluster) -> None:
    workload(api, ready=1)
    pod(api, **READY)
    _, shown = watch(cluster, Clock())
    assert len(shown) == 1


def test_an_upgrade_is_not_done_while_its_old_pod_is_ready(api: ApiServer, cluster: Cluster) -> None:
    def updated() -> None:
        pod(api, revision="r2", **READY)
        workload(api, ready=1, revision="r2", updatedReplicas=1)

    workload(api, ready=1, revision="r2", updatedReplicas=0)
    pod(api, revision="r1", **READY)
    done, shown = watch(cluster, Clock(updated))
    assert len(shown) == 2
    assert done[0]["metadata"]["labels"]["controller-revision-hash"] == "r2"


def test_a_controller_that_has_not_seen_the_change_yet_is_waited_for(api: ApiServer, cluster: Cluster) -> None:
    workload(api, ready=1, observedGeneration=0)
    pod(api, **READY)
    _, shown = watch(cluster, Clock(lambda: workload(api, ready=1)))
    assert len(shown) == 2


def test_a_pod_that_no_node_takes_is_reported_with_the_schedulers_words(api: ApiServer, cluster: Cluster) -> None:
    words = "0/3 nodes are available: 3 Insufficient nvidia.com/gpu."
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": words}
    workload(api)
    pod(api, conditions=[condition])
    clock = Clock()
    failed = fails(cluster, clock)
    assert failed.exit_code == 1
    assert failed.message.startswith(f"pod speculative-0: Unschedulable: {words}")
    assert 60 < clock.now < 70


def test_while_an_autoscaler_adds_a_node_nobody_gives_up_early(api: ApiServer, cluster: Cluster) -> None:
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes"}
    workload(api)
    pod(api, conditions=[condition])
    api.objects["/api/v1/namespaces/ai-inference/pods/speculative-0"]["spec"] = {}
    event(api, "1", "TriggeredScaleUp", "pod triggered scale-up: [{h100 0->1}]")
    failed = fails(cluster, seconds=600)
    assert failed.code == "not-ready"
    assert "waiting for a node (nodes are being added)" in failed.message


def test_an_image_that_cannot_be_pulled_is_reported_with_the_registrys_words(api: ApiServer, cluster: Cluster) -> None:
    workload(api)
    waiting = {"reason": "ImagePullBackOff", "message": 'Back-off pulling image "vllm/vllm-openai:v9"'}
    pod(api, **engine({"waiting": waiting}))
    event(api, "1", "Failed", 'Failed to pull image "vllm/vllm-openai:v9": not found')
    failed = fails(cluster)
    assert 'Failed to pull image "vllm/vllm-openai:v9": not found' in failed.message
    assert "engine.image" in str(failed.fix) or "image.repository" in str(failed.fix)


def test_a_secret_key_that_is_missing_fails_at_once(api: ApiServer, cluster: Cluster) -> None:
    workload(api)
    waiting = {"reason": "CreateContainerConfigError", "message": "couldn't find key token in Secret ai/hf"}
    pod(api, **engine({"waiting": waiting}))
    clock = Clock()
    assert "couldn't find key token" in fails(cluster, clock).message
    assert clock.now == 0


def test_a_container_that_was_killed_for_memory_is_reported_at_once(api: ApiServer, cluster: Cluster) -> None:
    workload(api)
    ended = {"terminated": {"reason": "OOMKilled", "exitCode": 137}}
    pod(api, **engine({"running": {}}, lastState=ended, restartCount=1))
    api.logs["speculative-0", "engine", True] = "Loading safetensors checkpoint shards:  80% Completed\n"
    failed = fails(cluster)
    assert "container engine: OOMKilled" in failed.message
    assert "80% Completed" in failed.message
    assert "resources.limits.memory" in str(failed.fix)


def test_an_engine_that_refuses_its_arguments_is_reported_with_its_own_words(api: ApiServer, cluster: Cluster) -> None:
    workload(api)
    pod(api, **engine({"terminated": {"reason": "Error", "exitCode": 1}}))
    api.logs["speculative-0", "engine", False] = (
        "(EngineCore pid=9) ERROR 11-29 13:40:02 [core.py:1] ValueError: Target and draft model should have the same "
        "vocabulary size.\nRuntimeError: Engine core initialization failed. See root cause above.\n"
    )
    clock = Clock()
    failed = fails(cluster, clock)
    assert "ValueError: Target and draft model should have the same vocabulary size." in failed.message.splitlines()[0]
    assert clock.now == 0


def test_a_crash_that_may_pass_gets_another_try(api: ApiServer, cluster: Cluster) -> None:
    def again() -> None:
        pod(api, **READY)
        workload(api, ready=1)

    workload(api)
    pod(api, **engine({"terminated": {"reason": "Error", "exitCode": 1}}))
    api.logs["speculative-0", "engine", False] = "OSError: We couldn't connect to 'https://huggingface.co'\n"
    done, _ = watch(cluster, Clock(again))
    assert len(done) == 1


def test_the_second_try_may_take_as_long_as_the_first(api: ApiServer, cluster: Cluster) -> None:
    def ready() -> None:
        pod(api, **READY)
        workload(api, ready=1)

    workload(api)
    ended = {"terminated": {"reason": "Error", "exitCode": 1}}
    pod(api, **engine({"running": {}}, lastState=ended, restartCount=1))
    api.logs["speculative-0", "engine", True] = "OSError: We couldn't connect to 'https://huggingface.co'\n"
    clock = Clock(*[lambda: None] * 100, ready)
    watch(cluster, clock)
    assert clock.now > 2 * wait.PATIENCE


def test_an_evicted_pod_beside_its_replacement_is_history(api: ApiServer, cluster: Cluster) -> None:
    revision = {"deployment.kubernetes.io/revision": "4"}
    value = {
        "kind": "Deployment",
        "metadata": {"generation": 1, "annotations": revision},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "x"}}},
        "status": {"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "readyReplicas": 0},
    }
    labels = {"app": "x", "pod-template-hash": "new"}
    api.add("deployments", "speculative", value, APPS)
    api.add("replicasets", "speculative-new", {"metadata": {"labels": labels, "annotations": revision}}, APPS)
    api.add("pods", "evicted", {"metadata": {"labels": labels}, "status": {"phase": "Failed", "reason": "Evicted"}})
    api.add("pods", "old", {"metadata": {"labels": {"app": "x", "pod-template-hash": "old"}}, "status": READY})
    api.add("pods", "fresh", {"metadata": {"labels": labels}, "spec": {"nodeName": "n"}, "status": {}})
    text = SET.replace("StatefulSet", "Deployment")
    _, pods_now, states = wait.Waiter(cluster, pod_templates(parse(text, "x"))).look()
    assert [one["metadata"]["name"] for one in pods_now] == ["fresh"]
    assert [state.name for state in states] == ["fresh"]


def test_a_crash_loop_shows_the_last_lines_of_the_life_before(api: ApiServer, cluster: Cluster) -> None:
    workload(api)
    state = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 20s"}}
    ended = {"terminated": {"reason": "Error", "exitCode": 3}}
    pod(api, **engine(state, lastState=ended, restartCount=3))
    api.logs["speculative-0", "engine", True] = "starting\nlibnuma: not found\n"
    failed = fails(cluster)
    assert "CrashLoopBackOff: exit code 3" in failed.message
    assert "| libnuma: not found" in failed.message


def test_an_engine_killed_by_its_startup_probe_names_the_probe_and_the_phase(api: ApiServer, cluster: Cluster) -> None:
    workload(api)
    ended = {"terminated": {"reason": "Error", "exitCode": 137}}
    pod(api, **engine({"running": {}}, lastState=ended, restartCount=1))
    event(api, "1", "Killing", "Container engine failed startup probe, will be restarted")
    api.logs["speculative-0", "engine", True] = "Loading safetensors checkpoint shards:  60% Completed | 18/30\n"
    failed = fails(cluster)
    assert "its startup probe failed" in failed.message
    assert "loading weights 60%" in failed.message
    assert "probes.startup" in str(failed.fix)


def test_a_set_that_may_not_make_pods_says_why(api: ApiServer, cluster: Cluster) -> None:
    workload(api)
    words = (
        'create Pod speculative-0 in StatefulSet speculative failed: pods "speculative-0" is forbidden: exceeded quota'
    )
    event(api, "1", "FailedCreate", words, about="speculative")
    assert "exceeded quota" in fails(cluster).message


def test_a_volume_that_does_not_mount_is_reported(api: ApiServer, cluster: Cluster) -> None:
    workload(api)
    pod(api, **engine({"waiting": {"reason": "ContainerCreating"}}))
    event(
        api, "1", "FailedMount", "MountVolume.SetUp failed: hostPath type check failed: /mnt/models is not a directory"
    )
    assert "hostPath type check failed" in fails(cluster).message


def test_an_evicted_pod_says_why(api: ApiServer, cluster: Cluster) -> None:
    workload(api)
    pod(api, phase="Failed", reason="Evicted", message="The node was low on resource: ephemeral-storage.")
    assert "low on resource: ephemeral-storage" in fails(cluster).message


def test_when_the_time_is_up_each_late_pod_says_what_it_was_doing(api: ApiServer, cluster: Cluster) -> None:
    workload(api)
    pod(api, **engine({"running": {}}))
    api.logs["speculative-0", "engine", False] = "Loading safetensors checkpoint shards:  40% Completed\n"
    failed = fails(cluster, seconds=90)
    assert "none became so within 90 s" in failed.message
    assert "speculative-0: loading weights 40%" in failed.message


def test_a_cluster_that_answers_again_within_a_minute_is_forgiven(api: ApiServer, cluster: Cluster) -> None:
    def back() -> None:
        api.down = False
        pod(api, **READY)
        workload(api, ready=1)

    workload(api)
    api.down = True
    clock = Clock(*[lambda: None] * 20, back)
    watch(cluster, clock)
    assert clock.now == 42


def test_a_cluster_that_dies_in_the_middle_is_said_after_a_minute(api: ApiServer, cluster: Cluster) -> None:
    def dies() -> None:
        api.down = True

    workload(api)
    pod(api)
    clock = Clock(dies)
    failed = fails(cluster, clock, seconds=3600)
    assert failed.code == "cluster-died"
    assert failed.exit_code == 1
    assert "stopped answering while the pods were loading" in failed.message
    assert clock.now < 70


def test_a_workload_that_someone_removes_meanwhile_is_noticed(cluster: Cluster) -> None:
    assert "StatefulSet speculative is gone" in fails(cluster).message


def test_the_budget_covers_pulling_fetching_and_the_startup_probe() -> None:
    # 600 s to pull, and 90 × 10 s twice: the init container fetches what the engine then loads.
    assert wait.budget(pod_templates(parse(SET, "x"))) == 600 + 2 * 900


@pytest.mark.parametrize(
    ("metadata", "passing"),
    [
        ({"labels": {"app.kubernetes.io/component": "benchmark"}}, True),
        ({"annotations": {"helm.sh/hook": "test"}}, True),
        ({"labels": {"app.kubernetes.io/component": "engine"}}, False),
        ({}, False),
    ],
)
def test_a_pod_that_comes_and_goes_does_not_make_a_release_unhealthy(metadata: dict[str, Any], passing: bool) -> None:
    """A load generator that has ended is never Ready."""
    assert pods.is_hook({"metadata": metadata}) is passing
