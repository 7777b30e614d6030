"""How an environment buys its GPUs, for a plan without a cloud: what of Terraform it leaves out is said."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from specdec import environments, facts

if TYPE_CHECKING:
    from specdec.deploy.cloud.target import Target
    from specdec.manifests import EngineWorkload
    from specdec.plan.wishes import Wishes

SKIPPED = "skipped"


def target_of(what: list[str]) -> Target | None:
    """The Terraform of the environment that a command was given, None for manifests or an environment without."""
    from specdec.deploy.cloud.target import Target

    if len(what) != 1 or what[0] not in environments.names():
        return None
    return Target.of(environments.load(what[0]))


def note(what: list[str]) -> str | None:
    """What a plan without credentials leaves out; None where an environment is not what is planned."""
    target = target_of(what)
    if target is None:
        return None
    states = f"{target.cloud} and platform"
    return (
        f"terraform: skipped, so what would change in the cloud is not known ({states}; "
        f"make cloud-plan ENV={target.env.name}, with credentials)"
    )


def disagreement(target: Target | None, engines: Sequence[EngineWorkload]) -> list[dict[str, str]]:
    """Why the pools of the variables cannot run the engines, as the plan's warnings have it; none where they can."""
    from specdec.errors import SpecdecError
    from specdec.infrastructure import pools
    from specdec.infrastructure.agreement import Ask, place

    if target is None:
        return []
    try:
        place([ask for ask in map(Ask.of, engines) if ask.gpus], pools.of(target), target.file.name)
    except SpecdecError as error:
        return [{"code": error.code, "message": f"{error} (fix: {error.fix})"}]
    return []


def wishes_for(wishes: Wishes, target: Target | None, accelerator: str) -> Wishes:
    """The wishes with machine, region and way to buy of the pool that has the GPU, where nothing else was asked for and
    prices.yaml knows what it costs."""
    from specdec.plan.cost import rows

    asked = any((wishes.cloud, wishes.machine, wishes.region, wishes.provisioning, wishes.dollars_per_hour))
    if target is None or asked:
        return wishes
    known = {(r["cloud"], r["machine"], r["region"], r["provisioning"]) for r in rows()}
    for pool in target.pools:
        row = (target.cloud, pool.machine, target.region, pool.provisioning)
        if facts.machines()[target.cloud].get(pool.machine, {}).get("accelerator") == accelerator and row in known:
            cloud, machine, region, provisioning = row
            return replace(wishes, cloud=cloud, machine=machine, region=region, provisioning=provisioning)
    return wishes
