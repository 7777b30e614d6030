"""What an environment with Terraform is like now: how far its deploy came, what exists, what it costs an hour."""

from __future__ import annotations

from collections import Counter
from typing import Any

from specdec.deploy.cloud import price
from specdec.deploy.cloud.pipeline import STAGES
from specdec.deploy.cloud.record import Record
from specdec.deploy.cloud.target import Target
from specdec.deploy.cloud.terraform import Failed, Terraform
from specdec.errors import SpecdecError


def of(target: Target) -> dict[str, Any]:
    """In its JSON form. "resources" is None where this machine has not looked at the state yet."""
    from specdec import helm
    from specdec.manifests import engines, parse

    env, record = target.env, Record(target.folder)
    text = helm.render(env.values, [], env.release, env.namespace)
    bill = price.bill(target, engines(parse(text, env.name)))
    resources, why = held(target)
    return {
        "cloud": target.cloud,
        "cluster": target.name,
        "region": target.region,
        "stages": [{"name": name, **record.stages.get(name, {"state": "not run"})} for name in STAGES],
        "stopped_at": record.unfinished,
        "resources": resources,
        "resources_unknown": why,
        "price": bill.as_dict(),
        "price_text": str(bill),
    }


def held(target: Target) -> tuple[dict[str, int] | None, str | None]:
    """How many resources of each type the states hold, or why that is not known here."""
    counts: Counter[str] = Counter()
    looked = False
    for root in (target.cloud, "platform"):
        where = target.folder / "work" / "terraform" / root
        if not (where / ".terraform" / "terraform.tfstate").is_file():
            continue
        try:
            counts.update(str(one["type"]) for one in Terraform(where, target.folder / "logs").resources())
        except Failed as failed:
            found = failed.reader.errors()
            return None, found[0].summary if found else "terraform show failed"
        except SpecdecError as error:
            return None, error.message
        looked = True
    if not looked:
        return None, f"this machine never asked: specdec deploy {target.env.name} --plan-only"
    return dict(sorted(counts.items())), None
