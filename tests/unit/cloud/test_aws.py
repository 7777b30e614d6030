"""Preflight on AWS: against moto where it knows the service, against recorded answers where it does not."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError, NoCredentialsError
from moto import mock_aws
from specdec.deploy.cloud.aws import Amazon
from specdec.deploy.cloud.target import Target
from specdec.deploy.problems import Problem

Read = Callable[..., Target]
Check = Callable[[], list[Problem]]


def refusal(operation: str, code: str, message: str, headers: dict[str, str] | None = None) -> ClientError:
    body: Any = {"Error": {"Code": code, "Message": message}, "ResponseMetadata": {"HTTPHeaders": headers or {}}}
    return ClientError(body, operation)


class Pages:
    """A paginator of one page of offerings."""

    def __init__(self, offerings: list[dict[str, str]]) -> None:
        self.offerings = offerings

    def paginate(self, **_: Any) -> list[Any]:
        return [{"InstanceTypeOfferings": self.offerings}]


class Recorded:
    """A client whose operations answer what a test says; what it says nothing of goes to the real one (to moto)."""

    def __init__(self, answers: dict[str, Any], client: Any) -> None:
        self.answers, self.client = answers, client

    def __getattr__(self, name: str) -> Any:
        if name not in self.answers:
            return getattr(self.client, name)

        def answer(*_: Any, **__: Any) -> Any:
            found = self.answers[name]
            if isinstance(found, Exception):
                raise found
            return found

        return answer


@pytest.fixture
def answers() -> dict[str, dict[str, Any]]:
    """What moto does not know: quotas of vCPUs, EKS versions."""
    versions = [{"clusterVersion": one, "versionStatus": "STANDARD_SUPPORT"} for one in ("1.34", "1.33", "1.32")]
    return {
        "service-quotas": {"get_service_quota": {"Quota": {"Value": 768.0}}},
        "eks": {"describe_cluster_versions": {"clusterVersions": versions}},
    }


@pytest.fixture(autouse=True)
def aws(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    with mock_aws():
        s3 = boto3.client("s3", region_name="us-east-1")
        s3.create_bucket(Bucket="test-state")
        s3.put_bucket_versioning(Bucket="test-state", VersioningConfiguration={"Status": "Enabled"})
        yield


@pytest.fixture
def check(targets: Read, answers: dict[str, dict[str, Any]]) -> Check:
    def client(service: str, region: str) -> Any:
        return Recorded(answers.get(service, {}), boto3.client(service, region_name=region))

    return lambda: Amazon(targets("aws"), client).check(lambda _: None)


def one(problems: list[Problem]) -> Problem:
    assert len(problems) == 1, [str(problem) for problem in problems]
    return problems[0]


def edit(folder: Path, old: str, new: str, file: str = "terraform.tfvars") -> None:
    path = folder / "aws" / file
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))


def test_an_account_with_quota_has_nothing_against_it(check: Check) -> None:
    assert check() == []


@pytest.mark.parametrize(
    "error",
    [
        refusal("GetCallerIdentity", "ExpiredToken", "The security token included in the request is expired"),
        refusal("GetCallerIdentity", "InvalidClientTokenId", "The security token included in the request is invalid."),
        NoCredentialsError(),
    ],
)
def test_credentials_are_the_first_and_only_word(check: Check, answers: dict[str, Any], error: Exception) -> None:
    answers["sts"] = {"get_caller_identity": error}
    found = one(check())
    assert (found.code, found.level) == ("SD853", "error")
    assert "aws sso login" in (found.fix or "")


def test_another_account_than_the_variables_name_is_refused(check: Check, folder: Path) -> None:
    edit(folder, "zones", 'admins = { me = "arn:aws:iam::999999999999:role/me" }\nzones')
    found = one(check())
    assert found.code == "SD854"
    assert "account 123456789012, and the variables name 999999999999" in found.message
    edit(folder, "999999999999", "123456789012")
    assert check() == []


def test_a_missing_bucket_comes_with_its_commands(check: Check, folder: Path) -> None:
    edit(folder, "test-state", "no-such-state", "backend.eks.hcl")
    found = one(check())
    assert found.code == "SD851"
    assert "aws s3api create-bucket --bucket no-such-state --region us-east-1" in (found.fix or "")


def test_a_bucket_in_another_region_is_named(check: Check, answers: dict[str, Any]) -> None:
    answers["s3"] = {
        "head_bucket": refusal("HeadBucket", "301", "Moved Permanently", {"x-amz-bucket-region": "eu-west-1"})
    }
    problems = check()
    assert {problem.code for problem in problems} == {"SD851"}
    assert "it is in eu-west-1, not in us-east-1" in problems[0].message


def test_anothers_bucket_is_no_missing_bucket(check: Check, answers: dict[str, Any]) -> None:
    answers["s3"] = {"head_bucket": refusal("HeadBucket", "403", "Forbidden")}
    assert {problem.code for problem in check()} == {"SD864"}


def test_an_unsafe_state_is_named(check: Check, folder: Path) -> None:
    s3 = boto3.client("s3", region_name="us-east-1")
    s3.put_bucket_versioning(Bucket="test-state", VersioningConfiguration={"Status": "Suspended"})
    assert {problem.message for problem in check()} == {"no versioning: a state that is overwritten is lost"}
    s3.put_bucket_versioning(Bucket="test-state", VersioningConfiguration={"Status": "Enabled"})
    edit(folder, "encrypt = true", "", "backend.eks.hcl")
    edit(folder, "use_lockfile = true", "", "backend.eks.hcl")
    problems = check()
    assert [problem.code for problem in problems] == ["SD852", "SD852"]
    assert [problem.fix for problem in problems] == ["encrypt = true", "use_lockfile = true"]


def test_a_zone_that_the_account_lacks_is_named(check: Check, folder: Path) -> None:
    edit(folder, '"us-east-1b"', '"us-east-1z"')
    problems = check()
    assert {problem.code for problem in problems} == {"SD857"}
    assert "this account has no us-east-1z" in problems[0].message


def test_a_zone_without_the_machine_names_those_that_have_it(check: Check, answers: dict[str, Any]) -> None:
    answers["ec2"] = {"get_paginator": Pages([{"Location": "us-east-1a"}, {"Location": "us-east-1c"}])}
    found = one(check())
    assert (found.code, found.message) == ("SD857", "us-east-1b has no g5.12xlarge")
    assert found.fix == "zones that have it: us-east-1a, us-east-1c"


def test_a_quota_below_one_node_is_an_error_and_one_below_all_a_warning(check: Check, answers: dict[str, Any]) -> None:
    answers["service-quotas"]["get_service_quota"] = {"Quota": {"Value": 0.0}}
    found = one(check())
    assert (found.code, found.level) == ("SD856", "error")
    assert "0 vCPUs, and one node takes 48: a10g (2 × g5.12xlarge)" in found.message
    assert "--quota-code L-DB2E81BA --desired-value 96" in (found.fix or "")
    answers["service-quotas"]["get_service_quota"] = {"Quota": {"Value": 64.0}}
    assert one(check()).level == "warning"


def test_a_version_is_one_that_eks_offers(check: Check, folder: Path) -> None:
    edit(folder, "zones", 'kubernetes_version = "1.27"\nzones')
    found = one(check())
    assert (found.code, found.fix) == ("SD858", "one of 1.34, 1.33, 1.32")


def test_a_name_is_free_ours_or_taken(check: Check, answers: dict[str, Any]) -> None:
    answers["eks"]["describe_cluster"] = {"cluster": {"name": "inference-test"}}
    assert one(check()).code == "SD859"
    state = {"resources": [{"type": "aws_eks_cluster", "instances": [{"attributes": {"name": "inference-test"}}]}]}
    s3 = boto3.client("s3", region_name="us-east-1")
    s3.put_object(Bucket="test-state", Key="test/eks", Body=io.BytesIO(json.dumps(state).encode()))
    assert check() == []


def test_what_may_not_be_seen_is_a_warning(check: Check, answers: dict[str, Any]) -> None:
    denied = refusal(
        "DescribeClusterVersions", "AccessDeniedException", "User is not authorized to perform: eks:Describe"
    )
    answers["eks"]["describe_cluster_versions"] = denied
    assert one(check()).level == "warning"


def test_what_kubernetes_left_is_listed_with_its_command(targets: Read) -> None:
    ec2 = boto3.client("ec2", region_name="us-east-1")
    tags = [{"ResourceType": "volume", "Tags": [{"Key": "kubernetes.io/cluster/inference-test", "Value": "owned"}]}]
    volume = ec2.create_volume(AvailabilityZone="us-east-1a", Size=100, TagSpecifications=tags)["VolumeId"]
    ec2.create_volume(AvailabilityZone="us-east-1a", Size=1)
    address = ec2.allocate_address(Domain="vpc")
    ec2.allocate_address(Domain="vpc")
    subnet = ec2.describe_subnets()["Subnets"][0]["SubnetId"]
    balancers = boto3.client("elbv2", region_name="us-east-1")
    owner = [{"Key": "elbv2.k8s.aws/cluster", "Value": "inference-test"}]
    arn = balancers.create_load_balancer(Name="front", Subnets=[subnet], Type="network", Tags=owner)["LoadBalancers"]
    balancers.create_load_balancer(Name="somebody-elses", Subnets=[subnet], Type="network")
    found = [str(one) for one in Amazon(targets("aws")).remains([address["PublicIp"]])]
    assert found == [
        f"volume {volume}, 100 GiB: aws ec2 delete-volume --volume-id {volume} --region us-east-1",
        f"address {address['PublicIp']}: "
        f"aws ec2 release-address --allocation-id {address['AllocationId']} --region us-east-1",
        "load balancer front: aws elbv2 delete-load-balancer --load-balancer-arn "
        f"{arn[0]['LoadBalancerArn']} --region us-east-1",
    ]
