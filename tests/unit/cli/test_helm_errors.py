"""What Helm prints when it fails, and what a person reads instead."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from specdec.helm_errors import explain, known_keys, plainly

HEADER = "Error: values don't meet the specifications of the schema(s) in the following chart(s):\nvllm-speculative:\n"
OBJECT = {"type": "object", "additionalProperties": False}
SCHEMA = {
    **OBJECT,
    "properties": {
        "engine": {"$ref": "#/$defs/engine"},
        "engines": {
            "type": "object",
            "additionalProperties": {**OBJECT, "properties": {"engine": {"$ref": "#/$defs/engine"}}},
        },
    },
    "$defs": {
        "engine": {**OBJECT, "properties": {"replicas": {"type": "integer"}, "dtype": {"enum": ["auto", "half"]}}}
    },
}


@pytest.fixture(autouse=True)
def chart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "files").mkdir()
    (tmp_path / "values.schema.json").write_text(json.dumps(SCHEMA), encoding="utf-8")
    monkeypatch.setenv("SPECDEC_CHART", str(tmp_path))
    return tmp_path


class TestSchema:
    @pytest.mark.parametrize(
        "line",
        [
            "- at '/engine': additional properties 'replica' not allowed",
            "- engine: Additional property replica is not allowed",
        ],
        ids=["helm 4", "helm 3.14"],
    )
    def test_a_typo_gets_the_nearest_value(self, line: str) -> None:
        error = explain(HEADER + line + "\n")
        assert (error.code, error.path, error.fix) == ("SD100", "engine.replica", "did you mean engine.replicas?")

    def test_a_typo_in_one_of_several_engines(self) -> None:
        error = explain(HEADER + "- at '/engines/chat/engine': additional properties 'dtyp' not allowed\n")
        assert error.fix == "did you mean engines.chat.engine.dtype?"

    def test_what_is_like_nothing_gets_the_list(self) -> None:
        error = explain(HEADER + "- at '': additional properties 'zzz' not allowed\n")
        assert (error.path, error.fix) == ("zzz", "known: engine, engines")

    def test_every_line_is_said(self) -> None:
        error = explain(
            HEADER
            + "- at '/engine': validation failed\n"
            + "  - at '/engine/replicas': got string, want integer\n"
            + "  - at '/engine': additional properties 'a', 'b' not allowed\n"
        )
        assert error.path == "engine.replicas"
        assert "is a text, and has to be a whole number" in error.message
        assert "engine.a" in error.message
        assert "engine.b" in error.message

    def test_the_line_in_the_values_file(self, tmp_path: Path) -> None:
        first, second = tmp_path / "a.yaml", tmp_path / "b.yaml"
        first.write_text("engine:\n  dtype: hlaf\n", encoding="utf-8")
        second.write_text("engine:\n  replicas: 1\n", encoding="utf-8")
        error = explain(HEADER + "- at '/engine/dtype': value must be one of 'auto', 'half'\n", [first, second])
        assert (error.file, error.fix) == (f"{first}:2", "did you mean half?")

    def test_set_wins_over_files(self, tmp_path: Path) -> None:
        file = tmp_path / "a.yaml"
        file.write_text("engine: {replicas: x}\n", encoding="utf-8")
        error = explain(HEADER + "- at '/engine/replicas': got string, want integer\n", [file], ["engine.replicas=x"])
        assert error.file == "--set"

    def test_keys_under_references_and_maps(self) -> None:
        assert known_keys(["engines", "any", "engine"]) == ["dtype", "replicas"]


class TestTemplates:
    @pytest.mark.parametrize(
        "text",
        [
            "Error: execution error at (vllm-speculative/templates/a.yaml:1:4): "
            "SD110: speculative.numTokens: is 0. fix: 3\n\n"
            "Use --debug flag to render out invalid YAML\n",
            'Error: template: vllm-speculative/templates/a.yaml:1:3: executing "x" at <include "y" .>: '
            "error calling include: template: vllm-speculative/templates/_b.tpl:2:4: "
            'executing "y" at <fail (printf ...)>: error calling fail: '
            "SD110: speculative.numTokens: is 0. fix: 3\n",
        ],
    )
    def test_the_charts_own_message(self, text: str) -> None:
        error = explain(text)
        assert (error.code, error.path, error.message, error.fix) == ("SD110", "speculative.numTokens", "is 0", "3")

    def test_any_other_is_its_innermost_cause_and_place(self) -> None:
        error = explain(
            "Error: vllm-speculative/templates/a.yaml:2:62\n"
            '  executing "vllm-speculative/templates/a.yaml" at <.Values.x.y>:\n'
            "    nil pointer evaluating interface {}.y\n\nUse --debug flag to render out invalid YAML\n"
        )
        assert (error.code, error.file) == ("template-failed", "vllm-speculative/templates/a.yaml:2")
        assert error.message == "nil pointer evaluating interface {}.y"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ('Error: failed parsing --set data: key "engine" has no value', "bad-set"),
        (
            "Error: failed to parse v.yaml: unmarshal yaml document: error converting YAML to JSON: yaml: line 2: x",
            "unreadable-yaml",
        ),
        ("Error: uninstall: Release not loaded: x: release: not found", "release-not-found"),
        ("Error: UPGRADE FAILED: another operation (install/upgrade/rollback) is in progress", "deploy-in-progress"),
        ("Error: something new", "helm-failed"),
        ("", "helm-failed"),
    ],
)
def test_what_else_helm_says(text: str, code: str) -> None:
    error = explain(text)
    assert error.code == code
    assert error.message


class TestWordsForWhatASchemaRefuses:
    @pytest.mark.parametrize(
        ("line", "message"),
        [
            ("minimum: got -1, want 1", "is -1, and has to be 1 or more"),
            ("maximum: got 1e+20, want 128", "is 1e+20, and has to be 128 or less"),
            ("exclusiveMinimum: got 0, want 0", "is 0, and has to be more than 0"),
            ("got string, want null or integer", "is a text, and has to be a whole number or null"),
            ("got array, want object", "is a list, and has to be a mapping"),
            ("Must be greater than or equal to 1", "has to be greater than or equal to 1"),
            ("Invalid type. Expected: integer, given: string", "is a text, and has to be a whole number"),
        ],
    )
    def test_words(self, line: str, message: str) -> None:
        assert plainly(line) == message

    def test_an_element_of_a_list_is_found_where_it_was_given(self, tmp_path: Path) -> None:
        file = tmp_path / "a.yaml"
        file.write_text("engine:\n  steps:\n    - {tokens: 1}\n    - {tokens: 500}\n", encoding="utf-8")
        error = explain(HEADER + "- at '/engine/steps/1/tokens': maximum: got 500, want 128\n", [file])
        assert (error.file, error.path) == (f"{file}:4", "engine.steps[1].tokens")

    @pytest.mark.parametrize(
        ("written", "line", "message"),
        [
            ('"4"', "got string, want integer", "is the text '4', and has to be a whole number"),
            (
                "99999999999999999999",
                "maximum: got 1e+20, want 10",
                "is 99999999999999999999, and has to be 10 or less",
            ),
            ("{}", "got object, want integer", "is a mapping, and has to be a whole number"),
        ],
    )
    def test_the_value_stands_there_as_the_person_wrote_it(
        self, tmp_path: Path, written: str, line: str, message: str
    ) -> None:
        file = tmp_path / "a.yaml"
        file.write_text(f"engine: {{replicas: {written}}}\n", encoding="utf-8")
        error = explain(HEADER + f"- at '/engine/replicas': {line}\n", [file])
        assert (error.file, error.message) == (f"{file}:1", message)
