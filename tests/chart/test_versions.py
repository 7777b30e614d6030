"""Every released vLLM gets arguments that its own source defines, and each value that was set is among them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from specdec import facts
from specdec.facts import version_key

from .conftest import DRAFT, DRAFT_REVISION, TARGET, TARGET_REVISION, Rendering, lookup, pair
from .releases import READ, RUNS, at_least, has, runs


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


@pytest.mark.xdist_group("versions")
def test_the_chart_says_the_same_runner(everything: Rendering) -> None:
    for name, (version, method) in CASES.items():
        annotations = everything.workload(f"speculative-{name}")["spec"]["template"]["metadata"]["annotations"]
        assert annotations["vllm-speculative/runner"] == facts.default_runner(version, method), name
