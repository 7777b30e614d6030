"""What an engine does when it is not told: utilisation, batching, CUDA graphs, by version, runner and GPU.

The rows stand in engines.yaml under `defaults`: from <= version < before; the first that holds counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from specdec import facts
from specdec.facts import Version, version_key

CHUNKED_PREFILL_V0_FROM = 32768
BLOCK_SIZE = 16
# From this version on models with state layers can cache prefixes (vllm/v1/kv_cache_interface.py: MambaSpec).
STATE_CACHE_FROM = version_key("0.15.0")
# From these versions on a default is bounded by the other value: sequences by the tokens of a step, and those by the
# sequences' length (vllm/engine/arg_utils.py).
SEQS_BOUND_FROM, TOKENS_BOUND_FROM = version_key("0.10.1"), version_key("0.11.1")
# FlashInfer's sampler: unasked where it is installed, then only with VLLM_USE_FLASHINFER_SAMPLER=1. Before, V1 did not
# call the FlashInfer of its time (vllm/v1/sample/ops/topk_topp_sampler.py).
FLASHINFER_SAMPLER_FROM, FLASHINFER_SAMPLER_ASKED_FROM = version_key("0.9.0"), version_key("0.11.1")


@dataclass(frozen=True)
class Batching:
    """Sequences and tokens of a step."""

    seqs: int
    tokens: int

    def beside(self, version: Version, max_model_len: int, seqs: int | None, tokens: int | None) -> Batching:
        """These defaults beside what is given: the engine bounds each by the other (vllm/engine/arg_utils.py)."""
        most = self.seqs if seqs is None else seqs
        if tokens is None:
            # No more than all sequences have at their longest.
            filled = min(self.tokens, most * max_model_len) if version >= TOKENS_BOUND_FROM else self.tokens
        else:
            filled = tokens
        if seqs is None and version >= SEQS_BOUND_FROM:
            most = min(most, filled) if filled > 0 else most
        return Batching(most, filled)


def lookup(key: str, version: Version, runner: str, gpu: str = "", gib: float = 0.0) -> dict[str, Any]:
    """The first row of that default that holds for the version, its runner and the GPU."""
    rows: list[dict[str, Any]] = facts.engines()["defaults"][key]
    for row in rows:
        if (
            row.get("runner", runner) == runner
            and ("from" not in row or version >= version_key(row["from"]))
            and ("before" not in row or version < version_key(row["before"]))
            and gib >= row.get("fromGiB", 0)
            and ("devices" not in row or any(device in gpu for device in row["devices"]))
            and ("notDevice" not in row or row["notDevice"] not in gpu)
        ):
            return row
    raise LookupError("the last row holds for everything")


def utilisation(version: Version, runner: str) -> float:
    return float(lookup("utilisation", version, runner)["value"])


def batching(version: Version, runner: str, gpu: str, gib: float, max_model_len: int) -> Batching:
    """Sequences and tokens of one step. V0 without chunked prefill (below 32k) takes a whole prompt in one step."""
    row = lookup("batching", version, runner, gpu, gib)
    tokens = row["tokens"]
    if runner == "v0" and max_model_len <= CHUNKED_PREFILL_V0_FROM:
        tokens = max(tokens, max_model_len)
    return Batching(row["seqs"], tokens)


def graphs_inside(version: Version, runner: str) -> bool:
    return bool(lookup("graphsInside", version, runner)["value"])


def sampler(version: Version, runner: str) -> str:
    return str(lookup("sampler", version, runner)["value"])


def non_torch(version: Version, runner: str) -> str:
    return str(lookup("nonTorch", version, runner)["value"])


def hybrid_kv(version: Version, runner: str) -> bool:
    return runner != "v0" and bool(lookup("hybridKv", version, runner)["value"])


def state_blocks(version: Version, prefix_caching: bool | None) -> int:
    """States that a sequence keeps in a state layer: one, and one more where prefixes are cached."""
    cached = bool(lookup("hybridPrefixCaching", version, "v1")["value"]) if prefix_caching is None else prefix_caching
    return 2 if cached and version >= STATE_CACHE_FROM else 1


def captured_sizes(seqs: int) -> int:
    """Batch sizes that get a CUDA graph: 1, 2, 4, every 8 to 256, every 16 to 512, no more than twice the sequences."""
    most = min(2 * seqs, 512)
    return (
        len([n for n in (1, 2, 4) if n <= most]) + len(range(8, min(most, 255) + 1, 8)) + len(range(256, most + 1, 16))
    )
