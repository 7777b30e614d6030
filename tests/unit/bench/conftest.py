"""A cluster with both arms of the CPU scenario, whose Jobs end at once with a result as the engine writes it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
from specdec.bench import in_pod
from specdec.bench.arms import arms_of
from specdec.bench.document import Load, Point, Run
from specdec.bench.run import Benchmark
from specdec.deploy import targets
from specdec.manifests import Manifest, parse
from unit.deploy.conftest import NAMESPACE, ApiServer, cluster_of

ROOT = Path(__file__).resolve().parents[3]
LABELS = {"app.kubernetes.io/name": "vllm-speculative", "app.kubernetes.io/instance": "speculative",
          "app.kubernetes.io/component": "engine"}  # fmt: skip
ACCEPTED = (0.8, 0.6, 0.4, 0.2)


def deployed() -> list[Manifest]:
    text = (ROOT / "helm/vllm-speculative/rendered/cpu.yaml").read_text(encoding="utf-8")
    return parse(text, "cpu.yaml")


def result(words: list[str], tpot_s: float, tokens_a_chunk: int = 1) -> dict[str, Any]:
    """The detailed result of `vllm bench serve`: a gap for each chunk after the first."""
    count = int(words[words.index("--num-prompts") + 1])
    tokens = 25
    gaps = [tpot_s * tokens_a_chunk] * ((tokens - 1) // tokens_a_chunk)
    return {
        "date": "20250101-000000", "backend": "openai", "model_id": "/models/target", "num_prompts": count,
        "request_rate": "inf", "max_concurrency": 1, "duration": count * (0.05 + sum(gaps)), "completed": count,
        "failed": 0, "total_input_tokens": 16 * count, "total_output_tokens": tokens * count,
        "input_lens": [16] * count, "output_lens": [tokens] * count, "ttfts": [0.05] * count, "itls": [gaps] * count,
        "generated_texts": ["word " * tokens] * count, "errors": [""] * count, "mean_tpot_ms": tpot_s * 1000,
    }  # fmt: skip


@dataclass
class EngineState:
    """What one engine does. A test changes what it is about."""

    tpot: float
    speculates: bool
    generated: int = 0
    steps: int = 0
    restarts: int = 0
    model: str = "target"
    down: bool = False
    needs_key: bool = False
    # Tokens that others ask for between any two looks at the counters.
    others: int = 0

    def metrics(self) -> str:
        page = [f"vllm:generation_tokens_total {self.generated}"]
        if self.speculates:
            page += [f"vllm:spec_decode_num_drafts_total {self.steps}",
                     f"vllm:spec_decode_num_draft_tokens_total {4 * self.steps}",
                     f"vllm:spec_decode_num_accepted_tokens_total {2 * self.steps}"]  # fmt: skip
            page += [f'vllm:spec_decode_num_accepted_tokens_per_pos_total{{position="{place}"}} {share * self.steps}'
                     for place, share in enumerate(ACCEPTED)]  # fmt: skip
        return "\n".join(page)


@dataclass
class Bench(ApiServer):
    """`change`: what a test does to a result before it is logged; `jobs`: engine and arguments of each, in order."""

    engines: dict[str, EngineState] = field(default_factory=dict)
    jobs: list[tuple[str, list[str]]] = field(default_factory=list)
    bodies: list[dict[str, Any]] = field(default_factory=list)
    change: Callable[[str, int, dict[str, Any]], Any] = lambda _engine, _number, _result: None
    log: Callable[[list[str]], list[str]] = lambda lines: lines
    # Jobs that never end: what a test makes of one's pod.
    stuck: Callable[[str], dict[str, Any] | None] | None = None

    def __post_init__(self) -> None:
        super().__init__()
        self.put(f"/api/v1/namespaces/{NAMESPACE}", {"status": {"phase": "Active"}})
        for name, state in self.engines.items():
            self.pod(name, state)

    def pod(self, name: str, state: EngineState) -> None:
        metadata = {"uid": name, "labels": {**LABELS, "vllm-speculative/engine": name}}
        status = {"containerStatuses": [{"name": "engine", "restartCount": state.restarts}]}
        self.add("pods", f"{name}-0", {"metadata": metadata, "status": status})

    def on_get(self, path: str, query: httpx.QueryParams, request: httpx.Request) -> httpx.Response:
        for name, state in self.engines.items():
            if f"/pods/http:{name}-0:8000/proxy/metrics" in path:
                state.generated += state.others
                return httpx.Response(200, text=state.metrics())
            if f"/services/http:{name}:8000/proxy/v1/models" in path:
                if state.needs_key:
                    return httpx.Response(401, json={"error": "Unauthorized"})
                if state.down:
                    return httpx.Response(503, json={"message": "no endpoints available for service"})
                return httpx.Response(200, json={"data": [{"id": state.model}]})
        return super().on_get(path, query, request)

    def on_post(self, path: str, query: httpx.QueryParams, request: httpx.Request) -> httpx.Response:
        answer = super().on_post(path, query, request)
        body = json.loads(request.content)
        if body["kind"] == "Job":
            self.finish(path, body)
        return answer

    def finish(self, path: str, body: dict[str, Any]) -> None:
        name, container = body["metadata"]["name"], body["spec"]["template"]["spec"]["containers"][0]
        if self.stuck:
            if pod := self.stuck(name):
                self.add("pods", f"{name}-x", {"metadata": {"labels": {"job-name": name}}, **pod})
            return
        words = container["args"]
        engine = words[words.index("--base-url") + 1].removeprefix("http://").removesuffix(":8000")
        state = self.engines[engine]
        self.jobs.append((engine, words))
        self.bodies.append(body)
        found = result(words, state.tpot, 3 if state.speculates else 1)
        state.generated += found["total_output_tokens"]
        state.steps += 8 * found["completed"] if state.speculates else 0
        said = self.change(engine, len(self.jobs), found)
        lines = said if isinstance(said, list) else ["Starting initial run", *self.log(in_pod.pack(found))]
        status = {"failed": 1} if isinstance(said, list) else {"succeeded": 1}
        self.put(f"{path}/{name}", {**body, "status": status})
        self.add("pods", f"{name}-x", {"metadata": {"labels": {"job-name": name}}})
        self.logs[f"{name}-x", "bench", False] = "\n".join(lines)


@pytest.fixture
def api() -> Bench:
    """Speculation gives 20 ms a token, the baseline 40 ms."""
    return Bench(engines={"speculative": EngineState(0.020, True), "speculative-baseline": EngineState(0.040, False)})


@pytest.fixture
def make(api: Bench, tmp_path: Path) -> Callable[..., Benchmark]:
    """A benchmark of the fake cluster; keywords change its Run."""

    def build(**changes: Any) -> Benchmark:
        engines = arms_of(targets.of(deployed()))
        run = Run(
            environment="local", release="speculative", namespace=NAMESPACE, created="2025-01-01T00:00:00+00:00",
            load=Load(input_len=16, output_len=25, num_prompts=10), points=[Point(concurrency=1)],
            versions={"vLLM": "0.32.0"}, values_sha256={}, manifests_sha256="0" * 64, target="/models/target",
            engines=[engine.name for engine in engines], repeats=3,
        )  # fmt: skip
        return Benchmark(cluster_of(api), tmp_path / "run", run.model_copy(update=changes), engines, None, pause=0)

    return build
