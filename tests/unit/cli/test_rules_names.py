"""The same pair under other names: re-uploads, no method, single flags."""

from __future__ import annotations

import json
from typing import Any

import pytest
from specdec import rules
from specdec.rules.examples import manifests_of
from specdec.rules.speculation import example

TARGET, DRAFT = "Qwen/Qwen2.5-72B-Instruct", "Qwen/Qwen2.5-0.5B-Instruct"


def codes(target: str, version: str = "0.32.0", **config: Any) -> set[str]:
    text = example(json.dumps({"num_speculative_tokens": 3, **config}), version=version)
    return {finding.code for finding in rules.check(manifests_of(text.replace("/models/target", target)))}


@pytest.mark.parametrize(
    ("target", "draft"), [(TARGET, DRAFT), (f"{TARGET}-AWQ", f"{DRAFT}-AWQ"), (TARGET, f"{DRAFT}-AWQ")]
)
@pytest.mark.parametrize("method", [{"method": "draft_model"}, {}])
def test_a_vocabulary_that_differs_is_found_under_every_name(target: str, draft: str, method: dict[str, str]) -> None:
    assert "SD201" in codes(target, model=draft, **method)
    assert "SD201" not in codes(target, model="Qwen/Qwen2.5-7B-Instruct", **method)


def test_a_whole_model_without_a_method_is_a_draft_model_and_an_unknown_one_may_be_a_head() -> None:
    assert "SD113" in codes("Qwen/Qwen3-4B", "0.13.0", model="Qwen/Qwen3-0.6B")
    assert "SD113" not in codes("Qwen/Qwen3-4B", "0.13.0", model="acme/unknown")
    assert "SD113" not in codes(
        "meta-llama/Llama-3.1-8B-Instruct", "0.13.0", model="yuhuili/EAGLE3-LLaMA3.1-Instruct-8B"
    )
