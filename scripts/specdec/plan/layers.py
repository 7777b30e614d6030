"""What kind each layer is, which experts it has, and what it caches, from a configuration."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from specdec.plan.config import Config
from specdec.plan.models import Kind, Layers


@dataclass(frozen=True)
class Shape:
    hidden: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    intermediate: int | None


@dataclass(frozen=True)
class Mixture:
    """Experts of a mixture: `sparse` layers have `experts` of them and pass a token through `per_token`."""

    sparse: int
    experts: int
    per_token: int
    intermediate: int
    shared: int


def mixture(config: Config) -> Mixture | None:
    experts = config.get("num_local_experts", "num_experts", "n_routed_experts")
    if not experts or experts == 1:
        return None
    layers = config.number("num_hidden_layers")
    intermediate = config.number("moe_intermediate_size", "expert_intermediate_size", "intermediate_size")
    dense = config.get("first_k_dense_replace", default=0)
    step = config.get("interleave_moe_layer_step", "decoder_sparse_step", "moe_layer_freq", default=1)
    sparse = (layers - dense) // (step if isinstance(step, int) and step > 0 else 1)
    sparse -= len(config.get("mlp_only_layers", default=[]))
    if isinstance(step, list):
        sparse = sum(bool(x) for x in step)
    shared = config.get("shared_expert_intermediate_size", default=0)
    shared = shared or config.get("n_shared_experts", default=0) * intermediate
    if config.family.startswith("llama4"):
        shared = intermediate
    return Mixture(
        sparse,
        experts,
        config.number("num_experts_per_tok", "experts_per_token", "top_k_experts", "moe_topk"),
        intermediate,
        shared,
    )


def layer_kinds(config: Config, layers: int) -> list[Kind]:
    """What each layer's attention is, in order."""
    if config.get("kv_lora_rank") and not config.get("layer_types"):
        return ["mla"] * layers
    types = config.get("layer_types")
    if isinstance(types, list) and types:
        if len(types) != layers:
            raise config.error("layer_types", f"{len(types)} layer types for {layers} layers")
        known: dict[str, Kind] = {
            "full_attention": "full",
            "attention": "full",
            "sliding_attention": "window",
            "chunked_attention": "window",
            "linear_attention": "linear",
            "mamba": "linear",
        }
        unknown = sorted({str(t) for t in types} - known.keys())
        if unknown:
            raise config.error("layer_types", f"the planner does not know the layer type {unknown[0]!r}")
        return [known[t] for t in types]
    interval = config.get("full_attention_interval")
    if interval:
        return ["full" if (i + 1) % interval == 0 else "linear" for i in range(layers)]
    window = config.get("sliding_window")
    if not window or config.get("use_sliding_window") is False or config.family.startswith("qwen"):
        return ["full"] * layers
    pattern = config.get("sliding_window_pattern", "_sliding_window_pattern")
    if pattern:
        return ["full" if (i + 1) % pattern == 0 else "window" for i in range(layers)]
    return ["window"] * layers


def kv_layers(config: Config, shape: Shape, kinds: list[Kind]) -> list[Layers]:
    shared = config.get("num_kv_shared_layers", default=0)
    counts = Counter(kinds[: len(kinds) - shared] if shared else kinds)
    groups: list[Layers] = []
    for kind, count in counts.items():
        if kind == "mla":
            latent = config.number("kv_lora_rank") + config.number("qk_rope_head_dim")
            groups.append(Layers(count, kind, 1, latent, 0))
        elif kind == "linear":
            groups.append(Layers(count, kind, state_params=linear_state(config)))
        else:
            full = kind == "full"
            heads = config.get("num_global_key_value_heads", default=shape.kv_heads) if full else shape.kv_heads
            dim = config.get("global_head_dim", default=shape.head_dim) if full else shape.head_dim
            value_dim = config.get("v_head_dim", default=dim)
            window = None if full else config.number("sliding_window", "attention_chunk_size")
            groups.append(Layers(count, kind, heads, dim, value_dim, window))
    return groups


def linear_state(config: Config) -> tuple[int, int]:
    """Numbers of (convolution, recurrent) state of one linear-attention layer for one sequence."""
    key_dim = config.number("linear_num_key_heads") * config.number("linear_key_head_dim")
    value_heads, value_dim = config.number("linear_num_value_heads"), config.number("linear_value_head_dim")
    kernel = config.get("linear_conv_kernel_dim", default=4)
    return (2 * key_dim + value_heads * value_dim) * (kernel - 1), value_heads * value_dim * config.number(
        "linear_key_head_dim"
    )
