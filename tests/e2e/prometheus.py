"""A real Prometheus in the cluster, from the machine's own program, and questions to it."""

from __future__ import annotations

import json
import re
import shutil
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from machine import NAMESPACE, PATH, RELEASE, kubectl
from specdec import local
from specdec.deploy.cluster import CORE, Cluster, Object
from specdec.local import layers
from specdec.local.containerd import Containerd, Image, Layer

POD = Path(__file__).with_name("prometheus.yaml")
IMAGE = "localhost/vllm-speculative/prometheus:test"
SCRAPE = "prometheus.io/"
TARGETS = "/data/targets.json"
CONFIG = {
    "global": {"scrape_interval": "5s", "evaluation_interval": "5s"},
    "rule_files": ["/rules/*.yaml"],
    "scrape_configs": [{"job_name": "pods", "file_sd_configs": [{"files": [TARGETS], "refresh_interval": "10s"}]}],
}


class Prometheus:
    """Runs while the block does: `with Prometheus(cluster, scratch) as prometheus: ...`."""

    def __init__(self, cluster: Cluster, scratch: Path) -> None:
        self.cluster, self.scratch = cluster, scratch
        self.endpoint = cluster.pod("prometheus", 9090)

    def __enter__(self) -> Prometheus:
        program = shutil.which("prometheus", path=PATH)
        assert program, "prometheus is missing: python3 scripts/setup monitoring"
        place = self.scratch / "usr/bin/prometheus"
        place.parent.mkdir(parents=True)
        shutil.copy(program, place)
        image = Image(IMAGE, (layers.layer("base"), Layer(f"prometheus {time.time_ns()}", self.scratch)),
                      layers.config("prometheus"))  # fmt: skip
        Containerd(local.state_dir() / "run/containerd.sock").load(image)
        config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "prometheus"},
                  "data": {"prometheus.yml": json.dumps(CONFIG)}}  # fmt: skip
        self.cluster.request("POST", self.cluster.path(CORE, "configmaps"), json=config)
        kubectl("apply", "-f", str(POD))
        kubectl("wait", "--for=condition=Ready", "pod/prometheus", "--timeout=120s")
        self.discover()
        return self

    def discover(self) -> None:
        """Scrape the pods that there are now, as discovery by Kubernetes would."""
        write = f'printf %s "$0" > {TARGETS}.new && mv {TARGETS}.new {TARGETS}'
        kubectl("exec", "prometheus", "--", "sh", "-c", write, json.dumps(self._targets()))

    def __exit__(self, *_: object) -> None:
        print("\n".join(self.cluster.logs("prometheus", "prometheus", tail=8)))
        kubectl("delete", "pod,configmap,service", "prometheus", "--wait=true", "--ignore-not-found")

    def _targets(self) -> list[Object]:
        """Every pod of the release that asks for it by annotation, under the labels that discovery would give it."""
        targets = []
        for pod in self.cluster.pods({"app.kubernetes.io/instance": RELEASE}):
            meta = pod["metadata"]
            notes = meta.get("annotations") or {}
            address = pod["status"].get("podIP")
            if notes.get(f"{SCRAPE}scrape") == "true" and address:
                labels = {re.sub(r"[^a-zA-Z0-9_]", "_", key): value for key, value in meta["labels"].items()}
                labels |= {"namespace": NAMESPACE, "pod": meta["name"]}
                targets.append({"targets": [f"{address}:{notes[f'{SCRAPE}port']}"], "labels": labels})
        return targets

    def query(self, expression: str, moment: float | None = None) -> list[dict[str, Any]]:
        """The samples of an instant query at a moment (Unix time; default: now). Raises EndpointError where Prometheus
        refuses the expression.
        """
        asked = {"query": expression} | ({"time": f"{moment:.3f}"} if moment is not None else {})
        answer = self.endpoint.get("/api/v1/query?" + urlencode(asked)).json()
        return list(answer["data"]["result"])

    def rules(self) -> list[dict[str, Any]]:
        """Every rule that Prometheus loaded, with its health and last error."""
        groups = self.endpoint.get("/api/v1/rules").json()["data"]["groups"]
        return [rule for group in groups for rule in group["rules"]]
