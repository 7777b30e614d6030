"""Target and draft come at pinned revisions, once, with a token that nothing else sees."""

from __future__ import annotations

import pytest

from .conftest import DRAFT, DRAFT_REVISION, TARGET, TARGET_REVISION, each_scenario, lookup, pair

SECRET = {"huggingFace": {"tokenSecret": {"name": "hf-token", "key": "hf"}}}
TOKEN = {"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": {"name": "hf-token", "key": "hf"}}}


def test_both_models_are_fetched_at_their_revisions(render):
    (prefetch,) = render(pair(**SECRET)).pod()["initContainers"]
    assert prefetch["args"] == [TARGET, TARGET_REVISION, DRAFT, DRAFT_REVISION]
    assert {"name": "HF_HUB_CACHE", "value": "/models/hub"} in prefetch["env"]
    assert {"name": "models", "mountPath": "/models"} in prefetch["volumeMounts"]


def test_the_token_is_in_the_prefetch_alone(render):
    rendering = render(pair(**SECRET))
    (prefetch,) = rendering.pod()["initContainers"]
    assert TOKEN in prefetch["env"]
    assert "HF_TOKEN" not in rendering.env()
    assert rendering.text.count("hf-token") == 1


def test_a_fetched_pair_is_served_without_network(render):
    rendering = render(pair(**SECRET))
    env = rendering.env()
    assert env["HF_HUB_OFFLINE"] == env["TRANSFORMERS_OFFLINE"] == "1"
    assert env["HF_HUB_CACHE"] == "/models/hub"
    models = [mount for mount in rendering.container()["volumeMounts"] if mount["name"] == "models"]
    assert models == [{"name": "models", "mountPath": "/models", "readOnly": True}]


def test_an_engine_that_fetches_by_itself_has_the_token_and_may_write(render):
    rendering = render(pair(modelCache={"prefetch": {"enabled": False}}, **SECRET))
    assert "initContainers" not in rendering.pod()
    assert TOKEN in rendering.container()["env"]
    assert "HF_HUB_OFFLINE" not in rendering.env()
    assert rendering.flag("--revision") == TARGET_REVISION
    assert rendering.speculation()["revision"] == DRAFT_REVISION
    models = [mount for mount in rendering.container()["volumeMounts"] if mount["name"] == "models"]
    assert models == [{"name": "models", "mountPath": "/models", "readOnly": False}]


def test_offline_both_models_are_paths_and_nothing_is_fetched(render):
    rendering = render(pair(huggingFace={"offline": True}, modelCache={"type": "hostPath"}))
    hub = "/models/hub/models--meta-llama--"
    assert rendering.flag("--model") == f"{hub}Llama-3.1-8B-Instruct/snapshots/{TARGET_REVISION}"
    assert rendering.speculation()["model"] == f"{hub}Llama-3.2-1B-Instruct/snapshots/{DRAFT_REVISION}"
    assert "revision" not in rendering.speculation()
    assert rendering.env()["HF_HUB_OFFLINE"] == rendering.env()["TRANSFORMERS_OFFLINE"] == "1"
    assert "initContainers" not in rendering.pod()
    assert rendering.flag("--served-model-name") == TARGET


def test_a_model_in_the_image_needs_no_fetch_and_no_revision(render):
    values = {"engine": {"model": {"name": "/srv/target", "servedName": "chat"}}}
    rendering = render(values)
    assert "initContainers" not in rendering.pod()
    assert rendering.flag("--model") == "/srv/target"
    assert rendering.flag("--served-model-name") == "chat"
    assert rendering.env()["HF_HUB_OFFLINE"] == "1"


def test_the_baseline_fetches_no_draft(render):
    (prefetch,) = render(pair(baseline={"enabled": True})).pod("speculative-baseline")["initContainers"]
    assert prefetch["args"] == [TARGET, TARGET_REVISION]


@each_scenario()
def test_no_secret_stands_in_an_argument_or_a_plain_variable(render, scenario):
    rendering = render(scenario)
    for workload in rendering.all("StatefulSet") + rendering.all("Deployment"):
        pod = workload["spec"]["template"]["spec"]
        for container in pod["containers"] + pod.get("initContainers", []):
            text = " ".join(container.get("args", []))
            assert "hf_" not in text
            assert "TOKEN" not in text
            plain = [each["name"] for each in container.get("env", []) if "value" in each]
            assert not [name for name in plain if "TOKEN" in name or "KEY" in name or "SECRET" in name]


@pytest.mark.parametrize(
    ("cache", "volume"),
    [
        ({"emptyDir": {"sizeLimit": "90Gi"}}, {"emptyDir": {"sizeLimit": "90Gi"}}),
        (
            {"type": "hostPath", "hostPath": {"path": "/mnt/disks/nvme0/hf"}},
            {"hostPath": {"path": "/mnt/disks/nvme0/hf", "type": "DirectoryOrCreate"}},
        ),
        (
            {"type": "pvc", "pvc": {"existingClaim": "models", "accessMode": "ReadWriteMany"}},
            {"persistentVolumeClaim": {"claimName": "models"}},
        ),
        (
            {"type": "pvc", "pvc": {"accessMode": "ReadWriteMany"}},
            {"persistentVolumeClaim": {"claimName": "speculative-models"}},
        ),
    ],
)
def test_the_cache_is_the_volume_that_was_asked_for(render, cache, volume):
    assert {"name": "models", **volume} in render(pair(modelCache=cache)).pod()["volumes"]


def test_a_statefulset_makes_a_claim_for_each_pod(render):
    values = pair(engine={"replicas": 2}, modelCache={"type": "pvc", "pvc": {"size": "60Gi", "storageClass": "gp3"}})
    rendering = render(values)
    (claim,) = rendering.workload()["spec"]["volumeClaimTemplates"]
    assert claim["metadata"]["name"] == "models"
    assert claim["spec"] == {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "gp3",
        "resources": {"requests": {"storage": "60Gi"}},
    }
    assert "models" not in [volume["name"] for volume in rendering.pod()["volumes"]]
    assert rendering.all("PersistentVolumeClaim") == []


def test_pods_that_share_make_one_claim_and_the_baseline_uses_it_too(render):
    rendering = render("pvc-shared")
    (claim,) = rendering.all("PersistentVolumeClaim")
    assert claim["metadata"]["name"] == "speculative-models"
    assert claim["spec"]["accessModes"] == ["ReadWriteMany"]
    for name in ("speculative", "speculative-baseline"):
        assert {"name": "models", "persistentVolumeClaim": {"claimName": "speculative-models"}} in rendering.pod(name)[
            "volumes"
        ]


def test_a_branch_can_be_asked_for_explicitly(render):
    values = lookup(engine={"model": {"revision": "main"}}, huggingFace={"allowMutableRevision": True})
    assert render(values).flag("--revision") == "main"
