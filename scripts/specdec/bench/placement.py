"""Where the load generator's pod may run, and with which volumes: beside the engine whose cache it reads."""

from __future__ import annotations

import copy

from specdec.deploy.cluster import CORE, Cluster, Object
from specdec.deploy.targets import Engine
from specdec.errors import SpecdecError
from specdec.manifests import mapping, sequence

HOST = "kubernetes.io/hostname"
SHARED = {"ReadWriteMany", "ReadOnlyMany"}
CLAIM = "persistentVolumeClaim"


def near(labels: dict[str, str], *, required: bool = False) -> Object:
    """Affinity to the node of a pod with these labels."""
    term = {"topologyKey": HOST, "labelSelector": {"matchLabels": labels}}
    if required:
        return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    return {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
        {"weight": 100, "podAffinityTerm": term}]}}  # fmt: skip


def affinity(cluster: Cluster, engine: Engine) -> Object:
    """Beside the engine where its cache belongs to one node, which only a pod on that node sees.

    Raises SpecdecError for a claim that one pod alone may mount.
    """
    own = claims(engine)
    names = [claim[CLAIM]["claimName"] for claim in own]
    names += [str(volume[CLAIM]["claimName"]) for volume in _volumes(engine) if mapping(volume.get(CLAIM))]
    modes = {}
    for name in names:
        modes[name] = modes_of(cluster, name)
        if modes[name] == {"ReadWriteOncePod"}:
            raise SpecdecError(
                f"claim {name} of engine {engine.name} is ReadWriteOncePod: the engine's pod alone may mount it, and "
                "the load generator needs the tokenizer in it",
                code="claim-of-one-pod",
                path="modelCache.pvc.accessMode",
                fix="ReadWriteOnce, which pods of one node share",
            )
    if own:
        # Each pod has a claim of its own, and the first pod's is the one that is mounted.
        pod = f"{engine.workload.manifest.name}-0"
        return near({**engine.selector, "statefulset.kubernetes.io/pod-name": pod}, required=True)
    of_node = any("hostPath" in volume for volume in _volumes(engine))
    return near(engine.selector, required=of_node or any(not mode & SHARED for mode in modes.values()))


def modes_of(cluster: Cluster, claim: str) -> set[str]:
    """Access modes of a claim; none where it does not exist."""
    found = mapping((cluster.get(cluster.path(CORE, "persistentvolumeclaims", claim)) or {}).get("spec"))
    return {str(mode) for mode in sequence(found.get("accessModes"))}


def claims(engine: Engine) -> list[Object]:
    """The volumes that a StatefulSet claims by pod: the first pod's."""
    name = engine.workload.manifest.name
    return [
        {"name": claim["metadata"]["name"],
         CLAIM: {"claimName": f"{claim['metadata']['name']}-{name}-0", "readOnly": False}}
        for claim in sequence(engine.workload.manifest.get("spec.volumeClaimTemplates"))
    ]  # fmt: skip


def empty_cache(engine: Engine) -> str | None:
    """The volume of the engine's models where it dies with the pod, so that another pod's is empty; else None."""
    env = engine.workload.env
    cache = env.get("HF_HUB_CACHE") or env.get("HF_HOME") or ""
    for volume in _volumes(engine):
        for mount in sequence(engine.workload.container.get("volumeMounts")):
            if mount.get("name") == volume.get("name") and cache.startswith(str(mount.get("mountPath"))):
                return str(volume["name"]) if "emptyDir" in volume else None
    return None


def fetching(engine: Engine) -> list[Object]:
    """Variables with which the engine's models were fetched: token, mirror, certificates."""
    return [
        copy.deepcopy(variable)
        for container in sequence(mapping(engine.workload.pod_spec).get("initContainers"))
        if container.get("name") == "prefetch"
        for variable in sequence(container.get("env"))
    ]


def of_volumes(engine: Engine) -> Object:
    """Annotations that make volumes work: GKE's sidecar of Cloud Storage FUSE."""
    found = mapping(engine.workload.pod_metadata.get("annotations"))
    return {key: value for key, value in found.items() if str(key).startswith("gke-gcsfuse/")}


def _volumes(engine: Engine) -> list[Object]:
    return [volume for volume in sequence(mapping(engine.workload.pod_spec).get("volumes")) if isinstance(volume, dict)]
