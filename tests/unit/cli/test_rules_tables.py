"""The tables that rules look names up in: architectures of heads, variables of the engine."""

from __future__ import annotations

import pytest
from specdec import facts
from specdec.rules.heads import architectures, loads, renamed
from specdec.rules.variables import variables


class TestArchitectures:
    def test_every_range_is_one(self) -> None:
        assert len(architectures()) >= 60
        for name, row in architectures().items():
            first = facts.version_key(row["from"])
            assert first < facts.version_key(row.get("before", "99.0.0")), name

    @pytest.mark.parametrize(
        ("name", "without", "within"),
        [
            ("LlamaForCausalLMEagle3", "0.10.1", "0.10.2"),
            ("DFlashDraftModel", "0.19.1", "0.20.0"),
            ("MedusaModel", "0.33.0", "0.32.0"),
            ("MLPSpeculatorPreTrainedModel", "0.10.0", "0.9.2"),
        ],
    )
    def test_bounds_that_were_read_on_both_sides(self, name: str, without: str, within: str) -> None:
        assert not loads(name, without)
        assert loads(name, within)

    def test_heads_are_looked_up_as_the_engine_does(self) -> None:
        assert renamed("LlamaForCausalLM", "eagle") == "EagleLlamaForCausalLM"
        assert renamed("LlamaForCausalLMEagle3", "eagle3") == "LlamaForCausalLMEagle3"
        assert renamed("Qwen3ForCausalLM", "eagle3") == "Eagle3Qwen3ForCausalLM"
        assert renamed("MedusaModel", "medusa") == "MedusaModel"


class TestVariables:
    def test_every_range_is_one(self) -> None:
        assert len(variables()) >= 400
        for name, bounds in variables().items():
            first, gone = bounds if isinstance(bounds, list) else (bounds, "99.0.0")
            assert facts.version_key(first) < facts.version_key(gone), name

    @pytest.mark.parametrize(
        ("name", "bounds"),
        [
            ("VLLM_ATTENTION_BACKEND", ["0.6.3", "0.15.0"]),
            ("VLLM_USE_V1", ["0.6.4", "0.11.1"]),
            ("VLLM_USE_V2_MODEL_RUNNER", "0.12.0"),
            ("VLLM_PORT", "0.6.3"),
        ],
    )
    def test_bounds_that_were_read_on_both_sides(self, name: str, bounds: object) -> None:
        assert variables()[name] == bounds

    def test_the_table_of_runners_agrees(self) -> None:
        for row in facts.engines()["runners"]:
            if name := row.get("env"):
                first = variables()[name][0] if isinstance(variables()[name], list) else variables()[name]
                assert facts.version_key(first) <= facts.version_key(row["from"]), name
