"""Kubernetes quantities and the engine's loading time, in bytes and seconds."""

from __future__ import annotations

import re
from typing import Any

_SUFFIX = {
    "": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15, "E": 10**18,
    "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50, "Ei": 2**60, "m": 0.001,
}  # fmt: skip


def to_bytes(quantity: Any) -> int | None:
    """Bytes of "180Gi", "1.5G", 1048576; None for what is no quantity.

    Source: https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/
    """
    if isinstance(quantity, bool) or not isinstance(quantity, (int, float, str)):
        return None
    match = re.fullmatch(r"(\d+(?:\.\d*)?(?:[eE][+-]?\d{1,2})?)([kKMGTPEm]?i?)", str(quantity).strip(), re.ASCII)
    if not match or match.group(2) not in _SUFFIX:
        return None
    return int(float(match.group(1)) * _SUFFIX[match.group(2)])


def gib(size: float) -> str:
    return f"{size / 2**30:.1f} GiB"
