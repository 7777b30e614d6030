"""Everything that is checked before anything is applied; all that is wrong is said at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal

from specdec.deploy import dry_run, nodes, references
from specdec.deploy.cluster import CORE, ApiError, Cluster
from specdec.deploy.problems import Problem, error
from specdec.deploy.workloads import PodTemplate, Resources, add, human, pod_resources, pod_templates, quantity, total
from specdec.manifests import Manifest, mapping


@dataclass(frozen=True)
class Result:
    """`namespace_exists`: else the deploy creates it, as it was told to."""

    problems: list[Problem]
    namespace_exists: bool

    @property
    def errors(self) -> list[Problem]:
        return [problem for problem in self.problems if problem.level == "error"]


def run(
    cluster: Cluster,
    manifests: Sequence[Manifest],
    release: str,
    *,
    create_namespace: bool = False,
    findings: Sequence[Problem] = (),
    report: Callable[[str], None] = lambda _: None,
) -> Result:
    """Checks manifests against the cluster and changes nothing. `findings`: what the rules on manifests found already.

    Raises Unreachable where the cluster does not answer.
    """
    report("is the cluster there")
    cluster.get("/version")
    templates = pod_templates(manifests)
    problems = list(findings)
    exists = namespace(cluster, problems, create_namespace)
    report("what the manifests name")
    problems += references.check(cluster, manifests, templates)
    report("nodes")
    problems += nodes.check(cluster, templates, release)
    report("quota")
    problems += quota(cluster, templates, release)
    report("what the API server says")
    problems += dry_run.check(cluster, manifests, templates, exists)
    return Result(list(dict.fromkeys(problems)), exists)


def namespace(cluster: Cluster, problems: list[Problem], create: bool) -> bool:
    """Whether the namespace exists. A missing one is an error unless it is to be created."""
    name = cluster.namespace
    try:
        found = cluster.get(f"/api/v1/namespaces/{name}")
    except ApiError as refusal:
        if refusal.status == 403:  # a user of one namespace may not read namespaces
            return True
        raise
    if found and mapping(found.get("status")).get("phase") == "Terminating":
        problems.append(
            error(
                "namespace",
                f"namespace {name}",
                "it is being deleted",
                "wait until it is gone, then deploy with --create-namespace",
            )
        )
        return True
    if found is None and not create:
        problems.append(
            error(
                "namespace",
                f"namespace {name}",
                "it does not exist",
                "deploy with --create-namespace, or kubectl create namespace " + name,
            )
        )
    return found is not None


def quota(cluster: Cluster, templates: Sequence[PodTemplate], release: str) -> list[Problem]:
    """An error for each quota that the pods would pass; the release's own pods of now are not counted."""
    problems: list[Problem] = []
    try:
        quotas = [item for item in cluster.items(cluster.path(CORE, "resourcequotas")) if not _scoped(item)]
        mine = cluster.pods({"app.kubernetes.io/instance": release}) if quotas else []
    except ApiError as refusal:
        if refusal.status == 403:
            return []
        raise
    parts = ("requests", "limits")
    wanted = {part: total(templates, part) for part in parts}
    present = {part: _sum(mine, part) for part in parts}
    for item in quotas:
        status = mapping(item.get("status"))
        for key, hard in mapping(status.get("hard")).items():
            prefix, _, rest = key.partition(".")
            part = prefix if prefix in parts and rest else "requests"
            resource = rest if prefix in parts and rest else key
            need = wanted[part].get(resource, Decimal(0))
            if not need or (resource == key and resource not in ("pods", "cpu", "memory")):
                continue
            others = quantity(mapping(status.get("used")).get(key, 0)) - present[part].get(resource, Decimal(0))
            if others + need > quantity(hard):
                problems.append(
                    error(
                        "quota",
                        f"ResourceQuota {item['metadata']['name']}",
                        f"{key}: {human(resource, need)} needed, {human(resource, quantity(hard) - others)} left "
                        f"of {human(resource, quantity(hard))}",
                        "raise the quota, or set fewer replicas",
                    )
                )
    return problems


def _scoped(item: dict[str, object]) -> bool:
    spec = mapping(item.get("spec"))
    return bool(spec.get("scopes") or spec.get("scopeSelector"))


def _sum(pods: Sequence[dict[str, object]], part: str) -> Resources:
    summed: Resources = {"pods": Decimal(len(pods))}
    for pod in pods:
        summed = add(summed, pod_resources(mapping(pod.get("spec")), part))
    return summed
