"""Reads a model's config.json: nested text configurations, the many names of one field, family defaults.

A missing field is never zero: it is the default that the family's configuration class in transformers has, or an error.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from specdec.errors import SpecdecError
from specdec.plan.families import FAMILY, NESTED_DEFAULTS, TIED

TEXT_KEYS = ("text_config", "llm_config", "language_config", "thinker_config")
INHERITED = ("quantization_config", "torch_dtype", "dtype", "tie_word_embeddings", "architectures")
# Other names that families have for the same field.
ALIASES: dict[str, tuple[str, ...]] = {
    "hidden_size": ("n_embd", "d_model"),
    "num_hidden_layers": ("n_layer", "n_layers", "num_layers"),
    "num_attention_heads": ("n_head", "n_heads", "num_heads"),
    "num_key_value_heads": ("num_kv_heads", "multi_query_group_num", "attn_config.kv_n_heads", "num_attention_groups"),
    "head_dim": ("kv_channels",),
    "intermediate_size": ("n_inner", "ffn_dim", "ffn_hidden_size", "ffn_config.ffn_hidden_size"),
    "vocab_size": ("padded_vocab_size",),
    "max_position_embeddings": (
        "n_positions",
        "max_seq_len",
        "seq_length",
        "model_max_length",
        "max_sequence_length",
        "n_ctx",
    ),
}

# No model has more of anything, or more layers: what is above is a slip, and would take forever to add up.
MOST, MOST_LAYERS = 10**9, 10_000


@dataclass(frozen=True)
class Config:
    """A config.json as its text model sees it. `whole` keeps what stands around a nested text configuration."""

    name: str
    whole: dict[str, Any]
    text: dict[str, Any]

    @classmethod
    def of(cls, name: str, whole: dict[str, Any]) -> Config:
        outer, found = whole, False
        while (nested := next((outer[key] for key in TEXT_KEYS if isinstance(outer.get(key), dict)), None)) is not None:
            text = {key: outer[key] for key in INHERITED if outer.get(key) is not None} | nested
            outer, found = text, True
        if not found:
            return cls(name, whole, dict(whole))
        family_defaults = NESTED_DEFAULTS.get(str(outer.get("model_type")), {})
        return cls(name, whole, family_defaults | outer)

    @property
    def family(self) -> str:
        return str(self.text.get("model_type") or self.whole.get("model_type") or "")

    @property
    def architectures(self) -> list[str]:
        return [str(a) for a in self.whole.get("architectures") or self.text.get("architectures") or []]

    def get(self, *names: str, default: Any = None) -> Any:
        """The first of these fields, under any of its names, that the file or else its family has."""
        for source in (self.text, FAMILY.get(self.family, {})):
            for name in names:
                for alias in (name, *ALIASES.get(name, ())):
                    value = inner(source, alias) if "." in alias else source.get(alias)
                    if value is not None:
                        return value
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
        most = MOST_LAYERS if names[0] == "num_hidden_layers" else MOST
        if value > most:
            raise self.error(
                names[0], f"{names[0]} is {value} in config.json of {self.name}: no model has more than {most}"
            )
        return value

    def flag(self, name: str) -> bool:
        return bool(self.get(name, default=False))

    def is_family(self, *prefixes: str) -> bool:
        return self.family.startswith(prefixes)

    @property
    def tied(self) -> bool:
        """Whether embedding and output head are one matrix; families differ in what a missing field means."""
        stated = self.get("tie_word_embeddings")
        return bool(stated) if stated is not None else self.family in TIED

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


def inner(source: dict[str, Any], path: str) -> Any:
    """A field of a nested object: `attn_config.kv_n_heads`."""
    outer, _, name = path.partition(".")
    nested = source.get(outer)
    return nested.get(name) if isinstance(nested, dict) else None
