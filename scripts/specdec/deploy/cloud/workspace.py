"""The copy of a Terraform root that one environment works in: environments never share a backend, a lock or a plan."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from pathlib import Path
from typing import Any

from specdec import facts
from specdec.deploy.cloud import tfvars
from specdec.deploy.cloud.target import Target, made
from specdec.errors import SpecdecError

# Where modules look for the catalogue of machines, from the top of the repository.
FACTS = Path("helm/vllm-speculative/files")


def sources() -> Path:
    """The folder with the roots and modules: `SPECDEC_TERRAFORM` where set, else the repository's."""
    configured = os.environ.get("SPECDEC_TERRAFORM")
    folder = Path(configured) if configured else Path(__file__).resolve().parents[4] / "terraform"
    if not (folder / "modules").is_dir() and not configured:
        raise SpecdecError(
            "no Terraform here", code="SD850", file=str(folder), fix="install specdec from a clone of the repository"
        )
    return folder


def files() -> list[Path]:
    """What a root is made of: its own text, not what an init left there."""
    folder = sources()
    kept = (
        path
        for path in folder.rglob("*")
        if path.is_file()
        and not {".terraform", "tests", "tools"} & set(path.relative_to(folder).parts)
        and (path.suffix in (".tf", ".yaml", ".hcl", ".s3", ".tpl") or path.name == ".terraform.lock.hcl")
        # The backend is ours to choose; other overrides are the user's.
        and path.name != "backend_override.tf"
    )
    return sorted(kept)


def default(root: str, variable: str) -> Any:
    """What a root's variable is where nobody sets it; None where it has to be set or its default is an expression."""
    file = sources() / root / "variables.tf"
    text = file.read_text() if file.is_file() else ""
    block = re.search(rf'^variable "{variable}" {{\n(.*?)^}}', text, re.MULTILINE | re.DOTALL)
    line = re.search(r"^  default\s*=.*$", block[1], re.MULTILINE) if block else None
    try:
        return tfvars.parse(line[0])["default"] if line else None
    except SpecdecError:
        return None


def fingerprint(target: Target, root: str) -> str:
    """Changes with anything that the root's plan depends on: Terraform's text, facts, variables, backend."""
    digest = hashlib.sha256()
    inputs = [*files(), *sorted(facts.files_dir().glob("*.yaml")), target.backend_file(root)]
    inputs.append(target.file if root == target.cloud else target.platform_file)
    for file in inputs:
        if file.is_file():
            digest.update(file.name.encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def prepare(target: Target, root: str) -> Path:
    """The environment's own copy of a root, made or renewed; what an init left in it stays."""
    top = made(target.folder) / "work"
    source = sources()
    wanted = {Path("terraform") / file.relative_to(source): file for file in files()}
    wanted |= {FACTS / file.name: file for file in facts.files_dir().glob("*.yaml")}
    for place, file in wanted.items():
        copy = top / place
        if not copy.is_file() or copy.read_bytes() != file.read_bytes():
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, copy)
    for old in (top / "terraform").rglob("*.tf"):
        if old.relative_to(top) not in wanted and ".terraform" not in old.parts:
            old.unlink()
    where = top / "terraform" / root
    if root == "platform" and target.cloud == "eks":
        # Terraform reads an override after the rest and takes its backend.
        shutil.copyfile(where / "backend.s3", where / "backend_override.tf")
    return where
