"""A plan says first whether the engine would start at all: memory, K and a price are worth nothing otherwise."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from .engines import manifest, speculative

LLAMA, HEAD = "meta-llama/Llama-3.1-8B-Instruct", "yuhuili/EAGLE3-LLaMA3.1-Instruct-8B"
NGRAM = speculative(method="ngram", num_speculative_tokens=3)


def draft(model: str, **fields: Any) -> str:
    return speculative(method="draft_model", model=model, num_speculative_tokens=3, **fields)


REFUSED: dict[str, tuple[list[str], dict[str, Any], str]] = {
    "V1, vocabularies that differ by padding": (
        ["Qwen/Qwen2.5-72B-Instruct", "--tensor-parallel-size=4", draft("Qwen/Qwen2.5-0.5B-Instruct")],
        {"gpus": 4},
        "SD201",
    ),
    "V2, a draft model in a version that has none": (
        ["Qwen/Qwen3-4B", draft("Qwen/Qwen3-0.6B")],
        {"version": "0.13.0"},
        "SD113",
    ),
    "V2, a runner without the method": (
        ["Qwen/Qwen3-4B", NGRAM],
        {"version": "0.30.0", "env": {"VLLM_USE_V2_MODEL_RUNNER": "1"}},
        "SD125",
    ),
    "V3, pipeline stages": (["Qwen/Qwen3-8B", "--pipeline-parallel-size=2", NGRAM], {"gpus": 2}, "SD115"),
    "V4, flags of years ago": (
        ["Qwen/Qwen3-8B", "--speculative-model=Qwen/Qwen3-0.6B", "--num-speculative-tokens=5"],
        {},
        "SD102",
    ),
    "V4, a field of years ago": (
        ["Qwen/Qwen3-8B", speculative(method="ngram", num_speculative_tokens=3, ngram_prompt_lookup_max=4)],
        {},
        "SD111",
    ),
    "V4, a field that is gone": (
        ["Qwen/Qwen3-8B", speculative(method="ngram", num_speculative_tokens=3, disable_by_batch_size=4)],
        {},
        "SD111",
    ),
    "V5, a draft on one GPU of four": (
        [
            "meta-llama/Llama-3.1-70B-Instruct",
            "--tensor-parallel-size=4",
            "--max-model-len=8192",
            draft(LLAMA, draft_tensor_parallel_size=1),
        ],
        {"gpus": 4},
        "SD114",
    ),
    "V10, suffix without its package": (["Qwen/Qwen3-8B", speculative(method="suffix")], {}, "SD124"),
    "a head that is called a draft model": ([LLAMA, draft(HEAD)], {}, "SD202"),
    "a head of another size": (
        [
            "meta-llama/Llama-3.3-70B-Instruct",
            "--tensor-parallel-size=4",
            speculative(method="eagle3", model=HEAD, num_speculative_tokens=3),
        ],
        {"gpus": 4},
        "SD221",
    ),
    "more sequences than the default has tokens": (["Qwen/Qwen3-8B", "--max-num-seqs=20000"], {}, "SD108"),
    "a length beyond the model's": (["Qwen/Qwen2.5-7B-Instruct", "--max-model-len=65536", NGRAM], {}, "SD302"),
}


@pytest.mark.parametrize("story", REFUSED)
def test_an_engine_that_ends_at_its_start_is_no_plan(run: Any, tmp_path: Path, story: str) -> None:
    arguments, rest, code = REFUSED[story]
    file = manifest(tmp_path, *arguments, **rest)
    exit_code, out, _ = run("plan", file, "--format", "json")
    doc = json.loads(out)
    assert (exit_code, doc["starts"]) == (1, False)
    refusals = [w for w in doc["warnings"] if w["severity"] == "error"]
    assert [r["code"] for r in refusals] == [code], "once, and by the rule that validate has"
    assert doc["warnings"][0] == refusals[0]
    assert len(refusals[0]["message"]) > 20
    _, text, _ = run("plan", file)
    lines = text.splitlines()
    assert "this engine will not start: " + code in lines[2]
    assert code in lines[3]
    assert not any(line.startswith("fits") for line in lines)
    _, text, _ = run("plan", file, "--format", "md")
    assert f": this engine will not start: {code}" in text.splitlines()[0]
    _, text, _ = run("plan", file, "--format", "html")
    assert text.index("this engine will not start") < text.index("Where the memory goes")


@pytest.mark.parametrize(
    ("arguments", "rest"),
    [
        (["Qwen/Qwen2.5-72B-Instruct", "--tensor-parallel-size=4", draft("Qwen/Qwen2.5-7B-Instruct")], {"gpus": 4}),
        (["Qwen/Qwen3-4B", draft("Qwen/Qwen3-0.6B")], {"version": "0.15.0"}),
        (["Qwen/Qwen3-4B", NGRAM], {"env": {"VLLM_USE_V2_MODEL_RUNNER": "1"}}),
        (["Qwen/Qwen3-8B", "--tensor-parallel-size=2", NGRAM], {"gpus": 2}),
        ([LLAMA, speculative(method="eagle3", model=HEAD, num_speculative_tokens=3)], {}),
        (["Qwen/Qwen3-8B", "--max-num-batched-tokens=64"], {}),
        # It does nothing in this version, and the engine starts with it.
        (
            ["Qwen/Qwen3-8B", speculative(method="ngram", num_speculative_tokens=3, disable_by_batch_size=4)],
            {"version": "0.14.0"},
        ),
    ],
)
def test_what_starts_is_planned(run: Any, tmp_path: Path, arguments: list[str], rest: dict[str, Any]) -> None:
    code, out, _ = run("plan", manifest(tmp_path, *arguments, **rest), "--format", "json")
    doc = json.loads(out)
    assert (code, doc["starts"], doc["fits"]) == (0, True, True)
    assert all(w["severity"] == "warning" for w in doc["warnings"])


def test_a_version_asked_for_that_lacks_something_does_not_start(run: Any) -> None:
    code, out, _ = run("plan", "prod", "--engine-version", "0.12.0", "--format", "json")
    doc = json.loads(out)
    assert (code, doc["starts"], doc["engine_version"]) == (1, False, "0.12.0")
    assert {"SD101", "SD113"} <= {w["code"] for w in doc["warnings"] if w["severity"] == "error"}
    assert doc["runner"] == "v1", "the runner is that version's"


@pytest.mark.parametrize(("version", "runner"), [("0.28.0", "v1"), ("0.32.0", "v2"), ("v0.32.0", "v2")])
def test_the_runner_follows_the_version(run: Any, version: str, runner: str) -> None:
    _, out, _ = run("plan", "prod", "--engine-version", version, "--format", "json")
    assert json.loads(out)["runner"] == runner


@pytest.mark.parametrize("version", ["9.9.9", "0.34.0", "0.5.0", "banana"])
def test_a_version_that_nobody_knows_is_refused(run: Any, version: str) -> None:
    code, out, err = run("plan", "prod", "--engine-version", version, "--format", "json")
    error = json.loads(err)["error"]
    assert (code, out) == (2, "")
    assert error["path"] == "--engine-version"
    assert version in error["message"]
    assert error["fix"]


def test_an_image_newer_than_the_tables_is_planned_as_the_newest(run: Any, tmp_path: Path) -> None:
    code, out, _ = run("plan", manifest(tmp_path, "Qwen/Qwen3-8B", NGRAM, version="0.50.0"), "--format", "json")
    doc = json.loads(out)
    assert (code, doc["engine_version"]) == (0, "0.33.0")
    assert any("0.50.0" in w["message"] and "0.33.0" in w["message"] for w in doc["warnings"])
