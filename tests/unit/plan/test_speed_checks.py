"""`specdec speed` says of a pair that will not start, or not fit, that it will not, and asks for nothing endless."""

from __future__ import annotations

import json
from typing import Any

import pytest


def speed(run: Any, target: str, method: str, draft: str | None = None, *options: str, k: str = "3") -> tuple[int, Any]:
    words = ["--target", target, "--method", method, "--k", k, "--accelerator", "h100-80gb", "--format", "json"]
    code, out, err = run("speed", *words, *(["--draft", draft] if draft else []), *options)
    return code, json.loads(out or err)


HEAD = "yuhuili/EAGLE3-LLaMA3.1-Instruct-8B"
SMALL, LARGE = "meta-llama/Llama-3.1-8B-Instruct", "meta-llama/Llama-3.3-70B-Instruct"


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("Qwen/Qwen2.5-72B-Instruct", "draft_model", "Qwen/Qwen2.5-0.5B-Instruct", "--tp", "4"), "SD201"),
        ((LARGE, "eagle3", HEAD, "--tp", "4"), "SD221"),
        ((SMALL, "draft_model", HEAD), "SD202"),
        (("Qwen/Qwen3-8B", "draft_model", "Qwen/Qwen3-0.6B", "--engine-version", "0.13.0"), "SD113"),
    ],
)
def test_a_pair_that_will_not_start(run: Any, words: tuple[str, ...], code: str) -> None:
    exit_code, doc = speed(run, *words)
    assert (exit_code, doc["starts"], doc["fits"]) == (1, False, True)
    assert [w["code"] for w in doc["warnings"] if w["severity"] == "error"] == [code]
    assert [row["batch"] for row in doc["batches"]] == [1, 16, 64, 128], "what it would do stays"


def test_weights_that_do_not_fit(run: Any) -> None:
    code, doc = speed(run, LARGE, "ngram")
    assert (code, doc["fits"], doc["starts"]) == (1, False, True)
    assert "131." in doc["reasons"][0]
    words = ["--target", LARGE, "--method", "ngram", "--k", "3", "--accelerator", "h100-80gb"]
    code, text, _ = run("speed", *words)
    assert code == 1
    assert text.splitlines()[0].startswith("does not fit")


def test_requests_that_wait_are_counted(run: Any) -> None:
    code, doc = speed(run, "Qwen/Qwen3-8B", "ngram", None, "--input-len", "20000", "--batch", "1,64")
    assert code == 0
    assert [row["waiting"] for row in doc["batches"]] == [0, 64 - doc["requests_at_once"]]


@pytest.mark.parametrize(
    ("words", "k", "code"),
    [
        (("Qwen/Qwen3-8B", "ngram", None, "--input-len", "40960"), "3", "SD335"),
        (("Qwen/Qwen3-8B", "ngram", None, "--input-len", "1000000"), "3", "SD335"),
        (("Qwen/Qwen3-8B", "ngram"), "99999", "SD222"),
        (("Qwen/Qwen3-8B", "ngram"), "0", "SD222"),
        (("Qwen/Qwen3-8B", "ngram"), "-1", "SD222"),
        (("Qwen/Qwen3-8B", "ngram", None, "--engine-version", "9.9.9"), "3", "unknown-version"),
        (("Qwen/Qwen3-8B", "ngram", None, "--batch", "1,0"), "3", "bad-number"),
        (("Qwen/Qwen3-8B", "ngram", None, "--tp", "0"), "3", "SD321"),
    ],
)
def test_what_cannot_be_asked(run: Any, words: tuple[str, ...], k: str, code: str) -> None:
    exit_code, doc = speed(run, *words, k=k)
    assert (exit_code, doc["error"]["code"]) == (2, code)
    assert doc["error"]["fix"]


@pytest.mark.parametrize(
    "words",
    [
        (SMALL, "eagle3", HEAD),
        (SMALL, "eagle3"),
        (SMALL, "suffix"),
        (SMALL, "eagle", "yuhuili/EAGLE-LLaMA3.1-Instruct-8B"),
        ("Qwen/Qwen3-8B", "draft_model", "Qwen/Qwen3-0.6B"),
        (LARGE, "ngram", None, "--tp", "4"),
        (LARGE, "ngram", None, "--tp", "2", "--quantization", "fp8"),
    ],
)
def test_a_pair_that_starts(run: Any, words: tuple[str, ...]) -> None:
    code, doc = speed(run, *words)
    assert (code, doc["starts"], doc["fits"], doc["reasons"]) == (0, True, True, [])
