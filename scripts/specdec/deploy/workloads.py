"""The pods that a set of manifests will make: their specification, how many, what they ask for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from specdec.manifests import Manifest, mapping, pod_specs, sequence

Resources = dict[str, Decimal]

# Kinds whose pods are there to stay: what a deploy waits for.
LASTING = ("StatefulSet", "Deployment", "DaemonSet")


@dataclass(frozen=True)
class PodTemplate:
    """`count` pods of one workload. `where` names the workload for people."""

    manifest: Manifest
    spec: dict[str, Any]
    metadata: dict[str, Any]
    count: int

    @property
    def where(self) -> str:
        return f"{self.manifest.kind} {self.manifest.name}"

    @property
    def requests(self) -> Resources:
        return pod_resources(self.spec, "requests")

    @property
    def limits(self) -> Resources:
        return pod_resources(self.spec, "limits")


def is_test(manifest: Manifest) -> bool:
    """Whether it is a hook of `helm test`, which no deploy makes."""
    hooks = str(manifest.annotations.get("helm.sh/hook") or "")
    return bool(hooks) and all(hook.strip().startswith("test") for hook in hooks.split(","))


def applied(manifests: Iterable[Manifest]) -> list[Manifest]:
    """The manifests that a deploy applies: all but tests."""
    return [manifest for manifest in manifests if not is_test(manifest)]


def pod_templates(manifests: Iterable[Manifest]) -> list[PodTemplate]:
    """The pods of every workload. A missing `replicas` is one, as Kubernetes has it."""
    return [template for manifest in applied(manifests) for template in _templates(manifest)]


def _templates(manifest: Manifest) -> Iterator[PodTemplate]:
    for path, spec in pod_specs(manifest):
        replicas = manifest.get("spec.replicas")
        count = replicas if isinstance(replicas, int) else 1
        metadata = mapping(manifest.get((*path[:-1], "metadata"))) if len(path) > 1 else {}
        yield PodTemplate(manifest, spec, metadata, count)


def containers(spec: dict[str, Any]) -> list[dict[str, Any]]:
    """Init containers and containers of a pod."""
    both = [*sequence(spec.get("initContainers")), *sequence(spec.get("containers"))]
    return [container for container in both if isinstance(container, dict)]


def quantity(value: Any) -> Decimal:
    """A Kubernetes quantity as a number: "500m" is 0.5, "2Gi" is 2147483648."""
    from kubernetes.utils.quantity import parse_quantity

    return Decimal(parse_quantity(value))


def pod_resources(spec: dict[str, Any], part: str) -> Resources:
    """What the scheduler counts for a pod: the sum of its containers and sidecars, or its largest init container.

    A request that is not there is the limit's amount.
    https://kubernetes.io/docs/concepts/workloads/pods/init-containers/#resource-sharing-within-containers
    """
    running: Resources = {}
    largest: Resources = {}
    for container in sequence(spec.get("initContainers")):
        needs = _container_resources(container, part)
        if container.get("restartPolicy") == "Always":
            running = needs = add(running, needs)
        else:
            needs = add(running, needs)
        largest = _maximum(largest, needs)
    for container in sequence(spec.get("containers")):
        running = add(running, _container_resources(container, part))
    overhead = {name: quantity(amount) for name, amount in mapping(spec.get("overhead")).items()}
    return _maximum(add(running, overhead), largest)


def _container_resources(container: dict[str, Any], part: str) -> Resources:
    resources = mapping(container.get("resources"))
    amounts = mapping(resources.get(part))
    if part == "requests":
        amounts = {**mapping(resources.get("limits")), **amounts}
    return {name: quantity(amount) for name, amount in amounts.items()}


def add(first: Resources, second: Resources) -> Resources:
    """Two amounts of each resource, together."""
    zero = Decimal(0)
    return {name: first.get(name, zero) + second.get(name, zero) for name in {*first, *second}}


def _maximum(first: Resources, second: Resources) -> Resources:
    zero = Decimal(0)
    return {name: max(first.get(name, zero), second.get(name, zero)) for name in {*first, *second}}


def total(templates: Sequence[PodTemplate], part: str) -> Resources:
    """What all pods ask for together, and their number under "pods"."""
    summed: Resources = {}
    for template in templates:
        pods = pod_resources(template.spec, part) | {"pods": Decimal(1)}
        summed = add(summed, {name: amount * template.count for name, amount in pods.items()})
    return summed


def human(resource: str, amount: Decimal) -> str:
    """An amount for people: GiB for bytes, a plain number for the rest."""
    if resource.split(".")[-1] in ("memory", "ephemeral-storage", "storage"):
        return f"{float(amount) / 2**30:.1f}Gi"
    return f"{amount.normalize():f}"
