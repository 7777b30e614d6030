"""Every value of the chart is set, to something else than its default, in some scenario of ci/."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import yaml

from .conftest import CHART, ENVIRONMENTS, ROOT
from .test_values import LEAVES

SCENARIOS = sorted((CHART / "ci").glob("*-values.yaml"))


def set_leaves(node: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Values that a file sets, by path; what an engine of `engines` sets counts for the section it overrides."""
    if path == "engines" and isinstance(node, dict):
        for override in node.values():
            yield from set_leaves(override or {})
    if path in LEAVES:
        yield path, node
    elif isinstance(node, dict):
        for key, child in node.items():
            yield from set_leaves(child, f"{path}.{key}".lstrip("."))


def test_every_leaf_of_the_schema_is_set_in_some_scenario() -> None:
    changed: set[str] = set()
    for file in SCENARIOS:
        for path, value in set_leaves(yaml.safe_load(file.read_text())):
            if value != LEAVES[path]["default"]:
                changed.add(path)
    assert sorted(set(LEAVES) - changed) == []


def test_no_file_sets_what_the_chart_does_not_have() -> None:
    environments = [ROOT / "environments" / name / "values.yaml" for name in ENVIRONMENTS]
    for file in [*SCENARIOS, *environments]:
        document = yaml.safe_load(file.read_text())
        known = {leaf.split(".")[0] for leaf in LEAVES}
        assert set(document) <= known, file
