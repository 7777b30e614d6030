"""SD40x: probes against the time that the weights need."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from specdec.errors import SpecdecError
from specdec.manifests import EngineWorkload
from specdec.objects import mapping, sequence
from specdec.quantities import gib
from specdec.rules.model import REMOVED, Edit, Problem, Severity, each_engine, rule

SOURCE = "https://kubernetes.io/docs/concepts/configuration/liveness-readiness-startup-probes/"
DOWNLOAD = 200e6  # bytes a second: a first start from a model hub or network storage
LONG_ENOUGH = 600  # seconds that nobody calls too short without knowing the weights
LOCAL_READ = 1e9  # bytes a second: from a local disk, where an init container has put the weights


def budget(probe: dict[str, Any]) -> int:
    """Seconds until this probe has the container restarted, with Kubernetes' defaults for what is not given."""

    def number(key: str, default: int) -> int:
        value = probe.get(key)
        return value if isinstance(value, int) and not isinstance(value, bool) else default

    return number("initialDelaySeconds", 0) + number("periodSeconds", 10) * number("failureThreshold", 3)


def weights(engine: EngineWorkload) -> int | None:
    """Bytes of the target's and the draft's checkpoints, None when the target is not among the known models."""
    from specdec import facts

    try:
        known = facts.models()
    except SpecdecError:
        return None
    draft = engine.args.speculative.model if engine.args.speculative else None
    sizes = [mapping(known.get(name)).get("checkpointBytes") for name in (engine.args.model, draft) if name]
    if not sizes or not isinstance(sizes[0], int):
        return None
    return sum(size for size in sizes if isinstance(size, int))


def need(engine: EngineWorkload) -> tuple[float, str] | None:
    """Seconds to have the weights, and how that was reckoned; None when the models are unknown."""
    size = weights(engine)
    if size is None:
        return None
    fetched = bool(sequence(engine.pod_spec.get("initContainers")))
    rate = LOCAL_READ if fetched else DOWNLOAD
    return size / rate, f"{gib(size)} of weights take {size / rate:.0f} s at {rate / 1e6:.0f} MB/s"


def restarts_pods(engine: EngineWorkload) -> bool:
    """KServe brings probes of its own, and a Job serves nobody."""
    return engine.manifest.kind in ("Deployment", "StatefulSet", "DaemonSet", "LeaderWorkerSet", "Pod", "Rollout")


@rule(
    "SD401",
    "liveness-before-load",
    Severity.error,
    reason="Without a startup probe the liveness probe runs while the weights load. When they take longer than its "
    "delay and failures allow, the kubelet kills the container, and the next one starts to load from the beginning.",
    fix="add a startupProbe on /health whose failureThreshold x periodSeconds covers the load, drop "
    "initialDelaySeconds",
    source=SOURCE,
    bad="""
containers:
  - startupProbe: null
    livenessProbe: {httpGet: {path: /health, port: 8000}, initialDelaySeconds: 120, periodSeconds: 10}
""",
    good="""
containers:
  - startupProbe: {httpGet: {path: /health, port: 8000}, periodSeconds: 10, failureThreshold: 180}
    livenessProbe: {httpGet: {path: /health, port: 8000}, periodSeconds: 10}
""",
)
@each_engine
def liveness_before_load(engine: EngineWorkload) -> Iterator[Problem]:
    liveness = mapping(engine.container.get("livenessProbe"))
    if not liveness or engine.container.get("startupProbe"):
        return
    seconds, reckoned = need(engine) or (None, "how long the weights load is not known")
    if (seconds is None and budget(liveness) < LONG_ENOUGH) or (seconds or 0) > budget(liveness):
        message = f"no startupProbe: the liveness probe restarts the engine after {budget(liveness)} s, and {reckoned}"
        yield Problem(engine.manifest, (*engine.container_path, "livenessProbe"), message)


@rule(
    "SD402",
    "startup-budget",
    Severity.warning,
    reason="The startup probe gives up before the weights are there, so a first start never ends.",
    fix="failureThreshold = seconds to load x 1.5 / periodSeconds; or fetch the weights in an init container",
    source=SOURCE,
    bad="""
containers:
  - args: [meta-llama/Llama-3.3-70B-Instruct, --tensor-parallel-size, "1", --shutdown-timeout, "60"]
    startupProbe: {httpGet: {path: /health, port: 8000}, periodSeconds: 10, failureThreshold: 30}
""",
    good="""
containers:
  - args: [meta-llama/Llama-3.3-70B-Instruct, --tensor-parallel-size, "1", --shutdown-timeout, "60"]
    startupProbe: {httpGet: {path: /health, port: 8000}, periodSeconds: 10, failureThreshold: 110}
""",
)
@each_engine
def startup_budget(engine: EngineWorkload) -> Iterator[Problem]:
    startup = mapping(engine.container.get("startupProbe"))
    needed = need(engine)
    if startup and needed and needed[0] > budget(startup):
        message = f"the startup probe gives up after {budget(startup)} s, and {needed[1]}"
        yield Problem(engine.manifest, (*engine.container_path, "startupProbe"), message)


@rule(
    "SD403",
    "no-readiness-probe",
    Severity.error,
    reason="A container without a readiness probe is Ready as soon as its process runs, minutes before the engine "
    "answers: the Service sends it requests, and a rolling update takes the old pod away.",
    fix="readinessProbe: {httpGet: {path: /health, port: http}}",
    source=SOURCE,
    bad="""
containers:
  - readinessProbe: null
""",
    good="""
containers:
  - readinessProbe: {httpGet: {path: /health, port: 8000}}
""",
)
@each_engine
def no_readiness_probe(engine: EngineWorkload) -> Iterator[Problem]:
    if restarts_pods(engine) and engine.manifest.kind != "Pod" and not engine.container.get("readinessProbe"):
        yield Problem(engine.manifest, engine.container_path, f"{engine.name} has no readiness probe")


# Pages of the API server that do not ask the engine (vllm/entrypoints/openai, vllm/entrypoints/serve).
WITHOUT_ENGINE = ("/v1/models", "/version", "/metrics", "/docs", "/openapi.json", "/server_info")


@rule(
    "SD404",
    "liveness-by-port",
    Severity.warning,
    reason="The API server's port stays open when the engine's process behind it has died, and so do its process and "
    "pages that need no engine, /v1/models and /metrics among them; /health then answers 503. A probe of anything else "
    "leaves a dead engine in place.",
    fix="livenessProbe: {httpGet: {path: /health, port: http}}",
    source="vllm-project/vllm#40756; vllm/entrypoints/serve/instrumentator/health.py",
    bad="""
containers:
  - livenessProbe: {httpGet: null, tcpSocket: {port: 8000}}
""",
    good="""
containers:
  - livenessProbe: {httpGet: {path: /health, port: 8000}}
""",
)
@each_engine
def liveness_by_port(engine: EngineWorkload) -> Iterator[Problem]:
    if mapping(engine.container.get("livenessProbe")).get("tcpSocket"):
        path = (*engine.container_path, "livenessProbe", "tcpSocket")
        port = engine.container["livenessProbe"]["tcpSocket"].get("port", 8000)
        edits = (Edit(path, REMOVED), Edit((*path[:-1], "httpGet"), {"path": "/health", "port": port}))
        yield Problem(engine.manifest, path, "the liveness probe asks the port, not the engine", None, edits)
        return
    probe = mapping(engine.container.get("livenessProbe"))
    page, command = mapping(probe.get("httpGet")).get("path"), mapping(probe.get("exec")).get("command")
    path = (*engine.container_path, "livenessProbe")
    if str(page).rstrip("/").partition("?")[0] in WITHOUT_ENGINE:
        message = f"the liveness probe asks {page}, which answers without an engine"
        yield Problem(engine.manifest, (*path, "httpGet", "path"), message)
    words = " ".join(map(str, sequence(command)))
    if words and not re.search(r"health|generate|completions|localhost|127\.0\.0\.1|\.(py|sh)\b", words):
        message = f"the liveness probe runs {words[:40]!r}, which does not ask the engine"
        yield Problem(engine.manifest, (*path, "exec", "command"), message)
