"""Load on a Service from a pod of its own, as an application in the cluster would put it there."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

from load import PROMPTS
from machine import kubectl
from specdec import local
from specdec.deploy.cluster import CORE, Cluster, Object

SCRIPT = Path(__file__).with_name("load.py")
MAX_TOKENS = 96
STOP = "/tmp/stop"
__all__ = ["MAX_TOKENS", "PROMPTS", "Load", "Tally"]


@dataclass
class Tally:
    """Tokens of each answer by (client, prompt), and the answers that broke. Times are Unix seconds.

    times: when each answer was begun, had its first token, and ended. broken_begun: when the broken ones were begun.
    """

    answers: list[tuple[int, int, int]] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    times: list[tuple[float, float, float]] = field(default_factory=list)
    broken_begun: list[float] = field(default_factory=list)


class Load:
    """Clients that stream while the block runs: `with Load(cluster, "speculative-router", "target") as load: ...`,
    then `load.tally`.
    """

    def __init__(
        self, cluster: Cluster, service: str, model: str, clients: int = 4, port: int = 8000, tokens: int = MAX_TOKENS
    ) -> None:
        self.cluster, self.tally = cluster, Tally()
        self.arguments = [service, str(port), model, str(clients), str(tokens), STOP]
        self.path = cluster.path(CORE, "pods", "load")

    def __enter__(self) -> Load:
        self.cluster.request("POST", self.cluster.path(CORE, "pods"), json=self._pod())
        self._wait_for("Running", seconds=120)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            kubectl("exec", "load", "--", "touch", STOP)
            self._wait_for("Succeeded", seconds=300)
            told = json.loads(self.cluster.logs("load", "load")[-1])
            answers = [(client, prompt, tokens) for client, prompt, tokens in told["answers"]]
            times = [(begun, first, end) for begun, first, end in told["times"]]
            self.tally = Tally(answers, told["broken"], times, told["broken_begun"])
        kubectl("delete", "pod", "load", "--grace-period=0", "--force", "--wait=true")

    def _wait_for(self, phase: str, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while True:
            pod = self.cluster.get(self.path) or {}
            now = (pod.get("status") or {}).get("phase")
            if now in (phase, "Succeeded"):
                return
            assert now != "Failed", "\n".join(self.cluster.logs("load", "load"))
            assert time.monotonic() < deadline, f"the pod with the load is {now} after {seconds:.0f} s"
            time.sleep(0.5)

    def _pod(self) -> Object:
        """The script goes along as an argument, so that nothing has to be mounted."""
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "load"},
            "spec": {
                "restartPolicy": "Never",
                "containers": [
                    {
                        "name": "load",
                        "image": local.ROUTER_IMAGE,
                        "imagePullPolicy": "Never",
                        "command": ["python3", "-c", SCRIPT.read_text(), *self.arguments],
                        # Without a request of its own it would starve beside engines that take every core.
                        "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}},
                    }
                ],
            },
        }
