"""Whether what the chart asks of nodes is what the GPU pools have: labels, taints, GPUs, storage, room for all."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from specdec.errors import SpecdecError
from specdec.infrastructure.pools import Nodes

if TYPE_CHECKING:
    from specdec.manifests import EngineWorkload

# Share of the disks that stays with the system: kubelet's eviction threshold and reservation, images.
SYSTEM_SHARE = 0.1
_UNITS = {"": 1, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}


@dataclass(frozen=True)
class Ask:
    """What one engine asks of its nodes. `storage_gib` sums its volumes on the node's disk; grace is of its pods."""

    name: str
    accelerator: str | None
    selector: dict[str, str]
    tolerations: Sequence[dict[str, Any]]
    gpus: int
    replicas: int
    storage_gib: float
    grace_seconds: int
    service_account: str | None

    @classmethod
    def of(cls, engine: EngineWorkload) -> Ask:
        pod = engine.pod_spec
        volumes = [volume.get("emptyDir") or {} for volume in pod.get("volumes") or []]
        on_disk = [v["sizeLimit"] for v in volumes if v.get("medium") != "Memory" and "sizeLimit" in v]
        return cls(
            name=engine.name,
            accelerator=engine.accelerator,
            selector=dict(pod.get("nodeSelector") or {}),
            tolerations=pod.get("tolerations") or [],
            gpus=engine.gpus,
            replicas=engine.replicas,
            storage_gib=sum(map(_gib, on_disk)),
            grace_seconds=int(pod.get("terminationGracePeriodSeconds") or 30),
            service_account=pod.get("serviceAccountName"),
        )


def misfits(ask: Ask, nodes: Nodes) -> list[str]:
    """Why an engine cannot run on a pool's nodes; none if it can."""
    found = [
        f"it selects {key}={value}, the pool has {nodes.labels.get(key)}"
        for key, value in ask.selector.items()
        if nodes.labels.get(key) != value
    ]
    found += [
        f"it does not tolerate {taint['key']}={taint['value']}:{taint['effect']}"
        for taint in nodes.taints
        if not any(_tolerates(toleration, taint) for toleration in ask.tolerations)
    ]
    if ask.accelerator not in (None, nodes.accelerator):
        found.append(f"it is for {ask.accelerator}, the pool has {nodes.accelerator}")
    if ask.gpus > nodes.gpus:
        found.append(f"it takes {ask.gpus} GPUs, a node has {nodes.gpus}")
    beside = max(1, min(ask.replicas, per_node(ask, nodes)))
    room = (1 - SYSTEM_SHARE) * nodes.storage_gib
    if nodes.storage_gib and beside * ask.storage_gib > room:
        found.append(f"{beside} of it take {beside * ask.storage_gib:.0f} GiB of storage, a node has {room:.0f}")
    if nodes.notice_seconds is not None and ask.grace_seconds > nodes.notice_seconds:
        found.append(f"it stops in up to {ask.grace_seconds} s, a spot node is gone after {nodes.notice_seconds}")
    return found


def per_node(ask: Ask, nodes: Nodes) -> int:
    """Engines that share a node."""
    return nodes.gpus // max(1, ask.gpus)


def place(asks: Sequence[Ask], pools: Sequence[Nodes], file: str) -> dict[str, Nodes]:
    """The pool of every engine. Raises SpecdecError for an engine that no pool can hold, or not all of."""
    placed: dict[str, Nodes] = {}
    for ask in asks:
        tried = {nodes.name: misfits(ask, nodes) for nodes in pools}
        fitting = [nodes for nodes in pools if not tried[nodes.name]]
        if not fitting:
            reasons = "; ".join(f"{name}: {', '.join(problems)}" for name, problems in tried.items())
            raise SpecdecError(
                f"no GPU pool can run engine {ask.name}: {reasons or 'there is none'}",
                code="SD880",
                file=file,
                path="gpu_pools",
                fix="the values and the pool have to mean the same nodes",
            )
        most = sum(nodes.pool.max_nodes * per_node(ask, nodes) for nodes in fitting)
        if ask.replicas > most:
            raise SpecdecError(
                f"{ask.replicas} replicas of engine {ask.name}, {', '.join(n.name for n in fitting)} can hold {most}",
                code="SD881",
                file=file,
                path=f"gpu_pools.{fitting[0].name}.max_nodes",
                fix=f"max_nodes of {math.ceil(ask.replicas / per_node(ask, fitting[0]))} or more",
            )
        placed[ask.name] = fitting[0]
    return placed


def _tolerates(toleration: dict[str, Any], taint: dict[str, str]) -> bool:
    return (
        toleration.get("key") in (taint["key"], None)
        and toleration.get("effect") in (taint["effect"], None)
        and (toleration.get("operator") == "Exists" or toleration.get("value") == taint["value"])
    )


def _gib(quantity: str) -> float:
    match = re.fullmatch(r"([\d.]+)([a-zA-Z]*)", str(quantity))
    if match is None or match.group(2) not in _UNITS:
        raise SpecdecError(f"{quantity!r} is no quantity", code="bad-quantity", fix="for example 150Gi")
    return float(match.group(1)) * _UNITS[match.group(2)] / 2**30
