"""`specdec migrate`: what others deploy becomes values, and nothing gets lost without a word."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from specdec import facts, helm, manifests
from specdec.cli import main
from specdec.errors import SpecdecError
from specdec.migrate import Engine, migrate, read

SHA = "a" * 40
TARGET = "/weights/target"
# One version of each era: V0 with single flags, V0 with JSON, V1, and what came since.
ERAS = ("0.6.6", "0.7.3", "0.8.5", "0.9.2", "0.10.2", "0.12.0", "0.16.0", "0.20.2", "0.26.0", "0.33.0")
DRAFTS = {
    "draft_model": "/weights/draft-1b",
    "eagle": "/weights/EAGLE-head",
    "eagle3": "/weights/EAGLE3-head",
    "medusa": "/weights/medusa-head",
    "mlp_speculator": "/weights/llama-accelerator",
    "dflash": "/weights/dflash",
    "dspark": "/weights/dspark",
}


def speculative(method: str) -> dict[str, Any]:
    values: dict[str, Any] = {"method": method, "numTokens": 1 if method == "mtp" else 4}
    if method in DRAFTS:
        values["model"] = {"name": DRAFTS[method]}
    if method == "ngram":
        values["promptLookup"] = {"min": 2, "max": 5}
    if method == "draft_model":
        values["maxModelLen"] = 1024
    return values


def rendered(tmp_path: Path, version: str, engines: dict[str, Any]) -> dict[str, Engine]:
    """The engines of a rendering by name, with the arguments alone."""
    sized = json.loads(json.dumps(engines))
    for engine in sized.values():
        if "model" in engine["speculative"]:
            engine["speculative"]["model"]["sizeGiB"] = 1
        engine.setdefault("engine", {})["image"] = {"hasArcticInference": True}
    target = {"name": TARGET, "sizeGiB": 1}
    shared = {"version": version, "model": target, "maxModelLen": 2048, "tensorParallelSize": 4, "dtype": "bfloat16"}
    file = tmp_path / "values.yaml"
    file.write_text(yaml.safe_dump({"engine": shared, "router": {"enabled": False}, "engines": sized}))
    found = manifests.engines(manifests.parse(helm.render([file])))
    return {str(engine.label): Engine(str(engine.label), engine.argv) for engine in found}


@pytest.mark.parametrize("version", ERAS)
def test_values_come_back_from_what_they_render_to(tmp_path: Path, version: str) -> None:
    methods = facts.engines()["methods"]
    runs = [name for name, method in methods.items() if facts.in_range(method["rows"], version)]
    engines = {name.replace("_", "-"): {"speculative": speculative(name)} for name in runs}
    found = rendered(tmp_path, version, engines)
    assert sorted(found) == sorted(engines)
    for name, engine in found.items():
        engine.image = f"vllm/vllm-openai:v{version}"
        back = migrate(engine, version).values
        assert back["speculative"] == engines[name]["speculative"], name
        expected = {"version": version, "model": {"name": TARGET}, "maxModelLen": 2048, "tensorParallelSize": 4}
        if name == "suffix":
            expected["image"] = {"hasArcticInference": True}
        assert back["engine"] == expected | {"dtype": "bfloat16"}, name


def test_the_seeds_flags_become_the_newest_values() -> None:
    flags = "--speculative-model D --num-speculative-tokens 5 --use-v2-block-manager --tensor-parallel-size 4"
    (engine,) = read(f"python3 -m vllm.entrypoints.openai.api_server --model T --revision {SHA} {flags} --port 9", "x")
    made = migrate(engine, "0.32.0")
    assert made.values["speculative"] == {
        "method": "draft_model",
        "model": {"name": "D", "revision": "main"},
        "numTokens": 5,
    }
    assert made.values["engine"]["tensorParallelSize"] == 4
    assert made.values["huggingFace"] == {"allowMutableRevision": True}
    assert [note["argument"] for note in made.dropped] == ["--use-v2-block-manager", "--port 9"]
    assert "before 0.10.0" in made.dropped[0]["why"]
    assert [note["argument"] for note in made.decide] == ["model D", "revision main of D"]


def command(config: dict[str, Any], *more: str, model: str = TARGET) -> Engine:
    return Engine("", ["vllm", "serve", model, "--speculative-config", json.dumps(config), *more])


def test_what_the_target_has_no_more_is_dropped_with_what_does_its_work() -> None:
    config = {"method": "ngram", "num_speculative_tokens": 4, "prompt_lookup_max": 4, "disable_by_batch_size": 16}
    made = migrate(command(config), "0.32.0")
    assert "disableByBatchSize" not in made.values["speculative"]
    (note,) = made.dropped
    assert note["argument"] == "disable_by_batch_size 16"
    assert "speculative.schedule" in note["instead"]
    kept = migrate(command(config), "0.9.2")
    assert (kept.values["speculative"]["disableByBatchSize"], kept.dropped) == (16, [])


def test_families_of_heads_and_short_flags_are_understood() -> None:
    made = migrate(command({"method": "deepseek_mtp", "num_speculative_tokens": 1}), "0.32.0")
    assert made.values["speculative"] == {"method": "mtp", "numTokens": 1}
    short = Engine("", ["vllm", "serve", TARGET, "-tp", "2", "--spec-method", "ngram", "--spec-tokens", "3"])
    values = migrate(short, "0.32.0").values
    assert values["speculative"] == {"method": "ngram", "numTokens": 3}
    assert values["engine"]["tensorParallelSize"] == 2


def test_without_speculation_the_values_say_so() -> None:
    assert migrate(Engine("", ["vllm", "serve", TARGET]), "0.32.0").values["speculative"] == {"enabled": False}


def test_schedules_objects_and_adapters_become_lists() -> None:
    config = {
        "method": "eagle3",
        "model": "/weights/head",
        "num_speculative_tokens": 4,
        "num_speculative_tokens_per_batch_size": [[1, 8, 4], [9, 64, 1]],
        "draft_load_config": {"load_format": "safetensors"},
    }
    adapters = ["--enable-lora", "--lora-modules", "one=/adapters/one", '{"name": "two", "path": "/adapters/two"}']
    values = migrate(command(config, *adapters), "0.32.0").values
    assert values["speculative"]["schedule"] == [
        {"from": 1, "to": 8, "tokens": 4},
        {"from": 9, "to": 64, "tokens": 1},
    ]
    assert values["speculative"]["load"] == {"format": "safetensors"}
    assert values["lora"] == {
        "enabled": True,
        "modules": [{"servedName": "one", "name": "/adapters/one"}, {"servedName": "two", "name": "/adapters/two"}],
    }


def test_free_arguments_stay_as_they_stood() -> None:
    argv = ["vllm", "serve", TARGET, "--cudagraph-capture-sizes", "1", "2", "--override-generation-config", '{"a": 1}']
    values = migrate(Engine("", [*argv, "--seed=3"]), "0.32.0").values
    assert values["engine"]["extraArgs"] == [
        "--cudagraph-capture-sizes", "1", "2", "--override-generation-config", '{"a": 1}', "--seed", "3",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("engine", "to", "code", "says"),
    [
        (Engine("", ["vllm", "serve"]), "0.32.0", "migrate-model", "no model"),
        (Engine("", ["vllm", "serve", TARGET, "--max-modle-len", "8"]), "0.32.0", "migrate-flag", "--max-model-len"),
        (command({"method": "lookahead", "num_speculative_tokens": 3}), "0.32.0", "migrate-method", "ngram"),
        (command({"method": "ngram", "num_specultive_tokens": 3}), "0.32.0", "migrate-field", "num_speculative_tokens"),
        (
            command({"method": "ngram", "num_speculative_tokens": 3, "prompt_lookup_max": "many"}),
            "0.32.0",
            "migrate-value",
            "int",
        ),
        (Engine("", ["vllm", "serve", TARGET, "--speculative-config", "{"]), "0.32.0", "migrate-unreadable", "engine"),
    ],
)
def test_what_cannot_be_expressed_is_refused(engine: Engine, to: str, code: str, says: str) -> None:
    with pytest.raises(SpecdecError) as caught:
        migrate(engine, to)
    assert caught.value.code == code
    assert says in f"{caught.value.message} {caught.value.fix}"


COMPOSE = """
services:
  llm:
    image: vllm/vllm-openai:v0.9.2
    environment: [VLLM_USE_V1=0, LOG=1]
    command: --model /weights/target --max-model-len 2048
"""


def test_a_compose_file_and_a_manifest_are_read() -> None:
    (engine,) = read(COMPOSE, "compose.yaml")
    made = migrate(engine, "0.9.2")
    assert made.values["engine"] == {
        "version": "0.9.2",
        "model": {"name": TARGET},
        "maxModelLen": 2048,
        "runner": "v0",
        "extraEnv": [{"name": "LOG", "value": "1"}],
    }
    seed = Path(__file__).parents[2] / "data" / "seed-statefulset.yaml"
    (found,) = read(seed.read_text(), str(seed))
    values = migrate(found, "0.32.0").values
    assert values["speculative"]["method"] == "draft_model"
    assert values["engine"]["replicas"] == 2


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as stopped:
        main(["migrate", *words])
    out, err = capsys.readouterr()
    return int(stopped.value.code or 0), out, err


def test_the_command_prints_values_that_render(capsys: pytest.CaptureFixture[str]) -> None:
    config = json.dumps({"method": "ngram", "num_speculative_tokens": 3})
    line = f"vllm serve {TARGET} --port 1 --speculative-config '{config}'"
    code, out, err = run(capsys, "--command", line, "--to", "0.32.0")
    assert code == 0
    assert yaml.safe_load(out)["speculative"] == {"method": "ngram", "numTokens": 3}
    assert "dropped: --port 1" in err


def test_what_speculates_nowhere_is_served_without(capsys: pytest.CaptureFixture[str]) -> None:
    config = json.dumps({"method": "draft_model", "model": "/weights/draft", "num_speculative_tokens": 3})
    line = f"vllm serve {TARGET} --pipeline-parallel-size 2 --speculative-config '{config}'"
    code, out, err = run(capsys, "--command", line, "--to", "0.32.0")
    values = yaml.safe_load(out)
    assert (code, values["speculative"]) == (0, {"enabled": False})
    assert values["engine"]["pipelineParallelSize"] == 2
    assert f"dropped: --speculative-config {config}: 2 stages" in err
    assert "(SD160)" in err


def test_the_command_refuses_what_the_chart_refuses(capsys: pytest.CaptureFixture[str]) -> None:
    line = f"vllm serve {TARGET} --enable-auto-tool-choice"
    code, out, err = run(capsys, "--command", line, "--to", "0.32.0")
    assert (code, out) == (2, "")
    assert "SD159" in err
    assert run(capsys, "--command", line, "--to", "0.32.0", "--no-check")[0] == 0


def test_a_line_from_nowhere_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys)[0] == 2
    assert run(capsys, "missing.yaml")[0] == 2
