"""An environment's replicas against what the GPU pools of its Terraform can hold."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from specdec.cli import main


def validate(capsys: pytest.CaptureFixture[str], *arguments: str, form: str = "json") -> tuple[int, str]:
    with pytest.raises(SystemExit) as stop:
        main(["validate", *arguments, "--format", form])
    return int(str(stop.value.code)), capsys.readouterr().out


def test_more_replicas_than_the_pool_has_gpus_for_is_an_error_at_the_pool(capsys: pytest.CaptureFixture[str]) -> None:
    code, out = validate(capsys, "prod", "--set", "engine.replicas=9")
    (finding,) = json.loads(out)
    assert (code, finding["code"], finding["severity"]) == (1, "SD881", "error")
    assert finding["message"] == "9 replicas of engine speculative, h100 can hold 8"
    lines = Path(finding["file"]).read_text(encoding="utf-8").splitlines()
    assert "max_nodes" in lines[finding["line"] - 1]


def test_as_many_as_it_has_are_fine(capsys: pytest.CaptureFixture[str]) -> None:
    assert validate(capsys, "prod", "--set", "engine.replicas=8") == (0, "[]\n")


def test_a_machine_that_no_pool_has(capsys: pytest.CaptureFixture[str]) -> None:
    code, out = validate(capsys, "prod", "--set", "accelerator.machineType=a3-megagpu-8g")
    assert (code, json.loads(out)[0]["code"]) == (1, "SD880")


def test_an_autoscaler_that_may_ask_for_more_is_a_warning(capsys: pytest.CaptureFixture[str]) -> None:
    scaled = ["--set", "autoscaling.kind=keda,autoscaling.prometheus.serverAddress=http://p:9090"]
    code, out = validate(capsys, "prod", *scaled, "--set", "autoscaling.maxReplicas=12,engine.replicas=1")
    found = [finding for finding in json.loads(out) if finding["code"] == "SD881"]
    assert (code, [finding["severity"] for finding in found]) == (0, ["warning"])
    assert found[0]["message"].startswith("the autoscaler may ask for 12 replicas")
    _, out = validate(capsys, "prod", *scaled, "--set", "autoscaling.maxReplicas=8,engine.replicas=1")
    assert "SD881" not in out


@pytest.mark.parametrize("form", ["text", "sarif", "github", "junit"])
def test_every_form_of_report_has_it(capsys: pytest.CaptureFixture[str], form: str) -> None:
    code, out = validate(capsys, "prod", "--set", "engine.replicas=9", form=form)
    assert code == 1
    assert "SD881" in out
    if form == "junit":
        assert ElementTree.fromstring(out.partition("\n")[2]).get("failures") == "1"


def test_a_router_without_replicas_is_refused_by_the_schema(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["validate", "prod", "--set", "router.replicas=0"])
    assert stop.value.code == 2
    assert "router.replicas: is 0, and has to be 1 or more" in capsys.readouterr().err
