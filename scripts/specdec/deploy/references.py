"""Objects that manifests name and do not bring: Secrets with their keys, claims, storage and other classes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from specdec.deploy.cluster import CORE, ApiError, Cluster, Object
from specdec.deploy.problems import Problem, error
from specdec.deploy.workloads import PodTemplate, applied, containers
from specdec.manifests import Manifest, mapping, sequence

DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"


def check(cluster: Cluster, manifests: Sequence[Manifest], templates: Sequence[PodTemplate]) -> list[Problem]:
    """One error for each object or key that is missing, however many pods name it."""
    lookup = Lookup(cluster, manifests)
    found: list[Problem] = []
    for template in templates:
        found += _keyed(lookup, template)
        found += _claims(lookup, template)
        found += _classes(lookup, template)
    found += _storage(lookup, manifests)
    return list({(problem.code, problem.message): problem for problem in found}.values())


class Lookup:
    """Objects by kind and name: from the manifests themselves, else from the cluster."""

    def __init__(self, cluster: Cluster, manifests: Sequence[Manifest]) -> None:
        self.cluster = cluster
        self.own = {(manifest.kind, manifest.name): manifest.data for manifest in applied(manifests)}
        self.seen: dict[str, Object | None] = {}
        self.forbidden: set[str] = set()

    def get(self, kind: str, path: str, name: str) -> Object | None:
        """The object, or None. One that this user may not read counts as there."""
        if (kind, name) in self.own:
            return self.own[kind, name]
        if path not in self.seen:
            try:
                self.seen[path] = self.cluster.get(path)
            except ApiError as refusal:
                if refusal.status != 403:
                    raise
                self.forbidden.add(path)
                self.seen[path] = {}
        return self.seen[path]

    def namespaced(self, kind: str, plural: str, name: str) -> Object | None:
        return self.get(kind, self.cluster.path(CORE, plural, name), name)


def keys_used(template: PodTemplate) -> Iterator[tuple[str, str, str | None]]:
    """(kind, name, key) of every Secret and ConfigMap that a pod cannot start without; key None: any."""
    kinds = (("Secret", "secretKeyRef", "secretRef"), ("ConfigMap", "configMapKeyRef", "configMapRef"))
    for container in containers(template.spec):
        for kind, key_ref, whole_ref in kinds:
            for variable in sequence(container.get("env")):
                reference = mapping(mapping(variable.get("valueFrom")).get(key_ref))
                if reference and not reference.get("optional"):
                    yield kind, reference["name"], reference["key"]
            for source in sequence(container.get("envFrom")):
                reference = mapping(source.get(whole_ref))
                if reference and not reference.get("optional"):
                    yield kind, reference["name"], None
    for volume in sequence(template.spec.get("volumes")):
        parts = [volume, *sequence(mapping(volume.get("projected")).get("sources"))]
        for kind, field in (("Secret", "secret"), ("ConfigMap", "configMap")):
            for part in parts:
                source = mapping(part.get(field))
                if source and not source.get("optional"):
                    name = source.get("secretName") or source.get("name")
                    items = sequence(source.get("items"))
                    yield from ((kind, str(name), item["key"]) for item in items)
                    if not items:
                        yield kind, str(name), None


def _keyed(lookup: Lookup, template: PodTemplate) -> Iterator[Problem]:
    for kind, name, key in keys_used(template):
        path = lookup.cluster.path(CORE, kind.lower() + "s", name)
        found = lookup.get(kind, path, name)
        space = lookup.cluster.namespace
        create = f"kubectl create {'secret generic' if kind == 'Secret' else 'configmap'} {name} -n {space}"
        if found is None:
            yield error(
                kind.lower(),
                template.where,
                f"{kind} {name} does not exist in {space}",
                f"{create} --from-file={key or 'KEY'}=FILE",
            )
        elif key and path not in lookup.forbidden:
            have = sorted(
                {*mapping(found.get("data")), *mapping(found.get("stringData")), *mapping(found.get("binaryData"))}
            )
            if key not in have:
                yield error(
                    kind.lower(),
                    template.where,
                    f"{kind} {name} has no key {key!r}; it has {', '.join(have) or 'none'}",
                    "put the value under that key, or name the right key in the values",
                )


def _claims(lookup: Lookup, template: PodTemplate) -> Iterator[Problem]:
    space = lookup.cluster.namespace
    for volume in sequence(template.spec.get("volumes")):
        name = mapping(volume.get("persistentVolumeClaim")).get("claimName")
        if not name:
            continue
        claim = lookup.namespaced("PersistentVolumeClaim", "persistentvolumeclaims", name)
        if claim is None:
            yield error(
                "claim",
                template.where,
                f"PersistentVolumeClaim {name} does not exist in {space}",
                "create it first, or name one that exists in modelCache",
            )
        elif mapping(claim.get("status")).get("phase") == "Lost":
            yield error(
                "claim",
                template.where,
                f"PersistentVolumeClaim {name} has lost its volume",
                "delete it and create it anew",
            )


def _classes(lookup: Lookup, template: PodTemplate) -> Iterator[Problem]:
    kinds = (
        ("PriorityClass", "priorityClassName", "/apis/scheduling.k8s.io/v1/priorityclasses/"),
        ("RuntimeClass", "runtimeClassName", "/apis/node.k8s.io/v1/runtimeclasses/"),
    )
    for kind, field, path in kinds:
        name = template.spec.get(field)
        if name and lookup.get(kind, path + name, name) is None:
            yield error(
                kind.lower(), template.where, f"{kind} {name} does not exist", f"create it, or leave {field} out"
            )
    space = lookup.cluster.namespace
    account = template.spec.get("serviceAccountName")
    if account and lookup.namespaced("ServiceAccount", "serviceaccounts", account) is None:
        yield error(
            "serviceaccount",
            template.where,
            f"ServiceAccount {account} does not exist in {space}",
            "create it, or let the chart",
        )


def claims_made(manifests: Sequence[Manifest]) -> Iterator[tuple[str, dict[str, Any]]]:
    """(where, claim specification) of every PersistentVolumeClaim that the manifests make."""
    for manifest in applied(manifests):
        where = f"{manifest.kind} {manifest.name}"
        if manifest.kind == "PersistentVolumeClaim":
            yield where, mapping(manifest.get("spec"))
        for template in sequence(manifest.get("spec.volumeClaimTemplates")):
            yield where, mapping(template.get("spec"))
        for volume in sequence(manifest.get("spec.template.spec.volumes")):
            claim = mapping(mapping(volume.get("ephemeral")).get("volumeClaimTemplate"))
            if claim:
                yield where, mapping(claim.get("spec"))


def _storage(lookup: Lookup, manifests: Sequence[Manifest]) -> Iterator[Problem]:
    base = "/apis/storage.k8s.io/v1/storageclasses"
    for where, spec in claims_made(manifests):
        name = spec.get("storageClassName")
        if name == "" or spec.get("volumeName"):
            continue
        if name:
            if lookup.get("StorageClass", f"{base}/{name}", name) is None:
                have = ", ".join(item["metadata"]["name"] for item in lookup.cluster.items(base)) or "none"
                yield error(
                    "storageclass",
                    where,
                    f"StorageClass {name} does not exist; there is: {have}",
                    "name one of these in modelCache, or create it",
                )
            continue
        defaults = [
            item
            for item in lookup.cluster.items(base)
            if mapping(item["metadata"].get("annotations")).get(DEFAULT_CLASS) == "true"
        ]
        if not defaults:
            yield error(
                "storageclass",
                where,
                "its claim names no StorageClass, the cluster has no default",
                "name one in modelCache, or mark one as the default",
            )
