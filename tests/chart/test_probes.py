"""An engine gets the time that its bytes need, and is not killed while it loads, compiles or is busy."""

from __future__ import annotations

import math
from typing import Any

import pytest
import yaml

from .conftest import CHART, TARGET, each_scenario, lookup, merged, pair

GIB = 2**30


def budget(container: dict[str, Any]) -> int:
    probe = container["startupProbe"]
    return probe["failureThreshold"] * probe["periodSeconds"]


def checkpoint_bytes(model: str) -> int:
    return yaml.safe_load((CHART / "files" / "models.yaml").read_text())["models"][model]["checkpointBytes"]


def test_the_budget_is_bytes_over_bandwidth_and_the_rest(render):
    # 157.2 GB at 200 MB/s are 785.8 s; with 120 s of boot and 300 s of compilation, times 1.5: 1809 s.
    values = pair(
        engine={"model": {"name": "meta-llama/Llama-3.1-70B-Instruct"}},
        speculative={"model": {"name": "meta-llama/Llama-3.1-8B-Instruct"}},
    )
    loaded = checkpoint_bytes("meta-llama/Llama-3.1-70B-Instruct") + checkpoint_bytes(
        "meta-llama/Llama-3.1-8B-Instruct"
    )
    assert loaded == 141107412992 + 16060522496
    seconds = math.ceil((loaded / 200e6 + 120 + 300) * 1.5)
    assert budget(render(values).container()) == math.ceil(seconds / 10) * 10 == 1810


def test_the_draft_counts(render):
    with_draft = budget(render(pair()).container())
    without = budget(render(pair(speculative={"enabled": False})).container())
    assert with_draft - without == pytest.approx(
        checkpoint_bytes("meta-llama/Llama-3.2-1B-Instruct") / 200e6 * 1.5, abs=10
    )


def test_eager_engines_need_no_time_to_compile(render):
    eager = budget(render(lookup(engine={"enforceEager": True})).container())
    assert budget(render(lookup()).container()) - eager == 450


def test_an_engine_that_fetches_by_itself_gets_time_for_it(render):
    fetching = lookup(modelCache={"prefetch": {"enabled": False}, "downloadMBps": 50})
    longer = budget(render(fetching).container()) - budget(render(lookup()).container())
    assert longer == pytest.approx(checkpoint_bytes(TARGET) / 50e6 * 1.5, abs=10)


def test_a_model_of_unknown_size_is_taken_to_fill_the_accelerators(render):
    values = lookup(engine={"model": {"name": "/srv/unknown"}, "tensorParallelSize": 2})
    seconds = (2 * 79.18 * GIB / 200e6 + 420) * 1.5
    assert budget(render(values).container()) == math.ceil(math.ceil(seconds) / 10) * 10


def test_a_size_that_is_given_counts(render):
    values = lookup(engine={"model": {"name": "/srv/unknown", "sizeGiB": 100}}, modelCache={"readMBps": 1000})
    seconds = (100 * GIB / 1000e6 + 420) * 1.5
    assert budget(render(values).container()) == math.ceil(math.ceil(seconds) / 10) * 10


def test_a_cpu_engine_of_unknown_size_is_bounded_by_its_memory(render):
    values = {
        "accelerator": {"type": "cpu"},
        "engine": {
            "model": {"name": "/srv/target"},
            "kvCacheMemoryBytes": GIB,
            "enforceEager": True,
            "resources": {"requests": {"memory": "7Gi"}},
        },
        "speculative": {"enabled": False},
        "sharedMemory": {"size": "1Gi"},
    }
    assert budget(render(values).container()) == math.ceil((8 * GIB / 200e6 + 120) * 1.5 / 10) * 10


def test_a_budget_that_is_given_is_kept(render):
    values = lookup(probes={"startup": {"budgetSeconds": 3600, "periodSeconds": 20}})
    assert render(values).container()["startupProbe"]["failureThreshold"] == 180


@each_scenario()
def test_liveness_waits_for_start_up_and_forgives_a_busy_engine(render, scenario):
    rendering = render(scenario)
    for name in rendering.engines():
        container = rendering.container(name)
        liveness = container["livenessProbe"]
        assert container["startupProbe"]["httpGet"] == liveness["httpGet"] == {"path": "/health", "port": "http"}
        assert liveness["failureThreshold"] >= 3
        assert liveness["failureThreshold"] * liveness["periodSeconds"] >= 60
        assert not [
            p for p in ("startupProbe", "livenessProbe", "readinessProbe") if "initialDelaySeconds" in container[p]
        ]


def test_a_deployment_waits_longer_than_its_pods_may_take(render):
    values = merged(lookup(), {"engine": {"workload": "Deployment"}})
    rendering = render(values)
    fetching = checkpoint_bytes(TARGET) / 100e6
    assert rendering.workload()["spec"]["progressDeadlineSeconds"] >= budget(rendering.container()) - 10 + fetching


@each_scenario()
def test_requests_may_end_before_the_kill(render, scenario):
    rendering = render(scenario)
    for name in rendering.engines():
        container = rendering.container(name)
        wait = int(rendering.flag("--shutdown-timeout", name) or 0)
        sleep = container["lifecycle"]["preStop"]["sleep"]["seconds"]
        assert rendering.pod(name)["terminationGracePeriodSeconds"] > sleep + wait


def test_the_drain_is_the_sum_of_its_parts(render):
    rendering = render(lookup(shutdown={"preStopSeconds": 10, "timeoutSeconds": 40, "marginSeconds": 10}))
    assert rendering.flag("--shutdown-timeout") == "40"
    assert rendering.pod()["terminationGracePeriodSeconds"] == 60
