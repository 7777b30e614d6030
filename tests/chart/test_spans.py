"""Every row of the arguments begins and ends where the engine's own sources say.

spans.json has for each flag, field and variable of engines.yaml the first and last release whose source defines it,
found by searching the sources of all releases; it is not made from the table.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from specdec import facts

from .releases import RELEASES, at_least

SPANS: dict[str, list[str]] = json.loads(Path(__file__).with_name("spans.json").read_text())
ARGUMENTS: dict[str, dict[str, Any]] = {argument["value"]: argument for argument in facts.engines()["arguments"]}
# First and last release whose Literal of the field has the name.
LITERALS = {
    "rejection_sample_method": {
        "strict": ("0.18.0", "0.20.2"),
        "probabilistic": ("0.18.0", "0.20.2"),
        "synthetic": ("0.19.0", "0.33.0"),
        "standard": ("0.21.0", "0.33.0"),
        "block": ("0.25.0", "0.33.0"),
        "fly": ("0.33.0", "0.33.0"),
    },
    "draft_sample_method": {
        "greedy": ("0.21.0", "0.33.0"),
        "gumbel": ("0.21.0", "0.21.0"),
        "probabilistic": ("0.22.0", "0.33.0"),
    },
    "acceptance_method": {
        "rejection_sampler": ("0.8.2", "0.9.2"),
        "typical_acceptance_sampler": ("0.8.2", "0.9.2"),
    },
}
# Releases that have the name for something else: rejection_sample_method told how drafts are sampled, and 0.19's
# made-up acceptance has another parameter.
SOMETHING_ELSE = {"speculative.rejectionSampling": ("0.18.0", "0.19.1")}


def name_of(row: dict[str, Any]) -> str:
    """Empty where the engine finds the value by itself."""
    return str(row.get("flag") or row.get("field") or row.get("env") or "")


def within(version: str, span: tuple[str, str] | list[str]) -> bool:
    return at_least(version, span[0]) and at_least(span[1], version)


def expected(value: str, version: str) -> str | None:
    """The newest of the argument's names that the release defines."""
    if value in SOMETHING_ELSE and within(version, SOMETHING_ELSE[value]):
        return None
    names = [name_of(row) for row in ARGUMENTS[value]["rows"]]
    there = [name for name in names if name and within(version, SPANS[name])]
    # Old engines find the method by the draft's config.
    return there[-1] if there else "" if value == "speculative.method" else None


@pytest.mark.parametrize("value", ARGUMENTS)
def test_a_value_has_a_row_on_just_the_releases_that_define_it(value: str) -> None:
    assert ARGUMENTS[value]["rows"]
    for release in RELEASES:
        rows = facts.in_range(ARGUMENTS[value]["rows"], release)
        assert len(rows) <= 1, release
        assert (name_of(rows[0]) if rows else None) == expected(value, release), release


def test_a_choice_is_offered_on_just_the_releases_that_have_it() -> None:
    for release in RELEASES:
        offered: dict[str, set[str]] = {}
        for argument in ARGUMENTS.values():
            for row in facts.in_range(argument["rows"], release):
                if row["kind"] == "choice" and "field" in row:
                    offered.setdefault(row["field"], set()).update(row["choices"].values())
        for field, names in LITERALS.items():
            there = {name for name, span in names.items() if within(release, span)}
            if release in ("0.19.0", "0.19.1"):
                there -= {"synthetic"}
            assert offered.get(field, set()) == there, (release, field)


def test_every_name_of_the_table_was_searched_for() -> None:
    names = {name_of(row) for argument in ARGUMENTS.values() for row in argument["rows"]}
    assert names - {""} == set(SPANS)


def test_every_field_of_the_newest_engine_has_a_value() -> None:
    newest = facts.engines()["versions"][-1]["before"]
    assert newest == "0.34.0"
    left = [name for name, since in facts.surfaces()["fields"].items() if not isinstance(since, list)]
    # It only tells people who confuse it that draft_tensor_parallel_size is meant, and raises.
    assert left == ["tensor_parallel_size"]
