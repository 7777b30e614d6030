"""The real API server, with the real definitions of all kinds, takes every scenario of the chart."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import controllers
import pytest
import yaml
from machine import CHART
from machine import NAMESPACE as RELEASED
from specdec.deploy.cluster import Cluster

pytestmark = controllers.needs()
SCENARIOS = sorted((CHART / "rendered").glob("*.yaml"))
NAMESPACE = "scenarios"  # empty, so that nothing of the release is met
# Google publishes no definitions of these.
UNPUBLISHED = {"networking.gke.io/v1/GCPBackendPolicy", "networking.gke.io/v1/HealthCheckPolicy"}


@pytest.fixture(scope="module")
def definitions(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    assert cluster
    names = (NAMESPACE, "monitoring")
    namespaces = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in names]
    documents = [*controllers.manifests("crds"), *namespaces]
    with controllers.applied(documents, tmp_path_factory.mktemp("crds") / "crds.json"):
        controllers.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")
        yield


@pytest.mark.usefixtures("definitions")
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda path: path.stem)
def test_the_api_server_takes_the_scenario(scenario: Path, tmp_path: Path) -> None:
    documents = [document for document in yaml.safe_load_all(scenario.read_text()) if document]
    known = [one for one in documents if f"{one['apiVersion']}/{one['kind']}" not in UNPUBLISHED]
    assert known
    for one in known:
        if one["metadata"].get("namespace") == RELEASED:
            one["metadata"]["namespace"] = NAMESPACE
    file = tmp_path / "scenario.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": known}))
    taken = controllers.kubectl("create", "--dry-run=server", "--output=name", "--filename", str(file))
    assert len(taken.splitlines()) == len(known)
