"""SD610 to SD614: whether Prometheus finds the engines at all."""

from __future__ import annotations

from collections.abc import Iterator

from specdec.objects import Manifest, mapping, sequence
from specdec.rules.model import Edit, Problem, Severity, World, rule

OPERATOR = "https://prometheus-operator.dev/docs/api-reference/api/"


def monitor(selector: str = "app: engine", port: str = "http", more: str = "") -> str:
    return f"""
apiVersion: monitoring.coreos.com/v1
kind: ServiceMonitor
metadata: {{name: engine, namespace: ai}}
spec:
  selector: {{matchLabels: {{{selector}}}}}
  endpoints: [{{port: {port}}}]
{more}---
apiVersion: v1
kind: Service
metadata: {{name: engine, namespace: ai, labels: {{app: engine}}}}
spec: {{selector: {{app: engine}}, ports: [{{name: http, port: 8000}}]}}
"""


def reaches(monitor: Manifest, namespace: str | None) -> bool:
    """Whether the monitor looks into that namespace: its own alone, unless it says more."""
    chosen = mapping(monitor.get("spec.namespaceSelector"))
    names = sequence(chosen.get("matchNames"))
    return bool(chosen.get("any")) or (namespace in names if names else namespace == monitor.namespace)


def wanted(monitor: Manifest, labels: dict[str, object]) -> bool:
    asked = mapping(monitor.get("spec.selector.matchLabels"))
    rows = [mapping(row) for row in sequence(monitor.get("spec.selector.matchExpressions"))]
    return asked.items() <= labels.items() and all(_holds(row, labels) for row in rows)


def _holds(row: dict[str, object], labels: dict[str, object]) -> bool:
    key, values = str(row.get("key")), sequence(row.get("values"))
    return {
        "In": labels.get(key) in values,
        "NotIn": labels.get(key) not in values,
        "Exists": key in labels,
        "DoesNotExist": key not in labels,
    }.get(str(row.get("operator")), True)


@rule(
    "SD610",
    "monitor-selects-no-service",
    Severity.error,
    reason="A ServiceMonitor selects Services by their own labels, not by their pods'. One that matches none scrapes "
    "nothing, and every alert stays silent.",
    fix="the labels of the Service's metadata as the selector",
    source=f"vllm-project/production-stack#606; {OPERATOR}",
    bad=monitor(selector="app: engines"),
    good=monitor(),
)
def monitor_selects_no_service(world: World) -> Iterator[Problem]:
    services = list(world.of_kind("Service"))
    for item in world.of_kind("ServiceMonitor"):
        near = [service for service in services if reaches(item, service.namespace)]
        if services and not any(wanted(item, service.labels) for service in near):
            other = next((s.namespace for s in services if wanted(item, s.labels)), None)
            where = f"; the one in namespace {other} is out of its reach" if other else ""
            fix = f"namespaceSelector: {{matchNames: [{other}]}}" if other else None
            yield Problem(item, ("spec", "selector"), f"no Service here has these labels{where}", fix)


@rule(
    "SD611",
    "monitor-port-missing",
    Severity.error,
    reason="A ServiceMonitor names a port of the Service by its name. A number does not count, and a name that the "
    "Service does not have drops the target without an error.",
    fix="the name of the Service's port that leads to the engine's API",
    source=f"vllm-project/vllm#45077; {OPERATOR}",
    bad=monitor(port="metrics"),
    good=monitor(),
)
def monitor_port_missing(world: World) -> Iterator[Problem]:
    for item in world.of_kind("ServiceMonitor"):
        chosen = [s for s in world.of_kind("Service") if reaches(item, s.namespace) and wanted(item, s.labels)]
        names = {
            str(mapping(port)["name"])
            for service in chosen
            for port in sequence(service.get("spec.ports"))
            if mapping(port).get("name")
        }
        for index, endpoint in enumerate(sequence(item.get("spec.endpoints"))):
            port = mapping(endpoint).get("port")
            if chosen and port is not None and str(port) not in names:
                has = ", ".join(sorted(names)) or "none with a name"
                path = ("spec", "endpoints", index, "port")
                yield Problem(item, path, f"{chosen[0].resource} has no port called {port}: it has {has}")


PODMONITOR = """
apiVersion: monitoring.coreos.com/v1
kind: PodMonitor
metadata: {name: engine}
spec:
  selector: {matchLabels: {app: %s}}
  podMetricsEndpoints: [{port: %s}]
---
apiVersion: v1
kind: Pod
metadata: {name: engine, labels: {app: engine}}
spec: {containers: [{name: a, ports: [{name: http, containerPort: 8000}]}]}
"""


@rule(
    "SD612",
    "pod-monitor-finds-nothing",
    Severity.error,
    reason="A PodMonitor selects pods by their labels and names a port of their containers. Where one of the two does "
    "not exist nothing is scraped.",
    fix="labels of the pods, and the name of the container's port",
    source=OPERATOR,
    bad=PODMONITOR % ("engine", "metrics"),
    good=PODMONITOR % ("engine", "http"),
)
def pod_monitor_finds_nothing(world: World) -> Iterator[Problem]:
    for item in world.of_kind("PodMonitor"):
        near = [pods for pods in world.pods if reaches(item, pods.namespace)]
        chosen = [pods for pods in near if wanted(item, pods.labels)]
        if near and not chosen:
            yield Problem(item, ("spec", "selector"), "no pod here has these labels")
        names = {
            str(mapping(port).get("name"))
            for pods in chosen
            for kind in ("containers", "initContainers")
            for container in sequence(pods.spec.get(kind))
            for port in sequence(mapping(container).get("ports"))
        }
        for index, endpoint in enumerate(sequence(item.get("spec.podMetricsEndpoints"))):
            port = mapping(endpoint).get("port")
            if chosen and port is not None and str(port) not in names:
                path = ("spec", "podMetricsEndpoints", index, "port")
                yield Problem(item, path, f"{chosen[0].manifest.resource} has no port called {port}")


@rule(
    "SD613",
    "scraped-at-another-path",
    Severity.error,
    reason="vLLM answers on /metrics alone; at another path Prometheus gets 404 and the target is down.",
    fix="path: /metrics, which is the default",
    source="vllm/entrypoints/serve/instrumentator/metrics.py",
    bad=monitor(port="http, path: /v1/metrics"),
    good=monitor(port="http, path: /metrics"),
)
def scraped_at_another_path(world: World) -> Iterator[Problem]:
    for item in world.of_kind("ServiceMonitor", "PodMonitor"):
        key = "endpoints" if item.kind == "ServiceMonitor" else "podMetricsEndpoints"
        for index, endpoint in enumerate(sequence(item.get(("spec", key)))):
            path = mapping(endpoint).get("path")
            if path is not None and str(path).rstrip("/") != "/metrics":
                at = ("spec", key, index, "path")
                yield Problem(item, at, f"{path} is no path of vLLM's metrics", None, (Edit(at, "/metrics"),))


def quiet(flag: str) -> str:
    return f"""
apiVersion: monitoring.coreos.com/v1
kind: PodMonitor
metadata: {{name: engine}}
spec: {{selector: {{matchLabels: {{app: engine}}}}, podMetricsEndpoints: [{{port: http}}]}}
---
apiVersion: v1
kind: Pod
metadata: {{name: engine, labels: {{app: engine}}}}
spec:
  containers:
    - name: engine
      image: vllm/vllm-openai:v0.32.0
      args: [/models/target{flag}]
      ports: [{{name: http, containerPort: 8000}}]
"""


@rule(
    "SD614",
    "metrics-switched-off",
    Severity.error,
    reason="--disable-log-stats switches off the engine's statistics and with them every vllm: metric: the target is "
    "up, /metrics answers, and there is nothing in it to alert or scale on.",
    fix="take --disable-log-stats away",
    source="vllm/v1/engine/async_llm.py: log_stats",
    bad=quiet(", --disable-log-stats"),
    good=quiet(""),
)
def metrics_switched_off(world: World) -> Iterator[Problem]:
    watching = next(iter(world.of_kind("ServiceMonitor", "PodMonitor", "ScaledObject", "PrometheusRule")), None)
    for engine in world.engines:
        if watching and engine.args.has("--disable-log-stats"):
            path = engine.path_of("--disable-log-stats")
            message = f"{engine.name} exports no metrics, and {watching.resource} asks for them"
            yield Problem(engine.manifest, path, message)
