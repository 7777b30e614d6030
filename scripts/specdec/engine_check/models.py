"""Tiny models of every kind that a method wants: a config.json each, no weights. SpeculativeConfig reads no more."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

Config = dict[str, Any]

TARGET: Config = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 256,
    "intermediate_size": 512,
    "num_hidden_layers": 8,
    "num_attention_heads": 8,
    "num_key_value_heads": 8,
    "head_dim": 32,
    "vocab_size": 1024,
    "max_position_embeddings": 2048,
    "rms_norm_eps": 1e-5,
    "torch_dtype": "bfloat16",
    "bos_token_id": 1,
    "eos_token_id": 2,
}
DRAFT: Config = TARGET | {"num_hidden_layers": 2}
EAGLE: Config = DRAFT | {"num_hidden_layers": 1}
DEEPSEEK: Config = TARGET | {
    "architectures": ["DeepseekV3ForCausalLM"],
    "model_type": "deepseek_v3",
    "num_nextn_predict_layers": 1,
    "moe_intermediate_size": 256,
    "n_shared_experts": 1,
    "n_routed_experts": 8,
    "num_experts_per_tok": 2,
    "n_group": 1,
    "topk_group": 1,
    "topk_method": "noaux_tc",
    "scoring_func": "sigmoid",
    "routed_scaling_factor": 1.0,
    "norm_topk_prob": True,
    "first_k_dense_replace": 1,
    "moe_layer_freq": 1,
    "kv_lora_rank": 64,
    "q_lora_rank": 64,
    "qk_nope_head_dim": 32,
    "qk_rope_head_dim": 32,
    "v_head_dim": 32,
}
DEEPSEEK.pop("head_dim")
QWEN: Config = TARGET | {"architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3"}
LAYERS_OF_HEAD = {"target_layer_ids": [1, 3, 5], "mask_token_id": 0}

MODELS: dict[str, Config] = {
    "target": TARGET,
    "draft": DRAFT,
    "draft-padded": DRAFT | {"vocab_size": 1152},
    "eagle": EAGLE | {"model_type": "llama", "architectures": ["EagleLlamaForCausalLM"]},
    "eagle3": EAGLE | {"architectures": ["LlamaForCausalLMEagle3"], "draft_vocab_size": 512},
    "eagle3-short": EAGLE
    | {"architectures": ["LlamaForCausalLMEagle3"], "draft_vocab_size": 512, "max_position_embeddings": 1024},
    "medusa": {
        "architectures": ["MedusaModel"],
        "model_type": "medusa",
        "hidden_size": 256,
        "num_heads": 5,
        "num_hidden_layers": 1,
        "vocab_size": 1024,
        "truncated_vocab_size": 1024,
        "max_seq_len": 2048,
        "max_paths": 64,
        "topk": 10,
        "torch_dtype": "bfloat16",
    },
    "mlp-speculator": {
        "architectures": ["MLPSpeculatorPreTrainedModel"],
        "model_type": "mlp_speculator",
        "emb_dim": 256,
        "inner_dim": 256,
        "n_predict": 3,
        "n_candidates": 5,
        "top_k_tokens_per_head": [5, 4, 3],
        "vocab_size": 1024,
        "torch_dtype": "bfloat16",
    },
    "deepseek": DEEPSEEK,
    "deepseek-2": DEEPSEEK | {"num_nextn_predict_layers": 2},
    "qwen": QWEN,
    "dflash": QWEN
    | {"num_hidden_layers": 2, "architectures": ["DFlashDraftModel"], "dflash_config": LAYERS_OF_HEAD, "block_size": 8}
    | LAYERS_OF_HEAD,
    "dspark": QWEN
    | {"num_hidden_layers": 2, "architectures": ["Qwen3DSparkModel"], "dspark_config": LAYERS_OF_HEAD, "block_size": 8}
    | LAYERS_OF_HEAD,
}


def write(folder: Path) -> None:
    """A folder for each model under `folder`."""
    for name, config in MODELS.items():
        (folder / name).mkdir(parents=True)
        (folder / name / "config.json").write_text(json.dumps(config), encoding="utf-8")
