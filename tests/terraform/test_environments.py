"""What Terraform makes for an environment is what the chart asks for there: labels, taints, GPUs, storage, account."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT, Copy
from specdec import environments, helm
from specdec.manifests import engines, parse
from test_operator_values import outputs

ENVIRONMENTS = ROOT / "environments"
CLOUDS = {"gke": "google", "eks": "aws"}
WITH_POOLS = sorted(path.parent.name for path in ENVIRONMENTS.glob("*/terraform.tfvars"))

# The least that a mocked provider has to give for outputs to be computed.
MOCKS = {
    "google": """
mock_provider "google" {
  mock_resource "google_container_cluster" {
    defaults = { master_version = "1.33.4-gke.1000000" }
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

UNITS = {"": 1, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}


def gib(quantity: str) -> float:
    number, unit = re.fullmatch(r"([\d.]+)(\w*)", quantity).groups()  # type: ignore[union-attr]
    return float(number) * UNITS[unit] / 2**30


def root_of(name: str) -> str:
    """The root that an environment's variables are for: a backend configuration is named after it."""
    return next(root for root in CLOUDS if (ENVIRONMENTS / name / f"backend.{root}.hcl").exists())


def pools_of(copy: Copy, tool: str, name: str) -> dict[str, Any]:
    """Output gpu_pools of the environment's cluster root."""
    root = root_of(name)
    tests = copy.terraform / root / "tests"
    for file in tests.iterdir():
        file.unlink()
    (tests / "environment.tftest.hcl").write_text(MOCKS[CLOUDS[root]] + 'run "environment" {}\n')
    copy.init(tool, root)
    variables = ENVIRONMENTS / name / "terraform.tfvars"
    log = copy.run(tool, root, "test", "-json", "-verbose", f"-var-file={variables}").stdout
    return dict(outputs(log)["gpu_pools"])


def wanted(name: str) -> list[dict[str, Any]]:
    """What each engine of the environment's rendered chart asks of its node."""
    where = environments.load(name)
    manifests = parse(helm.render(where.values, [], where.release, where.namespace), name)
    asks = []
    for engine in engines(manifests):
        pod = engine.pod_spec
        volumes = [volume.get("emptyDir") or {} for volume in pod.get("volumes") or []]
        on_disk = [
            volume["sizeLimit"] for volume in volumes if volume.get("medium") != "Memory" and "sizeLimit" in volume
        ]
        asks.append(
            {
                "name": engine.name,
                "accelerator": engine.accelerator,
                "selector": pod.get("nodeSelector") or {},
                "tolerations": pod.get("tolerations") or [],
                "gpus": engine.gpus,
                "replicas": engine.replicas,
                "storage": sum(map(gib, on_disk)),
                "service_account": pod.get("serviceAccountName"),
            }
        )
    return [ask for ask in asks if ask["gpus"]]


def tolerates(tolerations: list[dict[str, Any]], taint: dict[str, str]) -> bool:
    return any(
        toleration.get("key") in (taint["key"], None)
        and toleration.get("effect") in (taint["effect"], None)
        and (toleration.get("operator") == "Exists" or toleration.get("value") == taint["value"])
        for toleration in tolerations
    )


def misfits(ask: dict[str, Any], pool: dict[str, Any]) -> list[str]:
    """Why an engine cannot run on a pool's nodes; none if it can."""
    found = [
        f"label {key}={value}, the pool has {pool['node_labels'].get(key)}"
        for key, value in ask["selector"].items()
        if pool["node_labels"].get(key) != value
    ]
    found += [f"taint {taint['key']}" for taint in pool["taints"] if not tolerates(ask["tolerations"], taint)]
    if ask["accelerator"] != pool["accelerator"]:
        found.append(f"accelerator {ask['accelerator']}, the pool has {pool['accelerator']}")
    if ask["gpus"] > pool["gpus_per_node"]:
        found.append(f"{ask['gpus']} GPUs, a node has {pool['gpus_per_node']}")
    on_node = max(1, min(ask["replicas"], pool["gpus_per_node"] // max(1, ask["gpus"])))
    # GKE and kubelet keep a tenth for themselves.
    if on_node * ask["storage"] > 0.9 * pool["ephemeral_storage_gib"]:
        found.append(f"{on_node} × {ask['storage']:.0f} GiB of storage, a node has {pool['ephemeral_storage_gib']}")
    return found


@pytest.mark.parametrize("name", WITH_POOLS)
def test_the_engines_of_an_environment_fit_its_pools(copy: Copy, one_tool: str, name: str) -> None:
    pools, asks = pools_of(copy, one_tool, name), wanted(name)
    assert asks, f"{name} has pools and no engine that wants GPUs"
    for ask in asks:
        tried = {pool: misfits(ask, pools[pool]) for pool in pools}
        fitting = [pool for pool, problems in tried.items() if not problems]
        assert fitting, f"{ask['name']} fits no pool: {json.dumps(tried, indent=2)}"
        assert ask["replicas"] * ask["gpus"] <= sum(pools[pool]["max_gpus"] for pool in fitting)


@pytest.mark.parametrize("name", WITH_POOLS)
def test_pods_that_may_read_the_token_are_the_engines(name: str) -> None:
    text = (ENVIRONMENTS / name / "terraform.tfvars").read_text()
    named = set(re.findall(r'"[a-z0-9-]+/([a-z0-9-]+)"', text)) | set(
        re.findall(r'service_account\s*=\s*"([^"]+)"', text)
    )
    assert named == {ask["service_account"] for ask in wanted(name)}


def test_every_environment_on_gpus_has_its_pools() -> None:
    """And the local one, which has none, has no Terraform."""
    on_gpus = {path.parent.name for path in ENVIRONMENTS.glob("*/values.yaml") if wanted(path.parent.name)}
    assert on_gpus == set(WITH_POOLS)


FITTING: dict[str, Any] = {
    "name": "engine",
    "accelerator": "h100-80gb",
    "selector": {"cloud.google.com/gke-accelerator": "nvidia-h100-80gb"},
    "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
    "gpus": 2,
    "replicas": 4,
    "storage": 150.0,
    "service_account": "speculative",
}
POOL: dict[str, Any] = {
    "accelerator": "h100-80gb",
    "node_labels": {"cloud.google.com/gke-accelerator": "nvidia-h100-80gb"},
    "taints": [{"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}],
    "gpus_per_node": 8,
    "ephemeral_storage_gib": 6000,
}


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"selector": {"cloud.google.com/gke-accelerator": "nvidia-l4"}}, "label"),
        ({"tolerations": []}, "taint"),
        ({"tolerations": [{"key": "nvidia.com/gpu", "operator": "Equal", "value": "true"}]}, "taint"),
        ({"accelerator": "l4"}, "accelerator"),
        ({"gpus": 16}, "GPUs"),
        ({"storage": 1500.0}, "storage"),
    ],
)
def test_a_misfit_is_named(change: dict[str, Any], word: str) -> None:
    assert misfits(FITTING, POOL) == []
    problems = misfits(FITTING | change, POOL)
    assert len(problems) == 1
    assert word in problems[0]


def test_backends_are_named_for_every_root_and_never_shared() -> None:
    places = set()
    for file in sorted(Path(ENVIRONMENTS).glob("*/backend.*.hcl")):
        settings = dict(re.findall(r'^(\w+)\s*=\s*"?([^"\n]+)"?', file.read_text(), re.MULTILINE))
        place = (settings["bucket"], settings.get("prefix") or settings.get("key"))
        assert place not in places, f"{file} shares its state"
        places.add(place)
        if "key" in settings:
            assert settings["encrypt"] == "true"
            assert settings["use_lockfile"] == "true"
    for name in WITH_POOLS:
        assert {file.name for file in (ENVIRONMENTS / name).glob("backend.*")} == {
            f"backend.{root_of(name)}.hcl",
            "backend.platform.hcl",
        }
