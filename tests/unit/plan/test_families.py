"""Any model from its config.json alone: families that the planner has no row for.

families.json: the default configuration of each family's class in transformers 5.19, and the parameters of the model
that this class makes of it. REAL: published configurations and the totals that their makers state.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from specdec.errors import SpecdecError
from specdec.plan import catalogue, kvcache
from specdec.plan.parse import parse
from specdec.plan.setup import Accelerator, build

FAMILIES: dict[str, dict[str, Any]] = json.loads((Path(__file__).parent / "families.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("family", FAMILIES)
def test_the_parameters_of_a_family(family: str) -> None:
    row = FAMILIES[family]
    assert parse(family, row["config"]).parameters == pytest.approx(row["parameters"], rel=0.005)


def config(model_type: str, hidden: int, layers: int, heads: int, kv: int, vocab: int, **more: Any) -> dict[str, Any]:
    return {
        "model_type": model_type,
        "hidden_size": hidden,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": kv,
        "vocab_size": vocab,
    } | more


REAL: dict[str, tuple[dict[str, Any], float]] = {
    "allenai/OLMo-2-1124-7B": (config("olmo2", 4096, 32, 32, 32, 100352, intermediate_size=11008), 7.299e9),
    "mistralai/Mistral-Nemo-Instruct-2407": (
        config("mistral", 5120, 40, 32, 8, 131072, intermediate_size=14336, head_dim=128),
        12.248e9,
    ),
    "nvidia/Minitron-8B-Base": (
        config("nemotron", 4096, 32, 48, 8, 256000, intermediate_size=16384, head_dim=128, hidden_act="relu2"),
        8.27e9,
    ),
    "tiiuae/falcon-7b": (
        {"model_type": "falcon", "hidden_size": 4544, "num_hidden_layers": 32, "num_attention_heads": 71}
        | {"vocab_size": 65024, "multi_query": True, "new_decoder_architecture": False},
        6.922e9,
    ),
    "tiiuae/falcon-40b": (
        {"model_type": "falcon", "hidden_size": 8192, "num_hidden_layers": 60, "num_attention_heads": 128}
        | {"vocab_size": 65024, "num_kv_heads": 8, "new_decoder_architecture": True},
        41.303e9,
    ),
    "bigscience/bloom": (
        {"model_type": "bloom", "n_embed": 14336, "hidden_size": 14336, "n_layer": 70, "num_attention_heads": 112}
        | {"vocab_size": 250880},
        176.247e9,
    ),
    "mosaicml/mpt-7b": (
        {"model_type": "mpt", "d_model": 4096, "n_layers": 32, "n_heads": 32, "expansion_ratio": 4}
        | {"vocab_size": 50432, "max_seq_len": 2048},
        6.649e9,
    ),
    "EleutherAI/gpt-j-6b": (
        {"model_type": "gptj", "n_embd": 4096, "n_layer": 28, "n_head": 16, "vocab_size": 50400, "n_positions": 2048}
        | {"tie_word_embeddings": False},
        6.051e9,
    ),
    "EleutherAI/gpt-neox-20b": (
        config("gpt_neox", 6144, 44, 64, 64, 50432, intermediate_size=24576, hidden_act="gelu_fast"),
        20.555e9,
    ),
    "bigcode/starcoder2-15b": (
        config("starcoder2", 6144, 40, 48, 4, 49152, intermediate_size=24576, hidden_act="gelu_pytorch_tanh")
        | {"tie_word_embeddings": False},
        15.958e9,
    ),
    "facebook/opt-2.7b": (
        {"model_type": "opt", "hidden_size": 2560, "num_hidden_layers": 32, "num_attention_heads": 32}
        | {"ffn_dim": 10240, "vocab_size": 50272, "max_position_embeddings": 2048},
        2.652e9,
    ),
    "databricks/dbrx-instruct": (
        {"model_type": "dbrx", "d_model": 6144, "n_heads": 48, "n_layers": 40, "vocab_size": 100352}
        | {"attn_config": {"kv_n_heads": 8}, "tie_word_embeddings": False}
        | {"ffn_config": {"ffn_hidden_size": 10752, "moe_num_experts": 16, "moe_top_k": 4}},
        131.6e9,
    ),
    "ai21labs/AI21-Jamba-1.5-Mini": (
        config("jamba", 4096, 32, 32, 8, 65536, intermediate_size=14336, num_experts=16, num_experts_per_tok=2)
        | {"attn_layer_period": 8, "attn_layer_offset": 4, "expert_layer_period": 2, "expert_layer_offset": 1}
        | {"mamba_d_state": 16, "mamba_d_conv": 4, "mamba_expand": 2, "mamba_dt_rank": 256},
        51.57e9,
    ),
    "nvidia/NVIDIA-Nemotron-Nano-9B-v2": (
        config("nemotron_h", 4480, 56, 40, 8, 131072, intermediate_size=15680, head_dim=128)
        | {"hybrid_override_pattern": "M-M-M-MM-M-M-M*-M-M-M*-M-M-M-M*-M-M-M-M*-M-MM-M-M-M-M-M-"}
        | {"mamba_num_heads": 128, "mamba_head_dim": 80, "ssm_state_size": 128, "n_groups": 8, "conv_kernel": 4}
        | {"mlp_hidden_act": "relu2"},
        8.888e9,
    ),
    "LiquidAI/LFM2-1.2B": (
        config("lfm2", 2048, 16, 32, 8, 65536, block_ff_dim=12288, intermediate_size=12288, conv_L_cache=3)
        | {"block_auto_adjust_ff_dim": True, "block_ffn_dim_multiplier": 1.0, "block_multiple_of": 256}
        | {"full_attn_idxs": [2, 5, 8, 10, 12, 14]},
        1.1703e9,
    ),
    "moonshotai/Kimi-Linear-48B-A3B-Instruct": (
        config("kimi_linear", 2304, 27, 32, 32, 163840, intermediate_size=9216, moe_intermediate_size=1024)
        | {"num_experts": 256, "num_experts_per_token": 8, "num_shared_experts": 1, "first_k_dense_replace": 1}
        | {"moe_layer_freq": 1, "kv_lora_rank": 512, "q_lora_rank": None, "qk_nope_head_dim": 128}
        | {"qk_rope_head_dim": 64, "v_head_dim": 128}
        | {
            "linear_attn_config": {
                "full_attn_layers": [4, 8, 12, 16, 20, 24, 27],
                "num_heads": 32,
                "head_dim": 128,
                "short_conv_kernel_size": 4,
            }
        },
        49.12e9,
    ),
    "MiniMaxAI/MiniMax-Text-01": (
        config("minimax_text_01", 6144, 80, 64, 8, 200064, intermediate_size=9216, head_dim=128)
        | {"num_local_experts": 32, "num_experts_per_tok": 2, "attn_type_list": ([0] * 7 + [1]) * 10},
        456.1e9,
    ),
    "deepseek-ai/DeepSeek-Coder-V2-Lite-Instruct": (
        config("deepseek_v2", 2048, 27, 16, 16, 102400, intermediate_size=10944, moe_intermediate_size=1408)
        | {"n_routed_experts": 64, "n_shared_experts": 2, "num_experts_per_tok": 6, "first_k_dense_replace": 1}
        | {"moe_layer_freq": 1, "kv_lora_rank": 512, "q_lora_rank": None, "qk_rope_head_dim": 64}
        | {"qk_nope_head_dim": 128, "v_head_dim": 128},
        15.706e9,
    ),
    "ByteDance-Seed/Seed-OSS-36B-Instruct": (
        config("seed_oss", 5120, 64, 80, 8, 155136, intermediate_size=27648, head_dim=128),
        36.15e9,
    ),
    "meituan-longcat/LongCat-Flash-Chat": (
        {"model_type": "longcat_flash", "hidden_size": 6144, "num_layers": 28, "num_attention_heads": 64}
        | {"ffn_hidden_size": 12288, "expert_ffn_hidden_size": 2048, "n_routed_experts": 512, "moe_topk": 12}
        | {"q_lora_rank": 1536, "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64}
        | {"v_head_dim": 128, "vocab_size": 131072},
        561.9e9,
    ),
}


@pytest.mark.parametrize("name", REAL)
def test_the_parameters_of_a_published_model(name: str) -> None:
    published, parameters = REAL[name]
    assert parse(name, published).parameters == pytest.approx(parameters, rel=0.005)


H100 = Accelerator("h100-80gb", "H100", 79.18, 3350.0, {"bf16": 989.0}, 900.0, "nvlink", True)


@pytest.mark.parametrize(
    ("name", "kv_bytes"),
    [
        # Attention layers alone have a cache: 4 of 32, 4 of 56, 6 of 16, 10 of 80.
        ("ai21labs/AI21-Jamba-1.5-Mini", 4 * 2 * 8 * 128 * 2),
        ("nvidia/NVIDIA-Nemotron-Nano-9B-v2", 4 * 2 * 8 * 128 * 2),
        ("LiquidAI/LFM2-1.2B", 6 * 2 * 8 * 64 * 2),
        ("MiniMaxAI/MiniMax-Text-01", 10 * 2 * 8 * 128 * 2),
        # The latent of 7 layers; of both attentions of 28 layers.
        ("moonshotai/Kimi-Linear-48B-A3B-Instruct", 7 * 576 * 2),
        ("meituan-longcat/LongCat-Flash-Chat", 56 * 576 * 2),
        # One head for all queries.
        ("tiiuae/falcon-7b", 32 * 2 * 64 * 2),
    ],
)
def test_the_cache_of_a_hybrid_model(name: str, kv_bytes: int) -> None:
    setup = build(parse(name, REAL[name][0]), H100, version="0.24.0", runner="v1", max_model_len=8192)
    assert kvcache.bytes_per_token(setup) == kv_bytes


def test_a_sparse_indexer_keeps_a_key_beside_the_latent() -> None:
    setup = build(catalogue.load("deepseek-ai/DeepSeek-V3.2"), H100, version="0.24.0", runner="v1", max_model_len=8192)
    assert kvcache.bytes_per_token(setup) == 61 * (576 * 2 + 128 + 4)


def test_a_state_layer_keeps_its_state_once_a_sequence() -> None:
    model = parse("nvidia/NVIDIA-Nemotron-Nano-9B-v2", REAL["nvidia/NVIDIA-Nemotron-Nano-9B-v2"][0])
    conv, recurrent = next(g.state_params for g in model.kv if g.kind == "linear")
    assert recurrent == 128 * 80 * 128
    assert conv == (128 * 80 + 2 * 8 * 128) * 3


@pytest.mark.parametrize("missing", ["num_experts_per_tok", "vocab_size", "ffn_hidden_size"])
def test_what_is_missing_is_refused_and_never_zero(missing: str) -> None:
    published = {
        "model_type": "some_new_family",
        "hidden_size": 1024,
        "num_layers": 8,
        "num_attention_heads": 8,
        "vocab_size": 32000,
        "ffn_hidden_size": 4096,
        "num_experts": 8,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": 512,
        "first_k_dense_replace": 1,
    }
    assert parse("some/model", published).parameters > 0
    with pytest.raises(SpecdecError) as error:
        parse("some/model", {k: v for k, v in published.items() if k != missing})
    assert error.value.path in (missing, "intermediate_size")


def test_a_folder_with_an_index_gives_the_files_size(tmp_path: Path) -> None:
    published, _ = REAL["allenai/OLMo-2-1124-7B"]
    (tmp_path / "config.json").write_text(json.dumps(published), encoding="utf-8")
    index = {"metadata": {"total_size": 14_597_496_832}, "weight_map": {}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index), encoding="utf-8")
    model = catalogue.load("allenai/OLMo-2-1124-7B", {"allenai/OLMo-2-1124-7B": tmp_path})
    assert model.checkpoint_bytes == 14_597_496_832
    assert model.parameters * 2 == pytest.approx(model.checkpoint_bytes, rel=0.002)
