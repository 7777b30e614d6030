"""The embedded cluster: what keeps it from starting is said before anything changes; images are stacked right."""

from __future__ import annotations

import hashlib
import io
import json
import os
import subprocess
import tarfile
from pathlib import Path

import pytest
from specdec import local
from specdec.errors import SpecdecError
from specdec.local import checks, layers, pairs
from specdec.local.containerd import Image, Layer, chain_ids, copy_tree, image_archive, snapshot_folder

STATE = Path("/var/lib/vllm-speculative")
SCRIPTS = Path(__file__).resolve().parents[2] / "scripts" / "local-cluster"


def test_a_fit_machine_has_no_problem() -> None:
    assert checks.problems(checks.Machine(routes=["default", "192.0.2.0/24"], addresses=["192.0.2.2/24"]), STATE) == []


@pytest.mark.parametrize(
    ("machine", "words"),
    [
        (checks.Machine(root=False), ("root", "KUBECONTEXT")),
        (checks.Machine(missing=["runc", "conntrack"]), ("runc", "conntrack", "scripts/setup cluster")),
        (
            checks.Machine(listening=['LISTEN 0 4096 0.0.0.0:6443 0.0.0.0:* users:(("haproxy",pid=7,fd=3))']),
            ("6443", "kube-apiserver", "haproxy"),
        ),
        (checks.Machine(listening=["LISTEN 0 4096 127.0.0.1:2379 0.0.0.0:*"]), ("2379", "etcd")),
        (checks.Machine(listening=["LISTEN 0 4096 *:10250 *:*"]), ("10250", "kubelet")),
        (checks.Machine(links=["lo", "cni0"]), ("another Kubernetes", "cni0")),
        (checks.Machine(chains=":KUBE-SERVICES - [0:0]"), ("another Kubernetes", "iptables")),
        (checks.Machine(addresses=["10.245.0.1/24"]), ("10.245.0.1",)),
        (checks.Machine(routes=["10.244.3.0/24"]), ("pod range", "10.244.3.0/24")),
        (checks.Machine(routes=["10.96.0.0/16"]), ("service range", "10.96.0.0/16")),
        (checks.Machine(free_gib=1.5), ("disk nearly full", "1.5 GiB")),
    ],
)
def test_what_keeps_the_cluster_from_starting_is_named(machine: checks.Machine, words: tuple[str, ...]) -> None:
    found = checks.problems(machine, STATE)
    assert len(found) == 1
    assert all(word in found[0] for word in words), found[0]


def test_a_wide_route_and_other_ports_are_no_problem() -> None:
    machine = checks.Machine(routes=["10.0.0.0/8", "10.244.0.0/15"], listening=["LISTEN 0 128 0.0.0.0:22 0.0.0.0:*"])
    assert checks.problems(machine, STATE) == []


def test_a_path_too_long_for_a_socket_is_refused() -> None:
    assert "SPECDEC_STATE" in checks.problems(checks.Machine(), Path("/" + "d" * 90))[0]


def test_every_problem_is_told_at_once() -> None:
    assert len(checks.problems(checks.Machine(links=["cni0"], free_gib=0, missing=["runc"]), STATE)) == 3


def test_chain_ids_as_the_image_specification_has_them() -> None:
    first, second = "sha256:" + "a" * 64, "sha256:" + "b" * 64
    expected = "sha256:" + hashlib.sha256(f"{first} {second}".encode()).hexdigest()
    assert chain_ids([first, second]) == [first, expected]


def image(tmp_path: Path, *names: str) -> Image:
    return Image("localhost/x:1", tuple(Layer(name, tmp_path) for name in names), {"User": "2000:2000"})


def test_an_image_names_its_layers_by_what_stands_for_them(tmp_path: Path) -> None:
    made = image(tmp_path, "base 1", "engine 1")
    with tarfile.open(fileobj=io.BytesIO(image_archive(made))) as tar:
        files = {member.name: tar.extractfile(member) for member in tar.getmembers()}
        read = {name: file.read() for name, file in files.items() if file}
    (manifest,) = json.loads(read["manifest.json"])
    assert manifest["RepoTags"] == ["localhost/x:1"]
    config = json.loads(read[manifest["Config"]])
    assert config["config"] == {"User": "2000:2000"}
    assert config["rootfs"]["diff_ids"] == [
        "sha256:" + hashlib.sha256(read[layer]).hexdigest() for layer in manifest["Layers"]
    ]


def test_the_same_inputs_give_the_same_image_and_other_inputs_another(tmp_path: Path) -> None:
    assert image_archive(image(tmp_path, "base 1", "engine 1")) == image_archive(image(tmp_path, "base 1", "engine 1"))
    assert image_archive(image(tmp_path, "base 1", "engine 1")) != image_archive(image(tmp_path, "base 1", "engine 2"))


@pytest.mark.parametrize(
    "mounts",
    [
        "mount -t overlay overlay /nowhere -o index=off,workdir=/c/7/work,upperdir=/c/7/fs,lowerdir=/c/6/fs",
        "mount -t bind /c/7/fs /nowhere -o rw,rbind",
    ],
)
def test_the_folder_of_a_snapshot_is_read_from_its_mounts(mounts: str) -> None:
    assert snapshot_folder(mounts) == Path("/c/7/fs")


def test_a_layers_files_are_linked_not_copied(tmp_path: Path) -> None:
    (tmp_path / "from" / "lib").mkdir(parents=True)
    (tmp_path / "from" / "lib" / "torch.so").write_text("weights")
    (tmp_path / "to").mkdir()
    copy_tree(tmp_path / "from", tmp_path / "to")
    assert (tmp_path / "to/lib/torch.so").samefile(tmp_path / "from/lib/torch.so")


def test_a_layer_that_was_not_built_says_how_to_build_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "TOOLS", tmp_path)
    with pytest.raises(SpecdecError) as caught:
        layers.layer("engine")
    assert "scripts/setup cluster" in str(caught.value.fix)


def test_a_named_cluster_is_used_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONTEXT", "staging")
    said: list[str] = []
    assert local.ensure(None, said.append) == "staging"
    assert local.ENGINE_IMAGE in said[0], "it says what the cluster has to have"


def test_without_root_and_docker_the_error_names_the_ways_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBECONTEXT", raising=False)
    monkeypatch.setenv("SPECDEC_STATE", str(tmp_path / "none"))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(SpecdecError) as caught:
        local.ensure(None, lambda _: None)
    assert all(way in str(caught.value.fix) for way in ("root", "kind", "KUBECONTEXT"))


def test_models_in_another_place_are_told_to_the_chart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBECONTEXT", raising=False)
    assert local.values() is None or os.environ.get("SPECDEC_STATE")
    monkeypatch.setenv("SPECDEC_STATE", str(tmp_path))
    values = local.values()
    assert values is not None
    assert f"path: {tmp_path}/models" in values.read_text()


def test_another_text_makes_other_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = pairs.stamp()
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("another text")
    monkeypatch.setattr(pairs, "INPUTS", (pairs.INPUTS[0], corpus, pairs.INPUTS[2]))
    assert pairs.stamp() != before


def run(script: str, state: Path) -> subprocess.CompletedProcess[str]:
    # Without the lock that keeps one cluster a machine: these look at what the scripts say, side by side.
    environment = {**os.environ, "SPECDEC_STATE": str(state), "SPECDEC_LOCKED": "1"}
    return subprocess.run([SCRIPTS / script], env=environment, capture_output=True, text=True, check=False)


def test_status_without_a_cluster_says_so(tmp_path: Path) -> None:
    done = run("status", tmp_path / "state")
    assert (done.returncode, done.stdout) == (1, "no local cluster\n")


@pytest.mark.xdist_group("cluster")  # one `up` or `down` at a time on a machine
def test_down_leaves_a_folder_alone_that_up_did_not_make(tmp_path: Path) -> None:
    (tmp_path / "letters").write_text("dear")
    done = run("down", tmp_path)
    assert done.returncode == 2
    assert "was not made by up" in done.stderr
    assert (tmp_path / "letters").read_text() == "dear"


@pytest.mark.xdist_group("cluster")  # one `up` or `down` at a time on a machine
def test_down_without_a_cluster_has_nothing_to_do(tmp_path: Path) -> None:
    assert run("down", tmp_path / "state").returncode == 0


def test_up_without_its_programs_says_how_to_get_them(tmp_path: Path) -> None:
    environment = {**os.environ, "SPECDEC_STATE": str(tmp_path / "state"), "SPECDEC_KUBERNETES": str(tmp_path)}
    done = subprocess.run([SCRIPTS / "up"], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "scripts/setup cluster" in done.stderr
    assert not (tmp_path / "state").exists()


def test_a_process_that_got_a_dead_ones_number_is_not_ours(tmp_path: Path) -> None:
    """Its pid file names this very test's process: it must not count as the cluster's containerd."""
    state = tmp_path / "state"
    (state / "run").mkdir(parents=True)
    (state / "before").mkdir()
    (state / "run" / "containerd.pid").write_text(str(os.getpid()))
    (state / "run" / "containerd.born").write_text("1")
    done = run("status", state)
    assert done.returncode == 3
    assert "containerd" in done.stdout
