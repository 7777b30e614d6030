"""Refusals of LoRA adapters."""

from __future__ import annotations

from typing import Any

from ..conftest import lookup
from .story import Story


def adapters(*modules: dict[str, str]) -> dict[str, Any]:
    return {"enabled": True, "modules": list(modules)}


BAD: dict[str, Story] = {
    "LoRA adapters on an engine that cannot speculate with them": (
        lookup(engine={"version": "0.10.2"}, lora={"enabled": True}),
        ("SD163", "lora.enabled", "vLLM 0.10.2 does not speculate with LoRA"),
        lookup(engine={"version": "0.11.1"}, lora={"enabled": True}),
    ),
    "LoRA adapters with adaptive verification": (
        lookup(lora={"enabled": True}, speculative={"method": "dspark", "dspark": {"adaptiveVerification": True}}),
        ("SD163", "lora.enabled", "which adapter a trimmed batch belongs to"),
        lookup(speculative={"method": "dspark", "dspark": {"adaptiveVerification": True}}),
    ),
    "adapters while LoRA is off": (
        lookup(lora={"maxLoras": 4}),
        ("SD166", "lora.maxLoras", "LoRA is off"),
        lookup(lora={"enabled": True, "maxLoras": 4}),
    ),
    "a rank that no kernel has": (
        lookup(lora={"enabled": True, "maxRank": 24}),
        ("SD167", "lora.maxRank", "takes no rank of 24"),
        lookup(lora={"enabled": True, "maxRank": 32}),
    ),
    "a rank of a later engine": (
        lookup(engine={"version": "0.7.3"}, speculative={"enabled": False}, lora={"enabled": True, "maxRank": 320}),
        ("SD167", "lora.maxRank", "vLLM 0.7.3 takes no rank of 320"),
        lookup(engine={"version": "0.8.0"}, speculative={"enabled": False}, lora={"enabled": True, "maxRank": 320}),
    ),
    "fewer adapters in memory than in a batch": (
        lookup(lora={"enabled": True, "maxLoras": 8, "maxCpuLoras": 4}),
        ("SD169", "lora.maxCpuLoras", "4 is below maxLoras, which is 8"),
        lookup(lora={"enabled": True, "maxLoras": 4, "maxCpuLoras": 4}),
    ),
    "an adapter called like the model": (
        lookup(engine={"model": {"servedName": "chat"}}, lora=adapters({"servedName": "chat", "name": "/srv/a"})),
        ("SD170", "lora.modules[0].servedName", '"chat" is the name of another model'),
        lookup(engine={"model": {"servedName": "chat"}}, lora=adapters({"servedName": "sql", "name": "/srv/a"})),
    ),
    "an adapter that the engine would fetch itself": (
        lookup(
            lora=adapters({"servedName": "sql", "name": "org/sql", "revision": "c" * 40}),
            modelCache={"prefetch": {"enabled": False}},
        ),
        ("SD171", "lora.modules[0].name", "cannot be told its revision"),
        lookup(lora=adapters({"servedName": "sql", "name": "org/sql", "revision": "c" * 40})),
    ),
    "two adapters with one name": (
        lookup(lora=adapters({"servedName": "a", "name": "/srv/a"}, {"servedName": "a", "name": "/srv/b"})),
        ("SD170", "lora.modules[1].servedName", '"a" is the name of another model'),
        lookup(lora=adapters({"servedName": "a", "name": "/srv/a"}, {"servedName": "b", "name": "/srv/b"})),
    ),
}  # fmt: skip
