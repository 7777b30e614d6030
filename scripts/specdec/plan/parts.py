"""Weights by part, from a configuration: attention of every kind, MLPs and experts, image encoders."""

from __future__ import annotations

from collections import Counter

from specdec.plan.config import Config
from specdec.plan.layers import Mixture, Shape
from specdec.plan.models import Kind, Weight


def attention_weights(config: Config, shape: Shape, kinds: list[Kind]) -> list[Weight]:
    h, n, d = shape.hidden, shape.heads, shape.head_dim
    out: list[Weight] = []
    bias = 1 if config.flag("attention_bias") or config.family in ("qwen2", "qwen2_moe") else 0
    for kind, count in Counter(kinds).items():
        if kind == "mla":
            out += mla_weights(config, h, n, count)
            continue
        if kind == "linear":
            out += linear_weights(config, h, count)
            continue
        full = kind == "full"
        kv = config.get("num_global_key_value_heads", default=shape.kv_heads) if full else shape.kv_heads
        dim = config.get("global_head_dim", default=d) if full else d
        gate = 2 if config.flag("attn_output_gate") or config.family == "qwen3_next" else 1
        kv_matrices = 1 if full and config.flag("attention_k_eq_v") else 2
        out += [
            Weight("attention", count * h * n * dim * gate, "split", n * dim * gate, h),
            Weight("attention", count * kv_matrices * h * kv * dim, "kv", kv * dim, h),
            Weight("attention", count * n * dim * h, "split", h, n * dim),
        ]
        if bias:
            out.append(Weight("other", count * (n * dim + 2 * kv * dim), "split"))
        if config.family.startswith(("qwen3", "gemma3", "gemma4")):
            out.append(Weight("other", count * 2 * dim, "copy"))
    return out


def mla_weights(config: Config, h: int, n: int, count: int) -> list[Weight]:
    """Multi-head latent attention: the down-projections are on every rank whole, the rest is split by head."""
    q_rank, kv_rank = config.get("q_lora_rank"), config.number("kv_lora_rank")
    rope, nope, v = config.number("qk_rope_head_dim"), config.number("qk_nope_head_dim"), config.number("v_head_dim")
    down = h * (kv_rank + rope) + (h * q_rank if q_rank else 0)
    return [
        Weight("attention", count * down, "copy", kv_rank + rope + (q_rank or 0), h),
        Weight("attention", count * (q_rank or h) * n * (nope + rope), "split", n * (nope + rope), q_rank or h),
        Weight("attention", count * kv_rank * n * (nope + v), "split", n * (nope + v), kv_rank),
        Weight("attention", count * n * v * h, "split", h, n * v),
        Weight("other", count * (kv_rank + (q_rank or 0)), "copy"),
    ]


def linear_weights(config: Config, h: int, count: int) -> list[Weight]:
    """Gated delta net (Qwen3-Next, Qwen3.5): query, key, value, gate, scalars, a short convolution, output."""
    key = config.number("linear_num_key_heads") * config.number("linear_key_head_dim")
    value_heads = config.number("linear_num_value_heads")
    value = value_heads * config.number("linear_value_head_dim")
    kernel = config.get("linear_conv_kernel_dim", default=4)
    return [
        Weight("attention", count * h * (2 * key + 2 * value), "split", 2 * key + 2 * value, h),
        Weight("other", count * (h * 2 * value_heads + (2 * key + value) * kernel + 2 * value_heads), "split"),
        Weight("attention", count * value * h, "split", h, value),
    ]


def mlp_weights(config: Config, shape: Shape, moe: Mixture | None) -> list[Weight]:
    h = shape.hidden
    dense = shape.layers - (moe.sparse if moe else 0)
    out: list[Weight] = []
    # A plain two-matrix MLP is rare today; these families have it.
    matrices = 2 if config.family in ("nemotron", "starcoder2", "gpt_bigcode", "falcon", "phi", "opt") else 3
    also_dense = moe is not None and config.flag("enable_moe_block")
    if dense or also_dense:
        i = config.get("intermediate_size_mlp", "intermediate_size")
        if not isinstance(i, int) or i <= 0:
            raise config.error("intermediate_size", f"config.json of {config.name} has no usable intermediate_size")
        out.append(Weight("mlp", (shape.layers if also_dense else dense) * matrices * h * i, "split", i, h))
    if moe:
        out.append(
            Weight(
                "expert",
                moe.sparse * moe.experts * 3 * h * moe.intermediate,
                "split",
                moe.intermediate,
                h,
                moe.per_token / moe.experts,
            )
        )
        out.append(Weight("other", moe.sparse * h * moe.experts, "copy"))
        if moe.shared:
            out.append(Weight("mlp", moe.sparse * 3 * h * moe.shared, "split", moe.shared, h))
        if config.family == "gpt_oss":
            out.append(Weight("other", moe.sparse * moe.experts * (2 * moe.intermediate + h), "split"))
    return out


def vision_weights(config: Config) -> list[Weight]:
    """The image encoder and its projector. Encoders with a class of their own count by their published shape."""
    vision = config.whole.get("vision_config")
    if not isinstance(vision, dict):
        return []
    h = vision.get("hidden_size") or vision.get("embed_dim")
    layers = vision.get("num_hidden_layers") or vision.get("depth")
    if not isinstance(h, int) or not isinstance(layers, int):
        return []
    inter = vision.get("intermediate_size") or 4 * h
    out_hidden = config.number("hidden_size")
    gated = 3 if str(vision.get("hidden_act", "")) == "silu" else 2
    patch = vision.get("patch_size", 14)
    tokens = (vision.get("image_size", 336) // patch) ** 2 if isinstance(patch, int) else 0
    used = layers
    if isinstance(feature := config.whole.get("vision_feature_layer"), int) and feature < 0:
        used = layers + 1 + feature
    tower = used * (4 * h * h + gated * h * inter + 9 * h + inter) + 3 * patch * patch * h + tokens * h
    if str(config.whole.get("model_type", "")).startswith("llava"):
        projector = h * out_hidden + out_hidden * out_hidden
    elif merge := vision.get("spatial_merge_size"):
        wide = h * merge * merge
        projector = wide * wide + wide * vision.get("out_hidden_size", out_hidden)
    else:
        projector = h * out_hidden
    return [Weight("vision", tower + projector, "split")]


def image_tokens(config: Config) -> int:
    """Tokens that one image takes in the language model, 0 for a text model. A coarse bound, for the profiling run."""
    if not isinstance(config.whole.get("vision_config"), dict):
        return 0
    vision = config.whole["vision_config"]
    stated = config.whole.get("mm_tokens_per_image")
    if isinstance(stated, int):
        return stated
    patch, size = vision.get("patch_size", 14), vision.get("image_size", 336)
    tiles = 5 if config.whole.get("image_grid_pinpoints") else 1
    return tiles * (size // patch) ** 2 if isinstance(patch, int) and isinstance(size, int) else 0
