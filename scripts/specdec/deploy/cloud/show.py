"""Tables of an environment's infrastructure, for people."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.table import Table


def planned(result: dict[str, Any]) -> Table:
    """What a plan would do, what the guard says and what it costs."""
    from specdec.deploy.report import rows

    plan = result["plan"]
    pairs = [("plan", ", ".join(f"{count} to {what}" for what, count in plan.items()))]
    kinds = Counter(one["address"].split("[")[0] for one in result.get("resources", []) if one["action"] != "noop")
    pairs += [("", f"{count} × {address}") for address, count in kinds.items()]
    pairs += [
        (f"guard {one['severity']}", f"{one['code']} {one['resource']}: {one['message']}")
        for one in result.get("guard", [])
    ]
    if price := result.get("price"):
        unknown = f", without {', '.join(price['unknown'])}" if price["unknown"] else ""
        pairs.append(("an hour", f"${price['per_hour']:,.2f}, at most ${price['per_hour_at_most']:,.2f}{unknown}"))
    if platform := result.get("platform_plan"):
        pairs.append(("platform", ", ".join(f"{count} to {what}" for what, count in platform.items())))
    return rows(f"Planned {result['environment']}", pairs)


def infrastructure(found: dict[str, Any]) -> Table:
    """Stages, resources and price."""
    from specdec.deploy.report import rows

    pairs = [("cluster", f"{found['cluster']} in {found['region']} ({found['cloud']})")]
    for stage in found["stages"]:
        detail = " ".join(str(stage[key]) for key in ("at", "detail") if stage.get(key))
        pairs.append((stage["name"], f"{stage['state']} {detail}".strip()))
    if found["stopped_at"]:
        pairs.append(("stopped at", found["stopped_at"]))
    held = found["resources"]
    if held is None:
        pairs.append(("exists", f"not known: {found['resources_unknown']}"))
    else:
        pairs.append(("exists", f"{sum(held.values())} resources"))
        pairs += [("", f"{count} × {kind}") for kind, count in held.items()]
    pairs.append(("an hour", found["price_text"]))
    return rows("Infrastructure", pairs)
