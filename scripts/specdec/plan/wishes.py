"""What a plan is for: the load, acceptance, the machine, the price."""

from __future__ import annotations

from dataclasses import dataclass, field

from specdec.plan.acceptance import Acceptance
from specdec.plan.enginelog import CacheLog
from specdec.plan.speed import Load


@dataclass(frozen=True)
class Wishes:
    """What the plan is for.

    acceptance   measured, or None for an assumption by method and task
    concurrency  requests at once on one engine that K is chosen for
    sale         dollars that a million output tokens are sold for
    engine_logs  what logs of this engine's start say about its KV cache
    times        measured (requests at once, K, ms a token): those without speculation set the time scale
    """

    load: Load = field(default_factory=Load)
    task: str = "chat"
    acceptance: Acceptance | None = None
    concurrency: int = 50
    prefix_hits: float = 0.0
    cloud: str | None = None
    machine: str | None = None
    region: str | None = None
    provisioning: str | None = None
    dollars_per_hour: float | None = None
    sale: float | None = None
    times: tuple[tuple[int, int, float], ...] = ()
    engine_logs: tuple[CacheLog, ...] = ()
