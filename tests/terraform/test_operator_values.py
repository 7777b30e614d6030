"""Every value that the GPU Operator gets is one that its chart has."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from .conftest import Copy

# Keys of the chart's own values.yaml, of which the module may set any.
CHART = Path(__file__).parent / "gpu-operator-keys.yaml"


def missing(values: Any, chart: Any, path: str = "") -> list[str]:
    if not isinstance(values, dict):
        return []
    if not isinstance(chart, dict):
        return [path] if values else []
    gone = [f"{path}.{key}".strip(".") for key in values if key not in chart]
    return gone + [
        name for key in values if key in chart for name in missing(values[key], chart[key], f"{path}.{key}".strip("."))
    ]


@pytest.mark.parametrize(("cloud", "mode"), [("gke", "gke-managed"), ("gke", "operator"), ("eks", "operator")])
def test_every_key_exists_in_the_chart(copy: Copy, one_tool: str, cloud: str, mode: str) -> None:
    tests = copy.terraform / "modules/gpu-operator/tests"
    for file in tests.iterdir():
        file.unlink()
    (tests / "values.tftest.hcl").write_text(
        f"""
        mock_provider "helm" {{}}
        mock_provider "kubernetes" {{}}
        run "values" {{
          variables {{
            cloud = "{cloud}"
            mode  = "{mode}"
          }}
        }}
        """
    )
    copy.init(one_tool, "modules/gpu-operator")
    result = copy.run(one_tool, "modules/gpu-operator", "test", "-json", "-verbose")
    values = outputs(result.stdout)["values"]
    assert values["driver"] == {"enabled": False}
    assert missing(values, yaml.safe_load(CHART.read_text())) == []


def test_a_key_that_the_chart_lacks_is_found() -> None:
    assert missing(
        {"cdi": {"default": True}, "driver": {"enabled": False}}, {"cdi": {"enabled": 1}, "driver": {"enabled": 1}}
    ) == ["cdi.default"]


def outputs(log: str) -> dict[str, Any]:
    """Outputs of the last run in the JSON log of `terraform test -json -verbose`."""
    states = [json.loads(line) for line in log.splitlines() if '"test_state"' in line]
    last = states[-1]["test_state"]
    # OpenTofu puts them under "values", as `show -json` does.
    return {name: output["value"] for name, output in last.get("values", last)["outputs"].items()}
