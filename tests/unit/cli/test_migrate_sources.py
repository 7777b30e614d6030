"""`specdec migrate` of what people keep: docker lines, compose files, units, scripts and manifests with company."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from specdec.cli import main
from specdec.errors import SpecdecError
from specdec.migrate import Engine, migrate, read

SHA = "a" * 40
NGRAM = """'{"method": "ngram", "num_speculative_tokens": 4}'"""


def one(text: str, **known: str) -> Engine:
    (engine,) = read(text, "x", known)
    return engine


def values(engine: Engine, to: str = "0.32.0") -> dict[str, Any]:
    return migrate(engine, to).values


@pytest.mark.parametrize(
    "line",
    [
        "docker run --gpus all -e HF_TOKEN=hf_1 -p 8000:8000 --ipc=host vllm/vllm-openai:v0.9.2 --model a/b --seed 1",
        "sudo docker run -dit --rm -p8000:8000 --shm-size 1g vllm/vllm-openai:v0.9.2 --model=a/b --seed=1",
        "docker container run --name llm --gpus '\"device=0,1\"' vllm/vllm-openai:v0.9.2 --model a/b --seed 1",
        "podman run --device nvidia.com/gpu=all vllm/vllm-openai:v0.9.2 --model a/b --seed 1 > log 2>&1 &",
        "docker run --entrypoint python3 vllm/vllm-openai:v0.9.2 -m vllm.entrypoints.openai.api_server a/b --seed 1",
        "docker run vllm/vllm-openai:v0.9.2 bash -c 'pip install x && exec vllm serve a/b --seed 1'",
        "#!/bin/sh\nset -e\ndocker run --gpus all \\\n  vllm/vllm-openai:v0.9.2 \\\n  --model a/b --seed 1\n",
    ],
)
def test_a_docker_line_is_its_image_and_its_arguments(line: str) -> None:
    engine = one(line)
    assert (engine.image, engine.version) == ("vllm/vllm-openai:v0.9.2", "0.9.2")
    made = values(engine, "0.9.2")
    assert made["engine"]["model"]["name"] == "a/b"
    assert made["engine"]["extraArgs"] == ["--seed", "1"]
    assert "hf_1" not in json.dumps(made)


def test_secrets_of_a_docker_line_are_named_and_never_shown() -> None:
    line = "docker run -e HF_TOKEN=hf_1 -e MY_SECRET=hf_2 -e LOG=1 vllm/vllm-openai:v0.32.0 --model a/b --api-key hf_3"
    made = migrate(one(line), "0.32.0")
    assert made.values["engine"]["extraEnv"] == [{"name": "LOG", "value": "1"}]
    assert [note["argument"] for note in made.dropped] == ["--api-key", "env HF_TOKEN", "env MY_SECRET"]
    assert "hf_" not in json.dumps([made.values, made.dropped, made.decide])


def test_mounts_and_files_of_variables_are_said() -> None:
    made = migrate(one("docker run -v /m:/models --env-file .env vllm/vllm-openai:v0.32.0 --model /models/a"), "0.32.0")
    assert [note["argument"] for note in made.dropped] == ["-v /m:/models", "--env-file .env"]


UNIT = """[Unit]
Description=vLLM
[Service]
Environment="VLLM_USE_V1=1" MODEL=a/b
ExecStart=/opt/vllm/bin/vllm serve ${MODEL} \\
  --speculative-config %s
Restart=always
"""


def test_a_systemd_unit_is_its_exec_start() -> None:
    made = values(one(UNIT % NGRAM))
    assert (made["engine"]["model"]["name"], made["engine"]["runner"]) == ("a/b", "v1")
    assert made["speculative"] == {"method": "ngram", "numTokens": 4}
    assert values(one("ExecStart=-/usr/bin/docker run vllm/vllm-openai:v0.32.0 --model a/b"))["engine"]["model"]


def test_variables_are_put_in_where_they_are_told() -> None:
    made = values(
        one('export MODEL=a/b\nARGS="--seed 1 --dtype half"\nvllm serve $MODEL ${ARGS} --max-model-len ${L:-2k}')
    )
    assert made["engine"] == {
        "version": "0.32.0",
        "model": {"name": "a/b", "revision": "main"},
        "extraArgs": ["--seed", "1"],
        "dtype": "half",
        "maxModelLen": 2000,
    }
    assert values(one("vllm serve $MODEL", MODEL="c/d"))["engine"]["model"]["name"] == "c/d"


def test_variables_that_nothing_tells_are_dropped_but_not_the_model() -> None:
    made = migrate(one("vllm serve a/b --max-num-seqs $SEQS --port $PORT --dtype=$TYPE"), "0.32.0")
    assert [note["argument"] for note in made.dropped] == ["--max-num-seqs $SEQS", "--dtype $TYPE"]
    assert made.dropped[0]["instead"] == "--env SEQS=VALUE"
    for line in ("vllm serve $MODEL", "vllm serve a/b --speculative-model ${DRAFT} --num-speculative-tokens 3"):
        with pytest.raises(SpecdecError) as caught:
            migrate(one(line), "0.32.0")
        assert caught.value.code == "migrate-variable"


COMPOSE = """
services:
  llm_server:
    image: vllm/vllm-openai:${TAG:-v0.9.2}
    environment: ["HUGGING_FACE_HUB_TOKEN=${HF_TOKEN}", LOG=1]
    volumes: ["~/.cache/huggingface:/root/.cache/huggingface"]
    command: >
      --model ${MODEL}
      --speculative-config '{"method": "ngram", "num_speculative_tokens": 3}'
  second:
    image: vllm/vllm-openai:v0.9.2
    entrypoint: [vllm]
    command: [serve, c/d]
  web: {image: "nginx:1"}
"""


def test_each_engine_of_a_compose_file_has_its_name(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "compose.yaml"
    file.write_text(COMPOSE)
    with pytest.raises(SystemExit) as stopped:
        main(["migrate", str(file), "--env", "MODEL=a/b"])
    out, err = capsys.readouterr()
    assert not stopped.value.code, err
    engines = yaml.safe_load(out)["engines"]
    assert [engine["engine"]["model"]["name"] for engine in engines.values()] == ["a/b", "c/d"]
    assert list(engines) == ["llm-server", "second"]
    assert "hf_" not in out


POD = """
apiVersion: v1
kind: Pod
metadata: {name: llm}
spec:
  initContainers: [{name: fetch, image: "busybox:1"}]
  containers:
    - name: vllm
      image: vllm/vllm-openai:v0.32.0
      args: [--model, $(MODEL)]
      env: [{name: MODEL, value: a/b}, {name: LOG, value: "1"}]
    - {name: %s, image: "%s", args: [--model, c/d]}
"""


def test_what_stands_beside_the_engine_is_said() -> None:
    text = (POD % ("web", "nginx:1")).replace(", args: [--model, c/d]", "")
    made = migrate(one(text), "0.32.0")
    assert [note["argument"] for note in made.dropped] == ["container fetch (busybox:1)", "container web (nginx:1)"]
    assert made.values["engine"]["extraEnv"] == [{"name": "LOG", "value": "1"}]


def test_two_engines_of_one_pod_are_told_apart_by_their_containers() -> None:
    names = [engine.name for engine in read(POD % ("second", "vllm/vllm-openai:v0.32.0"), "x")]
    assert names == ["llm-vllm", "llm-second"]


@pytest.mark.parametrize(
    "text", ["", " \n", "hello", "docker run nginx:1", "docker ps", "python -m sglang --model-path a/b"]
)
def test_what_starts_no_engine_is_said_so(text: str) -> None:
    with pytest.raises(SpecdecError) as caught:
        read(text, "x")
    assert caught.value.code == "migrate-nothing"


def test_arguments_alone_are_an_engine() -> None:
    assert values(one("--model a/b --seed 1"))["engine"]["extraArgs"] == ["--seed", "1"]
    assert values(one("a/b --seed 1"))["engine"]["model"]["name"] == "a/b"


def test_commits_pin_models_and_let_an_old_version_draft() -> None:
    line = "vllm serve a/b --speculative-model a/c --num-speculative-tokens 5"
    made = migrate(one(line), "0.6.6")
    assert made.values["speculative"] == {"enabled": False}
    (note,) = made.dropped
    assert note["argument"] == "--speculative-model a/c --num-speculative-tokens 5"
    assert note["instead"] == "--revision a/b=COMMIT --revision a/c=COMMIT, or a newer --to"
    pinned = migrate(one(line), "0.6.6", {"a/b": SHA, "a/c": SHA})
    assert pinned.values["speculative"]["model"] == {"name": "a/c", "revision": SHA}
    assert "huggingFace" not in pinned.values


def test_adapters_of_the_hub_need_a_commit() -> None:
    line = "vllm serve a/b --enable-lora --lora-modules one=org/x two=/adapters/two"
    made = migrate(one(line), "0.32.0")
    assert made.values["lora"]["modules"] == [{"servedName": "two", "name": "/adapters/two"}]
    assert made.dropped[0]["argument"] == "--lora-modules one=org/x"
    pinned = migrate(one(line), "0.32.0", {"org/x": SHA})
    assert pinned.values["lora"]["modules"][0] == {"servedName": "one", "name": "org/x", "revision": SHA}


@pytest.mark.parametrize(
    ("flag", "instead"),
    [
        ("--swap-space 16", "preempted"),
        ("--engine-use-ray", "by itself"),
        ("--num-scheduler-steps 8", "--async-scheduling"),
        ("--task embed", "--runner"),
        ("--guided-decoding-backend xgrammar", "--structured-outputs-config"),
    ],
)
def test_a_flag_that_is_gone_says_what_does_its_work(flag: str, instead: str) -> None:
    (note,) = migrate(one(f"vllm serve /m {flag}"), "0.32.0").dropped
    assert note["argument"] == flag
    assert instead in note["instead"]


def test_off_is_spelled_as_the_version_spells_it() -> None:
    line = "vllm serve /m --enable-chunked-prefill False --enable-prefix-caching true"
    assert values(one(line))["engine"]["extraArgs"] == ["--no-enable-chunked-prefill", "--enable-prefix-caching"]
    assert values(one(line), "0.7.3")["engine"]["extraArgs"][1] == "False"


LEGACY = (
    "vllm serve meta-llama/Llama-3.1-70B-Instruct -tp 4 --speculative-model meta-llama/Llama-3.2-1B-Instruct "
    "--num-speculative-tokens 5 --speculative-draft-tensor-parallel-size 1 --use-v2-block-manager --swap-space 4"
)


@pytest.mark.parametrize(
    "line",
    [
        LEGACY,
        "docker run vllm/vllm-openai:v0.8.5 --model Qwen/Qwen2.5-7B-Instruct --max-model-len 8192 "
        f"--speculative-config {NGRAM}",
        "vllm serve Qwen/Qwen3-32B -tp 2 --enable-auto-tool-choice --tool-call-parser hermes --kv-cache-dtype fp8",
    ],
)
def test_what_was_migrated_validates_with_no_more_than_was_said(
    line: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def run(*words: str) -> str:
        with pytest.raises(SystemExit) as stopped:
            main(list(words))
        out, err = capsys.readouterr()
        assert not stopped.value.code, err
        return out

    document = json.loads(run("migrate", "-c", line, "--format", "json"))
    (tmp_path / "values.yaml").write_text(yaml.safe_dump(document["values"]))
    (tmp_path / "all.yaml").write_text(run("render", "--values", str(tmp_path / "values.yaml")))
    findings = json.loads(run("validate", str(tmp_path / "all.yaml"), "--format", "json"))
    said = {"SD705": "engine.model.revision", "SD444": "huggingFace.tokenSecret.name"}
    to_decide = {note["value"] for note in document["decide"]}
    assert {said.get(finding["code"], finding["message"]) for finding in findings} <= to_decide
