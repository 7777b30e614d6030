"""The plan of one engine as a document: the JSON form that other tools rely on."""

from __future__ import annotations

from typing import Any

from specdec.plan import kvcache, memory
from specdec.plan.memory import Rank
from specdec.plan.setup import Setup
from specdec.plan.verdict import Verdict, judge
from specdec.plan.weights import GIB, checkpoint_bytes
from specdec.plan.workloads import Planned

SCHEMA_VERSION = 1
LOAD_GBS = 0.2  # a network disk or a busy node; the chart's start-up budget counts with the same
START_SECONDS = 90  # processes, compilation and graph capture


def plan_document(planned: Planned) -> dict[str, Any]:
    setup = planned.setup
    verdict = judge(setup)
    mem = verdict.memory
    out: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "fits": verdict.fits,
        "reasons": verdict.reasons,
        "changes_that_fit": verdict.changes,
        "warnings": [{"code": code, "message": message} for code, message in planned.warnings],
        "engine": planned.name,
        "engine_version": setup.version,
        "runner": setup.runner,
        "target": setup.target.name,
        "draft": setup.speculation.draft.name if setup.speculation and setup.speculation.draft else None,
        "method": setup.speculation.method if setup.speculation else None,
        "accelerator": setup.accelerator.key,
        "tensor_parallel_size": setup.tp,
        "max_model_len": setup.max_model_len,
        "max_num_seqs": setup.max_num_seqs,
        "max_num_batched_tokens": setup.max_num_batched_tokens,
        "ranks": [rank_document(r) for r in mem.ranks],
        "deciding_rank": mem.least,
        "kv_bytes_per_token": round(mem.kv_bytes_per_token),
        "kv_cache_tokens": mem.kv_cache_tokens,
        "max_concurrency": round(mem.max_concurrency, 2),
        "kv_cache_memory_bytes": int(max(0.0, mem.ranks[mem.least].band[0]) * GIB),
        "startup_seconds": startup_seconds(setup),
    }
    if cost := draft_cost(setup, verdict):
        out["draft_cost"] = cost
    return out


def rank_document(rank: Rank) -> dict[str, Any]:
    return {
        "total_gib": round(rank.total, 2),
        "budget_gib": round(rank.budget, 2),
        "target_weights_gib": round(rank.target_weights, 2),
        "draft_weights_gib": round(rank.draft_weights, 2),
        "activation_gib": round(rank.activation, 2),
        "non_torch_gib": round(rank.non_torch, 2),
        "cuda_graph_gib": round(rank.cuda_graph, 2),
        "cuda_graph_in_budget": rank.graphs_inside,
        "kv_cache_gib": round(rank.kv_cache, 2),
        "band_gib": [round(b, 2) for b in rank.band],
    }


def startup_seconds(setup: Setup) -> int:
    """Seconds from start to ready with cold files: bytes of both at a slow disk's speed, then compilation and graphs."""
    total = checkpoint_bytes(setup.target)
    if setup.speculation and setup.speculation.draft and setup.speculation.method != "mtp":
        total += checkpoint_bytes(setup.speculation.draft)
    return round(total / (LOAD_GBS * 1e9)) + START_SECONDS


def draft_cost(setup: Setup, verdict: Verdict) -> dict[str, Any] | None:
    """What the draft takes: share of the KV cache and sequences at max_model_len, against the same engine without it."""
    if setup.speculation is None:
        return None
    alone = memory.plan(setup.without_speculation())
    if alone.kv_cache_tokens <= 0:
        return None
    share = 1 - verdict.memory.kv_cache_tokens / alone.kv_cache_tokens
    before, after = alone.max_concurrency, verdict.memory.max_concurrency
    text = f"{share:.0%} of the KV cache: {alone.kv_cache_tokens} to {verdict.memory.kv_cache_tokens} tokens, {before:.1f} to {after:.1f} sequences of {setup.max_model_len}"
    return {
        "kv_cache_share": round(share, 4),
        "kv_cache_tokens_without": alone.kv_cache_tokens,
        "kv_bytes_per_token_without": round(kvcache.bytes_per_token(setup.without_speculation())),
        "max_concurrency_without": round(before, 2),
        "text": text,
    }
