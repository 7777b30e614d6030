"""What cannot work is refused while it renders, with value, reason and fix; the nearest good values render."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from .conftest import CHART, DRAFT, DRAFT_REVISION, ROOT, TARGET_REVISION, lookup, merged, pair

CPU: dict[str, Any] = {
    "accelerator": {"type": "cpu"},
    "engine": {
        "model": {"name": "/srv/target", "revision": ""},
        "kvCacheMemoryBytes": 1073741824,
        "resources": {"requests": {"memory": "4Gi"}},
    },
    "sharedMemory": {"size": "1Gi"},
}
TOOLS = {"enabled": True, "parser": "hermes"}
ARCTIC = {"hasArcticInference": True}
TWO_GPU_NODE = {"type": "h100-80gb", "machineType": "a3-highgpu-2g"}
CLAIM = {"modelCache": {"type": "pvc"}}


def adapters(*modules: dict[str, str]) -> dict[str, Any]:
    return {"enabled": True, "modules": list(modules)}


# story: (bad values, code and path and a part of the message, nearest good values)
DEEPSEEK = {
    "engine": {
        "version": "0.7.3",
        "model": {"name": "deepseek-ai/DeepSeek-V3", "revision": TARGET_REVISION},
        "tensorParallelSize": 8,
    }
}

BAD: dict[str, tuple[dict[str, Any], tuple[str, str, str], dict[str, Any]]] = {
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
    "a draft model without a name": (
        lookup(speculative={"method": "draft_model"}),
        ("SD251", "speculative.model.name", "needs a draft model"),
        pair(),
    ),
    "a head without a name": (
        lookup(speculative={"method": "eagle3"}),
        ("SD251", "speculative.model.name", "eagle3"),
        pair(speculative={"method": "eagle3"}),
    ),
    "a draft that n-gram would ignore": (
        lookup(speculative={"model": {"name": DRAFT, "revision": DRAFT_REVISION}}),
        ("SD252", "speculative.model.name", "drafts without a model"),
        lookup(),
    ),
    "n-gram bounds for a draft model": (
        pair(speculative={"promptLookup": {"max": 4}}),
        ("SD254", "speculative.promptLookup.max", "it is for ngram, ngram_gpu"),
        pair(),
    ),
    "suffix values for n-gram": (
        lookup(speculative={"suffix": {"maxTreeDepth": 8}}),
        ("SD254", "speculative.suffix.maxTreeDepth", "ngram would do nothing with it; it is for suffix"),
        lookup(engine={"image": ARCTIC}, speculative={"method": "suffix", "suffix": {"maxTreeDepth": 8}}),
    ),
    "n-gram bounds the wrong way round": (
        lookup(speculative={"promptLookup": {"min": 5, "max": 4}}),
        ("SD255", "speculative.promptLookup.min", "5 is above max, which is 4"),
        lookup(speculative={"promptLookup": {"min": 4, "max": 5}}),
    ),
    "n-gram without a bound where none is the default": (
        lookup(engine={"version": "0.6.3"}),
        ("SD255", "speculative.promptLookup.max", "vLLM 0.6.3 has no default"),
        lookup(engine={"version": "0.6.3"}, speculative={"promptLookup": {"max": 4}}),
    ),
    "tool calls from short n-grams": (
        lookup(engine={"toolCalling": TOOLS}, speculative={"promptLookup": {"min": 2, "max": 8}}),
        ("SD256", "speculative.promptLookup.min", "corrupt tool calls"),
        lookup(engine={"toolCalling": TOOLS}, speculative={"promptLookup": {"min": 8, "max": 8}}),
    ),
    "suffix on the stock image": (
        lookup(speculative={"method": "suffix"}),
        ("SD257", "engine.image.hasArcticInference", "arctic-inference"),
        lookup(engine={"image": ARCTIC}, speculative={"method": "suffix"}),
    ),
    "a quantization for n-gram": (
        lookup(speculative={"quantization": "fp8"}),
        ("SD258", "speculative.quantization", "no quantization of its own"),
        pair(speculative={"quantization": "fp8"}),
    ),
    "a draft longer than the target": (
        pair(engine={"maxModelLen": 4096}, speculative={"maxModelLen": 8192}),
        ("SD259", "speculative.maxModelLen", "8192 is above the target's 4096"),
        pair(engine={"maxModelLen": 8192}, speculative={"maxModelLen": 8192}),
    ),
    "a schedule that starts late": (
        pair(speculative={"schedule": [{"from": 2, "to": 8, "tokens": 2}]}),
        ("SD260", "speculative.schedule[0].from", "start at 1"),
        pair(speculative={"schedule": [{"from": 1, "to": 8, "tokens": 2}]}),
    ),
    "a schedule with a gap": (
        pair(speculative={"schedule": [{"from": 1, "to": 8, "tokens": 2}, {"from": 10, "to": 12, "tokens": 1}]}),
        ("SD260", "speculative.schedule[1].from", "fix: 9"),
        pair(speculative={"schedule": [{"from": 1, "to": 8, "tokens": 2}, {"from": 9, "to": 12, "tokens": 1}]}),
    ),
    "a schedule that ends before it starts": (
        pair(speculative={"schedule": [{"from": 1, "to": 8, "tokens": 2}, {"from": 9, "to": 8, "tokens": 1}]}),
        ("SD260", "speculative.schedule[1].to", "8 is below from"),
        pair(speculative={"schedule": [{"from": 1, "to": 8, "tokens": 2}, {"from": 9, "to": 9, "tokens": 1}]}),
    ),
    "a schedule above K": (
        pair(speculative={"schedule": [{"from": 1, "to": 8, "tokens": 5}]}),
        ("SD261", "speculative.schedule[0].tokens", "5 is above speculative.numTokens"),
        pair(speculative={"schedule": [{"from": 1, "to": 8, "tokens": 4}]}),
    ),
    "a schedule with data parallelism": (
        pair(engine={"dataParallelSize": 2}, speculative={"schedule": [{"from": 1, "to": 8, "tokens": 2}]}),
        ("SD262", "speculative.schedule", "drops a schedule"),
        pair(engine={"replicas": 2}, speculative={"schedule": [{"from": 1, "to": 8, "tokens": 2}]}),
    ),
    "a draft model with a tensor parallel size of its own": (
        pair(engine={"tensorParallelSize": 4}, speculative={"draftTensorParallelSize": 1}),
        ("SD263", "speculative.draftTensorParallelSize", "accepts 4"),
        pair(engine={"tensorParallelSize": 4}, speculative={"draftTensorParallelSize": 4}),
    ),
    "a head with half the target's tensor parallel size": (
        pair(engine={"tensorParallelSize": 4}, speculative={"method": "eagle3", "draftTensorParallelSize": 2}),
        ("SD263", "speculative.draftTensorParallelSize", "accepts 1 or 4"),
        pair(engine={"tensorParallelSize": 4}, speculative={"method": "eagle3", "draftTensorParallelSize": 1}),
    ),
    "the draft's tensor parallel size of 0.6.3": (
        pair(engine={"version": "0.6.3", "tensorParallelSize": 4}, speculative={"draftTensorParallelSize": 4}),
        ("SD263", "speculative.draftTensorParallelSize", "accepts 1"),
        pair(engine={"version": "0.6.3", "tensorParallelSize": 4}, speculative={"draftTensorParallelSize": 1}),
    ),
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
    "LoRA as a free argument": (
        lookup(engine={"extraArgs": ["--enable-lora"]}),
        ("SD156", "engine.extraArgs[0]", "set by lora.enabled"),
        lookup(lora={"enabled": True}),
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
    "an adapter of the Hub without a revision": (
        lookup(lora=adapters({"servedName": "sql", "name": "org/sql"})),
        ("SD751", "lora.modules[0].revision", "org/sql has no revision"),
        lookup(lora=adapters({"servedName": "sql", "name": "org/sql", "revision": "c" * 40})),
    ),
    "an adapter that the engine would fetch itself": (
        lookup(
            lora=adapters({"servedName": "sql", "name": "org/sql", "revision": "c" * 40}),
            modelCache={"prefetch": {"enabled": False}},
        ),
        ("SD171", "lora.modules[0].name", "cannot be told its revision"),
        lookup(lora=adapters({"servedName": "sql", "name": "org/sql", "revision": "c" * 40})),
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
    "different vocabularies for a head": (
        pair(speculative={"method": "eagle3", "heterogeneousVocab": True}),
        ("SD254", "speculative.heterogeneousVocab", "it is for draft_model"),
        pair(speculative={"heterogeneousVocab": True}),
    ),
    "different vocabularies with sampled drafts": (
        pair(speculative={"heterogeneousVocab": True, "draftSampling": "probabilistic"}),
        ("SD266", "speculative.draftSampling", "sampled greedily alone"),
        pair(speculative={"heterogeneousVocab": True, "draftSampling": "greedy"}),
    ),
    "different vocabularies without all logits": (
        pair(speculative={"heterogeneousVocab": True, "localArgmaxReduction": True}),
        ("SD266", "speculative.localArgmaxReduction", "needs all logits"),
        pair(speculative={"localArgmaxReduction": True}),
    ),
    "sampled drafts without all logits": (
        pair(speculative={"draftSampling": "probabilistic", "localArgmaxReduction": True}),
        ("SD266", "speculative.localArgmaxReduction", "probabilistic drafts need all logits"),
        pair(speculative={"draftSampling": "greedy", "localArgmaxReduction": True}),
    ),
    "one field for two kinds of sampling": (
        pair(
            engine={"version": "0.20.2", "runner": "v1"},
            speculative={
                "draftSampling": "greedy",
                "rejectionSampling": "synthetic",
                "synthetic": {"acceptanceLength": 2},
            },
        ),
        ("SD266", "speculative.draftSampling", "one field for it and for rejectionSampling synthetic"),
        pair(
            engine={"version": "0.21.0"},
            speculative={
                "draftSampling": "greedy",
                "rejectionSampling": "synthetic",
                "synthetic": {"acceptanceLength": 2},
            },
        ),
    ),
    "parallel drafts without padding": (
        pair(speculative={"method": "eagle3", "parallelDrafting": True, "disablePaddedDrafterBatch": True}),
        ("SD266", "speculative.disablePaddedDrafterBatch", "needs the padded batch"),
        pair(speculative={"method": "eagle3", "parallelDrafting": True}),
    ),
    "two adapters with one name": (
        lookup(lora=adapters({"servedName": "a", "name": "/srv/a"}, {"servedName": "a", "name": "/srv/b"})),
        ("SD170", "lora.modules[1].servedName", '"a" is the name of another model'),
        lookup(lora=adapters({"servedName": "a", "name": "/srv/a"}, {"servedName": "b", "name": "/srv/b"})),
    ),
    "a window of FLy without FLy": (
        pair(engine={"version": "0.33.0"}, speculative={"fly": {"windowSize": 2}}),
        ("SD266", "speculative.fly.windowSize", "it tunes rejectionSampling fly"),
        pair(engine={"version": "0.33.0"}, speculative={"rejectionSampling": "fly", "fly": {"windowSize": 2}}),
    ),
    "a window of FLy as wide as the drafts": (
        pair(engine={"version": "0.33.0"}, speculative={"rejectionSampling": "fly", "fly": {"windowSize": 4}}),
        ("SD268", "speculative.fly.windowSize", "4 is not below speculative.numTokens"),
        pair(engine={"version": "0.33.0"}, speculative={"rejectionSampling": "fly", "fly": {"windowSize": 3}}),
    ),
    "FLy with one draft": (
        pair(engine={"version": "0.33.0"}, speculative={"rejectionSampling": "fly", "numTokens": 1}),
        ("SD268", "speculative.numTokens", "decisions that follow"),
        pair(engine={"version": "0.33.0"}, speculative={"rejectionSampling": "fly", "numTokens": 2}),
    ),
    "made-up acceptance of nothing": (
        pair(speculative={"rejectionSampling": "synthetic"}),
        ("SD267", "speculative.synthetic", "exactly one of them"),
        pair(speculative={"rejectionSampling": "synthetic", "synthetic": {"acceptanceLength": 2.5}}),
    ),
    "a made-up rate too few": (
        pair(speculative={"rejectionSampling": "synthetic", "synthetic": {"acceptanceRates": [0.9, 0.5, 0.2]}}),
        ("SD267", "speculative.synthetic.acceptanceRates", "3 rates for 4 drafted tokens"),
        pair(speculative={"rejectionSampling": "synthetic", "synthetic": {"acceptanceRates": [0.9, 0.5, 0.2, 0.1]}}),
    ),
    "made-up rates that rise": (
        pair(speculative={"rejectionSampling": "synthetic", "synthetic": {"acceptanceRates": [0.5, 0.9, 0.2, 0.1]}}),
        ("SD267", "speculative.synthetic.acceptanceRates[1]", "never rise"),
        pair(speculative={"rejectionSampling": "synthetic", "synthetic": {"acceptanceRates": [0.9, 0.9, 0.2, 0]}}),
    ),
    "more tokens a step than there are drafts": (
        pair(speculative={"rejectionSampling": "synthetic", "synthetic": {"acceptanceLength": 5.5}}),
        ("SD267", "speculative.synthetic.acceptanceLength", "fix: 1 to 5"),
        pair(speculative={"rejectionSampling": "synthetic", "synthetic": {"acceptanceLength": 5}}),
    ),
    "made-up acceptance without K": (
        lookup(
            engine={"image": ARCTIC},
            speculative={"method": "suffix", "numTokens": None, "rejectionSampling": "synthetic"},
        ),
        ("SD253", "speculative.numTokens", "needs the number of tokens"),
        lookup(
            engine={"image": ARCTIC},
            speculative={
                "method": "suffix",
                "numTokens": 2,
                "rejectionSampling": "synthetic",
                "synthetic": {"acceptanceLength": 2},
            },
        ),
    ),
    "block verification on the runner that has none": (
        pair(engine={"runner": "v1"}, speculative={"method": "eagle3", "rejectionSampling": "block"}),
        ("SD269", "speculative.rejectionSampling", "the v1 runner of vLLM 0.32.0"),
        pair(engine={"runner": "v2"}, speculative={"method": "eagle3", "rejectionSampling": "block"}),
    ),
    "a quantized head on CPUs": (
        merged(
            CPU,
            {
                "engine": {"version": "0.33.0"},
                "speculative": {"method": "eagle3", "model": {"name": "/srv/h"}, "headQuantization": "fp8"},
            },
        ),
        ("SD269", "speculative.headQuantization", "on GPUs"),
        merged(
            CPU,
            {"engine": {"version": "0.33.0"}, "speculative": {"method": "eagle3", "model": {"name": "/srv/h"}}},
        ),
    ),
    "candidates of DSpark on a sharded draft": (
        lookup(engine={"tensorParallelSize": 2}, speculative={"method": "dspark", "dspark": {"draftTopK": 64}}),
        ("SD270", "speculative.dspark.draftTopK", "this one is on 2"),
        lookup(
            engine={"tensorParallelSize": 2},
            speculative={"method": "dspark", "dspark": {"draftTopK": 64}, "draftTensorParallelSize": 1},
        ),
    ),
    "a schedule that the runner drops": (
        lookup(
            engine={"version": "0.33.0", "image": {"hasArcticInference": True}},
            speculative={"method": "suffix", "schedule": [{"from": 1, "to": 8, "tokens": 2}]},
        ),
        ("SD264", "speculative.schedule", "the v1 runner of vLLM 0.33.0 keeps no schedule with suffix"),
        lookup(
            engine={"version": "0.33.0", "runner": "v1"},
            speculative={"method": "ngram", "schedule": [{"from": 1, "to": 8, "tokens": 2}]},
        ),
    ),
    "a schedule on a runner that refuses it": (
        pair(
            engine={"version": "0.24.0", "runner": "v2"},
            speculative={"method": "eagle3", "schedule": [{"from": 1, "to": 8, "tokens": 2}]},
        ),
        ("SD264", "speculative.schedule", "the v2 runner of vLLM 0.24.0"),
        pair(
            engine={"version": "0.25.0", "runner": "v2"},
            speculative={"method": "eagle3", "schedule": [{"from": 1, "to": 8, "tokens": 2}]},
        ),
    ),
    "more tokens than DeepSeek's head drafts on 0.7.3": (
        DEEPSEEK | {"speculative": {"method": "mtp", "numTokens": 2}},
        ("SD265", "speculative.numTokens", "vLLM 0.7.3 takes no more"),
        DEEPSEEK | {"speculative": {"method": "mtp", "numTokens": 1}},
    ),
    "a draft on the runner that has none": (
        pair(engine={"version": "0.9.2", "runner": "v1"}),
        ("SD157", "engine.runner", "the v1 runner of vLLM 0.9.2 has no draft_model"),
        pair(engine={"version": "0.9.2", "runner": "v0"}),
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


@pytest.mark.parametrize("story", BAD)
def test_it_is_refused_and_says_what_would_work(refused, story):
    values, (code, path, part), _ = BAD[story]
    message = refused(values)
    assert f"{code}: {path}: " in message
    assert part in message
    assert "fix: " in message


@pytest.mark.parametrize("story", BAD)
def test_the_nearest_good_values_render(render, story):
    assert render(BAD[story][2]).manifests


def test_an_override_is_refused_with_the_path_of_the_engine(refused):
    message = refused(pair(engines={"chat": {"speculative": {"method": "suffix", "model": {"name": ""}}}}))
    assert "SD257: engines.chat.engine.image.hasArcticInference: " in message


SCHEMA: dict[str, tuple[dict[str, Any], str]] = {
    "K of zero": (lookup(speculative={"numTokens": 0}), "/speculative/numTokens"),
    "K of one and a half": (lookup(speculative={"numTokens": 1.5}), "/speculative/numTokens"),
    "K as text": (lookup(speculative={"numTokens": "4"}), "/speculative/numTokens"),
    "utilisation of two": (lookup(engine={"gpuMemoryUtilization": 2}), "/engine/gpuMemoryUtilization"),
    "utilisation of zero": (lookup(engine={"gpuMemoryUtilization": 0}), "/engine/gpuMemoryUtilization"),
    "a misspelt value": (lookup(speculative={"numToken": 4}), "'numToken' not allowed"),
    "a misspelt section": (lookup(speculativ={"numTokens": 4}), "'speculativ' not allowed"),
    "a misspelt value of one engine": (lookup(engines={"a": {"engine": {"replica": 2}}}), "/engines/a/engine"),
    "a method that does not exist": (lookup(speculative={"method": "eagle4"}), "/speculative/method"),
    "no tensor parallelism": (lookup(engine={"tensorParallelSize": 0}), "/engine/tensorParallelSize"),
    "a size without sense": (lookup(sharedMemory={"size": "16 gigs"}), "/sharedMemory/size"),
    "a digest that is none": (lookup(engine={"image": {"digest": "latest"}}), "/engine/image/digest"),
    "a router policy that does not exist": (lookup(router={"policy": "fastest"}), "/router/policy"),
    "root as user": (lookup(security={"runAsUser": 0}), "/security/runAsUser"),
    "an impatient liveness probe": (lookup(probes={"liveness": {"failureThreshold": 1}}), "/probes/liveness"),
    "a negative schedule": (
        lookup(speculative={"schedule": [{"from": 1, "to": 2, "tokens": -1}]}),
        "/speculative/schedule/0/tokens",
    ),
    "a section taken away": (lookup(router={"retries": None}), "'retries'"),
    "an engine's name that no object may have": (lookup(engines={"My_Engine": {}}), "My_Engine"),
    "a cloud that does not exist": (lookup(cloud="azure"), "/cloud"),
}


@pytest.mark.parametrize("story", SCHEMA)
def test_the_schema_refuses(refused, story):
    values, part = SCHEMA[story]
    assert part in refused(values)


def test_helm_s_own_message_names_no_template_that_has_no_part_in_it(refused):
    message = refused({"engine": {"version": "9.9.9"}})
    assert "templates/values/check/values.yaml" in message
    assert "SD152: engine.version" in message


def test_every_error_of_the_chart_is_listed_with_its_reason_and_the_other_way_round():
    listed = yaml.safe_load((CHART / "files" / "errors.yaml").read_text())["errors"]
    templates = "".join(path.read_text() for path in (CHART / "templates").rglob("*") if path.is_file())
    used = {word for word in templates.replace('"', " ").split() if len(word) == 5 and word.startswith("SD")}
    assert set(listed) == used
    assert all(row["name"] and row["reason"] for row in listed.values())


def test_there_are_enough_stories_of_enough_kinds():
    assert len(BAD) + len(SCHEMA) >= 120
    assert len({code for _, (code, _, _), _ in BAD.values()}) >= 50


def test_nearly_every_error_has_a_story():
    listed = set(yaml.safe_load((CHART / "files" / "errors.yaml").read_text())["errors"])
    stories = "".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
    untold = {code for code in listed if stories.count(f'"{code}"') + stories.count(f'"{code}:') == 0}
    # The schema is quicker with these: null for a section, no memory, a size without sense.
    assert untold <= {"SD162", "SD355", "SD451"}
