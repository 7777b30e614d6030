"""The planner's field cases by number, each with the arithmetic that its source gives.

More of them by topic: V1, V7, V15, M1, M8 in test_memory; M2, M3, M4, M7, M10 in test_models.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from specdec.errors import SpecdecError
from specdec.plan import checks, defaults, enginelog, kvcache, memory
from specdec.plan.document import binding, plan_document
from specdec.plan.enginelog import CacheLog
from specdec.plan.setup import Setup
from specdec.plan.verdict import fits, judge
from specdec.plan.weights import FORMATS, GIB, rank_weights, weight_bytes
from specdec.plan.workloads import Planned

LLAMA_8B, LLAMA_70B = "meta-llama/Llama-3.1-8B-Instruct", "meta-llama/Llama-3.1-70B-Instruct"
EAGLE3_GPT_OSS = "nvidia/gpt-oss-120b-Eagle3-short-context"


@pytest.mark.parametrize(("name", "each"), [(LLAMA_8B, 131_072), (LLAMA_70B, 327_680)])
def test_m2_heads_that_share_keys_and_values(setup: Callable[..., Setup], name: str, each: int) -> None:
    assert kvcache.bytes_per_token(setup(name)) == each


def test_m3_dividing_hidden_by_heads_errs_to_both_sides(setup: Callable[..., Setup]) -> None:
    """Gemma-3-27B: 81.375 GiB by division, 10.41 true. Qwen3-0.6B: 2.1875 by division, 4.375 true."""
    gemma, small = setup("google/gemma-3-27b-it"), setup("Qwen/Qwen3-0.6B")
    by_division = 2 * 62 * 16 * (5376 // 32) * 2 * 131_072 / GIB
    assert by_division == pytest.approx(81.375)
    assert kvcache.bytes_per_token(gemma, length=131_072) * 131_072 / GIB == pytest.approx(10.41, abs=0.005)
    assert pytest.approx(2.1875) == 2 * 28 * 8 * (1024 // 16) * 2 * 40_960 / GIB
    assert kvcache.bytes_per_token(small, length=40_960) * 40_960 / GIB == pytest.approx(4.375)


def test_m4_what_is_allocated_is_more_than_the_windows_say(setup: Callable[..., Setup]) -> None:
    """gpt-oss-120b at 131,072: 4.50 GiB by its windows, 9.00 with every layer full.

    16 of 64 layers with a cache: 65,536 of 262,144 bytes a token.
    """
    on, off = setup("openai/gpt-oss-120b"), setup("openai/gpt-oss-120b", hybrid_kv=False)
    least = kvcache.bytes_per_token(on, length=131_072) * 131_072
    assert least / GIB == pytest.approx(4.50, abs=0.01)
    assert kvcache.sequence_bytes(off, length=131_072) / GIB == pytest.approx(9.00)
    assert least < kvcache.sequence_bytes(on, length=131_072) < kvcache.sequence_bytes(off, length=131_072)
    dense = setup("Qwen/Qwen3.5-27B")
    layers = sum(g.count for g in dense.target.kv)
    assert kvcache.bytes_per_token(dense) * 4 * layers / 64 == 262_144


def test_m5_one_layer_of_a_draft_wastes_17_of_18(setup: Callable[..., Setup]) -> None:
    """19 full and 18 window layers: 17 padding layers (89.47 %) before the fix, one (5.56 %) after."""

    def padding(version: str) -> tuple[int, int]:
        s = setup("openai/gpt-oss-120b", method="eagle3", draft=EAGLE3_GPT_OSS, version=version)
        size = kvcache.group_size(s, 19, 18)
        return -19 % size, -18 % size

    assert padding("0.11.2") == (17, 0)
    assert pytest.approx(0.8947, abs=5e-5) == 17 / 19
    assert padding("0.12.0") == (0, 1)
    assert pytest.approx(0.0556, abs=5e-5) == 1 / 18


def test_m7_an_8b_in_four_bits_is_5_33_gib(setup: Callable[..., Setup]) -> None:
    target = setup(LLAMA_8B).target
    total = sum(weight_bytes(w, target, FORMATS["int4"], 1, 2) for w in target.weights) / GIB
    assert total == pytest.approx(5.33, abs=0.03)
    assert target.parameters * 0.5 / GIB == pytest.approx(3.74, abs=0.005), "what a rule of thumb says"


def test_m10_the_prediction_layer_of_deepseek_counts(setup: Callable[..., Setup]) -> None:
    """Main model 78.12 GiB a GPU at TP 8, so eight of 80 GB cannot be; 71,424 bytes a token on every rank."""
    on = {"tp": 8, "method": "mtp", "k": 1, "max_model_len": 131_072}
    small, large = setup("deepseek-ai/DeepSeek-V3", **on), setup("deepseek-ai/DeepSeek-V3", key="h200-141gb", **on)
    eight_bit = small.target.parameters / 8 / GIB
    assert eight_bit == pytest.approx(78.12, abs=0.05)
    # Loaded it is more: what every rank holds whole, and embedding and head in 16 bits.
    assert 78.12 < memory.plan(small).ranks[0].target_weights < 84
    assert not fits(memory.plan(small), small)
    assert fits(memory.plan(large), large)
    assert [kvcache.bytes_per_token(small, rank) for rank in (0, 7)] == [71_424, 71_424]


def test_m11_an_8_bit_cache_changes_what_is_needed_and_not_what_is_left(setup: Callable[..., Setup]) -> None:
    wide, narrow = (setup(LLAMA_8B, key="l4", max_model_len=32_768, kv_dtype=k) for k in (None, "fp8"))
    assert kvcache.sequence_bytes(narrow) * 2 == kvcache.sequence_bytes(wide)
    assert memory.plan(narrow).kv_gib == memory.plan(wide).kv_gib
    assert (fits(memory.plan(wide), wide), fits(memory.plan(narrow), narrow)) == (False, True)


def test_m11_a_draft_may_keep_16_bits(setup: Callable[..., Setup]) -> None:
    pair = setup(LLAMA_8B, method="draft_model", draft="meta-llama/Llama-3.2-1B-Instruct", kv_dtype="fp8")
    apart = replace(pair, draft_kv_bytes=2)
    assert kvcache.bytes_per_token(apart) == 65_536 + 32_768


def test_m13_two_lengths_give_the_rate_that_one_log_does_not(setup: Callable[..., Setup]) -> None:
    """Windows, states and padding cost the same at any length: one log's quotient is no rate."""
    s = setup("openai/gpt-oss-120b", version="0.24.0", max_num_batched_tokens=2048)
    logs = [CacheLog(30.0, n, 30.0 * GIB / kvcache.sequence_bytes(s, length=n)) for n in (8192, 131_072)]
    each, fixed = enginelog.fit(*logs)
    assert each == pytest.approx(18 * 2 * 8 * 64 * 2), "18 full layers"
    assert fixed > 0
    assert logs[0].sequence_bytes / logs[0].length > 1.2 * each
    with pytest.raises(SpecdecError, match="both logs") as error:
        enginelog.fit(logs[0], logs[0])
    assert error.value.code == "SD333"


LOG = """\
(EngineCore_DP0 pid=1) INFO [gpu_worker.py:298] Available KV cache memory: {gib} GiB
(EngineCore_DP0 pid=1) INFO [kv_cache_utils.py:1087] GPU KV cache size: 1 tokens
(EngineCore_DP0 pid=1) INFO [kv_cache_utils.py:1091] Maximum concurrency for {length} tokens per request: {x}x
"""


def test_m13_a_plan_reads_the_logs_of_two_starts(setup: Callable[..., Setup], tmp_path: Path) -> None:
    files = [tmp_path / "short.log", tmp_path / "long.log"]
    files[0].write_text(LOG.format(gib=51.38, length="8,192", x=51.38), encoding="utf-8")
    files[1].write_text(LOG.format(gib=51.38, length="131,072", x=3.21), encoding="utf-8")
    s = setup(LLAMA_8B, version="0.11.0", utilisation=0.9)
    said = enginelog.document(s, memory.plan(s), [enginelog.read(f) for f in files])
    assert said["kv_bytes_per_token"] == pytest.approx(131_072, rel=0.01)
    assert said["kv_cache_gib"] == {"measured": 51.38, "computed": pytest.approx(51.4, abs=0.3)}
    files[0].write_text("INFO: started\n", encoding="utf-8")
    with pytest.raises(SpecdecError) as error:
        enginelog.read(files[0])
    assert error.value.code == "SD332"


def test_m14_the_image_encoder_counts_unless_it_is_off(setup: Callable[..., Setup]) -> None:
    """SigLIP with its projector: 0.42 B parameters, 0.79 GiB; images widen the profiling run."""
    s = setup("google/gemma-3-27b-it", max_num_batched_tokens=65_536)
    vision = [w for w in s.target.weights if w.part == "vision"]
    assert sum(w.params for w in vision) * 2 / GIB == pytest.approx(0.79, abs=0.02)
    text_only = replace(s, multimodal=False)
    assert memory.forward_peak(s, 2) > memory.forward_peak(text_only, 2)
    with_images, without = memory.plan(s).ranks[0], memory.plan(text_only).ranks[0]
    assert with_images.target_weights - without.target_weights == pytest.approx(0.79, abs=0.02)


def test_m16_a_plan_states_inputs_units_ranks_and_what_binds(setup: Callable[..., Setup]) -> None:
    planned = Planned("engine", setup(LLAMA_70B, tp=4, max_model_len=8192), 1, 4)
    document = json.loads(json.dumps(plan_document(planned)))
    assert {"target", "accelerator", "tensor_parallel_size", "max_model_len", "max_num_seqs"} <= document.keys()
    assert "GiB = 2^30" in document["units"]
    assert len(document["ranks"]) == 4
    assert {"budget_gib", "target_weights_gib", "kv_cache_gib"} <= document["ranks"][0].keys()
    assert document["binding_constraint"]["what"] == "kv_cache"
    roomy = setup("Qwen/Qwen3-0.6B", max_model_len=512, max_num_seqs=16)
    assert binding(roomy, judge(roomy))["what"] == "max_num_seqs"
    tight = setup(LLAMA_70B, max_model_len=8192)
    assert binding(tight, judge(tight))["what"] == "weights"


ACCEPT = [
    ("Qwen/Qwen3-32B", "h100-80gb", 1, 16_000),
    ("openai/gpt-oss-20b", "h100-80gb", 1, 16_000),
    ("RedHatAI/Llama-3.3-70B-Instruct-FP8-dynamic", "h100-80gb", 2, 16_000),
    ("Qwen/Qwen3-0.6B", "l4", 1, 32_768),
]
REJECT = [
    ("Qwen/Qwen3-32B", "h100-80gb", 1, 32_000),
    ("RedHatAI/Llama-3.3-70B-Instruct-FP8-dynamic", "h100-80gb", 1, 16_000),
    ("deepseek-ai/DeepSeek-R1", "h100-80gb", 1, 16_000),
    ("Qwen/Qwen3-14B", "l4", 1, 8_192),
]


@pytest.mark.parametrize(("name", "key", "tp", "length"), ACCEPT)
def test_m17_what_has_started_is_accepted(
    setup: Callable[..., Setup], name: str, key: str, tp: int, length: int
) -> None:
    verdict = judge(setup(name, key=key, tp=tp, max_model_len=length, version="0.11.0", utilisation=0.9))
    assert verdict.fits, verdict.reasons


@pytest.mark.parametrize(("name", "key", "tp", "length"), REJECT)
def test_m17_what_has_failed_is_refused(setup: Callable[..., Setup], name: str, key: str, tp: int, length: int) -> None:
    verdict = judge(setup(name, key=key, tp=tp, max_model_len=length, version="0.11.0", utilisation=0.9))
    assert not verdict.fits
    assert verdict.reasons


def test_m17_a_7_gb_model_is_not_said_to_need_139(setup: Callable[..., Setup]) -> None:
    """A report of 139 GB for what ran in 32: weights, cache and all of a 14B in 16 bits at 8,192 tokens."""
    s = setup("Qwen/Qwen2.5-14B-Instruct", key="a100-80gb", max_model_len=8192, max_num_seqs=8)
    rank = memory.plan(s).ranks[0]
    need = rank.target_weights + rank.activation + rank.non_torch + kvcache.sequence_bytes(s) / GIB
    assert 27.5 < need < 32
    assert rank.target_weights == pytest.approx(rank_weights(s.target, FORMATS["none"], 1) / GIB)


def test_v13_what_parallel_drafting_leaves_at_0_26_and_not_later(setup: Callable[..., Setup]) -> None:
    """k=16 with 256 sequences: 2048 - 15 x 256 < 0 tokens of a step; 64 sequences or more tokens are well."""
    crowded = setup(LLAMA_8B, method="eagle3", draft="yuhuili/EAGLE3-LLaMA3.1-Instruct-8B", max_num_seqs=256)
    assert crowded.speculation is not None
    spec = replace(crowded.speculation, method="dflash", k=16)
    for version, seqs, tokens, well in (
        ("0.26.0", 256, 2048, False),
        ("0.26.0", 256, 12_288, True),
        ("0.26.0", 64, 2048, True),
        ("0.28.0", 256, 2048, True),
        ("0.33.0", 256, 2048, True),
    ):
        s = replace(crowded, version=version, max_num_seqs=seqs, max_num_batched_tokens=tokens)
        assert (checks.budget(s, spec) == []) is well, (version, seqs, tokens)


def test_v16_graphs_beside_the_budget_before_0_20_and_in_it_after(setup: Callable[..., Setup]) -> None:
    before, after = (memory.plan(setup(LLAMA_8B, version=v, utilisation=0.95)).ranks[0] for v in ("0.18.0", "0.22.0"))
    assert (before.outside > 0, after.outside) == (True, 0.0)
    assert after.kv_cache < before.kv_cache
    assert [
        defaults.graphs_inside(s.release, "v1") for s in (setup(LLAMA_8B, version=v) for v in ("0.19.1", "0.20.2"))
    ] == [
        False,
        True,
    ]
