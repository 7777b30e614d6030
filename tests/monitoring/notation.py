"""Cases of cases/*.yaml as promtool's unit tests: series by role become series by the version's names."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import yaml

CASES = Path(__file__).with_name("cases")
METRICS = CASES.parents[2] / "helm" / "vllm-speculative" / "files" / "metrics.yaml"
SERIES = re.compile(r"(?P<name>[a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(?P<labels>.*)\})?")
POD = {
    "namespace": "ai-inference",
    "app_kubernetes_io_instance": "speculative",
    "vllm_speculative_engine": "speculative",
    "pod": "speculative-0",
    "model_name": "chat",
    "engine": "0",
}
RECORDED = {"namespace": "ai-inference", "release": "speculative", "engine": "speculative", "arm": "speculative"}


def read(text: str) -> Any:
    return yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))


def cases(name: str) -> list[dict[str, Any]]:
    """The cases of every file whose name begins so."""
    return [case for path in sorted(CASES.glob(f"{name}*.yaml")) for case in read(path.read_text())]


def _key(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in version.split("."))


@cache
def names_of(version: str) -> dict[str, str]:
    """Names by role, with the three series of each histogram, read from files/metrics.yaml without the chart."""
    core = "v0" if _key(version) < (0, 8, 0) else "v1"
    names = {"up": "up"}
    for metric in read(METRICS.read_text())["metrics"]:
        starts = _key(metric["from"]) <= _key(version)
        ends = "before" in metric and _key(metric["before"]) <= _key(version)
        if "role" in metric and metric["core"] == core and starts and not ends and not metric.get("hidden"):
            suffixes = ["_bucket", "_sum", "_count"] if metric["type"] == "histogram" else [""]
            names |= {metric["role"] + suffix: metric["name"] + suffix for suffix in suffixes}
    return names


def labels_text(labels: dict[str, str]) -> str:
    return "{" + ", ".join(f'{key}="{value}"' for key, value in sorted(labels.items())) + "}"


def series(version: str, wanted: dict[str, str], common: dict[str, str]) -> list[dict[str, str]]:
    """promtool's input series. A role that the version lacks is left out, as the engine leaves it out."""
    names, found = names_of(version), []
    for text, values in wanted.items():
        match = SERIES.fullmatch(text)
        assert match, text
        raw = match["name"].startswith(("kube_", "vllm:", "vllm_"))
        name = match["name"] if raw else names.get(match["name"])
        labels = dict(re.findall(r'(\w+)="([^"]*)"', match["labels"] or ""))
        base = {"namespace": "ai-inference"} if match["name"].startswith("kube_") else common
        if name:
            found.append({"series": name + labels_text(base | labels), "values": values})
    return found


def unit_test(case: dict[str, Any], version: str, rule_text: str, expressions: list[dict[str, Any]]) -> dict[str, Any]:
    """One file of promtool's, which evaluates the groups in their order."""
    inputs = series(version, case["series"], POD) + series(version, case.get("recorded", {}), RECORDED)
    return {
        "rule_files": ["rules.yaml"],
        "evaluation_interval": "1m",
        "group_eval_order": [group["name"] for group in read(rule_text)["groups"]],
        "tests": [{"interval": "1m", "name": case["story"], "input_series": inputs, "promql_expr_test": expressions}],
    }
