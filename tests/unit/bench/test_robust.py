"""What goes wrong on a cluster while a benchmark runs: nothing measured is lost, and a person reads why."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from specdec.bench import generator
from specdec.bench.document import read_run
from specdec.bench.generator import JobFailed
from specdec.bench.load import of_task
from specdec.bench.report import page
from specdec.bench.run import Benchmark
from specdec.commands.bench import measure
from specdec.errors import FoundWrong

from .conftest import NAMESPACE, Bench

Make = Callable[..., Benchmark]
EVENTS = f"/api/v1/namespaces/{NAMESPACE}/events"


def pulling(_: str) -> dict[str, Any]:
    waiting = {"reason": "ImagePullBackOff", "message": 'Back-off pulling image "x"'}
    status = {"phase": "Pending", "containerStatuses": [{"name": "bench", "state": {"waiting": waiting}}]}
    return {"spec": {"nodeName": "n"}, "status": status}


def test_an_image_that_cannot_be_pulled_is_told_after_some_patience(
    make: Make, api: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(generator, "PATIENCE", -1)
    api.stuck = pulling
    with pytest.raises(JobFailed, match=r"cannot start: ImagePullBackOff: Back-off pulling image") as found:
        make().execute()
    assert found.value.exit_code == 1
    assert not [path for path in api.objects if "/jobs/" in path]


def test_a_quota_that_lets_no_pod_in_is_told(make: Make, api: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generator, "PATIENCE", -1)

    def refused(name: str) -> None:
        api.put(f"{EVENTS}/1", {"reason": "FailedCreate", "message": "exceeded quota: pods=10",
                                "involvedObject": {"name": name}})  # fmt: skip

    api.stuck = refused
    with pytest.raises(JobFailed, match="FailedCreate: exceeded quota"):
        make().execute()


def test_a_wrong_image_name_is_told_at_once(make: Make, api: Bench) -> None:
    waiting = {"reason": "InvalidImageName", "message": "couldn't parse image name"}
    status = {"containerStatuses": [{"name": "bench", "state": {"waiting": waiting}}]}
    api.stuck = lambda _: {"spec": {"nodeName": "n"}, "status": status}
    with pytest.raises(JobFailed, match="InvalidImageName"):
        make().execute()


def test_a_load_generator_that_ended_is_told_by_its_log_even_before_its_job_says_so(make: Make, api: Bench) -> None:
    def ended(name: str) -> dict[str, Any]:
        job = f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs/{name}"
        looks: list[int] = []

        def later(request: Any) -> None:
            looks.append(1)
            if request.url.path == job and len(looks) > 20 and job in api.objects:
                api.objects[job]["status"] = {"failed": 1}

        api.hooks.append(later)
        api.logs[f"{name}-x", "bench", False] = "Traceback\nValueError: no tokenizer in /models/target"
        terminated = {"terminated": {"exitCode": 1, "reason": "Error"}}
        return {"status": {"phase": "Failed", "containerStatuses": [{"name": "bench", "state": terminated}]}}

    api.stuck = ended
    with pytest.raises(JobFailed, match="ValueError: no tokenizer in /models/target"):
        make().execute()


def test_a_job_that_never_ends_is_given_up_and_removed(make: Make, api: Bench) -> None:
    api.stuck = lambda _: {"spec": {"nodeName": "n"}, "status": {"containerStatuses": []}}
    benchmark = make()
    benchmark.timeout = 0
    with pytest.raises(JobFailed, match="did not finish within 0 s"):
        benchmark.execute()
    assert not [path for path in api.objects if "/jobs/" in path]


def test_ctrl_c_keeps_what_is_measured_and_says_that_it_is_a_part(make: Make, api: Bench) -> None:
    def interrupt(_: str, number: int, __: dict[str, Any]) -> None:
        if number == 6:
            raise KeyboardInterrupt

    api.change = interrupt
    benchmark = make(repeats=5)
    benchmark.prompts = of_task("code")
    with pytest.raises(KeyboardInterrupt):
        benchmark.execute()
    assert not [path for path in api.objects if "/jobs/" in path or "/configmaps/" in path]
    run = read_run(benchmark.directory)
    assert (run.complete, run.made, run.wanted) == (False, 3, 10)
    # A B, then B: one repeat that both have.
    assert [(one.repeats, one.real) for one in run.ratios] == [(1, False)]
    assert "3 of 10 runs were made" in page(run)
    assert "1 repeats are too few" in page(run)


def test_after_ctrl_c_a_person_reads_how_to_go_on(make: Make, api: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupt(_: str, number: int, __: dict[str, Any]) -> None:
        if number == 4:
            raise KeyboardInterrupt

    api.change = interrupt
    benchmark = make()
    with pytest.raises(KeyboardInterrupt):
        measure(benchmark)
    said = capsys.readouterr().err
    assert "1 of 6 runs are kept" in said
    assert f"specdec bench local --resume {benchmark.directory}" in said
    assert "Not finished" in (benchmark.directory / "report.html").read_text(encoding="utf-8")


def test_nothing_measured_yet_is_a_page_that_says_so(make: Make, api: Bench) -> None:
    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    api.change = interrupt
    benchmark = make()
    with pytest.raises(KeyboardInterrupt):
        benchmark.execute()
    run = read_run(benchmark.directory)
    assert (run.made, run.wanted, run.arms) == (0, 6, [])
    assert "0 of 6 runs were made" in page(run)


def dies(api: Bench, at: int, *, comes_back: bool) -> Callable[[str, int, dict[str, Any]], None]:
    """The engine's container dies in run `at`: its requests fail."""

    def change(engine: str, number: int, result: dict[str, Any]) -> None:
        if number != at:
            return
        state = api.engines[engine]
        state.restarts, state.down = 1, not comes_back
        api.pod(engine, state)
        result["completed"] = 2
        result["errors"] = ["ClientConnectorError: connection refused"] * len(result["errors"])

    return change


def test_requests_that_fail_because_the_engine_died_are_made_again_when_it_is_back(make: Make, api: Bench) -> None:
    api.change = dies(api, 4, comes_back=True)
    run = make(repeats=5).execute()
    assert run.complete
    assert [arm.tpot_ms for arm in run.arms] == pytest.approx([40, 20])


def test_an_engine_that_stays_down_is_told_with_its_last_lines(make: Make, api: Bench) -> None:
    died = dies(api, 5, comes_back=False)

    def change(engine: str, number: int, result: dict[str, Any]) -> None:
        died(engine, number, result)
        if number == 5:
            terminated = {"exitCode": 1, "reason": "Error"}
            state = {"waiting": {"reason": "CrashLoopBackOff"}}
            entry = {"name": "engine", "restartCount": 3, "state": state, "lastState": {"terminated": terminated}}
            pod = api.objects[f"/api/v1/namespaces/{NAMESPACE}/pods/{engine}-0"]
            pod["status"] = {"containerStatuses": [entry]}
            api.logs[f"{engine}-0", "engine", True] = "INFO loading\nRuntimeError: CUDA error: an illegal access\n"

    api.change = change
    benchmark = make()
    with pytest.raises(FoundWrong, match="went down during the run and does not come back") as found:
        benchmark.execute()
    assert "RuntimeError: CUDA error: an illegal access" in str(found.value)
    assert "--resume" in str(found.value.fix)
    assert read_run(benchmark.directory).made == 2


def test_an_engine_that_answers_others_is_left_alone_unless_told(make: Make, api: Bench) -> None:
    api.engines["speculative"].others = 50
    with pytest.raises(FoundWrong, match="speculative answers others at this moment"):
        make().execute()
    assert api.jobs == []
    benchmark = make()
    benchmark.live = True
    assert "somebody else" in benchmark.execute().warnings[0]


@pytest.mark.parametrize(("version", "warned"), [("0.10.2", 0), ("0.11.0", 1)])
def test_the_one_request_with_which_older_benchmarks_begin_is_nobody_else_s(
    make: Make, api: Bench, version: str, warned: int
) -> None:
    benchmark = make()
    for engine in benchmark.engines:
        engine.workload.engine_version = version
    api.change = lambda engine, *_: setattr(api.engines[engine], "generated", api.engines[engine].generated + 25)
    assert len(benchmark.execute().warnings) == 2 * warned


def test_an_engine_that_asks_for_a_key_is_not_down(make: Make, api: Bench) -> None:
    for state in api.engines.values():
        state.needs_key = True
    assert make().execute().complete


def test_prompts_go_with_the_job_should_the_benchmark_be_killed(make: Make, api: Bench) -> None:
    seen: list[Any] = []
    api.hooks.append(lambda request: seen.append(request.read()) if request.method == "PATCH" else None)
    benchmark = make()
    benchmark.prompts = of_task("code")
    benchmark.execute()
    assert b"ownerReferences" in seen[0]


def test_more_repeats_go_on_from_those_that_are_there(make: Make, api: Bench) -> None:
    make(repeats=3).execute()
    api.jobs.clear()
    assert make(repeats=5).execute().ratios[0].repeats == 5
    assert len(api.jobs) == 2 + 4


def test_each_repeat_has_prompts_of_its_own_and_all_arms_the_same(make: Make, api: Bench) -> None:
    make(repeats=2).execute()
    seeds = [words[words.index("--seed") + 1] for _, words in api.jobs]
    assert seeds == ["0", "0", "1000", "1000", "2000", "2000"]


def test_answers_of_the_arms_are_compared(make: Make, api: Bench) -> None:
    assert make().execute().arms[1].same_answers == 1

    def other(engine: str, _: int, result: dict[str, Any]) -> None:
        if engine == "speculative":
            result["generated_texts"][0] = "something else"

    api.change = other
    fresh = make()
    fresh.directory = fresh.directory.with_name("other")
    run = fresh.execute()
    assert run.arms[1].same_answers == pytest.approx(0.9)
    assert "90%" in page(run)


def test_sampled_answers_are_not_compared(make: Make) -> None:
    benchmark = make()
    benchmark.run.load.temperature = 0.8
    assert benchmark.execute().arms[1].same_answers is None
