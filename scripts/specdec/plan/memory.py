"""GPU memory of one engine, by rank: what an engine of that version will report before it sizes its KV cache.

kv = utilisation x total - target weights - draft weights - activation peak - non-torch [- CUDA graphs]

The activation peak is that of the engine's profiling run: the larger of one forward pass over max_num_batched_tokens and of
sampling for max_num_seqs sequences over the whole vocabulary.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from specdec.plan import defaults, kvcache
from specdec.plan.setup import Setup
from specdec.plan.weights import DTYPE_BYTES, GIB, rank_weights

# Float32 copies of max_num_seqs x vocabulary at the peak of sampling, beside the logits in the model's own dtype.
# "sort": logits, sorted values, int64 indices (2), the sort's own index array (2) and its double buffer (3).
# "fused": logits, probabilities.
SORT_COPIES, FUSED_COPIES = 9.2, 2.0
# The forward pass holds, for every token: gate and up, their product, and three hidden states.
MLP_TENSORS, HIDDEN_TENSORS = 3, 3
# CUDA context, cuBLAS handles and the like on one GPU; NCCL and all-reduce buffers once ranks talk, and for each rank.
NON_TORCH_ALONE, NON_TORCH_NCCL, NON_TORCH_PER_RANK = 0.13, 0.30, 0.06
GRAPHS_BASE, GRAPHS_PER_LAYER = 0.15, 0.008


@dataclass(frozen=True)
class Rank:
    """GiB on one GPU. `band`: where the KV cache most probably lies."""

    index: int
    total: float
    budget: float
    target_weights: float
    draft_weights: float
    activation: float
    non_torch: float
    cuda_graph: float
    graphs_inside: bool
    kv_cache: float
    band: tuple[float, float]

    @property
    def outside(self) -> float:
        """GiB that the GPU needs beside the budget: graphs captured after the KV cache took what was left."""
        return 0.0 if self.graphs_inside else self.cuda_graph


@dataclass(frozen=True)
class Memory:
    """Every rank, and what the least of them decides."""

    ranks: tuple[Rank, ...]
    kv_bytes_per_token: float
    kv_cache_tokens: int
    max_concurrency: float
    least: int

    @property
    def kv_gib(self) -> float:
        return self.ranks[self.least].kv_cache


def activation(setup: Setup, rank: int) -> float:
    """GiB of the profiling run's peak."""
    size = DTYPE_BYTES[setup.dtype]
    return max(forward_peak(setup, size), sampling_peak(setup, size, rank)) / GIB


def forward_peak(setup: Setup, size: int) -> float:
    """Bytes of one forward pass over max_num_batched_tokens: the widest MLP or the experts' buffers, split over ranks."""
    t, target = setup.max_num_batched_tokens, setup.target
    wide = target.intermediate
    if target.experts:
        wide = max(target.expert_intermediate * target.experts_per_token, target.intermediate if not target.experts else 0)
        experts = target.experts_per_token * max(2 * target.expert_intermediate // setup.tp, target.hidden)
        return t * (experts + target.experts_per_token * target.expert_intermediate // setup.tp + HIDDEN_TENSORS * target.hidden) * size
    image = min(t, target.mm_tokens * max(1, t // max(1, target.mm_tokens))) if target.mm_tokens and setup.multimodal else 0
    return (t * (MLP_TENSORS * wide / setup.tp + HIDDEN_TENSORS * target.hidden) + image * 2 * target.hidden) * size


def sampling_peak(setup: Setup, size: int, rank: int) -> float:
    """Bytes of the sampler's dummy run. V0 samples on rank 0 alone; V1 and later on every rank."""
    if setup.runner == "v0" and rank > 0:
        return 0.0
    copies = SORT_COPIES if defaults.sampler(setup.release, setup.runner) == "sort" else FUSED_COPIES
    seqs = min(setup.max_num_seqs, setup.max_num_batched_tokens)
    return seqs * setup.target.vocab * (4 * copies + size)


def non_torch(setup: Setup) -> float:
    if setup.tp * setup.pp == 1:
        return NON_TORCH_ALONE
    return NON_TORCH_ALONE + NON_TORCH_NCCL + NON_TORCH_PER_RANK * setup.tp


def cuda_graphs(setup: Setup) -> float:
    if setup.eager or setup.accelerator.key == "cpu":
        return 0.0
    return GRAPHS_BASE + GRAPHS_PER_LAYER * setup.target.layers


def draft_weights(setup: Setup, rank: int) -> float:
    """GiB of the draft on this rank. V0 with a draft tensor parallel size of 1 keeps all of it on rank 0."""
    spec = setup.speculation
    if spec is None or spec.draft is None or spec.draft_format is None:
        return 0.0
    tp = kvcache.draft_tp(setup)
    if rank >= tp:
        return 0.0
    return rank_weights(spec.draft, spec.draft_format, tp, spec.draft_dtype) / GIB


def plan_rank(setup: Setup, rank: int) -> Rank:
    total = setup.accelerator.memory_gib
    budget = setup.utilisation * total
    target = rank_weights(setup.target, setup.format, setup.tp, setup.dtype) / setup.pp / GIB
    draft = draft_weights(setup, rank)
    act, other, graphs = activation(setup, rank), non_torch(setup), cuda_graphs(setup)
    inside = defaults.graphs_inside(setup.release, setup.runner)
    kv = budget - target - draft - act - other - (graphs if inside else 0.0)
    if setup.kv_cache_memory_bytes:
        fixed = setup.kv_cache_memory_bytes / GIB
        return Rank(rank, total, budget, target, draft, act, other, graphs, inside, fixed, (fixed, fixed))
    return Rank(rank, total, budget, target, draft, act, other, graphs, inside, kv, band(setup, kv, act, other, graphs, target))


def band(setup: Setup, kv: float, act: float, other: float, graphs: float, target: float) -> tuple[float, float]:
    """Where the value lies in four cases of five: the spread of each term, as independent errors."""
    del setup
    half = math.sqrt((0.12 * act) ** 2 + (0.3 * other) ** 2 + (0.3 * graphs) ** 2 + (0.01 * target) ** 2 + 0.2**2)
    return kv - half, kv + half


def plan(setup: Setup) -> Memory:
    """Memory of all ranks. The engine gives every rank the least rank's number of blocks."""
    ranks = tuple(plan_rank(setup, rank) for rank in range(setup.tp))
    tokens = [rank_tokens(setup, r) for r in ranks]
    least = min(range(len(ranks)), key=lambda i: tokens[i])
    kv_tokens = tokens[least]
    return Memory(
        ranks=ranks, kv_bytes_per_token=kvcache.bytes_per_token(setup, least), kv_cache_tokens=kv_tokens,
        max_concurrency=kv_tokens / setup.max_model_len if setup.max_model_len else 0.0, least=least,
    )  # fmt: skip


def rank_tokens(setup: Setup, rank: Rank) -> int:
    """Tokens that the KV cache of this rank holds at max_model_len, in whole blocks."""
    if rank.kv_cache <= 0:
        return 0
    sequence = kvcache.sequence_bytes(setup, rank.index)
    if sequence <= 0:
        return 0
    tokens = rank.kv_cache * GIB / sequence * setup.max_model_len
    return int(tokens // defaults.BLOCK_SIZE * defaults.BLOCK_SIZE)
