"""The local environment: a cluster on this machine with the images and the models that a deployment to it needs.

A cluster is, in this order, the one that KUBECONTEXT (or --context) names, kind where Docker runs and kind's node image
is at hand, or a one-node cluster that scripts/local-cluster starts. Standard library only: scripts run parts of it
with the machine's own Python.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from specdec.errors import SpecdecError

if TYPE_CHECKING:
    from specdec.environments import Environment

Report = Callable[[str], None]

REPO = Path(__file__).resolve().parents[3]
TOOLS = REPO / ".tools"
SCRIPTS = REPO / "scripts" / "local-cluster"
DEFAULT_STATE = "/var/lib/vllm-speculative"
ENGINE_IMAGE = "localhost/vllm-speculative/engine:v0.32.0"
ROUTER_IMAGE = "localhost/vllm-speculative/router:0.1.17"
# As pods see them: the target, a draft that mostly agrees with it, and one that hardly ever does.
TARGET, DRAFT, DISAGREEING_DRAFT = "/models/target", "/models/draft", "/models/draft-never"


def state_dir() -> Path:
    """Where the embedded cluster keeps everything, and where the models lie on the node."""
    return Path(os.environ.get("SPECDEC_STATE", DEFAULT_STATE))


def models_on_host() -> Path:
    """Where the pair is built."""
    return TOOLS / "models"


def kubeconfig() -> Path:
    """Of the embedded cluster; it exists while the cluster does."""
    return state_dir() / "admin.kubeconfig"


def named(env: Environment | None) -> str | None:
    """The context of a cluster that the user named."""
    return (env.kubecontext if env else None) or os.environ.get("KUBECONTEXT") or None


def find(env: Environment | None = None) -> Path | str:
    """The context or the kubeconfig of the local cluster, without starting anything.

    Raises SpecdecError where none runs.
    """
    from specdec.local import kind

    if context := named(env):
        return context
    if kubeconfig().exists():
        return kubeconfig()
    if kind.available() and kind.running():
        return kind.CONTEXT
    raise SpecdecError("no local cluster runs", code="no-local-cluster", fix="make deploy ENV=local")


def ensure(env: Environment | None, report: Report) -> Path | str:
    """Starts the local cluster unless it runs; the path of its kubeconfig, or the name of its context.

    Raises SpecdecError where this machine cannot have one, with what would help.
    """
    from specdec.local import kind

    if context := named(env):
        report(f"using the cluster of context {context}; it has to have {ENGINE_IMAGE}, {ROUTER_IMAGE} and /models")
        return context
    if not kubeconfig().exists() and kind.available():
        set_up(report, "engine")
        kind.create(report)
        return kind.CONTEXT
    if os.geteuid() != 0 or sys.platform != "linux":
        raise SpecdecError(
            "a local cluster needs root on Linux, or Docker with kind",
            code="no-local-cluster",
            fix="run as root; or start Docker, with kind and its node image; or name a cluster: KUBECONTEXT=...",
        )
    set_up(report, "cluster", "engine")
    return Path(script("up", report))


def images(report: Report) -> None:
    """Makes the engine's and the router's image available to pods of the local cluster."""
    from specdec.local import layers

    if not named(None):
        layers.load(report)


def models(report: Report) -> None:
    """Builds the pair of models unless it is there, and puts it where pods of the local cluster find it."""
    from specdec.local import pairs

    if not named(None):
        pairs.provide(report)


def values_file() -> Path | None:
    """Values that only this machine knows: where the models lie, when that is not the chart's environment's place."""
    if state_dir() == Path(DEFAULT_STATE) or named(None):
        return None
    file = state_dir() / "values.yaml"
    text = f"modelCache:\n  hostPath:\n    path: {state_dir() / 'models'}\n"
    if state_dir().is_dir() and os.access(state_dir(), os.W_OK):
        file.write_text(text)
    return file


values = values_file


def down(report: Report) -> None:
    """Takes the local cluster away and everything that it left. Nothing to do is fine."""
    from specdec.local import kind

    if kind.available() and kind.running():
        kind.delete(report)
    if state_dir().exists():
        report("taking the cluster down")
        script("down", report)


def script(name: str, report: Report) -> str:
    """Runs a script of scripts/local-cluster; its last line. Raises SpecdecError with what it says."""
    process = subprocess.run([SCRIPTS / name], capture_output=True, text=True, check=False)
    said = [line for line in process.stderr.splitlines() if line.strip()]
    if process.returncode:
        message = "\n".join(line.removeprefix(f"{name}: ") for line in said) or f"{name} failed"
        raise SpecdecError(message, code="local-cluster", fix="repeat; `make destroy ENV=local` removes what is left")
    for line in said:
        report(line)
    return process.stdout.strip().splitlines()[-1] if process.stdout.strip() else ""


def set_up(report: Report, *groups: str) -> None:
    """Brings these groups of scripts/setup up to date; quick when they are."""
    command = [os.environ.get("PYTHON", "python3"), str(REPO / "scripts" / "setup"), *groups]
    lines: list[str] = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        for line in process.stdout or ():
            lines.append(line.rstrip())
            report(line.rstrip())
    if process.returncode:
        raise SpecdecError("\n".join(lines[-20:]) or "set-up failed", code="setup", fix="repeat to resume")
