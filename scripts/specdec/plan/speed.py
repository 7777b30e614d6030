"""Time of one decoding step, and with it of one output token, for any batch, with and without speculation.

A step is added up: weights and arithmetic of the batched tokens (which overlap in part), KV cache, all-reduce,
sampling,
host; the draft's passes come with their own. Every term is bytes over bandwidth or operations over throughput of the
data
sheet, times one efficiency for all models and GPUs.

    time per output token = (verifying 1 + p K tokens a sequence + drafting) / mean length,   p: probability that a
    step drafts
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from specdec.errors import SpecdecError
from specdec.plan.acceptance import Acceptance
from specdec.plan.setup import ONE_PASS, WITHOUT_WEIGHTS, Setup
from specdec.plan.stepcosts import Costs, costs


@dataclass(frozen=True)
class Constants:
    """Fitted once for all models, GPUs and methods (benchmarks/speed.py; it refits without each data set).

    bandwidth, arithmetic   share of the data sheet that large matrix products reach
    overlap                 weights and arithmetic combine as (w^p + a^p)^(1/p): 1 adds them, infinity is the larger one
    host_ms, layer_ms       fixed time of a step: scheduling and sampling on the host; launches of one layer
    draft_host_ms           the same for one pass of a draft
    lookup_first, lookup_next  acceptance of the first token of an n-gram or suffix match, and of each further one given
                            the one before
    expert_spread           experts that a further token of a sequence is sent to, as new ones, over a token of another
    expert_layer_ms         fixed time of a layer of experts, besides
    reduce_us, reduce_share latency of one all-reduce over NVLink and over PCIe; share of the link's bandwidth
    """

    bandwidth: float = 0.76
    arithmetic: float = 0.80
    overlap: float = 1.42
    host_ms: float = 0.56
    layer_ms: float = 0.02
    draft_host_ms: float = 0.42
    lookup_first: float = 0.46
    lookup_next: float = 0.5
    reduce_us_nvlink: float = 8.0
    reduce_us_pcie: float = 25.0
    reduce_share: float = 0.35
    sampling_copies: float = 3.0
    expert_spread: float = 0.5
    expert_layer_ms: float = 0.05


CONSTANTS = Constants()


@dataclass(frozen=True)
class Load:
    """Tokens in and out of a request; the KV cache of a sequence is read at half its output."""

    input_len: int = 512
    output_len: int = 256

    @property
    def context(self) -> float:
        return self.input_len + self.output_len / 2


@dataclass(frozen=True)
class Machine:
    """A setup's GPU in bytes and operations a millisecond."""

    bytes_per_ms: float
    nominal_bytes_per_ms: float
    reduce_ms: float
    reduce_bytes_per_ms: float
    bf16: float


def machine(setup: Setup) -> Machine:
    c, a = CONSTANTS, setup.accelerator
    latency = c.reduce_us_nvlink if a.link == "nvlink" else c.reduce_us_pcie
    link = max(a.interconnect_gbs, 1.0) * 1e6 * c.reduce_share
    return Machine(
        a.bandwidth_gbs * 1e6 * c.bandwidth, a.bandwidth_gbs * 1e6, latency / 1e3, link, a.tflops["bf16"] * 1e9
    )


def product_ms(m: Machine, weight: float, operations: float, rate_per_s: float) -> float:
    """A matrix product over all its layers: reading the weights and computing overlap in part."""
    p = CONSTANTS.overlap
    read, compute = weight / m.bytes_per_ms, operations / (rate_per_s * CONSTANTS.arithmetic / 1e3)
    if read == 0 or compute == 0:
        return read + compute
    return float((read**p + compute**p) ** (1 / p))


def touched(c: Costs, tokens: float, sequences: float) -> float:
    """Share of the experts that at least one of `tokens` is sent to.

    Tokens that follow each other in a sequence are often sent to the same experts: further ones count for a part.
    """
    if not c.experts:
        return 0.0
    own = CONSTANTS.expert_spread
    alike = sequences + own * max(0.0, tokens - sequences)
    missed: float = (1.0 - c.experts_per_token / c.experts) ** max(alike, 1e-9)
    return 1.0 - missed


def forward_ms(
    setup: Setup, m: Machine, c: Costs, tokens: float, sequences: float, load: Load, *, sampled: float, host_ms: float
) -> float:
    """One forward pass over `tokens` tokens of `sequences` sequences, with the output head over `sampled` of them."""
    k, tp = CONSTANTS, setup.tp
    # The experts of a rank serve the tokens of all data-parallel replicas.
    active = c.expert_bytes * touched(c, tokens * setup.dp, sequences * setup.dp)
    body = product_ms(m, c.dense_bytes + active, tokens * c.flops, c.flops_per_s)
    head = product_ms(m, c.head_bytes, sampled * c.head_flops, m.bf16 * 1e3)
    kv = sum(sequences * per_token * min(load.context, window or load.context) for per_token, window in c.kv)
    traffic = (kv + sequences * c.state_bytes) / m.nominal_bytes_per_ms
    reduce = 0.0
    if tp > 1:
        moved = tokens * c.hidden * 2 * 2 * (tp - 1) / tp
        reduce = 2 * c.layers * (m.reduce_ms + moved / m.reduce_bytes_per_ms)
    if setup.dp > 1 and c.experts:
        # Tokens go to the experts' ranks and come back, in each layer.
        reduce += 2 * c.layers * (m.reduce_ms + tokens * c.hidden * 2 * (setup.dp - 1) / m.reduce_bytes_per_ms)
    sampling = sampled * setup.target.vocab * 4 * k.sampling_copies / m.nominal_bytes_per_ms
    return body + head + traffic + reduce + sampling + host_ms + layers_ms(c)


def layers_ms(c: Costs) -> float:
    """Launches of all layers; a layer of experts has more kernels: routing, sorting, two grouped products."""
    return (CONSTANTS.layer_ms + (CONSTANTS.expert_layer_ms if c.experts else 0.0)) * c.layers


@dataclass(frozen=True)
class Engine:
    """A setup with the costs of target and draft, for one load. Cheap to ask many times.

    `batch` is of the whole engine: its data-parallel replicas and its pipeline's stages share it, each with a batch of
    its own.
    """

    setup: Setup
    machine: Machine
    target: Costs
    draft: Costs | None
    load: Load
    scale: float = 1.0

    def baseline_ms(self, batch: float) -> float:
        """Time per output token without speculation, ms."""
        batch = self.each(batch)
        return self.scale * forward_ms(
            self.setup, self.machine, self.target, batch, batch, self.load, sampled=batch, host_ms=CONSTANTS.host_ms
        )

    def each(self, batch: float) -> float:
        """Sequences in one of the batches that run at once."""
        return max(1.0, batch / self.setup.pipes) if self.setup.pipes > 1 else batch

    def step_ms(self, batch: float, k: int, drafting: float = 1.0) -> float:
        """One step that verifies K tokens of the share `drafting` of its sequences, and drafts the next, ms."""
        batch = self.each(batch)
        tokens = batch * (1 + k * drafting)
        verify = forward_ms(
            self.setup, self.machine, self.target, tokens, batch, self.load, sampled=tokens, host_ms=CONSTANTS.host_ms
        )
        return self.scale * (verify + self.draft_ms(batch, k))

    def draft_ms(self, batch: float, k: int) -> float:
        """All passes of the draft for one step over `batch` sequences of one batch: the first over what was just
        verified, the others over one token a sequence."""
        if self.draft is None or k == 0:
            return 0.0
        spec, d = self.setup.speculation, self.draft
        host = CONSTANTS.draft_host_ms
        first = forward_ms(self.setup, self.machine, d, batch * (k + 1), batch, self.load, sampled=batch, host_ms=host)
        passes = 1 if spec is not None and spec.method in ONE_PASS else k
        if passes == 1:
            return first
        later = forward_ms(self.setup, self.machine, d, batch, batch, self.load, sampled=batch, host_ms=host)
        return first + (passes - 1) * later

    def speculative_ms(self, batch: float, acceptance: Acceptance, k: int) -> float:
        """Time per output token with K speculative tokens, ms."""
        length = acceptance.mean_length(k)
        return self.step_ms(batch, k, self.drafting(acceptance, k)) / length

    def drafting(self, acceptance: Acceptance, k: int) -> float:
        """Probability that a step drafts: 1 for models and heads; a lookup drafts where it finds a match.

        From what is accepted a step, over what a match gives: first (1 + next + next^2 ...) tokens.
        """
        spec = self.setup.speculation
        if spec is None or spec.method not in WITHOUT_WEIGHTS or k == 0:
            return 1.0
        c = CONSTANTS
        given_match = c.lookup_first * (1 - c.lookup_next**k) / (1 - c.lookup_next)
        return min(1.0, (acceptance.mean_length(k) - 1) / given_match)

    def speedup(self, batch: float, acceptance: Acceptance, k: int) -> float:
        return self.baseline_ms(batch) / self.speculative_ms(batch, acceptance, k)

    def prefill_ms(self, tokens: float) -> float:
        """Reading `tokens` prompt tokens in one go, ms."""
        c = self.target
        body = product_ms(
            self.machine, c.dense_bytes + c.expert_bytes * touched(c, tokens, tokens), tokens * c.flops, c.flops_per_s
        )
        return self.scale * (body + CONSTANTS.host_ms + layers_ms(c))


def engine(setup: Setup, load: Load | None = None, *, scale: float = 1.0) -> Engine:
    """The speed model of a setup. `scale` calibrates it on one measured time."""
    gpu = tuple(sorted(setup.accelerator.tflops.items()))
    if "bf16" not in setup.accelerator.tflops:
        raise SpecdecError(f"{setup.accelerator.key} states no bf16 throughput", code="facts-broken", path="tflops")
    target = costs(setup.target, setup.format, setup.dtype, setup.tp, setup.kv_bytes, gpu, dp=setup.dp)
    spec, draft = setup.speculation, None
    if spec and spec.draft and spec.draft_format is not None:
        shared = setup.target if spec.draft.family in ("eagle", "mtp") else None
        draft = costs(
            spec.draft, spec.draft_format, spec.draft.dtype, setup.tp, setup.draft_kv_bytes, gpu, shared, setup.dp
        )
    return Engine(setup, machine(setup), target, draft, load or Load(), scale)


def length_from_speedup(model: Engine, batch: float, measured: float, k: int) -> float:
    """The mean length that explains a measured speed-up. Raises SpecdecError where none from 1 to K+1 can."""
    low, high = 1.0, float(k + 1)

    def at(length: float) -> float:
        return model.speedup(batch, Acceptance.of_mean_length(length, k), k)

    if not at(low) * 0.9 <= measured <= at(high) * 1.1:
        raise SpecdecError(
            f"a speed-up of {measured} at batch {batch:g} is outside what K={k} can do here ({at(low):.2f} to"
            f" {at(high):.2f})",
            code="bad-measurement",
            path="--measured",
            fix="check batch, K and method",
        )
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if at(middle) < measured else (low, middle)
    length = (low + high) / 2
    return length if math.isfinite(length) else 1.0
