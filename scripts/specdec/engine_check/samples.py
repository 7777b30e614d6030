"""A value to try for every typed value of the chart, taken from its schema where no better one is known."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from specdec import facts

# What the schema cannot tell: values that the engine knows, for models as small as those that it is asked about.
KNOWN: dict[str, Any] = {
    "engine.dtype": "float32",
    "engine.quantization": "fp8",
    "engine.kvCacheDtype": "fp8",
    "engine.maxModelLen": 512,
    "engine.maxNumSeqs": 64,
    "engine.maxNumBatchedTokens": 4096,
    "engine.gpuMemoryUtilization": 0.85,
    "engine.kvCacheMemoryBytes": 2**30,
    "engine.attentionBackend": "FLASH_ATTN",
    "engine.toolCalling.parser": "hermes",
    "shutdown.timeoutSeconds": 60,
    "speculative.model.revision": "b" * 40,
    "engine.model.revision": "a" * 40,
    "engine.model.servedName": "chat",
    "speculative.quantization": "fp8",
    "speculative.maxModelLen": 256,
    "speculative.promptLookup.min": 2,
    "speculative.promptLookup.max": 4,
    "speculative.suffix.maxTreeDepth": 16,
    "speculative.suffix.maxCachedRequests": 1000,
    "speculative.suffix.maxSpecFactor": 1.5,
    "speculative.suffix.minTokenProb": 0.1,
    "speculative.model.codeRevision": "c" * 40,
    "speculative.attentionBackend": "FLASH_ATTN",
    "speculative.moeBackend": "triton",
    "speculative.kvCacheDtype": "fp8",
    "speculative.headQuantization": "fp8",
    "speculative.load.format": "safetensors",
    "speculative.load.strategy": "lazy",
    "speculative.load.extraConfig": {"enable_multithread_load": True},
    "speculative.typical.posteriorThreshold": 0.1,
    "speculative.typical.posteriorAlpha": 0.3,
    "speculative.synthetic.acceptanceRates": [0.8, 0.6, 0.4, 0.2],
    "speculative.synthetic.acceptanceLength": 2.5,
    "speculative.fly.windowSize": 2,
    "speculative.fly.entropyThreshold": 1.0,
    "speculative.fly.entropyTopK": 8,
    "speculative.tokenTree": "[(0,), (0, 0), (0, 0, 0), (0, 0, 0, 0)]",
    "speculative.disableByBatchSize": 16,
    "lora.modules": [{"servedName": "adapter", "name": "/adapters/one"}],
    "lora.maxLoras": 2,
    "lora.maxRank": 16,
    "lora.maxCpuLoras": 4,
    "lora.dtype": "bfloat16",
    "lora.targetModules": ["q_proj", "v_proj"],
}
# Values without which another says nothing.
COMPANIONS: dict[str, dict[str, Any]] = {
    "engine.toolCalling.enabled": {"engine.toolCalling.parser": "hermes"},
    "speculative.typical": {"speculative.rejectionSampling": "typical"},
    "speculative.synthetic": {"speculative.rejectionSampling": "synthetic"},
    "speculative.rejectionSampling=synthetic": {"speculative.synthetic.acceptanceLength": 2.5},
    "speculative.fly": {"speculative.rejectionSampling": "fly"},
    "speculative.load.strategy": {"speculative.load.format": "safetensors"},
    "lora": {"lora.enabled": True},
}


def companions(path: str, value: Any) -> dict[str, Any]:
    """What has to be set beside a value, by path."""
    found: dict[str, Any] = {}
    for key, values in COMPANIONS.items():
        if key in (path, f"{path}={value}") or path.startswith(f"{key}."):
            found |= values
    return {other: given for other, given in found.items() if other != path}


def value_for(path: str) -> Any:
    """A good value for that path; None where the schema does not tell of one."""
    return KNOWN.get(path, _of_schema(path))


@cache
def _schema() -> dict[str, Any]:
    document: dict[str, Any] = json.loads((facts.chart_dir() / "values.schema.json").read_text(encoding="utf-8"))
    return document


def _of_schema(path: str) -> Any:
    place: dict[str, Any] = _schema()
    for key in path.split("."):
        place = _followed(place).get("properties", {}).get(key, {})
    place = _followed(place)
    choices = [choice for choice in place.get("enum", []) if choice not in ("", None)]
    if choices:
        return choices[0]
    kinds = place.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if "boolean" in kinds:
        return True
    if "integer" in kinds:
        return max(2, place.get("minimum", 0), place.get("exclusiveMinimum", -1) + 1)
    if "number" in kinds:
        high = place.get("maximum", place.get("exclusiveMaximum", 1))
        return (place.get("minimum", place.get("exclusiveMinimum", 0)) + high) / 2
    return None


def _followed(place: dict[str, Any]) -> dict[str, Any]:
    """The schema with its reference and its alternatives laid into it."""
    seen = dict(place)
    reference = place.get("$ref", "")
    if reference.startswith("#/"):
        target: Any = _schema()
        for key in reference[2:].split("/"):
            target = target[key]
        seen = {**_followed(target), **{key: value for key, value in place.items() if key != "$ref"}}
    for part in [*place.get("allOf", []), *place.get("anyOf", []), *place.get("oneOf", [])]:
        for key, value in _followed(part).items():
            seen.setdefault(key, value)
    return seen
