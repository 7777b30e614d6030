"""What an environment costs an hour: its GPU machines, by the prices of prices.yaml."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from specdec import facts
from specdec.deploy.cloud.target import Pool, Target
from specdec.errors import SpecdecError
from specdec.manifests import EngineWorkload
from specdec.plan import cost


@dataclass(frozen=True)
class Line:
    """One pool. `nodes`: what the engines take now; `most`: max_nodes. `each`: dollars an hour, None where unknown."""

    pool: str
    machine: str
    provisioning: str
    nodes: int
    most: int
    each: float | None
    date: str
    approximate: bool


@dataclass(frozen=True)
class Bill:
    """GPU machines alone. Control plane, CPU nodes, disks, addresses and traffic come on top."""

    lines: tuple[Line, ...]

    @property
    def now(self) -> float:
        """Dollars an hour while every engine of the values runs."""
        return sum(line.nodes * (line.each or 0) for line in self.lines)

    @property
    def most(self) -> float:
        """Dollars an hour with every pool at max_nodes."""
        return sum(line.most * (line.each or 0) for line in self.lines)

    @property
    def unknown(self) -> list[str]:
        return [f"{line.machine} {line.provisioning}" for line in self.lines if line.each is None]

    def __str__(self) -> str:
        if not self.lines:
            return "no GPU machines"
        what = ", ".join(f"{line.nodes} × {line.machine} {line.provisioning}" for line in self.lines if line.nodes)
        dates = sorted({line.date for line in self.lines if line.date})
        about = "about " if any(line.approximate for line in self.lines) else ""
        text = f"{about}${self.now:,.2f} an hour ({what or 'no node yet'}), at most ${self.most:,.2f}"
        text += f"; prices of {dates[0]}" if dates else ""
        text += f"; no price known of {', '.join(self.unknown)}" if self.unknown else ""
        return text + "; control plane, CPU nodes, disks and traffic come on top"

    def as_dict(self) -> dict[str, object]:
        return {
            "currency": "USD",
            "per_hour": round(self.now, 2),
            "per_hour_at_most": round(self.most, 2),
            "unknown": self.unknown,
            "pools": [vars(line) for line in self.lines],
        }


def bill(target: Target, engines: Sequence[EngineWorkload]) -> Bill:
    """The price an hour. Engines go to the first pool of their GPU with room; a machine is paid for as a whole."""
    known = facts.machines().get(target.cloud, {})
    lines, waiting = [], [[engine.accelerator, engine.gpus, engine.replicas] for engine in engines if engine.gpus]
    for pool in target.pools:
        shape = known.get(pool.machine)
        if shape is None:
            continue
        nodes = 0
        for ask in waiting:
            accelerator, gpus, replicas = ask
            if accelerator != shape["accelerator"] or gpus > shape["count"] or not replicas:
                continue
            per_node = shape["count"] // gpus
            taken = min(math.ceil(replicas / per_node), pool.max_nodes - nodes)
            nodes, ask[2] = nodes + taken, max(0, replicas - taken * per_node)
        lines.append(_line(target, pool, str(shape["accelerator"]), nodes))
    return Bill(tuple(lines))


def _line(target: Target, pool: Pool, accelerator: str, nodes: int) -> Line:
    def ask(region: str | None) -> cost.Price | None:
        try:
            return cost.price(
                accelerator, 1, cloud=target.cloud, machine=pool.machine, region=region, provisioning=pool.provisioning
            )
        except SpecdecError:
            return None

    # A price of another region is of the right size, and is said to be approximate.
    here = ask(target.region)
    found = here or ask(None)
    return Line(
        pool.name,
        pool.machine,
        pool.provisioning,
        nodes,
        pool.max_nodes,
        found.machine_dollars if found else None,
        found.date if found else "",
        bool(found and (found.approximate or here is None)),
    )
