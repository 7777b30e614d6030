"""values.yaml, its schema, the README's table and the golden output say the same."""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from .conftest import CHART, ENVIRONMENTS, ROOT, SCENARIOS

TOOLS = ROOT / ".tools"
SCHEMAS = TOOLS / "schemas"
CRDS = TOOLS / "crds"
# GKE makes these by itself, and publishes no CRD of them.
NO_SCHEMA = ("HealthCheckPolicy", "GCPBackendPolicy", "BackendConfig")
SCHEMA: dict[str, Any] = json.loads((CHART / "values.schema.json").read_text())
VALUES: dict[str, Any] = yaml.safe_load((CHART / "values.yaml").read_text())


def resolved(node: dict[str, Any]) -> dict[str, Any]:
    if "allOf" in node:
        node = node["allOf"][0]
    if "$ref" in node:
        node = SCHEMA["definitions"][node["$ref"].removeprefix("#/definitions/")]
    return node


def schema_leaves(node: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    node = resolved(node)
    if "default" in node:
        yield path, node
    elif "properties" in node:
        for key, child in node["properties"].items():
            yield from schema_leaves(child, f"{path}.{key}".lstrip("."))
    else:
        yield path, node


def value_leaves(node: Any, leaves: set[str], path: str = "") -> Iterator[tuple[str, Any]]:
    if path in leaves or not isinstance(node, dict) or not node:
        yield path, node
    else:
        for key, child in node.items():
            yield from value_leaves(child, leaves, f"{path}.{key}".lstrip("."))


LEAVES = dict(schema_leaves(SCHEMA))


def test_schema_and_values_have_the_same_leaves_and_defaults():
    values = dict(value_leaves(VALUES, set(LEAVES)))
    assert set(values) == set(LEAVES)
    assert {path: node["default"] for path, node in LEAVES.items()} == values
    assert len(LEAVES) > 140


def objects(node: Any) -> Iterator[dict[str, Any]]:
    if isinstance(node, dict):
        if "properties" in node and node.get("type") != "null" and "type" in node:
            yield node
        for child in node.values():
            yield from objects(child)
    elif isinstance(node, list):
        for child in node:
            yield from objects(child)


def test_no_object_of_ours_takes_unknown_keys():
    ours = list(objects(SCHEMA))
    assert len(ours) > 30
    # `global` belongs to parent charts too.
    opened = [node for node in ours if node.get("additionalProperties") is not False]
    assert opened == [SCHEMA["properties"]["global"]]


def test_an_engine_can_override_every_section_that_is_an_engines():
    override = SCHEMA["properties"]["engines"]["additionalProperties"]["properties"]
    assert set(override) == set(SCHEMA["definitions"])


def comments() -> dict[str, str]:
    """`# --` comment of each leaf of values.yaml, by path."""
    found: dict[str, str] = {}
    stack: list[tuple[int, str]] = []
    comment: list[str] = []
    for line in (CHART / "values.yaml").read_text().splitlines():
        text = line.strip()
        if text.startswith("# -- "):
            comment = [text[5:]]
        elif text.startswith("#"):
            comment = [*comment, text[1:].strip()] if comment else []
        elif text:
            indent, key = len(line) - len(line.lstrip()), text.split(":")[0]
            stack = [(i, k) for i, k in stack if i < indent] + [(indent, key)]
            if comment:
                found[".".join(k for _, k in stack)] = " ".join(comment)
            comment = []
        else:
            comment = []
    return found


def test_every_value_is_described_once_and_the_schema_says_it_too():
    described = comments()
    assert set(described) == set(LEAVES)
    assert {path: node["description"] for path, node in LEAVES.items()} == described


def test_the_readme_lists_every_value():
    described = comments()
    table = [
        f"| `{path}` | `{json.dumps(node['default'], ensure_ascii=False)}` | {described[path]} |"
        for path, node in LEAVES.items()
    ]
    readme = (CHART / "README.md").read_text()
    assert readme.endswith("| value | default | what |\n|---|---|---|\n" + "\n".join(table) + "\n")


def test_the_golden_output_is_what_comes_out():
    done = subprocess.run([str(CHART / "ci" / "render"), "--check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr


@pytest.mark.skipif(not (SCHEMAS.is_dir() and CRDS.is_dir()), reason="no schemas of the API server: make setup")
def test_the_api_server_s_own_schemas_accept_every_scenario():
    kubeconform = shutil.which("kubeconform", path=os.pathsep.join([str(TOOLS / "bin"), os.environ["PATH"]]))
    assert kubeconform, "kubeconform is not on PATH: make setup"
    own, custom = (f"{place}/{{{{ .ResourceKind }}}}{{{{ .KindSuffix }}}}.json" for place in (SCHEMAS, CRDS))
    rendered = [str(path) for path in (CHART / "rendered").glob("*.yaml")]
    texts = [Path(path).read_text() for path in rendered]
    command = [
        kubeconform,
        "-strict",
        "-summary",
        "-output",
        "json",
        "-schema-location",
        own,
        "-schema-location",
        custom,
    ]
    done = subprocess.run(
        [*command, "-skip", ",".join(NO_SCHEMA), *rendered], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    summary = json.loads(done.stdout)["summary"]
    assert summary["valid"] > 100
    assert summary["invalid"] == summary["errors"] == 0
    assert summary["skipped"] == sum(
        len(re.findall(rf"^kind: {kind}$", text, re.M)) for kind in NO_SCHEMA for text in texts
    )


def test_every_scenario_has_a_golden_output():
    assert sorted(path.stem for path in (CHART / "rendered").glob("*.yaml")) == SCENARIOS


@pytest.mark.parametrize(
    "values",
    [f"ci/{name}-values.yaml" for name in SCENARIOS] + [f"../../environments/{e}/values.yaml" for e in ENVIRONMENTS],
)
def test_helm_finds_nothing_to_complain_about(helm, values):
    command = [helm, "lint", "--strict", str(CHART), "--values", str(CHART / values)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "funcMap fail" not in done.stderr + done.stdout


def test_the_packaged_chart_is_small_and_has_no_scenarios(helm, tmp_path):
    subprocess.run([helm, "package", str(CHART), "--destination", str(tmp_path)], check=True, capture_output=True)
    (package,) = tmp_path.glob("*.tgz")
    assert package.stat().st_size < 200 * 1024
    listing = subprocess.run(["tar", "tzf", str(package)], check=True, capture_output=True, text=True).stdout
    assert "vllm-speculative/files/engines.yaml" in listing
    assert "/ci/" not in listing
    assert "/rendered/" not in listing


def test_the_largest_scenario_renders_within_a_second(helm):
    largest = max((CHART / "rendered").glob("*.yaml"), key=lambda path: path.stat().st_size).stem
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [helm, "template", "speculative", str(CHART), "--values", str(CHART / "ci" / f"{largest}-values.yaml")]
    subprocess.run(command, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    # Processor time: what else runs on the machine does not count.
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 1


def test_environments_name_their_accelerator_and_version():
    for name in ENVIRONMENTS:
        values = yaml.safe_load((ROOT / "environments" / name / "values.yaml").read_text())
        assert values["accelerator"]["type"]
        assert values["engine"]["version"]
