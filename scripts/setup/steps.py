"""What each group of set-up is made of."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace

from setup import controllers, crds, schemas
from setup.dag import SetupError, Step, Work
from setup.debian import base_step, missing, packages_step, prometheus_step
from setup.images import image_steps, name_it_vllm
from setup.paths import HOME, REPO, REQUIREMENTS
from setup.python import environment_step, uv_step
from setup.tools import KUBERNETES_FLAGS, go, go_build, go_step, on_path, tool_steps

GROUPS = {
    "uv": "uv itself, for scripts/setup/lock",
    "python": ".venv with the command specdec and what tests and linters need",
    "tools": "helm and kubectl",
    "lint": "kubeconform, tflint, actionlint",
    "monitoring": "promtool and prometheus",
    "terraform": "terraform, or OpenTofu where it is missing",
    "checkov": "checkov, in an environment of its own",
    "engine": "vLLM for CPUs, in an environment of its own",
    "cluster": "the embedded Kubernetes cluster and the images that run on it (root, Linux)",
    "controllers": "KEDA and Traefik for their own end-to-end tests (20 minutes to build, not part of `all`)",
    "schemas": "JSON schemas of Kubernetes' own kinds and of custom resources, for kubeconform",
}
TOOLS = {
    "tools": ("helm", "kubectl"),
    "lint": ("kubeconform", "tflint", "actionlint"),
    "terraform": ("terraform",),
}
CLUSTER_BIN = HOME / "kubernetes"
CLUSTER = {
    **{
        name: f"k8s.io/kubernetes/cmd/{name}"
        for name in ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy", "kubectl")
    },
    "etcd": "go.etcd.io/etcd/server/v3",
}


def _python() -> Step:
    return environment_step("python", REPO / ".venv", (REQUIREMENTS / "dev.txt",), gib=1.2, editable=True)


def _engine() -> Step:
    folder = HOME / "engine"
    step = environment_step(
        "engine", folder, (REQUIREMENTS / "engine.txt", REQUIREMENTS / "engine-wheel.txt"), gib=8.5, editable=False
    )

    def run(work: Work) -> None:
        step.run(work)
        name_it_vllm(next((folder / "lib").glob("python3.*/site-packages")))

    return replace(step, run=run)


def _cluster() -> list[Step]:
    if os.uname().sysname != "Linux":
        raise SetupError("the embedded cluster runs on Linux alone", "name a cluster that exists: KUBECONTEXT=...")
    packages = packages_step(missing())
    root_steps = [base_step(("packages",) if packages else ()), *image_steps()] if os.geteuid() == 0 else []
    if not root_steps and not shutil.which("kind"):
        raise SetupError(
            "the embedded cluster needs root", "run as root, or name a cluster that exists: KUBECONTEXT=..."
        )
    return [
        *go_build("kubernetes", "kubernetes", CLUSTER, KUBERNETES_FLAGS, CLUSTER_BIN, gib=3),
        *go_build("coredns", "coredns", {"coredns": "."}, "", CLUSTER_BIN, gib=1),
        *([packages] if packages else []),
        *root_steps,
    ]


def _all() -> list[str]:
    """What `all` stands for."""
    return [group for group in GROUPS if group != "controllers"]


def plan(groups: list[str]) -> tuple[dict[str, Step], list[str]]:
    """The steps of these groups by name, the slowest first, and a line for each tool that says which is used."""
    made: list[Step] = []
    notes: list[str] = []
    everything = "all" in groups
    for group in _all() if everything else dict.fromkeys(groups):
        if group in TOOLS:
            for tool in TOOLS[group]:
                steps, note = tool_steps(tool)
                made += steps
                notes.append(note)
        elif group == "python":
            made.append(_python())
        elif group == "checkov":
            made.append(
                environment_step("checkov", HOME / "checkov", (REQUIREMENTS / "checkov.txt",), 0.8, editable=False)
            )
        elif group == "engine":
            made.append(_engine())
        elif group == "monitoring":
            promtool = on_path("promtool", ("--version",), (2, 42))
            if promtool:
                notes.append(f"promtool {promtool[1]} from {promtool[0]}")
            else:
                made.append(prometheus_step())
        elif group == "schemas":
            own_go = () if go() else ("go",)
            made += [_python(), schemas.step(own_go), crds.step(("python", *own_go))]
        elif group == "controllers":
            made += controllers.steps()
        elif group == "cluster":
            try:
                made += _cluster()
            except SetupError as error:
                if not everything:
                    raise
                notes.append(f"cluster: left out: {error}")
        elif group != "uv":
            raise SetupError(f"no group {group!r}", f"groups: {', '.join(GROUPS)}, all")
    made += [uv_step(), go_step()]
    # What the longest chain waits for goes first: the cluster's Go modules, then the big downloads.
    first = ("uv", "go", "packages", "kubernetes-modules", "kubernetes", "image-base")
    order = sorted(made, key=lambda step: first.index(step.name) if step.name in first else len(first))
    return {step.name: step for step in order}, notes


def wanted(steps: dict[str, Step], groups: list[str]) -> list[str]:
    """The names of steps to bring up to date: all but uv and Go, which come where something needs them."""
    return [name for name in steps if name not in ("uv", "go") or name in groups]
