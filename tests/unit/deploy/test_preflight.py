"""A user deploys to a cluster that lacks something: all of it is said at once, and nothing is changed."""

from __future__ import annotations

import textwrap
from typing import Any

import pytest
from specdec.deploy import nodes, preflight
from specdec.deploy.cluster import Cluster, Unreachable
from specdec.deploy.problems import PreflightFailed, Problem
from specdec.manifests import Manifest, parse

from .conftest import NAMESPACE, ApiServer

ENGINE = """
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: speculative}
spec:
  replicas: 2
  selector: {matchLabels: {app: x}}
  template:
    metadata: {labels: {app: x}}
    spec:
      nodeSelector: {cloud.google.com/gke-accelerator: nvidia-h100-80gb}
      tolerations: [{key: nvidia.com/gpu, operator: Exists, effect: NoSchedule}]
      containers:
        - name: engine
          image: vllm/vllm-openai:v0.32.0
          args: [--model, org/target]
          env: [{name: HF_TOKEN, valueFrom: {secretKeyRef: {name: hf-token, key: token}}}]
          resources:
            requests: {cpu: "8", memory: 64Gi}
            limits: {memory: 64Gi, nvidia.com/gpu: "4"}
"""


def manifests(text: str = ENGINE, **changes: str) -> list[Manifest]:
    text = textwrap.dedent(text)
    for old, new in changes.items():
        text = text.replace(old, new)
    return parse(text, "rendered")


def node(gpus: str = "8", labels: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    return {
        "metadata": {"labels": {"cloud.google.com/gke-accelerator": "nvidia-h100-80gb"} if labels is None else labels},
        "spec": {"taints": [{"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}], **spec},
        "status": {
            "allocatable": {"cpu": "200", "memory": "1800Gi", "nvidia.com/gpu": gpus, "pods": "110"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


@pytest.fixture
def api(api: ApiServer) -> ApiServer:
    """A cluster on which the engine fits: one node of 8 GPUs, the Secret with its key."""
    api.put("/api/v1/nodes/h100", node())
    api.add("secrets", "hf-token", {"data": {"token": "aGZfc2VjcmV0"}})
    return api


def run(cluster: Cluster, found: list[Manifest] | None = None, **options: Any) -> list[Problem]:
    return preflight.run(cluster, found or manifests(), "speculative", **options).problems


def only(problems: list[Problem]) -> Problem:
    assert len(problems) == 1, problems
    return problems[0]


def test_where_all_is_there_nothing_is_said_and_nothing_changed(api: ApiServer, cluster: Cluster) -> None:
    assert run(cluster) == []
    assert api.writes() == []


def test_a_missing_namespace_is_an_error_that_names_the_option(api: ApiServer, cluster: Cluster) -> None:
    del api.objects[f"/api/v1/namespaces/{NAMESPACE}"]
    problem = only(run(cluster))
    assert problem.level == "error"
    assert "--create-namespace" in str(problem.fix)


def test_a_missing_namespace_may_be_created(api: ApiServer, cluster: Cluster) -> None:
    del api.objects[f"/api/v1/namespaces/{NAMESPACE}"]
    result = preflight.run(cluster, manifests(), "speculative", create_namespace=True)
    assert (result.problems, result.namespace_exists) == ([], False)
    assert api.writes() == []


def test_a_namespace_that_is_being_deleted_takes_nothing_in(api: ApiServer, cluster: Cluster) -> None:
    api.put(f"/api/v1/namespaces/{NAMESPACE}", {"status": {"phase": "Terminating"}})
    assert only(run(cluster)).message == "it is being deleted"


def test_a_missing_secret_is_named_with_the_command_that_makes_it(api: ApiServer, cluster: Cluster) -> None:
    del api.objects[f"/api/v1/namespaces/{NAMESPACE}/secrets/hf-token"]
    problem = only(run(cluster))
    assert problem.message == f"Secret hf-token does not exist in {NAMESPACE}"
    assert str(problem.fix).startswith(f"kubectl create secret generic hf-token -n {NAMESPACE} --from-file=token=")


def test_a_secret_without_the_key_names_the_keys_it_has_and_never_a_value(api: ApiServer, cluster: Cluster) -> None:
    api.add("secrets", "hf-token", {"data": {"hf_token": "c2VjcmV0"}})
    problem = only(run(cluster))
    assert problem.message == "Secret hf-token has no key 'token'; it has hf_token"
    assert "c2VjcmV0" not in str(problem)


def test_an_optional_secret_may_be_missing(api: ApiServer, cluster: Cluster) -> None:
    del api.objects[f"/api/v1/namespaces/{NAMESPACE}/secrets/hf-token"]
    assert run(cluster, manifests(**{"key: token}": "key: token, optional: true}"})) == []


def test_a_secret_that_the_manifests_bring_need_not_be_there(api: ApiServer, cluster: Cluster) -> None:
    del api.objects[f"/api/v1/namespaces/{NAMESPACE}/secrets/hf-token"]
    own = "---\napiVersion: v1\nkind: Secret\nmetadata: {name: hf-token}\nstringData: {token: x}\n"
    assert run(cluster, manifests(ENGINE + own)) == []


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"gpus": "2"}, "1 of 1 nodes: 2 of nvidia.com/gpu where 4 is asked for"),
        ({"labels": {}}, "label cloud.google.com/gke-accelerator=nvidia-h100-80gb is missing"),
        ({"labels": {"cloud.google.com/gke-accelerator": "nvidia-l4"}}, "nvidia-h100-80gb is missing"),
        (
            {"taints": [{"key": "team", "value": "a", "effect": "NoSchedule"}]},
            "taint team=a:NoSchedule is not tolerated",
        ),
        ({"taints": [{"key": "gone", "effect": "NoExecute"}]}, "taint gone:NoExecute is not tolerated"),
        ({"unschedulable": True}, "it is cordoned"),
        ({"taints": [{"key": "node.kubernetes.io/unreachable", "effect": "NoSchedule"}]}, "it does not answer"),
    ],
    ids=["too few GPUs", "no label", "another GPU", "taint", "taint of eviction", "cordoned", "dead node"],
)
def test_a_pod_that_no_node_admits_is_an_error_with_the_reason(
    api: ApiServer, cluster: Cluster, change: dict[str, Any], reason: str
) -> None:
    api.put("/api/v1/nodes/h100", node(**change))
    problem = only(run(cluster))
    assert (problem.level, problem.where) == ("error", "StatefulSet speculative")
    assert reason in problem.message


def test_a_taint_that_only_prefers_keeps_nobody_off(api: ApiServer, cluster: Cluster) -> None:
    api.put("/api/v1/nodes/h100", node(taints=[{"key": "team", "effect": "PreferNoSchedule"}]))
    assert run(cluster) == []


@pytest.mark.parametrize(
    ("toleration", "admitted"),
    [
        ({"operator": "Exists"}, True),
        ({"key": "gpu", "operator": "Exists"}, True),
        ({"key": "gpu", "value": "yes"}, True),
        ({"key": "gpu", "operator": "Equal", "value": "yes", "effect": "NoSchedule"}, True),
        ({"key": "gpu", "value": "no"}, False),
        ({"key": "gpu"}, False),
        ({"key": "other", "value": "yes"}, False),
        ({"key": "other", "operator": "Exists"}, False),
        ({"key": "gpu", "operator": "Exists", "effect": "NoExecute"}, False),
    ],
)
def test_a_toleration_matches_by_key_value_and_effect(toleration: dict[str, str], admitted: bool) -> None:
    assert nodes.tolerates(toleration, {"key": "gpu", "value": "yes", "effect": "NoSchedule"}) is admitted


def test_memory_that_no_node_has_is_an_error_in_gib(cluster: Cluster) -> None:
    problem = only(run(cluster, manifests(**{"memory: 64Gi}\n": "memory: 4096Gi}\n", "64Gi": "4096Gi"})))
    assert "1800.0Gi of memory where 4096.0Gi is asked for" in problem.message


def test_one_node_that_admits_is_enough(api: ApiServer, cluster: Cluster) -> None:
    api.put("/api/v1/nodes/cpu", node(gpus="0", labels={}))
    assert run(cluster) == []


def test_a_required_affinity_counts_as_a_selector_does(api: ApiServer, cluster: Cluster) -> None:
    affinity = (
        "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: "
        "[{matchExpressions: [{key: zone, operator: In, values: [a, b]}]}]}}}"
    )
    found = manifests(**{"tolerations:": affinity + "\n      tolerations:"})
    assert "required node affinity" in only(run(cluster, found)).message
    api.put("/api/v1/nodes/h100", node(labels={"cloud.google.com/gke-accelerator": "nvidia-h100-80gb", "zone": "b"}))
    assert run(cluster, found) == []


@pytest.mark.parametrize(
    ("path", "who"),
    [
        ("/api/v1/namespaces/kube-system/configmaps/cluster-autoscaler-status", "the cluster autoscaler"),
        ("/apis/karpenter.sh", "Karpenter"),
    ],
)
def test_a_pool_that_scales_from_zero_is_a_warning_where_an_autoscaler_runs(
    api: ApiServer, cluster: Cluster, path: str, who: str
) -> None:
    del api.objects["/api/v1/nodes/h100"]
    assert only(run(cluster)).level == "error"
    api.put(path, {})
    problem = only(run(cluster))
    assert problem.level == "warning"
    assert problem.fix == f"{who} has to add one"


def test_gpus_that_others_hold_are_a_warning_with_their_names(api: ApiServer, cluster: Cluster) -> None:
    training = {
        "metadata": {"namespace": "ml", "labels": {}},
        "spec": {"nodeName": "h100", "containers": [{"resources": {"limits": {"nvidia.com/gpu": "2"}}}]},
        "status": {"phase": "Running"},
    }
    api.put("/api/v1/namespaces/ml/pods/training", training)
    problem = only(run(cluster))
    assert problem.level == "warning"
    assert problem.message == "there is room for 1 of its 2 pods now (ml/training has 2 nvidia.com/gpu)"


def test_an_upgrade_is_not_kept_off_by_the_pods_that_it_replaces(api: ApiServer, cluster: Cluster) -> None:
    for index in (0, 1):
        mine = {
            "metadata": {"namespace": NAMESPACE, "labels": {"app.kubernetes.io/instance": "speculative"}},
            "spec": {"nodeName": "h100", "containers": [{"resources": {"limits": {"nvidia.com/gpu": "4"}}}]},
            "status": {"phase": "Running"},
        }
        api.add("pods", f"speculative-{index}", mine)
    assert run(cluster) == []


def test_a_quota_that_the_pods_pass_is_an_error_with_what_is_left(api: ApiServer, cluster: Cluster) -> None:
    quota = {"status": {"hard": {"requests.nvidia.com/gpu": "8"}, "used": {"requests.nvidia.com/gpu": "4"}}}
    api.add("resourcequotas", "gpus", quota)
    problem = only(run(cluster))
    assert problem.where == "ResourceQuota gpus"
    assert problem.message == "requests.nvidia.com/gpu: 8 needed, 4 left of 8"


def test_a_quota_that_the_release_itself_fills_lets_it_upgrade(api: ApiServer, cluster: Cluster) -> None:
    quota = {"status": {"hard": {"requests.nvidia.com/gpu": "8"}, "used": {"requests.nvidia.com/gpu": "8"}}}
    api.add("resourcequotas", "gpus", quota)
    pod = {"spec": {"nodeName": "h100", "containers": [{"resources": {"limits": {"nvidia.com/gpu": "4"}}}]}}
    for index in (0, 1):
        metadata = {"namespace": NAMESPACE, "labels": {"app.kubernetes.io/instance": "speculative"}}
        api.add("pods", f"speculative-{index}", {"metadata": metadata, **pod})
    assert run(cluster) == []


CLAIM = """
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: models}
spec: {storageClassName: fast, resources: {requests: {storage: 200Gi}}}
"""


def test_a_missing_storage_class_is_named_with_those_there_are(api: ApiServer, cluster: Cluster) -> None:
    api.put("/apis/storage.k8s.io/v1/storageclasses/standard", {})
    problem = only(run(cluster, manifests(ENGINE + CLAIM)))
    assert problem.message == "StorageClass fast does not exist; there is: standard"


def test_a_claim_without_a_class_needs_a_default(api: ApiServer, cluster: Cluster) -> None:
    found = manifests(ENGINE + CLAIM.replace("storageClassName: fast, ", ""))
    assert "no default" in only(run(cluster, found)).message
    annotations = {"storageclass.kubernetes.io/is-default-class": "true"}
    api.put("/apis/storage.k8s.io/v1/storageclasses/standard", {"metadata": {"annotations": annotations}})
    assert run(cluster, found) == []


def test_a_claim_that_is_named_has_to_exist(api: ApiServer, cluster: Cluster) -> None:
    volume = "volumes: [{name: models, persistentVolumeClaim: {claimName: models}}]\n      containers:"
    found = manifests(**{"containers:": volume})
    assert only(run(cluster, found)).message == f"PersistentVolumeClaim models does not exist in {NAMESPACE}"
    api.add("persistentvolumeclaims", "models", {"status": {"phase": "Bound"}})
    assert run(cluster, found) == []


def test_a_kind_that_the_cluster_does_not_serve_is_an_error(cluster: Cluster) -> None:
    monitor = "---\napiVersion: monitoring.coreos.com/v1\nkind: ServiceMonitor\nmetadata: {name: m}\n"
    problem = only(run(cluster, manifests(ENGINE + monitor)))
    assert problem.message == "the cluster does not serve monitoring.coreos.com/v1 ServiceMonitor"


def test_what_the_api_server_would_refuse_is_said_in_its_words(api: ApiServer, cluster: Cluster) -> None:
    words = "StatefulSet is invalid: spec: Forbidden: updates to statefulset spec for fields other than 'replicas'"
    api.refusals["PATCH", "statefulsets/speculative"] = (422, words)
    problem = only(run(cluster))
    assert problem.message == words
    assert "--cascade=orphan" in str(problem.fix)
    assert api.writes() == []


def test_a_pod_that_pod_security_forbids_is_found_before_its_controller_fails(api: ApiServer, cluster: Cluster) -> None:
    words = 'pods "specdec-preflight-x" is forbidden: violates PodSecurity "baseline:latest": hostPath volumes'
    api.refusals["POST", "/pods"] = (403, words)
    problem = only(run(cluster))
    assert "violates PodSecurity" in problem.message
    assert "emptyDir" in str(problem.fix)


def test_a_user_who_may_not_see_nodes_is_told_what_was_not_checked(api: ApiServer, cluster: Cluster) -> None:
    api.refusals["GET", "/nodes"] = (403, "nodes is forbidden")
    problem = only(run(cluster))
    assert (problem.level, problem.message) == ("warning", "not checked: no right to list them")


def test_everything_that_is_wrong_is_said_at_once(api: ApiServer, cluster: Cluster) -> None:
    del api.objects[f"/api/v1/namespaces/{NAMESPACE}/secrets/hf-token"]
    api.put("/api/v1/nodes/h100", node(gpus="2"))
    rule = Problem("error", "SD401", "StatefulSet/speculative", "no startup probe")
    result = preflight.run(cluster, manifests(ENGINE + CLAIM), "speculative", findings=[rule])
    assert [problem.code for problem in result.errors] == ["SD401", "secret", "storageclass", "node"]
    failed = PreflightFailed(result.problems)
    assert failed.exit_code == 2
    assert failed.message.startswith("4 problems; nothing was applied")
    assert [problem["code"] for problem in failed.as_dict()["problems"]] == ["SD401", "secret", "storageclass", "node"]


def test_a_cluster_that_is_not_there_is_one_clear_error(api: ApiServer, cluster: Cluster) -> None:
    api.down = True
    with pytest.raises(Unreachable, match=r"https://cluster.test:6443.* does not answer: .*refused"):
        run(cluster)
