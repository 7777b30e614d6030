"""What would keep the embedded cluster from starting, found before anything is changed. Standard library only.

Run by scripts/local-cluster/up: `python3 -m specdec.local.checks STATE_DIR` prints every problem and exits 2.
"""

from __future__ import annotations

import ipaddress
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

NODE = ipaddress.IPv4Network("10.245.0.1/32")  # the API server's and the node's own address
PODS = ipaddress.IPv4Network("10.244.0.0/16")
SERVICES = ipaddress.IPv4Network("10.96.0.0/16")
PORTS = {
    2379: "etcd",
    2380: "etcd",
    6443: "kube-apiserver",
    10248: "kubelet",
    10250: "kubelet",
    10256: "kube-proxy",
    10257: "kube-controller-manager",
    10259: "kube-scheduler",
}
PROGRAMS = ("containerd", "ctr", "runc", "iptables-save", "ip", "ss", "conntrack", "openssl", "busybox", "sysctl")
NEEDED_GIB = 4.0  # images are hard links; this is for models, logs and etcd
SOCKET_PATH_LIMIT = 107  # bytes, sun_path in unix(7)


@dataclass
class Machine:
    """What was seen on the machine.

    `listening`: lines of `ss -Hltnp`; `addresses` and `routes` as `ip` prints them; `chains`: of iptables-save.
    """

    root: bool = True
    linux: bool = True
    missing: list[str] = field(default_factory=list)
    listening: list[str] = field(default_factory=list)
    addresses: list[str] = field(default_factory=list)
    routes: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    chains: str = ""
    free_gib: float = 100.0


def problems(machine: Machine, state: Path) -> list[str]:
    """Every reason not to start, each with what to do. Empty when the cluster can start."""
    if not machine.linux or not machine.root:
        return ["the embedded cluster needs root on Linux: run as root, or name a cluster that exists: KUBECONTEXT=..."]
    found = []
    if machine.missing:
        found.append(f"programs missing: {', '.join(machine.missing)}; `python3 scripts/setup cluster` installs them")
    found += port_problems(machine.listening)
    if "cni0" in machine.links or "KUBE-" in machine.chains:
        what = "the interface cni0" if "cni0" in machine.links else "KUBE- chains in iptables"
        found.append(f"another Kubernetes is on this machine ({what}): stop it, or use it: KUBECONTEXT=...")
    found += network_problems([*(f"{text.partition('/')[0]}/32" for text in machine.addresses), *machine.routes])
    if machine.free_gib < NEEDED_GIB:
        found.append(f"disk nearly full: {machine.free_gib:.1f} GiB free at {state}, {NEEDED_GIB:.0f} GiB are needed")
    if len(str(state / "run/containerd.sock.ttrpc").encode()) > SOCKET_PATH_LIMIT:
        found.append(f"the path {state} is too long for a socket in it: set SPECDEC_STATE to a shorter one")
    return found


def port_problems(listening: Iterable[str]) -> list[str]:
    found = []
    for line in listening:
        columns = line.split(None, 5)
        if len(columns) < 4:
            continue
        port = columns[3].rpartition(":")[2]
        if port.isdigit() and int(port) in PORTS:
            holder = columns[5].strip() if len(columns) > 5 else "another process"
            found.append(
                f"port {port} ({PORTS[int(port)]}'s) is in use at {columns[3]} by {holder}: stop it and repeat"
            )
    return found


def network_problems(destinations: Iterable[str]) -> list[str]:
    """`destinations`: addresses and routes, as `ip` prints them: 192.0.2.2/24, 10.0.0.0/8, default."""
    found = []
    for text in destinations:
        try:
            network = ipaddress.IPv4Network(text, strict=False)
        except ValueError:
            continue
        for ours, use in ((NODE, "node"), (PODS, "pod"), (SERVICES, "service")):
            # A wider network that holds ours loses against our more specific route; a part of ours would not.
            if network.subnet_of(ours):
                found.append(
                    f"the {use} range {ours} holds {text}, which this machine uses: remove it or use KUBECONTEXT=..."
                )
    return list(dict.fromkeys(found))


def _lines(*command: str) -> list[str]:
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.splitlines()
    except OSError:
        return []


def look(state: Path) -> Machine:
    place = next(path for path in (state, *state.parents) if path.exists())
    return Machine(
        root=os.geteuid() == 0,
        linux=sys.platform == "linux",
        missing=[name for name in PROGRAMS if not shutil.which(name)],
        listening=_lines("ss", "-Hltnp"),
        addresses=[line.split()[3] for line in _lines("ip", "-o", "-4", "address", "show")],
        routes=[line.split()[0] for line in _lines("ip", "-o", "-4", "route", "show", "table", "main") if line.strip()],
        links=[line.split()[1].rstrip(":").split("@")[0] for line in _lines("ip", "-o", "link", "show")],
        chains="\n".join(_lines("iptables-save")),
        free_gib=shutil.disk_usage(place).free / 2**30,
    )


def main() -> int:
    state = Path(sys.argv[1])
    found = problems(look(state), state)
    for problem in found:
        print(f"up: {problem}", file=sys.stderr)
    return 2 if found else 0


if __name__ == "__main__":
    sys.exit(main())
