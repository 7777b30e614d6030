"""engines.yaml and surfaces.yaml against what is known of vLLM's releases: methods, names, limits, runners."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from specdec import facts
from specdec.plan import defaults
from specdec.rules import versions

from .releases import READ, RELEASES, RUNS, at_least, has, runs

# `vllm serve` defines these in a file of its own, which surfaces.json does not have from 0.29 on.
SERVE = {"--api-server-count", "--config", "--grpc", "--headless", "-asc"}
# The first release that has the name, and the first without it.
BOUNDS = {
    "--data-parallel-size": ("0.8.3", None),
    "--kv-cache-memory-bytes": ("0.10.2", None),
    "--attention-backend": ("0.13.0", None),
    "--shutdown-timeout": ("0.18.0", None),
    "--speculative-config": ("0.8.2", None),
    "--speculative-model": ("0.6.3", "0.8.3"),
    "--ngram-prompt-lookup-max": ("0.6.3", "0.8.3"),
    "method": ("0.8.2", None),
    "revision": ("0.8.2", None),
    "draft_tensor_parallel_size": ("0.8.2", None),
    "suffix_decoding_max_tree_depth": ("0.11.1", None),
    "num_speculative_tokens_per_batch_size": ("0.24.0", None),
    "disable_by_batch_size": ("0.8.2", "0.17.0"),
    "synthetic_acceptance_rate": ("0.19.0", "0.20.0"),
}
# What a limit says of a version: one row on each side of each bound.
LIMITS = [
    ("draftTensorParallelSize", "0.6.3", "draft_model", [1]),
    ("draftTensorParallelSize", "0.6.4", "draft_model", [1, "target"]),
    ("draftTensorParallelSize", "0.14.1", "eagle", [1, "target"]),
    ("draftTensorParallelSize", "0.15.0", "draft_model", ["target"]),
    ("draftTensorParallelSize", "0.33.0", "eagle3", [1, "target"]),
    ("pipelineParallel", "0.6.3", "ngram", False),
    ("pipelineParallel", "0.33.0", "mtp", False),
    ("lora", "0.11.0", "ngram", False),
    ("lora", "0.11.1", "ngram", None),
    ("scheduleDataParallel", "0.23.0", "ngram", None),
    ("scheduleDataParallel", "0.24.0", "ngram", False),
    ("scheduleDataParallel", "0.33.0", "ngram", False),
]


@pytest.mark.parametrize("method", RUNS)
def test_the_table_runs_a_method_on_the_releases_that_do(method: str) -> None:
    assert set(facts.engines()["methods"]) == set(RUNS)
    rows = facts.engines()["methods"][method]
    for release in RELEASES:
        assert bool(facts.in_range(rows["rows"], release)) is runs(method, release), release
        assert not (runs(method, release) and facts.in_range(rows.get("notRun", []), release)), release


@pytest.mark.parametrize("part", ["flags", "fields", "methods"])
def test_the_tables_have_what_the_sources_define(part: Any) -> None:
    for version in READ["versions"]:
        theirs = {name for name in READ[part] if has(part, name, version)}
        ours = versions.known(part, version)
        assert theirs <= ours, version
        # The copy leaves out the literals that others are made of.
        extra = {"dflash", "dspark"} if part == "methods" else SERVE
        assert ours - theirs <= extra, version


@pytest.mark.parametrize("name", BOUNDS)
def test_a_name_comes_and_goes_with_its_release(name: str) -> None:
    part: Any = "flags" if name.startswith("-") else "fields"
    first, gone = BOUNDS[name]
    for release in RELEASES:
        there = at_least(release, first) and (gone is None or not at_least(release, gone))
        assert versions.has(part, name, release) is there, release


@pytest.mark.parametrize(("limit", "version", "method", "allowed"), LIMITS)
def test_a_limit_holds_from_and_to_its_release(limit: str, version: str, method: str, allowed: Any) -> None:
    rows = [row for row in versions.limit(limit, version) if row.get("methods", "*") == "*" or method in row["methods"]]
    assert (rows[0]["allowed"] if rows else None) == allowed


def test_other_limits_have_their_bounds() -> None:
    assert [bool(versions.limit("promptLookupMaxRequired", version)) for version in ("0.8.1", "0.8.2")] == [True, False]
    assert [versions.limit("tokensOfHead", version)[0]["rule"] for version in ("0.7.3", "0.8.0")] == [
        "atMost",
        "multiple",
    ]
    assert [bool(versions.limit("cpu", version)) for version in ("0.8.4", "0.8.5")] == [False, True]
    methods = [len(versions.limit("scheduleMethods", version)) for version in ("0.23.0", "0.24.0", "0.25.0", "0.32.0")]
    assert methods == [0, 1, 0, 0]
    assert versions.not_run("draft_model", "0.9.2") is versions.not_run("draft_model", "0.15.0") is None
    assert versions.not_run("mlp_speculator", "0.32.0") == "raises ValueError"
    fields = [versions.without_effect("disable_by_batch_size", version) for version in ("0.9.2", "0.10.0", "0.16.0")]
    assert fields == [None, "has no effect", "has no effect"]
    fields = [versions.without_effect("disable_logprobs", version) for version in ("0.9.2", "0.10.0", "0.11.0")]
    assert fields == [None, "has no effect", "has no effect"]
    fields = [versions.without_effect("speculative_token_tree", version) for version in ("0.9.0", "0.10.0", "0.10.1")]
    assert fields == ["has no effect", "has no effect", None]
    ranks = [versions.limit("loraRanks", version)[0]["ranks"] for version in ("0.7.3", "0.8.0", "0.11.0", "0.11.1")]
    assert [(min(each), max(each)) for each in ranks] == [(8, 256), (8, 512), (8, 512), (1, 512)]
    assert [bool(versions.limit("offlineNames", version)) for version in ("0.31.0", "0.32.0")] == [False, True]


@pytest.mark.parametrize(
    ("value", "runner", "first", "last"),
    [
        ("speculative.disableByBatchSize", "v0", "0.8.0", "0.9.2"),
        ("speculative.rejectionSampling=typical", "v0", "0.8.0", "0.9.2"),
        ("speculative.enforceEager", "v1", "0.12.0", "0.33.0"),
        ("speculative.disablePaddedDrafterBatch", "v1", "0.12.0", "0.33.0"),
        ("speculative.parallelDrafting", "v1", "0.16.0", "0.33.0"),
        ("speculative.localArgmaxReduction", "v1", "0.17.0", "0.24.0"),
        ("speculative.draftSampling=probabilistic", "v2", "0.18.0", "0.21.0"),
        ("speculative.heterogeneousVocab", "v1", "0.25.0", "0.33.0"),
        ("speculative.rejectionSampling=block", "v2", "0.25.0", "0.33.0"),
        ("speculative.headQuantization", "v2", "0.33.0", "0.33.0"),
        ("speculative.dflash.xpressTopC", "v2", "0.33.0", "0.33.0"),
    ],
)
def test_a_value_is_bound_to_a_runner_on_the_releases_where_only_that_one_heeds_it(
    value: str, runner: str, first: str, last: str
) -> None:
    for release in RELEASES:
        bound = [row["runner"] for row in versions.limit("valuesOfRunner", release) if value in row["values"]]
        assert bound == ([runner] if at_least(release, first) and at_least(last, release) else []), release


def follow_each_other(rows: list[dict[str, Any]]) -> bool:
    return all(before.get("before") == after["from"] for before, after in pairwise(rows))


def test_rows_follow_each_other_without_gap_or_overlap() -> None:
    table = facts.engines()
    lists = {argument["value"]: argument["rows"] for argument in table["arguments"]} | {"runners": table["runners"]}
    # Nothing but what the engine always does, between the samplers of V0 and V1's.
    del lists["speculative.rejectionSampling"]
    for name, method in table["methods"].items():
        both = [*method["rows"], *method.get("notRun", [])]
        lists[name] = sorted(both, key=lambda row: facts.version_key(row["from"]))
    lists |= {
        name: table["limits"][name]
        for name in ("pipelineParallel", "scheduleDataParallel", "tokensOfHead", "loraRanks")
    }
    lists["draftTensorParallelSize"] = [r for r in table["limits"]["draftTensorParallelSize"] if r["methods"] == "*"]
    assert [name for name, rows in lists.items() if not follow_each_other(rows)] == []


def test_every_release_is_known_and_the_next_is_not() -> None:
    known = facts.engines()["versions"]
    assert [release for release in RELEASES if not facts.in_range(known, release)] == []
    assert facts.in_range(known, "0.34.0") == facts.in_range(known, "0.6.2") == []


@pytest.mark.parametrize(
    ("version", "method", "gpu", "cpu"),
    [
        ("0.7.3", "draft_model", "v0", "v0"),
        ("0.8.0", None, "v1", "v0"),
        ("0.8.5", "ngram", "v0", "v0"),
        ("0.9.2", "draft_model", "v0", "v0"),
        ("0.9.2", "eagle3", "v1", "v0"),
        ("0.10.0", "ngram", "v1", "v1"),
        ("0.21.0", "eagle3", "v1", "v1"),
        ("0.24.0", "eagle3", "v1", "v1"),
        ("0.25.0", "eagle3", "v2", "v1"),
        ("0.30.0", "draft_model", "v1", "v1"),
        ("0.31.0", "draft_model", "v2", "v1"),
        ("0.31.0", "ngram", "v1", "v1"),
        ("0.32.0", "ngram", "v2", "v1"),
        ("0.32.0", "medusa", "v1", "v1"),
        ("0.33.0", "suffix", "v1", "v1"),
        ("0.33.0", "dspark", "v2", "v1"),
    ],
)
def test_the_runner_follows_from_version_and_method(version: str, method: str | None, gpu: str, cpu: str) -> None:
    assert facts.default_runner(version, method) == gpu
    assert facts.default_runner(version, method, cpu=True) == cpu


# What holds from a release on until the next that is named, by default, runner, device and its GiB.
DEFAULTS = [
    ("utilisation", "v1", "h100", 79, "value", {"0.6.3": 0.90, "0.20.0": 0.92}),
    ("graphsInside", "v1", "h100", 79, "value", {"0.6.3": False, "0.20.0": True}),
    ("graphsInside", "v2", "h100", 79, "value", {"0.6.3": False, "0.29.0": True}),
    ("graphsInside", "v0", "h100", 79, "value", {"0.6.3": False}),
    ("sampler", "v1", "h100", 79, "value", {"0.6.3": "sort", "0.17.0": "kernel"}),
    ("sampler", "v2", "h100", 79, "value", {"0.6.3": "none"}),
    ("hybridKv", "v1", "h100", 79, "value", {"0.6.3": False, "0.9.2": True}),
    (
        "nonTorch",
        "v1",
        "h100",
        79,
        "value",
        {"0.6.3": "increase", "0.6.4": "context", "0.6.5": "increase", "0.27.0": "free memory"},
    ),
    ("hybridPrefixCaching", "v1", "h100", 79, "value", {"0.6.3": False, "0.28.0": True}),
    ("batching", "v0", "h100", 79, "seqs", {"0.6.3": 256}),
    ("batching", "v1", "h100", 79, "seqs", {"0.6.3": 1024}),
    ("batching", "v1", "h100", 79, "tokens", {"0.6.3": 8192}),
    ("batching", "v1", "b200", 178, "tokens", {"0.6.3": 2048, "0.8.5": 8192, "0.28.0": 16384}),
    ("batching", "v1", "a100", 79, "tokens", {"0.6.3": 2048, "0.8.5": 8192, "0.9.0": 2048}),
    ("batching", "v1", "l4", 22, "seqs", {"0.6.3": 1024, "0.8.5": 256}),
    ("batching", "v1", "cpu", 64, "seqs", {"0.6.3": 1024, "0.8.5": 256, "0.9.2": 32, "0.10.0": 128}),
]


@pytest.mark.parametrize(("key", "runner", "device", "gib", "what", "holds"), DEFAULTS)
def test_a_default_changes_with_its_release(
    key: str, runner: str, device: str, gib: int, what: str, holds: dict[str, Any]
) -> None:
    for release in RELEASES:
        expected = [value for first, value in holds.items() if at_least(release, first)][-1]
        row = defaults.lookup(key, facts.version_key(release), runner, device, gib)
        assert row[what] == expected, release


# From each release on until the next: the runner without a method, runners to choose from, methods of one alone.
RUNNERS = {
    "0.6.3": ("v0", 0, {}),
    "0.8.0": ("v1", 2, {"v0": 6}),
    "0.9.0": ("v1", 2, {"v0": 2, "v1": 1}),
    "0.10.0": ("v1", 0, {}),
    "0.12.0": ("v1", 2, {"v1": 6}),
    "0.24.0": ("v1", 2, {"v1": 5}),
    "0.25.0": ("v2", 2, {"v1": 5, "v2": 1}),
    "0.31.0": ("v2", 2, {"v1": 4, "v2": 1}),
    "0.32.0": ("v2", 2, {"v1": 2, "v2": 1}),
    "0.33.0": ("v2", 2, {"v1": 1, "v2": 1}),
}


def test_runners_change_with_their_releases() -> None:
    for release in RELEASES:
        default, choice, only = [row for first, row in RUNNERS.items() if at_least(release, first)][-1]
        (row,) = facts.in_range(facts.engines()["runners"], release)
        alone = {runner: len(methods) for runner, methods in row.get("only", {}).items()}
        assert (row["default"], len(row["choice"]), alone) == (default, choice, only), release


# Limits, and what is not run or not heeded, by first and last release.
HOLDS = [
    ("limits.draftTensorParallelSize", "0.6.3", "0.33.0"),
    ("limits.pipelineParallel", "0.6.3", "0.33.0"),
    ("limits.lora", "0.6.3", "0.11.0"),
    ("limits.loraRanks", "0.6.3", "0.33.0"),
    ("limits.scheduleDataParallel", "0.24.0", "0.33.0"),
    ("limits.tokensOfHead", "0.6.3", "0.33.0"),
    ("limits.promptLookupMaxRequired", "0.6.3", "0.8.1"),
    ("limits.offlineNames", "0.32.0", "0.33.0"),
    ("limits.cpu", "0.8.5", "0.33.0"),
    ("withoutEffect.disable_by_batch_size", "0.10.0", "0.16.0"),
    ("withoutEffect.disable_logprobs", "0.10.0", "0.11.0"),
    ("withoutEffect.speculative_token_tree", "0.9.0", "0.10.0"),
    ("command", "0.6.3", "0.33.0"),
    ("versions", "0.6.3", "0.33.0"),
]


@pytest.mark.parametrize(("where", "first", "last"), HOLDS)
def test_a_limit_holds_on_just_its_releases(where: str, first: str, last: str) -> None:
    rows: Any = facts.engines()
    for key in where.split("."):
        rows = rows[key]
    for release in RELEASES:
        assert bool(facts.in_range(rows, release)) is (at_least(release, first) and at_least(last, release)), release


# What a limit says from each release on until the next; None where it says nothing.
SAYS: list[tuple[str, str, dict[str, Any]]] = [
    ("tokensOfHead", "rule", {"0.6.3": "atMost", "0.8.0": "multiple"}),
    ("loraRanks", "ranks", {"0.6.3": [8, 256], "0.8.0": [8, 512], "0.11.1": [1, 512]}),
    ("draftTensorParallelSize", "allowed", {"0.6.3": [1, 1], "0.6.4": [1, "target"], "0.15.0": ["target", "target"]}),
    (
        "scheduleMethods",
        "methods",
        {"0.6.3": None, "0.24.0": [], "0.25.0": None, "0.33.0": ["ngram", "dflash"]},
    ),
]


@pytest.mark.parametrize(("limit", "key", "says"), SAYS)
def test_what_a_limit_says_changes_with_its_release(limit: str, key: str, says: dict[str, Any]) -> None:
    for release in RELEASES:
        expected = [value for first, value in says.items() if at_least(release, first)][-1]
        rows = versions.limit(limit, release)
        found = rows[0][key] if rows else None
        ends = [found[0], found[-1]] if isinstance(found, list) and found else found
        assert ends == expected, release


def test_a_pipeline_and_a_schedule_are_refused_for_two_reasons_each() -> None:
    table = facts.engines()["limits"]
    assert [row["from"] for row in table["pipelineParallel"]] == ["0.6.3", "0.10.0"]
    assert [row["from"] for row in table["scheduleDataParallel"]] == ["0.24.0", "0.26.0"]


def test_a_method_is_called_as_its_release_calls_it() -> None:
    for method, entry in facts.engines()["methods"].items():
        for release in RELEASES:
            for row in facts.in_range(entry["rows"], release):
                inferred = not at_least(release, "0.8.2") or (method == "mtp" and not at_least(release, "0.9.0"))
                renamed = method == "mtp" and not at_least(release, "0.11.0")
                expected = None if inferred else "deepseek_mtp" if renamed else method
                assert row.get("engineName") == expected, (method, release)


def test_a_method_that_is_not_run_says_so_on_just_those_releases() -> None:
    not_run = {"draft_model": ("0.10.0", "0.14.1"), "mlp_speculator": ("0.10.0", "0.32.0")}
    for method in RUNS:
        first, last = not_run.get(method, ("9.9.9", "0.0.0"))
        for release in RELEASES:
            says = versions.not_run(method, release)
            assert bool(says) is (at_least(release, first) and at_least(last, release)), (method, release)
