"""What people type: bad input is refused before anything happens, and `status` shows how far it came."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from specdec import cli
from specdec.deploy import overview
from specdec.deploy.cloud.codes import NAMES
from specdec.errors import FoundWrong

from .conftest import ROOT, World


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as stop:
        cli.main(list(arguments))
    return int(stop.value.code or 0)


@pytest.fixture
def here(world: World, monkeypatch: pytest.MonkeyPatch) -> World:
    """The fake terraform for commands in this process."""
    for name in ("PATH", "FAKE_CLOUD"):
        monkeypatch.setenv(name, world.settings[name])
    return world


def error(capsys: pytest.CaptureFixture[str]) -> dict[str, str]:
    return dict(json.loads(capsys.readouterr().err)["error"])


@pytest.mark.parametrize("command", ["deploy", "destroy"])
def test_a_stage_misspelt_gets_the_nearest(here: World, capsys: pytest.CaptureFixture[str], command: str) -> None:
    stage = {"deploy": "aply", "destroy": "platfrom"}[command]
    assert run(command, "test", "--yes", "--from", stage, "--format", "json") == 2
    assert error(capsys)["fix"] == {"deploy": "did you mean apply?", "destroy": "did you mean platform?"}[command]
    assert here.journal == []


def test_a_deploy_ends_where_something_was_made(here: World, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("deploy", "test", "--yes", "--to", "guard", "--format", "json") == 2
    assert error(capsys)["code"] == "unknown-stage"
    assert here.journal == []


@pytest.mark.parametrize(
    "option", [["--to", "apply"], ["--plan-only"], ["--from", "apply"], ["--allow", "SD804"], ["--unlock", "1"]]
)
def test_terraforms_options_need_terraform(here: World, capsys: pytest.CaptureFixture[str], option: list[str]) -> None:
    assert run("deploy", "test", "--context", "mine", *option, "--format", "json") == 2
    assert "a context was named" in error(capsys)["message"]
    (here.environments / "test" / "terraform.tfvars").unlink()
    assert run("deploy", "test", *option, "--format", "json") == 2
    assert "test has no terraform.tfvars" in error(capsys)["message"]


def test_a_cluster_of_ones_own_leaves_terraform_out(
    here: World, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    assert run("deploy", "test", "--yes", "--context", "mine", "--format", "json") == 2
    assert error(capsys)["code"] == "kubeconfig"
    assert here.journal == []


def test_a_destroy_without_a_yes_is_refused_in_a_pipeline(here: World, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("destroy", "test", "--format", "json") == 2
    assert error(capsys)["code"] == "not-confirmed"
    assert here.journal == []


def test_a_misspelt_environment_is_refused_with_the_nearest(here: World, capsys: pytest.CaptureFixture[str]) -> None:
    assert here
    assert run("deploy", "tset", "--yes", "--format", "json") == 2
    assert error(capsys)["fix"] == "did you mean test?"


def test_status_of_what_was_never_deployed_says_so(here: World, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("status", "test", "--format", "json") == 1
    found = json.loads(capsys.readouterr().out)
    assert found["reasons"] == ["not deployed: specdec deploy test"]
    assert {stage["state"] for stage in found["infrastructure"]["stages"]} == {"not run"}
    assert found["infrastructure"]["price"]["per_hour"] == 0.4
    assert here.made == []


def test_status_shows_stages_resources_and_price(here: World, capsys: pytest.CaptureFixture[str]) -> None:
    here.script(fail_at="module.gpu_operator.helm_release.this[0]", error="context deadline exceeded")
    here.run()
    (here.environments / "test" / ".specdec" / "kubeconfig").unlink()
    assert run("status", "test", "--format", "json") == 1
    found = json.loads(capsys.readouterr().out)["infrastructure"]
    assert found["stopped_at"] == "platform"
    assert {stage["name"]: stage["state"] for stage in found["stages"]}["apply"] == "done"
    assert found["resources"] == {
        "google_compute_network": 1, "google_container_cluster": 1, "google_container_node_pool": 1, "helm_release": 1,
    }  # fmt: skip
    assert run("status", "test") == 1
    shown = capsys.readouterr().out
    assert "inference-test in us-central1 (gke)" in shown
    assert "1 × helm_release" in shown


def test_status_of_a_cluster_that_does_not_answer_still_shows_what_terraform_made(
    here: World, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def silent(*_: object) -> None:
        raise FoundWrong("the cluster at https://inference-test.gke.goog does not answer", code="cluster-unreachable")

    here.run()
    monkeypatch.setattr(overview, "of", silent)
    assert run("status", "test", "--format", "json") == 1
    found = json.loads(capsys.readouterr().out)
    assert found["reasons"] == ["the cluster at https://inference-test.gke.goog does not answer"]
    assert found["infrastructure"]["resources"]["google_container_cluster"] == 1


def test_every_code_is_used_explained_and_nobody_elses() -> None:
    scripts = ROOT / "scripts" / "specdec"
    text = (ROOT / "docs" / "deploy.md").read_text()
    assert set(re.findall(r"^\| (SD\d{3}) ", text, re.MULTILINE)) == set(NAMES)
    used = set()
    for file in scripts.rglob("*.py"):
        found = set(re.findall(r'"(SD8[5-7]\d)"', file.read_text()))
        if file.name == "codes.py":
            continue
        assert "cloud" in file.parts or not found, file
        used |= found
    assert used == set(NAMES)
