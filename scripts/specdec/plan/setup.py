"""One engine to plan: target, draft, GPU and arguments, with the engine's own defaults filled in."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from specdec.errors import unknown
from specdec.facts import Version, version_key
from specdec.plan import defaults
from specdec.plan.models import Model
from specdec.plan.weights import Format, chosen_format

WITHOUT_WEIGHTS = {"ngram", "ngram_gpu", "suffix"}
# Methods whose draft proposes all tokens in one pass.
ONE_PASS = {"medusa", "dflash", "dspark", "pard", "p_eagle"}
# Bytes of one cached number with its share of scales: one of 32 bits for a head of 128 in the formats that scale each
# token, one of 8 bits for 16 numbers in NVFP4; DeepSeek's own layout takes 656 bytes for a latent of 576.
KV_BYTES: dict[str, float] = {
    "auto": 2,
    "bfloat16": 2,
    "float16": 2,
    "half": 2,
    "fp8": 1,
    "fp8_e4m3": 1,
    "fp8_e5m2": 1,
    "fp8_inc": 1,
    "int8": 1,
    "fp8_per_token_head": 1 + 4 / 128,
    "int8_per_token_head": 1 + 4 / 128,
    "nvfp4": 0.5 + 1 / 16,
    "fp8_ds_mla": 656 / 576,
}


# From this version on "auto" takes the KV cache format that a checkpoint states (vllm/utils/torch_utils.py).
KV_SCHEME_FROM = version_key("0.14.0")


def stored_kv_is_8_bit(model: Model) -> bool:
    q = model.quantization
    scheme, algorithm = q.get("kv_cache_scheme"), str(q.get("kv_cache_quant_algo") or "")
    return (isinstance(scheme, dict) and scheme.get("num_bits") == 8) or algorithm.upper() == "FP8"


@dataclass(frozen=True)
class Accelerator:
    """A row of accelerators.yaml. memory_gib: as the engine sees it."""

    key: str
    name: str
    memory_gib: float
    bandwidth_gbs: float
    tflops: dict[str, float]
    interconnect_gbs: float
    link: str
    fp8: bool

    @classmethod
    def of(cls, key: str, row: dict[str, Any]) -> Accelerator:
        return cls(
            key,
            row["name"],
            float(row["memoryGiB"] or 0),
            float(row["bandwidthGBs"]),
            dict(row["tflops"]),
            float(row["interconnectGBs"]),
            row["link"],
            bool(row["fp8"]),
        )


@dataclass(frozen=True)
class Speculation:
    """method: ngram, suffix, draft_model, eagle, eagle3, medusa, mtp...; draft: the model or head, None where it has
    none."""

    method: str
    k: int
    draft: Model | None = None
    draft_format: Format | None = None
    draft_tp: int | None = None
    draft_dtype: str | None = None
    draft_max_len: int | None = None
    schedule: tuple[tuple[int, int, int], ...] = ()


@dataclass(frozen=True)
class Setup:
    """Everything that memory and speed depend on. Filled in by `build`."""

    target: Model
    format: Format
    accelerator: Accelerator
    version: str
    runner: str
    tp: int
    pp: int
    dp: int
    utilisation: float
    max_model_len: int
    max_num_seqs: int
    max_num_batched_tokens: int
    kv_bytes: float
    draft_kv_bytes: float
    dtype: str
    eager: bool
    chunked_prefill: bool
    hybrid_kv: bool
    multimodal: bool
    speculation: Speculation | None = None
    kv_cache_memory_bytes: int | None = None
    kv_dtype: str = "auto"
    prefix_caching: bool | None = None
    flashinfer_sampler: bool | None = None

    @property
    def release(self) -> Version:
        return version_key(self.version)

    @property
    def pipes(self) -> int:
        """Batches that run at once: one for each data-parallel replica, and one for each pipeline stage of it."""
        return self.dp * self.pp

    @property
    def gpus(self) -> int:
        return self.tp * self.pp * self.dp

    @property
    def most_requests(self) -> int:
        """Requests that run at once at most: max_num_seqs holds for each data-parallel replica."""
        return self.max_num_seqs * self.dp

    def without_speculation(self) -> Setup:
        return replace(self, speculation=None)


def build(
    target: Model,
    accelerator: Accelerator,
    *,
    version: str,
    runner: str,
    tp: int = 1,
    pp: int = 1,
    dp: int = 1,
    utilisation: float | None = None,
    max_model_len: int | None = None,
    max_num_seqs: int | None = None,
    max_num_batched_tokens: int | None = None,
    kv_dtype: str | None = None,
    dtype: str | None = None,
    quantization: str | None = None,
    eager: bool = False,
    hybrid_kv: bool = True,
    multimodal: bool = True,
    speculation: Speculation | None = None,
    kv_cache_memory_bytes: int | None = None,
    prefix_caching: bool | None = None,
    flashinfer_sampler: bool | None = None,
) -> Setup:
    """A Setup with the defaults of that version and runner on that GPU. flashinfer_sampler: None where nobody says."""
    release = version_key(version)
    length = target.max_positions if max_model_len in (None, -1) else int(max_model_len or 0)
    batch = defaults.batching(release, runner, accelerator.key, accelerator.memory_gib, length)
    batch = batch.beside(release, length, max_num_seqs, max_num_batched_tokens)
    fmt, _ = chosen_format(target, quantization)
    chosen_dtype = target.dtype if dtype in (None, "auto") else str(dtype)
    if chosen_dtype in ("float32", "float") and dtype in (None, "auto"):
        chosen_dtype = "float16"  # what the engine's "auto" makes of a float32 checkpoint
    kv = kv_dtype or "auto"
    if kv not in KV_BYTES:
        raise unknown("kv-dtype", kv, KV_BYTES, path="engine.kvCacheDtype")
    kv_bytes = KV_BYTES[kv]
    draft_kv_bytes = kv_bytes
    if kv == "auto" and release >= KV_SCHEME_FROM and stored_kv_is_8_bit(target):
        kv_bytes = 1  # the checkpoint's own scheme; the draft's checkpoint has none
    return Setup(
        target=target,
        format=fmt,
        accelerator=accelerator,
        version=version,
        runner=runner,
        tp=tp,
        pp=pp,
        dp=dp,
        utilisation=utilisation if utilisation is not None else defaults.utilisation(release, runner),
        max_model_len=length,
        max_num_seqs=batch.seqs,
        max_num_batched_tokens=batch.tokens,
        kv_bytes=kv_bytes,
        draft_kv_bytes=draft_kv_bytes,
        dtype=chosen_dtype,
        eager=eager,
        chunked_prefill=runner != "v0" or length > defaults.CHUNKED_PREFILL_V0_FROM,
        hybrid_kv=hybrid_kv and defaults.hybrid_kv(release, runner),
        multimodal=multimodal,
        speculation=speculation,
        kv_cache_memory_bytes=kv_cache_memory_bytes,
        kv_dtype=kv,
        prefix_caching=prefix_caching,
        flashinfer_sampler=flashinfer_sampler,
    )
