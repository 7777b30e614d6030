"""Custom resources of the chart against the CRDs of their projects: what an API server would refuse or drop."""

from __future__ import annotations

import copy
import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from setup import crds

from .conftest import CHART, ROOT

PLACE = ROOT / ".tools" / "crds"
Object = dict[str, Any]
made = pytest.mark.skipif(not PLACE.is_dir(), reason="no schemas of custom resources: make setup")


@pytest.fixture(scope="module")
def accepts(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Object], bool]:
    kubeconform = shutil.which("kubeconform", path=os.pathsep.join([str(ROOT / ".tools" / "bin"), os.environ["PATH"]]))
    assert kubeconform, "kubeconform is not on PATH: make setup"
    location = f"{PLACE}/{{{{ .ResourceKind }}}}{{{{ .KindSuffix }}}}.json"
    file = tmp_path_factory.mktemp("crds") / "object.yaml"

    def accepted(manifest: Object) -> bool:
        file.write_text(yaml.safe_dump(manifest))
        command = [kubeconform, "-strict", "-schema-location", location, str(file)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert "could not find schema" not in done.stdout, done.stdout
        return done.returncode == 0

    return accepted


def rendered(scenario: str, kind: str) -> Object:
    path: Path = CHART / "rendered" / f"{scenario}.yaml"
    documents = yaml.safe_load_all(path.read_text())
    return copy.deepcopy(next(document for document in documents if document and document["kind"] == kind))


def at(manifest: Object, path: tuple[str | int, ...]) -> Any:
    node: Any = manifest
    for key in path:
        node = node[key]
    return node


# scenario, kind, path of an object in it, key and value that the API does not take there
WRONG = [
    ("gateway-gke", "HTTPRoute", ("spec", "rules", 0), "retries", {"attempts": 3}),
    ("inference-pool", "HTTPRoute", ("spec", "rules", 0, "timeouts"), "request", "30 minutes"),
    ("inference-pool", "InferencePool", ("spec",), "targetPortNumber", 8000),
    ("inference-pool", "InferencePool", ("spec", "endpointPickerRef"), "failureMode", "FailSometimes"),
    ("kserve", "InferenceService", ("spec", "predictor"), "replicas", 2),
    ("kserve", "InferenceService", ("spec", "predictor", "containers", 0), "arguments", []),
    ("kserve-llm", "LLMInferenceService", ("spec",), "predictor", {}),
    ("kserve-llm", "LLMInferenceService", ("spec", "model"), "revision", "main"),
]


@made
@pytest.mark.parametrize(("scenario", "kind", "path", "key", "value"), WRONG)
def test_a_field_that_the_api_does_not_have_is_found(accepts, scenario, kind, path, key, value):
    manifest = rendered(scenario, kind)
    assert accepts(manifest)
    at(manifest, path)[key] = value
    assert not accepts(manifest)


def definition(schema: Object, **version: Any) -> Object:
    versions = [{"name": "v1", "served": True, "schema": {"openAPIV3Schema": schema}, **version}]
    return {"spec": {"group": "example.com", "names": {"kind": "Thing"}, "versions": versions}}


def test_schemas_are_named_as_kubeconform_asks_for_them():
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"a": {"type": "string"}}}}}
    found = crds.of(definition(schema))
    assert list(found) == ["thing-example-v1.json"]
    made_schema = found["thing-example-v1.json"]
    assert made_schema["properties"]["apiVersion"] == {"enum": ["example.com/v1"]}
    assert made_schema["properties"]["spec"]["additionalProperties"] is False
    assert crds.of(definition(schema, served=False)) == {}


def test_what_the_api_takes_either_way_or_keeps_stays_open():
    schema = {
        "type": "object",
        "properties": {
            "port": {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]},
            "free": {"type": "object", "properties": {}, "x-kubernetes-preserve-unknown-fields": True},
            "none": {"type": "string", "nullable": True},
        },
    }
    properties = crds.of(definition(schema))["thing-example-v1.json"]["properties"]
    assert properties["port"] == {"oneOf": [{"type": "string"}, {"type": "integer"}]}
    assert "additionalProperties" not in properties["free"]
    assert properties["none"]["type"] == ["string", "null"]


def test_a_module_that_is_not_what_it_was_is_refused(monkeypatch, tmp_path):
    answer = json.dumps({"Sum": "h1:other", "Dir": str(tmp_path)})
    monkeypatch.setattr(crds, "go_command", lambda: "true")
    monkeypatch.setattr(
        crds.subprocess, "run", lambda *_, **__: subprocess.CompletedProcess([], 0, stdout=answer, stderr="")
    )
    with pytest.raises(crds.SetupError, match="has checksum h1:other"):
        crds.fetch(crds.SOURCES[0])
