"""Field cases C10 to C12: metrics, triggers and monitors that see nothing."""

from __future__ import annotations

import json

import pytest

from .deployment import IN_PLACE, deployment
from .helpers import finds, found, passes


def rule_on(expression: str, version: str = "0.32.0") -> str:
    group = {"name": "engine", "rules": [{"alert": "A", "expr": expression}]}
    alert = {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": {"name": "engine"},
        "spec": {"groups": [group]},
    }
    engine = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "engine", "labels": {"app": "engine"}},
        "spec": {"containers": [{"name": "e", "image": f"vllm/vllm-openai:v{version}", "args": ["/models/target"]}]},
    }
    return "\n---\n".join(json.dumps(item) for item in (alert, engine))


class TestC10DeadMetrics:
    @pytest.mark.parametrize(
        ("dead", "version", "instead", "lived"),
        [
            ("vllm:gpu_cache_usage_perc", "0.32.0", "vllm:kv_cache_usage_perc", "0.9.1"),
            ("vllm:time_per_output_token_seconds_sum", "0.13.0", "vllm:request_time_per_output_token_seconds", "0.9.2"),
            ("vllm:num_requests_swapped", "0.32.0", "did you mean", "0.6.3"),
        ],
    )
    def test_c10_a_name_that_a_version_took_away(self, dead: str, version: str, instead: str, lived: str) -> None:
        finds(rule_on(f"avg({dead}) > 1", version), "SD601", dead, version, instead)
        assert not found(rule_on(f"avg({dead}) > 1", lived), "SD601")

    def test_c10_the_seeds_two_names(self) -> None:
        finds(
            rule_on("rate(vllm:num_spec_tokens_accepted_total[5m]) < 0.5"),
            "SD601",
            "vllm:spec_decode_num_accepted_tokens_total",
        )
        finds(
            rule_on("vllm:avg_inference_latency_seconds > 1"),
            "SD601",
            "vllm:request_time_per_output_token_seconds",
        )

    def test_c10_percentages_of_two_pods_are_not_added_up(self) -> None:
        finds(rule_on("sum(vllm:kv_cache_usage_perc) > 0.8"), "SD604", "shares are added up")
        passes(rule_on("avg(vllm:kv_cache_usage_perc) > 0.8"), "SD604")

    def test_c10_dashboards_are_read_too(self) -> None:
        def dashboard(expression: str) -> str:
            document = {"panels": [{"title": "KV", "panels": [{"title": "use", "targets": [{"expr": expression}]}]}]}
            return json.dumps(
                {
                    "apiVersion": "v1",
                    "kind": "ConfigMap",
                    "metadata": {"name": "dashboard"},
                    "data": {"engine.json": json.dumps(document)},
                }
            )

        finds(dashboard("vllm:cpu_cache_usage"), "SD601", "vllm:cpu_cache_usage", "panel 'use'")
        passes(dashboard("vllm:kv_cache_usage_perc"), "SD601")


def scaled(query: str, replicas: int | None = None, least: int = 1, strict: bool = True) -> str:
    metadata = {"serverAddress": "http://prometheus:9090", "query": query, "threshold": "5"}
    metadata |= {"ignoreNullValues": "false"} if strict else {}
    scaler = {
        "apiVersion": "keda.sh/v1alpha1",
        "kind": "ScaledObject",
        "metadata": {"name": "engine"},
        "spec": {
            "scaleTargetRef": {"name": "engine"},
            "minReplicaCount": least,
            "maxReplicaCount": 4,
            "triggers": [{"type": "prometheus", "metadata": metadata}],
        },
    }
    workload = json.loads(deployment(IN_PLACE))
    workload["spec"].pop("replicas")
    if replicas is not None:
        workload["spec"]["replicas"] = replicas
    workload["spec"]["template"]["spec"]["containers"][0]["args"].append("--served-model-name=chat")
    return "\n---\n".join(json.dumps(item) for item in (scaler, workload))


WAITING = 'sum(vllm:num_requests_waiting{model_name="chat"})'


class TestC11TriggersThatNeverFire:
    def test_c11_an_underscore_for_the_colon(self) -> None:
        finds(scaled("sum(vllm_num_requests_waiting)"), "SD602", "vllm:num_requests_waiting")
        passes(scaled(WAITING), "SD602")

    def test_c11_a_label_of_another_model(self) -> None:
        finds(scaled(WAITING.replace("chat", "talk")), "SD516", 'model_name="talk"', "chat")
        passes(scaled(WAITING), "SD516")

    def test_c11_no_series_counts_as_zero(self) -> None:
        finds(scaled(WAITING, strict=False), "SD511", 'ignoreNullValues: "false"')
        passes(scaled(WAITING), "SD511")

    def test_c11_replicas_that_every_upgrade_puts_back(self) -> None:
        finds(scaled(WAITING, replicas=1), "SD510", "ScaledObject/engine scales it", "says 1")
        passes(scaled(WAITING), "SD510")

    def test_c11_nothing_wakes_what_was_scaled_to_zero(self) -> None:
        finds(scaled(WAITING, least=0), "SD512", "scaled to 0")
        passes(scaled(WAITING, least=1), "SD512")


def monitored(selector: str = "engine", port: str = "http", namespace: str = "ai") -> str:
    monitor = {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "ServiceMonitor",
        "metadata": {"name": "engine", "namespace": namespace},
        "spec": {"selector": {"matchLabels": {"app": selector}}, "endpoints": [{"port": port}]},
    }
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "engine", "namespace": "ai", "labels": {"app": "engine"}},
        "spec": {"ports": [{"name": "http", "port": 8000}]},
    }
    return "\n---\n".join(json.dumps(item) for item in (monitor, service))


class TestC12MonitorsThatScrapeNothing:
    def test_c12_labels_that_the_service_does_not_have(self) -> None:
        finds(monitored(selector="vllm"), "SD610", "no Service here has these labels")
        passes(monitored(), "SD610")

    def test_c12_a_port_that_the_service_does_not_have(self) -> None:
        finds(monitored(port="metrics"), "SD611", "no port called metrics: it has http")
        passes(monitored(), "SD611")

    def test_c12_a_service_in_another_namespace(self) -> None:
        finds(monitored(namespace="monitoring"), "SD610", "namespace ai is out of its reach", "matchNames: [ai]")
