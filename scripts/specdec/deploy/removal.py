"""Take a release away and wait until its objects are gone; say what stays."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from specdec.deploy.cluster import APPS, CORE, Cluster
from specdec.deploy.pods import is_hook
from specdec.environments import Environment
from specdec.errors import FoundWrong


def uninstall(
    env: Environment,
    cluster: Cluster,
    *,
    kubeconfig: Path | None = None,
    timeout: float = 300,
    report: Callable[[str], None] = lambda _: None,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> dict[str, Any]:
    """Remove the release. {"removed": whether there was one, "remains": what stays, in words}.

    Raises Unreachable where the cluster does not answer, FoundWrong where objects stay beyond `timeout` seconds.
    """
    from specdec import helm

    cluster.get("/version")
    report("uninstalling")
    removed = helm.uninstall(env.release, env.namespace, kubecontext=env.kubecontext, kubeconfig=kubeconfig)
    deadline = clock() + timeout
    while left := present(cluster, env.release):
        if clock() > deadline:
            raise FoundWrong(
                f"still there after {timeout:.0f} s: {', '.join(left)}",
                code="not-gone",
                fix=f"see what holds them: kubectl describe -n {env.namespace} {left[0]}",
            )
        report(f"waiting for {len(left)} objects to go: {', '.join(left[:3])}")
        sleep(1)
    return {"removed": removed, "remains": remains(cluster, env)}


KINDS = (
    (CORE, "pods"),
    (APPS, "statefulsets"),
    (APPS, "deployments"),
    (CORE, "services"),
)


def present(cluster: Cluster, release: str) -> list[str]:
    """The release's objects that are still there, as kind/name."""
    found = []
    for group, plural in KINDS:
        items = cluster.items(cluster.path(group, plural), labelSelector=f"app.kubernetes.io/instance={release}")
        found += [f"{plural.removesuffix('s')}/{item['metadata']['name']}" for item in items if not is_hook(item)]
    return found


def remains(cluster: Cluster, env: Environment) -> list[str]:
    """What uninstalling leaves on purpose: claims with the models on them, and the namespace."""
    lines = []
    claims = cluster.items(cluster.path(CORE, "persistentvolumeclaims"))
    names = [
        claim["metadata"]["name"]
        for claim in claims
        if (claim["metadata"].get("labels") or {}).get("app.kubernetes.io/instance") == env.release
    ]
    if names:
        lines.append(f"claims with the models: kubectl delete pvc -n {env.namespace} {' '.join(names)}")
    if cluster.get(f"/api/v1/namespaces/{env.namespace}"):
        lines.append(f"the namespace: kubectl delete namespace {env.namespace}")
    return lines
