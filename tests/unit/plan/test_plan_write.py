"""`specdec plan --write`: the choice goes into the values, and nothing else in the file moves."""

from __future__ import annotations

import difflib
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from specdec.plan.write import replica_load

from .engines import manifest, speculative

EAGLE = speculative(method="eagle3", model="yuhuili/EAGLE3-LLaMA3.1-Instruct-8B", num_speculative_tokens=8)
LLAMA = "meta-llama/Llama-3.1-8B-Instruct"
ENVIRONMENTS = Path(__file__).parents[3] / "environments"


@pytest.fixture
def engine(tmp_path: Path) -> str:
    return manifest(tmp_path, LLAMA, EAGLE, "--max-model-len=4096")


def write(run: Any, engine: str, file: Path, *options: str) -> tuple[int, dict[str, Any], str]:
    code, out, err = run("plan", engine, "--write", str(file), *options, "--format", "json")
    return code, json.loads(out) if out else {}, err


def changed(old: str, new: str) -> list[str]:
    lines = difflib.ndiff(old.splitlines(keepends=True), new.splitlines(keepends=True))
    return [line for line in lines if line[0] in "+-"]


def test_every_other_line_stays_byte_for_byte(run: Any, engine: str, tmp_path: Path) -> None:
    old = (
        "# ours\n---\nengine:   # the engine\n    model: {name:   'org/name',  revision: \"abc\"}\n"
        "    extraArgs:\n    - --x\n    - '--a-very-long-argument=" + "word " * 40 + "'\n\n\n"
        "speculative:\n    method:    eagle3\n    numTokens: 9     # too many\n\nflag: yes\nempty:\nsize: 0x10\n"
    )
    values = tmp_path / "values.yaml"
    values.write_text(old)
    assert write(run, engine, values, "--acceptance", "0.6,0.2,0.05")[0] == 0
    lines = changed(old, values.read_text())
    assert lines[0] == "-     numTokens: 9     # too many\n"
    assert "# too many" in lines[1]
    assert all("tokens" in x.lower() or "from:" in x or "to:" in x or "schedule" in x for x in lines)


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_marks_and_ends_of_lines_stay(run: Any, engine: str, tmp_path: Path, end: str, mark: str) -> None:
    values = tmp_path / "values.yaml"
    values.write_bytes(f"{mark}# ours{end}speculative:{end}  numTokens: 9{end}".encode())
    assert write(run, engine, values)[0] == 0
    new = values.read_bytes().decode()
    assert new.startswith(f"{mark}# ours{end}")
    assert new.count("\r\n") == (new.count("\n") if end == "\r\n" else 0)


@pytest.mark.parametrize("old", ["", "# comments alone\n", "{}\n", "engine: {}\n", "speculative:\n"])
def test_a_file_without_the_key_gets_it(run: Any, engine: str, tmp_path: Path, old: str) -> None:
    values = tmp_path / "values.yaml"
    values.write_text(old)
    code, doc, said = write(run, engine, values)
    assert code == 0
    tokens = doc["num_speculative_tokens"]
    written = yaml.safe_load(values.read_text())["speculative"]["numTokens"]
    assert written in {tokens["static"], *(r["tokens"] for r in tokens["schedule"])}
    assert f"speculative.numTokens: {written}" in said
    assert "# comments alone" in values.read_text() or "#" not in old


def test_a_new_file_is_made(run: Any, engine: str, tmp_path: Path) -> None:
    assert write(run, engine, tmp_path / "new.yaml")[0] == 0
    assert yaml.safe_load((tmp_path / "new.yaml").read_text())["speculative"]["numTokens"] >= 1


def test_a_schedule_that_gains_nothing_is_taken_away(run: Any, tmp_path: Path) -> None:
    values = tmp_path / "values.yaml"
    values.write_text("speculative:\n  numTokens: 9\n  schedule:\n    - {from: 1, to: 2, tokens: 9}\nrest: 1\n")
    old = manifest(tmp_path, LLAMA, EAGLE, "--max-model-len=4096", version="0.20.0")  # no version with schedules
    assert write(run, old, values)[0] == 0
    assert set(yaml.safe_load(values.read_text())["speculative"]) == {"numTokens"}
    assert values.read_text().endswith("rest: 1\n")


def test_an_autoscaler_is_told_what_a_replica_holds(run: Any, engine: str, tmp_path: Path) -> None:
    values = tmp_path / "values.yaml"
    values.write_text("autoscaling:\n  kind: keda # ours\n  maxReplicas: 3\n")
    _, doc, said = write(run, engine, values)
    scaling = yaml.safe_load(values.read_text())["autoscaling"]
    assert scaling == {"kind": "keda", "maxReplicas": 3, "maxConcurrencyPerReplica": replica_load(doc)}
    assert replica_load(doc) <= doc["requests_at_once"]
    assert "# ours" in values.read_text()
    assert f"autoscaling.maxConcurrencyPerReplica: {replica_load(doc)}" in said


def test_the_objective_of_the_values_bounds_it(run: Any, engine: str, tmp_path: Path) -> None:
    def held(seconds: float) -> int:
        values = tmp_path / "values.yaml"
        values.write_text(f"autoscaling: {{kind: hpa, timePerOutputToken: {{seconds: {seconds}}}}}\n")
        write(run, engine, values)
        return int(yaml.safe_load(values.read_text())["autoscaling"]["maxConcurrencyPerReplica"])

    assert held(0.0001) == 1
    assert 1 < held(0.008) < held(0.012) < held(10)


@pytest.mark.parametrize(
    ("autoscaling", "stays"),
    [("{kind: none}", None), ("{kind: keda, maxConcurrencyPerReplica: 7}", 7), ("{minReplicas: 2}", None)],
)
def test_what_is_set_or_off_is_left_alone(
    run: Any, engine: str, tmp_path: Path, autoscaling: str, stays: int | None
) -> None:
    values = tmp_path / "values.yaml"
    values.write_text(f"autoscaling: {autoscaling}\n")
    write(run, engine, values)
    assert yaml.safe_load(values.read_text())["autoscaling"].get("maxConcurrencyPerReplica") == stays


def test_a_replica_holds_no_more_than_where_speculation_stops_paying() -> None:
    doc = {"requests_at_once": 500, "crossover_batch": 40, "num_speculative_tokens": {"static": 2, "schedule": []}}
    rows = [{"batch": b, "arm": "static", "tpot_ms": b, "tpot_p99_ms": b} for b in (1, 16, 32, 64, 128)]
    assert replica_load(doc | {"curve": rows}) == 39
    assert replica_load(doc | {"curve": rows}, 24.0) == 24
    assert replica_load(doc | {"curve": rows, "crossover_batch": None}) == 500
    assert replica_load(doc | {"curve": rows, "crossover_batch": None}, 1000.0) == 128


@pytest.mark.parametrize("name", ["dev", "prod", "prod-eagle3", "staging"])
def test_what_is_written_for_an_environment_renders_and_is_the_plan(run: Any, tmp_path: Path, name: str) -> None:
    values = tmp_path / "values.yaml"
    old = (ENVIRONMENTS / name / "values.yaml").read_text()
    values.write_text(old)
    code, out, _ = run("plan", name, "--write", str(values), "--format", "json")
    doc = json.loads(out)
    new = yaml.safe_load(values.read_text())
    assert code == 0
    assert all(line in values.read_text() for line in old.splitlines() if line.lstrip().startswith("#"))
    again = json.loads(run("plan", "--values", str(values), "--format", "json")[1])
    assert again["configured"]["num_speculative_tokens"] == new["speculative"]["numTokens"]
    assert again["num_speculative_tokens"] == doc["num_speculative_tokens"]
    assert again["configured"]["difference"] < 0.05


def test_nothing_is_written_where_nothing_pays_or_nothing_speculates(run: Any, engine: str, tmp_path: Path) -> None:
    values = tmp_path / "values.yaml"
    values.write_text("a: 1\n")
    code, _, err = write(run, engine, values, "--acceptance", "0.01,0")
    assert (code, json.loads(err)["error"]["code"]) == (2, "nothing-to-write")
    code, _, err = write(run, manifest(tmp_path, LLAMA, name="plain"), values)
    assert (code, json.loads(err)["error"]["code"]) == (2, "nothing-to-write")
    assert values.read_text() == "a: 1\n"


@pytest.mark.parametrize("text", ["- a\n- b\n", "a: [\n", "\x00"])
def test_a_file_that_is_no_values_file_is_refused(run: Any, engine: str, tmp_path: Path, text: str) -> None:
    values = tmp_path / "values.yaml"
    values.write_text(text)
    code, _, err = write(run, engine, values)
    assert (code, json.loads(err)["error"]["code"]) == (2, "values-broken")
    assert values.read_text() == text


def test_two_engines_of_one_chart_each_get_their_own(run: Any, tmp_path: Path) -> None:
    one = yaml.safe_load(Path(manifest(tmp_path, LLAMA, EAGLE, "--max-model-len=4096", name="x-chat")).read_text())
    ngram = speculative(method="ngram", num_speculative_tokens=3)
    two = yaml.safe_load(Path(manifest(tmp_path, LLAMA, ngram, "--max-model-len=4096", name="x-code")).read_text())
    both = tmp_path / "both.yaml"
    both.write_text(yaml.safe_dump_all([one, two]))
    values = tmp_path / "values.yaml"
    values.write_text("engines:\n  chat: {}\n  code:\n    speculative: {numTokens: 9}\n")
    assert run("plan", str(both), "--write", str(values))[0] == 0
    engines = yaml.safe_load(values.read_text())["engines"]
    assert engines["chat"]["speculative"]["numTokens"] >= 1
    assert 1 <= engines["code"]["speculative"]["numTokens"] < 9
    assert set(yaml.safe_load(values.read_text())) == {"engines"}
