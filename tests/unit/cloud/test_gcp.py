"""Preflight on Google Cloud, against answers as its APIs give them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from google.api_core import exceptions
from google.cloud import container_v1
from specdec.deploy.cloud import gcp
from specdec.deploy.cloud.gcp import Google
from specdec.deploy.cloud.target import Target
from specdec.deploy.problems import Problem

Read = Callable[..., Target]
BUCKET = {"versioning": {"enabled": True}, "iamConfiguration": {"publicAccessPrevention": "enforced"}}
STATE = {"resources": [{"type": "google_container_cluster", "instances": [{"attributes": {"name": "inference-test"}}]}]}


def refusal(status: int, name: str, message: str, reason: str = "") -> tuple[int, Any]:
    """An error in the form that all of Google's REST APIs share."""
    details = [{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": reason}] if reason else []
    return status, {"error": {"code": status, "status": name, "message": message, "details": details}}


def quota(metric: str, limit: float, usage: float = 0) -> dict[str, Any]:
    return {"metric": metric, "limit": limit, "usage": usage}


class Answer:
    def __init__(self, status: int, body: Any) -> None:
        self.status_code, self.body = status, body
        self.text = body if isinstance(body, str) else json.dumps(body)

    def json(self) -> Any:
        return json.loads(self.text)


class Session:
    """Answers by the end of the address; what a test changes comes first."""

    def __init__(self) -> None:
        zones = {f"zones/us-central1-{zone}": {"machineTypes": [{"name": "g2-standard-12"}]} for zone in "abc"}
        zones |= {"zones/us-central1-f": {}, "zones/europe-west4-a": {"machineTypes": [{}]}}
        enabled = [{"name": f"projects/1/services/{api}.googleapis.com", "state": "ENABLED"} for api in gcp.APIS]
        allowed = [quota("PREEMPTIBLE_NVIDIA_L4_GPUS", 8), quota("NVIDIA_L4_GPUS", 4)]
        self.asked: list[str] = []
        self.answers: dict[str, tuple[int, Any]] = {
            "/v1/projects/my-project": (200, {"projectId": "my-project", "lifecycleState": "ACTIVE"}),
            "services:batchGet": (200, {"services": enabled}),
            ":testIamPermissions": (200, {"permissions": list(gcp.RIGHTS)}),
            "/b/test-state": (200, BUCKET),
            "default.tfstate": refusal(404, "NOT_FOUND", "No such object"),
            "aggregated/machineTypes": (200, {"items": zones}),
            "regions/us-central1": (200, {"quotas": allowed}),
            "compute/v1/projects/my-project": (200, {"quotas": [quota("GPUS_ALL_REGIONS", 4)]}),
            "aggregated/disks": (200, {"items": {}}),
            "aggregated/forwardingRules": (200, {"items": {}}),
            "aggregated/addresses": (200, {"items": {}}),
        }  # fmt: skip

    def request(self, method: str, url: str, **_: Any) -> Answer:
        self.asked.append(f"{method} {url}")
        path = url.split("?")[0].replace("%2F", "/")
        end = max((end for end in self.answers if path.endswith(end)), key=len)
        return Answer(*self.answers[end])


class Clusters:
    """The client of google-cloud-container, with messages of its own types."""

    def __init__(self) -> None:
        self.exists = False
        channel = container_v1.ServerConfig.ReleaseChannelConfig(
            channel=container_v1.ReleaseChannel.Channel.REGULAR, default_version="1.33.4-gke.1134000"
        )
        versions = ["1.34.1-gke.100", "1.33.4-gke.1134000", "1.32.9-gke.5"]
        self.config = container_v1.ServerConfig(valid_master_versions=versions, channels=[channel])

    def get_server_config(self, name: str) -> Any:
        assert name == "projects/my-project/locations/us-central1"
        return self.config

    def get_cluster(self, name: str) -> Any:
        if not self.exists:
            raise exceptions.NotFound(f"Not found: {name}")
        return container_v1.Cluster(name="inference-test")


@pytest.fixture
def session() -> Session:
    return Session()


@pytest.fixture
def clusters() -> Clusters:
    return Clusters()


@pytest.fixture
def check(targets: Read, session: Session, clusters: Clusters) -> Callable[[], list[Problem]]:
    return lambda: Google(targets(), session, clusters).check(lambda _: None)


def one(problems: list[Problem]) -> Problem:
    assert len(problems) == 1, [str(problem) for problem in problems]
    return problems[0]


def test_an_empty_project_with_quota_has_nothing_against_it(check: Callable[[], list[Problem]]) -> None:
    assert check() == []


def test_everything_wrong_is_said_at_once(
    check: Callable[[], list[Problem]], session: Session, clusters: Clusters
) -> None:
    session.answers["services:batchGet"] = (200, {"services": []})
    session.answers[":testIamPermissions"] = (200, {})
    session.answers["/b/test-state"] = refusal(404, "NOT_FOUND", "The specified bucket does not exist.")
    session.answers["regions/us-central1"] = (200, {"quotas": [quota("PREEMPTIBLE_NVIDIA_L4_GPUS", 0)]})
    session.answers["aggregated/machineTypes"] = (200, {"items": {"zones/us-central1-c": {"machineTypes": [{}]}}})
    clusters.exists = True
    codes = {problem.code for problem in check()}
    assert codes == {"SD851", "SD855", "SD856", "SD857", "SD859", "SD864"}


def test_apis_that_are_off_come_with_the_command(check: Callable[[], list[Problem]], session: Session) -> None:
    services = session.answers["services:batchGet"][1]["services"]
    services[1]["state"] = services[2]["state"] = "DISABLED"
    found = one(check())
    assert found.code == "SD855"
    assert found.fix == "gcloud services enable compute.googleapis.com container.googleapis.com --project my-project"


@pytest.mark.parametrize("status", [403, 404])
def test_a_wrong_project_ends_the_questions(check: Callable[[], list[Problem]], session: Session, status: int) -> None:
    session.answers["/v1/projects/my-project"] = refusal(
        status, "PERMISSION_DENIED", "The caller does not have permission"
    )
    found = one(check())
    assert found.code == "SD854"
    assert 'terraform.tfvars: project_id = "my-project"' in found.where
    assert len(session.asked) == 1


def test_a_project_that_is_being_deleted_is_refused(check: Callable[[], list[Problem]], session: Session) -> None:
    session.answers["/v1/projects/my-project"] = (200, {"lifecycleState": "DELETE_REQUESTED"})
    assert "DELETE_REQUESTED" in one(check()).message


def test_a_missing_bucket_comes_with_its_commands(check: Callable[[], list[Problem]], session: Session) -> None:
    session.answers["/b/test-state"] = refusal(404, "NOT_FOUND", "The specified bucket does not exist.")
    problems = check()
    assert [problem.code for problem in problems] == ["SD851", "SD851"]
    assert "gcloud storage buckets create gs://test-state --project my-project --location us-central1" in str(
        problems[0]
    )
    assert "backend.gke.hcl" in problems[0].where
    assert "backend.platform.hcl" in problems[1].where


@pytest.mark.parametrize(
    ("body", "code", "level"),
    [
        ({**BUCKET, "versioning": {}}, "SD852", "error"),
        ({**BUCKET, "iamConfiguration": {}}, "not-checked", "warning"),
    ],
)
def test_an_unsafe_bucket_is_named(
    check: Callable[[], list[Problem]], session: Session, body: Any, code: str, level: str
) -> None:
    session.answers["/b/test-state"] = (200, body)
    assert {(problem.code, problem.level) for problem in check()} == {(code, level)}


def test_anothers_bucket_is_no_missing_bucket(check: Callable[[], list[Problem]], session: Session) -> None:
    session.answers["/b/test-state"] = refusal(403, "PERMISSION_DENIED", "does not have storage.buckets.get access")
    assert {problem.code for problem in check()} == {"SD864"}


def test_a_quota_below_one_node_is_an_error_and_one_below_all_a_warning(
    check: Callable[[], list[Problem]], session: Session
) -> None:
    metric = "PREEMPTIBLE_NVIDIA_L4_GPUS"
    session.answers["regions/us-central1"] = (200, {"quotas": [quota(metric, 1, 1)]})
    found = one(check())
    assert (found.code, found.level) == ("SD856", "error")
    assert "0 of 1 GPUs are left, and one node takes 1: l4 (2 × g2-standard-12)" in found.message
    session.answers["regions/us-central1"] = (200, {"quotas": [quota(metric, 1)]})
    found = one(check())
    assert found.level == "warning"
    assert "the pools may take 2" in found.message
    session.answers["regions/us-central1"] = (200, {"quotas": []})
    assert one(check()).level == "warning"


def test_on_demand_gpus_count_in_all_regions_too(
    check: Callable[[], list[Problem]], session: Session, folder: Path
) -> None:
    file = folder / "test" / "terraform.tfvars"
    file.write_text(file.read_text().replace('"spot"', '"on_demand"'))
    assert check() == []
    session.answers["compute/v1/projects/my-project"] = (200, {"quotas": [quota("GPUS_ALL_REGIONS", 0)]})
    assert "GPUS_ALL_REGIONS in all regions" in one(check()).where


def test_a_zone_without_the_machine_names_those_that_have_it(
    check: Callable[[], list[Problem]], session: Session
) -> None:
    del session.answers["aggregated/machineTypes"][1]["items"]["zones/us-central1-b"]
    found = one(check())
    assert (found.code, found.message) == ("SD857", "us-central1-b has no g2-standard-12")
    assert found.fix == "zones that have it: us-central1-a, us-central1-c"


def test_a_region_without_the_machine_is_named(check: Callable[[], list[Problem]], session: Session) -> None:
    session.answers["aggregated/machineTypes"] = (200, {"items": {}})
    assert one(check()).message == "no zone of us-central1 sells g2-standard-12"


@pytest.mark.parametrize(("wanted", "right"), [("1.33", True), ("1.32.9-gke.5", True), ("1.29", False), ("1.3", False)])
def test_a_version_is_one_that_gke_offers(
    check: Callable[[], list[Problem]], folder: Path, wanted: str, right: bool
) -> None:
    file = folder / "test" / "terraform.tfvars"
    file.write_text(file.read_text() + f'min_version = "{wanted}"\n')
    problems = check()
    assert [problem.code for problem in problems] == ([] if right else ["SD858"])
    assert right or problems[0].fix == "one of 1.32, 1.33, 1.34"


def test_flex_start_needs_a_version_that_has_it(
    check: Callable[[], list[Problem]], clusters: Clusters, folder: Path
) -> None:
    file = folder / "test" / "terraform.tfvars"
    file.write_text(file.read_text().replace('"spot"', '"flex_start"'))
    assert check() == []
    clusters.config.channels[0].default_version = "1.31.9-gke.1"
    assert "flex_start needs GKE 1.32.2" in one(check()).message


def test_a_name_is_free_ours_or_taken(check: Callable[[], list[Problem]], session: Session, clusters: Clusters) -> None:
    clusters.exists = True
    assert one(check()).code == "SD859"
    session.answers["default.tfstate"] = (200, STATE)
    assert check() == []
    session.answers["default.tfstate"] = (200, {"resources": []})
    assert "the state does not hold it" in one(check()).message


def test_what_may_not_be_seen_is_a_warning_and_not_an_error(
    check: Callable[[], list[Problem]], session: Session
) -> None:
    session.answers["regions/us-central1"] = refusal(
        403, "PERMISSION_DENIED", "Required 'compute.regions.get' permission"
    )
    found = one(check())
    assert found.level == "warning"
    assert "not checked" in found.message


def test_an_api_that_is_off_is_an_error_wherever_it_shows(check: Callable[[], list[Problem]], session: Session) -> None:
    text = "Compute Engine API has not been used in project my-project before or it is disabled."
    session.answers["regions/us-central1"] = refusal(403, "PERMISSION_DENIED", text, "SERVICE_DISABLED")
    assert (one(check()).code, one(check()).level) == ("SD855", "error")


@pytest.mark.parametrize("expired", [True, False])
def test_credentials_that_are_expired_or_missing_come_with_the_login(
    targets: Read, monkeypatch: pytest.MonkeyPatch, expired: bool
) -> None:
    import google.auth
    from google.auth import exceptions as auth

    class Expired:
        def refresh(self, _: object) -> None:
            raise auth.RefreshError("Reauthentication is needed. Please run `gcloud auth application-default login`.")

    def default(**_: Any) -> Any:
        if expired:
            return Expired(), "my-project"
        raise auth.DefaultCredentialsError("Your default credentials were not found.")

    monkeypatch.setattr(google.auth, "default", default)
    found = one(Google(targets()).check(lambda _: None))
    assert found.code == "SD853"
    assert ("expired" in found.message) == expired
    assert "gcloud auth application-default login" in (found.fix or "")


def test_no_network_is_a_warning_for_each_question(targets: Read, clusters: Clusters) -> None:
    import requests

    class Silent:
        def request(self, *_: Any, **__: Any) -> Any:
            raise requests.ConnectionError("Failed to establish a new connection: Name or service not known")

    problems = Google(targets(), Silent(), clusters).check(lambda _: None)
    assert problems
    assert {problem.level for problem in problems} == {"warning"}


def test_what_kubernetes_left_is_listed_with_its_command(targets: Read, session: Session) -> None:
    disks = [{"name": "pvc-1", "sizeGb": "100"}]
    session.answers["aggregated/disks"] = (200, {"items": {"zones/us-central1-a": {"disks": disks}}})
    rules = [{"name": "a1b2", "IPAddress": "203.0.113.7"}, {"name": "somebody-elses", "IPAddress": "203.0.113.8"}]
    scopes = {"regions/us-central1": {"forwardingRules": rules}}
    session.answers["aggregated/forwardingRules"] = (200, {"items": scopes})
    static = {"global": {"addresses": [{"name": "front", "address": "203.0.113.9"}]}}
    session.answers["aggregated/addresses"] = (200, {"items": static})
    found = [str(one) for one in Google(targets(), session).remains(["203.0.113.7", "203.0.113.9"])]
    assert found == [
        "disk pvc-1, 100 GB in us-central1-a: "
        "gcloud compute disks delete pvc-1 --zone us-central1-a --project my-project --quiet",
        "load balancer a1b2 (203.0.113.7): "
        "gcloud compute forwarding-rules delete a1b2 --region us-central1 --project my-project --quiet",
        "address front (203.0.113.9): gcloud compute addresses delete front --global --project my-project --quiet",
    ]
