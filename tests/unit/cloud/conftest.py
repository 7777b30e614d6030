"""An environment with Terraform in a scratch folder, a fake terraform on PATH, and the driver that runs it."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from specdec import helm
from specdec.deploy.cloud.target import Target
from specdec.environments import Environment

from . import driver

HERE = Path(__file__).parent
ROOT = HERE.parents[2]

VALUES = """
cloud: gke
accelerator: {type: l4, machineType: g2-standard-12}
engine:
  version: 0.32.0
  model: {name: meta-llama/Llama-3.1-8B-Instruct, revision: 0e9e39f249a16976918f6564b8830bc894c89659}
  quantization: fp8
  maxModelLen: 8192
speculative: {method: ngram, numTokens: 3}
huggingFace: {tokenSecret: {name: hf-token}}
"""
GKE = """
project_id = "my-project"
name       = "inference-test"
region     = "us-central1"
gpu_pools = {
  l4 = {
    machine_type = "g2-standard-12"
    zones        = ["us-central1-a", "us-central1-b"]
    provisioning = "spot"
    max_nodes    = 2
  }
}
"""
EKS = """
region = "us-east-1"
name   = "inference-test"
zones  = ["us-east-1a", "us-east-1b"]
gpu_pools = { a10g = { machine_type = "g5.12xlarge", gpus_per_engine = 4 } }
"""
STATE = 'bucket = "test-state"\n'
S3 = STATE + 'region = "us-east-1"\nencrypt = true\nuse_lockfile = true\n'


def environment(folder: Path, cloud: str, name: str = "test") -> Path:
    """A folder for an environment on a cloud."""
    where = folder / name
    where.mkdir(parents=True)
    gke = cloud == "gke"
    values = VALUES if gke else VALUES.replace("cloud: gke", "cloud: eks").replace("type: l4", "type: a10g").replace(
        "g2-standard-12", "g5.12xlarge").replace("quantization: fp8", "tensorParallelSize: 4")  # fmt: skip
    (where / "values.yaml").write_text(values)
    (where / "terraform.tfvars").write_text(GKE if gke else EKS)
    key = "prefix" if gke else "key"
    for root in (cloud, "platform"):
        (where / f"backend.{root}.hcl").write_text((STATE if gke else S3) + f'{key} = "test/{root}"\n')
    return where


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the environments; `test` is on GKE, `aws` on EKS."""
    folder = tmp_path / "environments"
    environment(folder, "gke")
    environment(folder, "eks", "aws")
    monkeypatch.setenv("SPECDEC_ENVIRONMENTS", str(folder))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name in ("RELEASE", "NAMESPACE", "KUBECONTEXT", "SPECDEC_STATE"):
        monkeypatch.delenv(name, raising=False)
    return folder


@pytest.fixture
def targets(folder: Path) -> Callable[[str], Target]:
    """The target of an environment, read anew."""

    def read(name: str = "test") -> Target:
        target = Target.of(Environment.named(name))
        assert target is not None
        return target

    assert folder.is_dir()
    return read


class Child:
    """A run in a process of its own: a fork, so that nothing has to be loaded again."""

    def __init__(self, folder: Path, settings: dict[str, str], arguments: tuple[str, str, dict[str, Any]]) -> None:
        self.out, self.err = (Path(tempfile.mkstemp(dir=folder)[1]) for _ in range(2))
        self.pid = os.fork()
        if self.pid == 0:
            status = 1
            try:
                for number, file in ((1, self.out), (2, self.err)):
                    os.dup2(os.open(file, os.O_WRONLY | os.O_APPEND), number)
                sys.stdout, sys.stderr = open(1, "w", closefd=False), open(2, "w", closefd=False)  # noqa: SIM115
                os.environ.update(settings)
                status = driver.main(*arguments)
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(status)

    def send_signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def hear(self, word: str) -> None:
        """Wait until it has said that."""
        deadline = time.monotonic() + 300
        while word not in self.err.read_text():
            assert time.monotonic() < deadline, self.err.read_text()
            time.sleep(0.02)

    def end(self) -> tuple[int, Any, str]:
        """Exit status (negative: a signal), the JSON document, and what was said meanwhile."""
        status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        out = self.out.read_text()
        return status, json.loads(out) if out.strip() else None, self.err.read_text()


@dataclass
class World:
    """The fake cloud's folder, and `specdec` against it."""

    folder: Path
    environments: Path
    settings: dict[str, str]

    def script(self, **behaviour: Any) -> None:
        (self.folder / "script.json").write_text(json.dumps(behaviour))

    def read(self, name: str, default: Any = None) -> Any:
        file = self.folder / name
        return json.loads(file.read_text()) if file.exists() else default

    @property
    def made(self) -> list[str]:
        """Every resource that was ever made, in order."""
        return list(self.read("cloud.json", {"made": []})["made"])

    @property
    def there(self) -> list[str]:
        return sorted(self.read("cloud.json", {"there": []})["there"])

    @property
    def journal(self) -> list[str]:
        file = self.folder / "journal"
        return file.read_text().splitlines() if file.exists() else []

    def start(self, what: str = "deploy", options: dict[str, Any] | None = None, **more: str) -> Child:
        return Child(self.folder, self.settings | more, (what, "test", options or {}))

    def run(self, what: str = "deploy", options: dict[str, Any] | None = None, **more: str) -> tuple[int, Any, str]:
        """Exit status, the JSON document, and what was said meanwhile."""
        return self.start(what, options, **more).end()

    def paused(self) -> int:
        """Wait until the fake terraform has paused; its process."""
        deadline = time.monotonic() + 300
        while not (self.folder / "paused").exists():
            assert time.monotonic() < deadline, self.journal
            time.sleep(0.02)
        time.sleep(0.05)
        return int((self.folder / "paused").read_text())

    def go(self) -> None:
        (self.folder / "go").touch()


@pytest.fixture(scope="session")
def manifests(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What the chart makes of the values."""
    values = tmp_path_factory.mktemp("values") / "values.yaml"
    values.write_text(VALUES)
    return helm.render([values])


@pytest.fixture
def world(tmp_path: Path, folder: Path, manifests: str) -> World:
    """A fake terraform first on PATH."""
    tools, cloud = tmp_path / "bin", tmp_path / "cloud"
    tools.mkdir()
    cloud.mkdir()
    (cloud / "manifests.yaml").write_text(manifests)
    for name, text in (
        ("terraform", f'exec "{sys.executable}" -I -S "{HERE / "fake_terraform.py"}" "$@"'),
        ("gke-gcloud-auth-plugin", "exit 1"),
    ):
        (tools / name).write_text(f"#!/bin/sh\n{text}\n")
        (tools / name).chmod(0o755)
    own = {"PATH": f"{tools}:{os.environ['PATH']}", "FAKE_CLOUD": str(cloud), "PYTHONPATH": str(ROOT / "scripts")}
    settings = {**os.environ, **own}
    return World(cloud, folder, settings)
