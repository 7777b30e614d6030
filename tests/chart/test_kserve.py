"""KServe's two forms carry the pod that the chart would make itself."""

from __future__ import annotations

from typing import Any

import pytest

from .conftest import Rendering, lookup, merged, pair, unescaped

FULL = pair(
    cloud="gke",
    accelerator={"type": "h100-80gb", "machineType": "a3-highgpu-8g"},
    engine={
        "replicas": 2,
        "tensorParallelSize": 4,
        "extraArgs": ["--override-generation-config", '{"a":"$(HOME)"}'],
        "extraEnv": [{"name": "NCCL_DEBUG", "value": "WARN"}],
        "nodeSelector": {"pool": "llm"},
        "podLabels": {"team": "a"},
        "podAnnotations": {"example.com/a": "b"},
    },
    huggingFace={"tokenSecret": {"name": "hf-token"}},
    traffic={"apiKeySecret": {"name": "clients"}},
    extraVolumes=[{"name": "more", "emptyDir": {}}],
)
KINDS = {"InferenceService": "kserve-container", "LLMInferenceService": "main"}


def kserve(kind: str, **over: Any) -> dict[str, Any]:
    return merged(FULL, {"kserve": {"enabled": True, "kind": kind, **over}})


def pod(rendering: Rendering, kind: str, name: str = "speculative") -> dict[str, Any]:
    spec = rendering.one(kind, name)["spec"]
    return spec["predictor"] if kind == "InferenceService" else spec["template"]


@pytest.mark.parametrize("kind", KINDS)
def test_kserve_s_pod_is_the_stateful_set_s(render, kind):
    ours, theirs = render(FULL).pod(), pod(render(kserve(kind)), kind)
    (mine,), (its,) = ours["containers"], theirs["containers"]
    assert its["name"] == KINDS[kind]
    assert [unescaped(arg) for arg in its["args"]] == [unescaped(arg) for arg in mine["args"]]
    different = {"name", "lifecycle"} if kind == "LLMInferenceService" else {"name"}
    assert {key: its[key] for key in its if key not in different} == {
        key: mine[key] for key in mine if key not in different
    }
    for key in set(ours) - {"containers"}:
        assert theirs[key] == ours[key], key


@pytest.mark.parametrize("kind", KINDS)
def test_what_kserve_makes_itself_is_left_out(render, kind):
    rendering = render(kserve(kind))
    assert {m["kind"] for m in rendering.manifests} <= {kind, "ServiceAccount", "PodDisruptionBudget", "Pod"}
    names = {m["metadata"]["name"] for m in rendering.all("ServiceAccount")}
    assert pod(rendering, kind)["serviceAccountName"] in names


@pytest.mark.parametrize("kind", KINDS)
def test_labels_and_annotations_reach_the_pods(render, kind):
    metadata = render(FULL).workload()["spec"]["template"]["metadata"]
    made = render(kserve(kind, labels={"l": "1"}, annotations={"a": "2"})).one(kind, "speculative")
    handed_on = made["spec"]["predictor"] if kind == "InferenceService" else made["spec"]
    assert handed_on["labels"] == metadata["labels"]
    assert handed_on["annotations"] == metadata["annotations"]
    assert made["metadata"]["labels"]["l"] == "1"
    assert made["metadata"]["annotations"]["a"] == "2"


@pytest.mark.parametrize("kind", KINDS)
def test_budgets_still_find_the_pods(render, kind):
    rendering = render(kserve(kind))
    made = rendering.one(kind, "speculative")
    handed_on = made["spec"]["predictor"] if kind == "InferenceService" else made["spec"]
    (budget,) = rendering.all("PodDisruptionBudget")
    assert budget["spec"]["selector"]["matchLabels"].items() <= handed_on["labels"].items()


def test_an_inference_service_is_a_deployment_of_fixed_size_updated_in_place(render):
    made = render(kserve("InferenceService")).one("InferenceService", "speculative")
    assert made["metadata"]["annotations"] == {
        "serving.kserve.io/deploymentMode": "RawDeployment",
        "serving.kserve.io/autoscalerClass": "none",
    }
    predictor = made["spec"]["predictor"]
    assert (predictor["minReplicas"], predictor["maxReplicas"]) == (2, 2)
    assert predictor["deploymentStrategy"]["rollingUpdate"] == {"maxSurge": 0, "maxUnavailable": 1}
    assert predictor["timeout"] == 1890


def test_an_llm_inference_service_brings_its_own_models_and_one_stop_handler(render):
    made = render(kserve("LLMInferenceService")).one("LLMInferenceService", "speculative")["spec"]
    assert made["storageInitializer"] == {"enabled": False}
    assert made["model"]["uri"] == "hf://meta-llama/Llama-3.1-8B-Instruct"
    assert made["replicas"] == 2
    assert made["router"] == {"gateway": {}, "route": {}, "scheduler": {}}
    # KServe's template has exec there, and Kubernetes refuses two handlers.
    assert made["template"]["containers"][0]["lifecycle"]["preStop"] == {"exec": {"command": ["sleep", "15"]}}


def test_a_baseline_is_a_second_object(render):
    rendering = render(merged(kserve("InferenceService"), {"baseline": {"enabled": True}}))
    assert [m["metadata"]["name"] for m in rendering.all("InferenceService")] == ["speculative", "speculative-baseline"]
    assert (
        "--speculative-config"
        not in pod(rendering, "InferenceService", "speculative-baseline")["containers"][0]["args"]
    )


def test_helm_test_asks_the_service_that_kserve_makes(render):
    (test,) = render(kserve("InferenceService")).all("Pod")
    assert test["spec"]["containers"][0]["args"][0] == "http://speculative-predictor.ai-inference.svc"


ENABLED = {"kserve": {"enabled": True}}
LLM = {"kserve": {"enabled": True, "kind": "LLMInferenceService"}}
GATEWAY = {"enabled": True, "parentRefs": [{"name": "gw"}]}
BAD: dict[str, tuple[dict[str, Any], tuple[str, str, str], dict[str, Any]]] = {
    "an ingress to a service that is not there": (
        lookup(**ENABLED, traffic={"ingress": {"enabled": True}}),
        ("SD580", "traffic.ingress.enabled", "KServe makes the routes"),
        lookup(traffic={"ingress": {"enabled": True}}),
    ),
    "a route to a service that is not there": (
        lookup(**ENABLED, traffic={"gateway": GATEWAY}),
        ("SD580", "traffic.gateway.enabled", "KServe makes the routes"),
        lookup(traffic={"gateway": GATEWAY}),
    ),
    "two scalers": (
        lookup(**ENABLED, autoscaling={"kind": "hpa"}),
        ("SD581", "autoscaling.kind", "would fight"),
        lookup(**ENABLED),
    ),
    "braces that kserve would expand": (
        lookup(**LLM, engine={"extraArgs": ["--chat-template={{ messages }}"]}),
        ("SD582", "engine.extraArgs", "two braces"),
        lookup(**ENABLED, engine={"extraArgs": ["--chat-template={{ messages }}"]}),
    ),
    "an endpoint picker that nobody asks": (
        lookup(kserve={**LLM["kserve"], "llmInferenceService": {"route": False}}),
        ("SD583", "kserve.llmInferenceService.scheduler", "nobody asks"),
        lookup(kserve={**LLM["kserve"], "llmInferenceService": {"route": False, "scheduler": False}}),
    ),
    "a claim for each pod of a deployment": (
        lookup(**ENABLED, engine={"replicas": 2}, modelCache={"type": "pvc"}),
        ("SD460", "modelCache.pvc.accessMode", "cannot be shared"),
        lookup(**ENABLED, engine={"replicas": 2}, modelCache={"type": "pvc", "pvc": {"accessMode": "ReadWriteMany"}}),
    ),
}


@pytest.mark.parametrize("story", BAD)
def test_what_kserve_would_undo_is_refused(refused, render, story):
    values, (code, path, part), good = BAD[story]
    message = refused(values)
    assert f"{code}: {path}" in message
    assert part in message
    render(good)
