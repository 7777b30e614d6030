"""`specdec drift`: a plan that nobody applies, told apart from the one that waits for its approval."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from specdec.cli import main
from workflows import ROOT

PLANS = ROOT / "tests/terraform/plans"
# What the deploy asks of Terraform, answered from a recorded plan. It writes down every command.
TERRAFORM = """\
#!/usr/bin/env bash
echo "$@" >>"{said}"
case "$1" in
  version) echo '{{"terraform_version": "1.11.4"}}' ;;
  init) [ -z "${{FAILS:-}}" ] || {{ echo "Error: Failed to get existing workspaces: $FAILS"; exit 1; }} ;;
  plan)
    for word in "$@"; do case "$word" in -out=*) touch "${{word#-out=}}" ;; esac; done
    echo '{{"type":"change_summary","changes":{{"add":0,"change":1,"remove":0}},"@message":"Plan"}}' ;;
  show) cat "{plan}" ;;
esac
"""


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SPECDEC_STATE", str(tmp_path / "state"))
    return tmp_path / "state"


def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plan: Path) -> Path:
    from specdec.deploy.cloud import terraform

    said = tmp_path / "said"
    tool = tmp_path / "bin/terraform"
    tool.parent.mkdir()
    tool.write_text(TERRAFORM.format(said=said, plan=plan))
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tool.parent}:{os.environ['PATH']}")
    terraform.version.cache_clear()
    return said


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as stop:
        main(["drift", *arguments])
    captured = capsys.readouterr()
    return int(stop.value.code or 0), captured.out, captured.err


def quiet_plan(tmp_path: Path) -> Path:
    file = tmp_path / "nothing.json"
    file.write_text(json.dumps({"format_version": "1.2", "resource_changes": [], "variables": {}}))
    return file


def test_a_cloud_as_it_was_applied_is_clean(
    tmp_path: Path, state: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    said = fake(tmp_path, monkeypatch, quiet_plan(tmp_path))
    waiting = state / "prod/plans/gke.tfplan"
    waiting.parent.mkdir(parents=True)
    waiting.write_text("approved")
    code, out, _ = run(capsys, "prod", "--format", "json")
    assert code == 0
    document = json.loads(out)
    assert document["drift"] is False
    assert set(document["roots"]) == {"gke", "platform"}
    assert waiting.read_text() == "approved"
    assert not any(line.startswith("apply") for line in said.read_text().splitlines())


@pytest.mark.parametrize(
    ("plan", "address"),
    [
        ("t3-taint-that-gke-added", 'module.gpu_pool["h100"].google_container_node_pool.this'),
        ("node-count-changes", 'module.gpu_pool["h100"].google_container_node_pool.this'),
    ],
)
def test_what_somebody_changed_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: Path, capsys: pytest.CaptureFixture[str],
    plan: str, address: str,
) -> None:  # fmt: skip
    fake(tmp_path, monkeypatch, PLANS / f"{plan}.json")
    code, out, _ = run(capsys, "prod", "--no-platform")
    assert code == 1
    assert address in out
    assert "changed outside Terraform" in out
    assert (state / "prod/drift/gke.tfplan").exists()


def test_a_missing_bucket_is_an_error_and_no_drift(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fake(tmp_path, monkeypatch, quiet_plan(tmp_path))
    monkeypatch.setenv("FAILS", "querying Cloud Storage failed: storage: bucket doesn't exist")
    code, _, err = run(capsys, "prod", "--no-platform", "--format", "json")
    assert code == 2
    assert json.loads(err.splitlines()[-1])["error"]["code"] == "SD851"
    assert not (state / "prod/drift/gke.json").exists()


@pytest.mark.parametrize(("name", "code"), [("local", "SD888"), ("prdo", "unknown-environment")])
def test_an_environment_without_a_cloud_cannot_drift(name: str, code: str, capsys: pytest.CaptureFixture[str]) -> None:
    status, _, err = run(capsys, name, "--format", "json")
    assert status == 2
    assert json.loads(err.splitlines()[-1])["error"]["code"] == code
