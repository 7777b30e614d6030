"""kind, where Docker runs and kind's node image is at hand already: nothing is pulled."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from pathlib import Path

from specdec import local
from specdec.errors import SpecdecError
from specdec.local.containerd import Image

NAME = "vllm-speculative"
CONTEXT = f"kind-{NAME}"


def _output(*command: str) -> str | None:
    """What a command prints, None where it fails or is missing."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


def available() -> bool:
    return bool(
        shutil.which("kind") and shutil.which("docker") and _output("docker", "image", "ls", "--quiet", "kindest/node")
    )


def running() -> bool:
    return NAME in (_output("kind", "get", "clusters") or "").split()


def _kind(*arguments: str) -> None:
    done = subprocess.run(["kind", *arguments, "--name", NAME], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SpecdecError(f"kind {arguments[0]}: {done.stderr.strip()}", code="kind", fix="see `docker info`; repeat")


def create(report: local.Report) -> None:
    """A cluster of one node that sees the models where the embedded cluster would have them."""
    if running():
        return
    report("creating a kind cluster")
    local.models_on_host().mkdir(parents=True, exist_ok=True)
    mount = {"hostPath": str(local.models_on_host()), "containerPath": str(local.state_dir() / "models")}
    node = {"role": "control-plane", "extraMounts": [mount]}
    config = {"kind": "Cluster", "apiVersion": "kind.x-k8s.io/v1alpha4", "nodes": [node]}
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        json.dump(config, file)  # JSON is YAML
        file.flush()
        _kind("create", "cluster", "--wait", "120s", "--config", file.name)


def load(image: Image, report: local.Report) -> None:
    from specdec.local.layers import write_archive

    if image.name in (_output("docker", "exec", f"{NAME}-control-plane", "crictl", "images", "-o", "json") or ""):
        return
    report(f"image {image.name}: packing it for kind, this takes minutes")
    with tempfile.TemporaryDirectory(dir=local.TOOLS) as folder:
        archive = Path(folder) / "image.tar"
        write_archive(image, archive)
        _kind("load", "image-archive", str(archive))


def delete(report: local.Report) -> None:
    report("deleting the kind cluster")
    _kind("delete", "cluster")
