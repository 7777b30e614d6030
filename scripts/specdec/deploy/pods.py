"""A pod's state in one line, and what keeps it from becoming Ready."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from specdec.deploy import phases, scaleup
from specdec.deploy.cluster import Object
from specdec.manifests import mapping, sequence

Logs = Callable[[str, str, bool], list[str]]  # pod, container, previous -> last lines

# No second try helps: the image's name, a key that a Secret lacks.
AT_ONCE = ("InvalidImageName", "CreateContainerConfigError", "ErrImageNeverPull", "RunContainerError")
PULL = ("ImagePullBackOff", "ErrImagePull", "RegistryUnavailable")
MOUNTS = ("FailedMount", "FailedAttachVolume", "FailedCreatePodSandBox")


@dataclass(frozen=True)
class Trouble:
    """Why a pod does not become Ready. `patient`: it may still pass; give it a minute."""

    reason: str
    message: str
    container: str | None = None
    lines: list[str] = field(default_factory=list)
    patient: bool = False


@dataclass(frozen=True)
class State:
    """One line of the live table."""

    name: str
    engine: str
    phase: str
    ready: bool
    restarts: int
    trouble: Trouble | None = None


def is_hook(pod: Object) -> bool:
    """Whether it is a pod of a hook or a benchmark: it comes and goes, and is no part of the service."""
    component = mapping(pod["metadata"].get("labels")).get("app.kubernetes.io/component")
    return component == "benchmark" or "helm.sh/hook" in mapping(pod["metadata"].get("annotations"))


def time_of(text: str | None) -> float | None:
    """Kubernetes' timestamp as Unix seconds."""
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp() if text else None


def condition(pod: Object, name: str) -> dict[str, Any]:
    found = (entry for entry in sequence(mapping(pod.get("status")).get("conditions")) if entry.get("type") == name)
    return next(found, {})


def is_ready(pod: Object) -> bool:
    return condition(pod, "Ready").get("status") == "True" and "deletionTimestamp" not in pod["metadata"]


def seconds_to_ready(pod: Object) -> float | None:
    """From the pod's creation to Ready by the cluster's own times, seconds; None while it is not."""
    if not is_ready(pod):
        return None
    begin, end = (
        time_of(pod["metadata"].get("creationTimestamp")),
        time_of(condition(pod, "Ready").get("lastTransitionTime")),
    )
    return end - begin if begin is not None and end is not None else None


def statuses(pod: Object) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """(init containers', containers') statuses."""
    status = mapping(pod.get("status"))
    return sequence(status.get("initContainerStatuses")), sequence(status.get("containerStatuses"))


def restarts(pod: Object) -> int:
    init, main = statuses(pod)
    return sum(int(entry.get("restartCount") or 0) for entry in [*init, *main])


def engine_of(pod: Object) -> str:
    """The engine's name, or the component's."""
    labels = mapping(pod["metadata"].get("labels"))
    return str(labels.get("vllm-speculative/engine") or labels.get("app.kubernetes.io/component") or "")


def state(pod: Object, events: Sequence[Object], logs: Logs) -> State:
    """What the pod does now."""
    trouble = trouble_of(pod, events, logs)
    ready = is_ready(pod)
    phase = "ready" if ready else trouble.reason if trouble and not trouble.patient else doing(pod, events, logs)
    return State(pod["metadata"]["name"], engine_of(pod), phase, ready, restarts(pod), trouble)


def doing(pod: Object, events: Sequence[Object], logs: Logs) -> str:
    """The step of its way to Ready: scheduling, pulling, fetching models, loading weights."""
    name = pod["metadata"]["name"]
    if "deletionTimestamp" in pod["metadata"]:
        return "stopping"
    if not mapping(pod.get("spec")).get("nodeName"):
        if no_node := scaleup.refused(events):
            return f"waiting for a node: {no_node[1]}"
        return "waiting for a node" + (" (nodes are being added)" if scaling_up(events) else "")
    init, main = statuses(pod)
    for entry in init:
        if "running" in mapping(entry.get("state")) and not (entry.get("started") and entry.get("ready")):
            line = phases.last_line(logs(name, entry["name"], False))
            return f"{entry['name']}: {line}" if line else entry["name"]
    running = [entry for entry in main if "running" in mapping(entry.get("state"))]
    for entry in running:
        if not entry.get("ready") and engine_of(pod) == "router":
            return "waiting for an engine"
        if not entry.get("ready"):
            lines = logs(name, entry["name"], False)
            return phases.phase_of(lines) or phases.last_line(lines) or "starting"
    last = next(
        (event for event in reversed(events) if event.get("reason") in ("Pulling", "Pulled", "Scheduled")), None
    )
    return {"Pulling": "pulling the image", "Pulled": "starting", "Scheduled": "scheduled"}.get(
        (last or {}).get("reason", ""), "starting"
    )


def scaling_up(events: Sequence[Object]) -> bool:
    """Whether an autoscaler said that it adds a node for the pod."""
    return any(event.get("reason") in scaleup.ADDING for event in events)


def trouble_of(pod: Object, events: Sequence[Object], logs: Logs) -> Trouble | None:
    """The first thing that keeps the pod from Ready, with the lines that show it."""
    if is_ready(pod) or "deletionTimestamp" in pod["metadata"]:
        return None
    status, name = mapping(pod.get("status")), pod["metadata"]["name"]
    if status.get("phase") == "Failed":
        return Trouble(status.get("reason") or "Failed", status.get("message") or "the pod failed")
    scheduled = condition(pod, "PodScheduled")
    if scheduled.get("status") == "False" and (no_node := scaleup.refused(events)):
        return Trouble(*no_node, patient=True)
    if scheduled.get("status") == "False" and not scaling_up(events):
        return Trouble(scheduled.get("reason") or "Unschedulable", scheduled.get("message") or "no node", patient=True)
    init, main = statuses(pod)
    for entry in [*init, *main]:
        if trouble := _container_trouble(name, entry, events, logs):
            return trouble
    mount = next((event for event in reversed(events) if event.get("reason") in MOUNTS), None)
    if mount and not any("running" in mapping(entry.get("state")) for entry in [*init, *main]):
        return Trouble(mount["reason"], mount.get("message", ""), patient=True)
    return None


def _container_trouble(pod: str, entry: dict[str, Any], events: Sequence[Object], logs: Logs) -> Trouble | None:
    now = mapping(entry.get("state"))
    waiting = mapping(now.get("waiting"))
    reason = waiting.get("reason", "")
    if reason in AT_ONCE:
        return Trouble(reason, waiting.get("message", ""), entry["name"])
    if reason in PULL:
        return Trouble(reason, _pull_message(waiting, events), entry["name"], patient=True)
    ended = mapping(now.get("terminated")) or mapping(mapping(entry.get("lastState")).get("terminated"))
    if not ended or ended.get("exitCode") == 0:
        return None
    # While the container runs again, its former life is in the previous log.
    previous = "terminated" not in now and bool(entry.get("restartCount"))
    lines = logs(pod, entry["name"], previous)
    if ended.get("reason") == "OOMKilled":
        return Trouble(
            "OOMKilled", "it needed more memory than its limit (resources.limits.memory)", entry["name"], tail(lines)
        )
    if killed := _killed_by_probe(entry["name"], events):
        message = f"{killed}; last phase: {phases.phase_of(lines) or 'unknown'}"
        return Trouble("StartupProbe", message, entry["name"], tail(lines))
    causes = phases.causes(lines)
    message = causes[-1] if causes else f"exit code {ended.get('exitCode')}"
    again = reason != "CrashLoopBackOff" and int(entry.get("restartCount") or 0) < 2 and not phases.hopeless(lines)
    if again and "running" in now:
        return None  # its second try, which may take as long as the first
    return Trouble(reason or "Crashed", message, entry["name"], causes[:-1] + tail(lines), patient=again)


def _pull_message(waiting: dict[str, Any], events: Sequence[Object]) -> str:
    """The registry's answer stands in an event; the container only says that it backs off."""
    failed = (event.get("message", "") for event in reversed(events) if event.get("reason") == "Failed")
    return next((text for text in failed if "pull" in text.lower()), None) or str(waiting.get("message", ""))


def _killed_by_probe(container: str, events: Sequence[Object]) -> str | None:
    for event in reversed(events):
        message = event.get("message", "")
        if event.get("reason") == "Killing" and "failed startup probe" in message and container in message:
            return "killed because its startup probe failed to the end (probes.startup)"
    return None


def tail(lines: Sequence[str], count: int = 8) -> list[str]:
    """The last lines that hold anything."""
    return [phases.COLOUR.sub("", line).rstrip() for line in lines if line.strip()][-count:]
