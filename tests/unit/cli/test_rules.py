"""Every rule finds its wrong example, leaves its right one alone, and accuses nothing that the chart renders."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from specdec import rules
from specdec.manifests import parse
from specdec.rules import Finding, Rule, docs
from specdec.rules.examples import manifests_of

ROOT = Path(__file__).resolve().parents[3]
RULES = rules.all_rules()
RENDERED = sorted((ROOT / "helm" / "vllm-speculative" / "rendered").glob("*.yaml"))


def codes(findings: list[Finding]) -> set[str]:
    return {finding.code for finding in findings}


def errors(findings: list[Finding]) -> list[str]:
    return [f"{finding.code} {finding.message}" for finding in findings if finding.severity == "error"]


@pytest.mark.parametrize("rule", RULES.values(), ids=lambda rule: f"{rule.code}-{rule.name}")
class TestEachRule:
    def test_finds_its_wrong_example(self, rule: Rule) -> None:
        found = [finding for finding in rules.check(manifests_of(rule.bad)) if finding.code == rule.code]
        assert found, f"{rule.code} is silent on its own wrong example"
        assert all(finding.message and finding.fix and finding.line >= 1 for finding in found)

    def test_leaves_its_right_example_alone(self, rule: Rule) -> None:
        found = rules.check(manifests_of(rule.good))
        assert rule.code not in codes(found)
        assert not errors(found), "a right example breaks another rule"

    def test_is_written_for_people(self, rule: Rule) -> None:
        assert re.fullmatch(r"SD\d{3}", rule.code)
        assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", rule.name)
        assert len(rule.reason) > 40
        assert rule.fix
        assert rule.source

    def test_its_page_is_current(self, rule: Rule) -> None:
        page = ROOT / "docs" / "rules" / f"{rule.code}.md"
        assert page.read_text(encoding="utf-8") == docs.page(rule), "run: specdec rules --write docs/rules"


def test_the_list_of_rules_is_current_and_has_no_page_too_many() -> None:
    folder = ROOT / "docs" / "rules"
    assert (folder / "README.md").read_text(encoding="utf-8") == docs.index()
    assert {page.name for page in folder.glob("*.md")} == set(docs.pages())


def test_names_are_unique() -> None:
    assert len({rule.name for rule in RULES.values()}) == len(RULES) >= 120


def test_there_are_renderings_to_check() -> None:
    assert RENDERED


@pytest.mark.parametrize("file", RENDERED, ids=lambda file: file.stem)
def test_no_rule_accuses_what_the_chart_renders(file: Path) -> None:
    found = rules.check(parse(file.read_text(encoding="utf-8"), file.name))
    assert [f"{finding.line}: {finding.code} {finding.message}" for finding in found] == []


def seed() -> str:
    return (ROOT / "tests" / "data" / "seed-statefulset.yaml").read_text(encoding="utf-8")


class TestTheSeed:
    """The published StatefulSet: right flags for its version, wrong in everything else."""

    def test_what_is_found(self) -> None:
        found = rules.check(parse(seed(), "seed.yaml"))
        assert codes(found) == {"SD401", "SD426", "SD501", "SD701", "SD703", "SD705", "SD708"}

    def test_its_weights_alone_are_more_than_its_gpus_hold(self) -> None:
        on_h100 = seed().replace(
            "    spec:\n      containers",
            "    spec:\n      nodeSelector: {cloud.google.com/gke-accelerator: nvidia-h100-80gb}\n      containers",
        )
        finding = next(finding for finding in rules.check(parse(on_h100, "seed.yaml")) if finding.code == "SD320")
        assert "65.7 GiB of target weights + 7.5 GiB of draft weights" in finding.message
        assert "0.92 x 79.18 = 72.8 GiB" in finding.message

    def test_its_liveness_probe_kills_it_long_before_140_gb_are_there(self) -> None:
        finding = next(finding for finding in rules.check(parse(seed(), "seed.yaml")) if finding.code == "SD401")
        # 141,107,412,992 + 16,060,522,496 bytes at 200 MB/s; 120 s of delay and three failures 10 s apart.
        assert "150 s" in finding.message
        assert "786 s" in finding.message
        assert "146.4 GiB" in finding.message
        assert finding.severity == "error"
        assert seed().splitlines()[finding.line - 1].strip() == "livenessProbe:"

    def test_remote_code_is_reported_at_its_line(self) -> None:
        finding = next(finding for finding in rules.check(parse(seed(), "seed.yaml")) if finding.code == "SD701")
        assert seed().splitlines()[finding.line - 1].strip() == '- "--trust-remote-code"'

    def test_its_old_flags_are_wrong_on_a_new_engine(self) -> None:
        newer = seed().replace("v0.6.3.post1", "v0.32.0")
        found = {finding.code: finding for finding in rules.check(parse(newer, "seed.yaml"))}
        assert "--speculative-model" in found["SD102"].message
        assert '"num_speculative_tokens": 4' in found["SD102"].fix
        assert '"method": "draft_model"' in found["SD102"].fix
        assert "--use-v2-block-manager" in found["SD101"].message


class TestIgnoring:
    def test_a_reason_silences_one_rule_on_one_object(self) -> None:
        quiet = seed().replace(
            "  labels:\n    app.kubernetes.io/name",
            '  annotations: {vllm-speculative/ignore: "SD426=local NVMe is all these nodes have; SD701=read"}\n'
            "  labels:\n    app.kubernetes.io/name",
        )
        assert codes(rules.check(parse(quiet, "seed.yaml"))) == {"SD401", "SD501", "SD703", "SD705", "SD708"}

    def test_without_a_reason_it_stays_and_is_reported(self) -> None:
        text = seed().replace(
            "  labels:\n    app.kubernetes.io/name",
            "  annotations: {vllm-speculative/ignore: SD426}\n  labels:\n    app.kubernetes.io/name",
        )
        assert {"SD001", "SD426"} <= codes(rules.check(parse(text, "seed.yaml")))

    def test_a_code_that_does_not_exist_is_an_error(self) -> None:
        text = seed().replace(
            "  labels:\n    app.kubernetes.io/name",
            '  annotations: {vllm-speculative/ignore: "SD999=why"}\n  labels:\n    app.kubernetes.io/name',
        )
        assert any("SD999" in line for line in errors(rules.check(parse(text, "seed.yaml"))))
