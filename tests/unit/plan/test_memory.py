"""Memory by rank: what fits, what does not, and what an engine of that version would report."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from specdec.errors import SpecdecError
from specdec.plan import checks, defaults, kvcache, memory
from specdec.plan.heads import with_embedding
from specdec.plan.parse import parse
from specdec.plan.setup import Accelerator, Setup, Speculation, build
from specdec.plan.verdict import fits, judge
from specdec.plan.weights import FORMATS, GIB, rank_weights, rotary_bytes

LLAMA_8B, LLAMA_70B = "meta-llama/Llama-3.1-8B-Instruct", "meta-llama/Llama-3.1-70B-Instruct"
FLAT_OVERHEAD = 2.3


def weights_gib(setup: Setup) -> float:
    """Without the table of rotary angles, as the cases count."""
    return (rank_weights(setup.target, setup.format, setup.tp) - rotary_bytes(setup.target, 2)) / GIB


def tokens_with_flat_overhead(setup: Setup, budget: float, taken: float, rank: int = 0) -> int:
    return int((budget - taken - FLAT_OVERHEAD) * GIB / kvcache.bytes_per_token(setup, rank))


def test_the_articles_70b_with_8b_does_not_fit_two_h100s_and_fp8_does(setup: Callable[..., Setup]) -> None:
    pair = {
        "method": "draft_model",
        "draft": LLAMA_8B,
        "k": 4,
        "tp": 2,
        "utilisation": 0.92,
        "max_model_len": 8192,
        "max_num_seqs": 128,
        "version": "0.6.3",
        "runner": "v0",
    }
    verdict = judge(setup(LLAMA_70B, **pair))
    rank = verdict.memory.ranks[0]
    assert not verdict.fits
    assert (round(rank.target_weights, 1), round(rank.draft_weights, 1), round(rank.budget, 1)) == (65.7, 7.5, 72.8)
    assert "65.7 GiB of target weights + 7.5 GiB of draft weights" in verdict.reasons[0]
    quantised = judge(setup(LLAMA_70B, quantization="fp8", **pair))
    assert quantised.fits
    assert quantised.memory.ranks[0].target_weights == pytest.approx(33.9, abs=0.05)
    assert any("33.9 + 4" in change for change in verdict.changes)


def test_every_proposed_change_would_fit(setup: Callable[..., Setup]) -> None:
    from specdec.plan.verdict import proposals

    tight = setup(LLAMA_70B, method="draft_model", draft=LLAMA_8B, k=4, tp=2, utilisation=0.92, max_model_len=8192)
    texts = judge(tight).changes
    assert texts
    for text, changed in proposals(tight):
        assert (text not in texts) or fits(memory.plan(changed), changed)
        assert changed.pp == 1, "a pipeline is no answer while speculation is on"


def test_v0_keeps_a_draft_of_tp_1_on_rank_0_alone(setup: Callable[..., Setup]) -> None:
    """The arithmetic of engines up to 0.9: from 0.15.1 on the draft is split like the target."""
    s = setup(
        LLAMA_70B,
        method="draft_model",
        draft=LLAMA_8B,
        draft_tp=1,
        tp=4,
        gib=79.15,
        utilisation=0.90,
        version="0.6.4",
        runner="v0",
        max_model_len=8192,
    )
    assert weights_gib(s) == pytest.approx(32.85, abs=0.01)
    draft = memory.draft_weights(s, 0) - 131072 * 128 * 2 / GIB
    assert draft == pytest.approx(14.96, abs=0.005)
    assert memory.draft_weights(s, 1) == 0
    assert (kvcache.bytes_per_token(s, 0), kvcache.bytes_per_token(s, 1)) == (212_992, 81_920)
    budget = 0.90 * 79.15
    assert tokens_with_flat_overhead(s, budget, 32.85 + 14.96) == pytest.approx(106_487, rel=0.0005)
    assert tokens_with_flat_overhead(s, budget, 32.85, rank=1) == pytest.approx(472_919, rel=0.0005)
    split = setup(
        LLAMA_70B,
        method="draft_model",
        draft=LLAMA_8B,
        tp=4,
        gib=79.15,
        utilisation=0.90,
        version="0.6.4",
        runner="v0",
        max_model_len=8192,
    )
    assert tokens_with_flat_overhead(split, budget, 32.85 + 14.957 / 4) == pytest.approx(302_790, rel=0.0005)
    plan = memory.plan(s)
    assert plan.least == 0
    assert plan.kv_cache_tokens == memory.rank_tokens(s, plan.ranks[0])
    # 65 % of the capacity is the price of TP 1.
    assert 1 - plan.kv_cache_tokens / memory.plan(split).kv_cache_tokens == pytest.approx(0.65, abs=0.02)


def test_today_a_draft_is_split_like_the_target(setup: Callable[..., Setup]) -> None:
    s = setup(LLAMA_70B, method="draft_model", draft=LLAMA_8B, draft_tp=1, tp=4, version="0.32.0", runner="v1")
    assert [r.draft_weights for r in memory.plan(s).ranks] == pytest.approx([14.96 / 4] * 4, abs=0.05)
    assert any(code == "SD228" for code, _ in checks.pair_findings(s))


@pytest.mark.parametrize(
    ("method", "draft", "own", "free", "tokens"),
    [
        ("ngram", None, False, 2.60, 21_270),
        ("eagle3", "nm-testing/EAGLE3-LLaMA3.1-Instruct-8B-converted", False, 1.805, 14_341),
        ("eagle3", "nm-testing/EAGLE3-LLaMA3.1-Instruct-8B-converted", True, 0.827, 6_568),
        ("draft_model", "meta-llama/Llama-3.2-1B-Instruct", False, 0.295, 1_930),
    ],
)
def test_an_8b_on_a_24_gb_card_with_each_kind_of_draft(
    setup: Callable[..., Setup], method: str, draft: str | None, own: bool, free: float, tokens: int
) -> None:
    s = setup(LLAMA_8B, method=method, draft=draft, gib=22.06, utilisation=0.90, max_model_len=8192)
    spec = s.speculation
    assert spec is not None
    taken = weights_gib(s)
    if spec.draft is not None:
        head = with_embedding(spec.draft) if own else spec.draft
        taken += (rank_weights(head, FORMATS["none"], 1) - rotary_bytes(head, 2)) / GIB
    left = 0.90 * 22.06 - taken - FLAT_OVERHEAD
    assert left == pytest.approx(free, abs=0.006)
    assert left * GIB / kvcache.bytes_per_token(s) == pytest.approx(tokens, rel=0.02)


def test_mla_holds_what_the_engine_reported(gpu: Callable[..., Accelerator]) -> None:
    """22.5 GiB for 1,048,576 tokens; with 17.39 GiB the engine said 810,208."""
    config = {
        "model_type": "deepseek_v3",
        "hidden_size": 2048,
        "num_hidden_layers": 20,
        "num_attention_heads": 16,
        "intermediate_size": 4096,
        "vocab_size": 32000,
        "max_position_embeddings": 1_048_576,
        "q_lora_rank": 512,
    }
    s = build(parse("an/mla", config), gpu(), version="0.11.0", runner="v1", tp=8)
    assert kvcache.bytes_per_token(s) == 23_040
    assert kvcache.sequence_bytes(s) / GIB == 22.5
    assert 17.39 * GIB / kvcache.bytes_per_token(s) == pytest.approx(810_208, rel=0.0005)


def test_deepseek_with_its_prediction_layer_needs_h200s(setup: Callable[..., Setup]) -> None:
    on = {"tp": 8, "method": "mtp", "k": 1, "max_model_len": 8192}
    h100, h200 = (
        judge(setup("deepseek-ai/DeepSeek-V3", **on)),
        judge(setup("deepseek-ai/DeepSeek-V3", key="h200-141gb", **on)),
    )
    assert not h100.fits
    assert h200.fits
    assert h100.memory.ranks[0].draft_weights == pytest.approx(1.35, rel=0.15)


def test_cuda_graphs_come_off_the_budget_from_0_20_on(setup: Callable[..., Setup]) -> None:
    old, new = (
        memory.plan(setup(LLAMA_8B, version=v, runner="v1", utilisation=0.95)).ranks[0] for v in ("0.19.1", "0.21.0")
    )
    assert not old.graphs_inside
    assert new.graphs_inside
    assert old.kv_cache - new.kv_cache == pytest.approx(new.cuda_graph)


def test_the_same_values_take_other_defaults_by_version_and_gpu(setup: Callable[..., Setup]) -> None:
    assert (setup(LLAMA_8B, version="0.19.1").utilisation, setup(LLAMA_8B, version="0.20.0").utilisation) == (
        0.90,
        0.92,
    )
    assert (
        setup(LLAMA_8B, version="0.11.0").max_num_seqs,
        setup(LLAMA_8B, version="0.11.0", key="a100-80gb").max_num_seqs,
    ) == (1024, 256)
    assert setup(LLAMA_8B, version="0.32.0", key="b200").max_num_batched_tokens == 16384
    assert setup(LLAMA_8B, version="0.6.4", runner="v0", max_model_len=8192).max_num_batched_tokens == 8192


def test_a_start_that_failed_is_refused_under_every_version_that_it_can_be(setup: Callable[..., Setup]) -> None:
    """R1-Distill-Qwen-14B on two 24 GB cards at 0.98: 131072 tokens were too many, 81,536 the engine said."""
    for version, runner in (("0.6.3", "v0"), ("0.6.6", "v0"), ("0.7.2", "v0"), ("0.8.5", "v1"), ("0.11.0", "v1")):
        s = setup(
            "deepseek-ai/DeepSeek-R1-Distill-Qwen-14B",
            tp=2,
            key="l4",
            gib=23.08,
            utilisation=0.98,
            max_model_len=131_072,
            version=version,
            runner=runner,
        )
        plan = memory.plan(s)
        assert not fits(plan, s), version
        assert plan.kv_cache_tokens == pytest.approx(81_536, rel=0.2), version


def test_the_band_holds_the_value_and_a_fixed_cache_has_none(setup: Callable[..., Setup]) -> None:
    rank = memory.plan(setup(LLAMA_8B)).ranks[0]
    assert rank.band[0] < rank.kv_cache < rank.band[1]
    fixed = memory.plan(setup(LLAMA_8B, kv_cache_memory_bytes=8 * GIB))
    assert fixed.ranks[0].band == (8.0, 8.0)
    assert fixed.kv_cache_tokens == 65_536


def test_graphs_are_captured_for_51_sizes_by_default() -> None:
    assert defaults.captured_sizes(256) == defaults.captured_sizes(1024) == 51
    assert defaults.captured_sizes(1) == 2
    assert defaults.captured_sizes(16) == 7


VOCABULARY = [
    (LLAMA_8B, "meta-llama/Llama-3.2-1B-Instruct", True),
    (LLAMA_70B, "meta-llama/Llama-3.2-1B-Instruct", True),
    ("Qwen/Qwen2.5-72B-Instruct", "Qwen/Qwen2.5-0.5B-Instruct", False),
    ("Qwen/Qwen2.5-72B-Instruct", "Qwen/Qwen2.5-7B-Instruct", True),
    ("Qwen/Qwen3-32B", "Qwen/Qwen3-0.6B", True),
    ("deepseek-ai/DeepSeek-R1-Distill-Qwen-32B", "deepseek-ai/DeepSeek-R1-Distill-Qwen-1.5B", False),
]


@pytest.mark.parametrize(("target", "draft", "good"), VOCABULARY)
def test_vocabularies_that_differ_by_padding_do_not_go_together(
    setup: Callable[..., Setup], target: str, draft: str, good: bool
) -> None:
    found = [
        text for code, text in checks.pair_findings(setup(target, method="draft_model", draft=draft)) if code == "SD201"
    ]
    assert bool(found) != good
    if not good:
        assert "152064" in found[0]
        assert "151936" in found[0]
        assert "128" in found[0]


def test_an_eagle3_heads_smaller_draft_vocabulary_is_fine(setup: Callable[..., Setup]) -> None:
    s = setup(LLAMA_8B, method="eagle3", draft="yuhuili/EAGLE3-LLaMA3.1-Instruct-8B", max_model_len=2048)
    assert checks.pair_findings(s) == []


def test_a_head_of_2048_positions_under_a_longer_context(setup: Callable[..., Setup]) -> None:
    pair = {"method": "eagle3", "draft": "yuhuili/EAGLE3-LLaMA3.1-Instruct-8B", "max_model_len": 16384}
    old = [code for code, _ in checks.pair_findings(setup(LLAMA_8B, version="0.24.0", **pair))]
    assert old == ["SD227"]
    assert checks.pair_findings(setup(LLAMA_8B, version="0.32.0", **pair)) == []


def test_a_head_of_another_target(setup: Callable[..., Setup]) -> None:
    found = checks.pair_findings(
        setup(LLAMA_70B, method="eagle3", draft="yuhuili/EAGLE3-LLaMA3.1-Instruct-8B", tp=4, max_model_len=2048)
    )
    assert [code for code, _ in found] == ["SD221"]


def test_parallel_drafting_can_leave_the_scheduler_nothing_before_0_28(setup: Callable[..., Setup]) -> None:
    s = setup(LLAMA_8B, max_num_seqs=256, max_num_batched_tokens=2048, version="0.26.0")
    head = Speculation("dflash", 16)
    found = checks.budget(s, head)
    assert found
    assert "-1792" in found[0][1]
    assert "12032" in found[0][1]
    assert (
        checks.budget(
            build(
                s.target, s.accelerator, version="0.32.0", runner="v2", max_num_seqs=256, max_num_batched_tokens=2048
            ),
            head,
        )
        == []
    )


def test_a_pipeline_with_speculation_is_found(setup: Callable[..., Setup]) -> None:
    assert "SD230" in [code for code, _ in checks.pair_findings(setup(LLAMA_70B, method="ngram", tp=2, pp=2))]


def test_a_model_that_nobody_knows() -> None:
    from specdec.plan import catalogue

    with pytest.raises(SpecdecError) as error:
        catalogue.load("/nowhere/model")
    assert error.value.code == "unknown-model"


@pytest.mark.parametrize(
    ("method", "draft", "own", "left"),
    [
        ("ngram", None, False, 1.85),
        ("eagle3", "nm-testing/EAGLE3-LLaMA3.1-Instruct-8B-converted", False, 1.02),
        ("eagle3", "nm-testing/EAGLE3-LLaMA3.1-Instruct-8B-converted", True, -0.01),
        ("draft_model", "meta-llama/Llama-3.2-1B-Instruct", False, -0.57),
    ],
)
def test_the_same_card_under_an_allowance_of_2_3_gib_and_5_percent(
    setup: Callable[..., Setup], method: str, draft: str | None, own: bool, left: float
) -> None:
    """Another tool's rule, from the planner's weights: the verdict hangs on the overhead, so the plan names its own."""
    s = setup(LLAMA_8B, method=method, draft=draft, gib=22.06, utilisation=0.90, max_model_len=8192)
    spec = s.speculation
    assert spec is not None
    target, head = weights_gib(s), 0.0
    if spec.draft is not None:
        model = with_embedding(spec.draft) if own else spec.draft
        head = (rank_weights(model, FORMATS["none"], 1) - rotary_bytes(model, 2)) / GIB
    assert 0.90 * 22.06 - 1.05 * (target + head) - FLAT_OVERHEAD == pytest.approx(left, abs=0.006)


def test_local_disks_that_do_not_hold_the_checkpoints(setup: Callable[..., Setup]) -> None:
    from specdec.plan import cost
    from specdec.plan.expense import disk_findings

    machine = cost.price("a100-80gb", 1, machine="a2-ultragpu-1g")
    assert [code for code, _ in disk_findings(setup("Qwen/Qwen3-235B-A22B"), machine)] == ["SD334"]
    assert disk_findings(setup(LLAMA_70B, method="draft_model", draft=LLAMA_8B), machine) == []


def test_flashinfer_samples_where_it_is_installed(setup: Callable[..., Setup]) -> None:
    """Llama-3.2-1B on an L40S, 0.10.1: 37.10 GiB of KV cache with FlashInfer in the image, 36.25 planned without."""
    from dataclasses import replace

    engine = setup("meta-llama/Llama-3.2-1B", key="l40s", version="0.10.1", utilisation=0.9)
    more = memory.flashinfer_gain(engine)
    assert more == pytest.approx(0.75, abs=0.1)
    told = replace(engine, flashinfer_sampler=True)
    assert memory.plan(told).kv_gib - memory.plan(engine).kv_gib == pytest.approx(more)
    assert memory.flashinfer_gain(told) == 0
    assert memory.flashinfer_gain(replace(engine, flashinfer_sampler=False)) == 0
    # Later versions use it only when asked, and from 0.17 on have a kernel of their own.
    later = replace(engine, version="0.12.0")
    assert memory.flashinfer_gain(later) == 0
    assert memory.sampler(later) == "sort"
    assert memory.sampler(replace(later, flashinfer_sampler=True)) == "kernel"
    assert memory.sampler(replace(later, version="0.17.0", flashinfer_sampler=False)) == "kernel"
    assert memory.sampler(replace(engine, version="0.8.5", flashinfer_sampler=True)) == "sort"
