"""What is configured beside what the planner would choose, and a K that no engine takes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from .engines import manifest, speculative

LLAMA, HEAD = "meta-llama/Llama-3.1-8B-Instruct", "yuhuili/EAGLE3-LLaMA3.1-Instruct-8B"


def eagle(**fields: Any) -> str:
    return speculative(method="eagle3", model=HEAD, **fields)


def test_the_configured_k_stands_beside_the_recommended_one(run: Any, tmp_path: Path) -> None:
    options = ("--acceptance", "0.6,0.2,0.05", "--format")
    file = manifest(tmp_path, LLAMA, eagle(num_speculative_tokens=8))
    code, out, _ = run("plan", file, *options, "json")
    doc = json.loads(out)
    best, found = doc["num_speculative_tokens"]["static"], doc["configured"]
    assert code == 0
    assert best < 8
    assert found["num_speculative_tokens"] == 8
    static = {r["batch"]: r["tpot_ms"] for r in doc["speed"] if r["arm"] == "static"}
    assert all(row["tpot_ms"] > static[row["batch"]] for row in found["speed"])
    assert found["difference"] == pytest.approx(found["tpot_ms"] / found["recommended_tpot_ms"] - 1, abs=1e-3)
    assert found["difference"] > 0.1
    words = f"configured K=8: {found['tpot_ms']:.1f} ms a token at 50 requests, {found['difference']:.1%} slower"
    assert found["text"].startswith(words)
    assert {r["arm"] for r in doc["speed"]} <= {"baseline", "static", "schedule"}, "the form that others rely on"
    _, text, _ = run("plan", file, *options[:2])
    assert found["text"] in text
    assert f"(K={8})" in text
    _, text, _ = run("plan", file, *options, "md")
    assert found["text"][1:] in text
    assert "| configured | 8 |" in text
    _, text, _ = run("plan", file, *options, "html")
    assert found["text"][1:] in text


def test_the_best_k_is_said_to_be_it(run: Any, tmp_path: Path) -> None:
    _, out, _ = run("plan", manifest(tmp_path, LLAMA, eagle(num_speculative_tokens=8)), "--format", "json")
    best = json.loads(out)["num_speculative_tokens"]["static"]
    file = manifest(tmp_path, LLAMA, eagle(num_speculative_tokens=best))
    doc = json.loads(run("plan", file, "--format", "json")[1])
    assert doc["configured"]["difference"] == 0
    assert "the recommended K" in doc["configured"]["text"]
    assert "configured, " not in run("plan", file)[1], "no arm twice"


def test_where_nothing_pays_the_configured_k_is_held_against_nothing(run: Any, tmp_path: Path) -> None:
    file = manifest(tmp_path, LLAMA, eagle(num_speculative_tokens=4))
    doc = json.loads(run("plan", file, "--acceptance", "0.01,0", "--format", "json")[1])
    assert doc["num_speculative_tokens"]["static"] == 0
    assert "slower than the recommended no speculation" in doc["configured"]["text"]


def test_a_configured_schedule_is_an_arm_too(run: Any, tmp_path: Path) -> None:
    table = [[1, 16, 4], [17, 1024, 1]]
    spec = eagle(num_speculative_tokens=4, num_speculative_tokens_per_batch_size=table)
    doc = json.loads(run("plan", manifest(tmp_path, LLAMA, spec), "--format", "json")[1])
    assert [(r["batch"], r["k"]) for r in doc["configured"]["speed"]] == [(1, 4), (16, 4), (64, 1), (128, 1)]
    assert doc["configured"]["schedule"][0] == {"from": 1, "to": 16, "tokens": 4}


def test_without_speculation_nothing_is_configured(run: Any, tmp_path: Path) -> None:
    assert json.loads(run("plan", manifest(tmp_path, LLAMA), "--format", "json")[1])["configured"] is None


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({}, "num_speculative_tokens is missing"),
        ({"num_speculative_tokens": 2.5}, "num_speculative_tokens is 2.5, not a whole number"),
        ({"num_speculative_tokens": "three"}, "num_speculative_tokens is 'three', not a whole number"),
        ({"num_speculative_tokens": True}, "num_speculative_tokens is True, not a whole number"),
        ({"num_speculative_tokens": -2}, "-2 speculative tokens"),
        ({"num_speculative_tokens": 129}, "at most 128 a step"),
        ({"num_speculative_tokens": 10**9}, "at most 128 a step"),
    ],
)
def test_a_k_that_cannot_be_is_named(run: Any, tmp_path: Path, fields: dict[str, Any], words: str) -> None:
    code, _, err = run("plan", manifest(tmp_path, LLAMA, eagle(**fields)), "--format", "json")
    error = json.loads(err)["error"]
    assert (code, error["code"], error["path"]) == (2, "SD222", "speculative.numTokens")
    assert words in error["message"]
    assert error["fix"]


def test_layers_of_prediction_state_their_own_k(run: Any, tmp_path: Path) -> None:
    file = manifest(tmp_path, "zai-org/GLM-4.5-Air-FP8", "--tensor-parallel-size=2", speculative(method="mtp"), gpus=2)
    doc = json.loads(run("plan", file, "--format", "json")[1])
    assert doc["configured"]["num_speculative_tokens"] == 1


def test_a_step_of_few_tokens_holds_few_sequences(run: Any, tmp_path: Path) -> None:
    """The engine bounds the default of either by the other; before 0.10.1 it refused."""
    few = (LLAMA, "--max-num-batched-tokens=64")
    assert json.loads(run("plan", manifest(tmp_path, *few), "--format", "json")[1])["max_num_seqs"] == 64
    old = json.loads(run("plan", manifest(tmp_path, *few, version="0.9.2"), "--format", "json")[1])
    assert [w["code"] for w in old["warnings"] if w["severity"] == "error"] == ["SD108"]
    short = manifest(tmp_path, LLAMA, "--max-model-len=16", "--max-num-seqs=4")
    doc = json.loads(run("plan", short, "--input-len=8", "--output-len=8", "--format", "json")[1])
    assert doc["max_num_batched_tokens"] == 64


def test_a_method_that_needs_no_model_takes_the_targets_own_layers(run: Any, tmp_path: Path) -> None:
    spec = speculative(method="dspark", num_speculative_tokens=7)
    words = ("--tensor-parallel-size=8", "--max-model-len=8192", spec)
    file = manifest(tmp_path, "deepseek-ai/DeepSeek-V3", *words, gpus=8, version="0.33.0")
    doc = json.loads(run("plan", file, "--accelerator", "b200", "--format", "json")[1])
    assert doc["configured"]["num_speculative_tokens"] == 7
    assert doc["ranks"][0]["draft_weights_gib"] > 1
    code, _, err = run("plan", manifest(tmp_path, LLAMA, spec, version="0.33.0"), "--format", "json")
    assert (code, json.loads(err)["error"]["code"]) == (2, "draft-missing")


def test_more_requests_than_run_at_once_are_said_to_wait(run: Any, tmp_path: Path) -> None:
    file = manifest(tmp_path, LLAMA, eagle(num_speculative_tokens=3), "--max-num-seqs=64")
    assert "best at 64 requests (of 5000, the others wait): K=" in run("plan", file, "--concurrency", "5000")[1]
    assert "best at 40 requests: K=" in run("plan", file, "--concurrency", "40")[1]
