"""KV cache: bytes of a token and of a sequence, blocks, and how an engine groups layers that differ.

vLLM puts layers of one kind into groups of equal size and gives every group its own block table; a block of any group
has the
same size, so a group that is not full is padded (vllm/v1/core/kv_cache_utils.py).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from specdec.facts import version_key
from specdec.plan import defaults
from specdec.plan.defaults import BLOCK_SIZE
from specdec.plan.models import Layers
from specdec.plan.setup import Setup

# A group is as large as the larger kind where the larger is less than so many times the smaller: half-open by version
# (vllm/v1/core/kv_cache_utils.py; PR #29303).
NEAR_EQUAL = ((version_key("0.18.1"), 1.5), (version_key("0.12.0"), 1.25))


@dataclass(frozen=True)
class CacheLayers:
    """Equal layers of the target or of the draft, with the bytes of one token in one layer on one rank."""

    layers: Layers
    bytes_per_token: int
    draft: bool = False


def cache_layers(setup: Setup, rank: int = 0) -> Iterator[CacheLayers]:
    """Every group of equal layers that has a KV cache on this rank."""
    for group in setup.target.kv:
        yield CacheLayers(group, token_bytes(group, setup.tp, setup.kv_bytes))
    spec = setup.speculation
    if spec and spec.draft and (tp := draft_tp(setup)) > rank:
        for group in spec.draft.kv:
            yield CacheLayers(group, token_bytes(group, tp, setup.draft_kv_bytes), draft=True)


def token_bytes(group: Layers, tp: int, number: float) -> int:
    """Bytes of one token in one layer on one rank."""
    return math.ceil(group.kv_numbers(tp) * number) + group.extra_bytes


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
    layers = list(cache_layers(setup, rank))
    states = any(g.layers.kind == "linear" for g in layers)
    windows = setup.hybrid_kv and any(g.layers.kind == "window" for g in layers)
    if not states and not windows:
        blocks = math.ceil(length / BLOCK_SIZE)
        return sum(g.layers.count * g.bytes_per_token / pipeline(setup, g) for g in layers) * blocks * BLOCK_SIZE
    return grouped_bytes(setup, layers, length) / setup.pp


def grouped_bytes(setup: Setup, layers: list[CacheLayers], length: int) -> float:
    """A sequence in a cache of several kinds of layers.

    Every kind is cut into groups of as many layers, and a page of a group's layer is as large as any other's: where a
    state needs more than 16 tokens do, attention takes longer blocks.
    """
    page = page_bytes(setup, layers)
    kinds: Counter[tuple[str, int, int | None]] = Counter()
    for g in layers:
        window = g.layers.window if setup.hybrid_kv else None
        kind = "linear" if g.layers.kind == "linear" else "window" if window else "full"
        kinds[kind, g.bytes_per_token, window] += g.layers.count
    size = group_size(setup, min(kinds.values()), max(kinds.values()))
    blocks = 0
    for (kind, bytes_per_token, window), count in kinds.items():
        block = page // bytes_per_token if bytes_per_token else 0
        blocks += math.ceil(count / size) * blocks_of(setup, kind, block, window, length)
    return float(size * page * blocks)


def page_bytes(setup: Setup, layers: list[CacheLayers]) -> int:
    """Bytes of one block in one layer: 16 tokens of the widest attention, more where a state is larger."""
    widest = max((g.bytes_per_token for g in layers), default=0)
    state = max((g.layers.state_size(setup.tp) for g in layers if g.layers.kind == "linear"), default=0)
    if not widest:
        return state
    return widest * BLOCK_SIZE * max(1, math.ceil(state / (widest * BLOCK_SIZE)))


def blocks_of(setup: Setup, kind: str, block: int, window: int | None, length: int) -> int:
    """Blocks that one group holds for a sequence: tokens, a window with one step's new tokens, or states."""
    if kind == "linear":
        return defaults.state_blocks(setup.release, setup.prefix_caching) + (
            setup.speculation.k if setup.speculation else 0
        )
    if window:
        return min(math.ceil((window - 1 + setup.max_num_batched_tokens) / block) + 1, math.ceil(length / block))
    return math.ceil(length / block)


def group_size(setup: Setup, one: int, other: int) -> int:
    """Layers of one group: of the smaller kind, or of the larger where they differ little."""
    low, high = min(one, other), max(one, other)
    factor = next((f for since, f in NEAR_EQUAL if setup.release >= since), 1.0)
    return high if high < factor * low else low
