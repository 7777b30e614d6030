"""A kubeconfig of our own for the cluster that Terraform made; nobody's other contexts are touched."""

from __future__ import annotations

import base64
import shutil
from pathlib import Path
from typing import Any

from specdec.deploy.cloud.target import Target
from specdec.environments import Environment
from specdec.errors import SpecdecError

PLUGINS = {
    "gke": ("gke-gcloud-auth-plugin", "gcloud components install gke-gcloud-auth-plugin"),
    "eks": ("aws", "install the AWS CLI, version 2"),
}


def check(cloud: str) -> None:
    """Raises SpecdecError (SD853) where what fetches the cluster's tokens is missing: better before it is paid for."""
    command, fix = PLUGINS[cloud]
    if shutil.which(command) is None:
        raise SpecdecError(f"{command} is not on PATH: it fetches the cluster's tokens", code="SD853", fix=fix)


def write(folder: Path, environment: str, cluster: dict[str, Any]) -> tuple[Path, str]:
    """The file and its context. `cluster`: the root's output "platform". Raises SpecdecError without a token helper."""
    import yaml

    check(cluster["cloud"])
    command, _ = PLUGINS[cluster["cloud"]]
    name = f"specdec-{environment}"
    arguments = []
    if cluster["cloud"] == "eks":
        arguments = ["eks", "get-token", "--cluster-name", cluster["name"], "--region", cluster["location"]]
    server: dict[str, Any] = {"server": cluster["host"]}
    if cluster.get("ca_certificate"):
        server["certificate-authority-data"] = base64.b64encode(cluster["ca_certificate"].encode()).decode()
    login = {
        "apiVersion": "client.authentication.k8s.io/v1beta1",
        "command": command,
        "args": arguments,
        "interactiveMode": "Never",
        "provideClusterInfo": True,
    }
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "clusters": [{"name": name, "cluster": server}],
        "users": [{"name": name, "user": {"exec": login}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
    }
    file = folder / "kubeconfig"
    file.touch(mode=0o600)
    file.write_text(yaml.safe_dump(document, sort_keys=False))
    file.chmod(0o600)
    return file, name


def of(env: Environment) -> tuple[Path, str] | None:
    """File and context that an earlier deploy of the environment wrote, None where it wrote none."""
    target = Target.of(env)
    file = target.folder / "kubeconfig" if target else None
    return (file, f"specdec-{env.name}") if file and file.is_file() else None
