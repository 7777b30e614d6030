"""Refusals of memory, accelerators, caches, names, the router and revisions."""

from __future__ import annotations

from typing import Any

from ..conftest import DRAFT, lookup, merged, pair
from .story import CPU, Story

TWO_GPU_NODE = {"type": "h100-80gb", "machineType": "a3-highgpu-2g"}
CLAIM = {"modelCache": {"type": "pvc"}}


def adapters(*modules: dict[str, str]) -> dict[str, Any]:
    return {"enabled": True, "modules": list(modules)}


BAD: dict[str, Story] = {
    "an adapter of the Hub without a revision": (
        lookup(lora=adapters({"servedName": "sql", "name": "org/sql"})),
        ("SD751", "lora.modules[0].revision", "org/sql has no revision"),
        lookup(lora=adapters({"servedName": "sql", "name": "org/sql", "revision": "c" * 40})),
    ),
    "two sizes of the KV cache": (
        lookup(engine={"kvCacheMemoryBytes": 1073741824, "gpuMemoryUtilization": 0.9}),
        ("SD351", "engine.gpuMemoryUtilization", "ignores the utilisation"),
        lookup(engine={"kvCacheMemoryBytes": 1073741824}),
    ),
    "a CPU engine that would take the node": (
        merged(CPU, {"engine": {"kvCacheMemoryBytes": None}}),
        ("SD352", "engine.kvCacheMemoryBytes", "whole node's memory"),
        CPU,
    ),
    "shared memory above the limit": (
        lookup(engine={"resources": {"limits": {"memory": "16Gi"}}}),
        ("SD353", "engine.resources.limits.memory", "/dev/shm alone may take 16384"),
        lookup(engine={"resources": {"limits": {"memory": "64Gi"}}}),
    ),
    "a CPU engine without room for weights": (
        merged(CPU, {"engine": {"resources": {"limits": {"memory": "2Gi"}}}}),
        ("SD354", "engine.resources.limits.memory", "nothing is left for the weights"),
        merged(CPU, {"engine": {"resources": {"limits": {"memory": "5Gi"}}}}),
    ),
    "an accelerator that does not exist": (
        lookup(accelerator={"type": "h100"}),
        ("SD452", "accelerator.type", 'no accelerator "h100"'),
        lookup(accelerator={"type": "h100-80gb"}),
    ),
    "an A10G on GKE": (
        lookup(cloud="gke", accelerator={"type": "a10g"}),
        ("SD453", "accelerator.type", "its 24 GB class is l4"),
        lookup(cloud="gke", accelerator={"type": "l4"}),
    ),
    "a machine type that does not exist": (
        lookup(cloud="gke", accelerator={"type": "l4", "machineType": "g2-standard-13"}),
        ("SD454", "accelerator.machineType", "g2-standard-13"),
        lookup(cloud="gke", accelerator={"type": "l4", "machineType": "g2-standard-12"}),
    ),
    "a machine type with another accelerator": (
        lookup(cloud="gke", accelerator={"type": "l4", "machineType": "a3-highgpu-8g"}),
        ("SD454", "accelerator.machineType", "has h100-80gb, not l4"),
        lookup(cloud="gke", accelerator={"type": "h100-80gb", "machineType": "a3-highgpu-8g"}),
    ),
    "an engine called router": (
        lookup(engines={"router": {}}),
        ("SD455", "engines.router", "taken"),
        lookup(engines={"chat": {}}),
    ),
    "an engine called like another's baseline": (
        lookup(engines={"a": {}, "a-baseline": {}}, baseline={"enabled": True}),
        ("SD455", "engines.a-baseline", "taken"),
        lookup(engines={"a": {}, "a-base": {}}, baseline={"enabled": True}),
    ),
    "more GPUs than the node has": (
        lookup(cloud="gke", engine={"tensorParallelSize": 4}, accelerator=TWO_GPU_NODE),
        ("SD456", "engine.tensorParallelSize", "a pod needs 4 GPUs"),
        lookup(cloud="gke", engine={"tensorParallelSize": 2}, accelerator=TWO_GPU_NODE),
    ),
    "a name that Kubernetes cannot extend": (
        lookup(engines={"x" * 45: {}}),
        ("SD457", f"engines.{'x' * 45}.engine", "52 are left"),
        lookup(engines={"x" * 40: {}}),
    ),
    "a model in a cache that starts empty": (
        lookup(engine={"model": {"name": "/models/target"}}),
        ("SD458", "engine.model.name", "starts empty"),
        lookup(engine={"model": {"name": "/models/target"}}, modelCache={"type": "hostPath"}),
    ),
    "offline with a cache that starts empty": (
        lookup(huggingFace={"offline": True}),
        ("SD458", "engine.model.name", "is nowhere"),
        lookup(huggingFace={"offline": True}, modelCache={"type": "hostPath"}),
    ),
    "GPUs written a second time": (
        lookup(engine={"resources": {"limits": {"nvidia.com/gpu": 2}}}),
        ("SD459", "engine.resources.limits", "nvidia.com/gpu follows from the parallel sizes"),
        lookup(engine={"tensorParallelSize": 2}),
    ),
    "one single-node claim for several pods": (
        lookup(engine={"replicas": 2, "workload": "Deployment"}, **CLAIM),
        ("SD460", "modelCache.pvc.accessMode", "cannot be shared"),
        lookup(engine={"replicas": 2, "workload": "StatefulSet"}, **CLAIM),
    ),
    "fetching into a claim that cannot be written": (
        lookup(modelCache={"type": "pvc", "pvc": {"accessMode": "ReadOnlyMany"}}),
        ("SD461", "modelCache.pvc.accessMode", "cannot be written"),
        lookup(modelCache={"type": "pvc", "pvc": {"accessMode": "ReadOnlyMany"}}, huggingFace={"offline": True}),
    ),
    "a router for an engine that is not there": (
        lookup(engines={"chat": {}}, router={"engines": ["caht"]}),
        ("SD551", "router.engines", 'no engine "caht"'),
        lookup(engines={"chat": {}}, router={"engines": ["chat"]}),
    ),
    "one router before two models": (
        lookup(engines={"a": {}, "b": {"engine": {"model": {"name": "/srv/b"}}}}),
        ("SD552", "router.engines", "serve different models"),
        lookup(engines={"a": {}, "b": {"engine": {"model": {"name": "/srv/b"}}}}, router={"engines": ["a"]}),
    ),
    "a model without a revision": (
        lookup(engine={"model": {"revision": ""}}),
        ("SD751", "engine.model.revision", "could change under a running release"),
        lookup(),
    ),
    "a draft without a revision": (
        pair(speculative={"model": {"revision": ""}}),
        ("SD751", "speculative.model.revision", DRAFT),
        pair(),
    ),
    "a branch as revision": (
        lookup(engine={"model": {"revision": "main"}}),
        ("SD752", "engine.model.revision", '"main" is a branch or tag'),
        lookup(engine={"model": {"revision": "main"}}, huggingFace={"allowMutableRevision": True}),
    ),
    "a token in the arguments": (
        lookup(engine={"extraArgs": ["--hf-token=hf_abc"]}),
        ("SD753", "engine.extraArgs[0]", "--hf-token puts a secret"),
        lookup(huggingFace={"tokenSecret": {"name": "hf-token"}}),
    ),
    "a token in clear text": (
        lookup(engine={"extraEnv": [{"name": "HF_TOKEN", "value": "hf_abc"}]}),
        ("SD753", "engine.extraEnv[0]", "clear text"),
        lookup(engine={"extraEnv": [{"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": {"name": "a", "key": "b"}}}]}),
    ),
    "a branch where only the commit tells the directory": (
        pair(engine={"version": "0.6.3", "model": {"revision": "main"}}, huggingFace={"allowMutableRevision": True}),
        ("SD754", "engine.model.revision", "directory of the snapshot"),
        pair(engine={"version": "0.6.3"}, huggingFace={"allowMutableRevision": True}),
    ),
}  # fmt: skip
