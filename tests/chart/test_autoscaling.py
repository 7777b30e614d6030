"""ScaledObjects and HorizontalPodAutoscalers: on signals that exist, for workloads that leave replicas to them."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from .conftest import CHART, lookup, merged

PROMETHEUS = {"serverAddress": "http://prometheus:9090"}
SECTIONS = ("engine", "speculative", "router", "modelCache", "engines", "kserve", "baseline")


def scaled(kind: str = "keda", **over: Any) -> dict[str, Any]:
    others = {key: over.pop(key) for key in SECTIONS if key in over}
    prometheus = {"prometheus": PROMETHEUS} if kind == "keda" else {}
    return merged(lookup(autoscaling={"kind": kind, **prometheus, **over}), others)


def triggers(rendering, name: str = "speculative") -> dict[str, dict[str, Any]]:
    return {trigger["name"]: trigger for trigger in rendering.one("ScaledObject", name)["spec"]["triggers"]}


@pytest.mark.parametrize("workload", ["StatefulSet", "Deployment"])
@pytest.mark.parametrize("kind", ["keda", "hpa"])
def test_c11_an_upgrade_does_not_set_the_replicas_back(render, workload, kind):
    rendering = render(scaled(kind, engine={"workload": workload}))
    assert "replicas" not in rendering.workload()["spec"]
    (scaler,) = rendering.all("ScaledObject") + rendering.all("HorizontalPodAutoscaler")
    target = scaler["spec"]["scaleTargetRef"]
    assert (target["apiVersion"], target["kind"], target["name"]) == ("apps/v1", workload, "speculative")


def test_without_autoscaling_the_replicas_are_stated(render):
    rendering = render(lookup(engine={"replicas": 3}))
    assert rendering.workload()["spec"]["replicas"] == 3
    assert not rendering.all("ScaledObject") + rendering.all("HorizontalPodAutoscaler")


def test_the_baseline_keeps_its_number(render):
    rendering = render(scaled(baseline={"enabled": True, "replicas": 2}))
    assert rendering.workload("speculative-baseline")["spec"]["replicas"] == 2
    assert [m["metadata"]["name"] for m in rendering.all("ScaledObject")] == ["speculative"]


def test_c11_a_query_without_series_is_an_error_and_not_a_zero(render):
    for trigger in triggers(render(scaled(timePerOutputToken={"seconds": 0.05}))).values():
        assert trigger["metadata"]["ignoreNullValues"] == "false"
        assert trigger["metricType"] == "AverageValue"
        assert "vector(0)" not in trigger["metadata"]["query"]


@pytest.mark.parametrize(
    ("version", "usage"), [("0.32.0", "vllm:kv_cache_usage_perc"), ("0.6.3", "vllm:gpu_cache_usage_perc")]
)
def test_c11_the_names_are_those_of_the_version(render, version, usage):
    values = scaled(engine={"version": version}, speculative={"promptLookup": {"min": 2, "max": 4}})
    found = triggers(render(values))
    assert usage in found["kvCacheUsage"]["metadata"]["query"]
    assert "sum(vllm:num_requests_waiting{" in found["waitingRequests"]["metadata"]["query"]


def test_only_wanted_signals_are_asked(render):
    assert set(triggers(render(scaled()))) == {"kvCacheUsage", "waitingRequests"}
    values = scaled(kvCacheUsage=None, waitingRequests=None, maxConcurrencyPerReplica=32)
    found = triggers(render(values))
    assert set(found) == {"concurrency"}
    assert found["concurrency"]["metadata"]["threshold"] == "32"


def test_v19_the_crossover_bounds_the_requests_of_a_pod(render):
    query = triggers(render(scaled(maxConcurrencyPerReplica=24)))["concurrency"]["metadata"]["query"]
    assert "vllm:num_requests_running" in query
    assert "vllm:num_requests_waiting" in query


def test_zero_is_woken_by_the_router(render):
    found = triggers(render(scaled(minReplicas=0)))
    assert found["routerRequests"]["metadata"]["ignoreNullValues"] == "false"
    query = found["routerRequests"]["metadata"]["query"]
    # The router counts a request that it cannot pass on as an error alone.
    assert "vllm_router_requests_total" in query
    assert "vllm_router_request_errors_total" in query
    assert 'pod=~"speculative-router-' in query
    # At zero the engine's own series are rightly missing; a fallback would wake it for nothing.
    assert {t["metadata"]["ignoreNullValues"] for n, t in found.items() if n != "routerRequests"} == {"true"}
    assert "fallback" not in render(scaled(minReplicas=0)).one("ScaledObject", "speculative")["spec"]


def behavior(rendering) -> dict[str, Any]:
    return rendering.one("ScaledObject", "speculative")["spec"]["advanced"]["horizontalPodAutoscalerConfig"]["behavior"]


def test_scaling_knows_how_long_a_pod_loads(render):
    quick = behavior(render(scaled(engine={"model": {"sizeGiB": 1}, "enforceEager": True})))
    slow = behavior(render(scaled(engine={"model": {"sizeGiB": 140}, "tensorParallelSize": 2})))
    assert slow["scaleDown"]["stabilizationWindowSeconds"] > quick["scaleDown"]["stabilizationWindowSeconds"] >= 300
    # Kubernetes' own limits.
    assert slow["scaleDown"]["stabilizationWindowSeconds"] <= 3600
    assert quick["scaleUp"]["policies"][0]["periodSeconds"] < slow["scaleUp"]["policies"][0]["periodSeconds"] <= 1800
    assert behavior(render(scaled(scaleDownAfterSeconds=60)))["scaleDown"]["stabilizationWindowSeconds"] == 60
    own = {"scaleUp": {"selectPolicy": "Disabled"}}
    assert behavior(render(scaled(behavior=own))) == own


def test_credentials_are_named_and_never_written(render):
    values = scaled(
        prometheus=PROMETHEUS
        | {"authentication": {"name": "prom", "kind": "ClusterTriggerAuthentication", "modes": "bearer"}}
    )
    for trigger in triggers(render(values)).values():
        assert trigger["authenticationRef"] == {"name": "prom", "kind": "ClusterTriggerAuthentication"}
        assert trigger["metadata"]["authModes"] == "bearer"
    assert "authenticationRef" not in triggers(render(scaled()))["waitingRequests"]


def test_the_fallback_holds_while_prometheus_does_not_answer(render):
    spec = render(scaled(minReplicas=2)).one("ScaledObject", "speculative")["spec"]
    assert spec["fallback"] == {"failureThreshold": 3, "replicas": 2}
    spec = render(scaled(fallback={"failures": 5, "replicas": 3})).one("ScaledObject", "speculative")["spec"]
    assert spec["fallback"] == {"failureThreshold": 5, "replicas": 3}


def test_an_hpa_reads_what_the_rules_record(render):
    values = scaled("hpa", timePerOutputToken={"seconds": 0.05}, maxConcurrencyPerReplica=32)
    rendering = render(merged(values, {"monitoring": {"rules": {"kind": "configMap"}}}))
    text = rendering.one("ConfigMap", "speculative-rules")["data"]["speculative.yaml"]
    recorded = {r["record"]: r for g in yaml.safe_load(text)["groups"] for r in g["rules"] if "record" in r}
    metrics = rendering.one("HorizontalPodAutoscaler", "speculative")["spec"]["metrics"]
    assert len(metrics) == 4
    for metric in metrics:
        external = metric["external"]
        name = external["metric"]["name"].removeprefix("vllm_speculative_")
        rule = recorded[f"vllm_speculative:scaling:{name}"]
        assert external["metric"]["selector"]["matchLabels"].items() <= rule["labels"].items()
    targets = {m["external"]["metric"]["name"]: m["external"]["target"]["averageValue"] for m in metrics}
    assert targets["vllm_speculative_time_per_output_token"] == "50m"
    assert targets["vllm_speculative_concurrency"] == "32"


def test_each_engine_is_scaled_its_own_way(render):
    rendering = render("autoscaling-keda-engines")
    assert set(triggers(rendering, "speculative-fast")) == {"kvCacheUsage", "waitingRequests"}
    assert set(triggers(rendering, "speculative-slow")) == {"waitingRequests"}
    for name in ("fast", "slow"):
        for trigger in triggers(rendering, f"speculative-{name}").values():
            assert f'vllm_speculative_engine="{name}"' in trigger["metadata"]["query"]


CLAIM = {"type": "pvc", "pvc": {"existingClaim": "models", "accessMode": "ReadWriteOnce"}}
BAD: dict[str, tuple[dict[str, Any], str]] = {
    "fixed replicas": (scaled(engine={"replicas": 3}), "SD554: engine.replicas"),
    "the least above the greatest": (scaled(minReplicas=5, maxReplicas=2), "SD553: autoscaling.minReplicas"),
    "an HPA to zero": (scaled("hpa", minReplicas=0), "SD555: autoscaling.minReplicas"),
    "zero without the router": (scaled(minReplicas=0, router={"enabled": False}), "SD556: autoscaling.minReplicas"),
    "zero beside another engine": (
        scaled(minReplicas=0, engines={"a": {}, "b": {"autoscaling": {"minReplicas": 1}}}),
        "SD556: engines.a.autoscaling.minReplicas",
    ),
    "no signal": (scaled(kvCacheUsage=None, waitingRequests=None), "SD557: autoscaling"),
    "KEDA without Prometheus": (lookup(autoscaling={"kind": "keda"}), "SD558: autoscaling.prometheus.serverAddress"),
    "metrics of an HPA with KEDA": (scaled(metrics=[{"type": "Pods"}]), "SD559: autoscaling.metrics"),
    "KServe and KEDA": (scaled(kserve={"enabled": True}), "SD581: autoscaling.kind"),
    "a signal that the version has not": (
        scaled(
            engine={"version": "0.10.2"},
            speculative={"promptLookup": {"min": 2, "max": 4}},
            timePerOutputToken={"seconds": 0.05},
        ),
        "SD560: autoscaling.timePerOutputToken.seconds: vLLM 0.10.2",
    ),
    "a claim that added pods cannot mount": (scaled(modelCache=CLAIM), "SD460: modelCache.pvc.accessMode"),
    "a share of the cache above 1": (scaled(kvCacheUsage=80), "kvCacheUsage"),
    "a share of the cache of 0": (scaled(kvCacheUsage=0), "kvCacheUsage"),
    "two kinds at once": (scaled(kind="keda,hpa"), "kind"),
    "an unknown key": (scaled(targetCPU=80), "targetCPU"),
    "a section that is null": (
        scaled(engines={"a": {"autoscaling": {"fallback": None}}}),
        "autoscaling/fallback",
    ),
}


@pytest.mark.parametrize("story", BAD)
def test_an_autoscaler_that_cannot_work_is_refused(refused, story):
    values, expected = BAD[story]
    assert expected in refused(values)


def test_every_signal_has_a_query_in_one_place():
    signals = yaml.safe_load((CHART / "rules" / "scaling.yaml").read_text())["signals"]
    assert set(signals) == {"waitingRequests", "kvCacheUsage", "concurrency", "timePerOutputToken", "routerRequests"}
