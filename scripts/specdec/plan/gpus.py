"""Which GPU of accelerators.yaml a label, an annotation or a product name means."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from specdec import facts
from specdec.errors import SpecdecError, unknown
from specdec.objects import mapping
from specdec.plan.setup import Accelerator

if TYPE_CHECKING:
    from specdec.manifests import EngineWorkload

# Words of node labels and product names, and the type that has all of them. An A100 has to say its memory: GKE's
# nvidia-tesla-a100 and AWS's p4d have 40 GB.
WORDS = {
    ("h100",): "h100-80gb",
    ("h200",): "h200-141gb",
    ("b200",): "b200",
    ("a100", "80gb"): "a100-80gb",
    ("l40s",): "l40s",
    ("a10g",): "a10g",
    ("l4",): "l4",
    ("rtx", "pro", "6000"): "rtx-pro-6000",
}
# Cards of the same name with another memory or bandwidth: H100 NVL has 94 GB, H100 PCIe two thirds of the bandwidth.
OTHER_CARDS = {("h100", "nvl"), ("h100", "pcie"), ("h200", "nvl")}


def accelerator_type(stated: str | None) -> str | None:
    """The type of accelerators.yaml that a label, annotation or product name means, None where it means none of them,
    as a MIG slice does."""
    if stated is None:
        return None
    word = stated.strip().lower()
    if word in facts.accelerators():
        return word
    words = words_of(word)
    if "mig" in words or any(words.issuperset(other) for other in OTHER_CARDS):
        return None
    return next((key for needed, key in WORDS.items() if words.issuperset(needed)), None)


def words_of(name: str) -> set[str]:
    return set(re.split(r"[^a-z0-9]+", name.lower()))


def accelerator(name: str, cloud: str | None = None) -> Accelerator:
    """Raises SpecdecError for a type that is unknown, a MIG slice, or a GPU that this cloud does not have."""
    rows = facts.accelerators()
    key = accelerator_type(name)
    if key is None and "mig" in words_of(name):
        raise sliced(name)
    if key is None:
        raise unknown("accelerator", name, rows, path="accelerator.type")
    if cloud and key != "cpu":
        shapes = facts.machines().get(cloud, {})
        if shapes and key not in {m["accelerator"] for m in shapes.values()}:
            fix = "GKE's 24 GB class is the L4 (g2 machines): accelerator.type l4" if key == "a10g" else None
            fix = fix or "it has " + ", ".join(sorted({m["accelerator"] for m in shapes.values()}))
            raise SpecdecError(f"{cloud} has no {rows[key]['name']}", code="SD330", path="accelerator.type", fix=fix)
    return Accelerator.of(key, rows[key])


def refuse_slices(engine: EngineWorkload) -> None:
    """Raises SpecdecError where the container asks for slices of a GPU: the label names the whole one."""
    resources = mapping(engine.container.get("resources"))
    for part in ("limits", "requests"):
        for name in mapping(resources.get(part)):
            if str(name).startswith("nvidia.com/mig-"):
                raise sliced(str(name))


def sliced(name: str) -> SpecdecError:
    return SpecdecError(
        f"{name} is a slice of a GPU, with a part of its memory and bandwidth: the planner knows whole ones",
        code="unknown-accelerator",
        path="accelerator.type",
        fix="a whole GPU: one of " + ", ".join(sorted(facts.accelerators())),
    )
