"""A benchmark of both arms: the order, what is kept, what is refused, and that nothing is lost on the way."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from specdec.bench.arms import arms_of, orders
from specdec.bench.document import Point, read_run
from specdec.bench.generator import JobFailed
from specdec.bench.load import of_task
from specdec.bench.report import page
from specdec.bench.run import Benchmark
from specdec.deploy import targets
from specdec.errors import FoundWrong, SpecdecError
from specdec.plan.calibrate import from_benchmark

from .conftest import Bench, deployed

Make = Callable[..., Benchmark]


def test_both_arms_are_measured_and_speculation_is_twice_as_fast(make: Make) -> None:
    run = make(repeats=5).execute()
    assert [(arm.name, arm.k, arm.method) for arm in run.arms] == [
        ("speculative-baseline", 0, None),
        ("speculative", 4, "draft_model"),
    ]
    assert [arm.tpot_ms for arm in run.arms] == pytest.approx([40, 20])
    assert run.ratios[0].ratio == pytest.approx(2)
    assert run.ratios[0].real
    assert run.arms[1].acceptance_by_position == pytest.approx([0.8, 0.6, 0.4, 0.2])
    assert run.arms[1].acceptance_rate == pytest.approx(0.5)
    assert run.complete
    assert run.warnings == []


def test_tokens_and_not_chunks_are_counted(make: Make) -> None:
    # Three tokens a chunk in gaps of 60 ms: by chunks it would be 60 ms a token.
    assert make().execute().arms[1].tpot.mean == pytest.approx(20)


def test_each_arm_is_warmed_up_and_the_one_that_begins_changes(make: Make, api: Bench) -> None:
    make().execute()
    fast, slow = "speculative", "speculative-baseline"
    assert [engine for engine, _ in api.jobs] == [slow, fast, slow, fast, fast, slow, fast, slow]
    assert [words[words.index("--num-prompts") + 1] for _, words in api.jobs] == ["8", "8", *["10"] * 6]


def test_arms_take_turns_so_that_drift_falls_on_both_alike() -> None:
    arms = arms_of(targets.of(deployed()))
    found = [one.engine.name[-8:] for one in orders(arms, [Point(concurrency=1)], 8)]
    a, b = "baseline", "culative"
    assert found == [a, b, b, a, b, a, a, b, a, b, b, a, b, a, a, b]


def test_of_few_repeats_no_difference_is_called_one(make: Make) -> None:
    """Of two repeats every second interval would leave out 1 where there is no difference."""
    few = make(repeats=4).execute()
    assert few.ratios[0].ratio == pytest.approx(2)
    assert not few.ratios[0].real
    assert "4 repeats are too few" in page(few)


def test_the_planner_reads_the_document(make: Make) -> None:
    benchmark = make(points=[Point(concurrency=1), Point(concurrency=4)])
    benchmark.execute()
    accepted, times = from_benchmark(benchmark.directory / "run.json")
    assert accepted.positions == pytest.approx((0.8, 0.6, 0.4, 0.2))
    assert [(batch, k) for batch, k, _ in times] == [(1, 0), (1, 4), (4, 0), (4, 4)]
    assert [ms for _, _, ms in times] == pytest.approx([40, 20, 40, 20])


def test_without_a_bound_requests_at_once_are_measured(make: Make) -> None:
    # One after the other: each takes its own time, and the run takes them all.
    assert [arm.concurrency for arm in make(points=[Point(rate=2)]).execute().arms] == [1, 1]


def test_an_interrupted_run_goes_on_with_what_is_missing(make: Make, api: Bench) -> None:
    def interrupt(_: str, number: int, __: dict[str, Any]) -> None:
        if number == 5:
            raise KeyboardInterrupt

    api.change = interrupt
    benchmark = make()
    with pytest.raises(KeyboardInterrupt):
        benchmark.execute()
    assert not [path for path in api.objects if "/jobs/" in path]
    api.change = lambda *_: None
    api.jobs.clear()
    again = make()
    again.run = read_run(benchmark.directory)
    assert not again.run.complete
    assert again.execute().complete
    # Two runs were kept: four are left, after a warm-up of each arm.
    assert len(api.jobs) == 2 + 4


def test_half_a_file_is_made_again(make: Make, api: Bench) -> None:
    benchmark = make()
    benchmark.execute()
    file = benchmark.directory / "raw/02-c1-rmax-speculative.json"
    file.write_text(file.read_text(encoding="utf-8")[:100], encoding="utf-8")
    api.jobs.clear()
    make().execute()
    assert [engine for engine, _ in api.jobs] == ["speculative", "speculative"]
    assert json.loads(file.read_text(encoding="utf-8"))["repeat"] == 2


def test_an_arm_that_drafts_nothing_is_refused(make: Make, api: Bench) -> None:
    api.engines["speculative"].speculates = False
    with pytest.raises(FoundWrong, match="no speculative arm"):
        make().execute()


def test_a_baseline_that_drafts_is_refused(make: Make, api: Bench) -> None:
    api.engines["speculative-baseline"].speculates = True
    with pytest.raises(FoundWrong, match="no baseline"):
        make().execute()


def test_a_run_in_which_a_pod_restarts_is_made_again(make: Make, api: Bench) -> None:
    def restart(engine: str, number: int, _: dict[str, Any]) -> None:
        if number == 4:
            state = api.engines[engine]
            # Counters begin anew and are higher than before by the end of the run.
            state.restarts, state.generated = 1, state.generated + 10_000
            api.pod(engine, state)

    api.change = restart
    run = make().execute()
    # The one that the restart spoilt, and a warm-up of the engine that is new.
    assert len(api.jobs) == 8 + 2
    assert run.arms[1].tpot_ms == pytest.approx(20)
    assert run.warnings == []


def test_a_pod_that_always_restarts_ends_the_benchmark(make: Make, api: Bench) -> None:
    api.change = lambda engine, *_: setattr(api.engines[engine], "generated", 0)
    api.engines["speculative-baseline"].generated = 500
    with pytest.raises(FoundWrong, match="restarted"):
        make_always_restart(make, api)


def make_always_restart(make: Make, api: Bench) -> None:
    def again(engine: str, *_: Any) -> None:
        api.engines[engine].restarts += 1
        api.pod(engine, api.engines[engine])

    api.change = again
    make().execute()


def test_tokens_of_others_are_a_warning(make: Make, api: Bench) -> None:
    def more(engine: str, *_: Any) -> None:
        api.engines[engine].generated += 100

    api.change = more
    assert "somebody else" in make().execute().warnings[0]


def test_an_engine_that_is_down_is_said_before_anything_runs(make: Make, api: Bench) -> None:
    api.engines["speculative-baseline"].down = True
    with pytest.raises(SpecdecError, match="engine speculative-baseline does not answer") as found:
        make().execute()
    assert found.value.exit_code == 2
    assert api.jobs == []


def test_a_wrong_model_is_said_with_what_is_served(make: Make, api: Bench) -> None:
    api.engines["speculative"].model = "other"
    with pytest.raises(SpecdecError, match="serves other and not target"):
        make().execute()


def test_prompts_longer_than_the_context_are_refused(make: Make, api: Bench) -> None:
    benchmark = make()
    benchmark.run.load.input_len = 1000
    with pytest.raises(SpecdecError, match="do not fit into the context"):
        benchmark.execute()
    assert api.jobs == []


def test_prompts_that_the_engine_refuses_are_no_lighter_load(make: Make, api: Bench) -> None:
    def refuse(_: str, __: int, result: dict[str, Any]) -> None:
        result["completed"] -= 1
        result["errors"][3] = "Bad Request: This model's maximum context length is 1024 tokens."

    api.change = refuse
    with pytest.raises(SpecdecError, match="1 of 8 prompts are longer than the context") as found:
        make().execute()
    assert found.value.exit_code == 2


def test_a_log_that_was_cut_is_no_result(make: Make, api: Bench) -> None:
    api.log = lambda lines: lines[:-1]
    with pytest.raises(JobFailed, match="no whole result"):
        make().execute()


def test_a_failed_job_says_the_last_error_of_its_log(make: Make, api: Bench) -> None:
    api.change = lambda *_: ["Namespace(...)", "OSError: /models/target does not appear to have a tokenizer"]
    with pytest.raises(JobFailed, match="OSError: /models/target does not appear"):
        make().execute()
    assert not [path for path in api.objects if "/jobs/" in path]


def test_arms_of_different_versions_are_refused_unless_told() -> None:
    release = targets.of(deployed())
    release.baselines["speculative"].workload.engine_version = "0.31.0"
    with pytest.raises(SpecdecError, match="different versions"):
        arms_of(release)
    assert len(arms_of(release, any_version=True)) == 2


def test_one_engine_alone_has_nothing_to_compare_with() -> None:
    release = targets.of(deployed())
    with pytest.raises(SpecdecError, match="nothing to compare"):
        arms_of(targets.Release(release.engines, {}, []))


def test_the_job_is_restricted_and_sees_the_models(make: Make, api: Bench) -> None:
    benchmark = make()
    benchmark.prompts = of_task("code")
    benchmark.execute()
    body = api.bodies[0]
    spec = body["spec"]["template"]["spec"]
    container = spec["containers"][0]
    assert body["metadata"]["labels"]["app.kubernetes.io/component"] == "benchmark"
    assert spec["securityContext"]["runAsNonRoot"]
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert container["image"] == "vllm/vllm-openai-cpu:v0.32.0"
    assert {"name": "models", "mountPath": "/models", "readOnly": True} in container["volumeMounts"]
    assert {volume["name"] for volume in spec["volumes"]} >= {mount["name"] for mount in container["volumeMounts"]}
    assert not [path for path in api.objects if "/configmaps/" in path]


def test_the_page_shows_arms_ratio_and_prediction_or_that_there_is_none(make: Make) -> None:
    run = make(repeats=5, points=[Point(concurrency=1), Point(concurrency=4)]).execute()
    html = page(run)
    assert "2.00 times as fast as baseline, 4 at once" in html
    assert "Acceptance by position" in html
    assert "The planner does not know these models" in html
    run.ratios[0].predicted = 1.9
    assert "<polygon" in page(run)
