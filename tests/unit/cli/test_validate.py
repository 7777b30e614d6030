"""`specdec validate` as a person and a pipeline use it."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import jsonschema
import pytest
from specdec.cli import main

ROOT = Path(__file__).resolve().parents[3]
SEED = ROOT / "tests" / "data" / "seed-statefulset.yaml"

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def specdec(*arguments: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as stop:
            main(list(arguments))
        captured = capsys.readouterr()
        return int(str(stop.value.code)), captured.out, captured.err

    return specdec


class TestExitCodes:
    def test_1_where_an_error_is_found(self, run: Run) -> None:
        assert run("validate", str(SEED))[0] == 1

    def test_0_with_warnings_alone(self, run: Run, tmp_path: Path) -> None:
        text = SEED.read_text(encoding="utf-8").replace("livenessProbe", "startupProbe")
        (tmp_path / "seed.yaml").write_text(text, encoding="utf-8")
        code, out, _ = run("validate", str(tmp_path))
        assert code == 0
        assert "SD701 warning" in out

    @pytest.mark.parametrize(
        ("content", "code"),
        [
            (b"a: b: c", "unreadable-yaml"),
            (b"\xff\xfe\xfa", "unreadable-file"),
            (b"a: 1", "no-objects"),
            (b"", "no-objects"),
        ],
    )
    def test_2_where_the_input_cannot_be_read(self, run: Run, tmp_path: Path, content: bytes, code: str) -> None:
        file = tmp_path / "x.yaml"
        file.write_bytes(content)
        status, out, err = run("validate", str(file), "--format", "json")
        error = json.loads(err)["error"]
        assert (status, out, error["code"]) == (2, "", code)
        assert error["file"].startswith(str(file))

    @pytest.mark.parametrize(
        ("arguments", "code"),
        [
            (["no/such.yaml"], "file-missing"),
            (["such.yaml"], "file-missing"),
            ([], "usage"),
            (["-", "--engine-version", "newest"], "bad-version"),
            ([str(SEED), "--set", "a=b"], "usage"),
        ],
    )
    def test_2_where_the_question_makes_no_sense(self, run: Run, arguments: list[str], code: str) -> None:
        status, _, err = run("validate", *arguments, "--format", "json")
        assert (status, json.loads(err)["error"]["code"]) == (2, code)

    def test_2_with_the_nearest_environment(self, run: Run) -> None:
        status, _, err = run("validate", "pord", "--format", "json")
        assert (status, json.loads(err)["error"]["fix"]) == (2, "did you mean prod?")


class TestFormats:
    def test_json_has_the_promised_form(self, run: Run) -> None:
        _, out, _ = run("validate", str(SEED), "--format", "json")
        findings = json.loads(out)
        for finding in findings:
            assert set(finding) == {"code", "severity", "file", "line", "resource", "path", "message", "fix"}
        probe = next(finding for finding in findings if finding["code"] == "SD401")
        assert probe["resource"] == "StatefulSet/vllm-speculative-llama3"
        assert probe["path"] == "spec.template.spec.containers[0].livenessProbe"
        assert probe["file"] == str(SEED)

    def test_json_without_findings_is_an_empty_list(self, run: Run, tmp_path: Path) -> None:
        file = tmp_path / "x.yaml"
        file.write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n", encoding="utf-8")
        assert run("validate", str(file), "--format", "json")[:2] == (0, "[]\n")

    def test_standard_input(self, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(SEED.read_bytes())))
        code, out, _ = run("validate", "-", "--format", "json")
        assert code == 1
        assert {finding["file"] for finding in json.loads(out)} == {"-"}

    def test_text_names_file_line_code_and_fix(self, run: Run) -> None:
        _, out, _ = run("validate", str(SEED))
        line = SEED.read_text(encoding="utf-8").splitlines().index("          livenessProbe:") + 1
        assert f"{SEED}:{line}: SD401 error" in out
        assert "fix: add a startupProbe" in out
        assert out.splitlines()[-1] == "1 errors, 6 warnings in 2 objects"

    def test_sarif_is_what_code_scanning_reads(self, run: Run) -> None:
        _, out, _ = run("validate", str(SEED), "--format", "sarif")
        document = json.loads(out)
        driver = document["runs"][0]["tool"]["driver"]
        results = document["runs"][0]["results"]
        assert document["version"] == "2.1.0"
        assert len(results) == 7
        for result in results:
            assert driver["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
            assert result["level"] in ("error", "warning", "note")
        jsonschema.validate(
            results,
            {
                "items": {
                    "required": ["ruleId", "message", "locations"],
                    "properties": {
                        "locations": {
                            "minItems": 1,
                            "items": {
                                "required": ["physicalLocation"],
                                "properties": {
                                    "physicalLocation": {
                                        "properties": {
                                            "artifactLocation": {"required": ["uri"]},
                                            "region": {"properties": {"startLine": {"type": "integer", "minimum": 1}}},
                                        }
                                    }
                                },
                            },
                        }
                    },
                }
            },
        )

    def test_github_annotations_are_one_line_each(self, run: Run) -> None:
        _, out, _ = run("validate", str(SEED), "--format", "github")
        lines = out.splitlines()
        assert len(lines) == 7
        assert all(line.startswith(("::error file=", "::warning file=")) for line in lines)
        assert any(",line=" in line and "title=SD401 liveness-before-load::" in line for line in lines)

    def test_junit_has_a_case_for_each_object(self, run: Run) -> None:
        _, out, _ = run("validate", str(SEED), "--format", "junit")
        suite = ElementTree.fromstring(out)
        assert (suite.get("tests"), suite.get("failures")) == ("2", "1")
        assert [failure.get("type") for failure in suite.iter("failure")] == ["SD401"]


class TestEnvironments:
    @pytest.mark.parametrize("name", ["local", "dev", "prod"])
    def test_ours_have_no_error(self, run: Run, name: str) -> None:
        code, out, err = run("validate", name, "--format", "json")
        assert (code, err) == (0, "")
        assert [finding for finding in json.loads(out) if finding["severity"] == "error"] == []

    def test_a_value_that_the_chart_refuses(self, run: Run) -> None:
        code, _, err = run("validate", "prod", "--set", "engine.replica=3", "--format", "json")
        assert code == 2
        assert json.loads(err)["error"]["fix"] == "did you mean engine.replicas?"


class TestRulesCommand:
    def test_every_rule_is_listed(self, run: Run) -> None:
        _, out, _ = run("rules", "--format", "json")
        assert {"SD101", "SD401", "SD701"} <= {rule["code"] for rule in json.loads(out)}

    @pytest.mark.parametrize("name", ["SD401", "sd401", "liveness-before-load"])
    def test_one_is_explained(self, run: Run, name: str) -> None:
        code, out, _ = run("rules", name)
        assert code == 0
        assert "## Right" in out

    def test_an_error_of_the_chart_is_explained_too(self, run: Run) -> None:
        code, out, _ = run("rules", "SD152")
        assert code == 0
        assert out.startswith("SD152: version-unknown")

    def test_one_that_does_not_exist(self, run: Run) -> None:
        code, _, err = run("rules", "SD4011", "--format", "json")
        assert (code, json.loads(err)["error"]["code"]) == (2, "unknown-rule")
