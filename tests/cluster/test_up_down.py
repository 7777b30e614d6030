"""The embedded cluster on a real machine: it leaves nothing, whatever ends it. Root, and alone on the machine."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = ROOT / "scripts" / "local-cluster"
STATE = Path("/var/lib/vllm-speculative-test")


def why_not() -> str:
    if os.geteuid() != 0:
        return "needs root"
    if not (ROOT / ".tools/kubernetes/coredns").exists():
        return "needs the cluster's programs: python3 scripts/setup cluster"
    if "cni0" in output("ip", "-o", "link"):
        return "a cluster runs on this machine"
    return ""


def output(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


pytestmark = [
    pytest.mark.cluster,
    pytest.mark.xdist_group("cluster"),
    pytest.mark.skipif(bool(why_not()), reason=why_not()),
]


def machine() -> dict[str, set[str]]:
    """What a cluster could leave behind, by kind."""
    processes = set()
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if str(STATE) in (entry / "cmdline").read_text() or "kubepods" in (entry / "cgroup").read_text():
                processes.add((entry / "cmdline").read_text().replace("\0", " "))
        except OSError:
            continue
    rules = [*output("iptables-save").splitlines(), *output("ip6tables-save").splitlines()]
    return {
        "processes": processes,
        "mounts": {line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()},
        "links": {line.split()[1] for line in output("ip", "-o", "link").splitlines()},
        "addresses": {" ".join(line.split()[1:4]) for line in output("ip", "-o", "address").splitlines()},
        "rules": {rule.split(" [")[0] for rule in rules if "KUBE" in rule or "CNI" in rule},
        "namespaces": {line.split()[0] for line in output("ip", "netns", "list").splitlines()},
        "cgroups": {str(path) for path in Path("/sys/fs/cgroup").glob("**/kubepods*")},
        "hosts": set(Path("/etc/hosts").read_text().splitlines()),
        "settings": set(
            output("sysctl", "-e", "net.ipv4.ip_forward", "vm.overcommit_memory", "kernel.panic").splitlines()
        ),
        "files": {
            path for path in ("/run/containerd", "/var/lib/cni", "/var/lib/kubelet", str(STATE)) if Path(path).exists()
        },
    }


def script(name: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "SPECDEC_STATE": str(STATE)}
    return subprocess.run([SCRIPTS / name], env=environment, capture_output=True, text=True, check=False)


@pytest.fixture
def before() -> Iterator[dict[str, set[str]]]:
    yield machine()
    script("down")


def kill(name: str) -> None:
    os.kill(int((STATE / "run" / f"{name}.pid").read_text()), signal.SIGKILL)


def test_up_twice_and_down_leaves_nothing(before: dict[str, set[str]]) -> None:
    up = script("up")
    assert up.returncode == 0, up.stderr
    kubeconfig = up.stdout.strip()
    kubectl = (str(ROOT / ".tools/kubernetes/kubectl"), "--kubeconfig", kubeconfig)
    assert "Ready" in output(*kubectl, "get", "nodes", "--no-headers")
    pods = output(*kubectl, "get", "pods", "--all-namespaces")
    started = (STATE / "run/apiserver.pid").read_text()
    assert script("up").stdout.strip() == kubeconfig
    assert (STATE / "run/apiserver.pid").read_text() == started, "a second up starts nothing"
    assert output(*kubectl, "get", "pods", "--all-namespaces").split()[0] == pods.split()[0]
    assert script("down").returncode == 0
    assert machine() == before


def test_a_cluster_that_died_in_the_middle_starts_again_and_goes_down(before: dict[str, set[str]]) -> None:
    assert script("up").returncode == 0
    for name in ("containerd", "etcd", "kubelet"):
        kill(name)
    broken = script("status")
    assert broken.returncode == 3
    assert all(name in broken.stdout for name in ("containerd", "etcd", "kubelet"))
    again = script("up")
    assert again.returncode == 0, again.stderr
    for name in ("apiserver", "containerd"):
        kill(name)
    assert script("down").returncode == 0
    assert machine() == before


def start_up() -> subprocess.Popen[bytes]:
    """`up` as a terminal starts it: SIGINT reaches it, even where the tests themselves run in the background."""
    return subprocess.Popen(
        [SCRIPTS / "up"],
        env={**os.environ, "SPECDEC_STATE": str(STATE)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def wait_for(file: str, process: subprocess.Popen[bytes]) -> None:
    while not (STATE / file).exists():
        assert process.poll() is None, f"up ended before {file} was there"
        time.sleep(0.005)


@pytest.mark.parametrize("moment", ["before/complete", "run/containerd.pid", "run/apiserver.pid", "run/kubelet.pid"])
def test_ctrl_c_while_it_starts_leaves_nothing(before: dict[str, set[str]], moment: str) -> None:
    process = start_up()
    wait_for(moment, process)
    os.killpg(process.pid, signal.SIGINT)
    assert process.wait(timeout=120) != 0
    assert machine() == before


def test_an_up_that_was_killed_leaves_nothing_after_down(before: dict[str, set[str]]) -> None:
    process = start_up()
    wait_for("run/apiserver.pid", process)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    (STATE / "run/apiserver.pid").unlink()  # as when it is killed before it could write the number down
    assert script("down").returncode == 0
    assert machine() == before


def test_an_address_in_use_is_refused_and_nothing_changes(before: dict[str, set[str]]) -> None:
    subprocess.run(["ip", "address", "add", "10.245.0.1/32", "dev", "lo"], check=True)
    try:
        taken = machine()
        refused = script("up")
        assert refused.returncode == 2
        assert "10.245.0.1" in refused.stderr
        assert machine() == taken
    finally:
        subprocess.run(["ip", "address", "delete", "10.245.0.1/32", "dev", "lo"], check=True)
    assert machine() == before
