"""Debian's packages that the embedded cluster needs, and the root file system that its images stand on."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from setup.dag import SetupError, Step, Work
from setup.paths import BIN, HOME

# Package → a file that says it is there, relative to the root.
PACKAGES = {
    "containerd": "usr/bin/containerd",
    "runc": "usr/sbin/runc",
    "containernetworking-plugins": "usr/lib/cni/bridge",
    "iptables": "usr/sbin/iptables",
    "conntrack": "usr/sbin/conntrack",
    "socat": "usr/bin/socat",
    "iproute2": "usr/sbin/ip",
    "procps": "usr/sbin/sysctl",
    "mount": "usr/bin/mount",
    "openssl": "usr/bin/openssl",
    "busybox-static": "usr/bin/busybox",
    "debootstrap": "usr/sbin/debootstrap",
}
# The user that images run as. vLLM asks for its name.
USER = "vllm:x:2000:2000:vLLM:/tmp:/usr/sbin/nologin\n"


def missing(root: Path = Path("/")) -> list[str]:
    """Packages of the list that are not installed. /bin and /sbin count for /usr/bin and /usr/sbin."""
    return [
        package
        for package, file in PACKAGES.items()
        if not any(
            (root / place).exists() for place in (file, file.removeprefix("usr/"), "opt/cni/bin/" + Path(file).name)
        )
    ]


def packages_step(
    wanted: list[str], is_root: bool = os.geteuid() == 0, which: Callable[[str], str | None] = shutil.which
) -> Step | None:
    """One apt-get call for what is missing; None when nothing is. Raises SetupError where it could not work."""
    if not wanted:
        return None
    if not which("apt-get"):
        raise SetupError(
            f"the embedded cluster needs {', '.join(wanted)} and this is no Debian or Ubuntu",
            "install them by hand, or name a cluster: KUBECONTEXT=...",
        )
    if not is_root:
        raise SetupError(
            f"the embedded cluster needs root, and these packages: {', '.join(wanted)}",
            "run as root, or name a cluster that exists: KUBECONTEXT=..., or start Docker and install kind",
        )

    def run(work: Work) -> None:
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        work.command("dpkg", "--configure", "-a", env=environment)
        work.command("apt-get", "update", env=environment, attempts=4)
        work.command(
            "apt-get", "install", "-y", "--no-install-recommends", "-o", "DPkg::Lock::Timeout=300", *wanted,
            env=environment, attempts=4,
        )  # fmt: skip
        if missing():
            raise SetupError(f"still missing after apt-get install: {', '.join(missing())}")

    return Step("packages", "network", run, tuple(wanted), (), gib=0.5, fix="see what apt-get says in the log")


def prometheus_step(which: Callable[[str], str | None] = shutil.which) -> Step:
    """Prometheus and promtool out of Debian's package, unpacked and not installed: no service starts, no root needed.

    Raises SetupError on a machine without apt.
    """
    if not which("apt-get"):
        raise SetupError("promtool is not on PATH and this is no Debian or Ubuntu", "install Prometheus by hand")
    programs = ("prometheus", "promtool")

    def run(work: Work) -> None:
        if os.geteuid() == 0:
            work.command("apt-get", "update", attempts=4)
        work.command("apt-get", "download", "prometheus", cwd=work.scratch, attempts=4)
        package = next(work.scratch.glob("prometheus_*.deb"))
        work.command("dpkg-deb", "--extract", package, work.scratch / "root")
        for program in programs:
            work.put(work.scratch / "root/usr/bin" / program, BIN / program)

    return Step("prometheus", "network", run, programs, tuple(BIN / program for program in programs), gib=0.4,
                fix="as root, `apt-get update` first; or install Prometheus by hand")  # fmt: skip


def mirror() -> tuple[str, str]:
    """Where this machine's apt gets its packages, and its release's name: ("http://...", "bookworm")."""
    release = ""
    for line in Path("/etc/os-release").read_text().splitlines():
        if line.startswith("VERSION_CODENAME="):
            release = line.partition("=")[2].strip('"')
    query = ("apt-get", "indextargets", "--format", "$(REPO_URI) $(RELEASE)", "Identifier: Packages", "Component: main")
    listed = subprocess.run(query, capture_output=True, text=True, check=False).stdout
    for line in listed.splitlines():
        uri, _, name = line.partition(" ")
        if name == release:
            return uri, release
    raise SetupError(f"apt knows no source for release {release!r}", "add the distribution's own source to apt's lists")


def base_step(needs: tuple[str, ...]) -> Step:
    """The distribution's smallest root file system with Python."""
    place = HOME / "images" / "base"
    include = "python3,libnuma1,ca-certificates"

    def run(work: Work) -> None:
        root = work.scratch / "root"
        uri, release = mirror()
        for attempt in range(3):
            shutil.rmtree(root, ignore_errors=True)
            try:
                work.command("debootstrap", "--variant=minbase", f"--include={include}", release, root, uri)
                break
            except SetupError:
                if attempt == 2 or work.cancelled.is_set():
                    raise
        for folder in ("var/cache/apt", "var/lib/apt/lists", "usr/share/doc", "usr/share/locale", "usr/share/man"):
            shutil.rmtree(root / folder, ignore_errors=True)
        with (root / "etc/passwd").open("a") as passwd:
            passwd.write(USER)
        with (root / "etc/group").open("a") as group:
            group.write("vllm:x:2000:\n")
        work.put(root, place)

    return Step("image-base", "network", run, (include, USER), (place / "usr/bin/python3",), needs, gib=0.6,
                fix="see what debootstrap says in the log")  # fmt: skip


def base_python() -> str:
    """The base image's Python version, as uv wants it: 3.11."""
    return (HOME / "images" / "base" / "usr/bin/python3").readlink().name.removeprefix("python")
