"""SD427 and SD5xx: Services around the engines."""

from __future__ import annotations

import re
from collections.abc import Iterator

from specdec.objects import Manifest, mapping, sequence
from specdec.rules.model import Edit, Problem, Severity, World, rule
from specdec.rules.scaling import SCALERS, target

# Variables of the engine that Kubernetes' own would overwrite for a Service of that name: NAME_PORT.
# Source: vllm/envs.py. VLLM_PORT as tcp://... is a ValueError, the others are read with int().
CLASHING_SERVICES = {
    "vllm": "VLLM_PORT",
    "vllm-dp-master": "VLLM_DP_MASTER_PORT",
    "vllm-nixl-side-channel": "VLLM_NIXL_SIDE_CHANNEL_PORT",
    "vllm-mooncake-bootstrap": "VLLM_MOONCAKE_BOOTSTRAP_PORT",
}
SERVICE_LINKS = "https://kubernetes.io/docs/tutorials/services/connect-applications-service/#environment-variables"


@rule(
    "SD427",
    "service-named-like-a-variable",
    Severity.error,
    reason="For a Service called vllm Kubernetes puts VLLM_PORT=tcp://10.0.0.1:8000 into every pod of the namespace. "
    "The engine reads VLLM_PORT as a number and ends.",
    fix="enableServiceLinks: false in the pod, or another name for the Service",
    source="vllm/envs.py: get_vllm_port",
    bad="""
apiVersion: v1
kind: Service
metadata: {name: vllm}
spec: {selector: {app: engine}, ports: [{port: 8000}]}
---
apiVersion: v1
kind: Pod
metadata: {name: engine, labels: {app: engine}}
spec:
  containers: [{name: engine, image: "vllm/vllm-openai:v0.32.0", args: [/models/target]}]
""",
    good="""
apiVersion: v1
kind: Service
metadata: {name: vllm}
spec: {selector: {app: engine}, ports: [{port: 8000}]}
---
apiVersion: v1
kind: Pod
metadata: {name: engine, labels: {app: engine}}
spec:
  enableServiceLinks: false
  containers: [{name: engine, image: "vllm/vllm-openai:v0.32.0", args: [/models/target]}]
""",
)
def service_named_like_a_variable(world: World) -> Iterator[Problem]:
    services = [service for service in world.of_kind("Service") if service.name in CLASHING_SERVICES]
    for engine in world.engines:
        if engine.pod_spec.get("enableServiceLinks") is False:
            continue
        for service in services:
            variable = CLASHING_SERVICES[service.name]
            if service.namespace == engine.manifest.namespace and variable not in engine.env:
                message = f"the Service {service.name} sets {variable} in this pod"
                edits = (Edit((*engine.path, "enableServiceLinks"), False),)
                yield Problem(engine.manifest, engine.path, message, None, edits)


# Labels that pods get when they are made: no manifest has them.
GIVEN_BY_CONTROLLERS = (
    "leaderworkerset.sigs.k8s.io/", "statefulset.kubernetes.io/", "apps.kubernetes.io/", "batch.kubernetes.io/",
    "ray.io/", "serving.kserve.io/", "kserve.io/", "job-name",
)  # fmt: skip


def selected(world: World, service: Manifest) -> list[tuple[Manifest, dict[str, object]]]:
    wanted = {
        key: value
        for key, value in mapping(service.get("spec.selector")).items()
        if not str(key).startswith(GIVEN_BY_CONTROLLERS)
    }
    namespace = service.namespace
    return [
        (pod.manifest, pod.spec)
        for pod in world.pods
        if pod.namespace == namespace and wanted.items() <= pod.labels.items()
    ]


@rule(
    "SD501",
    "headless-service-missing",
    Severity.warning,
    reason="A StatefulSet gives its pods their DNS names through the Service that serviceName names. When that does "
    "not exist, nobody finds a pod by its name.",
    fix="a Service of that name with clusterIP: None",
    source="https://kubernetes.io/docs/concepts/workloads/controllers/statefulset/#stable-network-id",
    bad="""
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: engine}
spec:
  serviceName: engine-headless
  template: {metadata: {labels: {app: engine}}, spec: {containers: [{name: a}]}}
---
apiVersion: v1
kind: Service
metadata: {name: engine}
spec: {selector: {app: engine}, ports: [{port: 8000}]}
""",
    good="""
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: engine}
spec:
  serviceName: engine-headless
  template: {metadata: {labels: {app: engine}}, spec: {containers: [{name: a}]}}
---
apiVersion: v1
kind: Service
metadata: {name: engine-headless}
spec: {clusterIP: None, selector: {app: engine}, ports: [{port: 8000}]}
""",
)
def headless_service_missing(world: World) -> Iterator[Problem]:
    services = {(service.namespace, service.name) for service in world.of_kind("Service")}
    for manifest in world.of_kind("StatefulSet"):
        name = manifest.get("spec.serviceName")
        # A manifest on its own says nothing about the Services that exist.
        if name and services and (manifest.namespace, str(name)) not in services:
            yield Problem(manifest, ("spec", "serviceName"), f"there is no Service {name} here")


@rule(
    "SD502",
    "service-selects-nothing",
    Severity.warning,
    reason="A Service whose selector matches no pod has no endpoints: clients get connection refused.",
    fix="the labels of the pods as the selector",
    source="vllm-project/vllm#38340",
    bad="""
apiVersion: v1
kind: Service
metadata: {name: engine}
spec: {selector: {app: engin}, ports: [{port: 8000}]}
---
apiVersion: v1
kind: Pod
metadata: {name: engine, labels: {app: engine}}
spec: {containers: [{name: a}]}
""",
    good="""
apiVersion: v1
kind: Service
metadata: {name: engine}
spec: {selector: {app: engine}, ports: [{port: 8000}]}
---
apiVersion: v1
kind: Pod
metadata: {name: engine, labels: {app: engine}}
spec: {containers: [{name: a}]}
""",
)
def service_selects_nothing(world: World) -> Iterator[Problem]:
    if not world.pods:
        return
    for service in world.of_kind("Service"):
        wanted = mapping(service.get("spec.selector"))
        if wanted and not selected(world, service):
            labels = ", ".join(f"{key}={value}" for key, value in wanted.items())
            yield Problem(service, ("spec", "selector"), f"no pod here has the labels {labels}")


@rule(
    "SD503",
    "target-port-missing",
    Severity.error,
    reason="A Service that sends to a named port needs a container with a port of that name; without one it has no "
    "endpoints on it.",
    fix="targetPort: the name, or the number, of a port of the container",
    source="https://kubernetes.io/docs/concepts/services-networking/service/#field-spec-ports",
    bad="""
apiVersion: v1
kind: Service
metadata: {name: engine}
spec: {selector: {app: engine}, ports: [{port: 8000, targetPort: web}]}
---
apiVersion: v1
kind: Pod
metadata: {name: engine, labels: {app: engine}}
spec: {containers: [{name: a, ports: [{name: http, containerPort: 8000}]}]}
""",
    good="""
apiVersion: v1
kind: Service
metadata: {name: engine}
spec: {selector: {app: engine}, ports: [{port: 8000, targetPort: http}]}
---
apiVersion: v1
kind: Pod
metadata: {name: engine, labels: {app: engine}}
spec: {containers: [{name: a, ports: [{name: http, containerPort: 8000}]}]}
""",
)
def target_port_missing(world: World) -> Iterator[Problem]:
    for service in world.of_kind("Service"):
        if not mapping(service.get("spec.selector")):
            continue
        for index, port in enumerate(sequence(service.get("spec.ports"))):
            target = mapping(port).get("targetPort")
            if not isinstance(target, str) or re.fullmatch(r"\d+", target) or "$" in target:
                continue
            for manifest, spec in selected(world, service):
                names = {
                    mapping(exposed).get("name")
                    for container in [*sequence(spec.get("containers")), *sequence(spec.get("initContainers"))]
                    for exposed in sequence(mapping(container).get("ports"))
                }
                if target not in names:
                    message = f"{manifest.resource} has no port called {target}"
                    yield Problem(service, ("spec", "ports", index, "targetPort"), message)


PARKED = """
apiVersion: v1
kind: Service
metadata: {name: router}
spec: {selector: {app: router}, ports: [{port: 8000}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: router}
spec:
  replicas: %s
  selector: {matchLabels: {app: router}}
  template:
    metadata: {labels: {app: router}}
    spec: {containers: [{name: router, image: "registry.example/router:1"}]}
"""


@rule(
    "SD509",
    "service-without-replicas",
    Severity.warning,
    reason="All workloads that the Service selects have 0 replicas, and no autoscaler that would wake one: it has no "
    "endpoints, and every request fails.",
    fix="1 replica or more, or leave the Service out with its workload",
    source="https://kubernetes.io/docs/concepts/services-networking/service/#services-without-selectors",
    bad=PARKED % 0,
    good=PARKED % 2,
)
def service_without_replicas(world: World) -> Iterator[Problem]:
    scaled = {target(scaler) for scaler in world.of_kind(*SCALERS)}
    parked: dict[int, tuple[Manifest, list[str]]] = {}
    for service in world.of_kind("Service"):
        workloads = [manifest for manifest, _ in selected(world, service)] if service.get("spec.selector") else []
        replicas = [(manifest, manifest.get("spec.replicas")) for manifest in workloads]
        if workloads and all(count == 0 and (m.kind, m.name) not in scaled for m, count in replicas):
            for manifest, _ in replicas:
                parked.setdefault(id(manifest), (manifest, []))[1].append(f"Service/{service.name}")
    for manifest, services in parked.values():
        verb = "has" if len(services) == 1 else "have"
        message = f"0 replicas, and {' and '.join(services)} {verb} nothing else to send to"
        yield Problem(manifest, ("spec", "replicas"), message)
