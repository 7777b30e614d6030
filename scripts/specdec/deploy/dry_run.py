"""The API server's own opinion of the manifests: server-side apply and pod admission as dry runs, nothing stored."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from specdec.deploy.cluster import CORE, ApiError, Cluster
from specdec.deploy.problems import Problem, error
from specdec.deploy.workloads import PodTemplate, applied
from specdec.manifests import Manifest, mapping, sequence


def check(
    cluster: Cluster, manifests: Sequence[Manifest], templates: Sequence[PodTemplate], namespace_exists: bool
) -> list[Problem]:
    """An error for each object that the API server would refuse: its kind, a field, a right, an admission policy."""
    problems: list[Problem] = []
    kinds: dict[str, dict[str, Any]] = {}
    for manifest in applied(manifests):
        version, where = str(manifest.data.get("apiVersion")), f"{manifest.kind} {manifest.name}"
        if version not in kinds:
            kinds[version] = served(cluster, version)
        resource = kinds[version].get(manifest.kind)
        if resource is None:
            problems.append(
                error(
                    "kind",
                    where,
                    f"the cluster does not serve {version} {manifest.kind}",
                    "install what brings that kind (its CRDs), or turn the part of the chart off that uses it",
                )
            )
        elif namespace_exists or not resource["namespaced"]:
            problems += _apply(cluster, manifest, resource, where)
    if namespace_exists:
        own = {manifest.name for manifest in applied(manifests) if manifest.kind == "ServiceAccount"}
        for template in templates:
            problems += _admit(cluster, template, own)
    return problems


def served(cluster: Cluster, version: str) -> dict[str, Any]:
    """The kinds of an API version, by name, as the API server lists them."""
    found = cluster.get(group_path(version)) or {}
    return {resource["kind"]: resource for resource in found.get("resources") or [] if "/" not in resource["name"]}


def group_path(version: str) -> str:
    return f"/apis/{version}" if "/" in version else f"/api/{version}"


def _apply(cluster: Cluster, manifest: Manifest, resource: dict[str, Any], where: str) -> list[Problem]:
    base = group_path(str(manifest.data["apiVersion"]))
    namespace = f"/namespaces/{manifest.namespace or cluster.namespace}" if resource["namespaced"] else ""
    try:
        cluster.request(
            "PATCH",
            f"{base}{namespace}/{resource['name']}/{manifest.name}",
            params={"dryRun": "All", "fieldManager": "helm", "force": "true"},
            content=json.dumps(manifest.data),
            headers={"Content-Type": "application/apply-patch+yaml"},
        )
    except ApiError as refusal:
        if "exceeded quota" in refusal.message:
            return []
        return [error("refused", where, refusal.message, fix_for(refusal, manifest, cluster.namespace))]
    return []


def fix_for(refusal: ApiError, manifest: Manifest, namespace: str) -> str | None:
    if refusal.status == 403:
        return "a role for this user that allows it, or an exception from the policy named above"
    if manifest.kind == "StatefulSet" and "updates to statefulset spec" in refusal.message:
        delete = f"kubectl delete statefulset {manifest.name} -n {namespace} --cascade=orphan"
        return f"these fields cannot change: {delete}, then deploy"
    return None


def _admit(cluster: Cluster, template: PodTemplate, own_accounts: set[str]) -> list[Problem]:
    """A pod of the workload as the API server would take it: Pod Security, limits and webhooks look at pods alone."""
    spec = {**template.spec, "restartPolicy": template.spec.get("restartPolicy", "Always")}
    if spec.get("serviceAccountName") in own_accounts:
        spec["serviceAccountName"] = "default"
    claims = [
        {"name": claim["metadata"]["name"], "persistentVolumeClaim": {"claimName": claim["metadata"]["name"]}}
        for claim in sequence(template.manifest.get("spec.volumeClaimTemplates"))
    ]
    spec["volumes"] = [*sequence(spec.get("volumes")), *claims]
    metadata = {
        "generateName": "specdec-preflight-",
        "labels": mapping(template.metadata.get("labels")),
        "annotations": mapping(template.metadata.get("annotations")),
    }
    try:
        cluster.request(
            "POST",
            cluster.path(CORE, "pods"),
            params={"dryRun": "All"},
            json={"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec},
        )
    except ApiError as refusal:
        if "exceeded quota" in refusal.message or "serviceaccount" in refusal.message.lower():
            return []  # counted by the quota check, which knows the release's own pods; created with the release
        if refusal.status == 403 and "cannot create resource" in refusal.message:
            return []  # people need no right to pods: the workload's controller makes them
        message = refusal.message.replace("specdec-preflight-", "")
        return [error("pod-refused", template.where, f"its pods would be refused: {message}", pod_fix(message))]
    return []


def pod_fix(message: str) -> str | None:
    if "PodSecurity" in message:
        return "a modelCache that the namespace's Pod Security level allows (emptyDir), or a namespace of a lower level"
    return None
