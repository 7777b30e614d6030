"""What tokens cost: by machine shape, cloud, region and provisioning, every price dated and replaceable."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from specdec import facts
from specdec.errors import SpecdecError

PREFERRED = ("on_demand", "reservation", "capacity_block", "queued", "flex_start", "spot")


@dataclass(frozen=True)
class Price:
    """Dollars an hour of one machine, and of the part of it that one engine takes."""

    cloud: str
    machine: str
    region: str
    provisioning: str
    machine_dollars: float
    engines: int
    date: str
    approximate: bool
    source: str

    @property
    def engine_dollars(self) -> float:
        """GPUs that no engine can use are paid for by those that run."""
        return self.machine_dollars / self.engines

    def per_million(self, tokens_per_second: float) -> float:
        """Dollars for a million output tokens."""
        return self.engine_dollars / (tokens_per_second * 3600) * 1e6 if tokens_per_second > 0 else math.inf


def rows() -> list[dict[str, Any]]:
    found = facts.prices().get("prices")
    if not isinstance(found, list):
        raise SpecdecError("has to be a list", code="facts-broken", file="files/prices.yaml", path="prices")
    return [dict(r) for r in found]


def price(
    accelerator: str,
    gpus: int,
    *,
    cloud: str | None = None,
    machine: str | None = None,
    region: str | None = None,
    provisioning: str | None = None,
    dollars_per_hour: float | None = None,
) -> Price:
    """The cheapest machine that holds the engine, among those asked for; on demand before discounted where not asked.

    Raises SpecdecError where no machine has that GPU, or no price is known and none is given.
    """
    shapes = {(c, name): m for c, names in facts.machines().items() for name, m in names.items()}
    fitting = {
        key: m
        for key, m in shapes.items()
        if m["accelerator"] == accelerator
        and m["count"] >= gpus
        and (cloud is None or key[0] == cloud)
        and (machine is None or key[1] == machine)
    }
    if machine is not None and not any(name == machine for _, name in shapes):
        from specdec.errors import unknown

        raise unknown("machine", machine, [name for _, name in shapes], path="accelerator.machineType")
    if not fitting:
        raise SpecdecError(
            f"no machine{f' {machine}' if machine else ''} of {cloud or 'any cloud'} has {gpus} x {accelerator}",
            code="no-machine",
            path="accelerator",
            fix="another GPU type, machine or tensor parallel size",
        )
    if provisioning and not any(provisioning in m["provisioning"] for m in fitting.values()):
        ways = sorted({w for m in fitting.values() for w in m["provisioning"]})
        raise SpecdecError(
            f"{machine or accelerator} cannot be bought as {provisioning}",
            code="bad-provisioning",
            path="provisioning",
            fix="one of " + ", ".join(ways),
        )
    if dollars_per_hour is not None:
        (where, name), shape = min(fitting.items(), key=lambda item: item[1]["count"])
        return Price(
            where,
            name,
            region or "",
            provisioning or "",
            dollars_per_hour,
            shape["count"] // gpus,
            "given",
            False,
            "--price",
        )
    found = [
        Price(
            r["cloud"],
            r["machine"],
            r["region"],
            r["provisioning"],
            float(r["dollarsPerHour"]),
            fitting[r["cloud"], r["machine"]]["count"] // gpus,
            str(r["date"]),
            bool(r["approximate"]),
            str(r["source"]),
        )
        for r in rows()
        if (r["cloud"], r["machine"]) in fitting
        and (region is None or r["region"] == region)
        and (provisioning is None or r["provisioning"] == provisioning)
    ]
    if not found:
        what = " ".join(filter(None, (cloud, machine or accelerator, region, provisioning)))
        raise SpecdecError(
            f"no price of {what}",
            code="price-missing",
            file="files/prices.yaml",
            fix="--price DOLLARS_PER_HOUR of the machine",
        )
    if provisioning is None:
        best = min(PREFERRED.index(p.provisioning) for p in found)
        found = [p for p in found if PREFERRED.index(p.provisioning) == best]
    return min(found, key=lambda p: p.engine_dollars)
