"""What Terraform makes for an environment is what the chart asks for there: labels, taints, GPUs, storage, account."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from specdec import environments, helm
from specdec.cli import main
from specdec.deploy.cloud import tfvars
from specdec.deploy.cloud.target import Target
from specdec.environments import Environment
from specdec.errors import SpecdecError
from specdec.infrastructure import pools
from specdec.infrastructure.agreement import Ask, misfits, place
from specdec.infrastructure.pools import Nodes
from specdec.manifests import engines, parse

from .conftest import ROOT, Copy
from .test_operator_values import outputs

ENVIRONMENTS = ROOT / "environments"
CLOUDS = {"gke": "google", "eks": "aws"}
WITH_POOLS = sorted(path.parent.name for path in ENVIRONMENTS.glob("*/terraform.tfvars"))

# The least that a mocked provider has to give for outputs to be computed.
MOCKS = {
    "google": """
mock_provider "google" {
  mock_resource "google_container_cluster" {
    defaults = { master_version = "1.35.0-gke.1171000" }
  }
  mock_resource "google_service_account" {
    defaults = { email = "nodes@example.iam.gserviceaccount.com" }
  }
}
""",
    "aws": """
mock_provider "aws" {
  mock_data "aws_partition" {
    defaults = { partition = "aws" }
  }
  mock_data "aws_caller_identity" {
    defaults = { account_id = "123456789012" }
  }
  mock_resource "aws_iam_role" {
    defaults = { arn = "arn:aws:iam::123456789012:role/mock" }
  }
  mock_resource "aws_kms_key" {
    defaults = { arn = "arn:aws:kms:us-east-1:123456789012:key/mock" }
  }
  mock_resource "aws_cloudwatch_log_group" {
    defaults = { arn = "arn:aws:logs:us-east-1:123456789012:log-group:mock" }
  }
  mock_resource "aws_launch_template" {
    defaults = { id = "lt-0123456789abcdef0", latest_version = 1 }
  }
}
""",
}


def made_by_terraform(copy: Copy, tool: str, root: str, variables: Path) -> dict[str, Any]:
    """Output gpu_pools of a cluster root with these variables."""
    tests = copy.terraform / root / "tests"
    for file in tests.iterdir():
        file.unlink()
    (tests / "environment.tftest.hcl").write_text(MOCKS[CLOUDS[root]] + 'run "environment" {}\n')
    copy.init(tool, root)
    log = copy.run(tool, root, "test", "-json", "-verbose", f"-var-file={variables}").stdout
    return dict(outputs(log)["gpu_pools"])


def wanted(name: str) -> list[Ask]:
    """What each engine of the environment's rendered chart asks of its node."""
    where = environments.load(name)
    manifests = parse(helm.render(where.values, [], where.release, where.namespace), name)
    return [ask for ask in map(Ask.of, engines(manifests)) if ask.gpus]


def target(directory: Path) -> Target:
    found = Target.of(Environment(directory.name, directory, [], "speculative", "ai-inference", None))
    assert found, f"{directory.name} has no Terraform"
    return found


def same(read: Nodes, made: dict[str, Any]) -> None:
    """What specdec reads out of the variables is what Terraform made of them."""
    assert read.accelerator == made["accelerator"]
    assert read.gpus == made["gpus_per_node"]
    assert read.gpus // read.pool.gpus_per_engine == made["engines_per_node"]
    assert read.gpus * read.pool.max_nodes == made["max_gpus"]
    assert read.storage_gib == made["ephemeral_storage_gib"]
    assert read.notice_seconds == made["notice_seconds"]
    assert read.labels == made["node_labels"]
    assert list(read.taints) == made["taints"]


@pytest.mark.parametrize("name", WITH_POOLS)
def test_the_engines_of_an_environment_fit_the_pools_that_terraform_makes(copy: Copy, one_tool: str, name: str) -> None:
    where = target(ENVIRONMENTS / name)
    found = pools.of(where)
    made = made_by_terraform(copy, one_tool, where.cloud, where.file)
    assert {nodes.name for nodes in found} == set(made)
    for nodes in found:
        same(nodes, made[nodes.name])
    asks = wanted(name)
    assert asks, f"{name} has pools and no engine that wants GPUs"
    assert set(place(asks, found, where.file.name)) == {ask.name for ask in asks}


@pytest.mark.parametrize("cloud", sorted(CLOUDS))
def test_pools_that_no_environment_has_are_read_as_terraform_makes_them(
    copy: Copy, one_tool: str, tmp_path: Path, cloud: str
) -> None:
    shutil.copy(Path(__file__).parent / f"variables/{cloud}.tfvars", tmp_path / "terraform.tfvars")
    (tmp_path / f"backend.{cloud}.hcl").write_text("")
    where = target(tmp_path)
    made = made_by_terraform(copy, one_tool, cloud, where.file)
    found = pools.of(where)
    assert {nodes.name for nodes in found} == set(made)
    for nodes in found:
        same(nodes, made[nodes.name])


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("team-a", ("--accelerator", "l4", "--method", "ngram", "--quantization", "fp8", "--provisioning", "spot")),
        ("a-name-of-23-characters", ("--cloud", "eks", "--accelerator", "a10g", "--method", "ngram")),
    ],
)
def test_a_new_environment_is_one_for_terraform_too(
    copy: Copy, one_tool: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, options: tuple[str, ...]
) -> None:
    folder = tmp_path / "environments"
    shutil.copytree(ENVIRONMENTS, folder, ignore=shutil.ignore_patterns(".specdec"))
    monkeypatch.setenv("SPECDEC_ENVIRONMENTS", str(folder))
    with pytest.raises(SystemExit) as stop:
        main(["init", name, *options, "--yes"])
    assert stop.value.code == 0
    where = target(folder / name)
    made = made_by_terraform(copy, one_tool, where.cloud, where.file)
    for nodes in pools.of(where):
        same(nodes, made[nodes.name])


@pytest.mark.parametrize("name", WITH_POOLS)
def test_pods_that_may_read_the_token_are_the_engines(name: str) -> None:
    """In every file of variables that names a service account."""
    for file in ("terraform.tfvars", "platform.tfvars"):
        text = (ENVIRONMENTS / name / file).read_text()
        named = set(re.findall(r'"[a-z0-9-]+/([a-z0-9-]+)"', text)) | set(
            re.findall(r'service_account\s*=\s*"([^"]+)"', text)
        )
        named -= {name for name in named if name in ("gke", "eks")}
        assert named == {ask.service_account for ask in wanted(name)}, file


def test_every_environment_on_gpus_has_its_pools() -> None:
    """And the local one, which has none, has no Terraform."""
    on_gpus = {path.parent.name for path in ENVIRONMENTS.glob("*/values.yaml") if wanted(path.parent.name)}
    assert on_gpus == set(WITH_POOLS)


FITTING = Ask(
    name="engine",
    accelerator="h100-80gb",
    selector={"cloud.google.com/gke-accelerator": "nvidia-h100-80gb"},
    tolerations=[{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
    gpus=2,
    replicas=4,
    storage_gib=150.0,
    grace_seconds=15,
    service_account="speculative",
)


@pytest.fixture
def pool(tmp_path: Path) -> Nodes:
    (tmp_path / "backend.gke.hcl").write_text("")
    (tmp_path / "terraform.tfvars").write_text(
        'region = "us-central1"\n'
        'gpu_pools = { h100 = { machine_type = "a3-highgpu-8g", provisioning = "spot", max_nodes = 1 } }\n'
    )
    return pools.of(target(tmp_path))[0]


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"selector": {"cloud.google.com/gke-accelerator": "nvidia-l4"}}, "selects"),
        ({"tolerations": []}, "tolerate"),
        ({"tolerations": [{"key": "nvidia.com/gpu", "operator": "Equal", "value": "true"}]}, "tolerate"),
        ({"accelerator": "l4"}, "is for l4"),
        ({"gpus": 16}, "16 GPUs, a node has 8"),
        ({"storage_gib": 1500.0}, "4 of it take 6000 GiB of storage, a node has 5400"),
        ({"grace_seconds": 90}, "90 s, a spot node is gone after 15"),
    ],
)
def test_a_misfit_is_named(pool: Nodes, change: dict[str, Any], word: str) -> None:
    assert misfits(FITTING, pool) == []
    problems = misfits(replace(FITTING, **change), pool)
    assert len(problems) == 1
    assert word in problems[0]


def test_more_engines_than_the_pools_can_ever_hold_are_refused(pool: Nodes) -> None:
    with pytest.raises(SpecdecError, match="5 replicas of engine engine, h100 can hold 4") as refused:
        place([replace(FITTING, replicas=5)], [pool], "terraform.tfvars")
    assert refused.value.code == "SD881"
    assert refused.value.fix == "max_nodes of 2 or more"


def test_backends_are_named_for_every_root_and_never_shared() -> None:
    places = set()
    for file in sorted(Path(ENVIRONMENTS).glob("*/backend.*.hcl")):
        settings = tfvars.load(file)
        place_of_state = (settings["bucket"], settings.get("prefix") or settings.get("key"))
        assert place_of_state not in places, f"{file} shares its state"
        places.add(place_of_state)
        if "key" in settings:
            assert settings["encrypt"] is True
            assert settings["use_lockfile"] is True
    for name in WITH_POOLS:
        assert {file.name for file in (ENVIRONMENTS / name).glob("backend.*")} == {
            f"backend.{target(ENVIRONMENTS / name).cloud}.hcl",
            "backend.platform.hcl",
        }


def test_the_platform_reads_the_state_that_the_cluster_writes() -> None:
    for name in WITH_POOLS:
        where = ENVIRONMENTS / name
        state = tfvars.load(where / "platform.tfvars")["cluster_state"]
        cloud = target(where).cloud
        written = tfvars.load(where / f"backend.{cloud}.hcl")
        assert state["backend"] == {"gke": "gcs", "eks": "s3"}[cloud]
        assert state["config"].items() <= written.items()
