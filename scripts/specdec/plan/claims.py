"""Published claims about a pair, held against arithmetic: what one sentence says about the load, the next may
contradict.

They are shown as claims of their source, unverified; none of the planner's figures comes from them.
"""

from __future__ import annotations

from dataclasses import dataclass

from specdec.plan.catalogue import short
from specdec.plan.memory import Memory
from specdec.plan.setup import Setup
from specdec.plan.speed import Engine
from specdec.plan.weights import GIB, rank_weights


@dataclass(frozen=True)
class Claim:
    """One published benchmark of a pair: arms as (output tokens a second, inter-token latency in ms)."""

    target: str
    draft: str
    k: int
    users: int
    baseline: tuple[float, float]
    speculative: tuple[float, float]
    acceptance_rate: float
    source: str


CLAIMS = (
    Claim(
        "Llama-3.1-70B-Instruct",
        "Llama-3.1-8B-Instruct",
        4,
        50,
        (1420, 28.4),
        (2180, 9.8),
        0.742,
        "an article on speculative decoding with vLLM on Kubernetes, 2 x H100, 512 tokens in, 256 out",
    ),
)


def claim_about(setup: Setup) -> Claim | None:
    spec = setup.speculation
    if spec is None or spec.draft is None:
        return None
    names = short(setup.target.name), short(spec.draft.name)
    return next((c for c in CLAIMS if (short(c.target), short(c.draft)) == names), None)


def objections(claim: Claim, setup: Setup, memory: Memory, engine: Engine) -> list[str]:
    """Why the claims cannot all hold, each with its arithmetic."""
    (base_rate, base_itl), (spec_rate, spec_itl) = claim.baseline, claim.speculative
    base_flight, spec_flight = base_rate * base_itl / 1e3, spec_rate * spec_itl / 1e3
    generated = 1 + claim.acceptance_rate * claim.k
    latency, throughput = base_itl / spec_itl, spec_rate / base_rate
    beta = engine.draft_ms(1, claim.k) / claim.k / engine.baseline_ms(1)
    law = generated / (1 + claim.k * beta)
    weights = rank_weights(setup.target, setup.format, setup.tp, setup.dtype)
    read = weights / (setup.accelerator.bandwidth_gbs * 1e9) * 1e3
    rank = memory.ranks[memory.least]
    out = [
        (
            f"{base_rate:g} tokens/s x {base_itl:g} ms = {base_flight:.0f} requests in flight, {spec_rate:g} x"
            f" {spec_itl:g} ms = {spec_flight:.0f}: the two rows are not the same load, and neither is the"
            f" {claim.users} users that are stated"
        ),
        (
            f"at one load, latency and throughput gain by the same factor; here latency by {latency:.1f} and throughput"
            f" by {throughput:.2f}"
        ),
        (
            f"{claim.acceptance_rate:.1%} of {claim.k} drafted tokens is {generated:.2f} tokens a step. The law S ="
            f" (accepted + 1) / (1 + K beta) with this draft's beta of {beta:.2f} gives {law:.2f} at one request, and"
            f" less under load; {latency:.1f} is claimed"
        ),
        (
            f"inter-token latency is one observation a step, whatever a step gives: divided by tokens, {spec_itl:g} ms"
            f" a step of {generated:.2f} tokens would be {spec_itl / generated:.1f} ms a token; the two readings differ"
            f" by a factor of {generated:.1f}, and the text does not say which it is"
        ),
        (
            f"reading {weights / GIB:.1f} GiB of weights a GPU takes {read:.1f} ms at the data sheet's full bandwidth,"
            " before any KV cache, arithmetic or all-reduce"
        ),
    ]
    if memory.kv_cache_tokens < setup.max_model_len:
        out.insert(
            0,
            f"it does not start: {rank.target_weights:.1f} + {rank.draft_weights:.1f} GiB of weights on each GPU"
            f" against a budget of {setup.utilisation:g} x {rank.total:.2f} = {rank.budget:.1f} GiB, so there was no KV"
            " cache to lose 18 % of",
        )
    return out
