"""Why a cluster autoscaler adds no node for a pod: no machine left, no quota left, or a pool at its largest.

The words are the autoscaler's own: https://github.com/kubernetes/autoscaler/tree/master/cluster-autoscaler/processors/status
"""

from __future__ import annotations

from collections.abc import Sequence

from specdec.deploy.cluster import Object

ADDING = ("TriggeredScaleUp", "Nominated")
# Another zone may follow the one that failed, and a group that failed is left alone for five minutes.
PATIENCE = 600.0
FIXES = {
    "StockOut": "more zones for the pool, or another way to buy; the pods go on waiting, and the autoscaler on trying",
    "Quota": "ask for more quota of these machines (days), or use others",
    "PoolFull": "more max_nodes for the pool, or fewer replicas",
    "NoScaleUp": "the autoscaler tries again by itself; its log says what failed",
}


def refused(events: Sequence[Object]) -> tuple[str, str] | None:
    """(reason, message) where the autoscaler's last word on the pod is that it cannot help; events oldest first."""
    for event in reversed(events):
        reason, message = str(event.get("reason")), str(event.get("message", ""))
        if reason in ADDING:
            return None
        if reason == "FailedScaleUp":
            return kind(message), message
        if reason == "NotTriggerScaleUp":
            if "in backoff after failed scale-up" in message:
                return _before(events) or ("NoScaleUp", message)
            if "max node group size reached" in message or "max cluster" in message.lower():
                return "PoolFull", message
    return None


def _before(events: Sequence[Object]) -> tuple[str, str] | None:
    """A group is left alone because it failed: how, an earlier event says."""
    failed = next((event for event in reversed(events) if event.get("reason") == "FailedScaleUp"), None)
    return (kind(str(failed.get("message", ""))), str(failed.get("message", ""))) if failed else None


def kind(message: str) -> str:
    """The reason, in the language that errors of Terraform and the clouds are told in too."""
    from specdec.deploy.cloud import kinds

    return {"stock_out": "StockOut", "quota": "Quota"}.get(kinds.classify(message).name, "NoScaleUp")
