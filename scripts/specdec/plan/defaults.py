"""What an engine does when it is not told: utilisation, batching, CUDA graphs, by version, runner and GPU.

Read from vLLM's own sources of these versions (vllm/engine/arg_utils.py, vllm/config/cache.py, vllm/envs.py,
vllm/v1/sample/ops/topk_topp_sampler.py). Rows as in engines.yaml: from <= version < before; the first that holds
counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from specdec import facts
from specdec.facts import Version, version_key

UTILISATION: list[dict[str, Any]] = [
    {"before": "0.20.0", "value": 0.90},
    {"value": 0.92},
]
# Sequences and tokens of one step for the API server. `from_gib`: GPUs with at least that much memory.
BATCHING: list[dict[str, Any]] = [
    {"runner": "v0", "seqs": 256, "tokens": 2048},
    {"from": "0.28.0", "from_gib": 160, "seqs": 1024, "tokens": 16384},
    {"from": "0.9.0", "from_gib": 70, "not": "a100", "seqs": 1024, "tokens": 8192},
    {"before": "0.9.0", "from_gib": 70, "seqs": 1024, "tokens": 8192},
    {"seqs": 256, "tokens": 2048},
]
CPU_BATCHING = {"seqs": 128, "tokens": 2048}
# Whether the estimate of CUDA graph memory is taken off the budget before the KV cache is sized.
GRAPHS_INSIDE: list[dict[str, Any]] = [
    {"runner": "v0", "value": False},
    {"runner": "v1", "from": "0.20.0", "value": True},
    {"runner": "v2", "from": "0.29.0", "value": True},
    {"value": False},
]
# How the profiling run samples: "sort" sorts all logits with their indices; "kernel" masks them in place (Triton's or
# FlashInfer's); "none" asks for neither top-k nor top-p.
SAMPLER: list[dict[str, Any]] = [
    {"runner": "v2", "value": "none"},
    {"runner": "v1", "from": "0.17.0", "value": "kernel"},
    {"value": "sort"},
]
# What counts as neither weights nor activations: "context": all that torch has not allocated (vllm-project/vllm#11809
# ended it); "increase": what came on top since the engine started; "free memory": the drop in free memory.
NON_TORCH: list[dict[str, Any]] = [
    {"before": "0.7.0", "value": "context"},
    {"from": "0.27.0", "value": "free memory"},
    {"value": "increase"},
]
# Window layers keep their window alone from this version on.
HYBRID_KV: list[dict[str, Any]] = [{"before": "0.9.2", "value": False}, {"value": True}]
CHUNKED_PREFILL_V0_FROM = 32768
BLOCK_SIZE = 16


def rows(key: str, own: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The table of engines.yaml's `defaults` where it has one, else the one here."""
    told = facts.engines().get("defaults")
    return told[key] if isinstance(told, dict) and isinstance(told.get(key), list) else own


@dataclass(frozen=True)
class Batching:
    seqs: int
    tokens: int


def lookup(
    rows: list[dict[str, Any]], version: Version, runner: str, gpu: str = "", gib: float = 0.0
) -> dict[str, Any]:
    for row in rows:
        if (
            row.get("runner", runner) == runner
            and ("from" not in row or version >= version_key(row["from"]))
            and ("before" not in row or version < version_key(row["before"]))
            and gib >= row.get("from_gib", 0)
            and (row.get("not") is None or row["not"] not in gpu)
        ):
            return row
    raise LookupError("the last row holds for everything")


def utilisation(version: Version, runner: str) -> float:
    return float(lookup(rows("utilisation", UTILISATION), version, runner)["value"])


def batching(version: Version, runner: str, gpu: str, gib: float, max_model_len: int) -> Batching:
    """Sequences and tokens of one step. V0 without chunked prefill (below 32k) takes a whole prompt in one step."""
    if gpu == "cpu":
        return Batching(CPU_BATCHING["seqs"], CPU_BATCHING["tokens"])
    row = lookup(rows("batching", BATCHING), version, runner, gpu, gib)
    tokens = row["tokens"]
    if runner == "v0" and max_model_len <= CHUNKED_PREFILL_V0_FROM:
        tokens = max(tokens, max_model_len)
    return Batching(row["seqs"], tokens)


def graphs_inside(version: Version, runner: str) -> bool:
    return bool(lookup(rows("graphsInside", GRAPHS_INSIDE), version, runner)["value"])


def sampler(version: Version, runner: str) -> str:
    return str(lookup(rows("sampler", SAMPLER), version, runner)["value"])


def non_torch(version: Version, runner: str) -> str:
    return str(lookup(rows("nonTorch", NON_TORCH), version, runner)["value"])


def hybrid_kv(version: Version, runner: str) -> bool:
    return runner != "v0" and bool(lookup(rows("hybridKv", HYBRID_KV), version, runner)["value"])


def captured_sizes(seqs: int) -> int:
    """Batch sizes that get a CUDA graph: 1, 2, 4, every 8 to 256, every 16 to 512, no more than twice the sequences."""
    most = min(2 * seqs, 512)
    return (
        len([n for n in (1, 2, 4) if n <= most]) + len(range(8, min(most, 255) + 1, 8)) + len(range(256, most + 1, 16))
    )
