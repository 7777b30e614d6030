"""SD405 to SD408: where probes ask, and how soon they give up."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from specdec.manifests import EngineWorkload
from specdec.objects import mapping, sequence
from specdec.rules.model import Edit, Problem, Severity, each_engine, rule
from specdec.rules.probes import SOURCE, need, restarts_pods

# What vLLM's API server answers to a GET without a key. Source: vllm/entrypoints/serve, vllm/entrypoints/openai.
PATHS = ("/health", "/ping", "/load", "/version", "/metrics", "/v1/models", "/is_sleeping", "/docs", "/openapi.json")
PROBES = ("startupProbe", "livenessProbe", "readinessProbe")


def listens_on(engine: EngineWorkload) -> int | None:
    """The port of the API server: --port, 8000 by default; None where the manifest cannot tell."""
    if engine.args.has("--port"):
        return engine.args.port
    return 8000 if engine.args.model or engine.args.raw else None


def probes(engine: EngineWorkload) -> Iterator[tuple[str, dict[str, Any]]]:
    for name in PROBES:
        probe = mapping(engine.container.get(name))
        if probe:
            yield name, probe


@rule(
    "SD405",
    "probe-path-unknown",
    Severity.error,
    reason="The API server answers 404 on a path that it does not have, and a probe takes that as a failure: the "
    "container is restarted for ever, or never Ready.",
    fix="path: /health",
    source="llm-d/llm-d-inference-sim#45; vllm/entrypoints/serve/instrumentator/health.py",
    bad="""
containers:
  - readinessProbe: {httpGet: {path: /healthz, port: 8000}}
""",
    good="""
containers:
  - readinessProbe: {httpGet: {path: /health, port: 8000}}
""",
)
@each_engine
def probe_path_unknown(engine: EngineWorkload) -> Iterator[Problem]:
    if engine.args.has("--root-path"):
        return
    for name, probe in probes(engine):
        path = mapping(probe.get("httpGet")).get("path", "/") if probe.get("httpGet") else None
        if path is not None and str(path).split("?")[0].rstrip("/") not in PATHS:
            place = (*engine.container_path, name, "httpGet", "path")
            message = f"the {name} asks for {path}, which vLLM does not have"
            yield Problem(engine.manifest, place, message, None, (Edit(place, "/health"),))


@rule(
    "SD406",
    "probe-on-another-port",
    Severity.error,
    reason="Nobody listens on the port that the probe asks, so it never succeeds.",
    fix="the port that --port names, 8000 by default",
    source=f"{SOURCE}; vllm-project/vllm#45077",
    bad="""
containers:
  - args: [/models/target, --shutdown-timeout=60, --port=8080]
    readinessProbe: {httpGet: {path: /health, port: 8000}}
    livenessProbe: {httpGet: {path: /health, port: 8080}}
    startupProbe: {httpGet: {path: /health, port: 8080}, failureThreshold: 180}
""",
    good="""
containers:
  - args: [/models/target, --shutdown-timeout=60, --port=8080]
    readinessProbe: {httpGet: {path: /health, port: 8080}}
    livenessProbe: {httpGet: {path: /health, port: 8080}}
    startupProbe: {httpGet: {path: /health, port: 8080}, failureThreshold: 180}
""",
)
@each_engine
def probe_on_another_port(engine: EngineWorkload) -> Iterator[Problem]:
    served = listens_on(engine)
    if served is None or engine.args.has("--headless", "--grpc"):
        return
    named = {
        str(mapping(port).get("name")): mapping(port).get("containerPort")
        for port in sequence(engine.container.get("ports"))
    }
    for name, probe in probes(engine):
        asked = mapping(probe.get("httpGet") or probe.get("tcpSocket")).get("port")
        number = named.get(asked) if isinstance(asked, str) and not asked.isdigit() else asked
        place = (*engine.container_path, name)
        if number is None and isinstance(asked, str):
            message = f"the {name} asks the port {asked}, and the container has no port of that name"
            yield Problem(engine.manifest, place, message)
        elif number is not None and str(number) != str(served):
            message = f"the {name} asks port {number}, and the engine listens on {served}"
            kind = "httpGet" if probe.get("httpGet") else "tcpSocket"
            edits = (Edit((*place, kind, "port"), served),) if isinstance(asked, int) else ()
            yield Problem(engine.manifest, place, message, f"port: {served}", edits)


@rule(
    "SD407",
    "liveness-gives-up-at-once",
    Severity.warning,
    reason="/health waits for the engine's loop, and a step with a long prompt takes seconds. A liveness probe that "
    "gives up after one or two failures, or after a second of waiting, restarts an engine that is only busy.",
    fix="failureThreshold: 3 or more, timeoutSeconds: 5 or more",
    source="ai-dynamo/dynamo#2124; vllm-project/vllm#21535",
    bad="""
containers:
  - livenessProbe: {httpGet: {path: /health, port: 8000}, failureThreshold: 1}
""",
    good="""
containers:
  - livenessProbe: {httpGet: {path: /health, port: 8000}, failureThreshold: 3, timeoutSeconds: 5}
""",
)
@each_engine
def liveness_gives_up_at_once(engine: EngineWorkload) -> Iterator[Problem]:
    threshold = mapping(engine.container.get("livenessProbe")).get("failureThreshold", 3)
    if restarts_pods(engine) and isinstance(threshold, int) and threshold < 3:
        path = (*engine.container_path, "livenessProbe", "failureThreshold")
        message = f"the liveness probe restarts the engine after {threshold} failures"
        yield Problem(engine.manifest, path, message, None, (Edit(path, 3),))


@rule(
    "SD408",
    "rollout-deadline",
    Severity.warning,
    reason="A Deployment whose new pod is not Ready within progressDeadlineSeconds, 600 by default, counts as failed: "
    "pipelines stop and roll back while the weights still load.",
    fix="progressDeadlineSeconds above the time that the weights need",
    source="https://kubernetes.io/docs/concepts/workloads/controllers/deployment/#progress-deadline-seconds",
    bad="""
apiVersion: apps/v1
kind: Deployment
metadata: {name: engine}
spec:
  strategy: {type: Recreate}
  template:
    spec:
      containers:
        - name: engine
          image: vllm/vllm-openai:v0.32.0
          args: [meta-llama/Llama-3.1-70B-Instruct, --tensor-parallel-size=4]
          readinessProbe: {httpGet: {path: /health, port: 8000}}
          volumeMounts: [{name: shm, mountPath: /dev/shm}]
      volumes: [{name: shm, emptyDir: {medium: Memory, sizeLimit: 16Gi}}]
""",
    good="""
apiVersion: apps/v1
kind: Deployment
metadata: {name: engine}
spec:
  strategy: {type: Recreate}
  progressDeadlineSeconds: 1800
  template:
    spec:
      containers:
        - name: engine
          image: vllm/vllm-openai:v0.32.0
          args: [meta-llama/Llama-3.1-70B-Instruct, --tensor-parallel-size=4]
          readinessProbe: {httpGet: {path: /health, port: 8000}}
          volumeMounts: [{name: shm, mountPath: /dev/shm}]
      volumes: [{name: shm, emptyDir: {medium: Memory, sizeLimit: 16Gi}}]
""",
)
@each_engine
def rollout_deadline(engine: EngineWorkload) -> Iterator[Problem]:
    deadline = engine.manifest.get("spec.progressDeadlineSeconds")
    deadline = deadline if isinstance(deadline, int) else 600
    needed = need(engine)
    if engine.manifest.kind == "Deployment" and needed and needed[0] > deadline:
        message = f"a rollout fails after {deadline} s, and {needed[1]}"
        yield Problem(engine.manifest, ("spec", "progressDeadlineSeconds"), message)
