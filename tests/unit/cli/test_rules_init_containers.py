"""Containers that run before the engine, and Jobs that fetch for it, are read like the engine's own."""

from __future__ import annotations

import pytest
from specdec import rules
from specdec.rules.examples import manifests_of

TOKEN = "{name: HF_TOKEN, valueFrom: {secretKeyRef: {name: hub, key: token}}}"
POD = """
initContainers:
  - name: fetch
    image: %s
    command: %s
    env: [{name: HF_HOME, value: /models}%s]
    securityContext: %s
    volumeMounts: [{name: models, mountPath: /models}]
containers:
  - args: [/models/target, --shutdown-timeout=60]
    env: [{name: HF_HOME, value: /models}, {name: HF_HUB_OFFLINE, value: "1"}]
    volumeMounts: [{name: shm, mountPath: /dev/shm}, {name: models, mountPath: /models}]
volumes:
  - {name: shm, emptyDir: {medium: Memory, sizeLimit: 16Gi}}
  - {name: models, emptyDir: {sizeLimit: 100Gi}}
"""
LLAMA = "[hf, download, meta-llama/Llama-3.1-8B-Instruct, --local-dir, /models/target]"
JOB = """
apiVersion: batch/v1
kind: Job
metadata: {name: fetch}
spec:
  template:
    spec:
      restartPolicy: Never
      containers:
        - name: fetch
          image: python:3.12
          command: [sh, -c, "%s"]
          env: [%s]
"""


def pod(command: str = LLAMA, env: str = "", image: str = "registry.example/hub:1", context: str = "{}") -> str:
    return POD % (image, command, f", {env}" if env else "", context)


def codes(text: str) -> set[str]:
    return {finding.code for finding in rules.check(manifests_of(text))}


@pytest.mark.parametrize(
    "command",
    [
        LLAMA,
        '[sh, -c, "huggingface-cli download meta-llama/Llama-3.1-8B-Instruct --local-dir /models/target"]',
        "[python3, fetch.py, google/gemma-3-27b-it, main]",
        "[python3, fetch.py, CohereLabs/c4ai-command-r-v01, main]",
    ],
)
def test_a_prefetch_of_a_gated_model_without_a_token_is_seen_though_the_engine_is_offline(command: str) -> None:
    (finding,) = [found for found in rules.check(manifests_of(pod(command))) if found.code == "SD444"]
    assert "is gated, and container fetch has no token" in finding.message
    assert finding.path == "spec.template.spec.initContainers[0].env"


@pytest.mark.parametrize(
    ("command", "env"),
    [
        (LLAMA, TOKEN),
        ("[hf, download, Qwen/Qwen3-8B]", ""),
        ("[hf, download, google/gemma-4-31B-it]", ""),
        ("[cp, -r, /claim/target, /models/target]", ""),
        ("[python3, await_models.py, meta-llama/Llama-3.1-8B-Instruct]", ""),
    ],
)
def test_a_prefetch_with_a_token_or_of_an_open_model_is_fine(command: str, env: str) -> None:
    assert "SD444" not in codes(pod(command, env))


@pytest.mark.parametrize(
    ("script", "env", "found"),
    [
        ("hf download meta-llama/Llama-3.1-8B", "", True),
        ("hf download meta-llama/Llama-3.1-8B", TOKEN, False),
        ("hf download Qwen/Qwen3-8B", "", False),
        ("echo the engine serves meta-llama/Llama-3.1-8B", "", False),
    ],
)
def test_a_job_that_fetches(script: str, env: str, found: bool) -> None:
    assert ("SD444" in codes(JOB % (script, env))) is found


def test_a_token_in_the_arguments_of_whatever_downloads() -> None:
    token = "hf_" + "a" * 34
    assert "SD702" in codes(pod(f"[hf, download, meta-llama/Llama-3.1-8B, --token, {token}]"))
    assert "SD702" in codes(JOB % (f"hf download meta-llama/Llama-3.1-8B --token {token}", ""))
    assert "SD702" not in codes(JOB % ("hf download meta-llama/Llama-3.1-8B --token $HF_TOKEN", TOKEN))


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        (pod(context="{privileged: true}"), "SD706"),
        (pod(context="{runAsUser: 0}"), "SD703"),
        (pod(image="busybox"), "SD704"),
        (pod(image="registry.example/hub:latest"), "SD704"),
    ],
)
def test_rights_and_image_of_an_init_container(wrong: str, code: str) -> None:
    assert code in codes(wrong)
    assert code not in codes(pod())
