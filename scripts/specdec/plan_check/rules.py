"""The guard's rules. Errors stop a pipeline; warnings are for the reviewer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from specdec.plan_check.plan import Change, Plan, first
from specdec.rules.model import Finding

NAMES = {
    "SD801": "gpu-pool-destroyed",
    "SD802": "gpu-driver-drift",
    "SD803": "gpu-taint-drift",
    "SD804": "deletion-protection-off",
    "SD805": "public-endpoint",
    "SD806": "state-without-encryption",
    "SD807": "state-without-lock",
    "SD808": "cluster-destroyed",
}

CLUSTERS = ("google_container_cluster", "aws_eks_cluster")
EVERYWHERE = {"0.0.0.0/0", "::/0"}


def check(plan: Plan, *, allow_gpu_pool_replacement: bool = False, allow: Iterable[str] = ()) -> list[Finding]:
    """What the plan would do, errors first. A code in `allow` and an allowed replacement are warnings."""
    allowed = set(allow)
    if allow_gpu_pool_replacement or plan.variables.get("allow_gpu_pool_replacement") is True:
        # Replaced on purpose, a pool's driver and taint may change too.
        allowed |= {"SD801", "SD802", "SD803"}
    findings: list[Finding] = []
    for change in plan.changes:
        found = [*_gpu_pool(plan, change), *_cluster(plan, change)]
        # What is so already is for the reviewer; what the plan makes so stops it.
        findings += map(_as_warning, found) if change.actions == ("no-op",) else found
    for change in plan.drift:
        if change.is_gpu_pool:
            findings += [
                *_driver(plan, change, "changed outside Terraform"),
                *_taints(plan, change, "changed outside Terraform"),
            ]
    findings += _state(plan)
    findings = [_as_warning(finding) if finding.code in allowed else finding for finding in findings]
    return sorted(
        dict.fromkeys(findings), key=lambda finding: (finding.severity != "error", finding.code, finding.resource)
    )


def _as_warning(finding: Finding) -> Finding:
    return Finding(**{**finding.as_dict(), "severity": "warning"})


def _finding(
    plan: Plan, code: str, resource: str, path: str, message: str, fix: str, severity: str = "error"
) -> Finding:
    return Finding(code, severity, plan.file, 1, resource, path, message, fix)


def _gpu_pool(plan: Plan, change: Change) -> Iterator[Finding]:
    if not change.is_gpu_pool:
        return
    if change.deletes:
        because = f" because {', '.join(change.replaced_for)} changes" if change.replaced_for else ""
        yield _finding(
            plan,
            "SD801",
            change.address,
            change.replaced_for[0] if change.replaced_for else "",
            f"the plan {'replaces' if change.replaces else 'destroys'} a GPU pool{because}; its engines stop, "
            "and the GPUs may go to somebody else",
            "undo what causes it; on purpose: set allow_gpu_pool_replacement = true and apply that alone first",
        )
    if change.before and change.after:
        yield from _driver(plan, change, "changes")
        yield from _taints(plan, change, "change")
    if change.type == "google_container_node_pool" and change.before and change.after:
        before, after = change.before.get("deletion_policy"), change.after.get("deletion_policy")
        if before == "PREVENT" and after != "PREVENT" and not plan.variables.get("allow_gpu_pool_replacement"):
            yield _finding(
                plan,
                "SD804",
                change.address,
                "deletion_policy",
                "the plan takes the protection off a GPU pool",
                "keep deletion_protection = true, or set allow_gpu_pool_replacement for the one change that needs it",
            )


def _driver_of(state: dict[str, Any]) -> str | None:
    gpu = first(first(state.get("node_config")).get("guest_accelerator"))
    version = first(gpu.get("gpu_driver_installation_config")).get("gpu_driver_version")
    return str(version) if version else None


def _driver(plan: Plan, change: Change, how: str) -> Iterator[Finding]:
    before, after = _driver_of(change.before), _driver_of(change.after)
    if change.type == "google_container_node_pool" and before != after:
        yield _finding(
            plan,
            "SD802",
            change.address,
            "node_config.guest_accelerator.gpu_driver_installation_config.gpu_driver_version",
            f"the GPU driver {how} from {before or 'unset'} to {after or 'unset'}",
            f"write gpu_driver_version = {(before or after)!r} into the pool: GKE fills in what is left out",
        )


def _taints_of(change: Change, state: dict[str, Any]) -> set[tuple[str, str, str]]:
    taints = first(state.get("node_config")).get("taint") if change.type.startswith("google") else state.get("taint")
    return {(str(t.get("key")), str(t.get("value")), str(t.get("effect"))) for t in taints or () if isinstance(t, dict)}


def _taints(plan: Plan, change: Change, how: str) -> Iterator[Finding]:
    before, after = _taints_of(change, change.before), _taints_of(change, change.after)
    if before != after:

        def words(taints: set[tuple[str, str, str]]) -> str:
            return ", ".join(sorted(f"{key}={value}:{effect}" for key, value, effect in taints)) or "none"

        yield _finding(
            plan,
            "SD803",
            change.address,
            "node_config.taint" if change.type.startswith("google") else "taint",
            f"the taints of a GPU pool {how}: {words(before - after)} becomes {words(after - before)}",
            "declare nvidia.com/gpu=present:NO_SCHEDULE on every GPU pool, as GKE itself would add it",
        )


def _cluster(plan: Plan, change: Change) -> Iterator[Finding]:
    if change.type not in CLUSTERS:
        return
    if change.deletes:
        because = f" because {', '.join(change.replaced_for)} changes" if change.replaced_for else ""
        yield _finding(
            plan,
            "SD808",
            change.address,
            change.replaced_for[0] if change.replaced_for else "",
            f"the plan {'replaces' if change.replaces else 'destroys'} the cluster{because}, with everything in it",
            "undo what causes it; on purpose: --allow SD808",
        )
    if not change.after:
        return
    if change.type == "google_container_cluster" and change.after.get("deletion_protection") is False:
        yield _finding(
            plan,
            "SD804",
            change.address,
            "deletion_protection",
            "the cluster is not protected from deletion",
            "deletion_protection = true; to delete a cluster, switch it off in a change of its own with --allow SD804",
        )
    yield from _endpoint(plan, change)


def _endpoint(plan: Plan, change: Change) -> Iterator[Finding]:
    if change.type == "google_container_cluster":
        path = "private_cluster_config.enable_private_endpoint"
        public = first(change.after.get("private_cluster_config")).get("enable_private_endpoint") is not True
        networks = first(change.after.get("master_authorized_networks_config"))
        ranges = {block.get("cidr_block") for block in networks.get("cidr_blocks") or ()}
        # Without the block at all, every address may knock.
        everyone = not change.after.get("master_authorized_networks_config") or bool(ranges & EVERYWHERE)
    else:
        path = "vpc_config.endpoint_public_access"
        network = first(change.after.get("vpc_config"))
        # AWS makes it public unless told otherwise, and for everybody.
        public = network.get("endpoint_public_access") is not False
        ranges = set(network.get("public_access_cidrs") or ())
        everyone = not ranges or bool(ranges & EVERYWHERE)
    if public:
        whom = "the whole internet" if everyone else ", ".join(sorted(map(str, ranges)))
        yield _finding(
            plan,
            "SD805",
            change.address,
            path,
            f"the control plane has a public address for {whom}",
            "public_endpoint = false; on GKE the DNS endpoint lets pipelines in by IAM",
            "error" if everyone else "warning",
        )


def _state(plan: Plan) -> Iterator[Finding]:
    backend = plan.backend
    if backend is None:
        return
    kind = str(backend["type"])
    if kind == "local":
        yield _finding(
            plan,
            "SD806",
            "terraform",
            "backend",
            "the state is a file on this machine: nobody encrypts it and nobody else sees it",
            "terraform init -backend-config=environments/ENV/backend.*.hcl",
        )
    if kind == "s3":
        if backend.get("encrypt") is not True:
            yield _finding(
                plan,
                "SD806",
                "terraform",
                "backend.encrypt",
                "the state in S3 is not encrypted by Terraform's request",
                "encrypt = true in the backend's configuration",
            )
        if not backend.get("use_lockfile") and not backend.get("dynamodb_table"):
            yield _finding(
                plan,
                "SD807",
                "terraform",
                "backend.use_lockfile",
                "two people can apply at once: the state in S3 is not locked",
                "use_lockfile = true in the backend's configuration",
            )
