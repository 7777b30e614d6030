"""What each layer of a model is: its attention or state, and its MLP or experts; and what it caches."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import Any, Literal

from specdec.plan.config import Config
from specdec.plan.families import FOUR_TIMES
from specdec.plan.mixture import Mixture, sparse_layers
from specdec.plan.models import Kind, Layers
from specdec.plan.recurrent import state_bytes, state_of

Mlp = Literal["dense", "sparse", "both", "none"]
# The names of kinds of layers in `layer_types`, `layers_block_type` and hybrid patterns.
NAMES: dict[str, Kind] = {
    "full_attention": "full",
    "attention": "full",
    "global": "full",
    "*": "full",
    "1": "full",
    "indexed_attention": "full",
    "sliding_attention": "window",
    "chunked_attention": "window",
    "local": "window",
    "linear_attention": "linear",
    "mamba": "linear",
    "mamba2": "linear",
    "conv": "linear",
    "recurrent": "linear",
    "M": "linear",
    "0": "linear",
}
WITHOUT_MIXER = {"moe", "mlp", "-", "E"}


@dataclass(frozen=True)
class Shape:
    """Attention of one layer."""

    heads: int
    kv_heads: int
    key_dim: int
    value_dim: int


@dataclass(frozen=True)
class Layer:
    """One layer: what mixes its tokens (attention and a state side by side in some), and what follows."""

    mixers: tuple[Kind, ...]
    mlp: Mlp
    shape: Shape | None = None
    intermediate: int = 0


def pattern_of(config: Config, count: int) -> list[str] | None:
    """The name of each layer's kind where the file lists them, in one of the ways that families have."""
    for name in ("layers_block_type", "layer_types", "attn_type_list", "hybrid_override_pattern", "layer_type_list"):
        value = config.get(name)
        if isinstance(value, str) and value and name == "hybrid_override_pattern":
            return list(value)
        if isinstance(value, list) and value:
            return [str(v) for v in value]
    blocks = config.get("block_types", "_block_types")
    if isinstance(blocks, list) and blocks:
        return [str(blocks[i % len(blocks)]) for i in range(count)]
    kda = config.get("linear_attn_config")
    if isinstance(kda, dict) and kda.get("full_attn_layers") is not None:
        full = set(kda["full_attn_layers"])
        return ["attention" if i + 1 in full else "linear_attention" for i in range(count)]
    period = config.get("attn_layer_period")
    listed = config.get("attn_layer_indices", "full_attn_idxs")
    if period:
        offset = config.get("attn_layer_offset", default=0)
        return ["attention" if i % period == offset else "mamba" for i in range(count)]
    if isinstance(listed, list) or config.family == "bamba":
        return ["attention" if i in (listed or ()) else "mamba" for i in range(count)]
    if interval := config.get("full_attention_interval"):
        return ["attention" if (i + 1) % interval == 0 else "linear_attention" for i in range(count)]
    if config.family in ("mamba", "mamba2", "falcon_mamba"):
        return ["mamba"] * count
    return None


def kinds_of(config: Config, count: int) -> list[tuple[Kind, ...]]:
    """What mixes tokens in each layer."""
    latent = bool(config.get("kv_lora_rank"))
    pattern = pattern_of(config, count)
    if pattern is None:
        plain: list[Kind] = ["mla"] * count if latent else windows(config, count)
        return [("full", "linear")] * count if config.family == "falcon_h1" else [(kind,) for kind in plain]
    if len(pattern) != count:
        raise config.error("layer_types", f"{len(pattern)} layer types for {count} layers")
    # A hybrid layer of Zamba has both; other families mean other things by it.
    known = NAMES.keys() | WITHOUT_MIXER | ({"hybrid"} if config.is_family("zamba") else set())
    unknown = sorted(set(pattern) - known)
    if unknown:
        raise config.error("layer_types", f"the planner does not know the layer type {unknown[0]!r}")
    named: list[tuple[Kind, ...]] = [
        () if p in WITHOUT_MIXER else ("full", "linear") if p == "hybrid" else (NAMES[p],) for p in pattern
    ]
    if config.is_family("recurrent_gemma"):
        named = [("window",) if k == ("full",) else k for k in named]
    return [("mla",) if latent and k == ("full",) else k for k in named]


def windows(config: Config, count: int) -> list[Kind]:
    window = config.get("sliding_window")
    if not window or config.get("use_sliding_window") is False or config.is_family("qwen"):
        return ["full"] * count
    pattern = config.get("sliding_window_pattern", "_sliding_window_pattern")
    if isinstance(pattern, str) and pattern:
        return ["window" if pattern[i % len(pattern)] == "L" else "full" for i in range(count)]
    if pattern:
        return ["full" if (i + 1) % pattern == 0 else "window" for i in range(count)]
    return ["window"] * count


def layers_of(config: Config, moe: Mixture | None) -> list[Layer]:
    """Every layer. Raises SpecdecError on a missing or contradictory field."""
    pattern = config.get("layers_block_type", "hybrid_override_pattern")
    count = len(pattern) if config.is_family("nemotron_h") and pattern else config.number("num_hidden_layers")
    if config.is_family("longcat"):
        count *= 2  # one of its layers is two, with the experts between
    sparse = sparse_layers(config, count) if moe else set()
    overrides = config.get("per_layer_config", default={}) or {}
    out = []
    for i, mixers in enumerate(kinds_of(config, count)):
        own = overrides.get(f"{i:02}") or overrides.get(str(i)) or {}
        attends = any(kind != "linear" for kind in mixers)
        shape = shape_of(config, mixers, own) if attends else None
        mlp = mlp_of(config, i, mixers, moe, sparse, pattern)
        out.append(Layer(mixers, mlp, shape, intermediate_of(config, i, count, own)))
    return out


def mlp_of(
    config: Config, index: int, mixers: tuple[Kind, ...], moe: Mixture | None, sparse: set[int], pattern: Any
) -> Mlp:
    if config.family in ("mamba", "mamba2", "falcon_mamba"):
        return "none"
    if config.is_family("nemotron_h"):
        if mixers:
            return "none"
        return "sparse" if pattern[index] in ("moe", "E") else "dense"
    if moe and config.is_family("longcat"):
        return "dense" if index % 2 else "both"
    if moe and index in sparse:
        return "both" if config.flag("enable_moe_block") else "sparse"
    return "dense"


def intermediate_of(config: Config, index: int, count: int, own: dict[str, Any]) -> int:
    value = own.get("intermediate_size") or config.get("intermediate_size_mlp", "intermediate_size")
    if value is None and config.family in FOUR_TIMES:
        value = config.get("expansion_ratio", default=4) * config.number("hidden_size")
    if isinstance(value, list):
        value = value[index % len(value)]
    if config.flag("block_auto_adjust_ff_dim") and isinstance(value, int):
        multiple = config.get("block_multiple_of", default=256)
        value = int(config.get("block_ffn_dim_multiplier", default=1.0) * int(2 * value / 3))
        value = multiple * -(-value // multiple)
    if config.family == "recurrent_gemma" and isinstance(value, int):
        value //= 2
    shared = config.get("num_kv_shared_layers", default=0)
    if config.flag("use_double_wide_mlp") and isinstance(value, int) and index >= count - shared:
        value *= 2
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def shape_of(config: Config, mixers: tuple[Kind, ...], own: dict[str, Any]) -> Shape:
    """Heads and their sizes in a layer; full layers of some families differ from window layers."""
    window = "window" in mixers
    heads = own.get("num_attention_heads") or (window and config.get("swa_num_attention_heads"))
    heads = heads or config.number("num_attention_heads")
    if "mla" in mixers:
        return Shape(heads, 1, config.number("kv_lora_rank") + config.number("qk_rope_head_dim"), 0)
    kv = own.get("num_key_value_heads")
    kv = (
        kv
        or config.get("swa_num_key_value_heads" if window else "num_global_key_value_heads")
        or kv_heads(config, heads)
    )
    if kv > heads or heads % kv:
        raise config.error("num_key_value_heads", f"{heads} attention heads cannot share {kv} key-value heads")
    stated = own.get("head_dim") or config.get("swa_head_dim" if window else "global_head_dim")
    dim = stated or (config.number("head_dim") if config.get("head_dim") is not None else divided(config))
    value = config.get("swa_v_head_dim" if window else "v_head_dim", "v_head_dim", default=dim)
    return Shape(heads, kv, dim, value)


def kv_heads(config: Config, heads: int) -> int:
    if config.family == "falcon" and not config.flag("new_decoder_architecture"):
        return 1 if config.get("multi_query", default=True) else heads
    return config.number("num_key_value_heads") if config.get("num_key_value_heads") is not None else heads


def divided(config: Config) -> int:
    hidden, heads = config.number("hidden_size"), config.number("num_attention_heads")
    if hidden % heads:
        raise config.error(
            "head_dim",
            f"hidden_size {hidden} is not a multiple of num_attention_heads {heads}, and head_dim is missing",
        )
    return hidden // heads


def kv_layers(config: Config, layers: list[Layer]) -> list[Layers]:
    """Groups of equal layers as the cache sees them. The last layers of some models share the cache of others."""
    shared = config.get("num_kv_shared_layers", default=0)
    kept = layers[: len(layers) - shared] if shared else layers
    counts: Counter[Layers] = Counter()
    for layer in kept:
        for kind in layer.mixers:
            counts[cached(config, kind, layer.shape)] += 1
    return [replace(group, count=n) for group, n in counts.items()]


def cached(config: Config, kind: Kind, shape: Shape | None) -> Layers:
    if kind == "linear" or shape is None:
        state = state_of(config)
        return Layers(1, "linear", state_params=(state.conv, state.recurrent), state_bytes=state_bytes(config))
    if kind == "mla" and (index := config.get("index_head_dim")):
        # A sparse indexer keeps one key of 8 bits with its scale for every token.
        return Layers(1, kind, 1, shape.key_dim, 0, extra_bytes=index + 4)
    window = None
    if kind == "window":
        window = config.number("sliding_window", "sliding_window_size", "attention_chunk_size", "attention_window_size")
    return Layers(1, kind, shape.kv_heads, shape.key_dim, shape.value_dim, window)
