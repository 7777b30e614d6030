"""SD435 to SD439: what the scheduler makes of a pod: GPUs, taints, memory."""

from __future__ import annotations

from collections.abc import Iterator

from specdec.manifests import GPU_RESOURCES, EngineWorkload
from specdec.objects import Path, mapping, sequence
from specdec.rules.model import Edit, Problem, Severity, each_engine, rule

EXTENDED = "https://kubernetes.io/docs/concepts/configuration/manage-resources-containers/#extended-resources"
TAINTS = "https://kubernetes.io/docs/concepts/scheduling-eviction/taint-and-toleration/"


def controller(engine: EngineWorkload) -> Path:
    """Where the number of pods stands, the workload's spec where it does not."""
    return ("spec", "replicas") if engine.manifest.has("spec.replicas") else ("spec",)


@rule(
    "SD435",
    "gpus-without-a-limit",
    Severity.error,
    reason="GPUs are an extended resource: the limit has to be there, and a request beside it has to be the same. The "
    "API server refuses the pod otherwise.",
    fix='limits: {nvidia.com/gpu: "1"}, and no request or the same one',
    source=EXTENDED,
    bad="""
containers:
  - resources: {limits: {nvidia.com/gpu: "2"}, requests: {nvidia.com/gpu: "1"}}
    args: [/models/target, --tensor-parallel-size=2, --shutdown-timeout=60]
""",
    good="""
containers:
  - resources: {limits: {nvidia.com/gpu: "2"}, requests: {nvidia.com/gpu: "2"}}
    args: [/models/target, --tensor-parallel-size=2, --shutdown-timeout=60]
""",
)
@each_engine
def gpus_without_a_limit(engine: EngineWorkload) -> Iterator[Problem]:
    resources = mapping(engine.container.get("resources"))
    limits, requests = mapping(resources.get("limits")), mapping(resources.get("requests"))
    for name in GPU_RESOURCES:
        asked, limit = requests.get(name), limits.get(name)
        if asked is not None and str(asked) != str(limit):
            says = "no limit" if limit is None else f"a limit of {limit}"
            message = f"a request of {asked} {name} and {says}"
            at: Path = (*engine.container_path, "resources")
            edits = (Edit((*at, "limits", name), asked),) if limit is None else ()
            yield Problem(engine.manifest, (*at, "requests", name), message, None, edits)


@rule(
    "SD436",
    "toleration-of-another-taint",
    Severity.error,
    reason="GKE taints GPU nodes with nvidia.com/gpu=present:NoSchedule. A toleration of the same key with another "
    "value, or for another effect, tolerates something else and the pod stays Pending.",
    fix="{key: nvidia.com/gpu, operator: Exists, effect: NoSchedule}",
    source=f"{TAINTS}; hashicorp/terraform-provider-google#7928",
    bad="""
tolerations: [{key: nvidia.com/gpu, operator: Equal, value: "true", effect: NoSchedule}]
nodeSelector: {cloud.google.com/gke-accelerator: nvidia-l4}
""",
    good="""
tolerations: [{key: nvidia.com/gpu, operator: Exists, effect: NoSchedule}]
nodeSelector: {cloud.google.com/gke-accelerator: nvidia-l4}
""",
)
@each_engine
def toleration_of_another_taint(engine: EngineWorkload) -> Iterator[Problem]:
    on_gke = any(str(key).startswith("cloud.google.com/") for key in mapping(engine.pod_spec.get("nodeSelector")))
    if not on_gke:
        return
    for index, item in enumerate(sequence(engine.pod_spec.get("tolerations"))):
        given = mapping(item)
        equal = given.get("operator", "Equal") == "Equal"
        effect = given.get("effect")
        if given.get("key") != "nvidia.com/gpu":
            continue
        if (equal and given.get("value") != "present") or effect not in (None, "NoSchedule"):
            shown = f"{given.get('value', '')}:{effect or ''}".strip(":")
            message = f"nvidia.com/gpu={shown} is tolerated, and GKE's taint is nvidia.com/gpu=present:NoSchedule"
            right = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
            path = (*engine.path, "tolerations", index)
            yield Problem(engine.manifest, path, message, None, (Edit(path, right),))


@rule(
    "SD437",
    "no-toleration-for-gpus",
    Severity.warning,
    reason="GPU pools carry a taint so that nothing else lands on them. GKE adds the toleration to pods that ask for "
    "GPUs; other clusters do so only where the ExtendedResourceToleration admission plugin is on.",
    fix="tolerations: [{key: nvidia.com/gpu, operator: Exists, effect: NoSchedule}]",
    source="https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/#extendedresourcetoleration",
    bad="""
containers:
  - resources: {limits: {nvidia.com/gpu: "1"}}
nodeSelector: {node.kubernetes.io/instance-type: p5.48xlarge}
""",
    good="""
containers:
  - resources: {limits: {nvidia.com/gpu: "1"}}
nodeSelector: {node.kubernetes.io/instance-type: p5.48xlarge}
tolerations: [{key: nvidia.com/gpu, operator: Exists, effect: NoSchedule}]
""",
)
@each_engine
def no_toleration_for_gpus(engine: EngineWorkload) -> Iterator[Problem]:
    selector = mapping(engine.pod_spec.get("nodeSelector"))
    elsewhere = selector and not any(str(key).startswith("cloud.google.com/") for key in selector)
    tolerated = {str(mapping(item).get("key")) for item in sequence(engine.pod_spec.get("tolerations"))}
    if engine.gpus and elsewhere and not tolerated & {"nvidia.com/gpu", "amd.com/gpu", "None"}:
        message = f"{engine.gpus} GPUs on {', '.join(map(str, selector.values()))}, and no taint of GPUs is tolerated"
        right = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
        path = (*engine.path, "tolerations")
        edits = (Edit((*path, len(sequence(engine.pod_spec.get("tolerations")))), right),)
        yield Problem(engine.manifest, path, message, None, edits)


@rule(
    "SD438",
    "memory-unstated",
    Severity.warning,
    reason="A container without a memory request is the first to be evicted when its node runs short, and one "
    "without a limit takes the memory of its neighbours while it loads.",
    fix="a memory request of what the engine holds, and a limit that has room for /dev/shm",
    source="https://kubernetes.io/docs/concepts/workloads/pods/pod-qos/",
    bad="""
containers:
  - resources: null
""",
    good="""
containers:
  - resources: {limits: {nvidia.com/gpu: "1", memory: 64Gi}}
""",
)
@each_engine
def memory_unstated(engine: EngineWorkload) -> Iterator[Problem]:
    resources = mapping(engine.container.get("resources"))
    if not mapping(resources.get("limits")).get("memory") and not mapping(resources.get("requests")).get("memory"):
        path = (*engine.container_path, "resources")
        yield Problem(engine.manifest, path, f"{engine.name} states no memory")


@rule(
    "SD439",
    "gpus-behind-the-scheduler",
    Severity.error,
    reason="NVIDIA_VISIBLE_DEVICES=all shows the container every GPU of its node, whatever it asked for: two pods use "
    "the same GPU and both run out of its memory.",
    fix="take the variable away and ask for nvidia.com/gpu",
    source="https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/docker-specialized.html",
    bad="""
containers:
  - env: [{name: NVIDIA_VISIBLE_DEVICES, value: all}]
""",
    good="""
containers:
  - resources: {limits: {nvidia.com/gpu: "1", memory: 64Gi}}
""",
)
@each_engine
def gpus_behind_the_scheduler(engine: EngineWorkload) -> Iterator[Problem]:
    from specdec.rules.variables import variable_path

    value = engine.env.get("NVIDIA_VISIBLE_DEVICES")
    if value and value not in ("none", "void"):
        path = variable_path(engine, "NVIDIA_VISIBLE_DEVICES")
        yield Problem(engine.manifest, path, f"NVIDIA_VISIBLE_DEVICES is {value}")
