"""SD42x: shared memory, GPUs, rollouts, volumes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from specdec.manifests import EngineWorkload
from specdec.objects import mapping, sequence
from specdec.quantities import gib, to_bytes
from specdec.rules.model import Problem, Severity, World, each_engine, rule

ROLLOUT = "https://kubernetes.io/docs/concepts/workloads/controllers/deployment/#rolling-update-deployment"
EMPTY_DIR = "https://kubernetes.io/docs/concepts/storage/volumes/#emptydir"


def shared_memory(engine: EngineWorkload) -> tuple[int, dict[str, Any]] | None:
    """(index among the pod's volumes, the emptyDir in memory) that is mounted at /dev/shm."""
    mounts = [mapping(mount) for mount in sequence(engine.container.get("volumeMounts"))]
    name = next((mount.get("name") for mount in mounts if str(mount.get("mountPath")).rstrip("/") == "/dev/shm"), None)
    for index, volume in enumerate(sequence(engine.pod_spec.get("volumes"))):
        if name is not None and mapping(volume).get("name") == name and mapping(volume.get("emptyDir")):
            return (index, volume["emptyDir"]) if volume["emptyDir"].get("medium") == "Memory" else None
    return None


def workers(engine: EngineWorkload) -> int:
    """Worker processes of one engine, on however many pods."""
    return engine.args.tensor_parallel_size * engine.args.pipeline_parallel_size * engine.args.data_parallel_size


@rule(
    "SD420",
    "no-shared-memory",
    Severity.error,
    reason="Ranks of one engine talk through /dev/shm, and a container gets 64 MiB of it unless a volume is mounted "
    "there: NCCL fails at start or the worker dies of SIGBUS later.",
    fix="mount an emptyDir with medium: Memory at /dev/shm",
    source="https://docs.vllm.ai/en/latest/deployment/docker.html; NVIDIA/nccl#525",
    bad="""
containers:
  - args: [/models/target, --tensor-parallel-size, "2", --shutdown-timeout, "60"]
    resources: {limits: {nvidia.com/gpu: "2"}}
    volumeMounts: []
""",
    good="""
containers:
  - args: [/models/target, --tensor-parallel-size, "2", --shutdown-timeout, "60"]
    resources: {limits: {nvidia.com/gpu: "2"}}
    volumeMounts: [{name: shm, mountPath: /dev/shm}]
volumes: [{name: shm, emptyDir: {medium: Memory, sizeLimit: 16Gi}}]
""",
)
@each_engine
def no_shared_memory(engine: EngineWorkload) -> Iterator[Problem]:
    if workers(engine) > 1 and not shared_memory(engine) and not engine.pod_spec.get("hostIPC"):
        message = f"{workers(engine)} ranks share 64 MiB of /dev/shm: no memory volume is mounted there"
        yield Problem(engine.manifest, (*engine.container_path, "volumeMounts"), message)


@rule(
    "SD421",
    "shared-memory-over-limit",
    Severity.error,
    reason="What is written to a volume in memory counts against the container's memory limit: when the volume may be "
    "as large as the limit, filling it gets the engine killed for memory.",
    fix="memory limit = what the engine needs + sizeLimit of the volume",
    source=EMPTY_DIR,
    bad="""
containers:
  - resources: {limits: {memory: 16Gi}}
volumes: [{name: shm, emptyDir: {medium: Memory, sizeLimit: 16Gi}}]
""",
    good="""
containers:
  - resources: {limits: {memory: 64Gi}}
volumes: [{name: shm, emptyDir: {medium: Memory, sizeLimit: 16Gi}}]
""",
)
@each_engine
def shared_memory_over_limit(engine: EngineWorkload) -> Iterator[Problem]:
    found = shared_memory(engine)
    limit = to_bytes(mapping(mapping(engine.container.get("resources")).get("limits")).get("memory"))
    if not found or limit is None:
        return
    index, volume = found
    size = to_bytes(volume.get("sizeLimit"))
    if size is not None and size >= limit:
        message = f"/dev/shm may hold {gib(size)} and the memory limit is {gib(limit)}"
        yield Problem(engine.manifest, (*engine.path, "volumes", index), message)


def local_gpus(engine: EngineWorkload) -> int | None:
    """GPUs that one pod needs; None when the engine spreads over pods or asks for its GPUs in another way."""
    if (
        engine.gpus == 0
        or engine.manifest.kind == "LeaderWorkerSet"
        or engine.args.has("--distributed-executor-backend")
    ):
        return None
    if engine.manifest.get(("spec", "predictor", "workerSpec")) or engine.manifest.get(("spec", "worker")):
        return None
    if engine.args.has("--nnodes", "--data-parallel-address", "--data-parallel-size-local", "--headless"):
        return None
    return workers(engine)


@rule(
    "SD422",
    "too-few-gpus",
    Severity.error,
    reason="The engine starts one rank a GPU: tensor x pipeline x data parallel size. With fewer GPUs in the container "
    "it does not start.",
    fix="nvidia.com/gpu = tensor x pipeline x data parallel size",
    source="https://docs.vllm.ai/en/latest/serving/parallelism_scaling.html",
    bad="""
containers:
  - args: [/models/target, --tensor-parallel-size, "4", --shutdown-timeout, "60"]
    resources: {limits: {nvidia.com/gpu: "2"}}
""",
    good="""
containers:
  - args: [/models/target, --tensor-parallel-size, "4", --shutdown-timeout, "60"]
    resources: {limits: {nvidia.com/gpu: "4"}}
""",
)
@each_engine
def too_few_gpus(engine: EngineWorkload) -> Iterator[Problem]:
    needed = local_gpus(engine)
    if needed is not None and engine.gpus < needed:
        message = f"the arguments start {needed} ranks, the container has {engine.gpus} GPUs"
        yield Problem(engine.manifest, (*engine.container_path, "resources"), message, f"nvidia.com/gpu: {needed}")


@rule(
    "SD423",
    "idle-gpus",
    Severity.warning,
    reason="GPUs that no rank uses are paid for and blocked for everyone else.",
    fix="nvidia.com/gpu = tensor x pipeline x data parallel size, or a larger parallel size",
    source="https://docs.vllm.ai/en/latest/serving/parallelism_scaling.html",
    bad="""
containers:
  - args: [/models/target, --shutdown-timeout, "60"]
    resources: {limits: {nvidia.com/gpu: "8"}}
""",
    good="""
containers:
  - args: [/models/target, --tensor-parallel-size, "8", --shutdown-timeout, "60"]
    resources: {limits: {nvidia.com/gpu: "8"}}
""",
)
@each_engine
def idle_gpus(engine: EngineWorkload) -> Iterator[Problem]:
    needed = local_gpus(engine)
    if needed is not None and engine.gpus > needed:
        message = f"the container has {engine.gpus} GPUs, the arguments use {needed}"
        yield Problem(engine.manifest, (*engine.container_path, "resources"), message)


def surge(deployment: dict[str, Any], replicas: int) -> tuple[int, int]:
    """(pods above, pods missing) that a rollout of this Deployment allows; Kubernetes' default is 25 % of each."""
    strategy = mapping(deployment.get("strategy"))
    if strategy.get("type") == "Recreate":
        return 0, replicas
    update = mapping(strategy.get("rollingUpdate"))

    def pods(value: Any, up: bool) -> int:
        text = str(value)
        if text.endswith("%") and text[:-1].isdigit():
            share = replicas * int(text[:-1]) / 100
            return math.ceil(share) if up else math.floor(share)
        return int(text) if text.isdigit() else 0

    return pods(update.get("maxSurge", "25%"), up=True), pods(update.get("maxUnavailable", "25%"), up=False)


@rule(
    "SD424",
    "rollout-needs-spare-gpus",
    Severity.warning,
    reason="This rollout starts the new pod before it stops an old one. Where no GPUs are spare the new pod stays "
    "Pending, the old one stays too, and the rollout never ends.",
    fix="strategy: {rollingUpdate: {maxSurge: 0, maxUnavailable: 1}}, Recreate, or a StatefulSet",
    source=ROLLOUT,
    bad="""
apiVersion: apps/v1
kind: Deployment
metadata: {name: engine}
spec:
  replicas: 1
  template:
    spec:
      containers:
        - name: engine
          image: vllm/vllm-openai:v0.32.0
          args: [/models/target]
          resources: {limits: {nvidia.com/gpu: "1"}}
""",
    good="""
apiVersion: apps/v1
kind: Deployment
metadata: {name: engine}
spec:
  replicas: 1
  strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 0, maxUnavailable: 1}}
  template:
    spec:
      containers:
        - name: engine
          image: vllm/vllm-openai:v0.32.0
          args: [/models/target]
          resources: {limits: {nvidia.com/gpu: "1"}}
          readinessProbe: {httpGet: {path: /health, port: 8000}}
""",
)
@each_engine
def rollout_needs_spare_gpus(engine: EngineWorkload) -> Iterator[Problem]:
    if engine.manifest.kind != "Deployment" or not engine.gpus:
        return
    above, missing = surge(mapping(engine.manifest.data.get("spec")), engine.replicas)
    if above > 0 and missing == 0:
        message = f"an update needs {above * engine.gpus} spare GPUs before it frees any"
        yield Problem(engine.manifest, ("spec", "strategy"), message)


def _on_one_node(modes: object) -> bool:
    return bool(sequence(modes)) and {str(mode) for mode in sequence(modes)} <= {"ReadWriteOnce", "ReadWriteOncePod"}


@rule(
    "SD425",
    "claim-on-one-node",
    Severity.error,
    reason="A ReadWriteOnce volume attaches to one node. A second replica, or the new pod of a rollout, on another "
    "node waits for it for ever.",
    fix="ReadOnlyMany or ReadWriteMany, a volumeClaimTemplate of a StatefulSet, or Recreate with one replica",
    source="https://kubernetes.io/docs/concepts/storage/persistent-volumes/#access-modes",
    bad="""
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: weights}
spec: {accessModes: [ReadWriteOnce]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: engine}
spec:
  replicas: 2
  template:
    spec:
      containers: [{name: engine, image: "vllm/vllm-openai:v0.32.0", args: [/models/target]}]
      volumes: [{name: weights, persistentVolumeClaim: {claimName: weights}}]
""",
    good="""
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: weights}
spec: {accessModes: [ReadOnlyMany]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: engine}
spec:
  replicas: 2
  template:
    spec:
      containers:
        - name: engine
          image: vllm/vllm-openai:v0.32.0
          args: [/models/target]
          readinessProbe: {httpGet: {path: /health, port: 8000}}
      volumes: [{name: weights, persistentVolumeClaim: {claimName: weights}}]
""",
)
def claim_on_one_node(world: World) -> Iterator[Problem]:
    single = {
        (claim.namespace, claim.name)
        for claim in world.of_kind("PersistentVolumeClaim")
        if _on_one_node(claim.get("spec.accessModes"))
    }
    for engine in world.engines:
        spec = mapping(engine.manifest.data.get("spec"))
        pods = engine.replicas
        if engine.manifest.kind == "Deployment":
            pods += surge(spec, engine.replicas)[0]
        for index, volume in enumerate(sequence(engine.pod_spec.get("volumes"))):
            claim = mapping(mapping(volume).get("persistentVolumeClaim")).get("claimName")
            if (engine.manifest.namespace, claim) in single and pods > 1:
                message = f"up to {pods} pods mount the ReadWriteOnce claim {claim}"
                yield Problem(engine.manifest, (*engine.path, "volumes", index), message)


@rule(
    "SD426",
    "host-path",
    Severity.warning,
    reason="hostPath ties the pod to what a node happens to have, keeps files after the pod is gone, and is refused "
    "in a namespace with the baseline or restricted pod security standard.",
    fix="an emptyDir on the node's local SSD, or a PersistentVolumeClaim",
    source="https://kubernetes.io/docs/concepts/security/pod-security-standards/",
    bad="""
volumes: [{name: shm, hostPath: {path: /mnt/disks/nvme0}}]
""",
    good="""
volumes: [{name: shm, emptyDir: {medium: Memory, sizeLimit: 16Gi}}]
""",
)
@each_engine
def host_path(engine: EngineWorkload) -> Iterator[Problem]:
    for index, volume in enumerate(sequence(engine.pod_spec.get("volumes"))):
        path = mapping(mapping(volume).get("hostPath")).get("path")
        # GKE hands a node's secondary boot disk to pods in no other way.
        if path and not str(path).startswith("/mnt/disks/gke-secondary-disks/"):
            yield Problem(engine.manifest, (*engine.path, "volumes", index, "hostPath"), f"mounts {path} of the node")
