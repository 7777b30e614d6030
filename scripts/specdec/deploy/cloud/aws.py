"""AWS before and after: credentials, account, zones, quota, versions, name, the state's bucket."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any

from specdec import facts
from specdec.deploy.cloud import workspace
from specdec.deploy.cloud.clouds import Findings, Remain, check_zones, counted
from specdec.deploy.cloud.failures import bucket_fix
from specdec.deploy.cloud.target import Pool, Target
from specdec.deploy.problems import Problem

# Quotas in vCPUs, by the first letter of the instance family and how it is bought.
# https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-instance-quotas.html
QUOTAS = {
    ("g", "on_demand"): ("L-DB2E81BA", "Running On-Demand G and VT instances"),
    ("g", "spot"): ("L-3819A6DF", "All G and VT Spot Instance Requests"),
    ("p", "on_demand"): ("L-417A185B", "Running On-Demand P instances"),
    ("p", "spot"): ("L-7212CCBC", "All P4, P3 and P2 Spot Instance Requests"),
    ("p5", "spot"): ("L-C4BD4855", "All P5 Spot Instance Requests"),
}


class Amazon:
    """`client` makes a boto3 client of a service in a region."""

    def __init__(self, target: Target, client: Callable[[str, str], Any] | None = None) -> None:
        self.target = target
        self._client = client or _boto
        self._offers: dict[str, list[str] | None] = {}

    def _ask(self, service: str, region: str | None = None) -> Any:
        return self._client(service, region or self.target.region)

    def check(self, report: Callable[[str], None]) -> list[Problem]:
        findings = Findings(self.target)
        report("credentials")
        with findings.asking("credentials", *_errors(), stops=True):
            self._account(findings)
        if findings.fatal:
            return findings.problems
        report("the state's buckets")
        for root in ("eks", "platform"):
            with findings.asking(f"bucket of {root}", *_errors()):
                self._bucket(findings, root)
        report("zones and quotas")
        with findings.asking(f"zones of {self.target.region}", *_errors()):
            self._zones(findings)
        with findings.asking(f"machines in {self.target.region}", *_errors()):
            check_zones(findings, self.offers)
        with findings.asking(f"quotas of {self.target.region}", *_errors()):
            self._quotas(findings)
        report("versions and the name")
        with findings.asking("EKS versions", *_errors()):
            self._versions(findings)
        with findings.asking(f"cluster {self.target.name}", *_errors()):
            self._name(findings)
        return list(dict.fromkeys(findings.problems))

    def _account(self, findings: Findings) -> None:
        """Who asks; and whether the variables mean another account."""
        caller = self._ask("sts").get_caller_identity()
        account, arn = str(caller["Account"]), str(caller["Arn"])
        text = json.dumps(self.target.variables)
        meant = {number for number in re.findall(r"arn:aws[\w-]*:\w+:[\w-]*:(\d{12}):", text) if number != account}
        if meant and f":{account}:" not in text:
            where, other = f"{self.target.file}", ", ".join(sorted(meant))
            message = f"{arn} is of account {account}, and the variables name {other}"
            findings.add("SD854", where, message, "credentials of that account (AWS_PROFILE), or its ARNs")
            findings.fatal = True

    def _bucket(self, findings: Findings, root: str) -> None:
        backend = self.target.backend(root)
        bucket, region = str(backend.get("bucket")), str(backend.get("region") or self.target.region)
        where, s3 = f"{self.target.backend_file(root)}: bucket {bucket}", self._ask("s3", region)
        from botocore.exceptions import ClientError

        try:
            s3.head_bucket(Bucket=bucket)
        except ClientError as refusal:
            status = str(refusal.response.get("Error", {}).get("Code"))
            place = (refusal.response.get("ResponseMetadata") or {}).get("HTTPHeaders", {}).get("x-amz-bucket-region")
            if status in ("404", "NoSuchBucket"):
                findings.add("SD851", where, "it does not exist", bucket_fix(self.target, root))
                return
            if status in ("301", "400") and place and place != region:
                findings.add("SD851", where, f"it is in {place}, not in {region}", f'region = "{place}"')
                return
            if status == "403":
                text = "this account may not read it (or another account owns that name)"
                findings.add(
                    "SD864", where, text, "s3:ListBucket, GetObject, PutObject, DeleteObject; or another bucket"
                )
                return
            raise
        if s3.get_bucket_versioning(Bucket=bucket).get("Status") != "Enabled":
            fix = f"aws s3api put-bucket-versioning --bucket {bucket} --versioning-configuration Status=Enabled"
            findings.add("SD852", where, "no versioning: a state that is overwritten is lost", fix)
        for key, fix in (("encrypt", "encrypt = true"), ("use_lockfile", "use_lockfile = true")):
            if backend.get(key) is not True and not (key == "use_lockfile" and backend.get("dynamodb_table")):
                what = "is not encrypted" if key == "encrypt" else "is not locked: two can apply at once"
                findings.add("SD852", str(self.target.backend_file(root)), f"the state {what}", fix)

    def _zones(self, findings: Findings) -> None:
        wanted = [str(zone) for zone in self.target.variables.get("zones") or []]
        found = self._ask("ec2").describe_availability_zones(AllAvailabilityZones=False)["AvailabilityZones"]
        have = sorted(zone["ZoneName"] for zone in found if zone.get("State", "available") == "available")
        if missing := [zone for zone in wanted if zone not in have]:
            text = f"this account has no {', '.join(missing)} in {self.target.region}"
            findings.add("SD857", f"{self.target.file}: zones", text, f"of {', '.join(have)}")

    def offers(self, machine: str) -> list[str] | None:
        if machine not in self._offers:
            try:
                pages = (
                    self._ask("ec2")
                    .get_paginator("describe_instance_type_offerings")
                    .paginate(
                        LocationType="availability-zone", Filters=[{"Name": "instance-type", "Values": [machine]}]
                    )
                )
                found = [one["Location"] for page in pages for one in page["InstanceTypeOfferings"]]
            except _errors():
                return None
            self._offers[machine] = sorted(found)
        return self._offers[machine]

    def _quotas(self, findings: Findings) -> None:
        """vCPUs that the pools may take at most, against the account's limit in the region."""
        wanted: dict[tuple[str, str], list[tuple[Pool, int]]] = {}
        for pool in self.target.pools:
            shape = facts.machines()["eks"].get(pool.machine)
            way = "spot" if pool.provisioning == "spot" else "on_demand"
            family = "p5" if way == "spot" and pool.machine.startswith("p5") else pool.machine[0]
            # Reserved capacity counts on-demand limits too; a capacity block has none.
            if shape and pool.provisioning != "capacity_block" and (family, way) in QUOTAS:
                wanted.setdefault(QUOTAS[family, way], []).append((pool, int(shape["vcpus"])))
        for (code, title), pools in wanted.items():
            answer = self._ask("service-quotas").get_service_quota(ServiceCode="ec2", QuotaCode=code)
            limit = float(answer["Quota"]["Value"])
            most, one = sum(pool.max_nodes * cpus for pool, cpus in pools), min(cpus for _, cpus in pools)
            names = ", ".join(f"{pool.name} ({pool.max_nodes} × {pool.machine})" for pool, _ in pools)
            where = f"quota {title} ({code}) in {self.target.region}"
            fix = (
                f"aws service-quotas request-service-quota-increase --service-code ec2 --quota-code {code} "
                f"--desired-value {most} --region {self.target.region} (days), or lower max_nodes"
            )
            if limit < one:
                findings.add("SD856", where, f"{counted(limit)} vCPUs, and one node takes {one}: {names}", fix)
            elif limit < most:
                findings.warn(where, f"{counted(limit)} vCPUs, and the pools may take {most}: {names}", fix)

    def _versions(self, findings: Findings) -> None:
        wanted = self.target.variables.get("kubernetes_version") or workspace.default("eks", "kubernetes_version")
        if not wanted:
            return
        rows = self._ask("eks").describe_cluster_versions()["clusterVersions"]
        have = [row["clusterVersion"] for row in rows if row.get("versionStatus", "").upper() != "UNSUPPORTED"]
        if str(wanted) not in have:
            text = f"EKS does not offer {wanted} in {self.target.region}"
            findings.add("SD858", f"{self.target.file}: kubernetes_version", text, f"one of {', '.join(have)}")

    def _name(self, findings: Findings) -> None:
        from botocore.exceptions import ClientError

        try:
            self._ask("eks").describe_cluster(name=self.target.name)
        except ClientError as refusal:
            if refusal.response.get("Error", {}).get("Code") == "ResourceNotFoundException":
                return
            raise
        if not self._is_ours():
            text = f"{self.target.region} has a cluster {self.target.name} already, and the state does not hold it"
            fix = "another name; or --context to deploy to that cluster as it is; or terraform import"
            findings.add("SD859", f"{self.target.file}: name", text, fix)

    def _is_ours(self) -> bool:
        from botocore.exceptions import ClientError

        backend = self.target.backend("eks")
        s3 = self._ask("s3", str(backend.get("region") or self.target.region))
        try:
            body = s3.get_object(Bucket=backend.get("bucket"), Key=str(backend.get("key")))["Body"].read()
        except ClientError as refusal:
            if refusal.response.get("Error", {}).get("Code") in ("NoSuchKey", "404"):
                return False
            raise
        return any(
            instance.get("attributes", {}).get("name") == self.target.name
            for resource in json.loads(body).get("resources", [])
            if resource.get("type") == "aws_eks_cluster"
            for instance in resource.get("instances", [])
        )

    def remains(self, addresses: Sequence[str] = ()) -> list[Remain]:
        """Volumes, addresses and load balancers by the tags that Kubernetes puts on them, or by their address."""
        name, found = self.target.name, []
        tag, region = f"kubernetes.io/cluster/{name}", f"--region {self.target.region}"
        try:
            ec2 = self._ask("ec2")
            for one in ec2.describe_volumes(Filters=[{"Name": "tag-key", "Values": [tag]}])["Volumes"]:
                command = f"aws ec2 delete-volume --volume-id {one['VolumeId']} {region}"
                found.append(Remain(f"volume {one['VolumeId']}, {one['Size']} GiB", command))
            for one in ec2.describe_addresses()["Addresses"]:
                if one.get("PublicIp") in addresses or tag in {entry["Key"] for entry in one.get("Tags", [])}:
                    command = f"aws ec2 release-address --allocation-id {one['AllocationId']} {region}"
                    found.append(Remain(f"address {one['PublicIp']}", command))
            # The cloud provider's own tag, and the one of the AWS Load Balancer Controller.
            for tags in ({"Key": tag}, {"Key": "elbv2.k8s.aws/cluster", "Values": [name]}):
                for arn in self._balancers(tags):
                    command = f"aws elbv2 delete-load-balancer --load-balancer-arn {arn} {region}"
                    found.append(Remain(f"load balancer {arn.rsplit('/', 2)[-2]}", command))
        except _errors():
            return found
        return found

    def _balancers(self, tags: dict[str, Any]) -> list[str]:
        """ARNs of load balancers with a tag."""
        pages = self._ask("resourcegroupstaggingapi").get_paginator("get_resources")
        kinds = ["elasticloadbalancing:loadbalancer"]
        return [
            str(one["ResourceARN"])
            for page in pages.paginate(TagFilters=[tags], ResourceTypeFilters=kinds)
            for one in page["ResourceTagMappingList"]
        ]


def _boto(service: str, region: str) -> Any:
    import boto3
    from botocore.config import Config

    return boto3.client(
        service, region_name=region, config=Config(connect_timeout=10, read_timeout=30, retries={"max_attempts": 3})
    )


def _errors() -> tuple[type[Exception], ...]:
    """What boto3 raises for an answer or for none."""
    from botocore.exceptions import BotoCoreError, ClientError

    return (BotoCoreError, ClientError)
