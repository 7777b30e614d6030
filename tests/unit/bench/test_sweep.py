"""`--k`: engines of the benchmark's own, which leave the release and its traffic alone and go when it ends."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from specdec import helm
from specdec.bench import sweep
from specdec.bench.arms import arms_of
from specdec.bench.summary import k_of
from specdec.deploy import removal, targets
from specdec.deploy.live import Live
from specdec.deploy.progress import Progress
from specdec.environments import Environment, load, names
from specdec.errors import FoundWrong, SpecdecError
from specdec.manifests import Manifest, parse
from unit.deploy.conftest import cluster_of

from .conftest import Bench

CLAIM = ("engine.replicas=1", "modelCache.type=pvc", "modelCache.pvc.existingClaim=models")


def rendered(env: Environment, *sets: str) -> list[Manifest]:
    return parse(helm.render(env.values, sets, env.release, env.namespace), env.name)


@pytest.mark.parametrize("text", ["", "a", "-1", "2,-1", "1.5", "2,,4", "2,2", "0,0", "0", "4", "1e3", "0;2"])
def test_what_is_no_list_of_ks_is_refused(text: str) -> None:
    with pytest.raises(SpecdecError) as found:
        sweep.numbers_of_tokens(text)
    assert (found.value.exit_code, found.value.path) == (2, "--k")
    assert found.value.fix


@pytest.mark.parametrize(("text", "ks"), [("0,4", [0, 4]), ("6, 2,4", [2, 4, 6]), ("2,4", [2, 4])])
def test_ks_are_taken_in_order(text: str, ks: list[int]) -> None:
    assert sweep.numbers_of_tokens(text) == ks


def test_engines_that_share_cores_ask_for_few_of_them(tmp_path: Path) -> None:
    """One is measured at a time: together they have to fit beside the release on two cores."""
    assert not sweep.need_gpus(rendered(load("local")))
    assert sweep.need_gpus(rendered(load("prod")))
    file = tmp_path / sweep.FILE
    file.write_text(yaml.safe_dump(sweep.values([0, 2, 4, 6], gpus=False)), encoding="utf-8")
    arms = arms_of(targets.of(rendered(sweep.environment_of(load("local"), file))))
    assert [arm.workload.container["resources"]["requests"]["cpu"] for arm in arms] == ["100m"] * 4


@pytest.mark.parametrize("name", names())
def test_every_environment_can_be_swept_and_nothing_of_it_serves_clients(name: str, tmp_path: Path) -> None:
    file = tmp_path / sweep.FILE
    file.write_text(yaml.safe_dump(sweep.values([0, 2, 5])), encoding="utf-8")
    env = sweep.environment_of(load(name), file)
    manifests = rendered(env)
    arms = arms_of(targets.of(manifests))
    assert [(arm.name.rsplit("-", 1)[1], k_of(arm)) for arm in arms] == [("k0", 0), ("k2", 2), ("k5", 5)]
    kinds = {manifest.kind for manifest in manifests}
    assert kinds <= {"ServiceAccount", "Service", "StatefulSet", "Deployment", "PersistentVolumeClaim", "NetworkPolicy"}
    # No Service of the release finds their pods, and no two objects have one name.
    own = rendered(load(name))
    labels = arms[0].workload.pod_metadata["labels"]
    selectors = [one.get("spec.selector") or {} for one in own if one.kind == "Service"]
    assert not [selector for selector in selectors if selector and selector.items() <= labels.items()]
    assert not {(one.kind, one.name) for one in own} & {(one.kind, one.name) for one in manifests}


def test_a_claim_of_one_node_cannot_have_further_engines(api: Bench) -> None:
    env = load("prod")
    manifests = rendered(env, *CLAIM)
    with pytest.raises(SpecdecError, match=r"one node alone \(it does not exist"):
        sweep.check(env, manifests, cluster_of(api))
    api.add("persistentvolumeclaims", "models", {"spec": {"accessModes": ["ReadWriteOnce"]}})
    with pytest.raises(SpecdecError, match=r"one node alone \(ReadWriteOnce") as found:
        sweep.check(env, manifests, cluster_of(api))
    assert found.value.path == "modelCache.pvc.existingClaim"
    api.add("persistentvolumeclaims", "models", {"spec": {"accessModes": ["ReadOnlyMany"]}})
    assert sweep.check(env, manifests, cluster_of(api)) == []


@pytest.mark.parametrize(
    ("sets", "said"),
    [
        ((), "fetches the models into a cache of its own"),
        (("modelCache.type=pvc",), "the claims go with the run"),
        (("modelCache.type=pvc", "modelCache.pvc.accessMode=ReadWriteMany"), "the claims go with the run"),
    ],
)
def test_what_further_engines_cost_is_said(api: Bench, sets: tuple[str, ...], said: str) -> None:
    assert said in sweep.check(load("prod"), rendered(load("prod"), *sets), cluster_of(api))[0]


def test_a_directory_of_the_node_is_shared_and_its_disks_are_not_prepared_again(api: Bench, tmp_path: Path) -> None:
    env = load("prod")
    sets = ("modelCache.type=hostPath", "modelCache.hostPath.prepare.enabled=true")
    assert sweep.check(env, rendered(env, *sets), cluster_of(api)) == []
    file = tmp_path / sweep.FILE
    file.write_text(yaml.safe_dump(sweep.values([0, 2])), encoding="utf-8")
    beside = sweep.environment_of(env, file)
    assert "DaemonSet" in {one.kind for one in rendered(env, *sets)}
    assert "DaemonSet" not in {one.kind for one in rendered(beside, "modelCache.type=hostPath")}


@pytest.mark.parametrize(
    ("sets", "said"),
    [
        (
            ("engines.a.engine.model.servedName=a", "engines.b.engine.model.servedName=b", "router.enabled=false"),
            "has 2 engines",
        ),
        (("speculative.enabled=false",), "does not speculate"),
    ],
)
def test_where_there_is_no_one_k_to_vary_it_is_refused(api: Bench, sets: tuple[str, ...], said: str) -> None:
    with pytest.raises(SpecdecError, match=said):
        sweep.check(load("prod"), rendered(load("prod"), *sets), cluster_of(api))


class Deployed:
    """Stands for a deploy and its removal: what was done, in order."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, fails: bool = False) -> None:
        self.done: list[str] = []
        done = self.done

        class Deploy:
            def __init__(self, env: Environment, *_: Any) -> None:
                self.env = env

            def run(self) -> None:
                done.append(f"deploy {self.env.release}")
                if fails:
                    raise FoundWrong("the pod of k4 does not become Ready")

        def uninstall(env: Environment, *_: Any, **__: Any) -> None:
            done.append(f"remove {env.release}")

        self.exists: dict[str, Any] | None = None
        monkeypatch.setattr(helm, "release_status", lambda *_, **__: self.exists)
        monkeypatch.setattr(sweep, "Deploy", Deploy)
        monkeypatch.setattr(removal, "uninstall", uninstall)


def live(api: Bench) -> Live:
    return Live(load("prod"), cluster_of(api), None)


def test_the_engines_go_with_their_claims_when_the_run_ends(
    api: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    labels = {"app.kubernetes.io/instance": "speculative-bench"}
    api.add("persistentvolumeclaims", "models-speculative-bench-k2-0", {"metadata": {"labels": labels}})
    api.add("persistentvolumeclaims", "models-speculative-0", {"metadata": {"labels": {}}})
    deployed = Deployed(monkeypatch)
    with sweep.deployed(live(api), [0, 2], tmp_path, Progress(quiet=True)) as env:
        deployed.done.append("measure")
        assert env.release == "speculative-bench"
    assert deployed.done == ["deploy speculative-bench", "measure", "remove speculative-bench"]
    assert [path.rsplit("/", 1)[1] for path in api.objects if "claims" in path] == ["models-speculative-0"]


def test_they_go_after_ctrl_c_and_after_a_deploy_that_failed(
    api: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deployed = Deployed(monkeypatch)
    with pytest.raises(KeyboardInterrupt), sweep.deployed(live(api), [0, 2], tmp_path, Progress(quiet=True)):
        raise KeyboardInterrupt
    assert deployed.done[-1] == "remove speculative-bench"
    failed = Deployed(monkeypatch, fails=True)
    with pytest.raises(FoundWrong), sweep.deployed(live(api), [0, 2], tmp_path, Progress(quiet=True)):
        pass
    assert failed.done[-1] == "remove speculative-bench"


def test_another_s_sweep_is_left_alone(api: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deployed = Deployed(monkeypatch)
    deployed.exists = {"info": {"status": "deployed"}}
    quiet = Progress(quiet=True)
    with (
        pytest.raises(SpecdecError, match="another sweep runs, or one was kept"),
        sweep.deployed(live(api), [0, 2], tmp_path, quiet),
    ):
        pass
    assert deployed.done == []
    with sweep.deployed(live(api), [0, 2], tmp_path, quiet, again=True):
        assert deployed.done == ["deploy speculative-bench"]


def test_kept_engines_stay_and_how_to_remove_them_is_said(
    api: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deployed = Deployed(monkeypatch)
    progress = Progress(quiet=True)
    with sweep.deployed(live(api), [0, 2], tmp_path, progress, keep=True):
        pass
    assert deployed.done == ["deploy speculative-bench"]
    assert "helm uninstall -n ai-inference speculative-bench" in progress.warnings[0]
