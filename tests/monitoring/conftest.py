"""The chart's rules as a Prometheus gets them, and promtool to try them with."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
CHART = ROOT / "helm" / "vllm-speculative"
TOOLS = os.pathsep.join([os.environ["PATH"], str(ROOT / ".tools" / "bin")])
# Today's names, those between, and the first version that the chart knows.
VERSIONS = ("0.32.0", "0.10.2", "0.6.3")


def merged(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    both = dict(base)
    for key, value in over.items():
        deeper = isinstance(value, dict) and isinstance(both.get(key), dict)
        both[key] = merged(both[key], value) if deeper else value
    return both


def values_of(version: str, over: dict[str, Any]) -> dict[str, Any]:
    """An n-gram engine of the version with K=3, its rules in a ConfigMap, and `over` laid over it."""
    base = {
        "engine": {"version": version, "model": {"name": "meta-llama/Llama-3.1-8B-Instruct", "revision": "a" * 40}},
        "speculative": {"method": "ngram", "numTokens": 3, "promptLookup": {"min": 2, "max": 4}},
        "monitoring": {"rules": {"kind": "configMap"}},
    }
    return merged(base, over)


@cache
def _rendered(values: str) -> str:
    helm = shutil.which("helm", path=TOOLS)
    assert helm, "helm is not on PATH: make setup"
    command = [helm, "template", "speculative", str(CHART), "-n", "ai-inference", "--values", "-"]
    done = subprocess.run(command, input=values, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@cache
def _parsed(text: str) -> list[dict[str, Any]]:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return [each for each in yaml.load_all(text, Loader=loader) if each]


def manifests(values: dict[str, Any]) -> list[dict[str, Any]]:
    return _parsed(_rendered(json.dumps(values)))


def rule_files(values: dict[str, Any]) -> dict[str, str]:
    """Rule files by engine, out of the ConfigMap."""
    (config,) = [each for each in manifests(values) if each["metadata"]["name"] == "speculative-rules"]
    return config["data"]


def rules(text: str) -> list[dict[str, Any]]:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return [rule for group in yaml.load(text, Loader=loader)["groups"] for rule in group["rules"]]


@pytest.fixture(scope="session")
def promtool() -> str:
    path = shutil.which("promtool", path=TOOLS)
    if not path:
        pytest.skip("promtool is not on PATH: make setup, or apt-get install prometheus")
    return path
