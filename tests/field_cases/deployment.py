"""A Deployment of one engine, and how it is rolled."""

from __future__ import annotations

import json
from typing import Any

PROBE = {"httpGet": {"path": "/health", "port": 8000}}


def deployment(
    strategy: dict[str, Any] | None = None, replicas: int = 1, gpus: int = 4, pool: int | None = None
) -> str:
    labels = {"app": "engine"}
    container = {
        "name": "engine",
        "image": "vllm/vllm-openai:v0.32.0",
        "args": ["/models/target", f"--tensor-parallel-size={gpus}"],
        "resources": {"limits": {"nvidia.com/gpu": str(gpus), "memory": "64Gi"}},
        "readinessProbe": PROBE,
        "volumeMounts": [{"name": "shm", "mountPath": "/dev/shm"}],
    }
    shm = {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "16Gi"}}
    annotations = {"vllm-speculative/pool-gpus": str(pool)} if pool else {}
    return json.dumps(
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "engine", "annotations": annotations},
            "spec": {
                "replicas": replicas,
                "selector": {"matchLabels": labels},
                **({"strategy": strategy} if strategy else {}),
                "template": {"metadata": {"labels": labels}, "spec": {"containers": [container], "volumes": [shm]}},
            },
        }
    )


IN_PLACE = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}
