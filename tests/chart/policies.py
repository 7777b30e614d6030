"""What NetworkPolicies allow between the pods of a rendering: Kubernetes' own semantics, over rendered labels.

A pod that no policy of a direction selects is open in it; policies of a direction add up; no peers in a rule mean all.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from ipaddress import ip_address, ip_network
from typing import Any

from .conftest import Rendering

NAME = "kubernetes.io/metadata.name"


@dataclass(frozen=True)
class End:
    """A pod by its labels and namespace, or an address outside the cluster."""

    labels: dict[str, str] = field(default_factory=dict)
    namespace: str = "ai-inference"
    address: str = ""


def selects(selector: dict[str, Any], labels: dict[str, str]) -> bool:
    for key, value in selector.get("matchLabels", {}).items():
        if labels.get(key) != value:
            return False
    for term in selector.get("matchExpressions", []):
        assert term["operator"] == "In", "an operator that this reading does not know"
        if labels.get(term["key"]) not in term["values"]:
            return False
    return True


def is_peer(peer: dict[str, Any], end: End, home: str) -> bool:
    if "ipBlock" in peer:
        block = peer["ipBlock"]
        if not end.address or ip_address(end.address) not in ip_network(block["cidr"]):
            return False
        return not any(ip_address(end.address) in ip_network(part) for part in block.get("except", []))
    if end.address:
        return False
    if "namespaceSelector" in peer:
        if not selects(peer["namespaceSelector"], {NAME: end.namespace}):
            return False
    elif end.namespace != home:
        return False
    return selects(peer.get("podSelector", {}), end.labels)


def allowed(rendering: Rendering, direction: str, pod: End, other: End, port: int, protocol: str = "TCP") -> bool:
    """Whether the policies let `pod` talk in the direction, Ingress (from other) or Egress (to other)."""
    side, key = ("from", "ingress") if direction == "Ingress" else ("to", "egress")
    governed = False
    for policy in rendering.all("NetworkPolicy"):
        spec, home = policy["spec"], policy["metadata"]["namespace"]
        if (
            direction not in spec["policyTypes"]
            or pod.namespace != home
            or not selects(spec["podSelector"], pod.labels)
        ):
            continue
        governed = True
        for rule in spec.get(key, []):
            ports = rule.get("ports")
            if ports and not any(p.get("protocol", "TCP") == protocol and p["port"] == port for p in ports):
                continue
            if not rule.get(side) or any(is_peer(peer, other, home) for peer in rule[side]):
                return True
    return not governed


def reaches(rendering: Rendering, source: End, target: End, port: int, protocol: str = "TCP") -> bool:
    """Whether a connection passes both ends' policies."""
    out = bool(source.address) or allowed(rendering, "Egress", source, target, port, protocol)
    return out and (bool(target.address) or allowed(rendering, "Ingress", target, source, port, protocol))


def pods(rendering: Rendering) -> Iterator[tuple[str, End]]:
    """Every pod of the release, by the name of what makes it."""
    for kind in ("StatefulSet", "Deployment", "DaemonSet", "Job"):
        for manifest in rendering.all(kind):
            yield manifest["metadata"]["name"], End(manifest["spec"]["template"]["metadata"]["labels"])
    for manifest in rendering.all("Pod"):
        yield manifest["metadata"]["name"], End(manifest["metadata"]["labels"])
    for manifest in rendering.all("InferenceService"):
        yield manifest["metadata"]["name"], End(manifest["spec"]["predictor"]["labels"])
    for manifest in rendering.all("LLMInferenceService"):
        yield manifest["metadata"]["name"], End(manifest["spec"]["labels"])
