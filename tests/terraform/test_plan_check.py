"""The guard on plans: what went wrong for others is caught as a plan file, and everyday changes pass."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from specdec.cli import main
from specdec.errors import SpecdecError
from specdec.plan_check import NAMES, check, read

PLANS = Path(__file__).parent / "plans"


def errors(name: str, **options: Any) -> set[str]:
    return {f.code for f in check(read(PLANS / f"{name}.json"), **options) if f.severity == "error"}


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as stop:
        main(["plan-check", *arguments])
    return int(stop.value.code or 0)


@pytest.mark.parametrize(
    ("plan", "codes"),
    [
        ("t1-driver-mode-changes", {"SD801", "SD802"}),
        ("t2-driver-left-to-the-api", {"SD801", "SD802"}),
        ("t3-taint-that-gke-added", {"SD801", "SD803"}),
        ("t12-deletion-protection-off", {"SD804"}),
        ("t12-cluster-destroyed", {"SD801", "SD808"}),
        ("public-endpoint", {"SD805"}),
        ("eks-pool-replaced", {"SD801"}),
        ("node-count-changes", set()),
        ("labels-change", set()),
        ("first-apply", set()),
    ],
)
def test_a_plan_is_caught_or_let_through(plan: str, codes: set[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert errors(plan) == codes
    assert run(str(PLANS / f"{plan}.json"), "--format", "json") == (1 if codes else 0)
    found = json.loads(capsys.readouterr().out)
    assert {finding["code"] for finding in found if finding["severity"] == "error"} == codes


def test_a_replacement_says_what_causes_it() -> None:
    finding = check(read(PLANS / "t1-driver-mode-changes.json"))[0]
    assert finding.code == "SD801"
    assert finding.resource == 'module.gpu_pool["h100"].google_container_node_pool.this'
    assert "gpu_driver_version" in finding.message
    assert "allow_gpu_pool_replacement" in finding.fix


def test_an_allowed_replacement_is_a_warning(tmp_path: Path) -> None:
    assert errors("t1-driver-mode-changes", allow_gpu_pool_replacement=True) == set()
    document = json.loads((PLANS / "t1-driver-mode-changes.json").read_text())
    document["variables"]["allow_gpu_pool_replacement"]["value"] = True
    (tmp_path / "plan.json").write_text(json.dumps(document))
    findings = check(read(tmp_path / "plan.json"))
    assert {(f.code, f.severity) for f in findings} == {("SD801", "warning"), ("SD802", "warning")}


def test_an_allowed_replacement_of_pools_does_not_allow_the_cluster_to_go() -> None:
    assert errors("t12-cluster-destroyed", allow_gpu_pool_replacement=True) == {"SD808"}
    assert errors("t12-cluster-destroyed", allow=["SD801", "SD808"]) == set()


def with_backend(tmp_path: Path, backend: dict[str, Any]) -> set[str]:
    (tmp_path / ".terraform").mkdir(exist_ok=True)
    (tmp_path / ".terraform/terraform.tfstate").write_text(json.dumps({"version": 3, "backend": backend}))
    return {f.code for f in check(read(PLANS / "first-apply.json", tmp_path))}


@pytest.mark.parametrize(
    ("backend", "codes"),
    [
        ({"type": "gcs", "config": {"bucket": "states"}}, set()),
        ({"type": "s3", "config": {"bucket": "states", "encrypt": True, "use_lockfile": True}}, set()),
        ({"type": "s3", "config": {"bucket": "states", "encrypt": True, "dynamodb_table": "locks"}}, set()),
        ({"type": "s3", "config": {"bucket": "states", "encrypt": None, "use_lockfile": True}}, {"SD806"}),
        ({"type": "s3", "config": {"bucket": "states", "encrypt": True}}, {"SD807"}),
        ({"type": "local", "config": {}}, {"SD806"}),
    ],
)
def test_the_state_is_encrypted_and_locked(tmp_path: Path, backend: dict[str, Any], codes: set[str]) -> None:
    assert with_backend(tmp_path, backend) == codes


def changed(tmp_path: Path, plan: str, change: Any) -> list[tuple[str, str]]:
    document = json.loads((PLANS / f"{plan}.json").read_text())
    change(document["resource_changes"])
    (tmp_path / "plan.json").write_text(json.dumps(document))
    return [(f.code, f.severity) for f in check(read(tmp_path / "plan.json"))]


def test_a_public_endpoint_for_one_network_is_the_reviewers_to_judge(tmp_path: Path) -> None:
    def one_network(changes: list[dict[str, Any]]) -> None:
        changes[0]["change"]["after"]["master_authorized_networks_config"] = [
            {"cidr_blocks": [{"cidr_block": "203.0.113.0/24"}]}
        ]

    assert changed(tmp_path, "public-endpoint", one_network) == [("SD805", "warning")]


def test_what_was_so_before_does_not_stop_other_changes(tmp_path: Path) -> None:
    def unprotected_already(changes: list[dict[str, Any]]) -> None:
        for state in ("before", "after"):
            changes[1]["change"][state]["deletion_protection"] = False

    assert changed(tmp_path, "node-count-changes", unprotected_already) == [("SD804", "warning")]


def test_taking_the_protection_off_a_pool_is_caught(tmp_path: Path) -> None:
    def unprotect(changes: list[dict[str, Any]]) -> None:
        changes[0]["change"]["after"]["deletion_policy"] = "DELETE"

    assert changed(tmp_path, "labels-change", unprotect) == [("SD804", "error")]


def test_a_cpu_pool_may_be_replaced(tmp_path: Path) -> None:
    def no_gpus(changes: list[dict[str, Any]]) -> None:
        for state in ("before", "after"):
            changes[0]["change"][state]["node_config"][0]["guest_accelerator"] = []

    assert changed(tmp_path, "t1-driver-mode-changes", no_gpus) == []


def test_github_annotations_have_no_line_breaks(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(str(PLANS / "t3-taint-that-gke-added.json"), "--format", "github") == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines
    assert all(line.startswith("::error file=") and "title=SD80" in line for line in lines)


def test_people_see_a_summary(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(str(PLANS / "node-count-changes.json")) == 0
    assert capsys.readouterr().out == "0 errors, 0 warnings\n"


@pytest.mark.parametrize(
    "text", ["", "not json", "[]", '{"format_version": 1}', '{"format_version": "1.2", "resource_changes": [1]}']
)
def test_what_is_no_plan_is_bad_input(tmp_path: Path, text: str) -> None:
    file = tmp_path / "plan.json"
    file.write_text(text)
    with pytest.raises(SpecdecError) as problem:
        read(file)
    assert problem.value.code == "not-a-plan"
    assert problem.value.exit_code == 2
    assert "terraform show -json" in (problem.value.fix or "")


def test_a_missing_plan_and_an_unknown_code_are_bad_input(tmp_path: Path) -> None:
    assert run(str(tmp_path / "none.json")) == 2
    assert run(str(PLANS / "first-apply.json"), "--allow", "SD999") == 2


def test_every_code_is_in_the_eight_hundreds() -> None:
    assert all(code.startswith("SD8") for code in NAMES)
    assert len(set(NAMES.values())) == len(NAMES)
