"""SD504 to SD508: what stands between clients and engines, and how long it waits."""

from __future__ import annotations

import re
from collections.abc import Iterator

from specdec.objects import Manifest, Path, mapping, sequence
from specdec.rules.model import Edit, Problem, Severity, World, rule
from specdec.rules.probe_shape import listens_on
from specdec.rules.traffic import selected

# A long answer: 4,096 tokens at 20 ms, and a place in the queue. Below it something is cut every day.
LONG_ANSWER = 120
UNITS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "": 1}


def seconds(text: object) -> float | None:
    """Gateway API and nginx durations in seconds: "60s", "1h30m", 60. None where it is none; 0 means no limit."""
    parts = re.findall(r"(\d+(?:\.\d+)?)(ms|s|m|h|)", str(text).strip())
    if not parts or "".join(number + unit for number, unit in parts) != str(text).strip():
        return None
    return sum(float(number) * UNITS[unit] for number, unit in parts)


NGINX = ("nginx.ingress.kubernetes.io/proxy-read-timeout", "nginx.ingress.kubernetes.io/proxy-send-timeout")
ALB = "alb.ingress.kubernetes.io/load-balancer-attributes"


def timeouts(manifest: Manifest) -> Iterator[tuple[Path, object]]:
    """Every limit on how long a request may take that the object states."""
    kind = manifest.kind
    if kind in ("HTTPRoute", "GRPCRoute", "VirtualService"):
        rules = "http" if kind == "VirtualService" else "rules"
        for index, row in enumerate(sequence(manifest.get(("spec", rules)))):
            if kind == "VirtualService" and mapping(row).get("timeout") is not None:
                yield ("spec", rules, index, "timeout"), row["timeout"]
            for key, value in mapping(mapping(row).get("timeouts")).items():
                yield ("spec", rules, index, "timeouts", str(key)), value
    elif kind == "InferenceService":
        for part in ("predictor", "transformer"):
            if manifest.get(("spec", part, "timeout")) is not None:
                yield ("spec", part, "timeout"), manifest.get(("spec", part, "timeout"))
    elif kind in ("GCPBackendPolicy", "BackendConfig"):
        inner: Path = ("spec", "default", "timeoutSec") if kind == "GCPBackendPolicy" else ("spec", "timeoutSec")
        if manifest.get(inner) is not None:
            yield inner, manifest.get(inner)
    elif kind == "BackendTrafficPolicy":
        path: Path = ("spec", "timeout", "http", "requestTimeout")
        if manifest.get(path) is not None:
            yield path, manifest.get(path)
    elif kind == "Ingress":
        for name in NGINX:
            if name in manifest.annotations:
                yield ("metadata", "annotations", name), manifest.annotations[name]
        idle = re.search(r"idle_timeout\.timeout_seconds=(\d+)", str(manifest.annotations.get(ALB, "")))
        if idle:
            yield ("metadata", "annotations", ALB), idle.group(1)


def route(timeout: str) -> str:
    return f"""
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {{name: chat}}
spec:
  parentRefs: [{{name: inference}}]
  rules:
    - backendRefs: [{{name: router, port: 8000}}]
      timeouts: {{request: {timeout}}}
"""


@rule(
    "SD504",
    "gateway-cuts-generation",
    Severity.error,
    reason="A proxy that gives up before the last token is there cuts the answer, after the GPU has done the work; a "
    "request that waits in the engine's queue counts too. Generation takes minutes where other requests take "
    "milliseconds.",
    fix="a timeout above max_tokens x time per output token + the queue, for example 1800 s; 0 is none",
    source="llm-d/llm-d-deployer#339, defilantech/LLMKube#734; https://gateway-api.sigs.k8s.io/geps/gep-1742/",
    bad=route("30s"),
    good=route("1800s"),
)
def gateway_cuts_generation(world: World) -> Iterator[Problem]:
    for manifest in world.manifests:
        for path, value in timeouts(manifest):
            limit = seconds(value)
            if limit is not None and 0 < limit < LONG_ANSWER:
                message = f"requests are cut after {limit:g} s, and an answer of 4,096 tokens takes {LONG_ANSWER} s"
                yield Problem(manifest, path, message)


INGRESS = """
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  name: chat
  annotations: {%s}
spec:
  ingressClassName: nginx
  rules:
    - host: chat.example
      http:
        paths:
          - {path: /, pathType: Prefix, backend: {service: {name: engine, port: {number: 8000}}}}
---
apiVersion: v1
kind: Service
metadata: {name: engine}
spec: {selector: {app: engine}, ports: [{port: 8000}]}
---
apiVersion: v1
kind: Pod
metadata: {name: engine, labels: {app: engine}}
spec: {containers: [{name: engine, image: "vllm/vllm-openai:v0.32.0", args: [/models/target]}]}
"""


@rule(
    "SD505",
    "gateway-default-timeout",
    Severity.warning,
    reason="Left alone, nginx gives up after 60 s without a byte, an ALB too, and Google's load balancers after 30 s. "
    "A long prompt in a full queue needs more before its first token.",
    fix='nginx.ingress.kubernetes.io/proxy-read-timeout: "1800"; idle_timeout.timeout_seconds=1800; timeoutSec: 1800',
    source="https://kubernetes.github.io/ingress-nginx/user-guide/nginx-configuration/annotations/#custom-timeouts; "
    "https://cloud.google.com/kubernetes-engine/docs/how-to/configure-gateway-resources",
    bad=INGRESS % "",
    good=INGRESS % 'nginx.ingress.kubernetes.io/proxy-read-timeout: "1800"',
)
def gateway_default_timeout(world: World) -> Iterator[Problem]:
    if not world.engines:
        return
    for manifest in world.of_kind("Ingress"):
        named = str(manifest.get("spec.ingressClassName") or manifest.annotations.get("kubernetes.io/ingress.class"))
        if not re.search(r"nginx|alb|gce", named):
            continue
        stated = list(timeouts(manifest))
        configured = any(backend.kind == "BackendConfig" for backend in world.manifests) if "gce" in named else False
        if not stated and not configured:
            least = 30 if "gce" in named else 60
            message = f"{named} waits {least} s by default, and nothing here says longer"
            yield Problem(manifest, ("metadata", "annotations"), message)


def backends(manifest: Manifest) -> Iterator[tuple[Path, str, object]]:
    """(where, name, port) of every Service that a route or Ingress sends to, in its own namespace."""
    if manifest.kind in ("HTTPRoute", "GRPCRoute"):
        for row, given in enumerate(sequence(manifest.get("spec.rules"))):
            for index, item in enumerate(sequence(mapping(given).get("backendRefs"))):
                ref = mapping(item)
                if ref.get("kind", "Service") == "Service" and ref.get("namespace") in (None, manifest.namespace):
                    yield ("spec", "rules", row, "backendRefs", index), str(ref.get("name")), ref.get("port")
    if manifest.kind == "Ingress":
        for row, given in enumerate(sequence(manifest.get("spec.rules"))):
            for index, item in enumerate(sequence(mapping(mapping(given).get("http")).get("paths"))):
                service = mapping(mapping(mapping(item).get("backend")).get("service"))
                port = mapping(service.get("port"))
                path = ("spec", "rules", row, "http", "paths", index, "backend", "service")
                if service.get("name"):
                    yield path, str(service["name"]), port.get("number", port.get("name"))


@rule(
    "SD506",
    "route-to-nowhere",
    Severity.error,
    reason="A route to a Service that does not exist, or to a port that it does not have, answers 500 or 503 to every "
    "request.",
    fix="the Service's name and one of its ports",
    source="https://gateway-api.sigs.k8s.io/reference/spec/#backendref",
    bad=route("1800s") + "---\napiVersion: v1\nkind: Service\nmetadata: {name: router}\nspec: {ports: [{port: 80}]}\n",
    good=route("1800s")
    + "---\napiVersion: v1\nkind: Service\nmetadata: {name: router}\nspec: {ports: [{port: 8000}]}\n",
)
def route_to_nowhere(world: World) -> Iterator[Problem]:
    services = {(service.namespace, service.name): service for service in world.of_kind("Service")}
    for manifest in world.of_kind("HTTPRoute", "GRPCRoute", "Ingress"):
        for path, name, port in backends(manifest):
            service = services.get((manifest.namespace, name))
            if service is None:
                # One that is not here may exist in the cluster, unless this set brings Services along.
                if any(namespace == manifest.namespace for namespace, _ in services):
                    yield Problem(manifest, path, f"there is no Service {name} here")
                continue
            ports = [mapping(item) for item in sequence(service.get("spec.ports"))]
            known = {str(item.get(key)) for item in ports for key in ("port", "name")}
            if port is not None and str(port) not in known:
                has = ", ".join(str(item.get("port")) for item in ports)
                yield Problem(manifest, path, f"the Service {name} has no port {port}: it has {has}")


@rule(
    "SD507",
    "service-to-a-closed-port",
    Severity.error,
    reason="The Service sends to a port on which the engine does not listen: connection refused for every request.",
    fix="targetPort: the port that --port names, 8000 by default",
    source="vllm-project/vllm#45077",
    bad=INGRESS.replace("ports: [{port: 8000}]", "ports: [{port: 8000, targetPort: 8080}]")
    % 'nginx.ingress.kubernetes.io/proxy-read-timeout: "1800"',
    good=INGRESS.replace("ports: [{port: 8000}]", "ports: [{port: 8000, targetPort: 8000}]")
    % 'nginx.ingress.kubernetes.io/proxy-read-timeout: "1800"',
)
def service_to_a_closed_port(world: World) -> Iterator[Problem]:
    engines = [(id(engine.manifest), engine) for engine in world.engines]
    for service in world.of_kind("Service"):
        wanted = mapping(service.get("spec.selector"))
        behind = {id(manifest) for manifest, _ in selected(world, service)} if wanted and engines else set()
        chosen = [engine for key, engine in engines if key in behind]
        # Another container of the pod, a proxy beside the engine, may listen.
        chosen = [engine for engine in chosen if len(sequence(engine.pod_spec.get("containers"))) == 1]
        for index, item in enumerate(sequence(service.get("spec.ports"))):
            port = mapping(item)
            target = port.get("targetPort", port.get("port"))
            for engine in chosen:
                served = listens_on(engine)
                if str(target).isdigit() and served is not None and int(str(target)) != served:
                    message = f"the engine {engine.name} listens on {served}, and the Service sends to {target}"
                    path: Path = ("spec", "ports", index)
                    edits = (Edit((*path, "targetPort"), served),)
                    yield Problem(service, path, message, f"targetPort: {served}", edits)


@rule(
    "SD508",
    "balancing-by-client",
    Severity.warning,
    reason="Session affinity by client address sends everything that comes through one gateway to one engine, and the "
    "others idle.",
    fix="sessionAffinity: None; a router that knows prefixes where caches should be hit again",
    source="https://kubernetes.io/docs/reference/networking/virtual-ips/#session-affinity",
    bad=(INGRESS % 'nginx.ingress.kubernetes.io/proxy-read-timeout: "1800"').replace(
        "spec: {selector", "spec: {sessionAffinity: ClientIP, selector"
    ),
    good=INGRESS % 'nginx.ingress.kubernetes.io/proxy-read-timeout: "1800"',
)
def balancing_by_client(world: World) -> Iterator[Problem]:
    manifests = {id(engine.manifest) for engine in world.engines}
    for service in world.of_kind("Service"):
        if service.get("spec.sessionAffinity") != "ClientIP":
            continue
        if any(id(manifest) in manifests for manifest, _ in selected(world, service)):
            yield Problem(service, ("spec", "sessionAffinity"), "requests of one gateway all go to one engine")
