"""Every pod of every rendering keeps to the restricted Pod Security Standard, or says which level it needs and why."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from .conftest import Rendering, each_scenario, lookup, merged
from .pod_security import above_baseline, above_restricted, level

Found = tuple[str, dict[str, Any], dict[str, Any]]
WORKLOADS = ("StatefulSet", "Deployment", "DaemonSet", "Job")


def pods(rendering: Rendering) -> Iterator[Found]:
    """Name, annotations and specification of every pod that the manifests lead to."""
    for manifest in rendering.manifests:
        kind, name = manifest["kind"], manifest["metadata"]["name"]
        if kind in WORKLOADS:
            template = manifest["spec"]["template"]
            yield f"{kind} {name}", template["metadata"].get("annotations", {}), template["spec"]
        elif kind == "CronJob":
            template = manifest["spec"]["jobTemplate"]["spec"]["template"]
            yield f"{kind} {name}", template["metadata"].get("annotations", {}), template["spec"]
        elif kind == "Pod":
            yield f"{kind} {name}", manifest["metadata"].get("annotations", {}), manifest["spec"]
        elif kind == "InferenceService":
            predictor = manifest["spec"]["predictor"]
            yield f"{kind} {name}", predictor["annotations"], predictor
        elif kind == "LLMInferenceService":
            yield f"{kind} {name}", manifest["spec"]["annotations"], manifest["spec"]["template"]


@each_scenario()
def test_every_pod_is_admitted_at_the_level_that_it_states(render, scenario):
    found = list(pods(render(scenario)))
    assert found
    for name, stated_in, spec in found:
        stated = stated_in.get("vllm-speculative/pod-security", "restricted")
        assert level(spec) == stated, f"{name}: {list(above_restricted(spec))}"


@each_scenario()
def test_what_is_above_restricted_is_a_directory_of_the_node_alone(render, scenario):
    for name, _, spec in pods(render(scenario)):
        reasons = list(above_restricted(spec))
        if name.endswith("-nvme"):
            continue
        assert [reason for reason in reasons if "hostPath" not in reason] == [], name


def test_the_daemon_set_that_makes_file_systems_is_privileged_in_one_container(render):
    (daemon,) = render("nvme").all("DaemonSet")
    spec = daemon["spec"]["template"]["spec"]
    assert sorted(above_baseline(spec)) == ["hostPID", "prepare is privileged"]
    assert [reason for reason in above_restricted(spec) if reason.startswith("hold")] == []
    assert spec["automountServiceAccountToken"] is False


PARTS: dict[str, tuple[dict[str, Any], str]] = {
    "as root": ({"containers": [{"securityContext": {"runAsUser": 0}}]}, "main runs as root"),
    "with rights to gain": (
        {"containers": [{"securityContext": {"allowPrivilegeEscalation": True}}]},
        "main may escalate",
    ),
    "with capabilities": ({"containers": [{"securityContext": {"capabilities": {}}}]}, "main keeps capabilities"),
    "without seccomp": ({"securityContext": {"seccompProfile": {}}}, "main has no seccomp profile"),
    "in the node's network": ({"hostNetwork": True}, "hostNetwork"),
    "with a directory of the node": ({"volumes": [{"name": "v", "hostPath": {"path": "/"}}]}, "volume v is a hostPath"),
    "with a disk of the cloud": ({"volumes": [{"name": "v", "nfs": {}}]}, "volume v is a nfs"),
}


@pytest.mark.parametrize("story", PARTS)
def test_a_pod_above_restricted_is_found(story):
    context = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    good = {
        "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [{"name": "main", "securityContext": context}],
    }
    assert level(good) == "restricted"
    part, reason = PARTS[story]
    bad = merged(good, {key: value for key, value in part.items() if key != "containers"})
    if "seccompProfile" in part.get("securityContext", {}):
        bad["securityContext"]["seccompProfile"] = {}
    for container in part.get("containers", []):
        over = container["securityContext"]
        own = {**context, **over}
        bad["containers"] = [{"name": "main", "securityContext": own}]
    assert reason in list(above_restricted(bad))
    assert level(bad) != "restricted"


def test_users_and_groups_of_every_container_follow_the_values(render):
    rendering = render(lookup(security={"runAsUser": 1234, "runAsGroup": 2345, "fsGroup": 3456}))
    for _, _, spec in pods(rendering):
        context = spec["securityContext"]
        assert (context["runAsUser"], context["runAsGroup"], context["fsGroup"]) == (1234, 2345, 3456)
