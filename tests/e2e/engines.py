"""The release's engine pods: how many there are, are ready, and what they work on."""

from __future__ import annotations

import time
from collections.abc import Callable

from machine import CHART, RELEASE, VALUES, helm
from specdec import local
from specdec.deploy.cluster import Cluster, Object


def release(*settings: str, wait: bool = True) -> None:
    """The release as the local environment has it, with some settings; no arguments put it back."""
    extra = local.values_file()
    files = ["-f", str(VALUES), *(["-f", str(extra)] if extra else [])]
    waiting = ["--wait", "--timeout", "10m"] if wait else []
    helm("upgrade", "--install", RELEASE, str(CHART), *files, *settings, *waiting)


def pods(cluster: Cluster, ready: bool = False) -> list[Object]:
    """Engine pods by name; with `ready` those that serve."""
    found = cluster.pods({"app.kubernetes.io/component": "engine", "app.kubernetes.io/instance": RELEASE})
    return [pod for pod in found if not ready or is_ready(pod)]


def is_ready(pod: Object) -> bool:
    conditions = pod["status"].get("conditions") or []
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def metric(cluster: Cluster, pod: Object, *names: str) -> float:
    """The sum of an engine's series of these names, as it tells it itself."""
    starts = tuple(f"{name}{{" for name in names)
    lines = cluster.pod(pod["metadata"]["name"]).get("/metrics").text.splitlines()
    return sum(float(line.split()[-1]) for line in lines if line.startswith(starts))


def streams(cluster: Cluster, pod: Object) -> int:
    """Requests that an engine works on."""
    return int(metric(cluster, pod, "vllm:num_requests_running", "vllm:num_requests_waiting"))


def wait_for(what: str, true: Callable[[], object], seconds: float, every: float = 1) -> float:
    """Seconds until something is so. Fails with `what` where it is not in time."""
    started = time.monotonic()
    while not true():
        assert time.monotonic() - started < seconds, f"after {seconds:.0f} s still not: {what}"
        time.sleep(every)
    return time.monotonic() - started
