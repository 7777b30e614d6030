"""A user runs `specdec smoke` against servers that are right, wrong, or not there."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from typing import Any

import pytest
from specdec import cli
from specdec.deploy import smoke
from specdec.deploy.endpoint import at_url
from specdec.deploy.metrics import Counters, parse

Start = Callable[..., Any]


def target(server: Any, **changes: Any) -> smoke.Target:
    endpoint = at_url(server.url)
    fields: dict[str, Any] = {
        "endpoint": endpoint,
        "model": "org/target",
        "speculation": True,
        "counters": lambda: parse(endpoint.get("/metrics").text),
        "settle": 0.0,
        "timeout": 5,
    }
    return smoke.Target(**fields | changes)


def run(server: Any, **changes: Any) -> dict[str, smoke.Check]:
    return {check.name: check for check in smoke.run(target(server, **changes))}


def test_a_speculating_server_passes_every_check(serve: Start) -> None:
    checks = run(serve())
    assert list(checks) == [
        "health",
        "served model",
        "completion",
        "streamed chat",
        "long prompt",
        "json schema",
        "speculation",
        "acceptance",
    ]
    assert all(check.ok for check in checks.values()), checks


def test_acceptance_is_the_servers_own_and_given_by_position(serve: Start) -> None:
    # 3 answers of 10 steps each: 30 drafts, 120 drafted, 30 × (.8 + .5 + .3 + .2) = 54 accepted: a rate of 0.45.
    checks = run(serve(accept=(0.8, 0.5, 0.3, 0.2)))
    assert checks["speculation"].detail == "30 drafts, 120 tokens drafted, 54 accepted"
    assert checks["acceptance"].detail == "0.45; by position 0.80 0.50 0.30 0.20"


def test_acceptance_below_the_floor_fails_and_says_both(serve: Start) -> None:
    check = run(serve(accept=(0.1, 0.1)), min_acceptance=0.5)["acceptance"]
    assert not check.ok
    assert "0.10" in check.detail
    assert "below 0.50" in check.detail


def test_a_server_that_speculates_though_told_not_to_is_found(serve: Start) -> None:
    checks = run(serve(), speculation=False)
    assert not checks["speculation"].ok
    assert "off in the values, and 30 drafts were made" in checks["speculation"].detail


def test_with_speculation_off_nothing_may_move_and_acceptance_is_not_asked(serve: Start) -> None:
    checks = run(serve(speculates=False), speculation=False)
    assert checks["speculation"].ok
    assert "acceptance" not in checks


def test_a_server_that_should_speculate_and_exports_no_counter_is_found(serve: Start) -> None:
    checks = run(serve(speculates=False))
    assert not checks["speculation"].ok
    assert "exports no counters" in checks["speculation"].detail
    assert not checks["acceptance"].ok


def test_counters_that_stand_still_while_it_generates_are_found(serve: Start) -> None:
    frozen = Counters(drafts=7, drafted=28, accepted=3, exported=True)
    checks = run(serve(), counters=lambda: frozen)
    assert not checks["speculation"].ok
    assert "no draft was counted" in checks["speculation"].detail


def test_the_long_prompt_passes_the_drafts_positions(serve: Start) -> None:
    server = serve(max_model_len=8192)
    assert run(server, draft_positions=2048)["long prompt"].ok
    longest = max(len(body["prompt"].split()) for body in server.engine.seen if "prompt" in body)
    assert 2048 < longest < 2048 * 1.1


def test_an_engine_that_dies_of_a_long_prompt_is_found(serve: Start) -> None:
    checks = run(serve(max_model_len=8192, dies_beyond=2048), draft_positions=2048)
    assert not checks["long prompt"].ok
    assert "EngineCore" in checks["long prompt"].detail
    assert checks["completion"].ok


def test_a_gateway_that_cuts_prompts_short_has_not_shown_that_long_ones_work(serve: Start) -> None:
    check = run(serve(max_model_len=8192, cuts_prompts_at=1000), draft_positions=2048)["long prompt"]
    assert not check.ok
    assert "1000 tokens, not more than the draft's 2048" in check.detail


def test_without_known_positions_the_prompt_nearly_fills_the_context(serve: Start) -> None:
    server = serve(max_model_len=1000)
    assert run(server)["long prompt"].ok
    longest = max(len(body["prompt"].split()) for body in server.engine.seen if "prompt" in body)
    assert 850 <= longest <= 984


@pytest.mark.parametrize("positions", [2048, 4096], ids=["equal", "longer"])
def test_a_draft_as_long_as_the_context_is_no_reason_to_ask_for_more_than_fits(serve: Start, positions: int) -> None:
    assert run(serve(max_model_len=2048), draft_positions=positions)["long prompt"].ok


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ('{"colour": "red", "count": 2', "Expecting"),
        ('{"colour": "mauve", "count": 2, "done": true}', "'mauve' is not one of"),
        ('{"colour": "red", "count": 2}', "'done' is a required property"),
    ],
    ids=["not JSON", "wrong value", "incomplete"],
)
def test_json_that_does_not_follow_the_schema_is_found(serve: Start, answer: str, why: str) -> None:
    check = run(serve(json_answer=answer))["json schema"]
    assert not check.ok
    assert why in check.detail


def test_json_that_never_ends_is_found_after_three_tries(serve: Start) -> None:
    server = serve(json_answer="{    ", json_finish="length")
    check = run(server)["json schema"]
    assert not check.ok
    assert "none came to its end" in check.detail
    assert sum("response_format" in body for body in server.engine.seen) == 3


def test_a_wrong_model_name_is_named_with_the_one_that_is_served(serve: Start) -> None:
    checks = run(serve(), model="org/targt")
    assert not checks["served model"].ok
    assert "did you mean org/target?" in checks["served model"].detail
    assert checks["completion"].detail == "not run: served model failed"


def test_a_model_without_a_chat_template_says_so(serve: Start) -> None:
    check = run(serve(chat_error="default chat template is no longer allowed"))["streamed chat"]
    assert not check.ok
    assert "chat template" in check.detail


def test_a_stream_that_is_cut_is_not_an_answer(serve: Start) -> None:
    check = run(serve(cut_stream=True))["streamed chat"]
    assert not check.ok
    assert "[DONE]" in check.detail


def test_a_router_without_health_is_asked_for_its_models(serve: Start) -> None:
    check = run(serve(has_health=False))["health"]
    assert check.ok
    assert "/v1/models answers" in check.detail


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def command(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as stop:
        cli.main(arguments)
    captured = capsys.readouterr()
    return int(stop.value.code or 0), captured.out, captured.err


def test_a_refused_connection_fails_the_first_check_and_no_other_runs(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = command(
        ["smoke", "--url", f"http://127.0.0.1:{free_port()}", "--model", "m", "--format", "json"], capsys
    )
    result = json.loads(out)
    assert code == 1
    assert result["ok"] is False
    assert "cannot connect" in result["checks"][0]["detail"]
    assert {check["detail"] for check in result["checks"][1:]} == {"not run: health failed"}


def test_a_server_that_never_answers_times_out_with_the_seconds_named() -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        silent = type("Silent", (), {"url": f"http://127.0.0.1:{listener.getsockname()[1]}"})
        check = run(silent, timeout=0.2)["health"]
    assert not check.ok
    assert "no answer within 0.2 s" in check.detail


def test_the_command_prints_the_json_form_and_exits_0(serve: Start, capsys: pytest.CaptureFixture[str]) -> None:
    server = serve()
    code, out, _ = command(["smoke", "--url", server.url + "/v1", "--model", "org/target", "--format", "json"], capsys)
    result = json.loads(out)
    assert code == 0
    assert result["ok"] is True
    assert result["acceptance_rate"] == pytest.approx(0.45)
    assert set(result["checks"][0]) == {"name", "ok", "detail", "seconds"}


def test_the_table_shows_each_check_and_a_failure_exits_1(serve: Start, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["smoke", "--url", serve().url, "--model", "org/target", "--speculation", "off"]
    code, out, _ = command(arguments, capsys)
    assert code == 1
    assert "FAILED" in out
    assert "streamed chat" in out


def test_a_router_says_nothing_of_drafts_so_engines_are_named_apart(
    serve: Start, capsys: pytest.CaptureFixture[str]
) -> None:
    router, first, second = serve(speculates=False), serve(), serve()
    first.engine.drafted_steps = 5
    arguments = ["smoke", "--url", router.url, "--model", "org/target", "--format", "json"]
    code, out, _ = command([*arguments, "--metrics-url", first.url, "--metrics-url", second.url], capsys)
    speculation = next(check for check in json.loads(out)["checks"] if check["name"] == "speculation")
    assert code == 1
    assert "no draft was counted" in speculation["detail"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["smoke"], "neither an environment nor --url is given"),
        (["smoke", "--url", "http://127.0.0.1:1"], "--url needs --model"),
        (["smoke", "--url", "127.0.0.1:8000", "--model", "m"], "is not a URL"),
    ],
    ids=["nothing", "no model", "no scheme"],
)
def test_bad_input_exits_2_and_says_what_would_be_right(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = command(arguments, capsys)
    assert code == 2
    assert said in err
    assert "fix" in err
    assert "Traceback" not in err


def test_the_key_goes_into_the_header_and_nowhere_else(
    serve: Start, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
    assert at_url("http://x.test", api_key="sk-very-secret").client.headers["authorization"] == "Bearer sk-very-secret"
    _, out, err = command(["smoke", "--url", serve().url, "--model", "org/target", "--format", "json"], capsys)
    assert "sk-very-secret" not in out + err
