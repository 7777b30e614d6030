"""Speed and K: what published sweeps show, what a bad number is answered with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from specdec.errors import SpecdecError
from specdec.plan import choose, speed
from specdec.plan.acceptance import Acceptance, parse
from specdec.plan.calibrate import acceptance_of, numbers, pair
from specdec.plan.choose import TwoPoints
from specdec.plan.parse import parse as parse_model
from specdec.plan.setup import Setup, build
from specdec.plan.speculation import make_speculation
from specdec.plan.speed import Load, engine, length_from_speedup

LLAMA_8B = "meta-llama/Llama-3.1-8B-Instruct"
EAGLE = "yuhuili/EAGLE-LLaMA3.1-Instruct-8B"
# Speed-up at batch 1, 16, 64, 128 on one H100, K=3: figure 1 of arXiv 2601.11580.
PUBLISHED = {
    ("ngram", None): [(1.166, 1.149, 1.103, 1.047), (1.338, 1.285, 1.182, 1.122), (1.271, 1.248, 1.194, 1.113)],
    ("eagle", EAGLE): [(1.731, 1.678, 1.466, 1.214), (1.444, 1.397, 1.275, 1.144), (1.679, 1.668, 1.535, 1.291)],
    ("eagle3", "yuhuili/EAGLE3-LLaMA3.1-Instruct-8B"): [
        (1.749, 1.699, 1.486, 1.222),
        (1.686, 1.581, 1.397, 1.235),
        (1.712, 1.677, 1.55, 1.296),
    ],
}


def test_published_sweeps_follow_from_their_first_point(setup: Callable[..., Setup]) -> None:
    errors = []
    for (method, draft), sweeps in PUBLISHED.items():
        model = engine(setup(LLAMA_8B, method=method, draft=draft, k=3, version="0.11.0"))
        for first, *rest in sweeps:
            accepted = Acceptance.of_mean_length(length_from_speedup(model, 1, first, 3), 3)
            for batch, measured in zip((16, 64, 128), rest, strict=True):
                planned = model.speedup(batch, accepted, 3)
                errors.append(abs(planned / measured - 1))
                assert abs(measured - 1) < 0.05 or (planned > 1) == (measured > 1)
    assert len(errors) == 27
    assert sum(errors) / 27 < 0.04
    assert max(errors) < 0.12


def test_other_models_and_gpus_without_a_fit(setup: Callable[..., Setup]) -> None:
    """MiniCPM3 with EAGLE-3, K=6, length 2.44: 1.71 at one request and 1.62 at ten on an RTX 4090, an L40S's twin."""
    from specdec.plan.heads import usual
    from specdec.plan.setup import Speculation, build
    from specdec.plan.weights import FORMATS

    plain = setup("openbmb/MiniCPM3-4B", key="l40s")
    head = usual("eagle3", plain.target)
    assert head is not None
    spec = Speculation("eagle3", 6, head, FORMATS["none"])
    model = engine(build(plain.target, plain.accelerator, version="0.11.0", runner="v1", speculation=spec))
    accepted = Acceptance.of_mean_length(2.44, 6)
    assert model.speedup(1, accepted, 6) == pytest.approx(1.71, rel=0.05)
    assert model.speedup(10, accepted, 6) == pytest.approx(1.62, rel=0.05)


def test_the_baseline_is_weights_over_bandwidth_and_a_little_more(setup: Callable[..., Setup]) -> None:
    """5.886 ms of weights, 21.0 us a batched token, 39.3 ns a KV token and 1.207 ms of host were fitted by others."""
    model = engine(setup(LLAMA_8B, version="0.11.0"), Load(1000, 2))
    assert model.baseline_ms(1) == pytest.approx(5.886 + 0.021 + 1001 * 39.3e-6 + 1.207, rel=0.03)


def test_fp8_weights_halve_the_time_of_a_step_at_most(setup: Callable[..., Setup]) -> None:
    wide, narrow = (
        engine(setup("meta-llama/Llama-3.1-70B-Instruct", tp=4, quantization=q)).baseline_ms(1) for q in (None, "fp8")
    )
    assert 0.5 < narrow / wide < 0.75


def test_a_mixture_reads_few_experts_for_one_token_and_all_for_many(setup: Callable[..., Setup]) -> None:
    model = engine(setup("Qwen/Qwen3-30B-A3B"))
    assert speed.touched(model.target, 1, 1) == pytest.approx(8 / 128)
    assert speed.touched(model.target, 512, 512) > 0.999
    # Four tokens of one sequence ask for fewer experts than one token of each of four.
    assert speed.touched(model.target, 1, 1) < speed.touched(model.target, 4, 1) < speed.touched(model.target, 4, 4)
    assert model.baseline_ms(1) < 0.35 * model.baseline_ms(128)


# Speed-up of a mixture of 1.6 T parameters on eight B300s at that many requests (blog.vllm.ai, 2026-08-14).
MIXTURE = {
    1: {1: 1.515, 16: 1.253, 32: 1.433, 64: 1.393, 128: 1.342, 256: 1.363},
    3: {1: 2.287, 16: 1.696, 32: 1.87, 64: 1.751, 128: 1.68, 256: 1.539},
}


@pytest.mark.parametrize("k", MIXTURE)
def test_a_large_mixture_gains_most_alone_and_goes_on_gaining(setup: Callable[..., Setup], k: int) -> None:
    """Its configuration is not published in full: DeepSeek-V3's with 384 experts of 3072 columns in four bits."""
    small = setup("deepseek-ai/DeepSeek-V3", key="b200", tp=8)
    shape = {"n_routed_experts": 384, "num_experts_per_tok": 6, "moe_intermediate_size": 3072}
    target = parse_model("a/mixture", small.target.config | shape | {"quantization_config": {"quant_method": "mxfp4"}})
    assert target.parameters == pytest.approx(1.5e12, rel=0.05)
    spec, _ = make_speculation("mtp", target, k=k)
    # All K tokens come from one pass.
    spec = replace(spec, method="dspark")
    s = build(target, small.accelerator, version="0.28.0", runner="v1", tp=8, speculation=spec)
    model = engine(s, Load(512, 1024))
    accepted = Acceptance.of_mean_length(length_from_speedup(model, 1, MIXTURE[k][1], k), k)
    planned = {batch: model.speedup(batch, accepted, k) for batch in MIXTURE[k]}
    errors = [abs(planned[batch] / measured - 1) for batch, measured in MIXTURE[k].items() if batch > 1]
    assert sum(errors) / len(errors) < 0.2
    assert all(value > 1.05 for value in planned.values())
    assert planned[16] < planned[1]


def test_a_lookup_drafts_where_it_finds_a_match(setup: Callable[..., Setup]) -> None:
    model = engine(setup(LLAMA_8B, method="ngram", k=3))
    assert model.drafting(Acceptance.of_mean_length(1.2, 3), 3) == pytest.approx(0.2 / 0.805, rel=0.01)
    assert model.drafting(Acceptance.of_mean_length(3.5, 3), 3) == 1.0
    always = engine(setup(LLAMA_8B, method="eagle", draft=EAGLE, k=3))
    assert always.drafting(Acceptance.of_mean_length(1.2, 3), 3) == 1.0


def test_acceptance_rate_and_mean_length_are_two_words_for_one_number() -> None:
    """78 % at K=5 is 3.9 accepted and 4.9 generated tokens a step."""
    accepted = Acceptance.of_rate(0.78, 5)
    assert accepted.mean_length(5) == pytest.approx(4.9)
    assert accepted.rate(5) == pytest.approx(0.78)


@given(st.floats(1.0, 5.0), st.integers(4, 12))
def test_a_profile_has_the_length_that_it_was_asked_for_and_never_rises(length: float, k: int) -> None:
    profile = Acceptance.of_mean_length(length, k)
    assert profile.mean_length(k) == pytest.approx(length, abs=1e-3)
    assert all(a >= b for a, b in zip(profile.positions, profile.positions[1:], strict=False))


@given(
    st.lists(st.floats(0, 1), min_size=1, max_size=8).map(lambda values: sorted(values, reverse=True)),
    st.integers(1, 30),
)
def test_positions_beyond_the_last_measured_one_go_on_falling(values: list[float], k: int) -> None:
    accepted = Acceptance(tuple(values))
    assert 1 <= accepted.mean_length(k) <= k + 1
    assert all(accepted.at(i) >= accepted.at(i + 1) for i in range(1, k + 1))


@pytest.mark.parametrize("text", ["", "1.2", "0.5,0.6", "-0.1", "a,b", "0.9,0.95"])
def test_acceptance_that_cannot_be(text: str) -> None:
    with pytest.raises(SpecdecError):
        parse(text)


@pytest.mark.parametrize("text", ["0", "-1,2", "", "x"])
def test_batches_that_cannot_be(text: str) -> None:
    with pytest.raises(SpecdecError):
        numbers(text)


@pytest.mark.parametrize("text", ["1", "1=", "0=1.5", "1=-2", "a=b"])
def test_measurements_that_cannot_be(text: str) -> None:
    with pytest.raises(SpecdecError):
        pair(text)


def test_a_speed_up_that_k_cannot_give(setup: Callable[..., Setup]) -> None:
    model = engine(setup(LLAMA_8B, method="eagle", draft=EAGLE, k=3))
    with pytest.raises(SpecdecError) as error:
        acceptance_of(model, 3, None, None, "1=9")
    assert error.value.code == "bad-measurement"


# One stream of a real engine on two cores: milliseconds a token by K; accepted tokens by position, of 224 drafts. The
# target costs 16 times its draft.
CPU_SWEEP = {0: 68.4, 1: 53.7, 2: 45.8, 4: 40.3, 8: 53.6}
CPU_ACCEPTANCE = Acceptance(tuple(n / 224 for n in (100, 56, 24, 8, 4, 0, 0, 0)))


def cpu_ms(k: int) -> float:
    """As measured; K=3 from the steps of 2 and 4."""
    if k in CPU_SWEEP:
        return CPU_SWEEP[k]
    step = [CPU_SWEEP[n] * CPU_ACCEPTANCE.mean_length(n) for n in (2, 4)]
    assert k == 3
    return sum(step) / 2 / CPU_ACCEPTANCE.mean_length(3)


@pytest.mark.parametrize("known", [1, 2, 4, 8])
def test_k_from_acceptance_and_two_points_is_within_5_percent_of_the_best_measured(known: int) -> None:
    points = [(0, CPU_SWEEP[0]), (known, CPU_SWEEP[known])]
    chosen = TwoPoints.of(points, CPU_ACCEPTANCE, 1 / 16).best(CPU_ACCEPTANCE)
    assert cpu_ms(chosen) <= 1.05 * min(CPU_SWEEP.values())


def test_the_best_k_falls_with_the_load_and_speculation_ends(setup: Callable[..., Setup]) -> None:
    model = engine(setup(LLAMA_8B, method="eagle3", draft="yuhuili/EAGLE3-LLaMA3.1-Instruct-8B", k=3), Load(64, 64))
    accepted = Acceptance((0.7, 0.45, 0.27))
    choice = choose.choose(model, accepted, batch=1, most_batch=1024)
    tokens = [r.tokens for r in choice.schedule]
    assert tokens == sorted(tokens, reverse=True)
    assert tokens[0] > tokens[-1]
    assert choice.schedule[0].first == 1
    assert choice.schedule[-1].last == 1024
    assert all(a.last + 1 == b.first for a, b in zip(choice.schedule, choice.schedule[1:], strict=False))
    assert choice.crossover is not None
    k = choice.static
    assert model.speculative_ms(choice.crossover - 1, accepted, k) < model.baseline_ms(choice.crossover - 1)
    assert model.speculative_ms(choice.crossover, accepted, k) >= model.baseline_ms(choice.crossover)


def test_where_nothing_is_accepted_no_k_pays(setup: Callable[..., Setup]) -> None:
    model = engine(setup(LLAMA_8B, method="draft_model", draft="meta-llama/Llama-3.2-1B-Instruct", k=5))
    choice = choose.choose(model, Acceptance((0.02,)), batch=8, most_batch=128)
    assert choice.static == 0
    assert choice.crossover == 1


def test_a_schedule_of_zero_still_costs_on_the_older_runner(setup: Callable[..., Setup]) -> None:
    """K=0 everywhere in a schedule: 6.6 % slower at 2 sequences (14.37 to 15.32 ms), 22 % at 189 (77.2 to 93.8 ms)."""
    model = engine(setup(LLAMA_8B, method="ngram", k=3, runner="v1"))
    for batch, tax in ((2, 15.317 - 14.374), (189, 93.82 - 77.164)):
        ms, k = choose.schedule_ms(model, Acceptance((0.2,)), batch, [choose.Range(1, 512, 0)])
        assert k == 0
        assert ms - model.baseline_ms(batch) == pytest.approx(tax, rel=0.05)


def test_latency_and_throughput_of_a_load(setup: Callable[..., Setup]) -> None:
    from specdec.plan import memory, serving

    s = setup(LLAMA_8B)
    model = engine(s, Load(512, 256))
    most = serving.capacity(model, memory.plan(s))
    one, many, over = serving.points(model, None, [1, 64, 10_000], most=most, static=0, schedule=())
    assert one.tokens_per_second < many.tokens_per_second <= over.tokens_per_second * 1.0001 or over.batch > most
    assert over.waiting == 10_000 - most
    assert over.ttft_ms > many.ttft_ms
    assert many.tpot_p99_ms >= many.tpot_ms
