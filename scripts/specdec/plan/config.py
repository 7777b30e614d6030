"""Reads a model's config.json: nested text configurations, the many names of one field, family defaults.

A missing field is never zero: it is the default that the family's configuration class in transformers has, or an error.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from specdec.errors import SpecdecError

TEXT_KEYS = ("text_config", "llm_config", "language_config")
INHERITED = ("quantization_config", "torch_dtype", "dtype", "tie_word_embeddings", "architectures")

# Defaults of the configuration classes in transformers, for fields that published files leave out.
GEMMA3 = {
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "head_dim": 256,
    "vocab_size": 262208,
    "tie_word_embeddings": True,
    "max_position_embeddings": 131072,
    "sliding_window": 4096,
    "sliding_window_pattern": 6,
}
FAMILY: dict[str, dict[str, Any]] = {
    "gemma": {"head_dim": 256, "tie_word_embeddings": True},
    "gemma2": {"head_dim": 256, "tie_word_embeddings": True, "sliding_window": 4096, "sliding_window_pattern": 2},
    "gemma3": GEMMA3,
    "gemma3_text": GEMMA3,
    "gemma4": {"tie_word_embeddings": True},
    "gemma4_text": {"tie_word_embeddings": True},
    "mistral": {"num_key_value_heads": 8, "vocab_size": 32000, "intermediate_size": 14336},
    "mixtral": {"num_key_value_heads": 8, "num_local_experts": 8, "intermediate_size": 14336},
    "qwen3": {"head_dim": 128},
    "qwen3_moe": {"head_dim": 128},
    "gpt_oss": {"head_dim": 64, "sliding_window_pattern": 2},
    "cohere": {"tie_word_embeddings": True},
    "cohere2": {"tie_word_embeddings": True, "sliding_window_pattern": 4},
    "deepseek_v2": {"kv_lora_rank": 512, "qk_rope_head_dim": 64, "qk_nope_head_dim": 128, "v_head_dim": 128},
    "deepseek_v3": {"kv_lora_rank": 512, "qk_rope_head_dim": 64, "qk_nope_head_dim": 128, "v_head_dim": 128},
    # The text part of LLaVA 1.6 with Mistral is published without the fields that equal MistralConfig's or
    # LlamaConfig's.
    "llava_next": {},
}
LLAMA_CLASS = {
    "hidden_size": 4096,
    "intermediate_size": 11008,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
}
NESTED_DEFAULTS: dict[str, dict[str, Any]] = {
    "llama": LLAMA_CLASS,
    "mistral": LLAMA_CLASS | {"intermediate_size": 14336, "num_key_value_heads": 8, "max_position_embeddings": 131072},
}


@dataclass(frozen=True)
class Config:
    """One model's configuration: `text` holds the language model's fields, `whole` the file as it stands."""

    name: str
    whole: dict[str, Any]
    text: dict[str, Any]

    @classmethod
    def of(cls, name: str, whole: dict[str, Any]) -> Config:
        nested = next((whole[key] for key in TEXT_KEYS if isinstance(whole.get(key), dict)), None)
        if nested is None:
            return cls(name, whole, dict(whole))
        text = {key: whole[key] for key in INHERITED if key in whole} | nested
        family_defaults = NESTED_DEFAULTS.get(str(nested.get("model_type")), {})
        return cls(name, whole, family_defaults | text)

    @property
    def family(self) -> str:
        return str(self.text.get("model_type") or self.whole.get("model_type") or "")

    @property
    def architectures(self) -> list[str]:
        return [str(a) for a in self.whole.get("architectures") or self.text.get("architectures") or []]

    def get(self, *names: str, default: Any = None) -> Any:
        """The first of these fields that the file or else its family has."""
        for source in (self.text, FAMILY.get(self.family, {})):
            for name in names:
                if source.get(name) is not None:
                    return source[name]
        return default

    def number(self, *names: str) -> int:
        """A field that has to be a positive whole number. Raises SpecdecError where it is missing or is not one."""
        value = self.get(*names)
        if value is None:
            raise self.error(
                names[0],
                f"config.json of {self.name} has no {names[0]} and {self.family or 'its family'} has no default",
            )
        if isinstance(value, bool) or not isinstance(value, int) or value <= 0:
            raise self.error(
                names[0], f"{names[0]} is {value!r} in config.json of {self.name}: a positive whole number is needed"
            )
        return value

    def flag(self, name: str) -> bool:
        return bool(self.get(name, default=False))

    def error(self, path: str, message: str) -> SpecdecError:
        return SpecdecError(
            message,
            code="bad-model-config",
            file=f"{self.name}/config.json",
            path=path,
            fix="give the model's own configuration: --model-config NAME=DIR",
        )

    @property
    def dtype(self) -> str:
        return str(self.get("torch_dtype", "dtype", default="bfloat16")).removeprefix("torch.")
