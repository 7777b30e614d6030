"""The Kubernetes Job that runs `vllm bench serve` in the engine's own image."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from pathlib import Path

from specdec.bench import in_pod, placement
from specdec.bench.load import FOLDER, Prompts
from specdec.deploy.cluster import Object
from specdec.deploy.targets import COMPONENT, Engine
from specdec.manifests import mapping, sequence

BATCH = "/apis/batch/v1"
SECURITY = {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}}
RUN_AS = {"runAsNonRoot": True, "runAsUser": 2000, "runAsGroup": 2000, "fsGroup": 2000,
          "seccompProfile": {"type": "RuntimeDefault"}}  # fmt: skip
# What of the engine's pod the benchmark's shares: where it may run, and who it is there.
SHARED = ("serviceAccountName", "imagePullSecrets", "nodeSelector", "tolerations", "runtimeClassName")
OFFLINE = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")
MEMORY = "4Gi"


def labels(release: str) -> dict[str, str]:
    return {
        "app.kubernetes.io/name": "vllm-speculative",
        "app.kubernetes.io/instance": release,
        COMPONENT: "benchmark",
    }


def config_map(name: str, release: str, prompts: Prompts) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "labels": labels(release)},
        "data": {prompts.name: prompts.text},
    }


def manifest(
    name: str,
    release: str,
    engine: Engine,
    words: Sequence[str],
    prompts: str | None,
    timeout: int,
    affinity: Object | None = None,
) -> Object:
    """The Job. It sees the engine's volumes (models, scratch) and variables, and asks for no accelerator.

    `prompts`: the ConfigMap that holds them; `timeout` in seconds; `affinity`: see specdec.bench.placement.
    """
    workload = engine.workload
    spec = mapping(workload.pod_spec)
    mounts = copy.deepcopy(sequence(workload.container.get("volumeMounts")))
    volumes = copy.deepcopy(sequence(spec.get("volumes"))) + placement.claims(engine)
    env = copy.deepcopy(sequence(workload.container.get("env")))
    if empty := placement.empty_cache(engine):
        # This pod's own cache is empty: the tokenizer comes from where the engine's models came from.
        mounts = [
            {**mount, "readOnly": mount.get("name") != empty and mount.get("readOnly", False)} for mount in mounts
        ]
        env = [variable for variable in env if variable.get("name") not in OFFLINE]
        known = {variable.get("name") for variable in env}
        env += [variable for variable in placement.fetching(engine) if variable.get("name") not in known]
    if prompts:
        mounts.append({"name": "bench-prompts", "mountPath": FOLDER, "readOnly": True})
        volumes.append({"name": "bench-prompts", "configMap": {"name": prompts}})
    if not any(mount.get("mountPath") == "/tmp" for mount in mounts):
        mounts.append({"name": "bench-tmp", "mountPath": "/tmp"})
        volumes.append({"name": "bench-tmp", "emptyDir": {"sizeLimit": "2Gi"}})
    # The engine's key is the client's key.
    env += [variable | {"name": "OPENAI_API_KEY"} for variable in env if variable.get("name") == "VLLM_API_KEY"]
    if revision := workload.args.value("--tokenizer-revision", "--revision"):
        env.append({"name": in_pod.REVISION, "value": revision})
    container = {
        "name": "bench",
        "image": workload.image,
        "imagePullPolicy": workload.container.get("imagePullPolicy", "IfNotPresent"),
        "command": ["python3", "-c", Path(in_pod.__file__).read_text(encoding="utf-8").replace("$(", "$$(")],
        # Kubernetes would expand $(NAME).
        "args": [word.replace("$(", "$$(") for word in words],
        "env": env,
        "envFrom": copy.deepcopy(sequence(workload.container.get("envFrom"))),
        "resources": {"requests": {"cpu": "100m", "memory": "512Mi"}, "limits": {"memory": MEMORY}},
        "securityContext": SECURITY,
        "volumeMounts": mounts,
    }
    pod: Object = {key: copy.deepcopy(spec[key]) for key in SHARED if spec.get(key)}
    pod |= {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 5,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": RUN_AS | mapping(spec.get("securityContext")) | {"runAsNonRoot": True},
        "affinity": affinity or placement.near(engine.selector),
        "containers": [container],
        "volumes": volumes,
    }
    metadata: Object = {"labels": labels(release)}
    if annotations := placement.of_volumes(engine):
        metadata["annotations"] = annotations
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "labels": labels(release)},
        "spec": {
            "backoffLimit": 0,
            "activeDeadlineSeconds": timeout,
            "ttlSecondsAfterFinished": 3600,
            "template": {"metadata": metadata, "spec": pod},
        },
    }
