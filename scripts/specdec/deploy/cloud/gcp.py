"""Google Cloud before and after: credentials, project, APIs, rights, quota, zones, versions, name, state bucket."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import quote

from specdec import facts
from specdec.deploy.cloud.clouds import Findings, Remain, check_zones, counted
from specdec.deploy.cloud.failures import bucket_fix
from specdec.deploy.cloud.gcp_api import Api, Refused, errors
from specdec.deploy.cloud.target import Pool, Target
from specdec.deploy.problems import Problem

COMPUTE = "https://compute.googleapis.com/compute/v1/projects"
SERVICES = "https://serviceusage.googleapis.com/v1/projects"
STORAGE = "https://storage.googleapis.com/storage/v1/b"
PROJECTS = "https://cloudresourcemanager.googleapis.com/v1/projects"

# What terraform/gke calls.
APIS = ("cloudresourcemanager", "compute", "container", "iam", "secretmanager", "storage")
# What the account needs to do it, one right for each kind of thing that is made.
RIGHTS = (
    "container.clusters.create",
    "container.clusters.delete",
    "compute.networks.create",
    "compute.routers.create",
    "iam.serviceAccounts.create",
    "iam.serviceAccounts.actAs",
    "resourcemanager.projects.setIamPolicy",
)
# Metrics of Compute Engine's regional quotas: https://cloud.google.com/compute/resource-usage#gpu_quota
METRICS = {
    "nvidia-l4": "NVIDIA_L4_GPUS",
    "nvidia-a100-80gb": "NVIDIA_A100_80GB_GPUS",
    "nvidia-h100-80gb": "NVIDIA_H100_GPUS",
    "nvidia-h100-mega-80gb": "NVIDIA_H100_MEGA_GPUS",
    "nvidia-h200-141gb": "NVIDIA_H200_GPUS",
    "nvidia-b200": "NVIDIA_B200_GPUS",
}
# https://cloud.google.com/compute/docs/instances/provisioning-models: flex-start and queued nodes count as preemptible.
PREEMPTIBLE = ("spot", "flex_start", "queued")
# https://cloud.google.com/kubernetes-engine/docs/how-to/dws-flex-start-inference
FLEX_START_VERSION = (1, 32, 2)


class Google:
    """`session` and `clusters` stand for AuthorizedSession and ClusterManagerClient."""

    def __init__(self, target: Target, session: Any = None, clusters: Any = None) -> None:
        self.target, self._clusters = target, clusters
        self.api = Api(session)
        self._offers: dict[str, list[str] | None] = {}

    def check(self, report: Callable[[str], None]) -> list[Problem]:
        findings, project = Findings(self.target), f"project {self.target.project}"
        report("credentials")
        if not self.api.login(findings):
            return findings.problems
        report("project, APIs and rights")
        with findings.asking(project, *errors()):
            self._project(findings, project)
        if findings.fatal:
            return findings.problems
        with findings.asking(project, *errors()):
            self._apis(findings, project)
        with findings.asking(project, *errors()):
            self._rights(findings, project)
        report("the state's buckets")
        for root in ("gke", "platform"):
            with findings.asking(f"bucket of {root}", *errors()):
                self._bucket(findings, root)
        report("zones and quotas")
        with findings.asking(f"zones of {self.target.region}", *errors()):
            check_zones(findings, self.offers)
        with findings.asking(f"quotas of {self.target.region}", *errors()):
            self._quotas(findings)
        report("versions and the name")
        with findings.asking("GKE versions", *errors()):
            self._versions(findings)
        with findings.asking(f"cluster {self.target.name}", *errors()):
            self._name(findings)
        return list(dict.fromkeys(findings.problems))

    def _project(self, findings: Findings, where: str) -> None:
        file = f'{self.target.file}: project_id = "{self.target.project}"'
        try:
            found = self.api.get(f"{PROJECTS}/{self.target.project}")
        except Refused as refusal:
            if refusal.status not in (403, 404) or "SERVICE_DISABLED" in str(refusal):
                raise
            text = f"this account sees no project {self.target.project}: another project, or another account, is meant"
            findings.add("SD854", file, text, "gcloud projects list; gcloud auth application-default login as who may")
            findings.fatal = True
            return
        if found.get("lifecycleState", "ACTIVE") != "ACTIVE":
            findings.add("SD854", where, f"it is {found['lifecycleState']}", "a project that is active")
            findings.fatal = True

    def _apis(self, findings: Findings, where: str) -> None:
        names = "&".join(f"names=services/{name}.googleapis.com" for name in APIS)
        found = self.api.get(f"{SERVICES}/{self.target.project}/services:batchGet?{names}").get("services", [])
        on = {one["name"].rsplit("/", 1)[1].split(".")[0] for one in found if one.get("state") == "ENABLED"}
        if off := [name for name in APIS if name not in on]:
            names = " ".join(f"{name}.googleapis.com" for name in off)
            command = f"gcloud services enable {names} --project {self.target.project}"
            findings.add("SD855", where, f"APIs that are off: {', '.join(off)}", command)

    def _rights(self, findings: Findings, where: str) -> None:
        url = f"{PROJECTS}/{self.target.project}:testIamPermissions"
        held = self.api.ask("POST", url, json={"permissions": list(RIGHTS)}).get("permissions", [])
        if missing := [right for right in RIGHTS if right not in held]:
            fix = "roles container.admin, compute.networkAdmin, iam.serviceAccountAdmin and User, projectIamAdmin"
            findings.add("SD864", where, f"this account lacks {', '.join(missing)}", fix)

    def _bucket(self, findings: Findings, root: str) -> None:
        bucket = str(self.target.backend(root).get("bucket"))
        where = f"{self.target.backend_file(root)}: bucket {bucket}"
        try:
            found = self.api.get(f"{STORAGE}/{bucket}")
        except Refused as refusal:
            if refusal.status == 404:
                findings.add("SD851", where, "it does not exist", bucket_fix(self.target, root))
                return
            if refusal.status == 403 and "SERVICE_DISABLED" not in str(refusal):
                text = "this account may not read it (or another project owns that name)"
                findings.add("SD864", where, text, "roles/storage.objectAdmin on the bucket, or another bucket")
                return
            raise
        if not (found.get("versioning") or {}).get("enabled"):
            fix = f"gcloud storage buckets update gs://{bucket} --versioning"
            findings.add("SD852", where, "no versioning: a state that is overwritten is lost", fix)
        guard = found.get("iamConfiguration") or {}
        if guard.get("publicAccessPrevention") != "enforced":
            fix = f"gcloud storage buckets update gs://{bucket} --public-access-prevention"
            findings.warn(where, "public access is not ruled out; a state holds secrets", fix)

    def offers(self, machine: str) -> list[str] | None:
        if machine not in self._offers:
            url = f"{COMPUTE}/{self.target.project}/aggregated/machineTypes"
            try:
                if not self.api.login(Findings(self.target)):
                    return None
                scopes = self.api.get(url, filter=f"name = {machine}", returnPartialSuccess="true").get("items", {})
            except errors():
                return None
            zones = sorted(scope.removeprefix("zones/") for scope, found in scopes.items() if found.get("machineTypes"))
            self._offers[machine] = [zone for zone in zones if zone.rsplit("-", 1)[0] == self.target.region]
        return self._offers[machine]

    def _quotas(self, findings: Findings) -> None:
        """GPUs that the pools may take at most, against what the region and the project still allow."""
        project = self.target.project
        region = {
            one["metric"]: one
            for one in self.api.get(f"{COMPUTE}/{project}/regions/{self.target.region}").get("quotas", [])
        }
        everywhere = {one["metric"]: one for one in self.api.get(f"{COMPUTE}/{project}").get("quotas", [])}
        wanted: dict[str, list[tuple[Pool, int]]] = {}
        for pool in self.target.pools:
            shape = facts.machines()["gke"].get(pool.machine, {})
            metric = METRICS.get(str(shape.get("acceleratorLabel")))
            if pool.provisioning == "reservation" or metric is None:
                continue
            name = f"PREEMPTIBLE_{metric}" if pool.provisioning in PREEMPTIBLE else metric
            wanted.setdefault(name, []).append((pool, int(shape["count"])))
        for metric, pools in wanted.items():
            if metric not in region:
                findings.warn(f"quota {metric}", f"not checked: {self.target.region} does not list it")
                continue
            self._compare(findings, region[metric], pools, self.target.region)
        regular = [entry for metric, pools in wanted.items() if not metric.startswith("PREEMPTIBLE") for entry in pools]
        if regular and "GPUS_ALL_REGIONS" in everywhere:
            self._compare(findings, everywhere["GPUS_ALL_REGIONS"], regular, "all regions")

    def _compare(self, findings: Findings, row: dict[str, Any], pools: list[tuple[Pool, int]], place: str) -> None:
        limit, used = float(row.get("limit", 0)), float(row.get("usage", 0))
        most, one = sum(pool.max_nodes * gpus for pool, gpus in pools), min(gpus for _, gpus in pools)
        names = ", ".join(f"{pool.name} ({pool.max_nodes} × {pool.machine})" for pool, _ in pools)
        where = f"quota {row['metric']} in {place}"
        page = f"https://console.cloud.google.com/iam-admin/quotas?project={self.target.project}"
        fix = f"ask for {counted(most + used)} at {page} (days), or lower max_nodes"
        if limit - used < one:
            text = f"{counted(limit - used)} of {counted(limit)} GPUs are left, and one node takes {one}: {names}"
            findings.add("SD856", where, text, fix)
        elif limit - used < most and used == 0:
            text = f"{counted(limit)} GPUs are allowed, and the pools may take {most}: {names} stops growing there"
            findings.warn(where, text, fix)

    def _versions(self, findings: Findings) -> None:
        parent = f"projects/{self.target.project}/locations/{self.target.region}"
        config = self._manager().get_server_config(name=parent)
        wanted = self.target.variables.get("min_version")
        valid = list(config.valid_master_versions)
        if wanted and not any(
            one == wanted or one.startswith(f"{wanted}.") or one.startswith(f"{wanted}-") for one in valid
        ):
            minors = sorted({".".join(one.split(".")[:2]) for one in valid}, key=_numbers)
            text = f"GKE does not offer {wanted} in {self.target.region}"
            findings.add("SD858", f"{self.target.file}: min_version", text, f"one of {', '.join(minors)}")
        channel = str(self.target.variables.get("release_channel") or "REGULAR")
        default = next((one.default_version for one in config.channels if one.channel.name == channel), "")
        flexible = [pool.name for pool in self.target.pools if pool.provisioning == "flex_start"]
        version = str(wanted or default)
        if flexible and version and _numbers(version)[:3] < FLEX_START_VERSION:
            text = f"flex_start needs GKE 1.32.2, and channel {channel} gives {version}"
            findings.add(
                "SD858", f"gpu_pools.{flexible[0]}.provisioning", text, 'min_version = "1.33", or another channel'
            )

    def _name(self, findings: Findings) -> None:
        """A cluster of that name is ours when our state holds it."""
        from google.api_core import exceptions

        path = f"projects/{self.target.project}/locations/{self.target.region}/clusters/{self.target.name}"
        try:
            self._manager().get_cluster(name=path)
        except exceptions.NotFound:
            return
        if not self._is_ours():
            where = f"{self.target.file}: name"
            text = f"{self.target.region} has a cluster {self.target.name} already, and the state does not hold it"
            fix = "another name; or --context to deploy to that cluster as it is; or terraform import"
            findings.add("SD859", where, text, fix)

    def _is_ours(self) -> bool:
        backend = self.target.backend("gke")
        prefix = str(backend.get("prefix") or "").strip("/")
        key = f"{prefix}/default.tfstate" if prefix else "default.tfstate"
        try:
            state = self.api.get(f"{STORAGE}/{backend.get('bucket')}/o/{quote(key, safe='')}", alt="media")
        except Refused as refusal:
            if refusal.status == 404:
                return False
            raise
        return any(
            instance.get("attributes", {}).get("name") == self.target.name
            for resource in state.get("resources", [])
            if resource.get("type") == "google_container_cluster"
            for instance in resource.get("instances", [])
        )

    def _manager(self) -> Any:
        if self._clusters is None:
            from google.cloud import container_v1

            self._clusters = container_v1.ClusterManagerClient(credentials=self.api.credentials)
        return self._clusters

    def remains(self, addresses: Sequence[str] = ()) -> list[Remain]:
        """Disks by the label that GKE puts on them; load balancers and static addresses by their address."""
        if not self.api.login(Findings(self.target)):
            return []
        delete, found = f"--project {self.target.project} --quiet", []
        for disk, zone in self._listed("disks", f"labels.goog-k8s-cluster-name = {self.target.name}"):
            command = f"gcloud compute disks delete {disk['name']} --zone {zone} {delete}"
            found.append(Remain(f"disk {disk['name']}, {disk.get('sizeGb', '?')} GB in {zone}", command))
        for kind, what, key in (
            ("forwardingRules", "load balancer", "IPAddress"),
            ("addresses", "address", "address"),
        ):
            noun = "forwarding-rules" if kind == "forwardingRules" else kind
            for one, place in self._listed(kind, None) if addresses else []:
                if one.get(key) not in addresses:
                    continue
                where = "--global" if place == "global" else f"--region {place}"
                command = f"gcloud compute {noun} delete {one['name']} {where} {delete}"
                found.append(Remain(f"{what} {one['name']} ({one[key]})", command))
        return found

    def _listed(self, kind: str, only: str | None) -> list[tuple[dict[str, Any], str]]:
        """Resources of a kind with their zone or region."""
        params = {"filter": only} if only else {}
        try:
            scopes = self.api.get(f"{COMPUTE}/{self.target.project}/aggregated/{kind}", **params).get("items", {})
        except errors():
            return []
        return [(one, scope.rsplit("/", 1)[-1]) for scope, found in scopes.items() for one in found.get(kind, [])]


def _numbers(version: str) -> tuple[int, ...]:
    """1.33.4-gke.100 is (1, 33, 4, 100)."""
    return tuple(int(number) for number in re.findall(r"\d+", version))
