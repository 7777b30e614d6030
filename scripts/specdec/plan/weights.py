"""How many bytes a model's weights take once loaded, by rank, in any published number format."""

from __future__ import annotations

import fnmatch
import math
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from specdec.errors import unknown
from specdec.plan.models import Model, Part, Weight

GIB = 1 << 30
DTYPE_BYTES = {"bfloat16": 2, "float16": 2, "half": 2, "float32": 4, "float": 4}
QUANTISED: tuple[Part, ...] = ("attention", "mlp", "expert")
# vLLM rounds a vocabulary up to a multiple of this before it splits it (VocabParallelEmbedding).
VOCAB_PADDING = 64
# The MXFP4 kernels lay an expert's intermediate dimension out in tiles of this many rows.
MXFP4_TILE = 256


@dataclass(frozen=True)
class Format:
    """A number format. Bytes of one quantised parameter = bits / 8 + per_group / group + per_row / columns.

    kv, compute  what the format multiplies in: the key of `tflops` in accelerators.yaml
    experts_only MXFP4 checkpoints keep everything but the experts in 16 bit
    """

    name: str
    bits: int
    group: int = 0
    per_group: float = 0.0
    per_row: float = 0.0
    compute: str = "bf16"
    experts_only: bool = False

    def bytes_per_parameter(self, columns: int) -> float:
        size = self.bits / 8
        if self.group:
            size += self.per_group / self.group
        if self.per_row and columns:
            size += self.per_row / columns
        return size


def int4(name: str, group: int) -> Format:
    # A 16-bit scale and a 4-bit zero for each group; -1 means one group a row, which costs next to nothing.
    return Format(name, 4, group if group > 0 else 4096, 2.5, compute="bf16")


FORMATS: dict[str, Format] = {
    "none": Format("none", 16),
    "fp8": Format("fp8", 8, per_row=4, compute="fp8"),
    "fp8_block": Format("fp8_block", 8, 128 * 128, 4, compute="fp8"),
    "int8": Format("int8", 8, per_row=4, compute="int8"),
    "int4": int4("int4", 128),
    "nvfp4": Format("nvfp4", 4, 16, 1, compute="fp4"),
    "mxfp4": Format("mxfp4", 4, 32, 1, compute="bf16", experts_only=True),
    "bnb4": Format("bnb4", 4, 64, 2, compute="bf16"),
}
# What --quantization and quant_method call them.
NAMES = {
    "awq": "int4",
    "awq_marlin": "int4",
    "gptq": "int4",
    "gptq_marlin": "int4",
    "auto-round": "int4",
    "auto_round": "int4",
    "fp8": "fp8",
    "fbgemm_fp8": "fp8",
    "ptpc_fp8": "fp8",
    "modelopt": "fp8",
    "quark": "fp8",
    "modelopt_fp4": "nvfp4",
    "nvfp4": "nvfp4",
    "petit_nvfp4": "nvfp4",
    "mxfp4": "mxfp4",
    "gpt_oss_mxfp4": "mxfp4",
    "bitsandbytes": "bnb4",
    "int8": "int8",
    "experts_int8": "int8",
    "none": "none",
}
# Only these can be made from a 16-bit checkpoint while it loads; the others need a checkpoint in their own format.
ONLINE = {"fp8", "bitsandbytes", "experts_int8", "mxfp4"}


def stored_format(model: Model) -> Format:
    """The format that the checkpoint's own quantization_config states."""
    q = model.quantization
    method = str(q.get("quant_method") or q.get("quant_algo") or "").lower()
    if not method:
        return FORMATS["none"]
    if method == "compressed-tensors":
        return compressed_format(q)
    if method.startswith("modelopt") or "quant_algo" in q or "quantization" in q:
        algo = str(q.get("quant_algo") or (q.get("quantization") or {}).get("quant_algo") or method).upper()
        return FORMATS["nvfp4" if "FP4" in algo else "fp8"]
    if method == "fp8":
        return FORMATS["fp8_block" if q.get("weight_block_size") else "fp8"]
    if method in ("awq", "gptq", "gptq_marlin", "awq_marlin", "auto-round"):
        bits = int(q.get("bits") or q.get("w_bit") or 4)
        group = int(q.get("group_size") or q.get("q_group_size") or 128)
        return FORMATS["int8"] if bits == 8 else int4(f"int{bits}", group)
    if method in NAMES:
        return FORMATS[NAMES[method]]
    raise unknown(
        "quantization", method, NAMES, file=f"{model.name}/config.json", path="quantization_config.quant_method"
    )


def compressed_format(q: dict[str, Any]) -> Format:
    groups = q.get("config_groups") or {}
    weights = next((g.get("weights") for g in groups.values() if isinstance(g, dict) and g.get("weights")), None) or {}
    bits, kind = int(weights.get("num_bits") or 16), str(weights.get("type") or "")
    group = int(weights.get("group_size") or 0)
    if bits == 8:
        return FORMATS["fp8" if kind == "float" else "int8"]
    if bits == 4 and kind == "float":
        return FORMATS["nvfp4" if group in (0, 16) else "mxfp4"]
    if bits == 4:
        return int4("int4", group or -1)
    return FORMATS["none"]


def chosen_format(model: Model, asked: str | None) -> tuple[Format, list[str]]:
    """The format in memory: the checkpoint's, or what --quantization makes of a 16-bit one. With warnings."""
    stored = stored_format(model)
    if not asked or asked in ("auto", "compressed-tensors"):
        return stored, []
    name = NAMES.get(asked)
    if name is None:
        raise unknown("quantization", asked, NAMES, path="quantization")
    if stored.name != "none":
        return stored, []
    warnings = []
    if asked not in ONLINE:
        warnings.append(f"{model.name} is a 16-bit checkpoint: {asked} needs a checkpoint in that format")
    return FORMATS[name], warnings


def unquantised_share(model: Model, part: Part) -> float:
    """The share of a part's layers that the checkpoint's ignore list leaves in 16 bit."""
    return _unquantised(tuple(_ignored(model.quantization)), part, model.layers)


def _ignored(q: dict[str, Any]) -> list[str]:
    inner = q.get("quantization") if isinstance(q.get("quantization"), dict) else {}
    lists = (
        q.get(k) or (inner or {}).get(k)
        for k in ("ignore", "ignored_layers", "modules_to_not_convert", "exclude_modules")
    )
    return [str(name) for names in lists if isinstance(names, list) for name in names]


MODULES: dict[str, tuple[str, ...]] = {
    "attention": (
        "self_attn.q_proj",
        "self_attn.qkv_proj",
        "self_attn.q_b_proj",
        "self_attn.kv_b_proj",
        "self_attn.o_proj",
    ),
    "mlp": ("mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"),
    "expert": ("mlp.experts.0.gate_proj", "mlp.experts.0.down_proj", "block_sparse_moe.experts.0.w1"),
}


@lru_cache(maxsize=256)
def _unquantised(ignored: tuple[str, ...], part: Part, layers: int) -> float:
    modules = MODULES.get(part)
    if not ignored or not modules:
        return 0.0
    hit = 0
    for layer in range(layers):
        names = [
            f"{prefix}layers.{layer}.{module}"
            for prefix in ("model.", "language_model.model.", "model.language_model.")
            for module in modules
        ]
        hit += any(_matches(pattern, name) for pattern in ignored for name in names)
    return hit / layers


def _matches(pattern: str, name: str) -> bool:
    if pattern.startswith("re:"):
        return re.match(pattern[3:], name) is not None
    if "*" in pattern:
        return fnmatch.fnmatchcase(name, pattern) or fnmatch.fnmatchcase(name, pattern + ".*")
    return name == pattern or name.startswith(pattern + ".")


def element_bytes(dtype: str) -> int:
    size = DTYPE_BYTES.get(dtype)
    if size is None:
        raise unknown("dtype", dtype, DTYPE_BYTES, path="dtype")
    return size


def weight_bytes(weight: Weight, model: Model, fmt: Format, tp: int, dtype_bytes: int, dp: int = 1) -> float:
    """Bytes of one weight on the rank that holds the most of it.

    Experts are divided over the ranks of all data-parallel replicas too, with and without expert parallelism
    (vllm/model_executor/layers/fused_moe/config.py: flatten_tp_across_dp); what else there is, each replica holds.
    """
    params = weight.params / share_divisor(weight, model, tp) / (dp if weight.part == "expert" else 1)
    if weight.part in ("embed", "head"):
        padded = math.ceil(weight.rows / (VOCAB_PADDING * tp)) * VOCAB_PADDING if weight.rows else 0
        return padded * weight.columns * dtype_bytes
    quantised = weight.part in QUANTISED and fmt.name != "none" and not (fmt.experts_only and weight.part != "expert")
    if not quantised:
        return params * dtype_bytes
    plain = unquantised_share(model, weight.part) if stored_format(model).name != "none" else 0.0
    size = fmt.bytes_per_parameter(weight.columns)
    if fmt.experts_only:
        rows = weight.rows / tp
        size *= math.ceil(rows / MXFP4_TILE) * MXFP4_TILE / rows
    return params * (plain * dtype_bytes + (1 - plain) * size)


def share_divisor(weight: Weight, model: Model, tp: int) -> int:
    if weight.share == "copy":
        return 1
    return min(tp, model.kv_heads) if weight.share == "kv" else tp


@lru_cache(maxsize=4096)
def rank_weights(
    model: Model, fmt: Format, tp: int, dtype: str | None = None, *, encoders: bool = True, dp: int = 1
) -> float:
    """Bytes of a model's loaded weights on each of `tp` ranks, with its table of rotary angles.

    encoders: whether those of images and sound are loaded.
    """
    size = element_bytes(dtype or model.dtype)
    total = sum(weight_bytes(w, model, fmt, tp, size, dp) for w in model.weights if encoders or w.part != "vision")
    return total + rotary_bytes(model, size)


def rotary_bytes(model: Model, size: int) -> float:
    """Cosines and sines for every position, one table a model (vLLM's get_rope caches it by its parameters)."""
    dim = next((g.key_dim for g in model.kv if g.kind in ("full", "window")), 64)
    return model.max_positions * dim * size


def checkpoint_bytes(model: Model) -> int:
    """Bytes of the checkpoint's files: as published where known, else computed from the configuration."""
    if model.checkpoint_bytes:
        return model.checkpoint_bytes
    fmt, size = stored_format(model), element_bytes(model.dtype)
    total = 0.0
    for w in model.weights:
        quantised = w.part in QUANTISED and fmt.name != "none" and not (fmt.experts_only and w.part != "expert")
        plain = unquantised_share(model, w.part)
        total += w.params * ((plain * size + (1 - plain) * fmt.bytes_per_parameter(w.columns)) if quantised else size)
    return round(total)
