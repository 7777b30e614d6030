"""Every module and root validates, formats, and passes its own tests; every example validates."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from hcl import blocks

from .conftest import MODULES, TERRAFORM, Copy

EXAMPLES = sorted(str(path.parent.relative_to(TERRAFORM)) for path in TERRAFORM.glob("modules/*/examples/*/main.tf"))


@pytest.mark.parametrize("module", MODULES)
def test_a_module_passes_its_own_tests(copy: Copy, tool: str, module: str) -> None:
    copy.init(tool, module)
    copy.run(tool, module, "validate", "-no-color")
    result = copy.run(tool, module, "test", "-no-color")
    runs = sum(len(blocks(file.read_text(), "run")) for file in (TERRAFORM / module / "tests").glob("*.tftest.hcl"))
    assert f"Success! {runs} passed, 0 failed." in result.stdout


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_is_valid(copy: Copy, one_tool: str, example: str) -> None:
    copy.init(one_tool, example)
    copy.run(one_tool, example, "validate", "-no-color")


def test_every_module_has_an_example() -> None:
    assert {example.split("/")[1] for example in EXAMPLES} == {path.name for path in (TERRAFORM / "modules").iterdir()}


@pytest.mark.parametrize("module", MODULES)
def test_every_variable_and_output_is_exercised_and_described(module: str) -> None:
    source = "\n".join(file.read_text() for file in (TERRAFORM / module).glob("*.tf"))
    tests = "\n".join(file.read_text() for file in (TERRAFORM / module / "tests").glob("*.tftest.hcl"))
    for variable in blocks(source, "variable"):
        name = variable.labels[0]
        assert re.search(rf"^\s+{name}\s*=", tests, re.MULTILINE), f"no test of {module} sets {name}"
        assert (variable.attribute("description") or "").strip('"'), f"{name} says nothing of itself"
        assert variable.attribute("type"), f"{name} has no type"
    for output in blocks(source, "output"):
        name = output.labels[0]
        assert re.search(rf"\boutput\.{name}\b", tests), f"no test of {module} looks at output {name}"
        assert (output.attribute("description") or "").strip('"'), f"{name} says nothing of itself"


@pytest.mark.parametrize("module", MODULES)
def test_providers_are_bounded(module: str) -> None:
    required = blocks((TERRAFORM / module / "versions.tf").read_text(), "terraform")[0]
    versions = dict(re.findall(r'source\s*=\s*"hashicorp/(\w+)"\s*version\s*=\s*"([^"]+)"', required.body))
    expected = {
        "google": ">= 7.45, < 8",
        "aws": ">= 5.100, < 6",
        "helm": ">= 3.1, < 4",
        "kubernetes": ">= 3.0, < 4",
    }
    assert versions
    assert versions == {name: expected[name] for name in versions}


def test_no_lock_file_was_made_against_stand_ins() -> None:
    """A lock that the registry made has its signed zh: hashes; one that a local mirror made has h1: alone."""
    for lock in TERRAFORM.rglob(".terraform.lock.hcl"):
        for provider in blocks(lock.read_text(), "provider"):
            assert '"zh:' in provider.body, f"{lock}: {provider.labels[0]} was locked against a local mirror"


def test_the_quota_is_there_before_the_operator() -> None:
    source = (TERRAFORM / "modules/gpu-operator/main.tf").read_text()
    release = next(block for block in blocks(source, "resource") if block.labels == ("helm_release", "gpu_operator"))
    assert "kubernetes_resource_quota_v1.critical_pods" in (release.attribute("depends_on") or "")


def test_states_of_cluster_and_platform_are_separate_and_remote() -> None:
    backends = {root: (TERRAFORM / root / "backend.tf").read_text() for root in ("gke", "eks", "platform")}
    assert 'backend "gcs" {}' in backends["gke"]
    assert 'backend "s3" {}' in backends["eks"]
    assert 'backend "gcs" {}' in backends["platform"]
    for root in ("gke", "eks"):
        text = "\n".join(file.read_text() for file in (TERRAFORM / root).glob("*.tf"))
        assert not re.search(r'hashicorp/(helm|kubernetes)"', text), f"{root} needs a cluster to plan a cluster"
    providers = (TERRAFORM / "platform/providers.tf").read_text()
    assert "exec" in providers
    assert not re.search(r"\btoken\s*=\s*data\.", providers)


def test_readmes_are_up_to_date() -> None:
    result = subprocess.run(
        [sys.executable, str(TERRAFORM / "tools/readme.py"), "--check"], capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr
    documented = {str(readme.parent.relative_to(TERRAFORM)) for readme in TERRAFORM.rglob("README.md")}
    assert documented >= set(MODULES)
