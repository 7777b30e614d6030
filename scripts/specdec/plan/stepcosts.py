"""What a model costs in one step: bytes that a rank reads and operations that it does, before any GPU is known."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from specdec.plan.models import Layers, Model
from specdec.plan.weights import DTYPE_BYTES, Format, weight_bytes


@dataclass(frozen=True)
class Costs:
    """A model's terms on one GPU, ready to add up. Bytes and operations are of one rank."""

    dense_bytes: float
    expert_bytes: float
    experts: int
    experts_per_token: int
    flops: float
    flops_per_s: float
    head_bytes: float
    head_flops: float
    layers: int
    hidden: int
    kv: tuple[tuple[float, int | None], ...]
    state_bytes: float


@lru_cache(maxsize=1024)
def costs(
    model: Model,
    fmt: Format,
    dtype: str,
    tp: int,
    kv_bytes: float,
    gpu: tuple[tuple[str, float], ...],
    shared_head: Model | None = None,
    dp: int = 1,
) -> Costs:
    """`shared_head`: the target whose output head a draft uses, where it has none of its own.

    dp: replicas that the experts are divided over. Each rank then computes for the tokens of all of them, so that the
    operations of a token of its own stay the same.
    """
    size = DTYPE_BYTES[dtype]
    tflops = dict(gpu)
    dense = expert = flops = head = 0.0
    for w in model.weights:
        if w.part in ("embed", "vision"):
            continue
        amount = weight_bytes(w, model, fmt, tp, size, dp)
        if w.part == "expert":
            expert += amount
        elif w.part == "head":
            head += amount
            continue
        else:
            dense += amount
        flops += 2 * w.params * w.active / (1 if w.share == "copy" else tp)
    if model.tied or (shared_head is not None and not head):
        owner = model if model.tied else shared_head or model
        head = owner.vocab * owner.hidden / tp * size
    rate = tflops.get(fmt.compute) or tflops["bf16"]
    return Costs(
        dense,
        expert,
        model.experts,
        model.experts_per_token,
        flops,
        rate * 1e12,
        head,
        head / size * 2,
        model.layers,
        model.hidden,
        kv_terms(model.kv, tp, kv_bytes),
        state_terms(model.kv, tp),
    )


def kv_terms(groups: tuple[Layers, ...], tp: int, kv_bytes: float) -> tuple[tuple[float, int | None], ...]:
    """(bytes of one token in all layers of a kind on one rank, window)."""
    return tuple((float(g.count * g.kv_numbers(tp) * kv_bytes), g.window) for g in groups if g.kind != "linear")


def state_terms(groups: tuple[Layers, ...], tp: int) -> float:
    """Bytes of linear-attention state that one sequence reads and writes in a step on one rank."""
    return sum(2.0 * g.count * g.state_size(tp) for g in groups if g.kind == "linear")
