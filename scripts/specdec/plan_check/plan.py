"""A plan as `terraform show -json` prints it. Format: https://developer.hashicorp.com/terraform/internals/json-format."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from specdec.errors import SpecdecError

GPU_MACHINE = ("g4dn.", "g5.", "g5g.", "g6.", "g6e.", "p3.", "p4d.", "p4de.", "p5.", "p5e.", "p5en.", "p6")


@dataclass(frozen=True)
class Change:
    """What the plan does to one resource. `before` and `after` are its attributes, empty where it does not exist."""

    address: str
    type: str
    actions: tuple[str, ...]
    before: dict[str, Any]
    after: dict[str, Any]
    replaced_for: tuple[str, ...] = ()

    @property
    def deletes(self) -> bool:
        return "delete" in self.actions

    @property
    def replaces(self) -> bool:
        return self.deletes and "create" in self.actions

    @property
    def is_gpu_pool(self) -> bool:
        return any(_is_gpu_pool(self.type, state) for state in (self.before, self.after))


@dataclass(frozen=True)
class Plan:
    """Changes, what changed outside Terraform, the variables, and where the state is kept (None: not known)."""

    file: str
    changes: tuple[Change, ...]
    drift: tuple[Change, ...] = ()
    variables: dict[str, Any] = field(default_factory=dict)
    backend: dict[str, Any] | None = None


def first(value: Any) -> dict[str, Any]:
    """The only element of a nested block, or an empty one: Terraform shows blocks as lists."""
    if isinstance(value, list):
        value = value[0] if value else {}
    return value if isinstance(value, dict) else {}


def _is_gpu_pool(kind: str, state: dict[str, Any]) -> bool:
    if kind == "google_container_node_pool":
        return bool(first(state.get("node_config")).get("guest_accelerator"))
    if kind == "aws_eks_node_group":
        machines = state.get("instance_types") or []
        return "NVIDIA" in str(state.get("ami_type")) or any(str(m).startswith(GPU_MACHINE) for m in machines)
    return False


def _change(entry: dict[str, Any]) -> Change:
    change = entry["change"]
    return Change(
        address=entry["address"],
        type=entry["type"],
        actions=tuple(change["actions"]),
        before=change.get("before") or {},
        after=change.get("after") or {},
        replaced_for=tuple(".".join(str(step) for step in path) for path in change.get("replace_paths") or ()),
    )


def _backend(root: Path) -> dict[str, Any] | None:
    """What `terraform init` noted of the state's place in a root's working directory."""
    try:
        noted = json.loads((root / ".terraform" / "terraform.tfstate").read_text())
        backend = noted["backend"]
        return {"type": backend["type"], **(backend.get("config") or {})}
    except (OSError, ValueError, KeyError, TypeError):
        return None


def read(file: Path, root: Path | None = None) -> Plan:
    """Read a plan, and from `root` (default: the plan's folder) where its state is kept.

    Raises SpecdecError where the file cannot be read or is not a plan.
    """
    fix = "terraform plan -out tfplan && terraform show -json tfplan > tfplan.json"
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise SpecdecError(error.strerror or "cannot be read", code="unreadable-file", file=str(file)) from None
    except ValueError:
        raise SpecdecError(
            "not JSON: a saved plan has to be shown as JSON", code="not-a-plan", file=str(file), fix=fix
        ) from None
    if not isinstance(document, dict) or not isinstance(document.get("format_version"), str):
        raise SpecdecError("not a Terraform plan", code="not-a-plan", file=str(file), fix=fix)
    try:
        return Plan(
            file=str(file),
            changes=tuple(_change(e) for e in document.get("resource_changes") or () if e.get("mode") == "managed"),
            drift=tuple(_change(e) for e in document.get("resource_drift") or () if e.get("mode") == "managed"),
            variables={name: v.get("value") for name, v in (document.get("variables") or {}).items()},
            backend=_backend(root or file.parent),
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise SpecdecError(
            f"not a plan that this can read: {error!r}", code="not-a-plan", file=str(file), fix=fix
        ) from None
