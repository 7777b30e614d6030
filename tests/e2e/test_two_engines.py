"""Two engines of different names in one release, each with its own draft and behind a router of its own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from machine import CHART, RELEASE, VALUES, helm
from specdec import local
from specdec.deploy.cluster import Cluster
from specdec.deploy.endpoint import EndpointError

DRAFTS = {"chat": (local.DRAFT, 4), "code": (local.DISAGREEING_DRAFT, 2)}
PROMPT = {"prompt": "A draft model proposes tokens and", "max_tokens": 32, "temperature": 0, "ignore_eos": True}


def test_each_engine_answers_behind_its_own_router_with_its_own_draft(cluster: Cluster, tmp_path: Path) -> None:
    values = tmp_path / "engines.yaml"
    engines = {
        name: {
            "engine": {"model": {"servedName": name}},
            "speculative": {"model": {"name": draft}, "numTokens": tokens},
        }
        for name, (draft, tokens) in DRAFTS.items()
    }
    router = {"replicas": 1, "entries": {name: [name] for name in DRAFTS}}
    values.write_text(json.dumps({"baseline": {"enabled": False}, "engines": engines, "router": router}))
    extra = local.values_file()
    files = ["-f", str(VALUES), *(["-f", str(extra)] if extra else []), "-f", str(values)]
    helm("upgrade", "--install", RELEASE, str(CHART), *files, "--wait", "--timeout", "10m")

    for name, (draft, tokens) in DRAFTS.items():
        entry = cluster.service(f"{RELEASE}-{name}-router")
        assert [model["id"] for model in entry.models()] == [name]
        before = drafts(cluster, name)
        answer = entry.post("/v1/completions", {"model": name, **PROMPT})
        assert answer["usage"]["completion_tokens"] == PROMPT["max_tokens"]
        assert drafts(cluster, name) > before, "it drafts"
        assert speculation(cluster, name) == {"model": draft, "num_speculative_tokens": tokens, "method": "draft_model"}
        other = next(iter(set(DRAFTS) - {name}))
        with pytest.raises(EndpointError, match="HTTP 4"):
            entry.post("/v1/completions", {"model": other, **PROMPT})


def engine_pod(cluster: Cluster, name: str) -> str:
    (pod,) = cluster.pods({"app.kubernetes.io/instance": RELEASE, "vllm-speculative/engine": name})
    return str(pod["metadata"]["name"])


def drafts(cluster: Cluster, name: str) -> float:
    """The engine's own count of drafts."""
    metrics = cluster.pod(engine_pod(cluster, name)).get("/metrics").text.splitlines()
    return sum(float(line.split()[-1]) for line in metrics if line.startswith("vllm:spec_decode_num_drafts_total"))


def speculation(cluster: Cluster, name: str) -> dict[str, object]:
    (pod,) = cluster.pods({"app.kubernetes.io/instance": RELEASE, "vllm-speculative/engine": name})
    arguments = pod["spec"]["containers"][0]["args"]
    return dict(json.loads(arguments[arguments.index("--speculative-config") + 1]))
