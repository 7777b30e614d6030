"""What a person points commands at, to read and to write: folders, pipes, places that are not there."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from .engines import manifest, speculative

NGRAM = speculative(method="ngram", num_speculative_tokens=3)


@pytest.mark.parametrize(
    ("command", "option"),
    [
        (("plan", "prod"), "--output"),
        (("plan", "prod"), "--write"),
        (("plan", "prod", "--format", "html"), "-o"),
        (("comment", "prod"), "--output"),
        (("rules",), "--write"),
        (("package",), "--output"),
    ],
)
@pytest.mark.parametrize("place", ["missing/x", "", "a folder", "a file"])
def test_a_place_that_cannot_be_written_is_named(
    run: Any, tmp_path: Path, command: tuple[str, ...], option: str, place: str
) -> None:
    folders = command[0] in ("rules", "package")
    taken = tmp_path / "taken"
    taken.write_text("mine")
    where = {"missing/x": tmp_path / "missing" / "x", "": "", "a folder": tmp_path, "a file": taken / "x"}[place]
    if folders and place != "a file":
        return  # a folder is what this option takes, and it is made where it is missing
    code, out, err = run(*command, option, str(where))
    assert (code, out) == (2, "")
    assert "unwritable-file" in err
    assert "Traceback" not in err
    assert "fix" in err
    assert taken.read_text() == "mine"


def test_a_plan_goes_where_it_is_told(run: Any, tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    assert run("plan", "prod", "-o", str(file), "--format", "json")[:2] == (0, "")
    assert json.loads(file.read_text())["fits"] is True


def test_a_folder_of_manifests_is_planned(run: Any, tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    manifest(tmp_path, "Qwen/Qwen3-8B", NGRAM, name="one")
    manifest(tmp_path / "deep", "Qwen/Qwen3-8B", NGRAM, name="two")
    (tmp_path / "notes.txt").write_text("no manifest: [")
    code, out, _ = run("plan", str(tmp_path), "--format", "json")
    assert code == 0
    assert set(json.loads(out)["engines"]) == {"one", "two"}


def test_an_environments_folder_is_the_environment(run: Any) -> None:
    folder = Path(__file__).parents[3] / "environments" / "prod"
    assert run("plan", str(folder), "--format", "json") == run("plan", "prod", "--format", "json")


def pipe(monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))


def test_standard_input_is_planned(run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pipe(monkeypatch, b"\xef\xbb\xbf" + Path(manifest(tmp_path, "Qwen/Qwen3-8B", NGRAM)).read_bytes())
    code, out, _ = run("plan", "-", "--format", "json")
    assert (code, json.loads(out)["target"]) == (0, "Qwen/Qwen3-8B")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "no Kubernetes object"),
        (b"engine: {model: {name: a/b}}\n", "a values file is planned with --values"),
        (b"\xff\xfe\x00", "not text in UTF-8"),
        (b"a: [", "not readable as YAML"),
        (b"apiVersion: v1\nkind: Service\nmetadata: {name: x}\n", "no vLLM engine"),
    ],
)
def test_standard_input_that_is_no_manifest(
    run: Any, monkeypatch: pytest.MonkeyPatch, content: bytes, words: str
) -> None:
    pipe(monkeypatch, content)
    code, out, err = run("plan", "-")
    assert (code, out) == (2, "")
    assert words in err


@pytest.mark.parametrize("what", ["/nowhere/at/all", "empty", "/nowhere.yaml", "nobody", ""])
def test_what_is_not_there_is_said(run: Any, tmp_path: Path, what: str) -> None:
    (tmp_path / "empty").mkdir()
    code, out, err = run("plan", str(tmp_path / "empty") if what == "empty" else what)
    assert (code, out) == (2, "")
    assert "fix" in err


BAD: list[tuple[str, str]] = [
    ("--max-model-len=-5", "max_model_len is -5"),
    ("--max-num-seqs=-1", "engine.maxNumSeqs is -1"),
    ("--max-num-seqs=0", "engine.maxNumSeqs is 0"),
    ("--max-num-batched-tokens=-1", "engine.maxNumBatchedTokens is -1"),
    ("--max-num-seqs=auto", "not a number"),
    ("--data-parallel-size=-3", "engine.dataParallelSize is -3"),
    ("--tensor-parallel-size=-2", "a parallel size of -2"),
    ("--gpu-memory-utilization=nan", "gpu_memory_utilization is nan"),
    ("--gpu-memory-utilization=0", "gpu_memory_utilization is 0"),
    ("--gpu-memory-utilization=90", "gpu_memory_utilization is 90"),
    ("--kv-cache-memory-bytes=-5", "kvCacheMemoryBytes is -5"),
]


@pytest.mark.parametrize(("argument", "words"), BAD)
def test_an_argument_that_cannot_be_is_named(run: Any, tmp_path: Path, argument: str, words: str) -> None:
    code, out, err = run("plan", manifest(tmp_path, "Qwen/Qwen3-8B", argument), "--format", "json")
    assert (code, out) == (2, "")
    assert words in json.loads(err)["error"]["message"]


@pytest.mark.parametrize(
    "options",
    [
        ("--input-len", "0"),
        ("--output-len", "-1"),
        ("--concurrency", "0"),
        ("--price", "nan"),
        ("--sale", "inf"),
        ("--prefix-hits", "nan"),
        ("--prefix-hits", "-0.1"),
        ("--target-tpot", "-1"),
        ("--search", "-o", "x.json"),
        ("--search", "--format", "html"),
        ("--cloud", "azure"),
        ("--machine", "toaster"),
        ("--provisioning", "begging"),
        ("--accelerator", "abacus"),
    ],
)
def test_an_option_that_cannot_be_is_named(run: Any, options: tuple[str, ...]) -> None:
    code, out, err = run("plan", "prod", *options)
    assert (code, out) == (2, "")
    assert "error" in err


def test_of_several_engines_the_one_that_cannot_be_planned_is_named(run: Any, tmp_path: Path) -> None:
    manifest(tmp_path, "Qwen/Qwen3-8B", NGRAM, name="good")
    manifest(tmp_path, "Qwen/Qwen3-8B", speculative(method="warp", num_speculative_tokens=3), name="wrong")
    code, _, err = run("plan", str(tmp_path), "--format", "json")
    error = json.loads(err)["error"]
    assert code == 2
    assert error["message"].startswith("wrong: ")
    assert error["file"].endswith("wrong.yaml")


POSITIONS: dict[str, Any] = {"acceptance_by_position": [0.5]}


@pytest.mark.parametrize(
    "arm",
    [
        1,
        None,
        {"k": "x", "tpot_ms": 3} | POSITIONS,
        {"k": -1, "tpot_ms": 3} | POSITIONS,
        {"k": 1, "tpot_ms": "x"} | POSITIONS,
        {"k": 1, "tpot_ms": -3} | POSITIONS,
        {"k": 1, "tpot_ms": 3, "concurrency": "x"} | POSITIONS,
        {"k": 1, "tpot_ms": 3, "concurrency": -4} | POSITIONS,
        {"k": 1, "tpot_ms": 3, "acceptance_by_position": "abc"},
        {"k": 1, "tpot_ms": 3, "acceptance_by_position": [None]},
        {"k": 1, "tpot_ms": 3, "acceptance_by_position": {"0": 1}},
    ],
)
def test_a_benchmark_that_measured_nothing_is_refused(run: Any, tmp_path: Path, arm: Any) -> None:
    result = tmp_path / "bench.json"
    result.write_text(json.dumps({"arms": [arm]}))
    file = manifest(tmp_path, "Qwen/Qwen3-8B", NGRAM)
    code, _, err = run("plan", file, "--benchmark", str(result), "--format", "json")
    error = json.loads(err)["error"]
    assert (code, error["code"], error["path"]) == (2, "bad-benchmark", "arms[0]")
    assert error["fix"]


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("volumes",), 1),
        (("volumes",), ["x"]),
        (("nodeSelector",), 1),
        (("containers", 0, "volumeMounts"), "x"),
        (("containers", 0, "volumeMounts"), [None]),
        (("containers", 0, "resources"), "x"),
        (("containers", 0, "env"), {"a": 1}),
    ],
)
def test_a_manifest_of_another_shape_is_planned_or_refused(
    run: Any, tmp_path: Path, place: tuple[Any, ...], value: Any
) -> None:
    file = Path(manifest(tmp_path, "Qwen/Qwen3-8B", NGRAM))
    document = yaml.safe_load(file.read_text())
    holder = document["spec"]["template"]["spec"]
    for key in place[:-1]:
        holder = holder[key]
    holder[place[-1]] = value
    file.write_text(yaml.safe_dump(document))
    code, out, err = run("plan", str(file), "--format", "json")
    assert code in (0, 1, 2)
    assert json.loads(out or err)


@pytest.mark.parametrize("row", [[1, 2, -3], [0, 2, 3], [5, 1, 3], [1, 2, 1000]])
def test_a_schedule_that_cannot_be_is_named(run: Any, tmp_path: Path, row: list[int]) -> None:
    spec = speculative(method="ngram", num_speculative_tokens=3, num_speculative_tokens_per_batch_size=[row])
    code, _, err = run("plan", manifest(tmp_path, "Qwen/Qwen3-8B", spec), "--format", "json")
    error = json.loads(err)["error"]
    assert (code, error["code"]) == (2, "SD222")
    assert f"{row[2]} tokens for {row[0]} to {row[1]}" in error["message"]
