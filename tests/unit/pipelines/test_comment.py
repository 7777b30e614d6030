"""The comment on a pull request tells everything that a reviewer has to know, and nothing that breaks its tables."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from specdec import environments, helm, plan_check
from specdec.cli import main
from specdec.comment import MARKER, Sources, gather, render
from specdec.comment.render import LIMIT, cell
from specdec.errors import SpecdecError
from specdec.rules.model import Finding
from workflows import ROOT

PLANS = ROOT / "tests/terraform/plans"


def comment(name: str = "prod", **options: Any) -> str:
    return render(gather(environments.load(name), **options))


@pytest.fixture(scope="module")
def sources() -> Sources:
    return gather(environments.load("prod"), [PLANS / "t1-driver-mode-changes.json"])


@pytest.mark.parametrize("plan", sorted(file.stem for file in PLANS.glob("*.json")))
def test_every_recorded_plan_makes_a_comment(plan: str) -> None:
    text = comment(plans=[PLANS / f"{plan}.json"])
    assert text.startswith(MARKER.format(environment="prod") + "\n## prod: ")
    findings = plan_check.check(plan_check.read(PLANS / f"{plan}.json"))
    errors = [f for f in findings if f.severity == "error"]
    assert ("needs a look" in text.splitlines()[1]) == bool(errors)
    assert all(f"| {f.code} {f.severity} |" in text for f in findings)
    assert "### Memory and speed" in text
    assert "$88.49 an hour" in text
    for line in text.splitlines():
        if line.startswith("|"):
            assert line.endswith("|"), line


def test_what_is_destroyed_comes_first_and_says_why(sources: Sources) -> None:
    text = render(sources)
    row = next(line for line in text.splitlines() if line.startswith("| **replace**"))
    assert "google_container_node_pool.this" in row
    assert "gpu_driver_version" in row
    assert "1 to add, 0 to change, 1 to destroy" in text


def test_a_node_count_change_names_the_attribute() -> None:
    text = comment(plans=[PLANS / "node-count-changes.json"])
    assert "0 to add, 1 to change, 0 to destroy" in text
    assert "| change |" in text
    assert "`autoscaling`" in text


def test_a_code_that_is_allowed_does_not_stop_it() -> None:
    text = comment(plans=[PLANS / "t12-deletion-protection-off.json"], allow=["SD804"])
    assert "nothing stands against it" in text
    assert "SD804 warning" in text


def test_what_was_not_looked_at_is_said(sources: Sources) -> None:
    assert "_Skipped: manifests: nothing to compare with._" in render(sources)
    assert "_Skipped: Terraform: no plan was made" in comment()
    assert "Terraform" not in comment("local")


def test_an_upgrade_is_compared_with_what_is_there(tmp_path: Path) -> None:
    where = environments.load("prod")
    old = tmp_path / "old.yaml"
    old.write_text(helm.render(where.values, ["speculative.numTokens=2"], where.release, where.namespace))
    text = comment(against=old)
    assert "- `speculative`: `--speculative-config.num_speculative_tokens` `2` → `4`" in text
    assert "- **risk**: engine speculative: its 4 pods restart and load their weights again" in text
    assert text.count("<details>") == text.count("</details>") == 1


def test_an_engine_that_does_not_fit_is_told_with_its_reason(tmp_path: Path) -> None:
    values = tmp_path / "values.yaml"
    text = environments.load("prod").values[0].read_text()
    values.write_text(text.replace("tensorParallelSize: 2", "tensorParallelSize: 1"))
    where = replace(environments.load("prod"), values=[values])
    made = render(gather(where))
    assert "**does not fit**" in made
    assert "needs a look before it is applied" in made
    assert "\n- `speculative`: " in made


def test_an_engine_that_will_not_start_stops_the_change(sources: Sources) -> None:
    from dataclasses import replace

    quiet = replace(sources, guard=[], rules=[], disagreement=[])
    assert not quiet.is_refused
    refused = replace(quiet, engines=[{**engine, "starts": False} for engine in quiet.engines])
    assert refused.is_refused
    assert "fits, **will not start**" in render(refused)
    assert "will not start" not in render(quiet)


def test_values_that_mean_another_machine_than_the_pools_are_told(tmp_path: Path) -> None:
    values = tmp_path / "values.yaml"
    text = environments.load("prod").values[0].read_text()
    values.write_text(text.replace("machineType: a3-highgpu-8g", "machineType: a3-megagpu-8g"))
    where = replace(environments.load("prod"), values=[values])
    made = render(gather(where))
    assert "### Pools and values disagree" in made
    assert "SD880" in made
    assert "it selects" in made
    assert "needs a look before it is applied" in made


def test_a_comment_that_would_be_too_long_is_cut_and_still_whole(sources: Sources) -> None:
    finding = sources.guard[0]
    many = [replace(finding, message="x" * 3000, resource=f"r{i}") for i in range(60)]
    text = render(replace(sources, guard=many))
    assert len(text) <= LIMIT + 200
    assert "too long for a comment" in text
    assert text.count("<details>") == text.count("</details>")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a|b", "a\\|b"),
        ("a\nb", "a b"),
        ("<script>", "&lt;script>"),
        ("@somebody", "@\u200bsomebody"),
    ],
)
def test_text_from_elsewhere_stays_in_its_cell_and_calls_nobody(text: str, shown: str) -> None:
    assert cell(text) == shown


def test_findings_of_rules_are_in_it(sources: Sources) -> None:
    found = Finding("SD999", "warning", "f", 1, "Pod/x", "spec", "is odd | very", "make it even")
    text = render(replace(sources, guard=[], rules=[found]))
    assert "### Rules: 0 errors, 1 warnings" in text
    assert "is odd \\| very" in text


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["prdo"], "unknown-environment"),
        (["prod", "--plan", "missing.json"], "unreadable-file"),
        (["prod", "--against", "missing.yaml"], "unreadable-file"),
        (["prod", "--allow", "SD8O4"], "unknown-code"),
    ],
)
def test_bad_input_is_refused(arguments: list[str], code: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["comment", *arguments])
    assert stop.value.code == 2
    assert code in capsys.readouterr().err


def test_something_that_is_no_plan_is_refused(tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_text(json.dumps({"a": 1}))
    with pytest.raises(SpecdecError, match="not a Terraform plan"):
        comment(plans=[tmp_path / "plan.json"])
