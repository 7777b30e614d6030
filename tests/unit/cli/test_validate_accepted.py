"""Findings that a person has accepted, models that are given by their folder, and what other programs read of both."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import jsonschema
import pytest
from specdec.cli import main

ROOT = Path(__file__).resolve().parents[3]
SEED = (ROOT / "tests" / "data" / "seed-statefulset.yaml").read_text(encoding="utf-8")
REASON = "it is an example"

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def specdec(*arguments: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as stop:
            main(list(arguments))
        captured = capsys.readouterr()
        return int(str(stop.value.code)), captured.out, captured.err

    return specdec


@pytest.fixture
def accepted(tmp_path: Path) -> Path:
    """The seed with its one error accepted."""
    note = f'  annotations: {{vllm-speculative/ignore: "SD401={REASON}"}}\n'
    file = tmp_path / "seed.yaml"
    file.write_text(SEED.replace("  labels:\n    app.kub", f"{note}  labels:\n    app.kub"), encoding="utf-8")
    return file


# What SARIF 2.1.0 asks of the parts that code scanning reads: sections 3.13, 3.14, 3.27, 3.35 and 3.49 of the standard.
SARIF = {
    "type": "object",
    "required": ["version", "runs"],
    "properties": {
        "version": {"const": "2.1.0"},
        "runs": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["tool", "results"],
                "properties": {
                    "tool": {
                        "type": "object",
                        "required": ["driver"],
                        "properties": {
                            "driver": {
                                "type": "object",
                                "required": ["name", "rules"],
                                "properties": {
                                    "rules": {
                                        "type": "array",
                                        "uniqueItems": True,
                                        "items": {
                                            "type": "object",
                                            "required": ["id", "shortDescription", "fullDescription"],
                                            "properties": {
                                                "id": {"type": "string"},
                                                "shortDescription": {"$ref": "#/$defs/message"},
                                                "fullDescription": {"$ref": "#/$defs/message"},
                                                "help": {"$ref": "#/$defs/message"},
                                                "defaultConfiguration": {
                                                    "properties": {"level": {"$ref": "#/$defs/level"}}
                                                },
                                            },
                                        },
                                    }
                                },
                            }
                        },
                    },
                    "results": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "required": ["ruleId", "message", "locations"],
                            "properties": {
                                "ruleIndex": {"type": "integer", "minimum": 0},
                                "level": {"$ref": "#/$defs/level"},
                                "message": {"$ref": "#/$defs/message"},
                                "suppressions": {
                                    "type": "array",
                                    "items": {
                                        "type": "object",
                                        "required": ["kind"],
                                        "properties": {
                                            "kind": {"enum": ["inSource", "external"]},
                                            "justification": {"type": "string"},
                                        },
                                        "additionalProperties": False,
                                    },
                                },
                                "locations": {
                                    "type": "array",
                                    "minItems": 1,
                                    "items": {
                                        "type": "object",
                                        "required": ["physicalLocation"],
                                        "properties": {
                                            "physicalLocation": {
                                                "type": "object",
                                                "required": ["artifactLocation", "region"],
                                                "properties": {
                                                    "artifactLocation": {
                                                        "required": ["uri"],
                                                        "properties": {"uri": {"type": "string", "pattern": "^[^ ]+$"}},
                                                    },
                                                    "region": {
                                                        "required": ["startLine"],
                                                        "properties": {"startLine": {"type": "integer", "minimum": 1}},
                                                    },
                                                },
                                            }
                                        },
                                    },
                                },
                            },
                        },
                    },
                },
            },
        },
    },
    "$defs": {
        "message": {"type": "object", "required": ["text"], "properties": {"text": {"type": "string", "minLength": 1}}},
        "level": {"enum": ["none", "note", "warning", "error"]},
    },
}


class TestAccepted:
    def test_they_do_not_fail_the_check_and_are_counted(self, run: Run, accepted: Path) -> None:
        code, out, _ = run("validate", str(accepted))
        assert code == 0
        assert "SD401" not in out
        assert out.splitlines()[-1] == "0 errors, 6 warnings, 1 ignored in 2 objects"

    def test_they_are_shown_with_their_reason_when_asked_for(self, run: Run, accepted: Path) -> None:
        code, out, _ = run("validate", str(accepted), "--show-ignored")
        assert code == 0
        assert "SD401 ignored StatefulSet/vllm-speculative-llama3" in out
        assert f"accepted: {REASON}" in out

    def test_json_says_why(self, run: Run, accepted: Path) -> None:
        _, out, _ = run("validate", str(accepted), "--format", "json", "--show-ignored")
        reasons = {finding["code"]: finding.get("ignored") for finding in json.loads(out)}
        assert reasons.pop("SD401") == REASON
        assert set(reasons.values()) == {None}

    def test_sarif_calls_them_suppressed(self, run: Run, accepted: Path) -> None:
        _, out, _ = run("validate", str(accepted), "--format", "sarif", "--show-ignored")
        document = json.loads(out)
        jsonschema.validate(document, SARIF)
        results = {result["ruleId"]: result for result in document["runs"][0]["results"]}
        assert results["SD401"]["suppressions"] == [{"kind": "inSource", "justification": REASON}]
        assert "suppressions" not in results["SD701"]

    def test_junit_and_github_do_not_fail_on_them(self, run: Run, accepted: Path) -> None:
        _, out, _ = run("validate", str(accepted), "--format", "junit", "--show-ignored")
        assert ElementTree.fromstring(out).get("failures") == "0"
        _, out, _ = run("validate", str(accepted), "--format", "github", "--show-ignored")
        assert not any(line.startswith("::error") for line in out.splitlines())


class TestModelsByTheirFolder:
    ENGINE = """
apiVersion: v1
kind: Pod
metadata: {name: engine}
spec:
  containers:
    - name: engine
      image: vllm/vllm-openai:v0.32.0
      args:
        - meta-llama/Llama-3.1-8B-Instruct
        - '--speculative-config={"method": "eagle3", "model": "our/head", "num_speculative_tokens": 3}'
"""

    def test_a_head_that_nobody_else_knows(self, run: Run, tmp_path: Path) -> None:
        file, folder = tmp_path / "pod.yaml", tmp_path / "head"
        folder.mkdir()
        file.write_text(self.ENGINE, encoding="utf-8")
        config = {"architectures": ["LlamaForCausalLMEagle3"], "eagle_aux_hidden_state_layer_ids": [2, 16, 60]}
        (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
        _, out, _ = run("validate", str(file), "--format", "json")
        assert "SD204" not in {finding["code"] for finding in json.loads(out)}
        _, out, _ = run("validate", str(file), "--format", "json", "--model-config", f"our/head={folder}")
        found = {finding["code"]: finding for finding in json.loads(out)}
        assert "layer 60" in found["SD204"]["message"]
        assert self.ENGINE.splitlines()[found["SD204"]["line"] - 1].strip().startswith("- '--speculative-config")

    def test_models_that_nobody_knows_are_named_and_are_no_finding(self, run: Run, tmp_path: Path) -> None:
        file = tmp_path / "pod.yaml"
        file.write_text(self.ENGINE, encoding="utf-8")
        _, out, _ = run("validate", str(file))
        assert out.splitlines()[-1].startswith("not judged: memory and pair of our/head (")
        _, out, _ = run("validate", "prod")
        assert "not judged" not in out

    def test_a_folder_that_holds_none(self, run: Run, tmp_path: Path) -> None:
        status, _, err = run("validate", "dev", "--format", "json", "--model-config", f"our/head={tmp_path}")
        assert (status, json.loads(err)["error"]["code"]) == (2, "bad-model-config")


def test_the_planners_findings_are_explained_as_rules_are(run: Run) -> None:
    code, out, _ = run("rules", "SD320")
    assert code == 0
    assert "does-not-fit" in out
    assert "## Wrong" in out
