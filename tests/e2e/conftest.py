"""The machine before anything was deployed, and the local environment deployed once for all stories."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest
from machine import NAMESPACE, Machine, run, specdec
from specdec import local
from specdec.deploy.cluster import Cluster, connect

# They change the release in steps of their own, or take it away: after the stories that look at it as it was deployed.
LATE = ("test_autoscaling", "test_gateway", "test_scenarios", "test_uninstall")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: LATE.index(item.path.stem) if item.path.stem in LATE else -1)


@pytest.fixture(scope="session")
def before() -> Machine:
    """The machine before anything was deployed."""
    return Machine.now()


@pytest.fixture(scope="session")
def deployment(before: Machine) -> Iterator[dict[str, Any]]:
    """The local environment, deployed once for all stories, and taken down whatever happens."""
    if os.geteuid() != 0:
        pytest.fail("the end-to-end test starts a cluster: run it as root")
    assert not before.processes, f"a cluster already runs on this machine: {sorted(before.processes)}"
    try:
        yield specdec("deploy", "local")
    finally:
        run("specdec", "destroy", "local", "--yes", check=False)


@pytest.fixture(scope="session")
def cluster(deployment: dict[str, Any]) -> Cluster:
    assert deployment
    return connect(NAMESPACE, kubeconfig=local.kubeconfig())
