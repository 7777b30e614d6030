"""Does the cluster have a node for each pod: labels, taints, GPUs, memory; and room on it now?"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any

from specdec.deploy.cluster import Cluster, Object
from specdec.deploy.problems import Problem, asked
from specdec.deploy.workloads import PodTemplate, Resources, human, pod_resources, quantity
from specdec.manifests import mapping, sequence


def check(cluster: Cluster, templates: Sequence[PodTemplate], release: str) -> list[Problem]:
    """An error for a pod that no node admits and no autoscaler may help; a warning where one may, or room is short."""
    problems: list[Problem] = []
    nodes = asked(cluster, "/api/v1/nodes", "nodes", problems)
    if nodes is None:
        return problems
    scaler = autoscaler(cluster)
    homeless = []
    for template in templates:
        found = [obstacles(node, template) for node in nodes]
        if template.count == 0 or any(not reasons for reasons in found):
            continue
        homeless.append(template)
        problems.append(
            Problem(
                level="warning" if scaler else "error",
                code="node",
                where=template.where,
                message=f"no node admits its pods: {summary(found)}",
                fix=f"{scaler} has to add one" if scaler else fix_for(template, found),
            )
        )
    rest = [template for template in templates if template not in homeless]
    return problems + _room(cluster, nodes, rest, release, scaler)


def obstacles(node: Object, template: PodTemplate) -> list[str]:
    """Why this node, were it empty, does not admit the pod. None: it does."""
    labels = mapping(node["metadata"].get("labels"))
    return [
        *(
            f"label {key}={value} is missing"
            for key, value in selector_of(template.spec).items()
            if labels.get(key) != value
        ),
        *_affinity(labels, node["metadata"]["name"], template.spec),
        *_taints(node, template.spec),
        *_amounts(allocatable(node), template.requests),
    ]


def selector_of(spec: dict[str, Any]) -> dict[str, str]:
    return {str(key): str(value) for key, value in mapping(spec.get("nodeSelector")).items()}


def allocatable(node: Object) -> Resources:
    return {name: quantity(amount) for name, amount in mapping(mapping(node.get("status")).get("allocatable")).items()}


def _amounts(available: Resources, requests: Resources) -> list[str]:
    return [
        f"{human(name, available.get(name, Decimal(0)))} of {name} where {human(name, amount)} is asked for"
        for name, amount in sorted(requests.items())
        if amount > available.get(name, Decimal(0))
    ]


def _affinity(labels: dict[str, Any], name: str, spec: dict[str, Any]) -> list[str]:
    required = mapping(
        mapping(mapping(spec.get("affinity")).get("nodeAffinity")).get("requiredDuringSchedulingIgnoredDuringExecution")
    )
    terms = sequence(required.get("nodeSelectorTerms"))
    if not required or any(
        all(_matches(labels, rule) for rule in sequence(term.get("matchExpressions")))
        and all(_matches({"metadata.name": name}, rule) for rule in sequence(term.get("matchFields")))
        for term in terms
    ):
        return []
    return ["its required node affinity does not match"]


def _matches(labels: dict[str, Any], rule: dict[str, Any]) -> bool:
    value, values = labels.get(rule["key"]), sequence(rule.get("values"))
    match rule.get("operator"):
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt":
            return value is not None and int(value) > int(values[0])
        case "Lt":
            return value is not None and int(value) < int(values[0])
    return False


# Taints that Kubernetes sets by itself, as what they say of the node.
CONDITIONS = {
    "node.kubernetes.io/not-ready": "it is not Ready",
    "node.kubernetes.io/unreachable": "it does not answer",
    "node.kubernetes.io/unschedulable": "it is cordoned",
    "node.kubernetes.io/memory-pressure": "its memory is nearly full",
    "node.kubernetes.io/disk-pressure": "its disk is nearly full",
    "node.kubernetes.io/pid-pressure": "it has too many processes",
}


def taint_text(taint: dict[str, Any]) -> str:
    value = f"={taint['value']}" if taint.get("value") else ""
    return f"taint {taint['key']}{value}:{taint['effect']} is not tolerated"


def _taints(node: Object, spec: dict[str, Any]) -> list[str]:
    tolerations = [mapping(toleration) for toleration in sequence(spec.get("tolerations"))]
    reasons = [
        CONDITIONS.get(taint["key"], taint_text(taint))
        for taint in sequence(mapping(node.get("spec")).get("taints"))
        if taint.get("effect") in ("NoSchedule", "NoExecute") and not any(tolerates(t, taint) for t in tolerations)
    ]
    if reasons:
        return reasons
    if mapping(node.get("spec")).get("unschedulable"):
        return ["it is cordoned"]
    conditions = {
        condition["type"]: condition["status"] for condition in sequence(mapping(node.get("status")).get("conditions"))
    }
    return [] if conditions.get("Ready", "True") == "True" else ["it is not Ready"]


def tolerates(toleration: dict[str, Any], taint: dict[str, Any]) -> bool:
    """https://kubernetes.io/docs/concepts/scheduling-eviction/taint-and-toleration/"""
    if toleration.get("effect") not in (None, "", taint.get("effect")):
        return False
    if toleration.get("operator", "Equal") == "Exists":
        return toleration.get("key") in (None, "", taint["key"])
    return toleration.get("key") == taint["key"] and (toleration.get("value") or "") == (taint.get("value") or "")


def summary(found: Iterable[list[str]]) -> str:
    """What keeps the pods off, counted over nodes: "2 nodes: label x=y is missing; 1 node: ..."."""
    found = list(found)
    if not found:
        return "the cluster has no node"
    counted = Counter(reason for reasons in found for reason in reasons)
    return "; ".join(f"{count} of {len(found)} nodes: {reason}" for reason, count in counted.most_common(6))


def fix_for(template: PodTemplate, found: Sequence[list[str]]) -> str:
    """By the node that comes nearest."""
    nearest = min(found, key=len, default=[])
    if len(nearest) == 1 and "not tolerated" in nearest[0]:
        return "tolerate that taint in the values, or take it off the node"
    if nearest and all(reason in CONDITIONS.values() for reason in nearest):
        return "kubectl describe node says why; bring it back"
    if len(nearest) == 1 and nearest[0].startswith("label "):
        return f"label the node ({nearest[0].split()[1]}), or set another accelerator in the values"
    wants = ", ".join(f"{human(name, amount)} {name}" for name, amount in sorted(template.requests.items()))
    labels = "".join(f", label {key}={value}" for key, value in selector_of(template.spec).items())
    return f"a node with {wants or 'room'}{labels}; or other resources in the values"


def autoscaler(cluster: Cluster) -> str | None:
    """What adds nodes here, by what it leaves in the cluster: the cluster autoscaler's status, or Karpenter's API."""
    from specdec.deploy.cluster import ApiError

    try:
        if cluster.get("/api/v1/namespaces/kube-system/configmaps/cluster-autoscaler-status"):
            return "the cluster autoscaler"
        if cluster.get("/apis/karpenter.sh"):
            return "Karpenter"
    except ApiError:
        return None
    return None


def _room(
    cluster: Cluster, nodes: Sequence[Object], templates: Sequence[PodTemplate], release: str, scaler: str | None
) -> list[Problem]:
    """Place every pod on what is free now, the release's own pods not counted: an upgrade replaces them."""
    problems: list[Problem] = []
    pods = asked(cluster, "/api/v1/pods", "pods of the cluster", problems)
    if pods is None:
        return []
    free = {node["metadata"]["name"]: allocatable(node) for node in nodes}
    users: dict[str, list[str]] = defaultdict(list)
    for pod in pods:
        metadata = pod["metadata"]
        mine = (
            metadata.get("namespace") == cluster.namespace
            and mapping(metadata.get("labels")).get("app.kubernetes.io/instance") == release
        )
        home = str(mapping(pod.get("spec")).get("nodeName"))
        if mine or home not in free or mapping(pod.get("status")).get("phase") in ("Succeeded", "Failed"):
            continue
        for name, amount in pod_resources(pod["spec"], "requests").items():
            free[home][name] = free[home].get(name, Decimal(0)) - amount
            if "gpu" in name and amount:
                users[home].append(f"{metadata.get('namespace')}/{metadata['name']} has {human(name, amount)} {name}")
    for template in sorted(templates, key=lambda one: -sum(v for k, v in one.requests.items() if "/" in k)):
        fitting = [node for node in nodes if not obstacles(node, template)]
        placed = 0
        for node in fitting:
            while placed < template.count and not _amounts(free[node["metadata"]["name"]], template.requests):
                left = free[node["metadata"]["name"]]
                for name, amount in template.requests.items():
                    left[name] = left.get(name, Decimal(0)) - amount
                placed += 1
        if placed < template.count:
            held = [line for node in fitting for line in users[node["metadata"]["name"]]]
            problems.append(
                Problem(
                    level="warning",
                    code="room",
                    where=template.where,
                    message=f"there is room for {placed} of its {template.count} pods now"
                    + (f" ({'; '.join(held[:4])})" if held else ""),
                    fix=f"{scaler} has to add nodes" if scaler else "free the rest, or set fewer replicas",
                )
            )
    return problems
