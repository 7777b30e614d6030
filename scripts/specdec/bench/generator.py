"""One run of the load generator's Job to its end, and its result out of the Job's log."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import time
from collections.abc import Callable, Sequence
from typing import Any

from specdec.bench import in_pod
from specdec.bench.job import BATCH, MEMORY
from specdec.deploy import pods
from specdec.deploy.cluster import CORE, ApiError, Cluster, Object
from specdec.errors import FoundWrong, SpecdecError
from specdec.manifests import mapping, sequence

# Seconds that what may still pass (an image that cannot be pulled, a node that is full) is waited for.
PATIENCE = 180


class JobFailed(FoundWrong):
    """The load generator could not run or did not finish: this one run has no result."""


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
        if prompts:
            _own(cluster, name)
        pod = _finished(cluster, name, timeout, report, pause)
        return unpack(_log(cluster, pod))
    finally:
        remove(cluster, name)


def _own(cluster: Cluster, name: str) -> None:
    """The prompts go with the Job, which goes by itself after an hour: were this process killed, nothing would stay."""
    uid = mapping((cluster.get(cluster.path(BATCH, "jobs", name)) or {}).get("metadata")).get("uid")
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": uid}
    cluster.request(
        "PATCH",
        cluster.path(CORE, "configmaps", name),
        json={"metadata": {"ownerReferences": [owner]}},
        headers={"content-type": "application/merge-patch+json"},
    )


def remove(cluster: Cluster, name: str) -> None:
    """Take the Job of that name, its pods and its prompts away, where there are any, and wait until they are gone.

    A pod that still ends would load the engine that is measured next.
    """
    for group, plural in ((BATCH, "jobs"), (CORE, "configmaps")):
        path = cluster.path(group, plural, name)
        if cluster.get(path) is None:
            continue
        try:
            cluster.request("DELETE", path, json={"propagationPolicy": "Foreground"})
        except ApiError as error:
            if error.status != 404:
                raise
        for _ in range(120):
            if cluster.get(path) is None:
                break
            time.sleep(0.5)


def _finished(cluster: Cluster, name: str, timeout: float, report: Callable[[str], None], pause: float) -> str:
    """The name of the Job's pod when it has succeeded."""
    begin, troubled = time.monotonic(), None
    while True:
        status = mapping((cluster.get(cluster.path(BATCH, "jobs", name)) or {}).get("status"))
        found = cluster.pods({"job-name": name})
        if status.get("succeeded") and found:
            return str(found[-1]["metadata"]["name"])
        if status.get("failed"):
            raise _failure(cluster, name, found, status)
        trouble = None
        if found:
            pod = found[-1]
            events = cluster.events(pod["metadata"]["name"])
            states = [mapping(entry.get("state")) for entry in pods.statuses(pod)[1]]
            running = any("running" in state for state in states)
            # What has ended is told by the Job, with its log.
            ended = any("terminated" in state for state in states)
            report("measuring" if running else "ended" if ended else pods.doing(pod, events, cluster.logs))
            trouble = None if ended else pods.trouble_of(pod, events, cluster.logs)
        else:
            trouble = _no_pod(cluster, name)
        now = time.monotonic()
        troubled = (troubled or now) if trouble else None
        if trouble and (not trouble.patient or now - (troubled or now) > PATIENCE):
            lines = "".join(f"\n    {line}" for line in trouble.lines)
            raise JobFailed(
                f"the load generator cannot start: {trouble.reason}: {trouble.message}{lines}",
                code=trouble.reason,
                fix=f"mend that; what is done so far is kept (waited {now - begin:.0f} s)",
            )
        if now - begin > timeout:
            raise JobFailed(
                f"the load generator did not finish within {timeout:.0f} s",
                code="bench-timeout",
                fix="raise --timeout, or ask for fewer prompts",
            )
        time.sleep(pause)


def _no_pod(cluster: Cluster, name: str) -> pods.Trouble | None:
    """Why the Job has no pod: a quota, Pod Security, a webhook."""
    refused = [event for event in cluster.events(name) if event.get("reason") == "FailedCreate"]
    return pods.Trouble("FailedCreate", str(refused[-1].get("message", "")), patient=True) if refused else None


def _failure(cluster: Cluster, name: str, found: Sequence[Object], status: Object) -> JobFailed:
    lines = _log(cluster, str(found[-1]["metadata"]["name"])).splitlines() if found else []
    said = explain(lines)
    if not said:
        conditions = [entry for entry in sequence(status.get("conditions")) if entry.get("type") == "Failed"]
        said = str(conditions[0].get("message")) if conditions else "it left no log"
    ended = [
        str(mapping(mapping(entry.get("state")).get("terminated")).get("reason"))
        for pod in found[-1:]
        for entry in pods.statuses(pod)[1]
    ]
    if "OOMKilled" in ended:
        said = f"it needed more than {MEMORY} of memory; fewer prompts need less"
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
