"""A Helm release that a killed deploy left pending is brought back to where the next deploy can go on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypedDict

from specdec.environments import Environment


class Where(TypedDict):
    """Helm's cluster, as keyword arguments of `specdec.helm`."""

    kubecontext: str | None
    kubeconfig: Path | None


ONCE_DEPLOYED = ("deployed", "superseded")


def status_of(release: dict[str, Any] | None) -> str | None:
    """Helm's word for its state: deployed, failed, pending-upgrade, uninstalling..."""
    return str(((release or {}).get("info") or {}).get("status") or "") or None


def recover(
    env: Environment, kubeconfig: Path | None = None, report: Callable[[str], None] = lambda _: None
) -> str | None:
    """Roll a pending upgrade back; remove a release that never came to be deployed. Says what it did, or None.

    Only for the holder of the deploy lock: to anyone else, pending may mean that a deploy is running.
    """
    from specdec import helm

    at: Where = {"kubecontext": env.kubecontext, "kubeconfig": kubeconfig}
    status = status_of(helm.release_status(env.release, env.namespace, **at))
    if status is None or not (status.startswith("pending-") or status == "uninstalling"):
        return None
    revisions = helm.history(env.release, env.namespace, **at)
    good = [int(entry["revision"]) for entry in revisions if entry.get("status") in ONCE_DEPLOYED]
    if status == "uninstalling" or not good:
        report(f"the release is {status}: a deploy was killed there; removing it")
        helm.uninstall(env.release, env.namespace, wait=True, **at)
        return f"removed a release that was left {status}"
    report(f"the release is {status}: a deploy was killed there; rolling back to revision {good[-1]}")
    helm.rollback(env.release, env.namespace, good[-1], **at)
    return f"rolled back to revision {good[-1]} from {status}"
