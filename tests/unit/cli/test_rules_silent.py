"""Manifests that Kubernetes takes without a word and that do not do what their author meant."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from specdec import rules
from specdec.manifests import engines
from specdec.objects import parse
from specdec.rules.examples import manifests_of

CONFIG = '{"method": "ngram", "num_speculative_tokens": 3}'


def pod(**container: Any) -> str:
    spec = {"containers": [{"name": "a", "image": "vllm/vllm-openai:v0.32.0", **container}]}
    return yaml.safe_dump({"kind": "Pod", "metadata": {"name": "a"}, "spec": spec}, width=1000)


def told(text: str, code: str) -> list[str]:
    return [f"{finding.path}: {finding.message}" for finding in rules.check(parse(text)) if finding.code == code]


@pytest.mark.parametrize(
    ("container", "place"),
    [
        ({"command": ["vllm serve a/b --max-modl-len 8192 --port 8000"]}, "spec.containers[0].command[0]"),
        ({"command": ["vllm", "serve"], "args": ["a/b --max-modl-len 8192"]}, "spec.containers[0].args[0]"),
        ({"args": ["a/b --max-modl-len 8192", "--port", "8000"]}, "spec.containers[0].args[0]"),
        (
            {"command": ["python3 -m vllm.entrypoints.openai.api_server --model a/b --max-modl-len=1"]},
            "spec.containers[0].command[0]",
        ),
    ],
)
def test_a_command_line_in_one_element_is_said_and_read_all_the_same(container: dict[str, Any], place: str) -> None:
    text = pod(**container)
    assert any("is one element with" in message for message in told(text, "SD104"))
    assert [message.partition(":")[0] for message in told(text, "SD101")] == [place]
    (engine,) = engines(parse(text))
    assert engine.args.model == "a/b"


@pytest.mark.parametrize(
    "container",
    [
        {"command": ["vllm", "serve"], "args": ["/models/my model", "--port", "8000"]},
        {"command": ["vllm", "serve", "a/b"], "args": ["--speculative-config", CONFIG]},
        {"command": ["sh", "-c", "exec vllm serve a/b --port 8000"]},
    ],
)
def test_elements_that_may_hold_spaces(container: dict[str, Any]) -> None:
    assert told(pod(**container), "SD104") == []


def test_flags_after_the_joined_element_keep_their_own_place() -> None:
    text = pod(command=["vllm", "serve"], args=["a/b --max-model-len 8192", "--port", "8000", "--max-modl-len=1"])
    assert told(text, "SD101")[0].startswith("spec.containers[0].args[3]:")


def test_a_field_that_stands_twice_in_the_json() -> None:
    twice = '{"method": "ngram", "num_speculative_tokens": 3, "num_speculative_tokens": 5}'
    (message,) = told(pod(args=["a/b", "--speculative-config", twice]), "SD109")
    assert message.endswith("--speculative-config has num_speculative_tokens twice; the last one holds")
    assert told(pod(args=["a/b", "--speculative-config", CONFIG]), "SD109") == []


@pytest.mark.parametrize(
    ("probe", "found"),
    [
        ("httpGet: {path: /health, port: 8000}", False),
        ("httpGet: {path: /v1/models, port: 8000}", True),
        ("httpGet: {path: /metrics, port: http}", True),
        ("httpGet: null, exec: {command: [pgrep, -f, vllm]}", True),
        ('httpGet: null, exec: {command: [sh, -c, "kill -0 1"]}', True),
        ('httpGet: null, exec: {command: [curl, -sf, "http://localhost:8000/health"]}', False),
        ("httpGet: null, exec: {command: [python3, /scripts/live.py]}", False),
        ("httpGet: null, tcpSocket: {port: 8000}", True),
    ],
)
def test_a_liveness_probe_that_a_dead_engine_passes(probe: str, found: bool) -> None:
    example = f"containers:\n  - livenessProbe: {{{probe}}}\n"
    assert ("SD404" in {finding.code for finding in rules.check(manifests_of(example))}) is found


@pytest.mark.parametrize(
    ("name", "args", "found"),
    [
        ("SPECULATIVE_CONFIG", [], True),
        ("OPTION_SPECULATIVE_DRAFT_MODEL", [], True),
        ("VLLM_SPECULATIVE_CONFIG", [], True),
        ("SPECULATIVE_CONFIG", ["--speculative-config", "$(SPECULATIVE_CONFIG)"], False),
        ("SPECULATIVE_CONFIG", ["--speculative-config", CONFIG], False),
        ("SPECIAL_TOKENS", [], False),
    ],
)
def test_speculation_that_a_variable_asks_for_and_nobody_reads(name: str, args: list[str], found: bool) -> None:
    text = pod(args=["a/b", *args], env=[{"name": name, "value": CONFIG}])
    assert bool(told(text, "SD141")) is found
