"""Objects that are being deleted and do not go, because a finalizer waits for a controller that may be gone."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass

from specdec.deploy.cluster import ApiError, Cluster, Object
from specdec.manifests import mapping, sequence


@dataclass(frozen=True)
class KindOf:
    """A kind by its API group's path and plural."""

    group: str
    plural: str


SCALERS = (KindOf("/apis/keda.sh/v1alpha1", "scaledobjects"), KindOf("/apis/keda.sh/v1alpha1", "scaledjobs"))
EXPOSED = (
    KindOf("/apis/gateway.networking.k8s.io/v1", "gateways"),
    KindOf("/apis/networking.k8s.io/v1", "ingresses"),
    KindOf("/api/v1", "services"),
)
ALL = (
    *SCALERS,
    *EXPOSED,
    KindOf("/apis/external-secrets.io/v1", "externalsecrets"),
    KindOf("/api/v1", "persistentvolumeclaims"),
    KindOf("/api/v1", "pods"),
)
SYSTEM = ("kube-system", "gmp-system", "gke-managed-system", "kube-node-lease", "kube-public")


@dataclass(frozen=True)
class Hanging:
    """One object, with the finalizers that hold it."""

    path: str
    name: str
    finalizers: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.name} ({', '.join(self.finalizers)})"


def items(cluster: Cluster, kind: KindOf) -> list[Object]:
    """Objects of a kind in all namespaces but the system's; none where the kind is not known or not for us to see."""
    try:
        found = cluster.items(f"{kind.group}/{kind.plural}")
    except ApiError as refusal:
        if refusal.status == 403:
            return []
        raise
    return [one for one in found if one["metadata"].get("namespace") not in SYSTEM]


def path_of(kind: KindOf, one: Object) -> str:
    metadata = one["metadata"]
    return f"{kind.group}/namespaces/{metadata.get('namespace')}/{kind.plural}/{metadata['name']}"


def addresses(cluster: Cluster) -> list[str]:
    """Where load balancers of the cluster answer: addresses and names of Services, Ingresses and Gateways."""
    found = []
    for kind in EXPOSED:
        for one in items(cluster, kind):
            status = mapping(one.get("status"))
            points = [*sequence(mapping(status.get("loadBalancer")).get("ingress")), *sequence(status.get("addresses"))]
            found += [str(point.get("ip") or point.get("hostname") or point.get("value")) for point in points]
    return list(dict.fromkeys(found))


def delete(cluster: Cluster, kinds: tuple[KindOf, ...], report: Callable[[str], None]) -> None:
    """Delete all objects of these kinds; of Services, those with a load balancer."""
    for kind in kinds:
        for one in items(cluster, kind):
            if kind.plural == "services" and mapping(one.get("spec")).get("type") != "LoadBalancer":
                continue
            if one["metadata"].get("deletionTimestamp"):
                continue
            report(f"deleting {kind.plural}/{one['metadata']['name']}")
            try:
                cluster.request("DELETE", path_of(kind, one))
            except ApiError as refusal:
                if refusal.status != 404:
                    raise


def hanging(cluster: Cluster, kinds: tuple[KindOf, ...]) -> list[Hanging]:
    """Objects that are being deleted and held by a finalizer."""
    return [
        Hanging(path_of(kind, one), f"{kind.plural}/{one['metadata']['name']}", tuple(one["metadata"]["finalizers"]))
        for kind in kinds
        for one in items(cluster, kind)
        if one["metadata"].get("deletionTimestamp") and one["metadata"].get("finalizers")
    ]


def wait(
    cluster: Cluster, kinds: tuple[KindOf, ...], timeout: float, report: Callable[[str], None], *,
    sleep: Callable[[float], None] = time.sleep, clock: Callable[[], float] = time.monotonic,
) -> list[Hanging]:  # fmt: skip
    """What still hangs after `timeout` seconds."""
    deadline = clock() + timeout
    while found := hanging(cluster, kinds):
        if clock() > deadline:
            return found
        report(f"waiting for {len(found)} objects to go: {', '.join(one.name for one in found[:3])}")
        sleep(1)
    return []


def release(cluster: Cluster, one: Hanging) -> None:
    """Take the finalizers off, so that the object goes."""
    try:
        cluster.request(
            "PATCH",
            one.path,
            content=json.dumps({"metadata": {"finalizers": None}}),
            headers={"Content-Type": "application/merge-patch+json"},
        )
    except ApiError as refusal:
        if refusal.status != 404:
            raise
