"""What an environment is like now: release, pods, speculation, acceptance, whom the router leads to."""

from __future__ import annotations

from typing import Any

from specdec.deploy import pods as pod_states
from specdec.deploy import targets
from specdec.deploy.cluster import Object
from specdec.deploy.live import Live
from specdec.deploy.release import status_of
from specdec.errors import FoundWrong, SpecdecError
from specdec.manifests import mapping, sequence

DISCOVERY = "/apis/discovery.k8s.io/v1"


def of(live: Live) -> dict[str, Any]:
    """The status in its JSON form; "healthy" is false where anything named in "reasons" is wrong.

    Raises FoundWrong where nothing is deployed, Unreachable where the cluster does not answer.
    """
    helm = live.status()
    manifests = live.manifests()
    release = live.release(manifests)
    reasons: list[str] = []
    state = status_of(helm)
    if state != "deployed":
        reasons.append(f"the release is {state}")
    found = live.cluster.pods({"app.kubernetes.io/instance": live.env.release})
    pods = [pod for pod in found if not pod_states.is_hook(pod)]
    rows = [pod_row(live, pod) for pod in pods]
    reasons += [f"pod {row['name']}: {row['phase']}" for row in rows if not row["ready"]]
    engines = [engine(live, one, reasons) for one in [*release.engines, *release.baselines.values()]]
    router = routed(live, release, reasons)
    return {
        "schema_version": 1,
        "environment": live.env.name,
        "release": live.env.release,
        "namespace": live.env.namespace,
        "revision": (helm or {}).get("version"),
        "state": state,
        "updated": mapping((helm or {}).get("info")).get("last_deployed"),
        "healthy": not reasons,
        "reasons": reasons,
        "engines": engines,
        "pods": rows,
        "router": router,
    }


def pod_row(live: Live, pod: Object) -> dict[str, Any]:
    cluster, name = live.cluster, pod["metadata"]["name"]
    events = [] if pod_states.is_ready(pod) else cluster.events(name)
    state = pod_states.state(pod, events, cluster.logs)
    created = pod_states.time_of(pod["metadata"].get("creationTimestamp"))
    phase = state.phase if state.trouble is None else f"{state.trouble.reason}: {state.trouble.message}"
    return {
        "name": name,
        "engine": state.engine,
        "ready": state.ready,
        "phase": phase,
        "restarts": state.restarts,
        "age_seconds": round(cluster.now() - created) if created else None,
        "node": mapping(pod.get("spec")).get("nodeName"),
    }


def engine(live: Live, one: targets.Engine, reasons: list[str]) -> dict[str, Any]:
    """Version, speculation, acceptance since its pods started. Speculation that is on and counted nowhere is wrong."""
    speculative = one.workload.args.speculative
    row: dict[str, Any] = {
        "name": one.name,
        "version": one.workload.engine_version,
        "model": one.model,
        "service": one.service,
        "speculation": speculative.method if speculative else None,
        "draft": speculative.model if speculative else None,
        "num_speculative_tokens": speculative.num_speculative_tokens if speculative else None,
        "drafts": None,
        "acceptance_rate": None,
        "acceptance_by_position": [],
    }
    try:
        counters = one.counters(live.cluster)
    except SpecdecError as error:
        reasons.append(f"engine {one.name}: {error.message}")
        return row
    if one.speculates and counters.generated > 100 and not counters.moved:
        reasons.append(f"engine {one.name}: speculation is on in the values, and no draft was ever counted")
    return row | {
        "drafts": counters.drafts,
        "acceptance_rate": counters.acceptance_rate,
        "acceptance_by_position": counters.acceptance_by_position,
    }


def routed(live: Live, release: targets.Release, reasons: list[str]) -> dict[str, Any] | None:
    """The first router, whether it answers, and the engine pods behind routers: those of their Services' endpoints."""
    if release.router is None:
        return None
    name, port = release.router
    row: dict[str, Any] = {"service": name, "answers": True, "targets": []}
    try:
        live.cluster.service(name, port).models()
    except FoundWrong as error:
        row["answers"] = False
        reasons.append(f"router {name}: {error.message}")
    for one in release.engines:
        row["targets"] += ready_targets(live, one.service)
    if not row["targets"]:
        reasons.append("no engine pod is ready behind the router")
    return row


def ready_targets(live: Live, service: str) -> list[str]:
    """Names of the pods that are ready behind a Service."""
    slices = live.cluster.items(
        live.cluster.path(DISCOVERY, "endpointslices"),
        labelSelector=f"kubernetes.io/service-name={service}",
    )
    return [
        str(mapping(endpoint.get("targetRef")).get("name"))
        for one in slices
        for endpoint in sequence(one.get("endpoints"))
        if mapping(endpoint.get("conditions")).get("ready")
    ]
