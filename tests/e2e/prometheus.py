"""A real Prometheus in the cluster, from the machine's own program, and questions to it."""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from machine import PATH, kubectl
from specdec import local
from specdec.deploy.cluster import Cluster
from specdec.local import layers
from specdec.local.containerd import Containerd, Image, Layer

MANIFEST = Path(__file__).with_name("prometheus.yaml")
IMAGE = "localhost/vllm-speculative/prometheus:test"


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
        kubectl("apply", "-f", str(MANIFEST))
        kubectl("wait", "--for=condition=Ready", "pod/prometheus", "--timeout=120s")
        return self

    def __exit__(self, *_: object) -> None:
        print("\n".join(self.cluster.logs("prometheus", "prometheus", tail=8)))
        kubectl("delete", "-f", str(MANIFEST), "--wait=true", "--ignore-not-found")

    def query(self, expression: str) -> list[dict[str, Any]]:
        """The samples of an instant query. Raises EndpointError where Prometheus refuses the expression."""
        answer = self.endpoint.get("/api/v1/query?" + urlencode({"query": expression})).json()
        return list(answer["data"]["result"])

    def rules(self) -> list[dict[str, Any]]:
        """Every rule that Prometheus loaded, with its health and last error."""
        groups = self.endpoint.get("/api/v1/rules").json()["data"]["groups"]
        return [rule for group in groups for rule in group["rules"]]
