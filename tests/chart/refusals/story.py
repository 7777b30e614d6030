"""What a story of a refusal holds."""

from __future__ import annotations

from typing import Any

# (bad values, (code, path, a part of the message), nearest good values)
Story = tuple[dict[str, Any], tuple[str, str, str], dict[str, Any]]

# An engine on CPUs, which says its cache's size and its memory.
CPU: dict[str, Any] = {
    "accelerator": {"type": "cpu"},
    "engine": {
        "model": {"name": "/srv/target", "revision": ""},
        "kvCacheMemoryBytes": 1073741824,
        "resources": {"requests": {"memory": "4Gi"}},
    },
    "sharedMemory": {"size": "1Gi"},
}
