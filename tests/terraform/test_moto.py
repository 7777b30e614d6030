"""The EKS root applies against a server that speaks AWS's protocols, plans nothing more, and leaves nothing behind.

moto has no add-ons, access entries, pod identities or placement groups, so those are switched off here and tested with
a mocked provider. It keeps no access configuration and no update settings, and it invents SSH access and tags, which is
why changes of these alone are ignored."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from .conftest import Copy

REGION = "us-east-1"

BACKEND = """
terraform {
  backend "local" {}
}
"""

PROVIDER = """
provider "aws" {
  skip_metadata_api_check = true
  # What moto lacks fails at once.
  max_retries = 1
}
"""

# What moto does not give back as it was told. Terraform merges an override into the resource of the same name.
OVERRIDES = {
    "modules/eks-cluster": """
resource "aws_eks_cluster" "this" {
  lifecycle {
    ignore_changes = [access_config]
  }
}

resource "aws_launch_template" "cpu" {
  lifecycle {
    ignore_changes = [tag_specifications]
  }
}

resource "aws_eks_node_group" "cpu" {
  lifecycle {
    ignore_changes = [scaling_config[0].desired_size, remote_access, update_config]
  }
}
""",
    "modules/eks-gpu-pool": """
resource "aws_launch_template" "this" {
  lifecycle {
    ignore_changes = [tag_specifications]
  }
}

resource "aws_eks_node_group" "this" {
  lifecycle {
    ignore_changes = [scaling_config[0].desired_size, remote_access, update_config]
  }
}
""",
}

VALUES = """
region             = "us-east-1"
name               = "inference"
zones              = ["us-east-1a", "us-east-1b"]
one_nat_gateway    = true
addons             = {}
cluster_autoscaler = false
tags               = { team = "inference" }
gpu_pools = {
  a10g = { machine_type = "g5.48xlarge", gpus_per_engine = 8 }
  h100 = { machine_type = "p5.48xlarge", zones = ["us-east-1b"], max_nodes = 1 }
}
"""


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, str]]:
    monkeypatch.setenv("MOTO_IAM_LOAD_MANAGED_POLICIES", "true")
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_REGION": REGION,
    }
    server.stop()


def client(aws: dict[str, str], service: str) -> Any:
    import boto3

    return boto3.client(
        service,
        region_name=REGION,
        endpoint_url=aws["AWS_ENDPOINT_URL"],
        aws_access_key_id="test",
        aws_secret_access_key="test",
    )


def is_stand_in(copy: Copy, module: str) -> bool:
    providers = copy.terraform / module / ".terraform/providers"
    return any(path.name.endswith(".schema.json.gz") for path in providers.rglob("hashicorp/aws/*/*/*"))


@pytest.mark.xdist_group("moto")
def test_eks_applies_plans_nothing_more_and_leaves_nothing(copy: Copy, one_tool: str, aws: dict[str, str]) -> None:
    root = copy.terraform / "eks"
    (root / "backend_override.tf").write_text(BACKEND)
    (root / "providers_override.tf").write_text(PROVIDER)
    (root / "moto.tfvars").write_text(VALUES)
    for module, text in OVERRIDES.items():
        (copy.terraform / module / "moto_override.tf").write_text(text)
    copy.environment = copy.environment | aws
    copy.init(one_tool, "eks", backend="true")
    if is_stand_in(copy, "eks"):
        pytest.skip("NOT TESTED: the real aws provider is not here, so nothing was applied to moto")

    arguments = ("-no-color", "-input=false", "-var-file=moto.tfvars")
    copy.run(one_tool, "eks", "apply", "-auto-approve", *arguments)
    groups = client(aws, "eks").list_nodegroups(clusterName="inference")["nodegroups"]
    assert sorted(group.split("-")[0] for group in groups) == ["a10g", "cpu", "h100"]
    a10g = next(group for group in groups if group.startswith("a10g"))
    made = client(aws, "eks").describe_nodegroup(clusterName="inference", nodegroupName=a10g)["nodegroup"]
    assert made["scalingConfig"] == {"minSize": 0, "maxSize": 2, "desiredSize": 0}
    assert made["taints"] == [{"key": "nvidia.com/gpu", "value": "present", "effect": "NO_SCHEDULE"}]

    again = copy.run(one_tool, "eks", "plan", "-detailed-exitcode", *arguments, check=False)
    assert again.returncode == 0, again.stdout + again.stderr

    copy.run(one_tool, "eks", "destroy", "-auto-approve", *arguments)
    assert client(aws, "eks").list_clusters()["clusters"] == []
    vpcs = client(aws, "ec2").describe_vpcs()["Vpcs"]
    assert [vpc["CidrBlock"] for vpc in vpcs if not vpc["IsDefault"]] == []
    assert client(aws, "iam").list_roles()["Roles"] == []
    templates = client(aws, "ec2").describe_launch_templates()["LaunchTemplates"]
    assert templates == []
    assert client(aws, "logs").describe_log_groups()["logGroups"] == []
