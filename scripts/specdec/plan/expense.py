"""The money of a plan: which machine at which price, what its tokens cost, whether its disks hold the models."""

from __future__ import annotations

from typing import Any

from specdec import facts
from specdec.errors import SpecdecError
from specdec.plan import cost
from specdec.plan.cost import Price
from specdec.plan.serving import Point
from specdec.plan.setup import Setup
from specdec.plan.weights import GIB, checkpoint_bytes
from specdec.plan.wishes import Wishes
from specdec.plan.workloads import Planned


def find_price(planned: Planned, wishes: Wishes, out: dict[str, Any]) -> Price | None:
    """None, with a warning, where nothing was asked for and nothing is known."""
    setup = planned.setup
    asked = any((wishes.machine, wishes.region, wishes.provisioning, wishes.dollars_per_hour))
    if setup.accelerator.key == "cpu" and not asked:
        return None
    try:
        return cost.price(
            setup.accelerator.key,
            setup.tp * setup.pp * setup.dp,
            cloud=wishes.cloud or planned.cloud,
            machine=wishes.machine,
            region=wishes.region,
            provisioning=wishes.provisioning,
            dollars_per_hour=wishes.dollars_per_hour,
        )
    except SpecdecError as error:
        if asked or error.code != "price-missing":
            raise
        out["cost_missing"] = error.message
        return None


def disk_findings(setup: Setup, found: Price) -> list[tuple[str, str]]:
    """Whether the machine's local disks hold the checkpoints: one copy a machine, a tenth kept free."""
    shape = facts.machines()[found.cloud][found.machine]
    local, store = shape.get("localSSD"), shape.get("instanceStore")
    gib = local["count"] * local["sizeGiB"] if local else store["count"] * store["sizeGB"] * 1e9 / GIB if store else 0.0
    need = files_bytes(setup) / GIB
    if need <= gib * 0.9:
        return []
    text = f"the checkpoints take {need:.0f} GiB, {found.machine} has {gib:.0f} GiB of local disk, a tenth kept free"
    return [("SD334", text)]


def files_bytes(setup: Setup) -> int:
    """Bytes of all files that the engine downloads."""
    total = checkpoint_bytes(setup.target)
    if setup.speculation and setup.speculation.draft and setup.speculation.method != "mtp":
        total += checkpoint_bytes(setup.speculation.draft)
    return total


def cost_document(found: Price, curve: list[Point], planned: Planned, wishes: Wishes) -> dict[str, Any]:
    per_million: dict[int, dict[str, Any]] = {}
    for p in curve:
        row = per_million.setdefault(p.batch, {"concurrency": p.batch})
        dollars = found.per_million(p.tokens_per_second)
        row[p.arm] = round(dollars, 4)
        if wishes.sale:
            row[f"{p.arm}_margin"] = round(1 - dollars / wishes.sale, 4)
    return {
        "cloud": found.cloud,
        "machine": found.machine,
        "region": found.region,
        "provisioning": found.provisioning,
        "machine_dollars_per_hour": found.machine_dollars,
        "engines_per_machine": found.engines,
        "engine_dollars_per_hour": round(found.engine_dollars, 4),
        "price_date": found.date,
        "price_approximate": found.approximate,
        "price_source": found.source,
        "replicas": planned.replicas,
        "dollars_per_month": round(found.engine_dollars * planned.replicas * 730, 2),
        "idle": (
            f"an idle replica costs ${found.engine_dollars:.2f} an hour; at 50 % use every token carries twice its cost"
        ),
        "sale_dollars_per_million": wishes.sale,
        "per_million_output_tokens": list(per_million.values()),
    }
