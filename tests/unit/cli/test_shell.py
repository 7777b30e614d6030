"""Scripts around the engine: what is known of their variables is put in, as the shell itself would."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from specdec import rules
from specdec.manifests import engines
from specdec.objects import parse
from specdec.shell import resolved

CONFIG = '{"method": "draft_model", "model": "Qwen/Qwen3-0.6B", "num_speculative_tokens": 5}'


def manifest(kind: str = "Pod", env: dict[str, Any] | None = None, **container: Any) -> str:
    variables = [
        {"name": name, **(value if isinstance(value, dict) else {"value": value})}
        for name, value in (env or {}).items()
    ]
    spec = {"containers": [{"name": "a", "image": "vllm/vllm-openai:v0.13.0", "env": variables, **container}]}
    template = {"spec": spec}
    whole: dict[str, Any] = {
        "Pod": template,
        "PodTemplate": {"template": template},
        "JobSet": {"spec": {"replicatedJobs": [{"name": "a", "template": {"spec": {"template": template}}}]}},
    }[kind]
    return yaml.safe_dump({"kind": kind, "metadata": {"name": "a"}, **whole})


def speculation(text: str) -> tuple[str | None, dict[str, Any]]:
    (engine,) = engines(parse(text))
    return engine.args.model, engine.args.speculative.raw if engine.args.speculative else {}


@pytest.mark.parametrize(
    "script",
    [
        f"exec vllm serve Qwen/Qwen3-4B --speculative-config '{CONFIG}'",
        'exec vllm serve "$MODEL" --speculative-config "$SPEC"',
        'exec vllm serve ${MODEL} --speculative-config="${SPEC}"',
        'exec vllm serve ${MODEL:-another} --speculative-config "${SPEC}" ${MORE:-}',
        f"M=Qwen/Qwen3-4B\nexec vllm serve $M --speculative-config '{CONFIG}' 2>&1 | tee /tmp/log",
        f"export M='Qwen/Qwen3-4B'; vllm serve \"$M\" --speculative-config '{CONFIG}' > /tmp/log 2>&1",
        '# don\'t do this\nset -x\nvllm serve $MODEL \\\n  --speculative-config "$SPEC" &\nwait',
        'python3 -m vllm.entrypoints.openai.api_server --model $MODEL --speculative-config "$SPEC" >/dev/null',
        'python3 -m vllm.entrypoints.cli.main serve $MODEL --speculative-config "$SPEC"',
    ],
)
def test_ways_to_write_one_engine(script: str) -> None:
    text = manifest(env={"MODEL": "Qwen/Qwen3-4B", "SPEC": CONFIG}, command=["bash", "-c", script])
    assert speculation(text) == ("Qwen/Qwen3-4B", json.loads(CONFIG))
    assert "SD113" in {finding.code for finding in rules.check(parse(text))}


def test_what_is_not_known_stays_and_is_not_accused() -> None:
    secret = {"valueFrom": {"secretKeyRef": {"name": "a", "key": "b"}}}
    script = 'vllm serve "$MODEL" --max-model-len "$LENGTH"'
    text = manifest(env={"MODEL": secret}, command=["sh", "-c", script])
    (engine,) = engines(parse(text))
    assert engine.args.model == "$MODEL"
    assert "SD104" not in {finding.code for finding in rules.check(parse(text))}


def test_a_variable_with_two_values_is_not_known() -> None:
    script = 'if [ -n "$X" ]; then M=a/b; else M=c/d; fi\nvllm serve $M'
    (engine,) = engines(parse(manifest(env={"M": "e/f"}, command=["bash", "-c", script])))
    assert engine.args.model == "$M"


def test_single_quotes_keep_a_variable_from_being_replaced_which_the_engine_gets_as_text() -> None:
    script = """vllm serve a/b --speculative-config '{"method": "ngram", "num_speculative_tokens": $K}'"""
    text = manifest(env={"K": "3"}, command=["bash", "-c", script])
    (finding,) = [finding for finding in rules.check(parse(text)) if finding.code == "SD105"]
    assert finding.message == "$K stands in single quotes, where the shell leaves it as it is"
    opened = manifest(env={"K": "3"}, command=["bash", "-c", script.replace("$K", "'\"$K\"'")])
    assert not {"SD103", "SD105"} & {finding.code for finding in rules.check(parse(opened))}


@pytest.mark.parametrize(
    ("word", "found"), [("$LENGTH", True), ("${LENGTH}", True), ("$(LENGTH)", False), ("$OTHER", False)]
)
def test_without_a_shell_only_kubernetes_own_form_is_replaced(word: str, found: bool) -> None:
    text = manifest(env={"LENGTH": "8192"}, command=["vllm", "serve"], args=["a/b", "--max-model-len", word])
    assert ("SD105" in {finding.code for finding in rules.check(parse(text))}) is found


@pytest.mark.parametrize("kind", ["Pod", "PodTemplate", "JobSet"])
def test_kinds_that_hold_a_pod(kind: str) -> None:
    text = manifest(kind, command=["vllm", "serve"], args=["a/b", "--speculative-config", CONFIG])
    assert speculation(text)[0] == "a/b"


WORDS = st.text("ab \"'\\{}:,=-", max_size=12)


@given(WORDS, st.sampled_from(['"$V"', '"x${V}y"', "$V", "${V}", "'$V'", '"${V:-d}"', "a$V"]))
def test_bash_sees_the_same_words(value: str, use: str) -> None:
    """The words of the resolved script are those that bash itself makes of the script."""
    script = f"printf '%s\\0' {use} end"
    env = {"V": value, "PATH": os.environ["PATH"]}
    done = subprocess.run(["bash", "-c", script], env=env, capture_output=True, check=True)
    theirs = done.stdout.decode().split("\0")[:-1]
    assert shlex.split(resolved(script, {"V": value}))[2:] == theirs


MAP = yaml.safe_dump(
    {"kind": "ConfigMap", "metadata": {"name": "engine"}, "data": {"MODEL": "a/b", "SPEC": CONFIG, "K": 1}}
)


@pytest.mark.parametrize(
    "container",
    [
        {"envFrom": [{"configMapRef": {"name": "engine"}}], "args": ["$(MODEL)", "--speculative-config=$(SPEC)"]},
        {
            "envFrom": [{"configMapRef": {"name": "engine"}, "prefix": "E_"}],
            "command": ["sh", "-c", 'exec vllm serve $E_MODEL --speculative-config "$E_SPEC"'],
        },
        {
            "env": [
                {"name": "M", "valueFrom": {"configMapKeyRef": {"name": "engine", "key": "MODEL"}}},
                {"name": "S", "valueFrom": {"configMapKeyRef": {"name": "engine", "key": "SPEC"}}},
            ],
            "args": ["--model", "$(M)", "--speculative-config", "$(S)"],
        },
    ],
)
def test_variables_of_a_config_map_that_is_handed_in_too(container: dict[str, Any]) -> None:
    given = {"env": container.pop("env", [])}
    text = manifest(**container)
    document = yaml.safe_load(text)
    document["spec"]["containers"][0] |= given
    alone = yaml.safe_dump(document)
    assert speculation(f"{MAP}---\n{alone}") == ("a/b", json.loads(CONFIG))
    elsewhere = MAP.replace("name: engine", "name: engine\n  namespace: another")
    assert speculation(f"{elsewhere}---\n{alone}")[0] != "a/b"


def test_a_variable_of_its_own_wins_over_a_config_map() -> None:
    text = manifest(env={"MODEL": "c/d"}, envFrom=[{"configMapRef": {"name": "engine"}}], args=["$(MODEL)"])
    assert speculation(f"{MAP}---\n{text}")[0] == "c/d"
