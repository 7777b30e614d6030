"""A small engine on loopback that speaks vLLM's API, and an API server that is a dict: what the deploy talks to."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx
import pytest
from specdec.deploy.cluster import Cluster

NAMESPACE = "ai-inference"


@dataclass
class Engine:
    """How the fake engine behaves. A test changes what it is about and leaves the rest."""

    model: str = "org/target"
    max_model_len: int = 2048
    speculates: bool = True
    drafts: int = 100
    accept: tuple[float, ...] = (0.8, 0.5, 0.3, 0.2)
    dies_beyond: int | None = None
    cuts_prompts_at: int | None = None
    json_answer: str = '{"colour": "red", "count": 2, "done": true}'
    json_finish: str = "stop"
    has_health: bool = True
    chat_error: str | None = None
    cut_stream: bool = False
    dead: bool = False
    generated: int = 0
    drafted_steps: int = 0
    seen: list[dict[str, Any]] = field(default_factory=list)

    def generate(self, tokens: int) -> None:
        self.generated += tokens
        if self.speculates:
            self.drafted_steps += 10

    def metrics(self) -> str:
        lines = [f'vllm:generation_tokens_total{{engine="0",model_name="{self.model}"}} {float(self.generated)}']
        if self.speculates:
            steps, accepted = self.drafted_steps, [self.drafted_steps * rate for rate in self.accept]
            label = f'engine="0",model_name="{self.model}"'
            lines += [
                "# TYPE vllm:spec_decode_num_drafts counter",
                f"vllm:spec_decode_num_drafts_total{{{label}}} {float(steps)}",
                f"vllm:spec_decode_num_drafts_created{{{label}}} 1.7e+09",
                f"vllm:spec_decode_num_draft_tokens_total{{{label}}} {float(steps * len(self.accept))}",
                f"vllm:spec_decode_num_accepted_tokens_total{{{label}}} {float(sum(accepted))}",
            ]
            lines += [
                f'vllm:spec_decode_num_accepted_tokens_per_pos_total{{{label},position="{place}"}} {count}'
                for place, count in enumerate(accepted)
            ]
        return "\n".join(lines) + "\n"


class Handler(BaseHTTPRequestHandler):
    engine: Engine
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        pass

    def answer(self, status: int, body: object) -> None:
        data = body.encode() if isinstance(body, str) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self) -> None:
        engine = self.engine
        if engine.dead:
            self.answer(500, {"error": {"message": "EngineCore encountered an issue"}})
        elif self.path == "/health" and engine.has_health:
            self.answer(200, "")
        elif self.path == "/v1/models":
            self.answer(200, {"data": [{"id": engine.model, "max_model_len": engine.max_model_len}]})
        elif self.path == "/metrics":
            self.answer(200, engine.metrics())
        else:
            self.answer(404, {"detail": "Not Found"})

    def do_POST(self) -> None:
        engine, body = self.engine, json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        engine.seen.append(body)
        if engine.dead:
            return self.answer(500, {"error": {"message": "EngineCore encountered an issue"}})
        if body["model"] != engine.model:
            return self.answer(404, {"error": {"message": f"The model `{body['model']}` does not exist."}})
        chat = self.path.endswith("/chat/completions")
        if chat and engine.chat_error:
            return self.answer(400, {"error": {"message": engine.chat_error}})
        prompt = body["messages"][0]["content"] if chat else body["prompt"]
        length = len(prompt.split())
        if length + body["max_tokens"] > engine.max_model_len:
            return self.answer(
                400, {"error": {"message": f"This model's maximum context length is {engine.max_model_len}"}}
            )
        if engine.dies_beyond and length > engine.dies_beyond:
            engine.dead = True
            return self.answer(500, {"error": {"message": "EngineCore encountered an issue"}})
        engine.generate(body["max_tokens"])
        length = min(length, engine.cuts_prompts_at or length)
        usage = {"prompt_tokens": length, "completion_tokens": body["max_tokens"]}
        if body.get("stream"):
            return self.stream(body["max_tokens"], chat)
        text = engine.json_answer if "response_format" in body else "word " * body["max_tokens"]
        finish = engine.json_finish if "response_format" in body else "length"
        choice = {"message": {"content": text}} if chat else {"text": text}
        return self.answer(200, {"choices": [{**choice, "finish_reason": finish}], "usage": usage})

    def stream(self, tokens: int, chat: bool) -> None:
        """One token in the first chunk, then three a chunk, as an engine that accepts two of its draft."""
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        sent = 0
        while sent < tokens:
            sent = min(tokens, sent + (1 if sent == 0 else 3))
            piece = {"delta": {"content": "word "}} if chat else {"text": "word "}
            self.event({"choices": [piece], "usage": {"completion_tokens": sent}})
        if not self.engine.cut_stream:
            self.event({"choices": [], "usage": {"completion_tokens": tokens}})
            self.wfile.write(b"data: [DONE]\n\n")
        self.close_connection = True

    def event(self, body: object) -> None:
        self.wfile.write(f"data: {json.dumps(body)}\n\n".encode())


@dataclass
class Server:
    engine: Engine
    url: str


@pytest.fixture
def serve() -> Iterator[Callable[..., Server]]:
    """Start an engine that behaves as its arguments say; any number of them."""
    running = []

    def start(**behaviour: Any) -> Server:
        engine = Engine(**behaviour)
        handler = type("Handler", (Handler,), {"engine": engine})
        server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        running.append(server)
        return Server(engine, f"http://127.0.0.1:{server.server_address[1]}")

    yield start
    for server in running:
        server.shutdown()
        server.server_close()


RESOURCES = {
    "/api/v1": ["Pod", "Service", "ServiceAccount", "Secret", "ConfigMap", "PersistentVolumeClaim"],
    "/apis/apps/v1": ["StatefulSet", "Deployment"],
    "/apis/policy/v1": ["PodDisruptionBudget"],
}


class ApiServer:
    """Objects by path. Lists are the objects under a path, filtered by label; `refusals` by (method, end of path)."""

    def __init__(self) -> None:
        self.objects: dict[str, dict[str, Any]] = {}
        self.refusals: dict[tuple[str, str], tuple[int, str]] = {}
        self.logs: dict[tuple[str, str, bool], str] = {}
        self.requests: list[tuple[str, str]] = []
        self.down = False
        self.hooks: list[Callable[[httpx.Request], None]] = []
        self.version = 1

    def put(self, path: str, value: dict[str, Any]) -> None:
        self.version += 1
        name = path.rsplit("/", 1)[1]
        metadata = {"name": name, **value.get("metadata", {}), "resourceVersion": str(self.version)}
        self.objects[path] = {**value, "metadata": metadata}

    def add(self, plural: str, name: str, value: dict[str, Any] | None = None, group: str = "/api/v1") -> None:
        self.put(f"{group}/namespaces/{NAMESPACE}/{plural}/{name}", value or {})

    def writes(self) -> list[tuple[str, str]]:
        """Requests that change something: no reads, no dry runs."""
        return [(method, path) for method, path in self.requests if method != "GET" and "dryRun" not in path]

    def __call__(self, request: httpx.Request) -> httpx.Response:
        for hook in self.hooks:
            hook(request)
        if self.down:
            raise httpx.ConnectError("[Errno 111] Connection refused", request=request)
        path, query = request.url.path, request.url.params
        self.requests.append((request.method, path + ("?dryRun" if "dryRun" in query else "")))
        for (method, end), (status, message) in self.refusals.items():
            if request.method == method and path.endswith(end):
                return refusal(status, message)
        if path == "/version":
            return httpx.Response(200, json={"gitVersion": "v1.34.4"})
        if "dryRun" in query:
            return httpx.Response(200, json={})
        if path in RESOURCES:
            kinds = [{"kind": kind, "name": kind.lower() + "s", "namespaced": True} for kind in RESOURCES[path]]
            return httpx.Response(200, json={"resources": kinds})
        return getattr(self, "on_" + request.method.lower())(path, query, request)

    def on_get(self, path: str, query: httpx.QueryParams, _: httpx.Request) -> httpx.Response:
        if path.endswith("/log"):
            pod = path.split("/")[-2]
            return httpx.Response(200, text=self.logs.get((pod, query["container"], "previous" in query), ""))
        if path in self.objects:
            return httpx.Response(200, json=self.objects[path])
        plural = path.rsplit("/", 1)[1]
        found = [
            value
            for key, value in self.objects.items()
            if key.split("/")[-2] == plural and (key.startswith(path + "/") or "/namespaces/" not in path)
        ]
        if found or plural in LISTS:
            return httpx.Response(200, json={"items": [one for one in found if selected(one, query)]})
        return refusal(404, "not found")

    def on_post(self, path: str, _: httpx.QueryParams, request: httpx.Request) -> httpx.Response:
        body = json.loads(request.content)
        target = f"{path}/{body['metadata']['name']}"
        if target in self.objects:
            return refusal(409, "already exists")
        self.put(target, body)
        return httpx.Response(201, json=self.objects[target])

    def on_patch(self, path: str, _: httpx.QueryParams, request: httpx.Request) -> httpx.Response:
        self.put(path, json.loads(request.content))
        return httpx.Response(200, json=self.objects[path])

    def on_put(self, path: str, _: httpx.QueryParams, request: httpx.Request) -> httpx.Response:
        body = json.loads(request.content)
        if path not in self.objects:
            return refusal(404, "not found")
        if body["metadata"].get("resourceVersion") != self.objects[path]["metadata"]["resourceVersion"]:
            return refusal(409, "the object has been modified")
        self.put(path, body)
        return httpx.Response(200, json=self.objects[path])

    def on_delete(self, path: str, _: httpx.QueryParams, request: httpx.Request) -> httpx.Response:
        wanted = json.loads(request.content or b"{}").get("preconditions", {}).get("resourceVersion")
        if path in self.objects and wanted in (None, self.objects[path]["metadata"]["resourceVersion"]):
            del self.objects[path]
            return httpx.Response(200, json={})
        return refusal(409, "conflict")


LISTS = ("pods", "nodes", "events", "storageclasses", "resourcequotas", "replicasets", "persistentvolumeclaims",
         "services", "statefulsets", "deployments", "endpointslices")  # fmt: skip


def refusal(status: int, message: str) -> httpx.Response:
    return httpx.Response(status, json={"kind": "Status", "message": message, "reason": str(status)})


def selected(one: dict[str, Any], query: httpx.QueryParams) -> bool:
    labels = one["metadata"].get("labels", {})
    wanted = dict(part.split("=") for part in query.get("labelSelector", "").split(",") if part)
    about = query.get("fieldSelector", "").removeprefix("involvedObject.name=")
    return wanted.items() <= labels.items() and (not about or one.get("involvedObject", {}).get("name") == about)


@pytest.fixture
def api() -> ApiServer:
    """An empty cluster with the namespace."""
    server = ApiServer()
    server.put(f"/api/v1/namespaces/{NAMESPACE}", {"status": {"phase": "Active"}})
    return server


@pytest.fixture
def cluster(api: ApiServer) -> Cluster:
    return cluster_of(api)


def cluster_of(api: ApiServer) -> Cluster:
    return Cluster(httpx.Client(transport=httpx.MockTransport(api), base_url="https://cluster.test:6443"), NAMESPACE)
