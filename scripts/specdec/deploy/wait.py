"""Wait until a release's pods are Ready, show what they do meanwhile; say which one fails, why, and its last lines."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from specdec.deploy import pods as pod_states
from specdec.deploy import scaleup
from specdec.deploy.cluster import APPS, CORE, Cluster, Object, Unreachable
from specdec.deploy.pods import State, Trouble
from specdec.deploy.workloads import LASTING, PodTemplate
from specdec.errors import FoundWrong
from specdec.manifests import mapping, sequence

PATIENCE = 60.0  # seconds that an image pull, scheduling or a mount may fail before it counts
DEAD_AFTER = 60.0  # seconds without an answer after which the cluster is given up
PULL_ALLOWANCE = 600.0  # seconds for scheduling and pulling an image of some 10 GB, before the startup probe begins
WITHOUT_PROBE = 600.0


def startup_seconds(spec: dict[str, object]) -> float:
    """What the startup probes of a pod allow: initial delay + period × failures, the largest of its containers."""
    budgets = [
        float(probe.get("initialDelaySeconds") or 0)
        + float(probe.get("periodSeconds") or 10) * float(probe.get("failureThreshold") or 3)
        for container in sequence(spec.get("containers"))
        if (probe := mapping(container.get("startupProbe")))
    ]
    return max(budgets, default=WITHOUT_PROBE)


def budget(templates: Iterable[PodTemplate]) -> float:
    """Seconds that may pass without a further pod becoming Ready: pulling, fetching models where an init container
    does, and the startup probe's own allowance, which is made from the models' bytes."""
    lasting = [template for template in templates if template.manifest.kind in LASTING]
    return PULL_ALLOWANCE + max(
        (startup_seconds(one.spec) * (2 if one.spec.get("initContainers") else 1) for one in lasting), default=0
    )


@dataclass
class Waiter:
    """Watches the workloads of `templates`. `show` gets the pods' states at every look."""

    cluster: Cluster
    templates: Sequence[PodTemplate]
    show: Callable[[list[State]], None] = lambda _: None
    report: Callable[[str], None] = lambda _: None
    interval: float = 2.0
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    _since: dict[tuple[str, str], float] = field(default_factory=dict)

    def run(self, seconds: float) -> list[Object]:
        """The Ready pods. Raises FoundWrong with pod, reason and last lines; after `seconds` without progress too."""
        silent_since: float | None = None
        progress_at, ready_before = self.clock(), -1
        states: list[State] = []
        while True:
            try:
                done, pods, states = self.look()
                silent_since = None
            except Unreachable as error:
                silent_since = silent_since if silent_since is not None else self.clock()
                silent = self.clock() - silent_since
                if silent > DEAD_AFTER:
                    raise FoundWrong(
                        f"the cluster stopped answering while the pods were loading: {error.message}",
                        code="cluster-died",
                        fix="bring the cluster back and deploy again: what was applied is still there",
                    ) from error
                self.report(f"the cluster does not answer ({silent:.0f} s); trying on")
                self.sleep(self.interval)
                continue
            self.show(states)
            if done:
                return pods
            for state in states:
                self._judge(state)
            ready = sum(state.ready for state in states)
            if ready > ready_before:
                progress_at, ready_before = self.clock(), ready
            if self.clock() - progress_at > seconds:
                raise self._too_late(states, seconds)
            self.sleep(self.interval)

    def look(self) -> tuple[bool, list[Object], list[State]]:
        """(whether all is rolled out, its pods, their states) now."""
        done, pods, states = True, [], []
        for template in self.templates:
            if template.manifest.kind not in LASTING:
                continue
            workload = self.cluster.get(self.cluster.path(APPS, plural(template), template.manifest.name))
            if workload is None:
                raise FoundWrong(f"{template.where} is gone: someone removed it while it was loading", code="gone")
            mine = self._pods_of(workload)
            done &= rolled_out(workload)
            pods += mine
            states += [self._state(pod) for pod in mine]
            if not mine and template.count:
                states.append(self._childless(workload, template))
        return done, pods, states

    def _state(self, pod: Object) -> State:
        events = [] if pod_states.is_ready(pod) else self.cluster.events(pod["metadata"]["name"])
        return pod_states.state(pod, events, self.cluster.logs)

    def _pods_of(self, workload: Object) -> list[Object]:
        """The pods of the workload's newest revision: those of older ones are on their way out."""
        labels = mapping(mapping(workload["spec"].get("selector")).get("matchLabels"))
        pods = self.cluster.pods(labels)
        if workload["kind"] == "StatefulSet":
            newest = mapping(workload.get("status")).get("updateRevision")
            return [pod for pod in pods if pod["metadata"]["labels"].get("controller-revision-hash") in (newest, None)]
        if workload["kind"] == "Deployment":
            revision = mapping(workload["metadata"].get("annotations")).get("deployment.kubernetes.io/revision")
            selector = ",".join(f"{key}={value}" for key, value in labels.items())
            sets = self.cluster.items(self.cluster.path(APPS, "replicasets"), labelSelector=selector)
            newest = {
                mapping(one["metadata"].get("labels")).get("pod-template-hash")
                for one in sets
                if mapping(one["metadata"].get("annotations")).get("deployment.kubernetes.io/revision") == revision
            }
            mine = [pod for pod in pods if pod["metadata"]["labels"].get("pod-template-hash") in newest]
            # Evicted pods of a Deployment stay as a record beside those that replaced them.
            return [pod for pod in mine if mapping(pod.get("status")).get("phase") != "Failed"] or mine
        return pods

    def _childless(self, workload: Object, template: PodTemplate) -> State:
        """A workload without pods: its controller says why in an event (quota, Pod Security) or has not got to it."""
        failed = [
            event
            for event in self.cluster.items(self.cluster.path(CORE, "events"))
            if event.get("reason") == "FailedCreate"
            and str(mapping(event.get("involvedObject")).get("name", "")).startswith(workload["metadata"]["name"])
        ]
        trouble = Trouble("FailedCreate", failed[-1].get("message", ""), patient=True) if failed else None
        return State(template.where, "", "waiting for its pods", False, 0, trouble)

    def _judge(self, state: State) -> None:
        """Raise for trouble that will not pass, or has not passed for a minute."""
        trouble = state.trouble
        if trouble is None:
            for key in [key for key in self._since if key[0] == state.name]:
                del self._since[key]
            return
        since = self._since.setdefault((state.name, trouble.reason), self.clock())
        patience = scaleup.PATIENCE if trouble.reason in scaleup.FIXES else PATIENCE
        if not trouble.patient or self.clock() - since > patience:
            raise failure(state, trouble)

    def _too_late(self, states: Sequence[State], seconds: float) -> FoundWrong:
        late = [state for state in states if not state.ready]
        lines = "".join(f"\n  {state.name}: {state.phase}" for state in late)
        return FoundWrong(
            f"{len(late)} of {len(states)} pods are not Ready, none became so within {seconds:.0f} s{lines}",
            code="not-ready",
            fix="they go on loading: look with specdec status, or wait longer with --timeout",
        )


def failure(state: State, trouble: Trouble) -> FoundWrong:
    """Which pod, why, and its last lines."""
    place = f"pod {state.name}" + (f", container {trouble.container}" if trouble.container else "")
    lines = "".join(f"\n  | {line}" for line in trouble.lines)
    return FoundWrong(
        f"{place}: {trouble.reason}: {trouble.message}{lines}", code="pod-failed", fix=FIXES.get(trouble.reason)
    )


FIXES = {
    **scaleup.FIXES,
    "Unschedulable": "specdec status shows the nodes; other resources, labels or tolerations in the values",
    "ImagePullBackOff": "check image.repository and tag, and imagePullSecrets",
    "ErrImagePull": "check image.repository and tag, and imagePullSecrets",
    "OOMKilled": "raise engine.resources.limits.memory, or lower the KV cache",
    "StartupProbe": "raise probes.startup: its budget has to cover loading both models",
}


def plural(template: PodTemplate) -> str:
    return template.manifest.kind.lower() + "s"


def rolled_out(workload: Object) -> bool:
    """Whether every replica is of the newest revision and Ready (kubectl rollout status' rule)."""
    spec, status = mapping(workload.get("spec")), mapping(workload.get("status"))
    if int(status.get("observedGeneration") or 0) < int(workload["metadata"].get("generation") or 0):
        return False
    if workload["kind"] == "DaemonSet":
        wanted = int(status.get("desiredNumberScheduled") or 0)
        return wanted == int(status.get("updatedNumberScheduled") or 0) == int(status.get("numberAvailable") or 0)
    wanted = int(spec.get("replicas", 1))
    ready, updated = int(status.get("readyReplicas") or 0), int(status.get("updatedReplicas") or 0)
    if workload["kind"] == "StatefulSet":
        # A set that never was updated counts no updated replicas in some versions; its revisions agree then.
        same = status.get("currentRevision") == status.get("updateRevision")
        return ready == wanted and (updated == wanted or same)
    return ready == wanted == updated == int(status.get("replicas") or 0)
