"""The files of facts: their form, that they agree with each other, and how they are read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from specdec import facts, facts_schema, rules
from specdec.errors import SpecdecError

FILES = [facts.files_dir() / name for name in facts_schema.SCHEMAS]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_file_has_its_form_and_each_row_its_source(file: Path) -> None:
    facts_schema.check(file)


def test_machines_have_accelerators_that_exist() -> None:
    used = {machine["accelerator"] for shapes in facts.machines().values() for machine in shapes.values()}
    assert used <= set(facts.accelerators())


def test_prices_are_of_machines_that_exist_and_can_be_bought_so() -> None:
    for price in facts.prices()["prices"]:
        machine = facts.machines()[price["cloud"]][price["machine"]]
        assert price["provisioning"] in machine["provisioning"], price


def test_gke_has_no_a10g() -> None:
    assert "a10g" not in {machine["accelerator"] for machine in facts.machines()["gke"].values()}
    assert "a10g" in {machine["accelerator"] for machine in facts.machines()["eks"].values()}


def test_a_wrong_value_is_named(tmp_path: Path) -> None:
    file = tmp_path / "models.yaml"
    file.write_text("models: {org/m: {checkpointBytes: 0, source: x, config: {}}}", encoding="utf-8")
    with pytest.raises(SpecdecError) as caught:
        facts_schema.check(file)
    assert caught.value.path == "models.org/m.checkpointBytes"


class TestVersions:
    @pytest.mark.parametrize(
        ("text", "key"),
        [
            ("0.6.3", (0, 6, 3, 0)),
            ("v0.10.1.1-cu128", (0, 10, 1, 1)),
            ("0.6.3.post1", (0, 6, 3, 0)),
            ("1.2", (1, 2, 0, 0)),
        ],
    )
    def test_are_sorted_by_their_numbers(self, text: str, key: tuple[int, ...]) -> None:
        assert facts.version_key(text) == key

    @pytest.mark.parametrize("text", ["latest", "", "v", "0", "sha256:01.02.03", "0.32x"])
    def test_anything_else_is_refused(self, text: str) -> None:
        with pytest.raises(SpecdecError):
            facts.version_key(text)

    def test_ranges_are_half_open(self) -> None:
        rows = [{"from": "0.8.0", "before": "0.9.0"}, {"from": "0.9.0"}]
        assert facts.in_range(rows, "0.8.5") == rows[:1]
        assert facts.in_range(rows, "0.9.0") == rows[1:]
        assert facts.in_range(rows, "0.7.3") == facts.in_range(rows, None) == []


def chart_codes() -> Iterator[str]:
    import re

    for template in (facts.chart_dir() / "templates").rglob("*"):
        if template.is_file():
            yield from re.findall(r"SD\d{3}", template.read_text(encoding="utf-8"))


def test_a_code_means_one_thing_in_chart_and_rules() -> None:
    codes = set(chart_codes())
    assert codes
    assert not codes & set(rules.all_rules())


def test_a_chart_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPECDEC_CHART", str(tmp_path / "none"))
    with pytest.raises(SpecdecError) as caught:
        facts.engines()
    assert caught.value.code == "chart-missing"
