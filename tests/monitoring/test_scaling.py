"""promtool evaluates the queries of the rendered ScaledObject."""

from __future__ import annotations

import subprocess

import pytest
import yaml

from .conftest import VERSIONS, manifests, values_of
from .notation import POD, cases, series

CASES = cases("scaling")
SCALED = {
    "kind": "keda",
    "minReplicas": 0,
    "maxConcurrencyPerReplica": 32,
    "prometheus": {"serverAddress": "http://prometheus:9090"},
}


def queries(version: str) -> dict[str, str]:
    # The histogram of the time per output token begins with 0.11.
    timed = {"timePerOutputToken": {"seconds": 0.05}} if version == "0.32.0" else {}
    made = manifests(values_of(version, {"autoscaling": SCALED | timed}))
    (scaler,) = [each for each in made if each["kind"] == "ScaledObject"]
    return {trigger["name"]: trigger["metadata"]["query"] for trigger in scaler["spec"]["triggers"]}


@pytest.mark.parametrize("case", CASES, ids=[case["story"] for case in CASES])
def test_the_autoscaler_reads(case, promtool, tmp_path):
    for version in VERSIONS:
        asked = queries(version)
        expressions = [
            {
                "expr": f"round({asked[name]}, 0.0001)",
                "eval_time": "10m",
                "exp_samples": [] if value is None else [{"labels": "{}", "value": value}],
            }
            for name, value in case["answers"].items()
            if name in asked
        ]
        test = {"tests": [{"interval": "1m", "input_series": series(version, case["series"], POD)}]}
        test["tests"][0]["promql_expr_test"] = expressions
        (tmp_path / "test.yaml").write_text(yaml.safe_dump({"rule_files": [], "evaluation_interval": "1m"} | test))
        command = [promtool, "test", "rules", "test.yaml"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"vLLM {version}\n{done.stdout}{done.stderr}"


def test_every_signal_is_tried_loaded_idle_and_without_data():
    for name in queries("0.32.0"):
        values = [case["answers"][name] for case in CASES if name in case["answers"]]
        assert None in values
        assert 0 in values
        assert any(value for value in values), name
