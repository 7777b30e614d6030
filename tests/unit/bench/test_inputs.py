"""A stranger's first tries: what is wrong and what would be right is said, and nothing is touched."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from specdec.bench import load as prompts
from specdec.bench import request
from specdec.bench.document import FILE, Load, Point, Run, write
from specdec.cli import main
from specdec.deploy.live import Live
from specdec.errors import SpecdecError
from specdec.output import make_folder


def failing(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    """The error of `specdec bench ...`, as machines get it."""
    with pytest.raises(SystemExit) as stop:
        main(["bench", *words, "--format", "json"])
    assert stop.value.code == 2
    out, err = capsys.readouterr()
    assert out == ""
    return json.loads(err)["error"]  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("words", "path"),
    [
        (["--k", "a"], "--k"),
        (["--k", "-1"], "--k"),
        (["--k", "0"], "--k"),
        (["--k", "4,4"], "--k"),
        (["--concurrency", "0"], "--concurrency"),
        (["--concurrency", "-4"], "--concurrency"),
        (["--concurrency", "1.5"], "--concurrency"),
        (["--concurrency", "a"], "--concurrency"),
        (["--concurrency", ""], "--concurrency"),
        (["--concurrency", "1000"], "--num-prompts"),
        (["--rate", "0"], "--rate"),
        (["--rate", "inf"], "--rate"),
        (["--rate", "nan"], "--rate"),
        (["--task", "chess"], "--task"),
        (["--jsonl", "/nonexistent"], "--jsonl"),
        (["--sharegpt", "/"], "--sharegpt"),
    ],
)
def test_a_wrong_number_or_file_is_told_with_its_option_and_what_would_be_right(
    capsys: pytest.CaptureFixture[str], words: list[str], path: str
) -> None:
    error = failing(capsys, "local", *words)
    assert error["path"] == path
    assert error["fix"]


@pytest.mark.parametrize(
    "words",
    [
        ["--repeats", "0"],
        ["--num-prompts", "-1"],
        ["--output-len", "1"],
        ["--seed", "x"],
        ["--temperature", "nan"],
        ["--timeout", "0"],
        ["--jsonl", "a", "--task", "code"],
        ["--k", "0,2", "--arm", "x"],
        ["--resume", "x", "--out", "y"],
        ["--resume", "x", "--concurrency", "2"],
        ["--resume", "x", "--k", "0,2"],
    ],
)
def test_options_that_cannot_be_meant_are_told(capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
    assert failing(capsys, "local", *words)["code"] == "usage"


def test_an_unknown_environment_is_told_with_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert failing(capsys, "stagin")["fix"] == "did you mean staging?"


def test_no_cluster_is_told(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", "/nonexistent")
    assert failing(capsys, "prod")["code"] == "kubeconfig"


def test_a_directory_without_a_run_and_one_with_half_a_document(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert failing(capsys, "local", "--resume", str(tmp_path))["code"] == "no-run"
    (tmp_path / FILE).write_text('{"schema_version": 1, "arms": [', encoding="utf-8")
    error = failing(capsys, "local", "--resume", str(tmp_path))
    assert (error["code"], error["file"]) == ("bad-run", str(tmp_path / FILE))


def run_of(environment: str) -> Run:
    return Run(
        environment=environment, release="speculative", namespace="ai-inference", created="2025-01-01T00:00:00+00:00",
        load=Load(), points=[Point(concurrency=1)], versions={}, values_sha256={}, manifests_sha256="0",
        target="t", engines=["a", "b"],
    )  # fmt: skip


def test_another_environment_s_run_is_not_gone_on_with(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    write(tmp_path / FILE, run_of("staging"))
    assert "a run of staging, not of local" in failing(capsys, "local", "--resume", str(tmp_path))["message"]


@pytest.mark.parametrize(("sweep", "deployed"), [([], "mine"), ([0, 2], "mine-bench")])
def test_a_run_goes_on_where_it_was_made(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, sweep: list[int], deployed: str
) -> None:
    """Its release and namespace need not be typed again; the engines of --k stand beside the release itself."""
    asked: list[Any] = []

    def of(*names: Any) -> None:
        asked.append(names)
        raise KeyboardInterrupt

    monkeypatch.setattr(Live, "of", of)
    write(tmp_path / FILE, run_of("local").model_copy(update={"sweep": sweep, "release": deployed, "namespace": "n"}))
    with pytest.raises(SystemExit) as stop:
        main(["bench", "local", "--resume", str(tmp_path)])
    assert stop.value.code == 130
    assert asked == [("local", None, "mine", "n")]


def test_a_run_goes_on_only_with_what_it_measured_and_never_with_fewer_repeats(tmp_path: Path) -> None:
    run = run_of("local")
    assert request.resumed(run, "0", tmp_path, 8)[0].repeats == 8
    assert request.resumed(run, "0", tmp_path, None)[0].repeats == 5
    with pytest.raises(SpecdecError, match="is not what this run measured"):
        request.resumed(run, "1", tmp_path, None)
    with pytest.raises(SpecdecError, match="began with 5 repeats"):
        request.resumed(run, "0", tmp_path, 4)


def test_a_run_s_directory_is_never_written_over(tmp_path: Path) -> None:
    write(tmp_path / FILE, run_of("local"))
    with pytest.raises(SpecdecError, match="holds a run already"):
        request.directory_of(tmp_path, "local")
    with pytest.raises(SpecdecError, match="cannot be made"):
        make_folder(Path("/proc/none/x"), "--out")


@pytest.mark.parametrize(
    ("kind", "text", "said"),
    [
        ("custom", "", "empty"),
        ("custom", "\n\n", "empty"),
        ("custom", "hello", "line 1 is not JSON"),
        ("custom", '{"prompt": "a"}\n{"text": "b"}', "line 2 has no prompt"),
        ("custom", '{"prompt": "  "}', "line 1 has no prompt"),
        ("custom", '{"prompt": 5}', "line 1 has no prompt"),
        ("custom", "[1]", "line 1 has no prompt"),
        ("sharegpt", "", "empty"),
        ("sharegpt", "{", "not JSON"),
        ("sharegpt", "{}", "no list of conversations"),
        ("sharegpt", "[]", "empty"),
        ("sharegpt", '[{"conversations": [{"value": "only one"}]}]', "empty"),
        ("sharegpt", '[{"conversations": [1, 2]}]', "empty"),
        ("sharegpt", '[{"conversations": [{"value": null}, {"value": "b"}]}]', "empty"),
    ],
)
def test_a_dataset_that_holds_no_prompts_is_told(tmp_path: Path, kind: str, text: str, said: str) -> None:
    file = tmp_path / "d"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(SpecdecError, match=said) as found:
        prompts.of_file(file, kind, 10, 0)
    assert (found.value.file, found.value.exit_code) == (str(file), 2)
    assert found.value.fix


def test_a_dataset_in_another_encoding_is_told_and_a_byte_order_mark_is_none(tmp_path: Path) -> None:
    file = tmp_path / "d"
    file.write_bytes('{"prompt": "é"}'.encode("latin-1"))
    with pytest.raises(SpecdecError, match="not UTF-8"):
        prompts.of_file(file, "custom", 10, 0)
    file.write_bytes(b"\xef\xbb\xbf" + b'{"prompt": "a"}\n')
    assert prompts.of_file(file, "custom", 10, 0).text == '{"prompt": "a"}\n'


def test_a_dataset_beyond_a_config_map_is_told_with_what_is_less(tmp_path: Path) -> None:
    file = tmp_path / "d"
    file.write_text(json.dumps({"prompt": "x" * 1_100_000}) + "\n", encoding="utf-8")
    with pytest.raises(SpecdecError, match="a ConfigMap holds"):
        prompts.of_file(file, "custom", 10, 0)


@pytest.mark.parametrize(
    ("version", "spelled", "ready_check"),
    [
        ("0.9.2", "--custom-skip-chat-template", False),
        # There 0 seconds mean that the benchmark gives up before it begins.
        ("0.10.2", "--custom-skip-chat-template", False),
        ("0.11.0", "--custom-skip-chat-template", True),
        ("0.11.1", "--skip-chat-template", True),
        ("0.33.0", "--skip-chat-template", True),
    ],
)
def test_the_benchmark_s_arguments_are_those_of_the_engine_s_version(
    version: str, spelled: str, ready_check: bool
) -> None:
    asked = Load(dataset="custom")
    words = prompts.arguments(
        asked, Point(concurrency=4), seed=3, version=version, model="m", tokenizer="/t", url="http://m:8000"
    )
    assert spelled in words
    assert ("--ready-check-timeout-sec" in words) is ready_check
    assert words[words.index("--seed") + 1] == "3"


@pytest.mark.parametrize(("version", "dataset"), [("0.9.0", "random"), ("0.9.1", "custom"), (None, "random")])
def test_an_engine_whose_benchmark_lacks_what_is_needed_is_told(version: str | None, dataset: Any) -> None:
    with pytest.raises(SpecdecError, match="engine e"):
        prompts.check(Load(dataset=dataset), version, 4096, "e")
