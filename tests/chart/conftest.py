"""The chart rendered by the real helm, as parsed manifests. Renderings are cached: many tests look at the same one."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
CHART = ROOT / "helm" / "vllm-speculative"
SCENARIOS = sorted(path.name.removesuffix("-values.yaml") for path in (CHART / "ci").glob("*-values.yaml"))
ENVIRONMENTS = sorted(path.parent.name for path in (ROOT / "environments").glob("*/values.yaml"))

# A model pair of the Hub on GPUs: what a values file has to say at least, and what most tests vary.
TARGET, DRAFT = "meta-llama/Llama-3.1-8B-Instruct", "meta-llama/Llama-3.2-1B-Instruct"
TARGET_REVISION, DRAFT_REVISION = "a" * 40, "b" * 40


def merged(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    both = dict(base)
    for key, value in over.items():
        deeper = isinstance(value, dict) and isinstance(both.get(key), dict)
        both[key] = merged(both[key], value) if deeper else value
    return both


def pair(**over: Any) -> dict[str, Any]:
    """Values with a draft model, K=4 and the given sections laid over them."""
    base = {
        "engine": {"model": {"name": TARGET, "revision": TARGET_REVISION}},
        "speculative": {
            "method": "draft_model",
            "model": {"name": DRAFT, "revision": DRAFT_REVISION},
            "numTokens": 4,
        },
    }
    return merged(base, over)


def lookup(**over: Any) -> dict[str, Any]:
    """Values with n-gram drafts, which need no second model."""
    base = {
        "engine": {"model": {"name": TARGET, "revision": TARGET_REVISION}},
        "speculative": {"method": "ngram", "numTokens": 3},
    }
    return merged(base, over)


@dataclass(frozen=True)
class Rendering:
    text: str

    @property
    def manifests(self) -> list[dict[str, Any]]:
        return _parsed(self.text)

    def all(self, kind: str) -> list[dict[str, Any]]:
        return [manifest for manifest in self.manifests if manifest["kind"] == kind]

    def one(self, kind: str, name: str) -> dict[str, Any]:
        found = [manifest for manifest in self.all(kind) if manifest["metadata"]["name"] == name]
        assert len(found) == 1, f"{len(found)} of {kind} {name}"
        return found[0]

    def workload(self, name: str = "speculative") -> dict[str, Any]:
        kind = "StatefulSet" if any(m["metadata"]["name"] == name for m in self.all("StatefulSet")) else "Deployment"
        return self.one(kind, name)

    def pod(self, name: str = "speculative") -> dict[str, Any]:
        return self.workload(name)["spec"]["template"]["spec"]

    def container(self, name: str = "speculative") -> dict[str, Any]:
        (container,) = [each for each in self.pod(name)["containers"] if each["name"] in ("engine", "router", "epp")]
        return container

    def args(self, name: str = "speculative") -> list[str]:
        return [unescaped(text) for text in self.container(name)["args"]]

    def flag(self, flag: str, name: str = "speculative") -> str | None:
        args = self.args(name)
        return args[args.index(flag) + 1] if flag in args else None

    def speculation(self, name: str = "speculative") -> dict[str, Any]:
        text = self.flag("--speculative-config", name)
        assert text is not None
        return json.loads(text)

    def env(self, name: str = "speculative") -> dict[str, Any]:
        return {each["name"]: each.get("value", each.get("valueFrom")) for each in self.container(name)["env"]}

    def engines(self) -> list[str]:
        workloads = self.all("StatefulSet") + self.all("Deployment")
        component = "app.kubernetes.io/component"
        return [w["metadata"]["name"] for w in workloads if w["metadata"]["labels"][component] == "engine"]


@cache
def _parsed(text: str) -> list[dict[str, Any]]:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return [document for document in yaml.load_all(text, Loader=loader) if document]


def unescaped(text: str) -> str:
    """What the container gets: Kubernetes expands $(NAME) and turns $$ into $."""
    out, i = "", 0
    while i < len(text):
        if text[i] == "$" and text[i + 1 : i + 2] in ("$", "("):
            assert text[i + 1] == "$", f"Kubernetes would expand {text[i:]!r}"
            i += 1
        out += text[i]
        i += 1
    return out


@cache
def _template(helm: str, values: str, options: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
    command = [helm, "template", "speculative", str(CHART), "-n", "ai-inference", *options, "--values", "-"]
    return subprocess.run(command, input=values, capture_output=True, text=True, check=False)


@pytest.fixture(scope="session")
def helm() -> str:
    path = shutil.which("helm") or shutil.which("helm", path=str(ROOT / ".tools" / "bin"))
    assert path, "helm is not on PATH: make setup"
    return path


Values = dict[str, Any] | str


def _text(values: Values) -> str:
    """Values as text: a dict, or the name of a scenario or environment."""
    if isinstance(values, dict):
        return json.dumps(values)
    scenario = CHART / "ci" / f"{values}-values.yaml"
    return (scenario if scenario.exists() else ROOT / "environments" / values / "values.yaml").read_text()


@pytest.fixture(scope="session")
def render(helm: str) -> Callable[..., Rendering]:
    def rendered(values: Values, *options: str) -> Rendering:
        done = _template(helm, _text(values), options)
        assert done.returncode == 0, done.stderr
        return Rendering(done.stdout)

    return rendered


@pytest.fixture(scope="session")
def refused(helm: str) -> Callable[..., str]:
    """The message with which the values are refused; a template trace or a rendering fails the test."""

    def message(values: Values, *options: str) -> str:
        done = _template(helm, _text(values), options)
        assert done.returncode != 0, "it renders"
        assert not done.stdout.strip(), "something was rendered too"
        for trace in ("nil pointer", "wrong type", "can't evaluate", "error converting", "reflect"):
            assert trace not in done.stderr, done.stderr
        return done.stderr

    return message


def each_scenario(names: Sequence[str] = tuple(SCENARIOS + ENVIRONMENTS)) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("scenario", names)
