"""Manifests of one engine, as a person would hand them to `specdec plan`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml


def speculative(**fields: Any) -> str:
    return f"--speculative-config={json.dumps(fields)}"


def manifest(
    folder: Path,
    *arguments: str,
    version: str = "0.32.0",
    gpus: int = 1,
    env: dict[str, str] | None = None,
    name: str = "engine",
) -> str:
    """A Deployment of vLLM on H100s, in a file of that folder."""
    container = {
        "name": "vllm",
        "image": f"vllm/vllm-openai:v{version}",
        "args": list(arguments),
        "env": [{"name": key, "value": value} for key, value in (env or {}).items()],
        "resources": {"limits": {"nvidia.com/gpu": str(gpus)}},
    }
    template = {
        "metadata": {"annotations": {"vllm-speculative/accelerator": "h100-80gb"}},
        "spec": {"containers": [container]},
    }
    document = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {"template": template},
    }
    file = folder / f"{name}.yaml"
    file.write_text(yaml.safe_dump(document))
    return str(file)
