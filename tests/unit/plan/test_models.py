"""Parameters, bytes and KV cache of published models: totals that their makers or the engine's own logs state."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from specdec.errors import SpecdecError
from specdec.plan import catalogue, heads, kvcache, weights
from specdec.plan.models import Model
from specdec.plan.parse import parse
from specdec.plan.setup import Setup
from specdec.plan.weights import FORMATS, GIB

PARAMETERS = {
    "meta-llama/Llama-3.1-8B-Instruct": 8_030_261_248,
    "meta-llama/Llama-3.3-70B-Instruct": 70_553_706_496,
    "meta-llama/Llama-3.2-1B-Instruct": 1_235_814_400,
    "Qwen/Qwen2.5-72B-Instruct": 72_706_203_648,
    "Qwen/Qwen2.5-0.5B-Instruct": 494_032_768,
    "Qwen/Qwen2.5-7B-Instruct": 7_615_616_512,
    "Qwen/Qwen3-0.6B": 596_049_920,
    "Qwen/Qwen3-32B": 32_762_123_264,
    "Qwen/Qwen3-235B-A22B": 235_093_634_560,
    "mistralai/Mixtral-8x7B-Instruct-v0.1": 46_702_792_704,
}
KV_BYTES = {
    "meta-llama/Llama-3.1-8B-Instruct": 131_072,
    "meta-llama/Llama-3.3-70B-Instruct": 327_680,
    "meta-llama/Llama-3.2-1B-Instruct": 32_768,
    "Qwen/Qwen2.5-72B-Instruct": 327_680,
    "Qwen/Qwen2.5-0.5B-Instruct": 12_288,
    "Qwen/Qwen2.5-7B-Instruct": 57_344,
    "Qwen/Qwen3-32B": 262_144,
    "Qwen/Qwen3-235B-A22B": 192_512,
    "Qwen/Qwen3-0.6B": 114_688,
    "mistralai/Mixtral-8x7B-Instruct-v0.1": 131_072,
    "deepseek-ai/DeepSeek-V3": 70_272,
}


@pytest.mark.parametrize(("name", "parameters"), PARAMETERS.items())
def test_the_parameters_of_a_published_configuration(model: Callable[[str], Model], name: str, parameters: int) -> None:
    assert model(name).parameters == parameters


@pytest.mark.parametrize(("name", "expected"), KV_BYTES.items())
def test_kv_bytes_of_a_token(setup: Callable[..., Setup], name: str, expected: int) -> None:
    assert kvcache.bytes_per_token(setup(name)) == expected


@pytest.mark.parametrize(
    ("name", "gib"),
    [
        ("openai/gpt-oss-120b", 60.8),
        ("google/gemma-3-27b-it", 51.1),
        ("meta-llama/Llama-3.1-70B-Instruct", 131.42),
        ("Qwen/Qwen3-235B-A22B", 437.90),
    ],
)
def test_the_size_of_a_checkpoint(model: Callable[[str], Model], name: str, gib: float) -> None:
    assert weights.checkpoint_bytes(model(name)) / GIB == pytest.approx(gib, rel=0.002)


def test_deepseek_v3_has_671_billion_parameters_and_a_prediction_layer_of_11_6(model: Callable[[str], Model]) -> None:
    target = model("deepseek-ai/DeepSeek-V3")
    layer = heads.mtp(target)
    assert layer is not None
    assert target.parameters == pytest.approx(671.03e9, rel=0.0005)
    assert layer.parameters == pytest.approx(11.61e9, rel=0.005)


def test_the_latent_of_mla_is_whole_on_every_rank(setup: Callable[..., Setup]) -> None:
    alone, eight = setup("deepseek-ai/DeepSeek-V3"), setup("deepseek-ai/DeepSeek-V3", tp=8)
    assert kvcache.bytes_per_token(alone) == kvcache.bytes_per_token(eight) == 70_272
    with_layer = setup("deepseek-ai/DeepSeek-V3", tp=8, method="mtp", k=1, max_model_len=131_072)
    assert kvcache.bytes_per_token(with_layer) == 71_424
    assert kvcache.sequence_bytes(with_layer) / GIB == pytest.approx(8.72, abs=0.005)


@pytest.mark.parametrize(
    ("name", "weights_gib", "head_gib"),
    [("Qwen/Qwen2.5-72B-Instruct", 33.97, 4.64), ("meta-llama/Llama-3.1-8B-Instruct", 3.38, 1.96)],
)
def test_four_bit_weights_leave_embedding_and_head_in_16_bit(
    model: Callable[[str], Model], name: str, weights_gib: float, head_gib: float
) -> None:
    target = model(name)
    by_part: dict[str, float] = {}
    for w in target.weights:
        kind = "head" if w.part in ("embed", "head") else "body"
        by_part[kind] = by_part.get(kind, 0) + weights.weight_bytes(w, target, FORMATS["int4"], 1, 2) / GIB
    assert by_part["head"] == pytest.approx(head_gib, abs=0.006)
    assert by_part["body"] == pytest.approx(weights_gib, abs=0.02)


def test_fp8_of_a_70b(model: Callable[[str], Model]) -> None:
    target = model("meta-llama/Llama-3.3-70B-Instruct")
    total = sum(weights.weight_bytes(w, target, FORMATS["fp8"], 1, 2) for w in target.weights) / GIB
    assert total == pytest.approx(67.67, abs=0.05)


def test_mxfp4_experts_take_more_room_loaded_than_in_the_file(model: Callable[[str], Model]) -> None:
    target = model("openai/gpt-oss-120b")
    loaded = weights.rank_weights(target, FORMATS["mxfp4"], 1) / GIB
    assert loaded == pytest.approx(64.4, abs=0.25)


@pytest.mark.parametrize(
    ("name", "head"),
    [
        ("nm-testing/EAGLE3-LLaMA3.1-Instruct-8B-converted", 424.7e6),
        ("lmsys/Qwen3-235B-A22B-EAGLE3", 592.5e6),
        ("RedHatAI/Qwen3-32B-speculator.eagle3", 782.5e6),
        ("lmsys/sglang-EAGLE3-Llama-3.3-70B-Instruct-SpecForge", 1403.0e6),
        ("nvidia/gpt-oss-120b-Eagle3-short-context", 307.6e6),
    ],
)
def test_eagle3_heads(model: Callable[[str], Model], name: str, head: float) -> None:
    assert model(name).parameters == pytest.approx(head, rel=0.0005)


def test_an_eagle3_head_with_its_own_embedding(model: Callable[[str], Model]) -> None:
    head = heads.with_embedding(model("nm-testing/EAGLE3-LLaMA3.1-Instruct-8B-converted"))
    assert head.parameters == pytest.approx(950.0e6, rel=0.0005)


def gib_at(setup: Setup, length: int) -> float:
    return kvcache.bytes_per_token(setup, length=length) * length / GIB


def test_head_dim_is_read_and_never_divided(setup: Callable[..., Setup]) -> None:
    assert gib_at(setup("Qwen/Qwen3-0.6B"), 40_960) == pytest.approx(4.375)


def test_gemma_keeps_windows_for_52_of_62_layers(setup: Callable[..., Setup]) -> None:
    hybrid, full = setup("google/gemma-3-27b-it"), setup("google/gemma-3-27b-it", hybrid_kv=False)
    assert gib_at(hybrid, 131_072) == pytest.approx(10.41, abs=0.005)
    assert gib_at(full, 131_072) == pytest.approx(62.0)


def test_gpt_oss_with_and_without_the_hybrid_cache(setup: Callable[..., Setup]) -> None:
    hybrid, full = setup("openai/gpt-oss-120b"), setup("openai/gpt-oss-120b", hybrid_kv=False)
    assert gib_at(hybrid, 131_072) == pytest.approx(4.50, abs=0.01)
    assert gib_at(full, 131_072) == pytest.approx(9.00)


def test_a_draft_layer_spoils_the_groups_of_older_engines(setup: Callable[..., Setup]) -> None:
    arguments = {
        "method": "eagle3",
        "draft": "nvidia/gpt-oss-120b-Eagle3-short-context",
        "max_model_len": 131_072,
        "max_num_batched_tokens": 8192,
    }
    old, new = (setup("openai/gpt-oss-120b", version=v, **arguments) for v in ("0.11.0", "0.13.0"))
    # 19 full and 18 window layers: two groups of 18 for the full ones before, one of 19 after.
    assert kvcache.group_size(old, 19, 18) == 18
    assert kvcache.group_size(new, 19, 18) == 19
    assert kvcache.sequence_bytes(old) / kvcache.sequence_bytes(new) == pytest.approx(1.84, abs=0.08)


def test_hybrid_linear_attention_pays_for_16_of_64_layers(setup: Callable[..., Setup]) -> None:
    assert kvcache.bytes_per_token(setup("Qwen/Qwen3.5-27B")) == 65_536


def test_kv_heads_are_never_split_below_one(setup: Callable[..., Setup]) -> None:
    assert (
        kvcache.bytes_per_token(setup("Qwen/Qwen3-235B-A22B", tp=4))
        == kvcache.bytes_per_token(setup("Qwen/Qwen3-235B-A22B", tp=8))
        == 48_128
    )


def test_fp8_halves_the_kv_cache(setup: Callable[..., Setup]) -> None:
    assert kvcache.bytes_per_token(setup("meta-llama/Llama-3.1-8B-Instruct", kv_dtype="fp8")) == 65_536


LLAMA = {
    "model_type": "llama",
    "hidden_size": 4096,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "intermediate_size": 14336,
    "vocab_size": 128256,
}


@pytest.mark.parametrize(
    "missing", ["hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "vocab_size"]
)
def test_a_missing_field_is_an_error_that_names_it(missing: str) -> None:
    with pytest.raises(SpecdecError) as error:
        parse("some/model", {k: v for k, v in LLAMA.items() if k != missing})
    assert error.value.path == missing


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("num_key_value_heads", 5),
        ("num_key_value_heads", 64),
        ("layer_types", ["full_attention"]),
        ("layer_types", ["ring"] * 32),
        ("hidden_size", 0),
        ("vocab_size", "many"),
    ],
)
def test_contradictory_fields_are_refused(field: str, value: object) -> None:
    with pytest.raises(SpecdecError) as error:
        parse("some/model", LLAMA | {field: value})
    assert error.value.path == field


def test_no_key_value_heads_means_as_many_as_heads() -> None:
    assert parse("some/model", LLAMA).kv[0].kv_numbers(1) == 2 * 32 * 128


def test_the_vision_tower_of_gemma_counts(model: Callable[[str], Model]) -> None:
    vision = sum(w.params for w in model("google/gemma-3-27b-it").weights if w.part == "vision")
    assert vision == pytest.approx(0.42e9, rel=0.02)


def test_a_checkpoint_with_an_8_bit_cache_and_a_draft_without(setup: Callable[..., Setup]) -> None:
    pair = {"method": "draft_model", "draft": "meta-llama/Llama-3.2-1B-Instruct", "tp": 4}
    s = setup("nvidia/Llama-3.1-70B-Instruct-FP8", version="0.32.0", **pair)
    assert kvcache.bytes_per_token(s) == 327_680 / 2 / 4 + 32_768 / 4
    old = setup("nvidia/Llama-3.1-70B-Instruct-FP8", version="0.11.0", **pair)
    assert kvcache.bytes_per_token(old) == 327_680 / 4 + 32_768 / 4


@pytest.mark.parametrize(
    ("name", "fmt"),
    [
        ("somebody/Qwen3-14B-AWQ-4bit", "int4"),
        ("RedHatAI/Meta-Llama-3.1-70B-Instruct-quantized.w4a16", "int4"),
        ("Qwen/Qwen2.5-32B-Instruct-GPTQ-Int8", "int8"),
        ("somebody/Qwen3-32B-NVFP4", "nvfp4"),
        ("nvidia/Qwen3-235B-A22B-NVFP4", "nvfp4"),
    ],
)
def test_a_quantised_checkpoint_of_a_known_model(model: Callable[[str], Model], name: str, fmt: str) -> None:
    assert weights.stored_format(model(name)).name == fmt


def test_a_model_in_a_folder_of_the_hubs_cache(model: Callable[[str], Model]) -> None:
    path = "/models/hub/models--meta-llama--Llama-3.1-8B-Instruct/snapshots/0e9e39f249a16976918f6564b8830bc894c89659"
    assert model(path).name == "meta-llama/Llama-3.1-8B-Instruct"


@pytest.mark.parametrize(
    ("name", "row"),
    [
        ("unsloth/gpt-oss-120b", "openai/gpt-oss-120b"),
        ("Qwen/Qwen3-8B-Base", "Qwen/Qwen3-8B"),
        ("deepseek-ai/DeepSeek-R1-0528", "deepseek-ai/DeepSeek-R1"),
        ("google/gemma-3-27b-pt", "google/gemma-3-27b-it"),
    ],
)
def test_a_tuned_version_or_a_copy_has_the_shape_of_its_row_and_says_so(name: str, row: str) -> None:
    found = catalogue.known_row(name)
    exact = catalogue.known_row(row)
    assert found
    assert exact
    assert found["config"] == exact["config"]
    assert f"taken for {name} by name" in found["source"]
    assert "taken for" not in exact["source"]


@pytest.mark.parametrize("name", ["acme/none", "mistralai/Mistral-7B-Instruct-v0.1"])
def test_a_name_that_means_no_one_shape_is_not_known(name: str) -> None:
    assert catalogue.known_row(name) is None


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("num_hidden_layers", 10**12),
        ("hidden_size", 10**12),
        ("max_position_embeddings", "long"),
        ("max_position_embeddings", {"a": 1}),
        ("quantization_config", 1),
        ("vocab_size", -1),
        ("num_attention_heads", 0),
    ],
)
def test_a_configuration_that_cannot_be_is_named(tmp_path: Path, field: str, value: object) -> None:
    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": 4096,
        "intermediate_size": 14336,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "vocab_size": 128256,
    }
    (tmp_path / "config.json").write_text(json.dumps(config | {field: value}))
    with pytest.raises(SpecdecError) as refused:
        catalogue.load("mine", {"mine": tmp_path})
    assert refused.value.path == field
    assert refused.value.fix
