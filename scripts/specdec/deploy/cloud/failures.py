"""What Terraform's errors mean for whoever deploys: one kind, its place, and what would help here."""

from __future__ import annotations

from collections.abc import Callable

from specdec import facts
from specdec.deploy import lock as locks
from specdec.deploy.cloud import kinds
from specdec.deploy.cloud.events import Diagnostic
from specdec.deploy.cloud.target import Pool, Target
from specdec.deploy.cloud.terraform import Failed
from specdec.errors import FoundWrong, SpecdecError

# Zones of the region that sell a machine type; None where the cloud could not be asked.
Offers = Callable[[str], list[str] | None]


def explain(
    failed: Failed, target: Target, root: str, *, offers: Offers = lambda _: None, changed: bool = False
) -> SpecdecError:
    """The error that the user sees. `changed`: resources may exist already; then it is FoundWrong, else bad input."""
    found = failed.reader.errors() or [Diagnostic("error", f"{failed.command} failed and said nothing", "")]
    by_kind = [(kinds.classify(one.text), one) for one in found]
    order = [kind.name for kind in (*kinds.KINDS, kinds.UNKNOWN)]
    kind = min((kind for kind, _ in by_kind), key=lambda kind: order.index(kind.name))
    lines = [_line(one) for _, one in by_kind]
    fix = kind.fix
    text = "\n".join(f"{one.address}\n{one.text}" for its, one in by_kind if its is kind)
    if kind.name == "locked":
        lines, fix = _locked(target, text)
    elif kind.name in ("stock_out", "quota"):
        fix = "; ".join([*_elsewhere(target, text, kind.name, offers), kind.fix])
    elif kind.name == "credentials":
        fix = login(target.cloud)
    elif kind.name == "bucket":
        fix = bucket_fix(target, root)
    elif kind is kinds.UNKNOWN:
        fix = "correct what it names, then deploy again: what is there already is not made twice"
    message = f"{failed.command}: {kind.title}\n" + "\n".join(f"  - {line}" for line in dict.fromkeys(lines))
    error = FoundWrong if changed else SpecdecError
    file = str(target.backend_file(root)) if kind.name in ("bucket", "locked") else None
    return error(message, code=kind.code, file=file, fix=fix)


def without_nodes(error: FoundWrong, target: Target, offers: Offers) -> FoundWrong:
    """The error of a rollout that got no machines, with the zones that remain; any other as it is."""
    kind = kinds.classify(error.message) if error.code in ("pod-failed", "not-ready") else kinds.UNKNOWN
    if kind.name not in ("stock_out", "quota"):
        return error
    fix = "; ".join([*_elsewhere(target, error.message, kind.name, offers), kind.fix])
    return FoundWrong(error.message, code=kind.code, fix=fix)


def _line(one: Diagnostic) -> str:
    where = f"{one.address}: " if one.address else ""
    detail = " ".join(one.detail.split())
    text = one.summary if one.summary and detail in one.summary else f"{one.summary}: {detail}".strip(": ")
    return f"{where}{text[:600]}" + (f" ({one.place})" if one.place and not one.address else "")


def _locked(target: Target, text: str) -> tuple[list[str], str]:
    """Who, since when, and how to unlock; whether it can only be a run of ours that was killed."""
    held = kinds.lock_in(text)
    again = f"specdec deploy {target.env.name}"
    if held is None:
        return ["somebody holds it; Terraform does not say who"], f"wait, then `{again}`"
    mine = locks.identity().split(" (")[0]
    unlock = f"{again} --unlock {held.id}"
    lines = [f"{held} (lock {held.id}" + (f", {held.path})" if held.path else ")")]
    if held.who == mine:
        lines.append(
            "that is you, on this machine, and no deploy runs here now: it was killed, or a terraform of your own runs"
        )
        return lines, f"where nothing runs any more: `{unlock}`"
    return lines, f"ask {held.who or 'them'}; wait, then `{again}`. Only where that run is dead: `{unlock}`"


def pools_hit(target: Target, text: str) -> list[Pool]:
    """The pools that an error names, by address or machine type; all where it names none."""
    hit = [pool for pool in target.pools if f'gpu_pool["{pool.name}"]' in text or pool.machine in text]
    return hit or target.pools


def _elsewhere(target: Target, text: str, kind: str, offers: Offers) -> list[str]:
    """The zones that remain, for each pool that was hit."""
    full = set(kinds.zones_in(text))
    advice = []
    for pool in pools_hit(target, text):
        named = pool.zones or ()
        if kind == "quota":
            shape = facts.machines().get(target.cloud, {}).get(pool.machine, {})
            gpus = pool.max_nodes * int(shape.get("count", 0))
            advice.append(
                f"pool {pool.name} may take {gpus} GPUs ({pool.max_nodes} × {pool.machine}) in {target.region}"
            )
            continue
        left = [zone for zone in named if zone not in full] if full else []
        sold = offers(pool.machine)
        others = [zone for zone in sold or [] if zone not in full and zone not in named]
        if left:
            advice.append(f"pool {pool.name}: {', '.join(left)} of its zones remain")
        if others:
            advice.append(f"{', '.join(others)} sell {pool.machine} too: add them to gpu_pools.{pool.name}.zones")
        if not left and not others:
            known = "no other zone of" if sold is not None else "perhaps other zones of"
            has = "sells" if sold is not None else "sell"
            advice.append(f"{known} {target.region} {has} {pool.machine}")
    return advice


def login(cloud: str) -> str:
    """How to log in."""
    if cloud == "gke":
        return "gcloud auth application-default login (in CI: Workload Identity Federation)"
    return "aws sso login, or new keys (in CI: OIDC and a role); aws sts get-caller-identity shows who asks"


def bucket_fix(target: Target, root: str) -> str:
    """The commands that make the state's bucket."""
    bucket = target.backend(root).get("bucket", "BUCKET")
    if target.cloud == "gke":
        project, region = target.variables.get("project_id", "PROJECT"), target.variables.get("region", "REGION")
        return (
            f"gcloud storage buckets create gs://{bucket} --project {project} --location {region} "
            f"--uniform-bucket-level-access --public-access-prevention && "
            f"gcloud storage buckets update gs://{bucket} --versioning"
        )
    region = target.backend(root).get("region", target.variables.get("region", "REGION"))
    place = "" if region == "us-east-1" else f" --create-bucket-configuration LocationConstraint={region}"
    return (
        f"aws s3api create-bucket --bucket {bucket} --region {region}{place} && "
        f"aws s3api put-bucket-versioning --bucket {bucket} --versioning-configuration Status=Enabled"
    )
