"""`specdec migrate` of legacy lines: what the new version lacks falls away with a word, and the values render."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
import yaml
from specdec import helm
from specdec.cli import main
from specdec.errors import SpecdecError
from specdec.migrate.fitting import fit

PAIR = (
    "vllm serve meta-llama/Llama-3.1-70B-Instruct --speculative-model meta-llama/Llama-3.1-8B-Instruct "
    "--num-speculative-tokens 5 --tensor-parallel-size 4"
)


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as stopped:
        main(["migrate", *words])
    out, err = capsys.readouterr()
    return int(stopped.value.code or 0), out, err


@pytest.mark.parametrize(
    ("flags", "key", "flag", "code"),
    [
        (
            "--speculative-draft-tensor-parallel-size 1",
            "speculative.draftTensorParallelSize",
            "--speculative-draft-tensor-parallel-size 1",
            "SD263",
        ),
        (
            "--spec-decoding-acceptance-method typical_acceptance_sampler "
            "--typical-acceptance-sampler-posterior-threshold 0.1",
            "speculative.rejectionSampling",
            "--spec-decoding-acceptance-method typical_acceptance_sampler",
            "SD164",
        ),
        (
            "--max-model-len 8192 --speculative-max-model-len 9000",
            "speculative.maxModelLen",
            "--speculative-max-model-len 9000",
            "SD259",
        ),
    ],
)
def test_what_the_version_refuses_is_dropped_and_the_rest_renders(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, flags: str, key: str, flag: str, code: str
) -> None:
    status, out, err = run(capsys, "-c", f"{PAIR} {flags}", "--to", "0.33.0")
    assert status == 0
    (told,) = [line for line in err.splitlines() if line.startswith(f"dropped: {flag}: ")]
    assert told.endswith(f" ({code})")
    assert "; instead: " in told
    assert f"# dropped: {flag}: " in out
    assert key.split(".")[1] not in yaml.safe_load(out)["speculative"]
    file = tmp_path / "values.yaml"
    file.write_text(out)
    assert "num_speculative_tokens" in helm.render([file])
    values = yaml.safe_load(out)
    assert values["speculative"]["model"]["name"] == "meta-llama/Llama-3.1-8B-Instruct"
    assert values["speculative"]["numTokens"] == 5
    assert values["engine"]["tensorParallelSize"] == 4


def test_without_the_check_nothing_is_dropped_for_the_chart(capsys: pytest.CaptureFixture[str]) -> None:
    line = f"{PAIR} --speculative-draft-tensor-parallel-size 1"
    status, out, err = run(capsys, "-c", line, "--no-check")
    assert (status, yaml.safe_load(out)["speculative"]["draftTensorParallelSize"]) == (0, 1)
    assert "SD263" not in err


def test_a_bare_flag_of_an_old_parser_is_true(capsys: pytest.CaptureFixture[str]) -> None:
    status, _, err = run(capsys, "-c", f"{PAIR} --disable-logprobs-during-spec-decoding")
    assert status == 0
    assert "dropped: --disable-logprobs-during-spec-decoding: " in err


def values_of(speculative: dict[str, Any]) -> dict[str, Any]:
    model = {"name": "/weights/target"}
    return {"engine": {"version": "0.33.0", "model": model, "tensorParallelSize": 2}, "speculative": speculative}


def test_of_several_engines_each_loses_its_own() -> None:
    one = values_of({"method": "ngram", "numTokens": 3})
    draft = {"method": "draft_model", "numTokens": 3, "model": {"name": "/d"}, "draftTensorParallelSize": 1}
    values = {"engines": {"a": one, "b": values_of(draft)}, "router": {"enabled": False}}
    (note,) = fit(values)
    assert (note["argument"], note["code"]) == ("engines.b.speculative.draftTensorParallelSize", "SD263")
    assert values["engines"]["a"] == values_of({"method": "ngram", "numTokens": 3})


def test_sections_that_become_empty_go_with_their_last_value() -> None:
    values = values_of({"method": "suffix", "numTokens": 3, "promptLookup": {"min": 3}})
    values["engine"]["image"] = {"hasArcticInference": True}
    assert [note["code"] for note in fit(values)] == ["SD254"]
    assert values["speculative"] == {"method": "suffix", "numTokens": 3}


@pytest.mark.parametrize(
    ("speculative", "code"),
    [
        ({"method": "ngram", "numTokens": 3, "model": {"name": "/d"}}, "SD252"),
        ({"method": "medusa", "numTokens": 3, "model": {"name": "/d"}}, "SD155"),
        ({"method": "draft_model", "numTokens": 3}, "SD251"),
    ],
)
def test_a_speculation_that_the_version_refuses_goes_as_a_whole(speculative: dict[str, Any], code: str) -> None:
    values = values_of(speculative)
    (note,) = fit(values, {"speculative.method": "--speculative-model /d"})
    assert (note["argument"], note["code"], note["value"]) == ("--speculative-model /d", code, "speculative")
    assert values == values_of({"enabled": False})


def test_what_decides_which_weights_run_is_never_dropped() -> None:
    values = values_of({"method": "ngram", "numTokens": 3})
    values["engine"]["model"] = {"name": "opt-125m"}
    with pytest.raises(SpecdecError) as caught:
        fit(values)
    assert (caught.value.code, values["engine"]["model"]) == ("SD158", {"name": "opt-125m"})


def test_a_free_argument_goes_with_its_words_and_a_list_keeps_the_rest() -> None:
    values = values_of({"enabled": False})
    values["engine"]["extraArgs"] = ["--seed", "1", "--port", "9", "--disable-log-stats"]
    values["engine"]["extraEnv"] = [{"name": "HF_TOKEN", "value": "x"}, {"name": "A", "value": "1"}]
    assert sorted(note["code"] for note in fit(values)) == ["SD156", "SD753"]
    assert values["engine"]["extraArgs"] == ["--seed", "1", "--disable-log-stats"]
    assert values["engine"]["extraEnv"] == [{"name": "A", "value": "1"}]


@pytest.mark.parametrize("version", ["99.0", "99.0.0", "latest", "0.5.0"])
def test_a_version_that_nobody_knows_is_answered_with_those_that_are_known(
    capsys: pytest.CaptureFixture[str], version: str
) -> None:
    status, out, err = run(capsys, "-c", "vllm serve x/y", "--to", version)
    assert (status, out) == (2, "")
    assert "known: 0.6.3 to before" in err
    assert "--no-check" not in err


def test_a_v_before_the_version_is_taken_off(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run(capsys, "-c", "vllm serve x/y", "--to", "v0.33.0")
    assert (status, yaml.safe_load(out)["engine"]["version"]) == (0, "0.33.0")


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("a: [b\n", "2:1"),
        ("kind: Pod\nmetadata: [b\nspec: 1\n", "3:5"),
        ("services:\n  llm: {image: 'x\n", "3:1"),
        ("- vllm\n- {serve\n", "3:1"),
    ],
)
def test_broken_yaml_is_said_with_its_line_and_column(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, text: str, place: str
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    status, _, err = run(capsys, "-")
    assert status == 2
    assert f"standard input:{place}: the YAML is broken" in err
    assert "belongs to no flag" not in err


def test_a_command_line_is_no_yaml(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    line = """# how it runs\nvllm serve x/y --speculative-config '{"method": "ngram", "num_speculative_tokens": 2}'\n"""
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(line.encode())))
    assert run(capsys, "-")[0] == 0
