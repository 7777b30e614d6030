"""Refusals of a version that has not what is asked for, and of values that are written twice."""

from __future__ import annotations

from ..conftest import lookup, merged, pair
from .story import CPU, Story

ARCTIC = {"hasArcticInference": True}

BAD: dict[str, Story] = {
    "a tag that tells no version": (
        lookup(engine={"image": {"tag": "latest"}}),
        ("SD151", "engine.version", 'tag "latest"'),
        lookup(engine={"image": {"tag": "latest"}, "version": "0.32.0"}),
    ),
    "a digest that tells no version": (
        lookup(engine={"image": {"digest": "sha256:" + "0" * 64}}),
        ("SD151", "engine.version", "digest"),
        lookup(engine={"image": {"digest": "sha256:" + "0" * 64}, "version": "0.32.0"}),
    ),
    "a version that the table does not know": (
        lookup(engine={"version": "0.99.0"}),
        ("SD152", "engine.version", "vLLM 0.99.0"),
        lookup(engine={"version": "0.32.0"}),
    ),
    "a version beside another tag": (
        lookup(engine={"version": "0.32.0", "image": {"tag": "v0.6.3"}}),
        ("SD153", "engine.version", "says 0.6.3"),
        lookup(engine={"version": "0.32.0", "image": {"tag": "v0.32.0"}}),
    ),
    "data parallelism on an engine that has none": (
        pair(engine={"version": "0.6.3", "dataParallelSize": 2}),
        ("SD154", "engine.dataParallelSize", "vLLM 0.6.3 has no argument"),
        pair(engine={"version": "0.32.0", "dataParallelSize": 2}),
    ),
    "a schedule on an engine that has none": (
        pair(engine={"version": "0.6.3"}, speculative={"schedule": [{"from": 1, "to": 8, "tokens": 2}]}),
        ("SD154", "speculative.schedule", "num_speculative_tokens_per_batch_size"),
        pair(engine={"version": "0.32.0"}, speculative={"schedule": [{"from": 1, "to": 8, "tokens": 2}]}),
    ),
    "cache bytes on an engine that has none": (
        pair(engine={"version": "0.6.3", "kvCacheMemoryBytes": 1073741824}),
        ("SD154", "engine.kvCacheMemoryBytes", "0.10.2 and later"),
        pair(engine={"version": "0.6.3", "gpuMemoryUtilization": 0.9}),
    ),
    "eagle3 before it existed": (
        pair(engine={"version": "0.6.3"}, speculative={"method": "eagle3"}),
        ("SD155", "speculative.method", "vLLM 0.6.3 cannot run eagle3"),
        pair(engine={"version": "0.6.3"}, speculative={"method": "eagle"}),
    ),
    "a CPU engine before there was one": (
        merged(CPU, {"engine": {"version": "0.6.3"}, "speculative": {"enabled": False}}),
        ("SD155", "accelerator.type", "no build for CPUs"),
        merged(CPU, {"engine": {"version": "0.32.0"}, "speculative": {"enabled": False}}),
    ),
    "a free argument that a typed value covers": (
        lookup(engine={"extraArgs": ["--max-model-len=4096"]}),
        ("SD156", "engine.extraArgs[0]", "set by engine.maxModelLen"),
        lookup(engine={"maxModelLen": 4096}),
    ),
    "speculation as a free argument": (
        lookup(engine={"extraArgs": ["--seed", "--spec-tokens", "3"]}),
        ("SD156", "engine.extraArgs[1]", "speculative.numTokens"),
        lookup(engine={"extraArgs": ["--seed", "3"]}),
    ),
    "a typed flag with underscores": (
        lookup(engine={"extraArgs": ["--tensor_parallel_size=2"]}),
        ("SD156", "engine.extraArgs[0]", "engine.tensorParallelSize"),
        lookup(engine={"tensorParallelSize": 2}),
    ),
    "a runner that the version has not": (
        pair(engine={"version": "0.6.3", "runner": "v2"}),
        ("SD157", "engine.runner", "no choice of runner"),
        pair(engine={"version": "0.6.3"}),
    ),
    "suffix on the v2 runner": (
        lookup(engine={"runner": "v2", "image": ARCTIC}, speculative={"method": "suffix"}),
        ("SD157", "engine.runner", "has no suffix"),
        lookup(engine={"runner": "v1", "image": ARCTIC}, speculative={"method": "suffix"}),
    ),
    "no model": (
        {"engine": {}},
        ("SD158", "engine.model.name", "no model is named"),
        lookup(),
    ),
    "a name that is neither repository nor path": (
        lookup(engine={"model": {"name": "llama"}}),
        ("SD158", "engine.model.name", '"llama" is neither'),
        lookup(engine={"model": {"name": "/srv/llama"}}),
    ),
    "tools without a parser": (
        pair(engine={"toolCalling": {"enabled": True}}),
        ("SD159", "engine.toolCalling.parser", "parser"),
        pair(engine={"toolCalling": {"enabled": True, "parser": "llama3_json"}}),
    ),
    "speculation across pipeline stages": (
        lookup(engine={"pipelineParallelSize": 2}),
        ("SD160", "engine.pipelineParallelSize", "does not speculate across"),
        lookup(engine={"pipelineParallelSize": 2}, speculative={"enabled": False}),
    ),
    "LoRA as a free argument": (
        lookup(engine={"extraArgs": ["--enable-lora"]}),
        ("SD156", "engine.extraArgs[0]", "set by lora.enabled"),
        lookup(lora={"enabled": True}),
    ),
    "a key of the speculation's JSON as a free argument": (
        lookup(engine={"extraArgs": ["--speculative-config.num_speculative_tokens=7"]}),
        ("SD156", "engine.extraArgs[0]", "set by speculative"),
        lookup(speculative={"numTokens": 7}),
    ),
    "a typed switch turned off by a free argument": (
        lookup(engine={"enforceEager": True, "extraArgs": ["--no-enforce-eager"]}),
        ("SD156", "engine.extraArgs[0]", "set by engine.enforceEager"),
        lookup(engine={"enforceEager": False}),
    ),
    "a short flag with its value attached": (
        lookup(engine={"extraArgs": ["-tp2"]}),
        ("SD156", "engine.extraArgs[0]", "set by engine.tensorParallelSize"),
        lookup(engine={"tensorParallelSize": 2}),
    ),
    "a runner as a free variable": (
        lookup(engine={"extraEnv": [{"name": "VLLM_USE_V2_MODEL_RUNNER", "value": "1"}]}),
        ("SD168", "engine.extraEnv[0]", "set by engine.runner"),
        lookup(engine={"runner": "v2"}),
    ),
    "an attention backend as a free variable": (
        lookup(engine={"extraEnv": [{"name": "VLLM_ATTENTION_BACKEND", "value": "FLASHINFER"}]}),
        ("SD168", "engine.extraEnv[0]", "set by engine.attentionBackend"),
        lookup(engine={"attentionBackend": "FLASHINFER"}),
    ),
    "block verification before it existed": (
        pair(engine={"version": "0.24.0"}, speculative={"method": "eagle3", "rejectionSampling": "block"}),
        ("SD164", "speculative.rejectionSampling", "vLLM 0.24.0 has no block"),
        pair(engine={"version": "0.25.0"}, speculative={"method": "eagle3", "rejectionSampling": "block"}),
    ),
    "typical acceptance on an engine that has it no more": (
        pair(speculative={"rejectionSampling": "typical"}),
        ("SD164", "speculative.rejectionSampling", "block, standard, synthetic"),
        pair(engine={"version": "0.9.2"}, speculative={"rejectionSampling": "typical"}),
    ),
    "a batch size that would end speculation, and does not": (
        pair(engine={"version": "0.16.0"}, speculative={"disableByBatchSize": 32}),
        ("SD165", "speculative.disableByBatchSize", "vLLM 0.16.0 takes it, and it has no effect"),
        pair(engine={"version": "0.9.2"}, speculative={"disableByBatchSize": 32}),
    ),
    "a batch size that would end speculation, long gone": (
        pair(speculative={"disableByBatchSize": 32}),
        ("SD154", "speculative.disableByBatchSize", "speculative.schedule"),
        pair(speculative={"schedule": [{"from": 1, "to": 32, "tokens": 4}]}),
    ),
    "a tree of drafts that nothing reads": (
        pair(engine={"version": "0.10.0"}, speculative={"method": "eagle", "tokenTree": "[(0,), (0, 0)]"}),
        ("SD165", "speculative.tokenTree", "vLLM 0.10.0 takes it"),
        pair(engine={"version": "0.10.1"}, speculative={"method": "eagle", "tokenTree": "[(0,), (0, 0)]"}),
    ),
    "a draft on the runner that has none": (
        pair(engine={"version": "0.9.2", "runner": "v1"}),
        ("SD157", "engine.runner", "the v1 runner of vLLM 0.9.2 has no draft_model"),
        pair(engine={"version": "0.9.2", "runner": "v0"}),
    ),
}  # fmt: skip
