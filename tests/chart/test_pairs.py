"""Every pair of method, era, KV cache, model cache, layout and suit of values, in a few renderings.

A suit is a set of values that go together. An engine carries every value of its suit that its version and method have,
under the version's own name; or it is refused with an error that names method and version.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

from .bulk import Settled, settle
from .conftest import DRAFT, DRAFT_REVISION, TARGET, TARGET_REVISION, merged
from .pairwise import covering
from .releases import READ, RUNS, at_least, has, runs
from .test_spans import SPANS, within
from .test_versions import told

DRAFTS = ("draft_model", "eagle", "eagle3", "mtp", "dflash", "dspark")
HEADS = ("eagle", "eagle3", "mtp")
NEEDS_MODEL = ("draft_model", "eagle", "eagle3", "medusa", "mlp_speculator", "dflash")
# Value: (sample, methods that take it, its names from old to new).
VALUES: dict[str, tuple[Any, tuple[str, ...], list[str]]] = {
    "attentionBackend": ("FLASHINFER", DRAFTS, ["attention_backend"]),
    "moeBackend": ("triton", DRAFTS, ["moe_backend"]),
    "kvCacheDtype": ("fp8_e5m2", DRAFTS, ["kv_cache_dtype"]),
    "load.format": ("safetensors", (*DRAFTS, "medusa"), ["draft_load_config"]),
    "load.strategy": ("eager", (*DRAFTS, "medusa"), ["draft_load_config"]),
    "load.extraConfig": ({"workers": 1048576}, (*DRAFTS, "medusa"), ["draft_load_config"]),
    "disableEagleBlockDrop": (True, HEADS, ["disable_eagle_block_drop"]),
    "disableLookaheadBlockHashes": (True, HEADS, ["disable_lookahead_block_hashes"]),
    "mtp.indexShare": (False, ("mtp",), ["index_share_for_mtp_iteration"]),
    "dspark.draftTopK": (64, ("dspark",), ["dspark_draft_topk"]),
    "dspark.adaptiveVerification": (True, ("dspark",), ["enable_adaptive_verification"]),
    "promptLookup.min": (8, ("ngram", "ngram_gpu"), ["--ngram-prompt-lookup-min", "prompt_lookup_min"]),
    "promptLookup.max": (9, ("ngram", "ngram_gpu"), ["--ngram-prompt-lookup-max", "prompt_lookup_max"]),
    "suffix.maxTreeDepth": (20, ("suffix",), ["suffix_decoding_max_tree_depth"]),
    "enforceEager": (False, ("draft_model", *HEADS, "medusa", "dflash"), ["enforce_eager"]),
    "draftSampling": ("greedy", DRAFTS, ["rejection_sample_method", "draft_sample_method"]),
    "localArgmaxReduction": (True, DRAFTS, ["use_local_argmax_reduction"]),
    "parallelDrafting": (True, ("draft_model", "eagle", "eagle3"), ["parallel_drafting"]),
    "heterogeneousVocab": (True, ("draft_model",), ["use_heterogeneous_vocab"]),
    "disablePaddedDrafterBatch": (True, HEADS, ["disable_padded_drafter_batch"]),
    "headQuantization": ("nvfp4", HEADS, ["draft_lm_head_quantization"]),
    "dflash.xpressTopC": (0, ("dflash",), ["xpress_topc"]),
    "tokenTree": ("[(0,), (0, 0)]", HEADS, ["speculative_token_tree"]),
    "disableByBatchSize": (100000, (), ["--speculative-disable-by-batch-size", "disable_by_batch_size"]),
    "disableMqaScorer": (True, (), ["--speculative-disable-mqa-scorer", "disable_mqa_scorer"]),
    "disableLogprobs": (False, (), ["--disable-logprobs-during-spec-decoding", "disable_logprobs"]),
    "rejectionSampling": ("typical", (), ["--spec-decoding-acceptance-method", "acceptance_method"]),
    "typical.posteriorThreshold": (
        0.09,
        (),
        ["--typical-acceptance-sampler-posterior-threshold", "posterior_threshold"],
    ),
    "typical.posteriorAlpha": (0.3, (), ["--typical-acceptance-sampler-posterior-alpha", "posterior_alpha"]),
}
SUITS = {
    "plain": [
        *("attentionBackend", "moeBackend", "kvCacheDtype", "load.format", "load.strategy", "load.extraConfig"),
        *("disableEagleBlockDrop", "disableLookaheadBlockHashes", "mtp.indexShare", "dspark.draftTopK"),
        *("dspark.adaptiveVerification", "promptLookup.min", "promptLookup.max", "suffix.maxTreeDepth"),
        "draftSampling",
    ],
    "argmax": ["localArgmaxReduction", "promptLookup.max"],
    "parallel": ["parallelDrafting", "enforceEager", "promptLookup.max"],
    "unpadded": ["disablePaddedDrafterBatch", "heterogeneousVocab", "promptLookup.max"],
    "v2": ["headQuantization", "dflash.xpressTopC", "promptLookup.max"],
    "v0": [
        *("tokenTree", "disableByBatchSize", "disableMqaScorer", "disableLogprobs", "rejectionSampling"),
        *("typical.posteriorThreshold", "typical.posteriorAlpha", "promptLookup.max"),
    ],
}
CHOICES = {
    "method": list(RUNS),
    "version": [
        "0.6.6",
        "0.7.3",
        "0.8.5",
        "0.9.2",
        "0.11.2",
        "0.14.0",
        "0.18.0",
        "0.20.2",
        "0.26.0",
        "0.32.0",
        "0.33.0",
    ],
    "kv": ["", "auto", "fp8"],
    "cache": ["emptyDir", "hostPath", "pvc", "shared"],
    "layout": [(1, 1), (4, 1), (2, 2)],
    "suit": list(SUITS),
}
CACHES: dict[str, dict[str, Any]] = {
    "emptyDir": {"type": "emptyDir"},
    "hostPath": {"type": "hostPath"},
    "pvc": {"type": "pvc", "pvc": {"accessMode": "ReadWriteOnce"}},
    "shared": {"type": "pvc", "pvc": {"accessMode": "ReadWriteMany"}},
}
# What a version takes for the sample where it is not the sample itself.
NAMES = {
    ("rejection_sample_method", "greedy"): "strict",
    ("acceptance_method", "typical"): "typical_acceptance_sampler",
    ("--spec-decoding-acceptance-method", "typical"): "typical_acceptance_sampler",
    ("--disable-logprobs-during-spec-decoding", False): "false",
}
WITHOUT_EFFECT = {
    "disableByBatchSize": ("0.10.0", "0.16.0"),
    "disableLogprobs": ("0.10.0", "0.11.0"),
    "tokenTree": ("0.9.0", "0.10.0"),
}


def name_in(version: str, value: str) -> str | None:
    """What the version calls the value; None where it has none that does something."""
    if value in WITHOUT_EFFECT and within(version, WITHOUT_EFFECT[value]):
        return None
    there = [name for name in VALUES[value][2] if within(version, SPANS[name])]
    return there[-1] if there else None


def worn(row: dict[str, Any]) -> list[str]:
    """The values of the suit that version and method have."""
    values = [value for value in SUITS[row["suit"]] if not VALUES[value][1] or row["method"] in VALUES[value][1]]
    return [value for value in values if name_in(row["version"], value)]


def allowed(row: dict[str, Any]) -> bool:
    _, data = row["layout"]
    return runs(row["method"], row["version"]) and (data == 1 or at_least(row["version"], "0.8.3"))


def engine_of(row: dict[str, Any]) -> dict[str, Any]:
    method, (tensor, data) = row["method"], row["layout"]
    speculative: dict[str, Any] = {"method": method, "numTokens": 4}
    for value in worn(row):
        section, _, key = value.rpartition(".")
        sample = VALUES[value][0]
        speculative = merged(speculative, {section: {key: sample}} if section else {key: sample})
    if method in NEEDS_MODEL:
        hub = {"name": DRAFT, "revision": DRAFT_REVISION}
        speculative["model"] = hub if at_least(row["version"], "0.8.2") else {"name": "/srv/draft"}
    if method == "dspark" and tensor > 1:
        speculative["draftTensorParallelSize"] = 1
    return {
        "engine": {
            "version": row["version"],
            "tensorParallelSize": tensor,
            "dataParallelSize": data,
            "kvCacheDtype": row["kv"],
            "image": {"hasArcticInference": True},
        },
        "speculative": speculative,
        "modelCache": CACHES[row["cache"]],
    }


PAIRS = covering(CHOICES, allowed)
# Values that need a method, a version and a suit at once, which pairs alone need not bring together.
TRIPLES = [
    {"method": method, "version": "0.33.0", "kv": "", "cache": "emptyDir", "layout": (1, 1), "suit": suit}
    for method, suit in [("dspark", "plain"), ("eagle3", "v2"), ("dflash", "v2"), ("draft_model", "unpadded")]
]
ROWS = {f"p{i}": row for i, row in enumerate([*PAIRS, *TRIPLES])}


@pytest.fixture(scope="module")
def settled(helm: str) -> Settled:
    shared = {
        "engine": {"model": {"name": TARGET, "revision": TARGET_REVISION}},
        "router": {"enabled": False},
        "modelCache": {"prefetch": {"enabled": False}},
    }
    return settle(helm, {name: engine_of(row) for name, row in ROWS.items()}, shared)


@pytest.mark.xdist_group("pairs")
def test_an_engine_has_every_value_under_the_names_of_its_version(settled: Settled) -> None:
    carried: Counter[str] = Counter()
    for name, rendering in settled.renderings.items():
        row = ROWS[name]
        flags = told(rendering.args(f"speculative-{name}"))
        fields = json.loads(str(flags.pop("--speculative-config", "{}")))
        for value in worn(row):
            called = str(name_in(row["version"], value))
            sample = VALUES[value][0]
            sample = sample if isinstance(sample, dict) else NAMES.get((called, sample), sample)
            if called == "draft_load_config":
                keys = {"load.format": "load_format", "load.strategy": "safetensors_load_strategy"}
                got = fields[called][keys.get(value, "model_loader_extra_config")]
            else:
                got = flags[called] if called.startswith("--") else fields[called]
            assert got == (str(sample) if called.startswith("--") and sample is not True else sample), (row, value)
            carried[value] += 1
        if row["version"] in READ["versions"]:
            assert not [flag for flag in flags if not has("flags", flag, row["version"])], row
            assert not [each for each in fields if not has("fields", each, row["version"])], row
        tensor, data = row["layout"]
        assert flags.get("--tensor-parallel-size", "1") == str(tensor)
        assert flags.get("--data-parallel-size", "1") == str(data)
        assert flags.get("--kv-cache-dtype", "") == row["kv"]
    assert set(carried) == set(VALUES)


@pytest.mark.xdist_group("pairs")
def test_what_is_refused_is_refused_for_its_method_and_version(settled: Settled) -> None:
    # A suit of one runner's on a method that the other runner alone has, and nothing else.
    for name, (code, message) in settled.refusals.items():
        row = ROWS[name]
        assert code == "SD269", (row, message)
        assert f"vLLM {row['version']}" in message
        assert row["method"] in message
    assert len(settled.refusals) < len(ROWS) / 5


@pytest.mark.xdist_group("pairs")
def test_every_pair_of_choices_that_can_be_is_among_them() -> None:
    assert 80 < len(ROWS) < 300
    for method in RUNS:
        eras = {row["version"] for row in ROWS.values() if row["method"] == method}
        assert eras == {version for version in CHOICES["version"] if runs(method, version)}
        for choice in ("kv", "cache", "suit"):
            chosen = {row[choice] for row in ROWS.values() if row["method"] == method}
            assert chosen == set(CHOICES[choice])


@pytest.mark.xdist_group("pairs")
def test_a_method_that_a_version_has_not_is_refused_by_name(helm: str) -> None:
    unable = [(method, version) for method in RUNS for version in CHOICES["version"] if not runs(method, version)]
    rows = {
        f"u{i}": {"method": method, "version": version, "kv": "", "cache": "emptyDir", "layout": (1, 1), "suit": "v2"}
        for i, (method, version) in enumerate(unable)
    }
    shared = {"engine": {"model": {"name": TARGET, "revision": TARGET_REVISION}}, "router": {"enabled": False}}
    settled = settle(helm, {name: engine_of(row) for name, row in rows.items()}, shared, size=len(rows))
    assert not settled.renderings
    for name, (code, message) in settled.refusals.items():
        assert code == "SD155"
        assert f"vLLM {rows[name]['version']} cannot run {rows[name]['method']}" in message
    assert len(rows) == len(settled.refusals) > 25
