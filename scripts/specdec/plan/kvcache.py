"""KV cache: bytes of a token and of a sequence, blocks, and how an engine groups layers that differ.

vLLM puts layers of one kind into groups of equal size and gives every group its own block table; a block of any group
has the
same size, so a group that is not full is padded (vllm/v1/core/kv_cache_utils.py).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from specdec.facts import version_key
from specdec.plan.defaults import BLOCK_SIZE
from specdec.plan.models import Layers
from specdec.plan.setup import Setup

# From this version a group may be as large as the larger kind where the two differ by less than a quarter (PR #29303).
NEAR_EQUAL_FROM = version_key("0.12.0")


@dataclass(frozen=True)
class CacheLayers:
    """Equal layers of the target or of the draft, with the bytes of one token in one layer on one rank."""

    layers: Layers
    bytes_per_token: int
    draft: bool = False


def cache_layers(setup: Setup, rank: int = 0) -> Iterator[CacheLayers]:
    """Every group of equal layers that has a KV cache on this rank."""
    for group in setup.target.kv:
        yield CacheLayers(group, group.kv_numbers(setup.tp) * setup.kv_bytes)
    spec = setup.speculation
    if spec and spec.draft and (tp := draft_tp(setup)) > rank:
        for group in spec.draft.kv:
            yield CacheLayers(group, group.kv_numbers(tp) * setup.draft_kv_bytes, draft=True)


def draft_tp(setup: Setup) -> int:
    """Ranks that share the draft. Heads are always split like the target; a draft model on fewer ranks is V0 alone."""
    spec = setup.speculation
    if spec is None or spec.draft is None:
        return setup.tp
    if setup.runner == "v0" and spec.draft_tp:
        return spec.draft_tp
    return setup.tp


def bytes_per_token(setup: Setup, rank: int = 0, *, length: int | None = None) -> float:
    """KV bytes of one token on one rank, averaged over a sequence of `length` tokens (max_model_len where not given).

    A window layer keeps no more than its window; linear layers keep a state, counted in `sequence_bytes` alone.
    """
    length = length or setup.max_model_len
    total = 0.0
    for group in cache_layers(setup, rank):
        per_token = group.layers.count * group.bytes_per_token / pipeline(setup, group)
        window = group.layers.window
        if window and setup.hybrid_kv:
            per_token *= min(length, window) / length
        total += per_token
    return total


def pipeline(setup: Setup, group: CacheLayers) -> int:
    return 1 if group.draft else setup.pp


def sequence_bytes(setup: Setup, rank: int = 0, *, length: int | None = None) -> float:
    """KV bytes that one sequence of `length` tokens holds, in whole blocks, with the padding of uneven groups."""
    length = length or setup.max_model_len
    groups = list(cache_layers(setup, rank))
    full = sum(g.layers.count for g in groups if g.layers.kind in ("full", "mla"))
    windows = [g for g in groups if g.layers.kind == "window"]
    linear = [g for g in groups if g.layers.kind == "linear"]
    blocks = math.ceil(length / BLOCK_SIZE)
    hybrid = setup.hybrid_kv
    if not windows and not linear:
        return sum(g.layers.count * g.bytes_per_token / pipeline(setup, g) for g in groups) * blocks * BLOCK_SIZE
    if linear:
        return hybrid_linear(setup, groups, blocks)
    if not hybrid:
        return sum(g.layers.count * g.bytes_per_token / pipeline(setup, g) for g in groups) * blocks * BLOCK_SIZE
    window_layers = sum(g.layers.count for g in windows)
    page = max(g.bytes_per_token for g in groups) * BLOCK_SIZE
    if not full:
        return window_layers * page * window_blocks(setup, windows[0], length)
    size = group_size(setup, full, window_layers)
    full_groups, window_groups = math.ceil(full / size), math.ceil(window_layers / size)
    per_sequence = full_groups * blocks + window_groups * window_blocks(setup, windows[0], length)
    return size * page * per_sequence / setup.pp


def group_size(setup: Setup, full: int, window: int) -> int:
    """Layers of one group. Two kinds of nearly equal number take the larger one, else the smaller."""
    low, high = min(full, window), max(full, window)
    if setup.release >= NEAR_EQUAL_FROM and high < 1.25 * low:
        return high
    return low


def window_blocks(setup: Setup, group: CacheLayers, length: int) -> int:
    """Blocks that a window layer may hold at once: the window and one step's new tokens, plus one that it straddles."""
    window = group.layers.window or length
    return min(math.ceil((window - 1 + setup.max_num_batched_tokens) / BLOCK_SIZE) + 1, math.ceil(length / BLOCK_SIZE))


def hybrid_linear(setup: Setup, groups: list[CacheLayers], blocks: int) -> float:
    """Attention layers by the token, linear layers one state a sequence and one a speculative token."""
    attention = (
        sum(g.layers.count * g.bytes_per_token for g in groups if g.layers.kind != "linear") * blocks * BLOCK_SIZE
    )
    k = setup.speculation.k if setup.speculation else 0
    state = 0.0
    for g in groups:
        if g.layers.kind == "linear":
            conv, recurrent = g.layers.state_params
            state += g.layers.count * (conv * 2 + recurrent * 4) / setup.tp * (1 + k)
    return (attention + state) / setup.pp
