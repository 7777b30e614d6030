"""GPU pools as pods see their nodes, from tfvars and accelerators.yaml: what Terraform makes of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from specdec import facts
from specdec.deploy.cloud import agreement
from specdec.deploy.cloud.target import Pool, Target
from specdec.errors import SpecdecError

TAINT = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}


@dataclass(frozen=True)
class Nodes:
    """The nodes of one pool.

    storage_gib     what backs ephemeral storage, 0 for the boot disk alone
    notice_seconds  what pods have to stop in before a spot node is gone, None where nodes are not taken back
    """

    pool: Pool
    accelerator: str
    gpus: int
    storage_gib: int
    notice_seconds: int | None
    labels: dict[str, str] = field(hash=False)
    taints: tuple[dict[str, str], ...] = field(default=(TAINT,), hash=False)

    @property
    def name(self) -> str:
        return self.pool.name


def of(target: Target) -> list[Nodes]:
    """Raises SpecdecError for a machine that the cloud does not have, or does not sell in that way."""
    for problem in agreement.machines(target):
        raise SpecdecError(problem.message, code=problem.code, file=problem.where, fix=problem.fix)
    return [_nodes(target, pool, target.variables["gpu_pools"][pool.name]) for pool in target.pools]


def _nodes(target: Target, pool: Pool, settings: dict[str, Any]) -> Nodes:
    machine = facts.machines()[target.cloud][pool.machine]
    operator = target.variables.get("gpu_stack") == "operator"
    return Nodes(
        pool=pool,
        accelerator=machine["accelerator"],
        gpus=machine["count"],
        storage_gib=_storage(machine, settings),
        notice_seconds=_notice(target.cloud, settings) if pool.provisioning == "spot" else None,
        labels=dict(settings.get("labels") or {}) | _labels(target.cloud, pool, machine, operator),
    )


def _storage(machine: dict[str, Any], settings: dict[str, Any]) -> int:
    if "localSSD" in machine:
        disks = settings.get("local_ssd_count")
        return int((machine["localSSD"]["count"] if disks is None else disks) * machine["localSSD"]["sizeGiB"])
    store = machine["instanceStore"]
    return int(store["count"] * store["sizeGB"] * 10**9 // 2**30)


def _notice(cloud: str, settings: dict[str, Any]) -> int:
    """GKE keeps the last 15 seconds for system pods; EC2 gives two minutes.

    sources: https://cloud.google.com/kubernetes-engine/docs/concepts/spot-vms,
    https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/spot-instance-termination-notices.html
    """
    return (settings.get("spot_shutdown_seconds") or 30) - 15 if cloud == "gke" else 120


def _labels(cloud: str, pool: Pool, machine: dict[str, Any], operator: bool) -> dict[str, str]:
    accelerator = machine["accelerator"]
    labels = {"vllm-speculative/accelerator": accelerator, "node.kubernetes.io/instance-type": pool.machine}
    if cloud == "gke":
        labels |= {
            "cloud.google.com/gke-accelerator": machine["acceleratorLabel"],
            "cloud.google.com/gke-accelerator-count": str(machine["count"]),
            "cloud.google.com/machine-family": pool.machine.split("-")[0],
        }
        labels |= {"gke-no-default-nvidia-gpu-device-plugin": "true"} if operator else {}
        labels |= {"cloud.google.com/gke-spot": "true"} if pool.provisioning == "spot" else {}
        labels |= {"cloud.google.com/gke-flex-start": "true"} if pool.provisioning in ("flex_start", "queued") else {}
    else:
        capacity = {"spot": "SPOT", "capacity_block": "CAPACITY_BLOCK"}.get(pool.provisioning, "ON_DEMAND")
        labels |= {
            "nvidia.com/gpu.product": facts.accelerators()[accelerator]["gpuProduct"],
            "k8s.amazonaws.com/accelerator": accelerator,
            "eks.amazonaws.com/capacityType": capacity,
        }
    return labels
