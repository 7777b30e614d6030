"""The kubeconfig's credentials reach the API server, and errors name the cluster."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest
from specdec.deploy.cluster import ApiError, Cluster, Unreachable, connect
from specdec.deploy.endpoint import EndpointError
from specdec.errors import SpecdecError

from .conftest import ApiServer


class Recorder(BaseHTTPRequestHandler):
    seen: list[tuple[str, str | None]]
    page = b'{"items": []}'

    def do_GET(self) -> None:
        self.seen.append((self.path, self.headers.get("Authorization")))
        self.send_response(200)
        self.send_header("Content-Length", str(len(self.page)))
        self.end_headers()
        self.wfile.write(self.page)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[tuple[str, type[Recorder]]]:
    handler = type("Handler", (Recorder,), {"seen": []})
    running = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    yield f"http://127.0.0.1:{running.server_address[1]}", handler
    running.shutdown()
    running.server_close()


def kubeconfig(folder: Path, server: str, user: dict[str, Any]) -> Path:
    file = folder / "config"
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": server}}],
        "users": [{"name": "u", "user": user}],
        "contexts": [{"name": "main", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "main",
    }
    file.write_text(json.dumps(document))
    return file


def test_a_token_of_the_kubeconfig_is_sent(tmp_path: Path, server: tuple[str, type[Recorder]]) -> None:
    url, handler = server
    connect("ns", kubeconfig=kubeconfig(tmp_path, url, {"token": "t0ken"})).pods({"a": "b"})
    assert handler.seen == [("/api/v1/namespaces/ns/pods?labelSelector=a%3Db", "Bearer t0ken")]


def test_a_clouds_login_plugin_is_asked_for_the_token(tmp_path: Path, server: tuple[str, type[Recorder]]) -> None:
    credential = {
        "apiVersion": "client.authentication.k8s.io/v1beta1",
        "kind": "ExecCredential",
        "status": {"token": "from-plugin", "expirationTimestamp": "2999-01-01T00:00:00Z"},
    }
    plugin = {
        "apiVersion": "client.authentication.k8s.io/v1beta1",
        "command": sys.executable,
        "args": ["-c", f"print({json.dumps(json.dumps(credential))})"],
        "interactiveMode": "Never",
    }
    url, handler = server
    connect("ns", kubeconfig=kubeconfig(tmp_path, url, {"exec": plugin})).get("/version")
    assert handler.seen == [("/version", "Bearer from-plugin")]


@pytest.mark.parametrize("text", ["{", "- a\n- b\n", ""], ids=["broken", "a list", "empty"])
def test_a_kubeconfig_that_is_none_is_bad_input(tmp_path: Path, text: str) -> None:
    file = tmp_path / "config"
    file.write_text(text)
    with pytest.raises(SpecdecError, match="no cluster to talk to") as failed:
        connect("ns", kubeconfig=file)
    assert failed.value.exit_code == 2


def test_an_unknown_context_is_named(tmp_path: Path) -> None:
    with pytest.raises(SpecdecError, match="prod-eu") as failed:
        connect("ns", kubeconfig=kubeconfig(tmp_path, "http://x.test", {}), context="prod-eu")
    assert "--context" in str(failed.value.fix)


def test_a_web_server_is_not_taken_for_a_cluster(tmp_path: Path, server: tuple[str, type[Recorder]]) -> None:
    url, handler = server
    handler.page = b"<html>It works!</html>"
    with pytest.raises(Unreachable, match="no Kubernetes API server"):
        connect("ns", kubeconfig=kubeconfig(tmp_path, url, {})).get("/version")


def test_a_refusal_keeps_the_api_servers_words(api: ApiServer, cluster: Cluster) -> None:
    api.refusals["GET", "/pods"] = (403, 'pods is forbidden: User "ada" cannot list resource "pods"')
    with pytest.raises(ApiError, match='User "ada" cannot list') as refused:
        cluster.pods({"a": "b"})
    assert refused.value.status == 403


def test_a_service_without_pods_is_said_in_kubernetes_words(api: ApiServer, cluster: Cluster) -> None:
    words = 'no endpoints available for service "http:speculative:8000"'
    api.refusals["GET", "/proxy/health"] = (503, words)
    with pytest.raises(EndpointError, match="no endpoints available"):
        cluster.service("speculative").get("/health")


def test_services_and_pods_are_reached_through_the_api_server(api: ApiServer, cluster: Cluster) -> None:
    for endpoint in (cluster.service("speculative-router", 8000), cluster.pod("speculative-0", 8001)):
        with pytest.raises(EndpointError):
            endpoint.get("/health")
    assert [path for _, path in api.requests] == [
        "/api/v1/namespaces/ai-inference/services/http:speculative-router:8000/proxy/health",
        "/api/v1/namespaces/ai-inference/pods/http:speculative-0:8001/proxy/health",
    ]


def test_the_clusters_clock_is_taken_from_its_answers() -> None:
    far = httpx.MockTransport(lambda _: httpx.Response(200, json={}, headers={"Date": "Tue, 01 Jan 2030 00:00:00 GMT"}))
    cluster = Cluster(httpx.Client(transport=far, base_url="https://c.test"), "ns")
    cluster.get("/version")
    assert cluster.now() == pytest.approx(1893456000, abs=60)
