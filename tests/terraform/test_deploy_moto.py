"""`specdec deploy` and `destroy` of an EKS environment with the real Terraform and the real provider, against moto.

moto has no Kubernetes: the way ends where the platform would be installed, and a destroy begins at the cluster. State
and lock are in moto's S3, and preflight asks moto too."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from .conftest import ROOT, Copy
from .test_moto import OVERRIDES, PROVIDER, aws, client, is_stand_in

__all__ = ["aws"]

VALUES = """
cloud: eks
accelerator: {type: a10g, machineType: g5.12xlarge}
engine:
  version: 0.32.0
  model:
    name: hugging-quants/Meta-Llama-3.1-70B-Instruct-AWQ-INT4
    revision: "2123003760781134cfc31124aa6560a45b491fdf"
  tensorParallelSize: 4
  dtype: float16
  maxModelLen: 8192
speculative: {method: ngram, numTokens: 3}
"""
VARIABLES = """
region             = "us-east-1"
name               = "inference-moto"
zones              = ["us-east-1a", "us-east-1b"]
one_nat_gateway    = true
addons             = {}
cluster_autoscaler = false
gpu_pools          = { a10g = { machine_type = "g5.12xlarge", gpus_per_engine = 4 } }
"""
BACKEND = """
bucket         = "moto-state"
region         = "us-east-1"
encrypt        = true
use_lockfile   = true
use_path_style = true
"""


class Command:
    """The command in a process of its own, with everything it may touch in a scratch folder."""

    def __init__(self, tmp_path: Path, copy: Copy, aws: dict[str, str]) -> None:
        self.folder = tmp_path / "environments" / "moto"
        self.folder.mkdir(parents=True)
        (self.folder / "values.yaml").write_text(VALUES)
        (self.folder / "terraform.tfvars").write_text(VARIABLES)
        for root in ("eks", "platform"):
            (self.folder / f"backend.{root}.hcl").write_text(f'{BACKEND}key = "moto/{root}"\n')
        tools = tmp_path / "bin"
        tools.mkdir()
        # What would fetch the cluster's tokens. Nothing here has a cluster to ask.
        (tools / "aws").write_text("#!/bin/sh\nexit 1\n")
        (tools / "aws").chmod(0o755)
        self.environment = copy.environment | aws | {
            "PATH": f"{tools}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT / "scripts"),
            "SPECDEC_ENVIRONMENTS": str(tmp_path / "environments"), "SPECDEC_TERRAFORM": str(copy.terraform),
            "XDG_CACHE_HOME": str(tmp_path / "cache"),
        }  # fmt: skip

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "specdec", arguments[0], "moto", "--yes", "--format", "json", *arguments[1:]]
        return subprocess.Popen(
            command, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=self.folder
        )

    def run(self, *arguments: str) -> tuple[int, Any, str]:
        process = self.start(*arguments)
        out, said = process.communicate(timeout=900)
        return process.returncode, json.loads(out) if out.strip() else None, said

    @property
    def stages(self) -> dict[str, str]:
        file = self.folder / ".specdec" / "deploy.json"
        found = json.loads(file.read_text())["stages"] if file.exists() else {}
        return {name: entry["state"] for name, entry in found.items()}


def vpcs(aws: dict[str, str]) -> list[str]:
    found = client(aws, "ec2").describe_vpcs()["Vpcs"]
    return [vpc["CidrBlock"] for vpc in found if not vpc["IsDefault"]]


@pytest.fixture
def command(tmp_path: Path, copy: Copy, one_tool: str, aws: dict[str, str]) -> Command:
    (copy.terraform / "eks" / "providers_override.tf").write_text(PROVIDER)
    for module, text in OVERRIDES.items():
        (copy.terraform / module / "moto_override.tf").write_text(text)
    copy.init(one_tool, "eks")
    if is_stand_in(copy, "eks"):
        pytest.skip("NOT TESTED: the real aws provider is not here, so nothing was deployed to moto")
    return Command(tmp_path, copy, aws)


def make_bucket(aws: dict[str, str]) -> None:
    s3 = client(aws, "s3")
    s3.create_bucket(Bucket="moto-state")
    s3.put_bucket_versioning(Bucket="moto-state", VersioningConfiguration={"Status": "Enabled"})


@pytest.mark.xdist_group("moto")
def test_an_environment_goes_up_over_a_kill_and_down_again(command: Command, aws: dict[str, str]) -> None:
    status, _, said = command.run("deploy")
    assert status == 2
    assert "SD851" in said, said
    assert "aws s3api create-bucket --bucket moto-state" in said
    make_bucket(aws)

    status, planned, said = command.run("deploy", "--plan-only")
    assert status == 0, said
    assert planned["plan"]["add"] > 20
    assert planned["plan"]["change"] == planned["plan"]["destroy"] == 0
    assert planned["price"]["per_hour"] == pytest.approx(5.67)
    assert vpcs(aws) == []

    # A machine that dies while the network is being made: Terraform ends on its own, and the next run waits for it.
    killed = command.start("deploy")
    deadline = time.monotonic() + 600
    while not vpcs(aws):
        assert killed.poll() is None, killed.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.1)
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    assert command.stages["apply"] == "running"

    # moto has no API server, so the way ends at the platform; all before it is done.
    status, _, said = command.run("deploy")
    assert status != 0
    done = ("preflight", "init", "plan", "guard", "price", "apply", "kubeconfig")
    assert {name: command.stages[name] for name in done} == dict.fromkeys(done, "done"), said
    assert command.stages["platform"] == "failed"
    assert vpcs(aws) == ["10.0.0.0/16"]
    assert client(aws, "eks").list_clusters()["clusters"] == ["inference-moto"]
    groups = client(aws, "eks").list_nodegroups(clusterName="inference-moto")["nodegroups"]
    assert sorted(group.split("-")[0] for group in groups) == ["a10g", "cpu"]

    status, planned, said = command.run("deploy", "--plan-only")
    assert planned["plan"] == {"add": 0, "change": 0, "destroy": 0}, said

    status, _, said = command.run("destroy")
    assert status == 2
    assert "--from cluster" in said
    status, gone, said = command.run("destroy", "--from", "cluster")
    assert status == 0, said
    assert gone["removed"] is True
    assert client(aws, "eks").list_clusters()["clusters"] == []
    assert vpcs(aws) == []
    assert client(aws, "iam").list_roles()["Roles"] == []
    status, gone, said = command.run("destroy")
    assert (status, gone["removed"]) == (0, False), said


@pytest.mark.xdist_group("moto")
def test_a_state_that_somebody_holds_is_not_touched(command: Command, aws: dict[str, str]) -> None:
    make_bucket(aws)
    lock = {"ID": "1784", "Operation": "OperationTypeApply", "Who": "ann@laptop", "Version": "1.11.4",
            "Created": "2026-12-03T07:38:46Z", "Path": "moto-state/moto/eks", "Info": ""}  # fmt: skip
    client(aws, "s3").put_object(Bucket="moto-state", Key="moto/eks.tflock", Body=json.dumps(lock).encode())
    status, _, said = command.run("deploy")
    assert status == 2
    assert "SD862" in said
    assert "ann@laptop has held it since" in said
    assert "--unlock 1784" in said
    assert vpcs(aws) == []
    status, planned, said = command.run("deploy", "--plan-only", "--unlock", "1784")
    assert status == 0, said
    assert planned["plan"]["add"] > 20
