"""Terraform or OpenTofu, whichever is there (both where both are), on copies of the tree without lock files.

Providers come from a filesystem mirror where a set-up for one lies beside this checkout, else from the registry. Where
neither can be had, these tests are skipped and say so."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TERRAFORM = ROOT / "terraform"
FACTS = "helm/vllm-speculative/files"
MODULES = sorted(str(path.parent.relative_to(TERRAFORM)) for path in TERRAFORM.rglob("tests") if path.is_dir())

sys.path.insert(0, str(TERRAFORM / "tools"))


def tools() -> list[str]:
    """Commands to test with. A `terraform` that is a link to `tofu` counts once."""
    found: dict[Path, str] = {}
    for name in ("terraform", "tofu"):
        if path := shutil.which(name):
            found.setdefault(Path(path).resolve(), name)
    return list(found.values())


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "slow: minutes of work; run with -m slow")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if "slow" in (config.option.markexpr or ""):
        return
    slow = [item for item in items if item.get_closest_marker("slow")]
    if slow:
        config.hook.pytest_deselected(items=slow)
        items[:] = [item for item in items if item not in slow]


def pytest_report_header() -> list[str]:
    versions = [
        subprocess.run([tool, "version"], capture_output=True, text=True).stdout.splitlines()[0] for tool in tools()
    ]
    return [f"infrastructure: {', '.join(versions) or 'neither Terraform nor OpenTofu'}"]


def _mirror(directory: Path) -> Path | None:
    """The CLI configuration of a provider mirror, made once for all workers; None where there is no set-up for one."""
    setup = next(iter(sorted(ROOT.parent.glob("*/terraform-offline/setup"))), None)
    if setup is None or shutil.which("go") is None:
        return None
    with (directory / "terraform-mirror.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        target = directory / "terraform-mirror"
        if not (target / "terraformrc").exists():
            run = subprocess.run([str(setup), str(target)], capture_output=True, text=True)
            if run.returncode:
                return None
        return target / "terraformrc"


class Copy:
    """A copy of the tree that tests may change. Relative paths are those of terraform/."""

    def __init__(self, directory: Path, environment: dict[str, str]) -> None:
        self.root = directory
        self.terraform = directory / "terraform"
        ignore = shutil.ignore_patterns(".terraform", ".terraform.lock.hcl", "*.tfstate*")
        shutil.copytree(TERRAFORM, self.terraform, ignore=ignore)
        shutil.copytree(ROOT / FACTS, directory / FACTS)
        self.environment = environment

    def run(self, tool: str, module: str, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        where = self.terraform / module
        result = subprocess.run([tool, *arguments], cwd=where, env=self.environment, capture_output=True, text=True)
        if check and result.returncode:
            command = " ".join((tool, *arguments))
            pytest.fail(
                f"{command} in {module}: exit {result.returncode}\n{result.stdout}\n{result.stderr}", pytrace=False
            )
        return result

    def init(self, tool: str, module: str, backend: str = "false") -> None:
        result = self.run(tool, module, "init", "-input=false", "-no-color", f"-backend={backend}", check=False)
        if result.returncode:
            if "registry" in result.stderr and "TF_CLI_CONFIG_FILE" not in self.environment:
                pytest.skip("no provider mirror beside the checkout, and the registry cannot be reached")
            pytest.fail(f"init of {module}\n{result.stdout}\n{result.stderr}", pytrace=False)


@pytest.fixture(scope="session")
def environment(tmp_path_factory: pytest.TempPathFactory, worker: str) -> dict[str, str]:
    base = tmp_path_factory.getbasetemp()
    settings = {name: value for name, value in os.environ.items() if not name.startswith(("TF_", "AWS_", "GOOGLE_"))}
    if mirror := _mirror(base if worker == "master" else base.parent):
        settings["TF_CLI_CONFIG_FILE"] = str(mirror)
    return settings | {"TF_IN_AUTOMATION": "1", "CHECKPOINT_DISABLE": "1"}


@pytest.fixture(scope="session")
def worker(request: pytest.FixtureRequest) -> str:
    return str(getattr(request.config, "workerinput", {}).get("workerid", "master"))


@pytest.fixture
def copy(tmp_path: Path, environment: dict[str, str]) -> Copy:
    return Copy(tmp_path / "copy", environment)


@pytest.fixture(params=tools() or ["none"])
def tool(request: pytest.FixtureRequest) -> str:
    if request.param == "none":
        pytest.skip("neither terraform nor tofu is on PATH")
    return str(request.param)


@pytest.fixture
def one_tool() -> str:
    if not tools():
        pytest.skip("neither terraform nor tofu is on PATH")
    return tools()[0]
