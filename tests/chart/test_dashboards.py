"""Grafana's dashboards ask for series that are there, in an order that Grafana can draw."""

from __future__ import annotations

import json
import re
import shutil
import subprocess

import pytest
import yaml

from .conftest import ROOT
from .test_monitoring import OPERATOR, asked, rules_of

# What vllm-router 0.1.17 exports, of what the chart asks.
ROUTER = {"vllm_router_requests_total", "vllm_router_request_errors_total"}


def test_every_dashboard_asks_for_recorded_series_and_the_router_s(render):
    rendering = render("monitoring", *OPERATOR)
    recorded = {rule["record"] for rule in rules_of(rendering) if "record" in rule}
    dashboards = [m for m in rendering.all("ConfigMap") if "dashboard" in m["metadata"]["name"]]
    assert {m["metadata"]["name"].rsplit("-", 1)[1] for m in dashboards} == {"speculation", "engine", "arms"}
    shown = set()
    for config in dashboards:
        assert config["metadata"]["labels"]["grafana_dashboard"] == "1"
        ((_, text),) = config["data"].items()
        dashboard = json.loads(text)
        variables = {v["name"] for v in dashboard["templating"]["list"]}
        assert variables == {"datasource", "namespace", "release", "engine"}
        for variable in dashboard["templating"]["list"]:
            shown |= {name for name in recorded if name in str(variable["query"])}
        for panel in dashboard["panels"]:
            assert panel["gridPos"]["x"] + panel["gridPos"]["w"] <= 24
            for target in panel["targets"]:
                names = asked(target["expr"])
                assert names <= recorded | ROUTER, (panel["title"], names)
                assert set(re.findall(r"\$(\w+)", target["expr"])) <= variables
                shown |= names
    # What nobody looks at on a dashboard are the windows of the alerts.
    assert {name for name in recorded - shown if "slow:ratio" not in name} == set()


def test_panels_do_not_overlap(render):
    for config in render("monitoring", *OPERATOR).all("ConfigMap"):
        ((_, text),) = config["data"].items()
        taken: set[tuple[int, int]] = set()
        for panel in json.loads(text)["panels"]:
            at = panel["gridPos"]
            cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
            assert not cells & taken, panel["title"]
            taken |= cells


def test_prometheus_own_parser_reads_every_dashboard_query(render, tmp_path):
    promtool = shutil.which("promtool") or shutil.which("promtool", path=str(ROOT / ".tools" / "bin"))
    if not promtool:
        pytest.skip("promtool is not on PATH: make setup, or apt-get install prometheus")
    rules = []
    for config in render("monitoring", *OPERATOR).all("ConfigMap"):
        ((_, text),) = config["data"].items()
        for panel in json.loads(text)["panels"]:
            rules += [{"record": f"panel:{len(rules)}:{i}", "expr": t["expr"]} for i, t in enumerate(panel["targets"])]
    file = tmp_path / "panels.yaml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": rules}]}))
    done = subprocess.run([promtool, "check", "rules", str(file)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(rules) > 40
