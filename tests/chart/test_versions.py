"""Every released vLLM gets arguments that its own source defines, and each value that was set is among them.

surfaces.json says for sixteen versions which flags, fields and method names their sources define ("1" where a version
has the name), read by another program than the tables were. RUNS and the expected arguments are written out here.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from specdec import facts
from specdec.facts import version_key
from specdec.rules import versions

from .conftest import DRAFT, DRAFT_REVISION, TARGET, TARGET_REVISION, Rendering, lookup, pair

READ = json.loads(Path(__file__).with_name("surfaces.json").read_text())
RELEASES = (
    "0.6.3 0.6.4 0.6.5 0.6.6 0.7.0 0.7.1 0.7.2 0.7.3 0.8.0 0.8.1 0.8.2 0.8.3 0.8.4 0.8.5 0.9.0 0.9.0.1 0.9.1 "
    "0.9.2 0.10.0 0.10.1 0.10.1.1 0.10.2 0.11.0 0.11.1 0.11.2 0.12.0 0.13.0 0.14.0 0.14.1 0.15.0 0.15.1 0.16.0 "
    "0.17.0 0.17.1 0.18.0 0.18.1 0.19.0 0.19.1 0.20.0 0.20.1 0.20.2 0.21.0 0.22.0 0.22.1 0.23.0 0.24.0 0.25.0 "
    "0.25.1 0.26.0 0.27.0 0.27.1 0.28.0 0.29.0 0.30.0 0.31.0 0.32.0 0.33.0"
).split()
# First and last release of each stretch that runs the method.
RUNS = {
    "draft_model": [("0.6.3", "0.9.2"), ("0.15.0", "0.33.0")],
    "eagle": [("0.6.3", "0.33.0")],
    "eagle3": [("0.9.0", "0.33.0")],
    "medusa": [("0.6.3", "0.32.0")],
    "mlp_speculator": [("0.6.3", "0.9.2")],
    "mtp": [("0.7.3", "0.33.0")],
    "ngram": [("0.6.3", "0.33.0")],
    "ngram_gpu": [("0.18.0", "0.33.0")],
    "suffix": [("0.11.1", "0.33.0")],
    "dflash": [("0.20.0", "0.33.0")],
    "dspark": [("0.25.0", "0.33.0")],
}
# `vllm serve` defines these in a file of its own, which surfaces.json does not have from 0.29 on.
SERVE = {"--api-server-count", "--config", "--grpc", "--headless", "-asc"}


def at_least(version: str, bound: str) -> bool:
    return version_key(version) >= version_key(bound)


def runs(method: str, version: str) -> bool:
    return any(at_least(version, first) and at_least(last, version) for first, last in RUNS[method])


def has(part: str, name: str, version: str) -> bool:
    return READ[part].get(name, "0" * 16)[READ["versions"].index(version)] == "1"


def asked(method: str, version: str) -> dict[str, Any]:
    """An engine with every value that the version has for the method."""
    engine: dict[str, Any] = {
        "version": version,
        "model": {"servedName": "served"},
        "tensorParallelSize": 2,
        "dtype": "bfloat16",
        "quantization": "fp8",
        "kvCacheDtype": "fp8_e5m2",
        "maxModelLen": 8192,
        "maxNumSeqs": 65,
        "maxNumBatchedTokens": 8193,
        "gpuMemoryUtilization": 0.85,
        "enforceEager": True,
        "trustRemoteCode": True,
        "attentionBackend": "FLASH_ATTN",
        "toolCalling": {"enabled": True, "parser": "hermes"},
        "image": {"hasArcticInference": True},
    }
    speculative: dict[str, Any] = {"method": method, "numTokens": 4, "maxModelLen": 4096}
    speculative["draftTensorParallelSize"] = 2 if at_least(version, "0.6.4") else 1
    speculative["model"] = {"name": "", "revision": ""}
    if method == "mtp" and at_least(version, "0.10.2"):
        engine |= {"gpuMemoryUtilization": None, "kvCacheMemoryBytes": 2147483648}
    if method == "eagle" and at_least(version, "0.8.3"):
        engine["dataParallelSize"] = 2
    if method in ("ngram", "ngram_gpu"):
        speculative["promptLookup"] = {"min": 8, "max": 9}
    if method == "ngram" and at_least(version, "0.24.0"):
        speculative["schedule"] = [{"from": 1, "to": 16, "tokens": 4}, {"from": 17, "to": 64, "tokens": 2}]
    if method == "suffix":
        speculative["suffix"] = {"maxTreeDepth": 20, "maxCachedRequests": 7, "maxSpecFactor": 1.5, "minTokenProb": 0.2}
    if method == "draft_model":
        speculative["quantization"] = "awq"
    if method in ("draft_model", "eagle", "eagle3", "medusa", "mlp_speculator", "dflash"):
        hub = {"name": DRAFT, "revision": DRAFT_REVISION}
        speculative["model"] = hub if at_least(version, "0.8.2") else {"name": "/srv/draft", "revision": ""}
    return {"engine": engine, "speculative": speculative}


def expected_flags(method: str, version: str) -> dict[str, str | bool]:
    flags: dict[str, str | bool] = {
        "--model": TARGET,
        "--revision": TARGET_REVISION,
        "--served-model-name": "served",
        "--tensor-parallel-size": "2",
        "--dtype": "bfloat16",
        "--quantization": "fp8",
        "--kv-cache-dtype": "fp8_e5m2",
        "--max-model-len": "8192",
        "--max-num-seqs": "65",
        "--max-num-batched-tokens": "8193",
        "--enforce-eager": True,
        "--trust-remote-code": True,
        "--enable-auto-tool-choice": True,
        "--tool-call-parser": "hermes",
        "--port": "8000",
    }
    if method == "mtp" and at_least(version, "0.10.2"):
        flags["--kv-cache-memory-bytes"] = "2147483648"
    else:
        flags["--gpu-memory-utilization"] = "0.85"
    if method == "eagle" and at_least(version, "0.8.3"):
        flags["--data-parallel-size"] = "2"
    if at_least(version, "0.13.0"):
        flags["--attention-backend"] = "FLASH_ATTN"
    if at_least(version, "0.18.0"):
        flags["--shutdown-timeout"] = "60"
    if at_least(version, "0.8.2"):
        return flags
    flags["--num-speculative-tokens"] = "4"
    flags["--speculative-max-model-len"] = "4096"
    flags["--speculative-draft-tensor-parallel-size"] = "2" if at_least(version, "0.6.4") else "1"
    if method == "ngram":
        flags |= {"--speculative-model": "[ngram]", "--ngram-prompt-lookup-min": "8", "--ngram-prompt-lookup-max": "9"}
    elif method != "mtp":
        flags["--speculative-model"] = "/srv/draft"
    if method == "draft_model":
        flags["--speculative-model-quantization"] = "awq"
    return flags


def expected_fields(method: str, version: str) -> dict[str, Any]:
    fields: dict[str, Any] = {"num_speculative_tokens": 4, "max_model_len": 4096, "draft_tensor_parallel_size": 2}
    if method == "mtp":
        names = {"0.11.0": "mtp", "0.9.0": "deepseek_mtp"}
        fields |= next(({"method": name} for bound, name in names.items() if at_least(version, bound)), {})
    else:
        fields["method"] = method
    if method in ("draft_model", "eagle", "eagle3", "medusa", "mlp_speculator", "dflash"):
        fields |= {"model": DRAFT, "revision": DRAFT_REVISION}
    if method == "draft_model":
        fields["quantization"] = "awq"
    if method in ("ngram", "ngram_gpu"):
        fields |= {"prompt_lookup_min": 8, "prompt_lookup_max": 9}
    if method == "ngram" and at_least(version, "0.24.0"):
        fields["num_speculative_tokens_per_batch_size"] = [[1, 16, 4], [17, 64, 2]]
    if method == "suffix":
        fields |= {
            "suffix_decoding_max_tree_depth": 20,
            "suffix_decoding_max_cached_requests": 7,
            "suffix_decoding_max_spec_factor": 1.5,
            "suffix_decoding_min_token_prob": 0.2,
        }
    return fields


def told(args: list[str]) -> dict[str, str | bool]:
    """Flags with their values, True for a switch."""
    flags: dict[str, str | bool] = {}
    for i, arg in enumerate(args):
        if arg.startswith("--"):
            value = args[i + 1] if i + 1 < len(args) and not args[i + 1].startswith("--") else True
            assert flags.setdefault(arg, value) == value, f"{arg} twice"
    return flags


# Versions whose surface was read, and around them those where the form of the arguments changes.
SHOWN = sorted(
    {*READ["versions"], "0.6.3", "0.6.4", "0.8.1", "0.8.2", "0.8.3", "0.9.0", "0.10.0", "0.11.1", "0.13.0", "0.24.0"},
    key=version_key,
)
CASES = {
    f"m{version.replace('.', '-')}-{method.replace('_', '-')}": (version, method)
    for version in SHOWN
    for method in RUNS
    if runs(method, version) and (version in READ["versions"] or method in ("eagle", "mtp", "ngram"))
}


@pytest.fixture(scope="module")
def everything(render: Any) -> Rendering:
    """All versions and methods in one rendering."""
    engines = {name: asked(method, version) for name, (version, method) in CASES.items()}
    shared = {"modelCache": {"prefetch": {"enabled": False}}, "router": {"enabled": False}, "engines": engines}
    return render({"engine": {"model": {"name": TARGET, "revision": TARGET_REVISION}}, **shared})


@pytest.mark.xdist_group("versions")
@pytest.mark.parametrize("version", SHOWN)
def test_a_version_gets_its_own_arguments_with_every_value(everything: Rendering, version: str) -> None:
    for name, (of, method) in CASES.items():
        if of != version:
            continue
        engine = f"speculative-{name}"
        flags = told(everything.args(engine))
        config = flags.pop("--speculative-config", None)
        assert flags == expected_flags(method, version), name
        if at_least(version, "0.13.0"):
            assert "VLLM_ATTENTION_BACKEND" not in everything.env(engine)
        else:
            assert everything.env(engine)["VLLM_ATTENTION_BACKEND"] == "FLASH_ATTN"
        fields = json.loads(str(config)) if config else {}
        assert fields == (expected_fields(method, version) if at_least(version, "0.8.2") else {}), name
        if version in READ["versions"]:
            assert not [flag for flag in flags if not has("flags", flag, version)], name
            assert not [field for field in fields if not has("fields", field, version)], name
            assert not config or has("flags", "--speculative-config", version), name


@pytest.mark.parametrize(
    ("version", "method", "says"),
    [
        ("0.10.0", "draft_model", "raises NotImplementedError"),
        ("0.14.1", "draft_model", "from 0.15.0"),
        ("0.10.0", "mlp_speculator", "raises ValueError"),
        ("0.8.5", "eagle3", "from 0.9.0"),
        ("0.7.2", "mtp", "from 0.7.3"),
        ("0.33.0", "medusa", "to before 0.33.0"),
        ("0.24.0", "dspark", "from 0.25.0"),
    ],
)
def test_a_method_that_a_version_cannot_run_is_refused_with_both_names(refused, version, method, says):
    needs = facts.engines()["methods"][method]["needsModel"]
    values = (pair if needs else lookup)(engine={"version": version}, speculative={"method": method})
    message = refused(values)
    for part in ("SD155", f"vLLM {version} cannot run {method}", says):
        assert part in message


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


def test_every_release_is_known_and_the_next_is_not() -> None:
    known = facts.engines()["versions"]
    assert [release for release in RELEASES if not facts.in_range(known, release)] == []
    assert facts.in_range(known, "0.34.0") == facts.in_range(known, "0.6.2") == []


@pytest.mark.parametrize(
    ("version", "method", "gpu", "cpu"),
    [
        ("0.7.3", "draft_model", "v0", "v0"),
        ("0.8.5", "ngram", "v0", "v0"),
        ("0.9.2", "draft_model", "v0", "v0"),
        ("0.9.2", "eagle3", "v1", "v0"),
        ("0.10.0", "ngram", "v1", "v1"),
        ("0.21.0", "eagle3", "v1", "v1"),
        ("0.25.0", "eagle3", "v2", "v1"),
        ("0.30.0", "draft_model", "v1", "v1"),
        ("0.31.0", "draft_model", "v2", "v1"),
        ("0.31.0", "ngram", "v1", "v1"),
        ("0.32.0", "ngram", "v2", "v1"),
        ("0.33.0", "suffix", "v1", "v1"),
        ("0.33.0", "dspark", "v2", "v1"),
    ],
)
def test_the_runner_follows_from_version_and_method(version: str, method: str, gpu: str, cpu: str) -> None:
    assert facts.default_runner(version, method) == gpu
    assert facts.default_runner(version, method, cpu=True) == cpu


@pytest.mark.xdist_group("versions")
def test_the_chart_says_the_same_runner(everything: Rendering) -> None:
    for name, (version, method) in CASES.items():
        annotations = everything.workload(f"speculative-{name}")["spec"]["template"]["metadata"]["annotations"]
        assert annotations["vllm-speculative/runner"] == facts.default_runner(version, method), name
