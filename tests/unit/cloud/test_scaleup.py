"""GPU pools start from zero: a machine that cannot be had shows when the pods wait, and is told in the same words."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from specdec.deploy import pods, scaleup
from specdec.deploy.cloud import failures
from specdec.deploy.cloud.events import Reader
from specdec.deploy.cloud.target import Target
from specdec.deploy.cloud.terraform import Failed
from specdec.deploy.wait import failure
from specdec.errors import FoundWrong

STOCK_OUT = (
    "Node scale up in zones us-central1-a associated with this pod failed: GCE out of resources. "
    "Pod is at risk of not being scheduled."
)
QUOTA = STOCK_OUT.replace("GCE out of resources", "GCE quota exceeded")
BACKOFF = "pod didn't trigger scale-up: 1 in backoff after failed scale-up"
FULL = "pod didn't trigger scale-up: 1 max node group size reached"
TRIGGERED = "pod triggered scale-up: [{l4-group 0->1 (max: 2)}]"
POD: dict[str, Any] = {
    "metadata": {"name": "speculative-0"},
    "status": {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]},
}


def events(*said: tuple[str, str]) -> list[dict[str, Any]]:
    return [{"reason": reason, "message": message} for reason, message in said]


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ([], None),
        ([("TriggeredScaleUp", TRIGGERED)], None),
        ([("TriggeredScaleUp", TRIGGERED), ("FailedScaleUp", STOCK_OUT)], "StockOut"),
        ([("TriggeredScaleUp", TRIGGERED), ("FailedScaleUp", QUOTA)], "Quota"),
        # The next zone is being tried.
        ([("FailedScaleUp", STOCK_OUT), ("TriggeredScaleUp", TRIGGERED)], None),
        ([("FailedScaleUp", STOCK_OUT), ("NotTriggerScaleUp", BACKOFF)], "StockOut"),
        ([("NotTriggerScaleUp", BACKOFF)], "NoScaleUp"),
        ([("NotTriggerScaleUp", FULL)], "PoolFull"),
        ([("NotTriggerScaleUp", "pod didn't trigger scale-up: 1 node(s) didn't match Pod's node affinity")], None),
    ],
)
def test_the_autoscalers_last_word_counts(said: list[tuple[str, str]], reason: str | None) -> None:
    found = scaleup.refused(events(*said))
    assert (found[0] if found else None) == reason
    assert reason is None or reason in scaleup.FIXES


def test_a_pod_without_a_machine_says_why() -> None:
    state = pods.state(POD, events(("FailedScaleUp", STOCK_OUT)), lambda *_: [])
    assert state.phase == f"waiting for a node: {STOCK_OUT}"
    assert state.trouble is not None
    assert state.trouble.patient


def test_the_zones_that_remain_are_named(targets: Callable[..., Target]) -> None:
    state = pods.state(POD, events(("FailedScaleUp", STOCK_OUT)), lambda *_: [])
    assert state.trouble is not None
    error = failure(state, state.trouble)
    found = failures.without_nodes(error, targets(), lambda _: ["us-central1-a", "us-central1-b", "us-central1-c"])
    assert found.code == "SD863"
    assert "us-central1-b of its zones remain" in (found.fix or "")
    assert "us-central1-c sell g2-standard-12 too" in (found.fix or "")


def test_only_the_pool_that_was_hit_is_spoken_of(targets: Callable[..., Target], folder: Path) -> None:
    file = folder / "test" / "terraform.tfvars"
    another = '\n  h100 = { machine_type = "a3-highgpu-8g", zones = ["us-central1-c"] }\n'
    file.write_text(file.read_text().replace("gpu_pools = {", "gpu_pools = {" + another))
    reader = Reader()
    found = {"severity": "error", "summary": STOCK_OUT, "detail": "",
             "address": 'module.gpu_pool["h100"].google_container_node_pool.this'}  # fmt: skip
    reader.feed(json.dumps({"type": "diagnostic", "diagnostic": found | {"summary": STOCK_OUT.replace("1-a", "1-c")}}))
    other = {"severity": "error", "summary": "Quota 'CPUS' exceeded in us-central1-b", "address": "x", "detail": ""}
    reader.feed(json.dumps({"type": "diagnostic", "diagnostic": other}))
    zones = ["us-central1-a", "us-central1-c"]
    error = failures.explain(Failed("terraform apply", reader), targets(), "gke", offers=lambda _: zones, changed=True)
    assert (error.code, error.exit_code) == ("SD863", 1)
    assert "us-central1-a sell a3-highgpu-8g too: add them to gpu_pools.h100.zones" in (error.fix or "")
    assert "l4" not in (error.fix or "")
    assert "Quota 'CPUS' exceeded" in error.message


def test_a_quota_is_no_stock_out(targets: Callable[..., Target]) -> None:
    found = failures.without_nodes(FoundWrong(QUOTA, code="not-ready"), targets(), lambda _: None)
    assert found.code == "SD856"
    assert "zones remain" not in (found.fix or "")


def test_another_failure_stays_what_it_is(targets: Callable[..., Target]) -> None:
    error = FoundWrong("pod speculative-0: OOMKilled: it needed more memory than its limit", code="pod-failed")
    assert failures.without_nodes(error, targets(), lambda _: None) is error
