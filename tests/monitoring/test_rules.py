"""promtool evaluates every rule and every alert of the chart on series where it has to answer and where it must not."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from .conftest import CHART, VERSIONS, rule_files, rules, values_of
from .notation import RECORDED, cases, labels_text, unit_test

RECORDS, ALERTS = cases("records"), cases("alerts")


def each_case(found: list[dict[str, Any]]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("case", found, ids=[case["story"] for case in found])


def evaluate(promtool: str, tmp_path: Path, version: str, rule_text: str, test: dict[str, Any]) -> None:
    (tmp_path / "rules.yaml").write_text(rule_text)
    (tmp_path / "test.yaml").write_text(yaml.safe_dump(test, sort_keys=False))
    command = [promtool, "test", "rules", "test.yaml"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"vLLM {version}\n{done.stdout}{done.stderr}"


def rules_for(case: dict[str, Any], version: str) -> str:
    return rule_files(values_of(version, case.get("values", {})))["speculative.yaml"]


@each_case(RECORDS)
def test_a_record_is(case, promtool, tmp_path):
    answered = set()
    for version in case.get("versions", VERSIONS):
        text = rules_for(case, version)
        made = {rule["record"] for rule in rules(text) if "record" in rule}
        wanted = case["samples"] if case["samples"] != "all none" else {key: {} for key in made}
        expressions = []
        for record, samples in wanted.items():
            if record not in made:
                continue
            answered.add(record)
            expected = []
            for labels, value in samples.items():
                extra = dict(re.findall(r'(\w+)="([^"]*)"', labels))
                expected.append({"labels": labels_text(RECORDED | extra), "value": value})
            expressions.append({"expr": f"round({record}, 0.0001)", "eval_time": case["at"], "exp_samples": expected})
        evaluate(promtool, tmp_path, version, text, unit_test(case, version, text, expressions))
    assert answered >= (set(case["samples"]) if case["samples"] != "all none" else set())


@each_case(ALERTS)
def test_an_alert(case, promtool, tmp_path):
    asked = set()
    for version in case.get("versions", VERSIONS):
        text = rules_for(case, version)
        made = {rule["alert"] for rule in rules(text) if "alert" in rule}
        expressions = []
        for verdict, count in (("fires", [{"labels": "{}", "value": 1}]), ("quiet", [])):
            for each in case.get(verdict, []):
                name, _, severity = each.partition("/")
                which = f'alertname="{name}"' + (f', severity="{severity}"' if severity else "")
                firing = f'count(ALERTS{{{which}, alertstate="firing"}})'
                if verdict == "fires" and name not in made:
                    continue
                asked.add(each)
                expressions.append({"expr": firing, "eval_time": case["at"], "exp_samples": count})
        evaluate(promtool, tmp_path, version, text, unit_test(case, version, text, expressions))
    assert asked == {each for verdict in ("fires", "quiet") for each in case.get(verdict, [])}


def source(file: str, key: str) -> set[str]:
    names = set()
    for group in yaml.safe_load((CHART / "rules" / f"{file}.yaml").read_text())["groups"]:
        for rule in group["rules"]:
            for name, values in (rule.get("each") or {"": [""]}).items():
                names |= {rule[key].replace(f"@{name}@", value) for value in values}
    return names


def test_every_record_is_tried_with_and_without_traffic():
    with_samples = {
        name for case in RECORDS if case["samples"] != "all none" for name, s in case["samples"].items() if s
    }
    assert with_samples == source("recording", "record")
    assert any(case["samples"] == "all none" for case in RECORDS)


def test_every_alert_is_tried_where_it_fires_and_where_it_does_not():
    severities: dict[str, set[str]] = {}
    for group in yaml.safe_load((CHART / "rules" / "alerts.yaml").read_text())["groups"]:
        for rule in group["rules"]:
            severities.setdefault(rule["alert"], set()).add(rule["labels"]["severity"])
    every = {
        each
        for alert, levels in severities.items()
        for each in ([alert] if len(levels) == 1 else [f"{alert}/{level}" for level in levels])
    }
    assert {each for case in ALERTS for each in case.get("fires", [])} == every
    assert {each for case in ALERTS for each in case.get("quiet", [])} == every


@pytest.mark.parametrize("field_case", ["C10", "C12", "C17", "V19", "V21", "V22"])
def test_the_field_s_cases_are_among_them(field_case):
    assert [case for case in RECORDS + ALERTS if case["story"].startswith(field_case)]


@pytest.mark.parametrize(
    "version", ["0.33.0", "0.28.0", "0.20.0", "0.13.0", "0.11.0", "0.9.2", "0.8.5", "0.7.3", "0.6.3"]
)
def test_promtool_reads_the_rules_of_every_version(version, promtool, tmp_path):
    values = values_of(version, {"baseline": {"enabled": True}, "autoscaling": {"maxConcurrencyPerReplica": 8}})
    for name, text in rule_files(values).items():
        (tmp_path / name).write_text(text)
    command = [promtool, "check", "rules", "--lint=all", "--lint-fatal", *map(str, sorted(tmp_path.iterdir()))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_an_alert_says_what_is_wrong_and_where_its_runbook_lies(promtool, tmp_path):
    (case,) = [each for each in ALERTS if each["story"] == "the KV cache is full"]
    text = rules_for(case, "0.32.0")
    test = unit_test(case, "0.32.0", text, [])
    alert = {
        "exp_labels": RECORDED | {"severity": "warning"},
        "exp_annotations": {
            "summary": "speculative/speculative: 98% of the KV cache is in use, on average over the pods",
            "description": "Above 0.95 new requests wait, and running ones are preempted and computed again.",
            "runbook_url": "docs/runbooks/KvCacheNearlyFull.md",
        },
    }
    test["tests"][0]["alert_rule_test"] = [
        {"alertname": "KvCacheNearlyFull", "eval_time": "20m", "exp_alerts": [alert]}
    ]
    evaluate(promtool, tmp_path, "0.32.0", text, test)
