"""Layers that keep a state in place of a cache: their weights, and the numbers of state for one sequence.

Mamba, Mamba-2, gated delta nets, Kimi's delta attention, lightning attention, short convolutions, gated recurrences.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from specdec.plan.config import Config
from specdec.plan.models import Weight


@dataclass(frozen=True)
class State:
    """One layer: numbers of convolution and recurrent state of a sequence; matrices as (rows, columns); the rest."""

    conv: int
    recurrent: int
    matrices: tuple[tuple[int, int], ...]
    others: int


def state_of(config: Config) -> State:
    """The state layer that this family has. Raises SpecdecError where the file has the fields of none."""
    if config.get("linear_num_key_heads"):
        return delta(config)
    if config.get("linear_attn_config") or config.get("linear_num_heads"):
        return kimi(config)
    if config.get("conv_L_cache"):
        return short_convolution(config)
    if config.get("lru_width"):
        return gated_recurrence(config)
    if config.is_family("minimax"):
        return lightning(config)
    if config.get("mamba_n_heads", "mamba_num_heads") or config.family in ("mamba2", "zamba2"):
        return mamba2(config)
    if config.get("mamba_d_state", "state_size"):
        return mamba(config)
    raise config.error("layer_types", f"config.json of {config.name} has state layers of a kind that is not known")


def state_bytes(config: Config) -> int:
    """Bytes of a recurrent number: of the type that the file states, else of 16 bits as the engine's "auto" makes it.
    Qwen3.5 and Nemotron-H ask for 32 bits."""
    stated = config.get("mamba_ssm_dtype", "mamba_ssm_cache_dtype")
    return 4 if stated == "float32" or (stated is None and config.is_family("qwen3_5", "nemotron_h")) else 2


def delta(config: Config) -> State:
    """Gated delta net (Qwen3-Next, Qwen3.5): query, key, value, gate, two scalars a head, a short convolution."""
    h = config.number("hidden_size")
    key = config.number("linear_num_key_heads") * config.number("linear_key_head_dim")
    heads, dim = config.number("linear_num_value_heads"), config.number("linear_value_head_dim")
    value, kernel = heads * dim, config.get("linear_conv_kernel_dim", default=4)
    return State(
        (2 * key + value) * (kernel - 1),
        value * config.number("linear_key_head_dim"),
        ((2 * key + 2 * value, h), (h, value)),
        h * 2 * heads + (2 * key + value) * kernel + 2 * heads,
    )


def kimi(config: Config) -> State:
    """Kimi's delta attention: query, key and value of equal heads, two low-rank gates."""
    nested: dict[str, Any] = config.get("linear_attn_config", default={})
    h = config.number("hidden_size")
    heads = nested.get("num_heads") or config.number("linear_num_heads")
    dim = nested.get("head_dim") or config.number("linear_head_dim")
    kernel = nested.get("short_conv_kernel_size") or config.get("linear_conv_kernel_dim", default=4)
    width = heads * dim
    gates = ((dim, h), (width, dim)) * 2
    return State(
        3 * width * (kernel - 1),
        heads * dim * dim,
        ((3 * width, h), *gates, (h, width)),
        3 * width * kernel + h * heads + 2 * width,
    )


def lightning(config: Config) -> State:
    h, heads = config.number("hidden_size"), config.number("num_attention_heads")
    dim = config.get("head_dim") or h // heads
    width = heads * dim
    return State(0, heads * dim * dim, ((3 * width, h), (width, h), (h, width)), width)


def short_convolution(config: Config) -> State:
    h, kernel = config.number("hidden_size"), config.number("conv_L_cache")
    return State(h * kernel, 0, ((3 * h, h), (h, h)), h * kernel)


def gated_recurrence(config: Config) -> State:
    h, width = config.number("hidden_size"), config.number("lru_width")
    kernel, heads = config.get("conv1d_width", default=4), config.number("num_attention_heads")
    gates = 2 * width * (width // heads)
    return State(width * (kernel - 1), width, ((width, h), (width, h), (h, width)), gates + width * kernel)


def mamba2(config: Config) -> State:
    h = config.number("hidden_size")
    heads = config.number("mamba_n_heads", "mamba_num_heads", "n_mamba_heads", "num_heads")
    dim = config.get("mamba_d_head", "mamba_head_dim", "mamba_headdim", "head_dim")
    inner = config.get("mamba_d_ssm") or (heads * dim if isinstance(dim, int) else h * config.number("mamba_expand"))
    groups = config.get("mamba_n_groups", "n_groups", "mamba_ngroups", default=1)
    size = config.number("mamba_d_state", "ssm_state_size", "state_size")
    kernel = config.get("mamba_d_conv", "conv_kernel", default=4)
    mixed = inner + 2 * groups * size
    return State(mixed * (kernel - 1), inner * size, ((inner + mixed + heads, h), (h, inner)), mixed * kernel + inner)


def mamba(config: Config) -> State:
    h = config.number("hidden_size")
    inner = h * config.get("mamba_expand", "expand", default=2)
    size = config.number("mamba_d_state", "state_size")
    kernel = config.get("mamba_d_conv", "conv_kernel", default=4)
    rank = config.get("mamba_dt_rank", "time_step_rank", default="auto")
    rank = rank if isinstance(rank, int) else math.ceil(h / 16)
    return State(
        inner * (kernel - 1),
        inner * size,
        ((2 * inner, h), (rank + 2 * size, inner), (inner, rank), (h, inner)),
        inner * (size + kernel + 2),
    )


def state_weights(config: Config, count: int) -> list[Weight]:
    """Weights of `count` state layers."""
    if not count:
        return []
    state = state_of(config)
    out = [Weight("attention", count * r * c, "split", r, c) for r, c in state.matrices]
    return [*out, Weight("other", count * state.others, "split")]
