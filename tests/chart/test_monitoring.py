"""Monitors, rules and dashboards: rendered where the cluster has their API, on ports and labels that are there."""

from __future__ import annotations

import json
import re
import subprocess
from typing import Any

import pytest
import yaml
from specdec import facts

from .conftest import CHART, ROOT, lookup, merged, pair
from .releases import RELEASES
from .test_values import LEAVES

OPERATOR = (
    "--api-versions=monitoring.coreos.com/v1/PodMonitor",
    "--api-versions=monitoring.coreos.com/v1/PrometheusRule",
)
GOOGLE = (
    "--api-versions=monitoring.googleapis.com/v1/PodMonitoring",
    "--api-versions=monitoring.googleapis.com/v1/Rules",
)
MONITORING = {"PodMonitor", "PodMonitoring", "PrometheusRule", "Rules", "ConfigMap"}
# What kube-state-metrics exports, of what the chart asks.
CLUSTER = {
    "kube_pod_start_time",
    "kube_pod_status_phase",
    "kube_pod_status_ready",
    "kube_pod_container_status_restarts_total",
    "kube_pod_info",
    "kube_node_created",
}
STRINGS = re.compile(r'"(?:\\.|[^"\\])*"')
# A name that selects: before braces, or a range, or an offset; functions and keywords stand before ( or a space.
NAMES = re.compile(r"(?<![\w:])([a-zA-Z_:][\w:]*)(?=\{)")


def monitoring(**over: Any) -> dict[str, Any]:
    return lookup(monitoring=over)


def kinds(rendering) -> set[str]:
    return {m["kind"] for m in rendering.manifests} & MONITORING


def test_a_cluster_without_any_monitoring_gets_none(render):
    assert kinds(render(lookup())) == set()


def test_the_operator_s_cluster_gets_its_objects(render):
    rendering = render(lookup(), *OPERATOR)
    assert kinds(rendering) == {"PodMonitor", "PrometheusRule"}
    assert {m["metadata"]["name"] for m in rendering.all("PodMonitor")} == {"speculative-engines", "speculative-router"}


def test_google_s_cluster_gets_its_objects(render):
    assert kinds(render(lookup(), *GOOGLE)) == {"PodMonitoring", "Rules"}


def test_a_cluster_with_both_is_scraped_once(render):
    assert kinds(render(lookup(), *OPERATOR, *GOOGLE)) == {"PodMonitor", "PrometheusRule"}


def test_a_kind_that_the_cluster_lacks_is_left_out_and_notes_say_so(render, helm):
    values = monitoring(scrape={"kind": "podMonitor"}, rules={"kind": "googleRules"})
    assert kinds(render(values)) == set()
    command = [helm, "install", "--dry-run=client", "speculative", str(CHART), "--values", "-"]
    done = subprocess.run(command, input=json.dumps(values), capture_output=True, text=True, check=True)
    assert "monitoring.scrape.kind is podMonitor, and the cluster has no such API" in done.stdout
    assert "monitoring.rules.kind is googleRules, and the cluster has no such API" in done.stdout


def test_c12_the_monitors_select_pods_that_exist_on_ports_that_they_have(render):
    rendering = render("monitoring", *OPERATOR)
    pods = [m["spec"]["template"] for m in rendering.all("StatefulSet") + rendering.all("Deployment")]
    for monitor in rendering.all("PodMonitor"):
        wanted = monitor["spec"]["selector"]["matchLabels"].items()
        selected = [pod for pod in pods if wanted <= pod["metadata"]["labels"].items()]
        assert selected
        assert monitor["spec"]["namespaceSelector"]["matchNames"] == ["ai-inference"]
        assert monitor["metadata"]["namespace"] == "monitoring"
        assert monitor["metadata"]["labels"]["release"] == "kube-prometheus-stack"
        (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
        assert endpoint["interval"] == "30s"
        for pod in selected:
            ports = {p["name"] for c in pod["spec"]["containers"] for p in c["ports"]}
            assert endpoint["port"] in ports
            assert set(monitor["spec"]["podTargetLabels"]) <= set(pod["metadata"]["labels"])


def test_c12_the_rules_select_by_labels_that_the_monitors_carry_over(render):
    for options, kind in ((OPERATOR, "PodMonitor"), (GOOGLE, "PodMonitoring")):
        rendering = render(lookup(), *options)
        (monitor,) = [m for m in rendering.all(kind) if m["metadata"]["name"].endswith("engines")]
        carried = {"namespace", "pod", "le", "position"}
        for label in monitor["spec"].get("podTargetLabels", []):
            carried.add(re.sub(r"[^a-zA-Z0-9_]", "_", label))
        for mapping in monitor["spec"].get("targetLabels", {}).get("fromPod", []):
            carried.add(mapping["to"])
        for rule in rules_of(rendering):
            for selector in re.findall(r"vllm:[\w]+\{([^}]*)\}", rule["expr"]):
                assert set(re.findall(r"(\w+)=", selector)) <= carried


def test_annotations_for_a_prometheus_without_operator(render):
    values = merged(
        monitoring(scrape={"kind": "annotations"}), {"engine": {"podAnnotations": {"prometheus.io/path": "/m"}}}
    )
    rendering = render(values)
    engine = rendering.workload()["spec"]["template"]["metadata"]["annotations"]
    assert (engine["prometheus.io/scrape"], engine["prometheus.io/port"]) == ("true", "8000")
    assert engine["prometheus.io/path"] == "/m"
    router = rendering.workload("speculative-router")["spec"]["template"]["metadata"]["annotations"]
    assert (router["prometheus.io/scrape"], router["prometheus.io/port"]) == ("true", "29000")


def rules_of(rendering) -> list[dict[str, Any]]:
    groups = [g for kind in ("PrometheusRule", "Rules") for m in rendering.all(kind) for g in m["spec"]["groups"]]
    for config in rendering.all("ConfigMap"):
        for name, text in config["data"].items():
            if name.endswith(".yaml"):
                groups += yaml.safe_load(text)["groups"]
    names = [group["name"] for group in groups]
    assert len(names) == len(set(names))
    return [rule for group in groups for rule in group["rules"]]


def known_metrics(version: str, runner: str) -> set[str]:
    """Series that an engine exports without being asked for hidden ones."""
    core = "v0" if runner == "v0" else "v1"
    names = set()
    for metric in facts.in_range(facts.load(CHART / "files" / "metrics.yaml")["metrics"], version):
        if metric["core"] == core and not metric.get("hidden"):
            histogram = metric["type"] == "histogram"
            names |= {metric["name"] + part for part in (("_bucket", "_sum", "_count") if histogram else ("",))}
    return names


def asked(expression: str) -> set[str]:
    return set(NAMES.findall(STRINGS.sub('""', expression)))


@pytest.mark.parametrize("version", [*RELEASES[::6], RELEASES[-1]])
def test_c10_every_version_s_rules_ask_for_its_own_names(render, version):
    values = lookup(
        engine={"version": version},
        speculative={"promptLookup": {"min": 2, "max": 4}},
        monitoring={"rules": {"kind": "configMap"}},
        baseline={"enabled": True},
    )
    rendering = render(values)
    for name in ("speculative", "speculative-baseline"):
        text = rendering.one("ConfigMap", "speculative-rules")["data"][f"{name}.yaml"]
        rules = [rule for group in yaml.safe_load(text)["groups"] for rule in group["rules"]]
        runner = rendering.workload(name)["spec"]["template"]["metadata"]["annotations"]["vllm-speculative/runner"]
        known = known_metrics(version, runner)
        recorded = {rule["record"] for rule in rules if "record" in rule}
        names = {each for rule in rules for each in asked(rule["expr"])}
        assert {each for each in names if each.startswith("vllm:")} <= known
        assert names - known <= recorded | CLUSTER | {"up"} | recorded_by_baseline(rendering)
        assert ("vllm_speculative:acceptance_rate:rate5m" in recorded) == (name == "speculative")
        assert len(names & known) > 8


def recorded_by_baseline(rendering) -> set[str]:
    text = rendering.one("ConfigMap", "speculative-rules")["data"]["speculative-baseline.yaml"]
    return {r["record"] for g in yaml.safe_load(text)["groups"] for r in g["rules"] if "record" in r}


def test_every_alert_has_a_runbook_and_every_runbook_an_alert(render):
    source = yaml.safe_load((CHART / "rules" / "alerts.yaml").read_text())
    alerts = {rule["alert"] for group in source["groups"] for rule in group["rules"]}
    pages = {path.stem for path in (ROOT / "docs" / "runbooks").glob("*.md")} - {"README"}
    assert alerts == pages
    index = (ROOT / "docs" / "runbooks" / "README.md").read_text()
    for alert in alerts:
        page = (ROOT / "docs" / "runbooks" / f"{alert}.md").read_text()
        assert page.startswith(f"# {alert}\n")
        for part in ("**What.**", "**Why it matters.**", "**How to see it**", "**What to do"):
            assert part in page, (alert, part)
        assert f"({alert}.md)" in index
    for rule in rules_of(render("monitoring", *OPERATOR)):
        if "alert" in rule:
            url = f"https://runbooks.example.com/vllm-speculative/{rule['alert']}.md"
            assert rule["annotations"]["runbook_url"] == url


def test_runbooks_name_series_and_values_that_exist():
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    recorded = {
        r["record"]
        for g in yaml.safe_load((CHART / "rules" / "recording.yaml").read_text())["groups"]
        for r in g["rules"]
    }
    windows = {name.replace("@window@", window) for name in recorded for window in ("5m", "30m", "1h", "6h")}
    for path in [*(ROOT / "docs" / "runbooks").glob("*.md"), ROOT / "docs" / "autoscaling.md"]:
        text = path.read_text()
        series = set(re.findall(r"vllm_speculative:[a-z_]+:[a-z0-9_]+", text))
        assert {name for name in series if ":scaling:" not in name} <= windows, path.name
        for word in re.findall(r"`((?:{})(?:\.[a-zA-Z]+)+)".format("|".join(values)), text):
            below = [leaf for leaf in LEAVES if f"{leaf}.".startswith(f"{word}.") or word.startswith(f"{leaf}.")]
            assert below, f"{path.name}: there is no value {word}"


def test_both_arms_have_one_engine_label_and_no_alert_twice(render):
    rules = rules_of(render("monitoring", *OPERATOR))
    arms = {(r["labels"]["engine"], r["labels"]["arm"]) for r in rules}
    assert arms == {("speculative", "speculative"), ("speculative", "baseline")}
    of_baseline = {r["alert"] for r in rules if "alert" in r and r["labels"]["arm"] == "baseline"}
    assert not {name for name in of_baseline if name.startswith("Speculation")}
    assert "KvCacheNearlyFull" in of_baseline


def test_thresholds_are_the_values(render):
    by_name: dict[str, str] = {}
    for rule in rules_of(render("monitoring", *OPERATOR)):
        if "alert" in rule and rule["labels"]["arm"] == "speculative":
            by_name[rule["alert"] + rule["labels"]["severity"]] = rule["expr"]
            assert rule["labels"]["team"] == "inference"
    assert "< 0.25" in by_name["SpeculationAcceptanceLowwarning"]
    assert "> 0.5" in by_name["SpeculationAcceptanceLowwarning"]
    assert 'position="4"} < 0.05' in by_name["SpeculationDecaysByPositioninfo"]
    assert "> 14.4 * (1 - 0.95)" in by_name["TimePerOutputTokenBudgetBurncritical"]
    assert ">= 100" in by_name["TimeToFirstTokenBudgetBurnwarning"]
    assert "> 32" in by_name["SpeculationAboveCrossoverwarning"]
    assert "> 561600" in by_name["FlexStartNodeExpireswarning"]
    assert "EnginePreemptswarning" not in by_name
    assert by_name["KvCacheNearlyFullwarning"].endswith("> 0.9")


def test_without_kube_state_metrics_no_rule_asks_for_it(render):
    rules = rules_of(render(monitoring(alerts={"kubeStateMetrics": False}), *OPERATOR))
    assert not [rule for rule in rules if "kube_" in rule["expr"]]
    without_alerts = rules_of(render(monitoring(alerts={"enabled": False}), *OPERATOR))
    assert without_alerts
    assert not [rule for rule in without_alerts if "alert" in rule]


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "acceptance in per cent": ({"alerts": {"acceptance": {"min": 50}}}, "acceptance"),
    "a negative share": ({"alerts": {"kvCacheUsageMax": -0.1}}, "kvCacheUsageMax"),
    "an objective of 100 %": ({"alerts": {"timePerOutputToken": {"objective": 1}}}, "objective"),
    "a threshold between two buckets": ({"alerts": {"timePerOutputToken": {"seconds": 0.06}}}, "seconds"),
    "an override of no method": (
        {"alerts": {"acceptance": {"overrides": [{"method": "guess", "min": 0.1}]}}},
        "method",
    ),
    "an unknown key": ({"alerts": {"acceptanceMin": 0.5}}, "acceptanceMin"),
    "an interval without unit": ({"scrape": {"interval": "15"}}, "interval"),
    "a timeout above the interval": (
        {"scrape": {"interval": "10s", "timeout": "1m"}},
        "SD652: monitoring.scrape.timeout",
    ),
    "dashboards of what nobody records": (
        {"rules": {"kind": "none"}, "dashboards": {"enabled": True}},
        "SD651: monitoring.dashboards.enabled",
    ),
    "a PodMonitoring elsewhere": (
        {"scrape": {"kind": "podMonitoring", "namespace": "monitoring"}},
        "SD650: monitoring.scrape.namespace",
    ),
    "Rules elsewhere": (
        {"rules": {"kind": "googleRules", "namespace": "monitoring"}},
        "SD650: monitoring.rules.namespace",
    ),
    "an alert that is not there": (
        {"alerts": {"disabled": ["AcceptanceLow"]}},
        "SD653: monitoring.alerts.disabled[0]: there is no alert",
    ),
    "a label that alerts have": (
        {"alerts": {"labels": {"severity": "page"}}},
        "SD654: monitoring.alerts.labels.severity",
    ),
    "a section that is null": ({"alerts": None}, "alerts"),
}


@pytest.mark.parametrize("story", BAD)
def test_monitoring_that_cannot_work_is_refused(refused, story):
    values, expected = BAD[story]
    assert expected in refused(lookup(monitoring=values))


def test_a_schedule_s_least_depth_is_the_last_position(render):
    values = pair(speculative={"schedule": [{"from": 1, "to": 8, "tokens": 4}, {"from": 9, "to": 64, "tokens": 2}]})
    (rule,) = [r for r in rules_of(render(values, *OPERATOR)) if r.get("alert") == "SpeculationDecaysByPosition"]
    assert 'position="1"' in rule["expr"]


def test_every_value_of_monitoring_and_autoscaling_is_set_in_a_scenario():
    scenarios = [yaml.safe_load(path.read_text()) for path in (CHART / "ci").glob("*-values.yaml")]
    overrides = [each for values in scenarios for each in values.get("engines", {}).values() if each]
    for leaf in LEAVES:
        if leaf.startswith(("monitoring.", "autoscaling.")):
            assert any(sets(values, leaf.split(".")) for values in scenarios + overrides), leaf


def sets(values: Any, path: list[str]) -> bool:
    if not path:
        return True
    return isinstance(values, dict) and path[0] in values and sets(values[path[0]], path[1:])


@pytest.mark.parametrize(
    ("kind", "pod", "container"),
    [("InferenceService", "predictor", "kserve-container"), ("LLMInferenceService", "kserve", "main")],
)
def test_kserve_s_pods_have_other_names(render, kind, pod, container):
    rendering = render(lookup(kserve={"enabled": True, "kind": kind}), *OPERATOR)
    (restarts,) = [rule for rule in rules_of(rendering) if rule.get("alert") == "EngineRestarts"]
    assert f'pod=~"speculative-{pod}-[a-z0-9]+-[a-z0-9]{{5}}"' in restarts["expr"]
    assert f'container="{container}"' in restarts["expr"]
    assert {m["metadata"]["name"] for m in rendering.all("PodMonitor")} == {"speculative-engines"}
