"""Whether an engine fits, why not, and the cheapest changes that would: each planned again before it is named."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from specdec.plan import kvcache, memory
from specdec.plan.memory import Memory
from specdec.plan.setup import Setup
from specdec.plan.weights import FORMATS, GIB


@dataclass(frozen=True)
class Verdict:
    fits: bool
    reasons: list[str]
    changes: list[str]
    memory: Memory


def fits(plan: Memory, setup: Setup) -> bool:
    """One sequence of max_model_len has to fit: the engine refuses to start otherwise. A fixed KV cache has to fit
    too."""
    return plan.kv_cache_tokens >= setup.max_model_len and too_much(plan, setup) <= 0


def too_much(plan: Memory, setup: Setup) -> float:
    """GiB over the memory's end where the KV cache is fixed and not what is left; a pod without a limit has no end."""
    rank = plan.ranks[plan.least]
    if not setup.kv_cache_memory_bytes or rank.total <= 0:
        return 0.0
    return rank.target_weights + rank.draft_weights + rank.activation + rank.non_torch + rank.kv_cache - rank.total


def judge(setup: Setup, *, suggest: bool = True) -> Verdict:
    plan = memory.plan(setup)
    good = fits(plan, setup)
    reasons = [] if good else why(setup, plan)
    changes = (
        []
        if good or not suggest
        else [text for text, changed in proposals(setup) if fits(memory.plan(changed), changed)][:4]
    )
    return Verdict(good, reasons, changes, plan)


def why(setup: Setup, plan: Memory) -> list[str]:
    """The arithmetic, on the rank that decides."""
    rank = plan.ranks[plan.least]
    weights = rank.target_weights + rank.draft_weights
    parts = f"{rank.target_weights:.1f} GiB of target weights"
    if rank.draft_weights:
        parts += f" + {rank.draft_weights:.1f} GiB of draft weights"
    budget = f"{setup.utilisation:g} x {rank.total:.2f} = {rank.budget:.1f} GiB"
    on = f"on each of {setup.tp} GPUs" if setup.tp > 1 else "on the GPU"
    if (over := too_much(plan, setup)) > 0:
        return [
            f"{parts}, with a KV cache of {rank.kv_cache:.1f} GiB, is {over:.1f} GiB more than the {rank.total:.1f} GiB"
            " that there are"
        ]
    if weights > rank.budget:
        return [f"{parts} = {weights:.1f} GiB {on}, against a budget of {budget}: the weights alone do not fit"]
    rest = rank.activation + rank.non_torch + (rank.cuda_graph if rank.graphs_inside else 0)
    if rank.kv_cache <= 0:
        return [
            f"{parts} = {weights:.1f} GiB {on}, and {rest:.1f} GiB for activations and the driver, against a budget of"
            f" {budget}: {-rank.kv_cache:.1f} GiB too much, and nothing is left for a KV cache"
        ]
    need = kvcache.sequence_bytes(setup, plan.least) / GIB
    return [
        f"one sequence of {setup.max_model_len} tokens needs {need:.2f} GiB of KV cache and {rank.kv_cache:.2f} GiB are"
        f" left: {plan.kv_cache_tokens} tokens"
    ]


def proposals(setup: Setup) -> Iterator[tuple[str, Setup]]:
    """Changes from cheap to dear. None of them is a pipeline with speculation: no engine version has that."""
    spec = setup.speculation
    plan = memory.plan(setup)
    if plan.kv_cache_tokens > 0:
        shorter = plan.kv_cache_tokens // 16 * 16
        yield f"maxModelLen {shorter}", replace(setup, max_model_len=shorter)
    if setup.max_num_seqs > 256:
        yield "maxNumSeqs 256", replace(setup, max_num_seqs=256)
    if setup.utilisation < 0.95:
        yield "gpuMemoryUtilization 0.95", replace(setup, utilisation=0.95)
    if spec and spec.draft and spec.draft_format is not None and spec.draft_format.name == "none":
        eight = replace(spec, draft_format=FORMATS["fp8"])
        yield (
            f"the draft in FP8 ({memory.draft_weights(replace(setup, speculation=eight), 0):.1f} GiB a GPU)",
            replace(setup, speculation=eight),
        )
    if setup.format.name == "none" and (setup.accelerator.fp8 or setup.accelerator.key.startswith("a100")):
        changed = replace(setup, format=FORMATS["fp8"])
        rank = memory.plan(changed).ranks[0]
        yield f"FP8 weights of the target ({rank.target_weights:.1f} GiB a GPU)", changed
        if spec and spec.draft:
            both = replace(changed, speculation=replace(spec, draft_format=FORMATS["fp8"]))
            rank = memory.plan(both).ranks[0]
            yield f"FP8 weights of both ({rank.target_weights:.1f} + {rank.draft_weights:.1f} GiB a GPU)", both
    if spec and spec.draft:
        yield (
            "n-gram speculation, which needs no draft",
            replace(setup, speculation=replace(spec, method="ngram", draft=None, draft_format=None)),
        )
        yield "no speculation", setup.without_speculation()
    tp = setup.tp * 2
    while tp <= 8 and setup.target.heads % tp == 0:
        changed = replace(setup, tp=tp)
        if fits(memory.plan(changed), changed):
            yield f"tensor parallel size {tp} ({tp} GPUs)", changed
            break
        tp *= 2
