"""What a missing field means, by family: the defaults of the configuration classes in transformers (5.19).

Only for fields that published files leave out. Everything else that is missing is an error.
"""

from __future__ import annotations

from typing import Any

GEMMA3 = {
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "head_dim": 256,
    "vocab_size": 262208,
    "max_position_embeddings": 131072,
    "sliding_window": 4096,
    "sliding_window_pattern": 6,
}
MLA = {"kv_lora_rank": 512, "qk_rope_head_dim": 64, "qk_nope_head_dim": 128, "v_head_dim": 128}
FAMILY: dict[str, dict[str, Any]] = {
    "gemma": {"head_dim": 256},
    "gemma2": {"head_dim": 256, "sliding_window": 4096, "sliding_window_pattern": 2},
    "gemma3": GEMMA3,
    "gemma3_text": GEMMA3,
    "mistral": {"num_key_value_heads": 8, "vocab_size": 32000, "intermediate_size": 14336},
    "mixtral": {"num_key_value_heads": 8, "num_local_experts": 8, "intermediate_size": 14336},
    "qwen3": {"head_dim": 128},
    "gpt_oss": {"head_dim": 64, "sliding_window_pattern": 2},
    "cohere2": {"sliding_window_pattern": 4},
    "glm4_moe": {"head_dim": 128},
    "glm4v_moe_text": {"head_dim": 128},
    "deepseek_v2": MLA,
    "deepseek_v3": MLA,
    "deepseek_v32": MLA | {"index_n_heads": 64, "index_head_dim": 128},
    "glm_moe_dsa": {"index_n_heads": 32, "index_head_dim": 128},
    "gpt_bigcode": {"num_key_value_heads": 1},
    "chatglm": {"num_key_value_heads": 2},
    "recurrent_gemma": {"sliding_window": 2048},
    "step3_text": {"head_dim": 256},
}
LLAMA_CLASS = {
    "hidden_size": 4096,
    "intermediate_size": 11008,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
}
# A nested configuration is published without the fields that equal its class's.
NESTED_DEFAULTS: dict[str, dict[str, Any]] = {
    "llama": LLAMA_CLASS | {"vocab_size": 32000},
    "mistral": LLAMA_CLASS | {"intermediate_size": 14336, "num_key_value_heads": 8, "max_position_embeddings": 131072},
    "qwen2": {
        "hidden_size": 4096,
        "intermediate_size": 22016,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "num_key_value_heads": 32,
        "vocab_size": 151936,
    },
}
# Families whose embedding is the output head too where the file does not say.
# fmt: off
TIED = frozenset({
    "bart", "bloom", "cohere", "cohere2", "cohere2_vision", "ctrl", "ernie4_5", "ernie4_5_moe", "ernie4_5_vl_moe",
    "falcon", "falcon_mamba", "florence2", "gemma", "gemma2", "gemma3", "gemma3_text", "gemma3n", "gemma3n_text",
    "gemma4", "gemma4_text", "gemma4_unified", "gemma4_unified_text", "gpt2", "gpt_bigcode", "gpt_neo", "jetmoe",
    "lfm2", "lfm2_moe", "lfm2_vl", "mamba", "mpt", "opt", "paligemma", "recurrent_gemma", "smollm3", "starcoder2",
    "vaultgemma", "xglm", "zamba", "zamba2",
})
# fmt: on
# Families with a gated MLP whose activation is not SiLU; other activations than SiLU mean two plain matrices.
GATED = ("gemma", "recurrent_gemma", "t5gemma", "paligemma", "vaultgemma", "zamba", "bitnet")
# Families with two plain matrices whatever the field says, or without the field.
# fmt: off
PLAIN = frozenset({
    "apertus", "arcee", "biogpt", "bloom", "codegen", "falcon", "fuyu", "gpt2", "gpt_bigcode", "gpt_neo", "gpt_neox",
    "gpt_neox_japanese", "gptj", "jais2", "mpt", "nanochat", "nemotron", "nemotron_h", "opt", "persimmon", "phi",
    "starcoder2", "xglm",
})
# fmt: on
# Families whose plain MLP is four times as wide as the model where the file does not say.
FOUR_TIMES = frozenset(
    {"gpt2", "gpt_bigcode", "gpt_neo", "gptj", "codegen", "mpt", "falcon", "bloom", "gpt_neox_japanese"}
)
# Families with a table of learned positions, as many as max_position_embeddings (two more for OPT).
LEARNED_POSITIONS = frozenset({"gpt2", "gpt_bigcode", "gpt_neo", "opt", "biogpt", "openai-gpt"})
# Families whose queries come with a gate of the same size.
GATED_QUERY = ("qwen3_next", "qwen3_5", "qwen3_6", "afmoe")
