"""Whom smoke tests and measurements ask, found in what the chart renders."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from specdec.deploy import pipeline, targets
from specdec.errors import SpecdecError
from specdec.objects import parse

RENDERED = Path(__file__).resolve().parents[3] / "helm" / "vllm-speculative" / "rendered"


def release(scenario: str) -> targets.Release:
    path = RENDERED / f"{scenario}.yaml"
    return targets.of(parse(path.read_text(), str(path)))


class Asked:
    """A cluster that notes whose Service is asked for."""

    def __init__(self) -> None:
        self.services: list[tuple[str, int]] = []

    def service(self, name: str, port: int) -> Any:
        self.services.append((name, port))
        return name


def asked(scenario: str) -> dict[str, str]:
    """The model that each Service is asked for."""
    cluster: Any = Asked()
    found = pipeline.smoke_targets(cluster, release(scenario))
    return {str(target.endpoint): target.model for target in found}


@pytest.mark.parametrize(
    ("scenario", "services"),
    [
        ("cpu", {"speculative-router": "target"}),
        ("engines", {"speculative-router": "chat", "speculative-plain": "plain"}),
        ("ingress", {"speculative-chat-router": "chat", "speculative-code-router": "code"}),
        ("no-router", {"speculative": "meta-llama/Llama-3.1-8B-Instruct"}),
        ("kserve", {"speculative-predictor": "llama-3.3-70b"}),
        ("kserve-llm", {"speculative-kserve-workload-svc": "meta-llama/Llama-3.1-8B-Instruct"}),
    ],
)
def test_clients_ways_in_are_tested_and_no_engine_is_left_out(scenario, services):
    assert asked(scenario) == services


def test_kserve_s_pods_are_found_by_the_chart_s_labels():
    (engine,) = release("kserve").engines
    assert engine.port == 80
    assert engine.pod_port == 8000
    assert engine.selector == {
        "app.kubernetes.io/instance": "speculative",
        "app.kubernetes.io/component": "engine",
        "vllm-speculative/engine": "speculative",
    }
    assert engine.speculates


def test_an_llm_inference_service_s_annotations_are_its_pods():
    (engine,) = release("kserve-llm").engines
    assert engine.workload.pod_metadata["annotations"]["vllm-speculative/engine-version"] == "0.32.0"


def test_an_engine_without_a_service_is_said():
    text = (RENDERED / "no-router.yaml").read_text()
    manifests = [manifest for manifest in parse(text, "no-router.yaml") if manifest.kind != "Service"]
    with pytest.raises(SpecdecError, match="no Service leads to engine speculative"):
        targets.of(manifests)
