"""What a cluster leaves on a machine, and the commands as a person types them."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from specdec import local

ROOT = Path(__file__).resolve().parents[2]
CHART = ROOT / "helm" / "vllm-speculative"
VALUES = ROOT / "environments" / "local" / "values.yaml"
RELEASE, NAMESPACE = "speculative", "ai-inference"
PATH = f"{ROOT / '.tools/bin'}:{ROOT / '.tools/kubernetes'}:{ROOT / '.venv/bin'}:{os.environ['PATH']}"


def run(
    *command: str, check: bool = True, timeout: float = 1500, **environment: str
) -> subprocess.CompletedProcess[str]:
    """A command in the repository, its output shown when it fails."""
    print("+", " ".join(command), flush=True)
    settings = {**os.environ, "PATH": PATH, **environment}
    done = subprocess.run(command, cwd=ROOT, env=settings, text=True, capture_output=True, timeout=timeout, check=False)
    if check and done.returncode != 0:
        pytest.fail(f"{' '.join(command)} ended with {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done


def specdec(*arguments: str, check: bool = True) -> dict[str, Any]:
    """A command of ours and its JSON document."""
    return dict(json.loads(run("specdec", *arguments, "--format", "json", check=check).stdout))


def helm(*arguments: str) -> str:
    """Helm on the local cluster, in the release's namespace."""
    return run("helm", *arguments, "--namespace", NAMESPACE, KUBECONFIG=str(local.kubeconfig())).stdout


def kubectl(*arguments: str) -> str:
    """kubectl on the local cluster, in the release's namespace."""
    return run("kubectl", "--namespace", NAMESPACE, *arguments, KUBECONFIG=str(local.kubeconfig())).stdout


@dataclass(frozen=True)
class Machine:
    """What a cluster leaves on a machine: links, addresses, mounts, network namespaces, firewall rules, processes."""

    links: frozenset[str]
    addresses: frozenset[str]
    mounts: frozenset[str]
    namespaces: frozenset[str]
    rules: frozenset[str]
    processes: frozenset[str]
    settings: frozenset[str]

    @classmethod
    def now(cls) -> Machine:
        return cls(
            links=lines("ip", "-o", "link", keep=lambda line: line.split(":")[1]),
            addresses=lines("ip", "-o", "address", keep=lambda line: " ".join(line.split()[1:4])),
            mounts=lines("cat", "/proc/self/mounts", keep=lambda line: line.split()[1]),
            namespaces=lines("ip", "netns", "list"),
            rules=lines("iptables-save", keep=lambda line: "" if line.startswith(("#", ":")) else line)
            | lines("iptables-save", keep=lambda line: line.split()[0] if line.startswith(":") else ""),
            processes=frozenset(cluster_processes()),
            settings=lines("sysctl", "net.ipv4.ip_forward") | frozenset(Path("/etc/hosts").read_text().splitlines()),
        )

    def left_since(self, before: Machine) -> dict[str, frozenset[str]]:
        """What is there now and was not before, by kind."""
        return {name: left for name in vars(self) if (left := getattr(self, name) - getattr(before, name))}


def lines(*command: str, keep: Any = str) -> frozenset[str]:
    output = subprocess.run(command, text=True, capture_output=True, check=False).stdout
    return frozenset(kept for line in output.splitlines() if (kept := keep(line).strip()))


CLUSTER_PROGRAMS = (
    "containerd", "containerd-shim", "containerd-shim-runc-v2", "coredns", "etcd", "kube-apiserver",
    "kube-controller-manager", "kube-proxy", "kube-scheduler", "kubelet", "pause",
)  # fmt: skip


def cluster_processes() -> Iterator[str]:
    """Every process of a cluster or of a pod on this machine, as "pid command"."""
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
            pods = b"kubepods" in (entry / "cgroup").read_bytes()
        except OSError:
            continue
        program = Path(words[0].decode(errors="replace")).name
        if pods or program in CLUSTER_PROGRAMS:
            yield f"{entry.name} {program}"
