"""Weights by part, from a configuration: attention of every kind, MLPs and experts."""

from __future__ import annotations

from collections import Counter

from specdec.plan.config import Config
from specdec.plan.families import GATED, GATED_QUERY, PLAIN
from specdec.plan.layers import Layer, Shape
from specdec.plan.mixture import Mixture
from specdec.plan.models import Kind, Weight
from specdec.plan.recurrent import state_weights


def attention_weights(config: Config, layers: list[Layer]) -> list[Weight]:
    """Attention and state layers. Layers that are equal count together."""
    if config.is_family("zamba"):
        return shared_block_weights(config, layers)
    h = config.number("hidden_size")
    equal = Counter((kind, layer.shape) for layer in layers for kind in layer.mixers)
    out: list[Weight] = []
    for (kind, shape), count in equal.items():
        if kind == "linear" or shape is None:
            out += state_weights(config, count)
        elif kind == "mla":
            out += mla_weights(config, h, shape.heads, count)
        else:
            out += heads_weights(config, kind, shape, h, count)
    return out


def heads_weights(config: Config, kind: Kind, shape: Shape, h: int, count: int) -> list[Weight]:
    """Query, key, value and output of heads; some families gate the query, or keep one matrix for key and value."""
    n, kv, dim, value = shape.heads, shape.kv_heads, shape.key_dim, shape.value_dim
    gate = 2 if config.flag("attn_output_gate") or config.is_family(*GATED_QUERY) else 1
    cached = kv * dim if kind == "full" and config.flag("attention_k_eq_v") else kv * (dim + value)
    out = [
        Weight("attention", count * h * n * dim * gate, "split", n * dim * gate, h),
        Weight("attention", count * h * cached, "kv", cached, h),
        Weight("attention", count * n * value * h, "split", h, n * value),
    ]
    if config.flag("attention_bias") or config.family in ("qwen2", "qwen2_moe", "qwen2_vl", "qwen2_5_vl"):
        out.append(Weight("other", count * (n * dim + kv * (dim + value)), "split"))
    if config.is_family("qwen3", "gemma3", "gemma4", "exaone4"):
        out.append(Weight("other", count * 2 * dim, "copy"))
    return out


def mla_weights(config: Config, h: int, n: int, count: int) -> list[Weight]:
    """Multi-head latent attention: the down-projections are on every rank whole, the rest is split by head."""
    q_rank, kv_rank = config.get("q_lora_rank"), config.number("kv_lora_rank")
    rope, nope, v = config.number("qk_rope_head_dim"), config.number("qk_nope_head_dim"), config.number("v_head_dim")
    down = h * (kv_rank + rope) + (h * q_rank if q_rank else 0)
    out = [
        Weight("attention", count * down, "copy", kv_rank + rope + (q_rank or 0), h),
        Weight("attention", count * (q_rank or h) * n * (nope + rope), "split", n * (nope + rope), q_rank or h),
        Weight("attention", count * kv_rank * n * (nope + v), "split", n * (nope + v), kv_rank),
        Weight("attention", count * n * v * h, "split", h, n * v),
        Weight("other", count * (kv_rank + (q_rank or 0)), "copy"),
    ]
    if (indexers := config.get("index_n_heads")) and q_rank:
        # DeepSeek's sparse attention chooses tokens with heads of its own, whole on every rank.
        dim = config.number("index_head_dim")
        out.append(Weight("other", count * (q_rank * indexers * dim + h * (dim + indexers)), "copy"))
    return out


def shared_block_weights(config: Config, layers: list[Layer]) -> list[Weight]:
    """Zamba: Mamba layers, and few attention blocks (twice as wide as the model) that many layers share."""
    h = config.number("hidden_size")
    inter, blocks = config.number("intermediate_size"), config.get("num_mem_blocks", default=1)
    hybrid = sum("full" in layer.mixers for layer in layers)
    width = config.get("attention_hidden_size", default=2 * h)
    block = 3 * width * width + width * h + 3 * h * inter
    adapter = config.get("adapter_rank", default=0)
    return [
        *state_weights(config, len(layers)),
        Weight("attention", blocks * block, "split", width, width),
        Weight("other", hybrid * (h * h + adapter * (h + 2 * inter)), "copy"),
    ]


def matrices(config: Config) -> int:
    """Matrices of one MLP: three where it is gated, two where it is plain."""
    if config.family in PLAIN:
        return 2
    if config.is_family(*GATED):
        return 3
    act = config.get("hidden_act", "hidden_activation", "mlp_hidden_act", "activation_function", default="silu")
    return 2 if str(act).lower().startswith(("gelu", "relu", "xielu", "quick_gelu")) else 3


def mlp_weights(config: Config, layers: list[Layer], moe: Mixture | None) -> list[Weight]:
    if config.is_family("zamba"):
        return []
    h, each = config.number("hidden_size"), matrices(config)
    out: list[Weight] = []
    dense = Counter(layer.intermediate for layer in layers if layer.mlp in ("dense", "both"))
    for i, count in dense.items():
        if i <= 0:
            raise config.error("intermediate_size", f"config.json of {config.name} has no usable intermediate_size")
        out.append(Weight("mlp", count * each * h * i, "split", i, h))
    sparse = sum(layer.mlp in ("sparse", "both") for layer in layers)
    if moe and sparse:
        active = moe.per_token / moe.experts
        params = sparse * moe.experts * each * h * moe.intermediate
        out.append(Weight("expert", params, "split", moe.intermediate, h, active))
        out.append(Weight("other", sparse * h * moe.experts, "copy"))
        if moe.shared:
            out.append(Weight("mlp", sparse * each * h * moe.shared, "split", moe.shared, h))
        if config.family == "gpt_oss":
            out.append(Weight("other", sparse * moe.experts * (2 * moe.intermediate + h), "split"))
    return out


def input_weights(config: Config, layers: list[Layer]) -> list[Weight]:
    """Tables beside the embedding: learned positions, and inputs of every layer (Gemma 3n and 4)."""
    h, out = config.number("hidden_size"), []
    per_layer = config.get("hidden_size_per_layer_input")
    if per_layer:
        rows, columns = config.number("vocab_size_per_layer_input"), len(layers) * per_layer
        out.append(Weight("embed", rows * columns, "split", rows, columns))
        out.append(Weight("other", h * columns + len(layers) * 2 * h * per_layer, "copy"))
    if rank := config.get("laurel_rank"):
        out.append(Weight("other", len(layers) * 2 * h * rank, "copy"))
    if (streams := config.get("altup_num_inputs")) and streams > 1:
        out.append(Weight("other", 2 * (streams - 1) * h * h, "copy"))
    return out


def norm_weights(config: Config, layers: list[Layer]) -> Weight:
    h, each = config.number("hidden_size"), 4 if config.is_family("gemma2", "gemma3", "gemma4") else 2
    return Weight("other", each * len(layers) * h + h, "copy")
