"""`specdec validate --fix`: certain changes of files, and of nothing else in them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from specdec import rules
from specdec.cli import main
from specdec.manifests import parse
from specdec.objects import dotted, keys
from specdec.rules.edit import edited, merge
from specdec.rules.examples import manifests_of
from specdec.rules.model import REMOVED, Edit

ROOT = Path(__file__).resolve().parents[3]
SEED = (ROOT / "tests" / "data" / "seed-statefulset.yaml").read_text(encoding="utf-8")
RULES = rules.all_rules()

Fix = Callable[[str], tuple[str, str, str]]


@pytest.fixture
def fix(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Fix:
    """The text of a file after --fix, what was said of it, and the findings that are left as JSON."""

    def fixed(text: str) -> tuple[str, str, str]:
        file = tmp_path / "engine.yaml"
        file.write_bytes(text.encode())
        with pytest.raises(SystemExit):
            main(["validate", str(file), "--fix", "--format", "json"])
        captured = capsys.readouterr()
        return file.read_bytes().decode(), captured.err, captured.out

    return fixed


def codes(out: str) -> set[str]:
    return {finding["code"] for finding in json.loads(out)}


FIXABLE = [
    rule for rule in RULES.values() if any(f.edits for f in rules.check(manifests_of(rule.bad)) if f.code == rule.code)
]


def test_there_are_certain_fixes() -> None:
    assert len(FIXABLE) >= 22


@pytest.mark.parametrize("rule", FIXABLE, ids=lambda rule: f"{rule.code}-{rule.name}")
def test_a_certain_fix_is_one_and_is_made_once(rule: rules.Rule, fix: Fix) -> None:
    text = "---\n".join(yaml.safe_dump(manifest.data, sort_keys=False) for manifest in manifests_of(rule.bad))
    after, said, out = fix(text)
    assert rule.code not in codes(out), "it is still found"
    assert rule.code in said
    assert after != text
    again, silence, _ = fix(after)
    assert again == after, "a second run changes more"
    assert silence == ""


class TestWhatStays:
    def test_comments_quotes_and_every_other_line(self, fix: Fix) -> None:
        seed = SEED.replace("v0.6.3.post1", "v0.32.0")
        after, said, out = fix(seed)
        gone = [line for line in seed.splitlines() if line not in after.splitlines()]
        assert [line.strip().removeprefix("- ").strip('"') for line in gone] == [
            "--speculative-model",
            "meta-llama/Meta-Llama-3.1-8B-Instruct",
            "--num-speculative-tokens",
            "4",
            "--use-v2-block-manager",
        ]
        assert [line for line in after.splitlines() if "#" in line] == [
            line for line in seed.splitlines() if "#" in line
        ]
        assert '"method": "draft_model"' in after
        assert "SD102" in said
        assert not codes(out) & {"SD101", "SD102", "SD708"}

    def test_what_was_changed_is_shown(self, fix: Fix) -> None:
        _, said, _ = fix(SEED)
        assert "+      automountServiceAccountToken: false\n" in said
        assert said.splitlines()[-1].endswith("fixed SD708")

    def test_odd_layouts(self, fix: Fix) -> None:
        text = (
            "# the top\n"
            "apiVersion: v1   # the API\n"
            "kind: Pod\n"
            'metadata:   {name: a,   labels: {x: "y"}}\n'
            "spec:\n"
            "    containers:   # one\n"
            "    - name: b\n"
            '      image:   "vllm/vllm-openai:v0.32.0"\n'
            "      args: [/models/target, --dtype=bf16]   # odd\n"
            "---\n"
            "# another object, which nothing is wrong with\n"
            "apiVersion: v1\n"
            "kind: ConfigMap\n"
            "metadata:   {name:   c}\n"
            'data: {a:   "1"}\n'
        )
        after, _, _ = fix(text)
        for kept in ("# the top", "apiVersion: v1   # the API", 'metadata:   {name: a,   labels: {x: "y"}}', "# one"):
            assert kept in after
        assert after.endswith(text[text.index("# another object") :])
        assert "--dtype=bfloat16" in after
        assert "automountServiceAccountToken: false" in after

    def test_ends_of_lines_and_a_byte_order_mark(self, fix: Fix) -> None:
        text = "\ufeff" + SEED.replace("\n", "\r\n")
        after, _, _ = fix(text)
        assert after.startswith("\ufeff")
        assert after.count("\n") == after.count("\r\n") == SEED.count("\n") + 1

    def test_a_file_that_a_round_trip_cannot_keep(self, fix: Fix) -> None:
        text = SEED + "---\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: '1', a: '2'}\n"
        after, said, _ = fix(text)
        assert after == text
        assert "not changed: while constructing a mapping" in said

    def test_what_is_accepted_is_left_alone(self, fix: Fix) -> None:
        text = SEED.replace(
            "  labels:\n    app.k", '  annotations: {vllm-speculative/ignore: "SD708=it asks"}\n  labels:\n    app.k'
        )
        after, said, _ = fix(text)
        assert (after, said) == (text, "")


class TestObjectsInOneFile:
    def test_items_of_a_list(self, fix: Fix) -> None:
        items = "".join(
            f"  - {line}\n" if i == 0 else f"    {line}\n" for i, line in enumerate(SEED.split("---")[0].splitlines())
        )
        after, said, _ = fix(f"apiVersion: v1\nkind: List\nitems:\n{items}")
        assert "SD708" in said
        assert parse(after)[0].get("spec.template.spec.automountServiceAccountToken") is False

    def test_findings_that_join_two_files(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        scaler, engine = (part for part in RULES["SD510"].bad.split("---\n"))
        (tmp_path / "a.yaml").write_text(scaler)
        (tmp_path / "b.yaml").write_text(engine)
        with pytest.raises(SystemExit):
            main(["validate", str(tmp_path), "--fix"])
        assert "replicas: 1" not in (tmp_path / "b.yaml").read_text()
        assert (tmp_path / "a.yaml").read_text() == scaler
        assert "SD510" in capsys.readouterr().err


class TestWhatCannotBeChanged:
    def test_standard_input(self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        import io
        import sys

        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(SEED.encode())))
        with pytest.raises(SystemExit) as stop:
            main(["validate", "-", "--fix"])
        assert stop.value.code == 2
        assert "name a file" in capsys.readouterr().err

    def test_what_the_chart_rendered(self, capsys: pytest.CaptureFixture[str]) -> None:
        with pytest.raises(SystemExit) as stop:
            main(["validate", "dev", "--set", "engine.gpuMemoryUtilization=0.99", "--fix"])
        assert stop.value.code == 0
        told = "dev (rendered): not changed: it is rendered from values, and those are what has to change (SD304)\n"
        assert capsys.readouterr().err == told

    def test_of_a_clean_environment_nothing_is_said(self, capsys: pytest.CaptureFixture[str]) -> None:
        with pytest.raises(SystemExit) as stop:
            main(["validate", "dev", "--fix"])
        assert stop.value.code == 0
        assert capsys.readouterr().err == ""


@given(st.lists(st.sampled_from(["a", "b", "c", "", "d"]), max_size=12), st.data())
def test_a_merge_keeps_the_layout_and_takes_the_change(base: list[str], data: st.DataObject) -> None:
    """Where the writer lays nothing out anew the result is the change; where nothing changes it is the old text."""
    other = data.draw(st.lists(st.sampled_from(["a", "b", "x", "y"]), max_size=12))
    text, plain = ("".join(f"{line}\n" for line in lines) for lines in (base, other))
    assert merge(text, text, plain) == plain
    assert merge(text, plain, plain) == text


def test_edits_set_remove_append_and_make_what_is_missing() -> None:
    text = "a:\n  b: [1, 2]\n  c: x # why\n"
    place = (0, ())
    changes = [
        Edit(("a", "b", 1), REMOVED),
        Edit(("a", "b", 1), 3),
        Edit(("a", "c"), "y"),
        Edit(("a", "d", "e"), [4]),
    ]
    after = edited(text, [(place, change) for change in changes])
    assert yaml.safe_load(after) == {"a": {"b": [1, 3], "c": "y", "d": {"e": [4]}}}
    assert "c: y # why" in after


@pytest.mark.parametrize("path", ["a.b[0].c", 'metadata.annotations["x/y.z"]', "a"])
def test_paths_are_written_as_they_are_read(path: str) -> None:
    assert dotted(keys(path)) == path
