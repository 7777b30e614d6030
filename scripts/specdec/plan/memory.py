"""GPU memory of one engine, by rank: what an engine of that version will report before it sizes its KV cache.

kv = utilisation x total - target weights - draft weights - activation peak - non-torch [- CUDA graphs]

The activation peak is that of the engine's profiling run: the larger of one forward pass over max_num_batched_tokens
and of
sampling for max_num_seqs sequences over the whole vocabulary.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from specdec.plan import defaults, kvcache
from specdec.plan.setup import Setup
from specdec.plan.weights import DTYPE_BYTES, GIB, rank_weights


@dataclass(frozen=True)
class Constants:
    """What cannot be read from a configuration. Fitted to engine logs; benchmarks/memory.py fits again without each
    source.

    sort_copies    float32 copies of sequences x vocabulary while all logits are sorted, beside the logits in the
                                model's
                   dtype: logits, sorted values, int64 indices (2), the sort's index array (2), its double buffer (3)
    kernel_copies  the same where a kernel masks the logits in place: logits, probabilities, random draws
    alone          GiB outside torch on one GPU: cuBLAS, kernel images
    peer           GiB of NCCL for each further rank over NVLink; over PCIe it has few channels
    nvlink, pcie   GiB of communication, whatever the number of ranks: over NVLink with the custom all-reduce's buffers
    state          GiB of kernels that state layers (delta nets, Mamba) compile while they are tuned
    persistent     GiB of buffers that engines count which measure the drop in free memory
    context        share of the GPU that the first V0 releases counted beside: all that torch had not allocated
    process        GiB of the engine's processes, on CPUs
    spread         GiB of error that no term explains, for the band
    graph_first, graph_each  GiB of CUDA graphs: the first, and each further (its driver objects and a pool segment of
                                20 MiB)
    """

    sort_copies: float = 9.2
    kernel_copies: float = 3.0
    alone: float = 0.13
    peer: float = 0.25
    nvlink: float = 0.15
    pcie: float = 0.07
    state: float = 0.80
    persistent: float = 0.13
    context: float = 0.019
    graph_first: float = 0.15
    graph_each: float = 0.0195
    process: float = 1.0
    spread: float = 0.7


CONSTANTS = Constants()
# The forward pass holds, for every token: gate and up, their product, and three hidden states.
MLP_TENSORS, HIDDEN_TENSORS = 3, 3


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
    """Bytes of one forward pass over max_num_batched_tokens: the widest MLP or the experts' buffers."""
    t, target = setup.max_num_batched_tokens, setup.target
    hidden = HIDDEN_TENSORS * target.hidden
    if target.experts:
        chosen, wide = target.experts_per_token, target.expert_intermediate
        buffers = chosen * (max(2 * wide // setup.tp, target.hidden) + wide // setup.tp)
        return t * (buffers + hidden) * size
    images = t // target.mm_tokens * target.mm_tokens if target.mm_tokens and setup.multimodal else 0
    return (t * (MLP_TENSORS * target.intermediate / setup.tp + hidden) + images * 2 * target.hidden) * size


def sampling_peak(setup: Setup, size: int, rank: int) -> float:
    """Bytes of the sampler's dummy run. V0 samples on rank 0 alone; V1 and later on every rank."""
    if setup.runner == "v0" and rank > 0:
        return 0.0
    # The V2 runner's dummy requests ask for neither top-k nor top-p.
    copies = {"sort": CONSTANTS.sort_copies, "kernel": CONSTANTS.kernel_copies, "none": 0.0}[sampler(setup)]
    seqs = min(setup.max_num_seqs, setup.max_num_batched_tokens)
    # Beside a draft the rejection sampler's dummy run holds a second row of logits for each sequence.
    logits = 2 if setup.speculation and setup.runner == "v1" else 1
    return seqs * setup.target.vocab * (4 * copies + logits * size)


def sampler(setup: Setup) -> str:
    """sort, kernel or none. FlashInfer masks in place, as the kernel of later versions does."""
    usual = defaults.sampler(setup.release, setup.runner)
    told = setup.flashinfer_sampler and setup.release >= defaults.FLASHINFER_SAMPLER_FROM
    return "kernel" if usual == "sort" and setup.runner == "v1" and told else usual


def flashinfer_gain(setup: Setup) -> float:
    """GiB of KV cache more than planned where the image has FlashInfer and the version then samples with it unasked."""
    unasked = defaults.FLASHINFER_SAMPLER_FROM <= setup.release < defaults.FLASHINFER_SAMPLER_ASKED_FROM
    if setup.runner != "v1" or not unasked or setup.flashinfer_sampler is not None or setup.kv_cache_memory_bytes:
        return 0.0
    return plan(replace(setup, flashinfer_sampler=True)).kv_gib - plan(setup).kv_gib


def non_torch(setup: Setup) -> float:
    """GiB that the engine holds outside the weights and the profiled peak."""
    if setup.accelerator.key == "cpu":
        return CONSTANTS.process
    c, kind = CONSTANTS, defaults.non_torch(setup.release, setup.runner)
    alone = c.alone + (c.persistent if kind == "free memory" else 0.0)
    if kind == "context":
        alone = c.context * setup.accelerator.memory_gib
    if any(g.kind == "linear" for g in setup.target.kv):
        alone += c.state
    # Data-parallel replicas of a dense model do not talk on the GPU; those of a mixture exchange tokens.
    ranks = setup.gpus if setup.target.experts else setup.tp * setup.pp
    if ranks == 1:
        return alone
    if setup.accelerator.link != "nvlink":
        return alone + c.pcie
    return alone + c.nvlink + c.peer * (ranks - 1)


def cuda_graphs(setup: Setup) -> float:
    """GiB of CUDA graphs: one for each batch size that the engine captures. Outside the budget they share one pool."""
    if setup.eager or setup.accelerator.key == "cpu":
        return 0.0
    if not defaults.graphs_inside(setup.release, setup.runner):
        return CONSTANTS.graph_first + 0.005 * setup.target.layers
    return CONSTANTS.graph_first + CONSTANTS.graph_each * defaults.captured_sizes(setup.max_num_seqs)


def draft_weights(setup: Setup, rank: int) -> float:
    """GiB of the draft on this rank. V0 with a draft tensor parallel size of 1 keeps all of it on rank 0."""
    spec = setup.speculation
    if spec is None or spec.draft is None or spec.draft_format is None:
        return 0.0
    tp = kvcache.draft_tp(setup)
    if rank >= tp:
        return 0.0
    return rank_weights(spec.draft, spec.draft_format, tp, spec.draft_dtype, dp=setup.dp) / GIB


def plan_rank(setup: Setup, rank: int) -> Rank:
    total = setup.accelerator.memory_gib
    budget = setup.utilisation * total
    loaded = rank_weights(setup.target, setup.format, setup.tp, setup.dtype, encoders=setup.multimodal, dp=setup.dp)
    target = loaded / setup.pp / GIB
    draft = draft_weights(setup, rank)
    act, other, graphs = activation(setup, rank), non_torch(setup), cuda_graphs(setup)
    inside = defaults.graphs_inside(setup.release, setup.runner)
    kv = budget - target - draft - act - other - (graphs if inside else 0.0)
    if setup.kv_cache_memory_bytes:
        fixed = setup.kv_cache_memory_bytes / GIB
        return Rank(rank, total, budget, target, draft, act, other, graphs, inside, fixed, (fixed, fixed))
    return Rank(
        rank, total, budget, target, draft, act, other, graphs, inside, kv, band(setup, kv, act, other, graphs, target)
    )


def band(setup: Setup, kv: float, act: float, other: float, graphs: float, target: float) -> tuple[float, float]:
    """Where the value lies in four cases of five: the spread of each term, as independent errors."""
    del setup
    half = math.sqrt(
        (0.12 * act) ** 2 + (0.3 * other) ** 2 + (0.3 * graphs) ** 2 + (0.01 * target) ** 2 + CONSTANTS.spread**2
    )
    return kv - half, kv + half


def plan(setup: Setup) -> Memory:
    """Memory of all ranks. The engine gives every rank the least rank's number of blocks."""
    ranks = tuple(plan_rank(setup, rank) for rank in range(setup.tp))
    tokens = [rank_tokens(setup, r) for r in ranks]
    least = min(range(len(ranks)), key=lambda i: tokens[i])
    kv_tokens = tokens[least]
    return Memory(
        ranks=ranks,
        kv_bytes_per_token=kvcache.bytes_per_token(setup, least),
        kv_cache_tokens=kv_tokens,
        max_concurrency=kv_tokens / setup.max_model_len if setup.max_model_len else 0.0,
        least=least,
    )


def rank_tokens(setup: Setup, rank: Rank) -> int:
    """Tokens that the KV cache of this rank holds at max_model_len, in whole blocks."""
    if rank.kv_cache <= 0:
        return 0
    sequence = kvcache.sequence_bytes(setup, rank.index)
    if sequence <= 0:
        return 0
    tokens = rank.kv_cache * GIB / sequence * setup.max_model_len
    return int(tokens // defaults.BLOCK_SIZE * defaults.BLOCK_SIZE)
