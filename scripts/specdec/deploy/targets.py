"""Whom to ask in a release: its routers, its engines, their pods' counters; found in the manifests themselves."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from specdec.deploy.cluster import Cluster
from specdec.deploy.endpoint import EndpointError
from specdec.deploy.metrics import Counters, parse
from specdec.errors import SpecdecError
from specdec.manifests import ANNOTATION, EngineWorkload, Manifest, engines, mapping, sequence

COMPONENT = "app.kubernetes.io/component"
# Labels of the chart: the router's entry, and on an engine's pods the entry that leads to them, or "true".
ENTRY, ROUTED = ANNOTATION + "router", ANNOTATION + "routed"
BASELINE = "-baseline"
# The Service that KServe makes for an object, and its port.
KSERVE = {"InferenceService": ("{}-predictor", 80), "LLMInferenceService": ("{}-kserve-workload-svc", 8000)}


@dataclass(frozen=True)
class Engine:
    """One engine of a release and the Service in front of it. `port` is the Service's, `pod_port` the container's."""

    workload: EngineWorkload
    service: str
    port: int
    pod_port: int
    selector: dict[str, str]

    @property
    def name(self) -> str:
        return self.workload.name

    @property
    def model(self) -> str:
        """The name that clients ask for."""
        args = self.workload.args
        return (args.served_model_names or [args.model or ""])[0]

    @property
    def speculates(self) -> bool:
        return self.workload.args.speculative is not None

    def counters(self, cluster: Cluster) -> Counters:
        """Summed over the engine's pods. Raises EndpointError where a pod that serves does not answer."""
        pods = [
            pod["metadata"]["name"] for pod in cluster.pods(self.selector) if "deletionTimestamp" not in pod["metadata"]
        ]
        if not pods:
            raise EndpointError(f"engine {self.name} has no pod to read counters of", code="no-pods")

        def read(pod: str) -> Counters:
            return parse(cluster.pod(pod, self.pod_port).get("/metrics").text)

        with ThreadPoolExecutor(max_workers=min(8, len(pods))) as pool:
            return sum(pool.map(read, pods), Counters())


@dataclass(frozen=True)
class Router:
    """The Service of a router, and the entry whose engines it finds; empty for one router in front of all."""

    service: str
    port: int
    entry: str = ""

    def behind(self, engines: Sequence[Engine]) -> list[Engine]:
        """The engines that it leads to: those whose pods name it; where none names any, those of the first's model."""
        told = {engine.name: _label(engine, ROUTED) for engine in engines}
        if not any(told.values()):
            return [engine for engine in engines if engine.model == engines[0].model]
        return [engine for engine in engines if told[engine.name] == (self.entry or "true")]


@dataclass(frozen=True)
class Release:
    """What stands in a release's manifests, for those who talk to it. `baselines` by the name of their engine."""

    engines: list[Engine]
    baselines: dict[str, Engine]
    routers: list[Router]

    @property
    def router(self) -> tuple[str, int] | None:
        """Service and port of the first router."""
        return (self.routers[0].service, self.routers[0].port) if self.routers else None

    @property
    def pair(self) -> tuple[Engine, Engine] | None:
        """The first engine that has a baseline, with it."""
        return next(((one, self.baselines[one.name]) for one in self.engines if one.name in self.baselines), None)


def of(manifests: Sequence[Manifest]) -> Release:
    """Raises SpecdecError where the manifests hold no engine, or one without a Service."""
    services = [manifest for manifest in manifests if manifest.kind == "Service"]
    found = [_engine(workload, services) for workload in engines(manifests)]
    baselines = {engine.name.removesuffix(BASELINE): engine for engine in found if engine.name.endswith(BASELINE)}
    serving = [engine for engine in found if engine not in baselines.values()]
    if not serving:
        raise SpecdecError("the manifests hold no vLLM engine", code="no-engine", fix="look at specdec render")
    routers = [
        Router(service.name, _port(service)[0], str(service.labels.get(ENTRY) or ""))
        for service in services
        if service.labels.get(COMPONENT) == "router" and not _headless(service)
    ]
    return Release(serving, baselines, routers)


def _label(engine: Engine, key: str) -> str | None:
    value = mapping(engine.workload.pod_metadata.get("labels")).get(key)
    return None if value is None else str(value)


def _headless(service: Manifest) -> bool:
    return bool(service.get("spec.clusterIP") == "None")


def _port(service: Manifest) -> tuple[int, int | str]:
    """(port, target port) of the Service's HTTP port: the one named http, else the first."""
    ports = sequence(service.get("spec.ports"))
    chosen = next((port for port in ports if port.get("name") == "http"), ports[0] if ports else {"port": 8000})
    return int(chosen["port"]), chosen.get("targetPort", chosen["port"])


def _engine(workload: EngineWorkload, services: Iterable[Manifest]) -> Engine:
    labels = mapping(workload.pod_metadata.get("labels"))
    for service in services:
        selector = {str(key): str(value) for key, value in mapping(service.get("spec.selector")).items()}
        if selector and selector.items() <= labels.items() and not _headless(service):
            port, target = _port(service)
            return Engine(workload, service.name, port, _pod_port(workload, target), selector)
    if workload.manifest.kind in KSERVE:
        name, port = KSERVE[workload.manifest.kind]
        keys = ("app.kubernetes.io/instance", COMPONENT, ANNOTATION + "engine")
        own = {key: str(labels[key]) for key in keys if key in labels}
        return Engine(workload, name.format(workload.manifest.name), port, _pod_port(workload, "http"), own)
    raise SpecdecError(f"no Service leads to engine {workload.name}", code="no-service",
                       fix="a Service whose selector matches its pods' labels")  # fmt: skip


def _pod_port(workload: EngineWorkload, target: int | str) -> int:
    if isinstance(target, int) or str(target).isdigit():
        return int(target)
    named = (port for port in sequence(workload.container.get("ports")) if port.get("name") == target)
    port: dict[str, Any] = next(named, {})
    return int(port.get("containerPort") or workload.args.port or 8000)


def draft_positions(workload: EngineWorkload) -> int | None:
    """max_position_embeddings of the draft or head by models.yaml, in tokens; None where it is unknown."""
    from specdec import facts

    speculative = workload.args.speculative
    if speculative is None or not speculative.model:
        return None
    try:
        config = mapping(mapping(facts.models().get(speculative.model)).get("config"))
    except SpecdecError:
        return None
    positions = config.get("max_position_embeddings")
    return int(positions) if positions else None
