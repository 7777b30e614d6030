"""The commands from end to end, on a cluster that is a dict with real servers behind its proxy; Helm is a stub."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from specdec import cli, helm, rules
from specdec.deploy import live, lock, pipeline, removal
from specdec.deploy.cluster import Cluster
from specdec.deploy.wait import Waiter

from .conftest import NAMESPACE, ApiServer, cluster_of

Start = Callable[..., Any]

SERVICE = """
apiVersion: v1
kind: Service
metadata: {name: NAME, labels: {app.kubernetes.io/component: PART}}
spec: {selector: {app: NAME}, ports: [{name: http, port: 8000, targetPort: http}]}
---
"""
HEADLESS = """
apiVersion: v1
kind: Service
metadata: {name: NAME-headless}
spec: {clusterIP: None, selector: {app: NAME}, ports: [{name: http, port: 8000}]}
---
"""
ENGINE = """
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: NAME, labels: {app.kubernetes.io/instance: speculative}}
spec:
  replicas: 1
  selector: {matchLabels: {app: NAME}}
  template:
    metadata:
      labels: {app: NAME, app.kubernetes.io/instance: speculative, vllm-speculative/engine: NAME}
      annotations: {vllm-speculative/engine-version: 0.32.0}
    spec:
      containers:
        - name: engine
          image: vllm/vllm-openai:v0.32.0
          command: [python3, -m, vllm.entrypoints.openai.api_server]
          args: [--model, org/target, --max-model-len, "2048" EXTRA]
          ports: [{name: http, containerPort: 8000}]
---
"""
SPECULATIVE = (
    """, --speculative-config, '{"method": "draft_model", "model": "org/draft", "num_speculative_tokens": 4}'"""
)


def rendered(speculates: bool = True) -> str:
    engines = ENGINE.replace("EXTRA", SPECULATIVE if speculates else "").replace("NAME", "speculative")
    engines += ENGINE.replace("EXTRA", "").replace("NAME", "speculative-baseline")
    services = [("speculative", "engine"), ("speculative-baseline", "engine"), ("speculative-router", "router")]
    headless = "".join(HEADLESS.replace("NAME", name) for name in ("speculative", "speculative-baseline"))
    return "---\n" + headless + "".join(SERVICE.replace("NAME", n).replace("PART", p) for n, p in services) + engines


class Stage:
    """The cluster, the engines behind its proxy, and what Helm was told."""

    def __init__(self, api: ApiServer, start: Start) -> None:
        self.api = api
        self.manifests = rendered()
        self.engine, self.baseline = start(), start(speculates=False)
        self.applied: list[str] = []
        self.pod_status: dict[str, Any] = {
            "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-11-29T13:00:41Z"}]
        }
        self.installed = False
        self.asked: list[str] = []

    def upstream(self, path: str) -> str:
        return self.baseline.url if "speculative-baseline" in path else self.engine.url

    def __call__(self, request: httpx.Request) -> httpx.Response:
        if "/proxy/" not in request.url.path or self.api.down:
            return self.api(request)
        self.asked.append(request.url.path)
        path = request.url.path.partition("/proxy")[2]
        url = self.upstream(request.url.path) + path
        return httpx.request(request.method, url, content=request.content, headers={"Content-Type": "application/json"})

    def install(self, *_: Any, **__: Any) -> dict[str, Any]:
        self.applied.append("install")
        self.installed = True
        for name in ("speculative", "speculative-baseline"):
            ready = 1 if self.pod_status.get("conditions") else 0
            status = {"observedGeneration": 1, "readyReplicas": ready, "updateRevision": "r", "currentRevision": "r"}
            workload = {
                "kind": "StatefulSet",
                "metadata": {"generation": 1, "labels": {"app.kubernetes.io/instance": "speculative"}},
                "spec": {"replicas": 1, "selector": {"matchLabels": {"app": name}}},
                "status": status,
            }
            self.api.add("statefulsets", name, workload, "/apis/apps/v1")
            labels = {"app": name, "app.kubernetes.io/instance": "speculative", "vllm-speculative/engine": name}
            metadata = {"labels": labels, "creationTimestamp": "2026-11-29T13:00:00Z"}
            self.api.add(
                "pods", f"{name}-0", {"metadata": metadata, "spec": {"nodeName": "n"}, "status": self.pod_status}
            )
            address = {"conditions": {"ready": True}, "targetRef": {"name": f"{name}-0"}}
            endpoints = {"metadata": {"labels": {"kubernetes.io/service-name": name}}, "endpoints": [address]}
            self.api.add("endpointslices", name, endpoints, "/apis/discovery.k8s.io/v1")
        return {"version": 3, "info": {"status": "deployed"}}

    def status(self, *_: Any, **__: Any) -> dict[str, Any] | None:
        return {"version": 3, "info": {"status": "deployed"}} if self.installed else None

    def uninstall(self, *_: Any, **__: Any) -> bool:
        self.applied.append("uninstall")
        for path in [path for path in self.api.objects if path.split("/")[-2] in ("pods", "statefulsets")]:
            del self.api.objects[path]
        return self.installed


@pytest.fixture
def stage(api: ApiServer, serve: Start, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Stage:
    stage = Stage(api, serve)
    node = {"status": {"allocatable": {"cpu": "8", "memory": "64Gi", "pods": "110"}}, "spec": {}}
    api.put("/api/v1/nodes/n", node)
    (tmp_path / "environments" / "staging").mkdir(parents=True)
    (tmp_path / "environments" / "staging" / "values.yaml").write_text("{}\n")
    monkeypatch.setenv("SPECDEC_ENVIRONMENTS", str(tmp_path / "environments"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    def connect(*_: Any, **__: Any) -> Cluster:
        cluster = cluster_of(api)
        cluster.client = httpx.Client(transport=httpx.MockTransport(stage), base_url="https://cluster.test:6443")
        return cluster

    for module in (pipeline, live):
        monkeypatch.setattr(module, "connect", connect)
    monkeypatch.setattr("specdec.deploy.cluster.connect", connect)
    monkeypatch.setattr(helm, "render", lambda *_, **__: stage.manifests)
    monkeypatch.setattr(helm, "manifest", lambda *_, **__: stage.manifests if stage.installed else None)
    monkeypatch.setattr(helm, "install_or_upgrade", stage.install)
    monkeypatch.setattr(helm, "release_status", stage.status)
    monkeypatch.setattr(helm, "uninstall", stage.uninstall)
    monkeypatch.setattr(rules, "check", lambda *_: [])
    return stage


def command(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as stop:
        cli.main(list(arguments))
    captured = capsys.readouterr()
    return int(stop.value.code or 0), captured.out, captured.err


def test_a_deploy_ends_with_one_document_of_all_that_it_saw(stage: Stage, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = command(capsys, "deploy", "staging", "--measure", "--format", "json")
    result = json.loads(out)
    assert (code, err) == (0, "")
    assert (result["ok"], result["revision"]) == (True, 3)
    assert [step["name"] for step in result["steps"]] == ["preflight", "helm", "wait", "smoke", "measure"]
    assert {pod["name"]: pod["seconds_to_ready"] for pod in result["pods"]} == {
        "speculative-0": 41,
        "speculative-baseline-0": 41,
    }
    assert result["answer"]["through"] == "Service speculative-router"
    asked = {path.split("/proxy")[0].split("/")[-1] for path in stage.asked if path.endswith("/v1/completions")}
    assert asked == {"http:speculative-router:8000", "http:speculative:8000", "http:speculative-baseline:8000"}
    assert result["measurement"]["acceptance_by_position"] == pytest.approx([0.8, 0.5, 0.3, 0.2])
    assert result["measurement"]["ratio"] > 0
    assert not [path for path in stage.api.objects if "/leases/" in path]


def test_the_table_holds_the_figures_and_the_progress_goes_to_stderr(
    stage: Stage, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = command(capsys, "deploy", "staging", "--measure", "--repeats", "2")
    assert code == 0
    assert stage.applied == ["install"]
    for text in ("Ready after", "41 s", "0.80 0.50 0.30 0.20", "time per output token", "median of 2 repeats"):
        assert text in out
    assert "✓ preflight" in err
    assert "✓ wait" in err


def test_preflight_errors_exit_2_and_helm_is_never_called(stage: Stage, capsys: pytest.CaptureFixture[str]) -> None:
    del stage.api.objects[f"/api/v1/namespaces/{NAMESPACE}"]
    stage.api.put("/api/v1/nodes/n", {"status": {"allocatable": {}}, "spec": {"unschedulable": True}})
    code, _, err = command(capsys, "deploy", "staging", "--format", "json")
    error = json.loads(err)["error"]
    assert code == 2
    assert {problem["code"] for problem in error["problems"]} == {"namespace", "node"}
    assert stage.applied == []
    assert stage.api.writes() == []


def test_a_cluster_that_is_not_there_exits_2_with_its_address(stage: Stage, capsys: pytest.CaptureFixture[str]) -> None:
    stage.api.down = True
    code, _, err = command(capsys, "deploy", "staging")
    assert code == 2
    assert "https://cluster.test:6443" in err
    assert "kubectl cluster-info" in err
    assert stage.applied == []


def test_the_namespace_is_created_when_asked_for(stage: Stage, capsys: pytest.CaptureFixture[str]) -> None:
    del stage.api.objects[f"/api/v1/namespaces/{NAMESPACE}"]
    code, _, _ = command(capsys, "deploy", "staging", "--create-namespace", "--no-smoke")
    assert code == 0
    assert f"/api/v1/namespaces/{NAMESPACE}" in stage.api.objects


def test_a_pod_that_fails_exits_1_with_its_reason(stage: Stage, capsys: pytest.CaptureFixture[str]) -> None:
    ended = {"terminated": {"reason": "OOMKilled", "exitCode": 137}}
    stage.pod_status = {"containerStatuses": [{"name": "engine", "state": ended, "restartCount": 0}]}
    code, _, err = command(capsys, "deploy", "staging")
    assert code == 1
    assert "OOMKilled" in err
    assert "✗ wait" in err
    assert "Traceback" not in err


def test_a_release_that_serves_without_speculation_fails_its_smoke_test(
    stage: Stage, capsys: pytest.CaptureFixture[str]
) -> None:
    stage.engine.engine.speculates = False
    code, out, _ = command(capsys, "deploy", "staging", "--measure", "--format", "json")
    result = json.loads(out)
    assert code == 1
    assert result["ok"] is False
    assert result["measurement"] is None
    assert [check["name"] for check in result["smoke"]["checks"] if not check["ok"]] == ["speculation", "acceptance"]


def test_values_without_speculation_are_tested_for_its_absence(
    stage: Stage, capsys: pytest.CaptureFixture[str]
) -> None:
    stage.manifests = rendered(speculates=False)
    stage.engine.engine.speculates = False
    code, out, _ = command(capsys, "deploy", "staging", "--format", "json")
    assert code == 0
    assert json.loads(out)["smoke"]["speculation"] is False


def test_a_second_deploy_is_told_of_the_first(stage: Stage, capsys: pytest.CaptureFixture[str]) -> None:
    with lock.on_machine(lock.key_of(live.Environment.named("staging"))):
        for arguments in (("deploy", "staging"), ("destroy", "staging", "--yes")):
            code, _, err = command(capsys, *arguments)
            assert code == 2
            assert f"a deploy of staging (release speculative in namespace {NAMESPACE}) runs already" in err
    assert stage.applied == []


@pytest.mark.parametrize(
    ("moment", "said"),
    [
        ("_preflight", "nothing was changed"),
        ("_apply", "puts right what it left"),
        ("_wait", "applied as revision 3 and its pods go on loading"),
        ("_smoke", "it serves; only the tests were stopped"),
    ],
)
def test_ctrl_c_exits_130_and_says_what_stands_and_how_to_go_on(
    stage: Stage, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, moment: str, said: str
) -> None:
    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(pipeline.Deploy, moment, interrupted)
    code, _, err = command(capsys, "deploy", "staging")
    assert code == 130
    assert said in err
    assert "`specdec deploy staging`" in err
    assert not [path for path in stage.api.objects if "/leases/" in path]


def test_ctrl_c_while_pods_load_leaves_the_lock_free(
    stage: Stage, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: Any) -> None:
        assert [path for path in stage.api.objects if "/leases/" in path]
        raise KeyboardInterrupt

    monkeypatch.setattr(Waiter, "run", interrupted)
    assert command(capsys, "deploy", "staging")[0] == 130
    monkeypatch.undo()
    assert not [path for path in stage.api.objects if "/leases/" in path]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("deploy", "stagin"), "did you mean staging?"),
        (("deploy", "staging", "--values", "/nowhere.yaml"), "no such file"),
        (("deploy", "staging", "--timeout", "soon"), "'soon' is not a duration"),
        (("deploy", "staging", "--timeout", "-5s"), "'-5s' is not a duration"),
        (("destroy", "staging"), "--yes"),
    ],
)
@pytest.mark.usefixtures("stage")
def test_bad_input_exits_2(capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], said: str) -> None:
    code, _, err = command(capsys, *arguments)
    assert code == 2
    assert said in err


def test_smoke_of_an_environment_expects_what_was_deployed(stage: Stage, capsys: pytest.CaptureFixture[str]) -> None:
    stage.install()
    code, out, _ = command(capsys, "smoke", "staging", "--format", "json")
    assert code == 0
    assert json.loads(out)["speculation"] is True


def test_smoke_of_what_is_not_deployed_says_how_to_deploy_it(stage: Stage, capsys: pytest.CaptureFixture[str]) -> None:
    assert not stage.installed
    code, _, err = command(capsys, "smoke", "staging")
    assert code == 1
    assert "there is no release speculative" in err
    assert "specdec deploy staging" in err


def test_status_shows_engines_acceptance_and_whom_the_router_leads_to(
    stage: Stage, capsys: pytest.CaptureFixture[str]
) -> None:
    stage.install()
    stage.engine.engine.drafted_steps = 20
    code, out, _ = command(capsys, "status", "staging", "--format", "json")
    found = json.loads(out)
    assert code == 0
    assert found["healthy"] is True
    assert [(engine["name"], engine["version"], engine["speculation"]) for engine in found["engines"]] == [
        ("speculative", "0.32.0", "draft_model"),
        ("speculative-baseline", "0.32.0", None),
    ]
    assert found["engines"][0]["drafts"] == 20
    assert found["engines"][0]["acceptance_rate"] == pytest.approx(0.45)
    assert found["router"] == {"service": "speculative-router", "answers": True, "targets": ["speculative-0"]}


def test_status_of_a_release_with_a_crashed_pod_exits_1(stage: Stage, capsys: pytest.CaptureFixture[str]) -> None:
    ended = {"terminated": {"reason": "OOMKilled", "exitCode": 137}}
    stage.pod_status = {"containerStatuses": [{"name": "engine", "state": ended, "restartCount": 4}]}
    stage.install()
    code, out, _ = command(capsys, "status", "staging")
    assert code == 1
    assert "unhealthy: pod speculative-0: OOMKilled" in out
    assert "4" in out


def test_destroy_waits_until_objects_are_gone_and_says_what_stays(
    stage: Stage, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.install()
    claim = {"metadata": {"labels": {"app.kubernetes.io/instance": "speculative"}}}
    hook = {"helm.sh/hook": "test"}
    monkeypatch.setattr(helm, "uninstall", lambda *_, **__: stage.uninstall() and leave_the_test_pod())

    def leave_the_test_pod() -> bool:
        stage.api.add("pods", "speculative-test", {"metadata": claim["metadata"] | {"annotations": hook}})
        return True

    stage.api.add("persistentvolumeclaims", "models-speculative-0", claim)
    code, out, _ = command(capsys, "destroy", "staging", "--yes")
    assert code == 0
    assert "staging: removed" in out
    assert "models-speculative-0" in out
    assert f"kubectl delete namespace {NAMESPACE}" in out


def test_destroy_where_nothing_is_deployed_is_fine(stage: Stage, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = command(capsys, "destroy", "staging", "--yes")
    assert (code, stage.applied) == (0, ["uninstall"])
    assert "there was no release" in out


def test_destroy_of_a_cluster_that_does_not_answer_is_a_clear_error(
    stage: Stage, capsys: pytest.CaptureFixture[str]
) -> None:
    stage.api.down = True
    code, _, err = command(capsys, "destroy", "staging", "--yes")
    assert code == 1
    assert "does not answer" in err
    assert stage.applied == []


def test_objects_that_do_not_go_are_named(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    stage.install()
    monkeypatch.setattr(helm, "uninstall", lambda *_, **__: True)
    env = live.Environment.named("staging")
    clock = iter(range(0, 1000, 10))
    with pytest.raises(Exception, match="pod/speculative-0"):
        removal.uninstall(
            env, cluster_of(stage.api), timeout=30, sleep=lambda _: None, clock=lambda: float(next(clock))
        )
