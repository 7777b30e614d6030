"""Refusals of methods, drafts, K and schedules."""

from __future__ import annotations

from ..conftest import DRAFT, DRAFT_REVISION, TARGET_REVISION, lookup, merged, pair
from .story import CPU, Story

TOOLS = {"enabled": True, "parser": "hermes"}
ARCTIC = {"hasArcticInference": True}
DEEPSEEK = {
    "engine": {
        "version": "0.7.3",
        "model": {"name": "deepseek-ai/DeepSeek-V3", "revision": TARGET_REVISION},
        "tensorParallelSize": 8,
    }
}

BAD: dict[str, Story] = {
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
}  # fmt: skip
