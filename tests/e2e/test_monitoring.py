"""A real Prometheus scrapes the real engines: every query that the chart brings gets an answer."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from machine import CHART, NAMESPACE, RELEASE, VALUES, helm
from prometheus import Prometheus
from specdec.deploy.cluster import Cluster
from specdec.deploy.endpoint import EndpointError
from streams import Load

MODEL = "target"
MINUTE = "1m"
APIS = ("keda.sh/v1alpha1",)
# Every signal that an autoscaler can ask for; from zero, where the router's counts too.
SCALED = {
    "kind": "keda",
    "minReplicas": 0,
    "maxReplicas": 2,
    "maxConcurrencyPerReplica": 8,
    "timePerOutputToken": {"seconds": 0.05},
    "prometheus": {"serverAddress": "http://prometheus:9090"},
}


def rendered(*settings: str) -> list[dict[str, Any]]:
    """The release's manifests with the parts that this cluster has no operator for."""
    apis = [word for api in APIS for word in ("--api-versions", api)]
    text = helm("template", RELEASE, str(CHART), "-f", str(VALUES), *apis, *settings)
    return [document for document in yaml.safe_load_all(text) if document]


def recording_rules(manifests: list[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    """(record, expression) of every recording rule."""
    for manifest in manifests:
        if manifest["kind"] == "ConfigMap" and manifest["metadata"]["name"] == f"{RELEASE}-rules":
            for text in manifest["data"].values():
                for group in yaml.safe_load(text)["groups"]:
                    yield from ((rule["record"], rule["expr"]) for rule in group["rules"] if "record" in rule)


def dashboard_queries(manifests: list[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    """(panel, expression) of every dashboard, its variables filled in."""
    for manifest in manifests:
        for name, text in manifest.get("data", {}).items():
            if name.endswith(".json"):
                yield from panel_queries(json.loads(text)["panels"])


def panel_queries(panels: list[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    for panel in panels:
        yield from panel_queries(panel.get("panels", []))
        for target in panel.get("targets", []):
            text = re.sub(r"\$\{?__(rate_)?interval\}?|\$\{?__range\}?", MINUTE, target["expr"])
            text = re.sub(r"\$\{?namespace\}?", NAMESPACE, re.sub(r"\$\{?release\}?", RELEASE, text))
            yield f"{panel['title']}: {target['expr']}", re.sub(r"\$\{?\w+\}?", ".*", text)


def scaler_queries(manifests: list[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    for manifest in manifests:
        if manifest["kind"] == "ScaledObject":
            for trigger in manifest["spec"]["triggers"]:
                if trigger["type"] == "prometheus":
                    yield (
                        f"{manifest['metadata']['name']}: {trigger['metadata']['query']}",
                        trigger["metadata"]["query"],
                    )


def test_every_query_of_rules_dashboards_and_scalers_has_samples(cluster: Cluster, tmp_path: Path) -> None:
    manifests = rendered("--set", "monitoring.dashboards.enabled=true")
    scaled = rendered("--set", "baseline.enabled=false", "--set-json", f"autoscaling={json.dumps(SCALED)}")
    found = (list(recording_rules(manifests)), list(dashboard_queries(manifests)), list(scaler_queries(scaled)))
    assert all(found), "rules, dashboards and scalers"
    queries = [query for kind in found for query in kind]

    with Prometheus(cluster, tmp_path) as prometheus:
        empty = dict(queries)
        for service in (f"{RELEASE}-baseline", f"{RELEASE}-router"):
            with Load(cluster, service, MODEL):
                time.sleep(20)
                with pytest.raises(EndpointError):
                    cluster.service(service).post("/v1/completions", {"model": "no-such-model", "prompt": "x"})
                moments = []
                for _ in range(3):
                    time.sleep(5)
                    moments.append(time.time())
            # Some are about requests that run, and say nothing when none does: asked for a moment under load, but once
            # it has passed, because the engines leave no core to answer.
            for moment in moments:
                empty = {name: query for name, query in empty.items() if not prometheus.query(query, moment)}
        assert {rule["name"]: rule["lastError"] for rule in prometheus.rules() if rule["health"] == "err"} == {}
        print(f"{len(queries)} queries, {len(empty)} without samples", *empty, sep="\n")
        assert empty == {}
        rate = prometheus.query("vllm_speculative:acceptance_rate:rate5m")
        assert 0.3 < float(rate[0]["value"][1]) < 0.9, "what smoke measured"
