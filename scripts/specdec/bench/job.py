"""One run of `vllm bench serve` as a Kubernetes Job of the engine's own image, and its result out of the Job's log."""

from __future__ import annotations

import base64
import copy
import gzip
import hashlib
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from specdec.bench import in_pod
from specdec.bench.load import FOLDER, Prompts
from specdec.deploy import pods
from specdec.deploy.cluster import CORE, ApiError, Cluster, Object
from specdec.deploy.targets import COMPONENT, Engine
from specdec.errors import FoundWrong, SpecdecError
from specdec.manifests import mapping, sequence

BATCH = "/apis/batch/v1"
SECURITY = {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}}
RUN_AS = {"runAsNonRoot": True, "runAsUser": 2000, "runAsGroup": 2000, "fsGroup": 2000,
          "seccompProfile": {"type": "RuntimeDefault"}}  # fmt: skip
# What of the engine's pod the benchmark's shares: where it may run, and who it is there.
SHARED = ("serviceAccountName", "imagePullSecrets", "nodeSelector", "tolerations", "runtimeClassName")


class JobFailed(SpecdecError):
    """The load generator could not run or did not finish: this one run has no result."""


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
    name: str, release: str, engine: Engine, words: Sequence[str], prompts: str | None, timeout: int
) -> Object:
    """The Job. It sees the engine's volumes (models, scratch) and variables, and asks for no accelerator.

    `prompts`: the ConfigMap that holds them; `timeout` in seconds.
    """
    workload = engine.workload
    spec = mapping(workload.pod_spec)
    mounts = copy.deepcopy(sequence(workload.container.get("volumeMounts")))
    volumes = copy.deepcopy(sequence(spec.get("volumes"))) + _claims(engine)
    if prompts:
        mounts.append({"name": "bench-prompts", "mountPath": FOLDER, "readOnly": True})
        volumes.append({"name": "bench-prompts", "configMap": {"name": prompts}})
    if not any(mount.get("mountPath") == "/tmp" for mount in mounts):
        mounts.append({"name": "bench-tmp", "mountPath": "/tmp"})
        volumes.append({"name": "bench-tmp", "emptyDir": {"sizeLimit": "2Gi"}})
    env = copy.deepcopy(sequence(workload.container.get("env")))
    # The engine's key is the client's key.
    env += [variable | {"name": "OPENAI_API_KEY"} for variable in env if variable.get("name") == "VLLM_API_KEY"]
    container = {
        "name": "bench",
        "image": workload.image,
        "imagePullPolicy": workload.container.get("imagePullPolicy", "IfNotPresent"),
        "command": ["python3", "-c", Path(in_pod.__file__).read_text(encoding="utf-8")],
        # Kubernetes would expand $(NAME).
        "args": [word.replace("$(", "$$(") for word in words],
        "env": env,
        "envFrom": copy.deepcopy(sequence(workload.container.get("envFrom"))),
        "resources": {"requests": {"cpu": "100m", "memory": "512Mi"}, "limits": {"memory": "4Gi"}},
        "securityContext": SECURITY,
        "volumeMounts": mounts,
    }
    pod: Object = {key: copy.deepcopy(spec[key]) for key in SHARED if spec.get(key)}
    pod |= {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": RUN_AS | mapping(spec.get("securityContext")) | {"runAsNonRoot": True},
        # A volume of one node is there, and the model cache is warm.
        "affinity": {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": 100, "podAffinityTerm": {
                "topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": engine.selector}}}]}},
        "containers": [container],
        "volumes": volumes,
    }  # fmt: skip
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "labels": labels(release)},
        "spec": {
            "backoffLimit": 0,
            "activeDeadlineSeconds": timeout,
            "ttlSecondsAfterFinished": 3600,
            "template": {"metadata": {"labels": labels(release)}, "spec": pod},
        },
    }


def _claims(engine: Engine) -> list[Object]:
    """The volumes that a StatefulSet claims by pod: the first pod's."""
    name = engine.workload.manifest.name
    return [
        {"name": claim["metadata"]["name"],
         "persistentVolumeClaim": {"claimName": f"{claim['metadata']['name']}-{name}-0", "readOnly": False}}
        for claim in sequence(engine.workload.manifest.get("spec.volumeClaimTemplates"))
    ]  # fmt: skip


def run(
    cluster: Cluster,
    job: Object,
    prompts: Object | None,
    *,
    timeout: float,
    report: Callable[[str], None] = lambda _: None,
    pause: float = 1,
) -> dict[str, Any]:
    """Run the Job to its end and give the benchmark's result. Leaves nothing in the cluster.

    Raises JobFailed with the end of its log where it fails, and for a result that is cut or missing.
    """
    name = job["metadata"]["name"]
    remove(cluster, name)
    try:
        if prompts:
            cluster.request("POST", cluster.path(CORE, "configmaps"), json=prompts)
        cluster.request("POST", cluster.path(BATCH, "jobs"), json=job)
        pod = _finished(cluster, name, timeout, report, pause)
        return unpack(_log(cluster, pod))
    finally:
        remove(cluster, name)


def remove(cluster: Cluster, name: str) -> None:
    """Take the Job of that name, its pods and its prompts away, where there are any."""
    for group, plural in ((BATCH, "jobs"), (CORE, "configmaps")):
        path = cluster.path(group, plural, name)
        if cluster.get(path) is None:
            continue
        try:
            cluster.request("DELETE", path, json={"propagationPolicy": "Background"})
        except ApiError as error:
            if error.status != 404:
                raise
        for _ in range(60):
            if cluster.get(path) is None:
                break
            time.sleep(0.5)


def _finished(cluster: Cluster, name: str, timeout: float, report: Callable[[str], None], pause: float) -> str:
    """The name of the Job's pod when it has succeeded."""
    end = time.monotonic() + timeout
    while True:
        status = mapping((cluster.get(cluster.path(BATCH, "jobs", name)) or {}).get("status"))
        found = cluster.pods({"job-name": name})
        if status.get("succeeded") and found:
            return str(found[-1]["metadata"]["name"])
        if status.get("failed"):
            raise _failure(cluster, name, found, status)
        if found:
            pod = found[-1]
            events = cluster.events(pod["metadata"]["name"])
            report(pods.doing(pod, events, cluster.logs))
            trouble = pods.trouble_of(pod, events, cluster.logs)
            if trouble and not trouble.patient:
                raise JobFailed(f"the load generator cannot start: {trouble.message}", code=trouble.reason)
        if time.monotonic() > end:
            raise JobFailed(
                f"the load generator did not finish within {timeout:.0f} s",
                code="bench-timeout",
                fix="raise --timeout, or ask for fewer prompts",
            )
        time.sleep(pause)


def _failure(cluster: Cluster, name: str, found: Sequence[Object], status: Object) -> JobFailed:
    lines = _log(cluster, str(found[-1]["metadata"]["name"])).splitlines() if found else []
    said = explain(lines)
    if not said:
        conditions = [entry for entry in sequence(status.get("conditions")) if entry.get("type") == "Failed"]
        said = str(conditions[0].get("message")) if conditions else "it left no log"
    return JobFailed(
        f"vllm bench serve failed in Job {name}: {said}",
        code="bench-failed",
        fix="specdec smoke asks the same engine; what is done so far is kept: --resume",
    )


def explain(lines: Sequence[str]) -> str:
    """The line of a log that says why: the last error, else the last lines."""
    full = [line.strip() for line in lines if line.strip()]
    errors = [line for line in full if "Error" in line or line.startswith("error:") or "error: " in line]
    return (errors or full or [""])[-1][:400]


def _log(cluster: Cluster, pod: str) -> str:
    path = cluster.path(CORE, "pods", pod) + "/log"
    return cluster.request("GET", path, params={"container": "bench"}, timeout=120).text


def unpack(log: str) -> dict[str, Any]:
    """The result that stands in a log. Raises JobFailed where it is missing, cut or damaged."""
    lines = log.splitlines()
    try:
        begin = max(index for index, line in enumerate(lines) if line == in_pod.BEGIN)
        end = next(i for i in range(begin, len(lines)) if lines[i].startswith(in_pod.END))
        data = base64.b64decode("".join(lines[begin + 1 : end]), validate=True)
        if hashlib.sha256(data).hexdigest() != lines[end].removeprefix(in_pod.END).strip():
            raise ValueError("checksum")
        result = json.loads(gzip.decompress(data))
        if not isinstance(result, dict):
            raise TypeError
        return result
    except (ValueError, StopIteration, TypeError, OSError, EOFError) as error:
        raise JobFailed(
            f"the load generator's log holds no whole result: {explain(lines) or 'it is empty'}", code="bench-cut"
        ) from error


def refuse_failures(result: dict[str, Any], wanted: int, engine: str) -> None:
    """Raises SpecdecError where requests failed: the rest would be a lighter load than was asked for."""
    errors = [str(error).strip() for error in result.get("errors") or [] if error]
    completed = int(result.get("completed") or 0)
    if completed >= wanted and not errors:
        return
    reason = explain(errors[:1]) if errors else "the benchmark does not say why"
    text = " ".join(errors).lower()
    if "context length" in text or "max_model_len" in text or "maximum model length" in text:
        raise SpecdecError(
            f"{wanted - completed} of {wanted} prompts are longer than the context of engine {engine}: {reason}",
            code="prompt-long",
            fix="shorter prompts, or a smaller --output-len",
        )
    if "does not exist" in text or "not found" in text:
        raise SpecdecError(
            f"engine {engine} does not serve the model that its values name: {reason}",
            code="wrong-model",
            fix="specdec deploy brings what runs to what the values say",
        )
    raise FoundWrong(f"{wanted - completed} of {wanted} requests to engine {engine} failed: {reason}", code="requests")
