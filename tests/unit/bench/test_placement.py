"""Where the load generator's pod runs, and how it gets the tokenizer, by the cache that the engine has."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from specdec import helm
from specdec.bench import in_pod, job, placement
from specdec.deploy import targets
from specdec.deploy.targets import Engine
from specdec.environments import load
from specdec.errors import SpecdecError
from specdec.manifests import parse
from unit.deploy.conftest import cluster_of

from .conftest import Bench

NAME = "RedHatAI/Llama-3.3-70B-Instruct-FP8-dynamic"

CLAIM = ("engine.replicas=1", "modelCache.type=pvc", "modelCache.pvc.existingClaim=models")


def engine(environment: str, *sets: str) -> Engine:
    env = load(environment)
    return targets.of(parse(helm.render(env.values, sets, env.release, env.namespace), environment)).engines[0]


def pod(one: Engine) -> dict[str, Any]:
    body = job.manifest("x", "speculative", one, ["--tokenizer", NAME], None, 60)
    return body["spec"]["template"]  # type: ignore[no-any-return]


def required(affinity: dict[str, Any]) -> dict[str, str] | None:
    """Labels of the pod on whose node it has to run."""
    terms = affinity["podAffinity"].get("requiredDuringSchedulingIgnoredDuringExecution")
    return terms[0]["labelSelector"]["matchLabels"] if terms else None


def test_a_cache_that_dies_with_its_pod_is_empty_for_another_so_the_tokenizer_is_fetched() -> None:
    one = engine("prod")
    assert placement.empty_cache(one) == "models"
    container = pod(one)["spec"]["containers"][0]
    env = {variable["name"]: variable for variable in container["env"]}
    assert "HF_HUB_OFFLINE" not in env
    assert env["HF_TOKEN"]["valueFrom"]["secretKeyRef"] == {"name": "hf-token", "key": "token"}
    assert env[in_pod.REVISION]["value"] == "ddb4128556dfcff99e0c41aee159ea6c3e655dcd"
    models = next(mount for mount in container["volumeMounts"] if mount["name"] == "models")
    assert not models["readOnly"]
    assert not {"nvidia.com/gpu"} & container["resources"]["limits"].keys()


def test_a_cache_that_stays_is_read_offline() -> None:
    one = engine("local")
    assert placement.empty_cache(one) is None
    container = pod(one)["spec"]["containers"][0]
    assert next(mount for mount in container["volumeMounts"] if mount["name"] == "models")["readOnly"]


@pytest.mark.parametrize(
    ("modes", "shared"), [(["ReadWriteOnce"], False), (["ReadWriteMany"], True), (["ReadOnlyMany"], True)]
)
def test_a_claim_of_one_node_is_mounted_on_that_node(api: Bench, modes: list[str], shared: bool) -> None:
    api.add("persistentvolumeclaims", "models", {"spec": {"accessModes": modes}})
    one = engine("prod", *CLAIM)
    assert (required(placement.affinity(cluster_of(api), one)) is None) is shared


def test_of_claims_by_pod_the_first_pod_s_is_mounted_beside_that_pod(api: Bench) -> None:
    one = engine("prod", "modelCache.type=pvc")
    api.add("persistentvolumeclaims", "models-speculative-0", {"spec": {"accessModes": ["ReadWriteOnce"]}})
    found = required(placement.affinity(cluster_of(api), one))
    assert found is not None
    assert found["statefulset.kubernetes.io/pod-name"] == "speculative-0"
    claims = [volume for volume in pod(one)["spec"]["volumes"] if "persistentVolumeClaim" in volume]
    assert [claim["persistentVolumeClaim"]["claimName"] for claim in claims] == ["models-speculative-0"]


def test_a_claim_of_one_pod_is_refused(api: Bench) -> None:
    api.add("persistentvolumeclaims", "models", {"spec": {"accessModes": ["ReadWriteOncePod"]}})
    one = engine("prod", *CLAIM)
    with pytest.raises(SpecdecError, match="the engine's pod alone may mount it") as found:
        placement.affinity(cluster_of(api), one)
    assert found.value.path == "modelCache.pvc.accessMode"


def test_a_directory_of_the_node_is_read_on_a_node_that_has_it(api: Bench) -> None:
    assert required(placement.affinity(cluster_of(api), engine("local"))) is not None
    assert required(placement.affinity(cluster_of(api), engine("prod"))) is None


def test_a_bucket_is_mounted_as_the_engine_mounts_it() -> None:
    one = engine("prod", "modelCache.type=gcsFuse", "modelCache.gcsFuse.bucket=models")
    assert pod(one)["metadata"]["annotations"]["gke-gcsfuse/volumes"] == "true"


class Hub:
    """`huggingface_hub` with a cache: what is asked for, and whether it is there."""

    def __init__(self, cached: bool) -> None:
        self.cached, self.asked = cached, []  # type: ignore[var-annotated]

    def snapshot_download(self, name: str, **options: Any) -> str:
        self.asked.append((name, options))
        if options.get("local_files_only") and not self.cached:
            raise FileNotFoundError(name)
        return f"/cache/{name}"


@pytest.mark.parametrize("cached", [True, False])
def test_a_tokenizer_is_taken_at_its_revision_out_of_the_cache_or_fetched_without_weights(
    monkeypatch: pytest.MonkeyPatch, cached: bool
) -> None:
    hub = Hub(cached)
    monkeypatch.setitem(sys.modules, "huggingface_hub", SimpleNamespace(snapshot_download=hub.snapshot_download))
    monkeypatch.setenv(in_pod.REVISION, "abc")
    assert in_pod.snapshot(NAME) == f"/cache/{NAME}"
    assert hub.asked[0] == (NAME, {"revision": "abc", "local_files_only": True})
    assert [options["ignore_patterns"] for _, options in hub.asked[1:]] == ([] if cached else [in_pod.WEIGHTS])


def test_a_snapshot_s_directory_that_this_pod_lacks_is_fetched_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    hub = Hub(cached=False)
    monkeypatch.setitem(sys.modules, "huggingface_hub", SimpleNamespace(snapshot_download=hub.snapshot_download))
    assert in_pod.snapshot("/models/hub/models--org--some--model/snapshots/0123") == "/cache/org/some--model"
    assert hub.asked[1][1]["revision"] == "0123"


def test_a_model_s_directory_is_its_tokenizer_s(tmp_path: Path) -> None:
    assert in_pod.snapshot(str(tmp_path)) == str(tmp_path)
    assert in_pod.snapshot("/models/target") == "/models/target"
