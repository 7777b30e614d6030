"""What cannot work is refused while it renders, with value, reason and fix; the nearest good values render."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from .conftest import CHART, ROOT, lookup, pair
from .refusals import BAD


@pytest.mark.parametrize("story", BAD)
def test_it_is_refused_and_says_what_would_work(refused, story):
    values, (code, path, part), _ = BAD[story]
    message = refused(values)
    assert f"{code}: {path}: " in message
    assert part in message
    assert "fix: " in message


@pytest.mark.parametrize("story", BAD)
def test_the_nearest_good_values_render(render, story):
    assert render(BAD[story][2]).manifests


def test_an_override_is_refused_with_the_path_of_the_engine(refused):
    message = refused(pair(engines={"chat": {"speculative": {"method": "suffix", "model": {"name": ""}}}}))
    assert "SD257: engines.chat.engine.image.hasArcticInference: " in message


SCHEMA: dict[str, tuple[dict[str, Any], str]] = {
    "K of zero": (lookup(speculative={"numTokens": 0}), "/speculative/numTokens"),
    "K of one and a half": (lookup(speculative={"numTokens": 1.5}), "/speculative/numTokens"),
    "K as text": (lookup(speculative={"numTokens": "4"}), "/speculative/numTokens"),
    "utilisation of two": (lookup(engine={"gpuMemoryUtilization": 2}), "/engine/gpuMemoryUtilization"),
    "utilisation of zero": (lookup(engine={"gpuMemoryUtilization": 0}), "/engine/gpuMemoryUtilization"),
    "a misspelt value": (lookup(speculative={"numToken": 4}), "'numToken' not allowed"),
    "a misspelt section": (lookup(speculativ={"numTokens": 4}), "'speculativ' not allowed"),
    "a misspelt value of one engine": (lookup(engines={"a": {"engine": {"replica": 2}}}), "/engines/a/engine"),
    "a method that does not exist": (lookup(speculative={"method": "eagle4"}), "/speculative/method"),
    "no tensor parallelism": (lookup(engine={"tensorParallelSize": 0}), "/engine/tensorParallelSize"),
    "a size without sense": (lookup(sharedMemory={"size": "16 gigs"}), "/sharedMemory/size"),
    "a digest that is none": (lookup(engine={"image": {"digest": "latest"}}), "/engine/image/digest"),
    "a router policy that does not exist": (lookup(router={"policy": "fastest"}), "/router/policy"),
    "root as user": (lookup(security={"runAsUser": 0}), "/security/runAsUser"),
    "an impatient liveness probe": (lookup(probes={"liveness": {"failureThreshold": 1}}), "/probes/liveness"),
    "a negative schedule": (
        lookup(speculative={"schedule": [{"from": 1, "to": 2, "tokens": -1}]}),
        "/speculative/schedule/0/tokens",
    ),
    "a section taken away": (lookup(router={"retries": None}), "'retries'"),
    "an engine's name that no object may have": (lookup(engines={"My_Engine": {}}), "My_Engine"),
    "a cloud that does not exist": (lookup(cloud="azure"), "/cloud"),
}


@pytest.mark.parametrize("story", SCHEMA)
def test_the_schema_refuses(refused, story):
    values, part = SCHEMA[story]
    assert part in refused(values)


def test_helm_s_own_message_names_no_template_that_has_no_part_in_it(refused):
    message = refused({"engine": {"version": "9.9.9"}})
    assert "templates/values/check/values.yaml" in message
    assert "SD152: engine.version" in message


def test_every_error_of_the_chart_is_listed_with_its_reason_and_the_other_way_round():
    listed = yaml.safe_load((CHART / "files" / "errors.yaml").read_text())["errors"]
    templates = "".join(path.read_text() for path in (CHART / "templates").rglob("*") if path.is_file())
    used = {word for word in templates.replace('"', " ").split() if len(word) == 5 and word.startswith("SD")}
    assert set(listed) == used
    assert all(row["name"] and row["reason"] for row in listed.values())


def test_there_are_enough_stories_of_enough_kinds():
    assert len(BAD) + len(SCHEMA) >= 120
    assert len({code for _, (code, _, _), _ in BAD.values()}) >= 50


def test_nearly_every_error_has_a_story():
    listed = set(yaml.safe_load((CHART / "files" / "errors.yaml").read_text())["errors"])
    told = [*(ROOT / "tests").rglob("test_*.py"), *(ROOT / "tests/chart/refusals").glob("*.py")]
    stories = "".join(path.read_text() for path in told)
    untold = {code for code in listed if stories.count(f'"{code}"') + stories.count(f'"{code}:') == 0}
    # The schema is quicker with these: null for a section, no memory, a size without sense.
    assert untold <= {"SD162", "SD355", "SD451"}
