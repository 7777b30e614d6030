"""SD510 to SD518: autoscalers: KEDA's ScaledObject and the HorizontalPodAutoscaler."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from specdec.objects import Manifest, Path, mapping, sequence
from specdec.rules.model import REMOVED, Edit, Problem, Severity, World, rule
from specdec.rules.promql import matchers, queries

KEDA = "https://keda.sh/docs/latest/scalers/prometheus/"
# Their keys of the least and the most replicas.
BOUNDS = {
    "ScaledObject": ("minReplicaCount", "maxReplicaCount"),
    "HorizontalPodAutoscaler": ("minReplicas", "maxReplicas"),
}
SCALERS = tuple(BOUNDS)
WORKLOADS = ("Deployment", "StatefulSet", "LeaderWorkerSet", "InferenceService", "LLMInferenceService")


def target(scaler: Manifest) -> tuple[str, str]:
    """(kind, name) of what is scaled."""
    ref = mapping(scaler.get("spec.scaleTargetRef"))
    return str(ref.get("kind") or "Deployment"), str(ref.get("name"))


def scaled(world: World, scaler: Manifest) -> Manifest | None:
    kind, name = target(scaler)
    return next(
        (m for m in world.of_kind(kind) if (m.name, m.namespace) == (name, scaler.namespace)),
        None,
    )


def prometheus(scaler: Manifest) -> Iterator[tuple[Path, dict[str, Any]]]:
    """(path, metadata) of each Prometheus trigger."""
    for index, trigger in enumerate(sequence(scaler.get("spec.triggers"))):
        if mapping(trigger).get("type") == "prometheus":
            yield ("spec", "triggers", index, "metadata"), mapping(mapping(trigger).get("metadata"))


def example(
    query: str = "sum(vllm:num_requests_waiting)",
    ignore: str = 'ignoreNullValues: "false"',
    least: int = 1,
    more: str = "",
    name: str = "engine",
) -> str:
    """A ScaledObject with that query."""
    return f"""
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata: {{name: {name}}}
spec:
  scaleTargetRef: {{name: engine}}
  minReplicaCount: {least}
  maxReplicaCount: 4
  triggers:
    - type: prometheus
      metadata:
        serverAddress: http://prometheus:9090
        query: {query}
        threshold: "5"
        {ignore}
{more}"""


def engine(replicas: str = "", served: str = "chat") -> str:
    return f"""---
apiVersion: apps/v1
kind: Deployment
metadata: {{name: engine}}
spec:
  {replicas}
  strategy: {{type: Recreate}}
  template:
    spec:
      containers:
        - name: engine
          image: vllm/vllm-openai:v0.32.0
          args: [/models/target, --served-model-name, {served}]
          readinessProbe: {{httpGet: {{path: /health, port: 8000}}}}
"""


@rule(
    "SD510",
    "replicas-beside-an-autoscaler",
    Severity.error,
    reason="The autoscaler sets the number of replicas. Where the manifest states one too, every upgrade puts it back: "
    "engines under load are stopped, and their weights have to be loaded again.",
    fix="leave spec.replicas out where something scales it",
    source="vllm-project/production-stack#903; https://keda.sh/docs/latest/concepts/scaling-deployments/",
    bad=example() + engine("replicas: 1"),
    good=example() + engine(),
)
def replicas_beside_an_autoscaler(world: World) -> Iterator[Problem]:
    for scaler in world.of_kind(*SCALERS):
        workload = scaled(world, scaler)
        if workload is not None and workload.has("spec.replicas"):
            message = f"{scaler.resource} scales it, and the manifest says {workload.get('spec.replicas')}"
            yield Problem(workload, ("spec", "replicas"), message, None, (Edit(("spec", "replicas"), REMOVED),))


@rule(
    "SD511",
    "nothing-counts-as-zero",
    Severity.error,
    reason="By default KEDA takes a query without a series for 0: a wrong name, a label that does not match or a "
    "Prometheus that lost its targets all look like an idle engine, and it scales down under load.",
    fix='ignoreNullValues: "false"',
    source=f"llm-d/llm-d#1981; {KEDA}",
    bad=example(ignore="activationThreshold: '1'"),
    good=example(),
)
def nothing_counts_as_zero(world: World) -> Iterator[Problem]:
    for scaler in world.of_kind("ScaledObject"):
        least = scaler.get("spec.minReplicaCount")
        for path, metadata in prometheus(scaler):
            ignored = str(metadata.get("ignoreNullValues", "true")).lower() != "false"
            if ignored and "vllm" in str(metadata.get("query")) and isinstance(least, int) and least >= 1:
                edits = (Edit((*path, "ignoreNullValues"), "false"),)
                yield Problem(scaler, path, "a query that finds no series counts as 0", None, edits)


@rule(
    "SD512",
    "nothing-wakes-it-up",
    Severity.error,
    reason="With no pod there is no engine, and so no metric of an engine: a workload that was scaled to 0 on vllm: "
    "metrics stays there.",
    fix="minReplicaCount: 1, or a trigger on the router's or gateway's requests",
    source="vllm-project/production-stack#679",
    bad=example(least=0),
    good=example(query="sum(rate(vllm_router_requests_total[1m]))", least=0, ignore='activationThreshold: "0"'),
)
def nothing_wakes_it_up(world: World) -> Iterator[Problem]:
    for scaler in world.of_kind("ScaledObject"):
        # KEDA's own default is 0.
        if scaler.get("spec.minReplicaCount") not in (0, None):
            continue
        triggers = [mapping(trigger) for trigger in sequence(scaler.get("spec.triggers"))]
        asked = list(queries(scaler))
        waking = any(trigger.get("type") not in ("prometheus", "cpu", "memory") for trigger in triggers)
        elsewhere = any(not any(name.startswith("vllm:") for name in query.metrics) for query in asked)
        if asked and not waking and not elsewhere:
            message = "scaled to 0 it has no engine, and its triggers ask engines alone"
            yield Problem(scaler, ("spec", "minReplicaCount"), message)


@rule(
    "SD513",
    "scaled-on-the-processor",
    Severity.warning,
    reason="An engine's processes spin on a core whether requests come or not, and the GPU does the work: use of CPU "
    "and memory says nothing about load.",
    fix="time per output token, KV cache use or the queue: vllm:request_time_per_output_token_seconds, "
    "vllm:kv_cache_usage_perc, vllm:num_requests_waiting",
    source="https://docs.vllm.ai/en/latest/usage/metrics.html",
    bad="""
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: engine}
spec:
  scaleTargetRef: {kind: Deployment, name: engine}
  metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 80}}}]
"""
    + engine(),
    good=example() + engine(),
)
def scaled_on_the_processor(world: World) -> Iterator[Problem]:
    engines = {id(engine.manifest) for engine in world.engines}
    for scaler in world.of_kind(*SCALERS):
        if id(scaled(world, scaler)) not in engines:
            continue
        for index, metric in enumerate(sequence(scaler.get("spec.metrics"))):
            if mapping(metric).get("type") in ("Resource", "ContainerResource"):
                path: Path = ("spec", "metrics", index)
                yield Problem(scaler, path, f"{target(scaler)[1]} is scaled on the use of processor or memory")
        for index, trigger in enumerate(sequence(scaler.get("spec.triggers"))):
            if mapping(trigger).get("type") in ("cpu", "memory"):
                path = ("spec", "triggers", index)
                yield Problem(scaler, path, f"{target(scaler)[1]} is scaled on the use of {trigger['type']}")


@rule(
    "SD514",
    "scales-what-is-not-there",
    Severity.error,
    reason="The autoscaler's target does not exist under that kind and name: it reports an error and scales nothing.",
    fix="kind and name of the workload; kind is Deployment where it is left out",
    source="https://keda.sh/docs/latest/reference/scaledobject-spec/#scaletargetref",
    bad=example().replace("{name: engine}\n  min", "{kind: StatefulSet, name: engine}\n  min") + engine(),
    good=example() + engine(),
)
def scales_what_is_not_there(world: World) -> Iterator[Problem]:
    for scaler in world.of_kind(*SCALERS):
        kind, name = target(scaler)
        near = [m for m in world.of_kind(*WORKLOADS) if m.namespace == scaler.namespace]
        if near and kind in WORKLOADS and scaled(world, scaler) is None:
            same = next((m.resource for m in near if m.name == name), None)
            fix = f"{same}" if same else None
            yield Problem(scaler, ("spec", "scaleTargetRef"), f"there is no {kind} {name} here", fix)


@rule(
    "SD515",
    "two-autoscalers",
    Severity.error,
    reason="Two autoscalers on one workload undo each other's decisions. KEDA makes a HorizontalPodAutoscaler of its "
    "own, and refuses a target that has another.",
    fix="one autoscaler with all triggers",
    source="https://keda.sh/docs/latest/concepts/admission-webhooks/",
    bad=example() + "---" + example(name="another"),
    good=example(),
)
def two_autoscalers(world: World) -> Iterator[Problem]:
    seen: dict[tuple[str | None, str, str], Manifest] = {}
    for scaler in world.of_kind(*SCALERS):
        key = (scaler.namespace, *target(scaler))
        if key in seen:
            message = f"{seen[key].resource} scales {target(scaler)[1]} already"
            yield Problem(scaler, ("spec", "scaleTargetRef"), message)
        seen.setdefault(key, scaler)


@rule(
    "SD516",
    "query-for-another-model",
    Severity.error,
    reason="vLLM's metrics carry the name under which the model is served. A query for another name, or for another "
    "namespace, finds no series and never fires.",
    fix='model_name="..." with the value of --served-model-name, or of --model where there is none',
    source="llm-d/llm-d-benchmark#1611; vllm/v1/metrics/loggers.py",
    bad=example("'sum(vllm:num_requests_waiting{model_name=\"talk\"})'") + engine(),
    good=example("'sum(vllm:num_requests_waiting{model_name=\"chat\"})'") + engine(),
)
def query_for_another_model(world: World) -> Iterator[Problem]:
    names = {
        name
        for engine in world.engines
        for name in (engine.args.served_model_names[:1] or [engine.args.model or ""])
        if name
    }
    namespaces = {engine.manifest.namespace for engine in world.engines}
    if not names:
        return
    for manifest in world.of_kind("ScaledObject", "PrometheusRule"):
        for query in queries(manifest):
            for metric in query.metrics:
                given = matchers(query.text, metric)
                operator, value = given.get("model_name", ("", ""))
                if operator == "=" and value not in names and "$" not in value:
                    message = f'no engine here serves model_name="{value}": {", ".join(sorted(names))}'
                    yield Problem(manifest, query.path, message)
                operator, value = given.get("namespace", ("", ""))
                if operator == "=" and None not in namespaces and value not in namespaces and "$" not in value:
                    message = f'no engine here is in namespace="{value}"'
                    yield Problem(manifest, query.path, message)


@rule(
    "SD517",
    "limits-the-wrong-way-round",
    Severity.error,
    reason="The most replicas are fewer than the least; the API server or KEDA's webhook refuses it.",
    fix="minReplicaCount at most maxReplicaCount",
    source="https://keda.sh/docs/latest/reference/scaledobject-spec/",
    bad=example(least=6),
    good=example(least=2),
)
def limits_the_wrong_way_round(world: World) -> Iterator[Problem]:
    for scaler in world.of_kind(*SCALERS):
        keys = BOUNDS[scaler.kind]
        least, most = (scaler.get(("spec", key)) for key in keys)
        if isinstance(least, int) and isinstance(most, int) and least > most:
            yield Problem(scaler, ("spec", keys[0]), f"{keys[0]} is {least} and {keys[1]} {most}")
