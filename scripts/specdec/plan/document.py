"""The plan of one engine as a document: the JSON form that other tools rely on."""

from __future__ import annotations

import statistics
from dataclasses import replace
from typing import Any

from specdec import facts
from specdec.plan import choose, configured, enginelog, kvcache, memory, serving, speed
from specdec.plan.acceptance import Acceptance
from specdec.plan.checks import pair_findings
from specdec.plan.claims import claim_about, objections
from specdec.plan.expense import cost_document, disk_findings, files_bytes, find_price
from specdec.plan.memory import Rank
from specdec.plan.serving import Point
from specdec.plan.setup import Setup
from specdec.plan.speed import Engine
from specdec.plan.start import parted
from specdec.plan.tasks import assumed
from specdec.plan.verdict import Verdict, judge
from specdec.plan.weights import GIB
from specdec.plan.wishes import Wishes
from specdec.plan.workloads import Planned

SCHEMA_VERSION = 1
LOAD_GBS = 0.2  # a network disk or a busy node; the chart's start-up budget counts with the same
START_SECONDS = 90  # processes, compilation and graph capture


FLASHINFER_WORTH_SAYING = 0.2  # GiB
BATCHES = (1, 16, 64, 128)
CURVE = (1, 2, 4, 8, 16, 32, 48, 64, 96, 128, 192, 256)


def plan_document(planned: Planned, wishes: Wishes | None = None) -> dict[str, Any]:
    """The whole plan of one engine. Raises SpecdecError where a price or a machine is asked for that is not known."""
    wishes = wishes or Wishes()
    setup = planned.setup
    refusals, planned.warnings = parted(planned.refusals, [*planned.warnings, *pair_findings(setup)])
    verdict = judge(setup)
    mem = verdict.memory
    if (more := memory.flashinfer_gain(setup)) > FLASHINFER_WORTH_SAYING:
        text = (
            f"where the image has FlashInfer, vLLM {setup.version} samples with it and has {more:.1f} GiB more KV cache"
        )
        planned.warnings.append(("SD338", f"{text}; VLLM_USE_FLASHINFER_SAMPLER=1 or 0 settles which"))
    out: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "fits": verdict.fits,
        "starts": not refusals,
        "reasons": verdict.reasons,
        "changes_that_fit": verdict.changes,
        "warnings": [],
        "engine": planned.name,
        "engine_version": setup.version,
        "runner": setup.runner,
        "target": setup.target.name,
        "draft": setup.speculation.draft.name if setup.speculation and setup.speculation.draft else None,
        "method": setup.speculation.method if setup.speculation else None,
        "accelerator": setup.accelerator.key,
        "tensor_parallel_size": setup.tp,
        "pipeline_parallel_size": setup.pp,
        "data_parallel_size": setup.dp,
        "gpus": setup.gpus,
        "max_model_len": setup.max_model_len,
        "max_num_seqs": setup.max_num_seqs,
        "max_num_batched_tokens": setup.max_num_batched_tokens,
        "ranks": [rank_document(r) for r in mem.ranks],
        "deciding_rank": mem.least,
        "binding_constraint": binding(setup, verdict),
        "units": "GiB = 2^30 bytes; ms; dollars of the United States",
        "overhead_model": "the profiling run of this engine version, fitted to engine logs; no flat allowance",
        "kv_bytes_per_token": round(mem.kv_bytes_per_token),
        "kv_cache_tokens": mem.kv_cache_tokens,
        "max_concurrency": round(mem.max_concurrency, 2),
        "kv_cache_memory_bytes": int(max(0.0, mem.ranks[mem.least].band[0]) * GIB),
        "startup_seconds": startup_seconds(setup),
    }
    if wishes.engine_logs:
        out["engine_log"] = enginelog.document(setup, mem, list(wishes.engine_logs))
    if taken := draft_cost(setup, verdict):
        out["draft_cost"] = taken
    out |= speed_document(planned, verdict, wishes)
    # What it will not start on comes first.
    out["warnings"] = [{"code": c, "message": m, "severity": "error"} for c, m in refusals]
    out["warnings"] += [{"code": c, "message": m, "severity": "warning"} for c, m in planned.warnings]
    return out


def speed_document(planned: Planned, verdict: Verdict, wishes: Wishes) -> dict[str, Any]:
    """Speed, K and cost. An engine that does not fit is planned as if it did: to see what a fitting one would bring."""
    setup = planned.setup
    engine = speed.engine(setup, wishes.load)
    engine = replace(engine, scale=time_scale(engine, wishes))
    spec = setup.speculation
    most = serving.capacity(engine, verdict.memory) or setup.most_requests
    accepted = (wishes.acceptance or assumed(spec.method, wishes.task)) if spec else None
    at = min(wishes.concurrency, most)
    choice = choose.choose(engine, accepted, batch=at, most_batch=setup.most_requests) if accepted else None
    scheduled = choice.schedule if choice and schedule_allowed(setup) and len(choice.schedule) > 1 else ()
    static = (choice.static or (spec.k if spec else 0)) if choice else 0
    point_rows = serving.points(
        engine, accepted, list(BATCHES), most=most, static=static, schedule=scheduled, prefix_hits=wishes.prefix_hits
    )
    curve = serving.points(
        engine,
        accepted,
        [b for b in CURVE if b <= setup.most_requests],
        most=most,
        static=static,
        schedule=scheduled,
        prefix_hits=wishes.prefix_hits,
    )
    method = spec.method if spec else None
    out: dict[str, Any] = {
        "load": {
            "input_len": wishes.load.input_len,
            "output_len": wishes.load.output_len,
            "prefix_hits": wishes.prefix_hits,
            "concurrency": at,
            "concurrency_asked": wishes.concurrency,
        },
        "requests_at_once": most,
        "speed": [speed_row(p, method) for p in point_rows],
        "curve": [speed_row(p, method) for p in curve],
        "num_speculative_tokens": {
            "static": choice.static if choice else 0,
            "schedule": [{"from": r.first, "to": r.last, "tokens": r.tokens} for r in scheduled],
        },
        "crossover_batch": choice.crossover if choice else None,
        "configured": configured.document(engine, accepted, choice, most, BATCHES) if accepted and choice else None,
        "acceptance": acceptance_document(engine, accepted, static) if accepted else None,
        "when_the_kv_cache_is_full": preemption(engine, verdict, wishes),
        "time_scale": round(engine.scale, 4),
        "cost": None,
    }
    if claim := claim_about(setup):
        out["claims"] = {"source": claim.source, "objections": objections(claim, setup, verdict.memory, engine)}
    found = find_price(planned, wishes, out)
    if found:
        out["cost"] = cost_document(found, curve, planned, wishes)
        planned.warnings += disk_findings(setup, found)
    return out


def time_scale(engine: Engine, wishes: Wishes) -> float:
    """Measured over computed time without speculation, the median over what was measured; 1 where nothing was."""
    ratios = [ms / engine.baseline_ms(batch) for batch, k, ms in wishes.times if k == 0]
    return statistics.median(ratios) if ratios else 1.0


def schedule_allowed(setup: Setup) -> bool:
    """Whether the engine has schedules (engines.yaml), and would keep one: data parallelism drops it."""
    for argument in facts.engines().get("arguments", []):
        if argument.get("value") == "speculative.schedule":
            held = [r for r in argument["rows"] if facts.version_key(r.get("from", "0.0.0")) <= setup.release]
            return bool(held) and setup.dp == 1
    return False


def speed_row(point: Point, method: str | None) -> dict[str, Any]:
    return {
        "batch": point.batch,
        "arm": point.arm,
        "method": method if point.arm != "baseline" else None,
        "k": point.k,
        "tpot_ms": round(point.tpot_ms, 3),
        "tpot_p99_ms": round(point.tpot_p99_ms, 3),
        "ttft_ms": round(point.ttft_ms, 1),
        "user_tokens_per_second": round(point.user_tokens_per_second, 1),
        "tokens_per_second": round(point.tokens_per_second, 1),
        "waiting": point.waiting,
        "speedup": round(point.speedup, 3),
    }


def acceptance_document(engine: Engine, accepted: Acceptance, k: int) -> dict[str, Any]:
    return {
        "by_position": [round(a, 4) for a in accepted.cut(max(k, 1))],
        "mean_length": round(accepted.mean_length(k), 3),
        "rate": round(accepted.rate(k), 4),
        "drafting_probability": round(engine.drafting(accepted, k), 3),
        "source": accepted.source,
        "known_positions": len(accepted.positions),
    }


def preemption(engine: Engine, verdict: Verdict, wishes: Wishes) -> str:
    """What happens when the KV cache runs out: vLLM preempts the newest request and computes its tokens again."""
    load = wishes.load
    whole = load.input_len + load.output_len
    fit = int(verdict.memory.kv_cache_tokens / whole) * engine.setup.dp if whole else 0
    if fit >= engine.setup.most_requests:
        return f"it does not fill: {engine.setup.most_requests} requests of {whole} tokens fit at their longest"
    again = engine.prefill_ms(load.input_len + load.output_len / 2)
    return (
        f"above {fit} requests of {whole} tokens the newest is preempted and its tokens are computed again: "
        f"about {again:.0f} ms of the whole engine each time"
    )


def binding(setup: Setup, verdict: Verdict) -> dict[str, Any]:
    """What bounds this engine: its weights, its KV cache, or max_num_seqs; and the rank that decides."""
    mem = verdict.memory
    rank = mem.ranks[mem.least]
    if rank.target_weights + rank.draft_weights > rank.budget:
        what = "weights"
    elif not verdict.fits or mem.max_concurrency < setup.max_num_seqs:
        what = "kv_cache"
    else:
        what = "max_num_seqs"
    return {"what": what, "rank": mem.least, "kv_cache_gib": round(rank.kv_cache, 2)}


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
    """Seconds from start to ready with cold files: bytes of both at a slow disk's speed, compilation, graphs."""
    return round(files_bytes(setup) / (LOAD_GBS * 1e9)) + START_SECONDS


def draft_cost(setup: Setup, verdict: Verdict) -> dict[str, Any] | None:
    """What the draft takes: share of the KV cache and sequences at max_model_len, against none."""
    if setup.speculation is None or setup.speculation.draft is None:
        return None
    alone = memory.plan(setup.without_speculation())
    if alone.kv_cache_tokens <= 0:
        return None
    share = 1 - verdict.memory.kv_cache_tokens / alone.kv_cache_tokens
    before, after = alone.max_concurrency, verdict.memory.max_concurrency
    text = (
        f"{share:.0%} of the KV cache: {alone.kv_cache_tokens:,} to {verdict.memory.kv_cache_tokens:,} tokens,"
        f" {before:.1f} to {after:.1f} sequences of {setup.max_model_len:,}"
    )
    return {
        "kv_cache_share": round(share, 4),
        "kv_cache_tokens_without": alone.kv_cache_tokens,
        "kv_bytes_per_token_without": round(kvcache.bytes_per_token(setup.without_speculation())),
        "max_concurrency_without": round(before, 2),
        "text": text,
    }
