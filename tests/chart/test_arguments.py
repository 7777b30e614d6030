"""Values become the arguments of the engine's version, each one element of a list."""

from __future__ import annotations

import json

import pytest
import yaml

from .conftest import CHART, DRAFT, DRAFT_REVISION, TARGET, TARGET_REVISION, lookup, pair, unescaped

# ngram beside heads takes no model.
NO_DRAFT = ("--set", "engines.old.speculative.model.name=,engines.old.speculative.model.revision=")


def test_a_draft_model_on_0_32_is_one_json_element(render):
    rendering = render(pair(engine={"version": "0.32.0"}))
    assert rendering.speculation() == {
        "method": "draft_model",
        "model": DRAFT,
        "revision": DRAFT_REVISION,
        "num_speculative_tokens": 4,
    }
    assert rendering.flag("--model") == TARGET
    assert rendering.flag("--revision") == TARGET_REVISION
    assert not [arg for arg in rendering.args() if arg.startswith("--speculative-model")]


def test_a_draft_model_on_0_6_3_is_flags(render):
    values = pair(
        engine={"version": "0.6.3.post1", "tensorParallelSize": 2}, speculative={"draftTensorParallelSize": 1}
    )
    rendering = render(values)
    snapshot = "/models/hub/models--meta-llama--Llama-3.2-1B-Instruct/snapshots/" + DRAFT_REVISION
    assert rendering.flag("--speculative-model") == snapshot
    assert rendering.flag("--num-speculative-tokens") == "4"
    assert rendering.flag("--speculative-draft-tensor-parallel-size") == "1"
    assert rendering.flag("--tensor-parallel-size") == "2"
    for later in ("--speculative-config", "--shutdown-timeout", "--use-v2-block-manager"):
        assert later not in rendering.args()


def test_ngram_in_both_forms(render):
    old = render(lookup(engine={"version": "0.6.3"}, speculative={"promptLookup": {"min": 2, "max": 5}}))
    assert old.flag("--speculative-model") == "[ngram]"
    assert (old.flag("--ngram-prompt-lookup-min"), old.flag("--ngram-prompt-lookup-max")) == ("2", "5")
    new = render(lookup(speculative={"promptLookup": {"min": 2, "max": 5}}))
    assert new.speculation() == {
        "method": "ngram",
        "num_speculative_tokens": 3,
        "prompt_lookup_min": 2,
        "prompt_lookup_max": 5,
    }


@pytest.mark.parametrize("method", ["eagle", "eagle3", "medusa", "mtp", "ngram_gpu", "dflash", "dspark"])
def test_every_method_of_0_32_is_named_to_the_engine(render, method):
    drafts = (
        {"model": {"name": DRAFT, "revision": DRAFT_REVISION}} if method not in ("mtp", "ngram_gpu", "dspark") else {}
    )
    assert render(lookup(speculative={"method": method, **drafts})).speculation()["method"] == method


def test_suffix_keeps_its_own_values(render):
    suffix = {"maxTreeDepth": 32, "maxCachedRequests": 1000000, "maxSpecFactor": 1.5, "minTokenProb": 0.2}
    values = lookup(
        engine={"image": {"hasArcticInference": True}},
        speculative={"method": "suffix", "suffix": suffix},
    )
    assert render(values).speculation() == {
        "method": "suffix",
        "num_speculative_tokens": 3,
        "suffix_decoding_max_tree_depth": 32,
        "suffix_decoding_max_cached_requests": 1000000,
        "suffix_decoding_max_spec_factor": 1.5,
        "suffix_decoding_min_token_prob": 0.2,
    }


def test_a_schedule_is_a_list_of_triples(render):
    schedule = [{"from": 1, "to": 16, "tokens": 4}, {"from": 17, "to": 1000000, "tokens": 0}]
    speculation = render(pair(speculative={"schedule": schedule})).speculation()
    assert speculation["num_speculative_tokens_per_batch_size"] == [[1, 16, 4], [17, 1000000, 0]]


def test_speculation_off_says_nothing_of_it(render):
    rendering = render(pair(speculative={"enabled": False}))
    assert not [arg for arg in rendering.args() if "spec" in arg]


def test_large_integers_stay_integers(render):
    values = pair(
        engine={"maxModelLen": 1048576, "maxNumBatchedTokens": 12345678, "kvCacheMemoryBytes": 34359738368},
        speculative={"maxModelLen": 1000000},
    )
    rendering = render(values)
    assert rendering.flag("--max-model-len") == "1048576"
    assert rendering.flag("--max-num-batched-tokens") == "12345678"
    assert rendering.flag("--kv-cache-memory-bytes") == "34359738368"
    assert '"max_model_len":1000000' in rendering.flag("--speculative-config")
    assert "e+" not in rendering.text


def test_numbers_given_on_the_command_line_are_the_same(render):
    over = render(
        pair(), "--set", "engine.maxModelLen=1048576,engine.gpuMemoryUtilization=0.85,speculative.numTokens=7"
    )
    assert over.flag("--max-model-len") == "1048576"
    assert over.flag("--gpu-memory-utilization") == "0.85"
    assert over.speculation()["num_speculative_tokens"] == 7


@pytest.mark.parametrize(
    "text",
    [
        '--override-generation-config={"temperature":0.2}',
        "--chat-template=/srv/a b/$(HOME)/100%.jinja",
        "--chat-template={{ raise_exception('no') }}",
        "--x=$$(A) $B $$ \\ ' \" `c`",
        "--x=<a>&b;é: # {",
        "--x=line\nbreak\ttab",
    ],
)
def test_text_arrives_as_it_was_written(render, text):
    assert text in render(lookup(engine={"extraArgs": [text]})).args()


def test_a_path_with_space_percent_and_dollars_arrives(render):
    name = '/srv/my models/100%/$(HOME)/{{x}}/"q"'
    rendering = render(lookup(engine={"model": {"name": name, "servedName": "a $(b)"}}))
    assert rendering.flag("--model") == name
    assert rendering.flag("--served-model-name") == "a $(b)"
    assert "--revision" not in rendering.args()


def test_a_draft_path_survives_inside_the_json(render):
    name = '/srv/my draft/"q"/$(HOME)'
    values = pair(speculative={"model": {"name": name}})
    assert render(values).speculation()["model"] == name


def test_no_shell_starts_the_engine(render):
    for version in ("0.6.3", "0.32.0"):
        container = render(lookup(engine={"version": version}, speculative={"promptLookup": {"max": 4}})).container()
        assert container["command"] == ["python3", "-m", "vllm.entrypoints.openai.api_server"]


def test_every_typed_value_of_the_engine_reaches_it(render):
    engine = {
        "tensorParallelSize": 4,
        "dataParallelSize": 2,
        "dtype": "bfloat16",
        "quantization": "fp8",
        "kvCacheDtype": "fp8",
        "maxModelLen": 8192,
        "maxNumSeqs": 64,
        "maxNumBatchedTokens": 4096,
        "gpuMemoryUtilization": 0.9,
        "enforceEager": True,
        "trustRemoteCode": True,
        "attentionBackend": "FLASH_ATTN",
        "toolCalling": {"enabled": True, "parser": "hermes"},
    }
    args = render(pair(engine=engine)).args()
    pairs = {
        "--tensor-parallel-size": "4",
        "--data-parallel-size": "2",
        "--dtype": "bfloat16",
        "--quantization": "fp8",
        "--kv-cache-dtype": "fp8",
        "--max-model-len": "8192",
        "--max-num-seqs": "64",
        "--max-num-batched-tokens": "4096",
        "--gpu-memory-utilization": "0.9",
        "--attention-backend": "FLASH_ATTN",
        "--tool-call-parser": "hermes",
    }
    for flag, value in pairs.items():
        assert args[args.index(flag) + 1] == value
    for switch in ("--enforce-eager", "--trust-remote-code", "--enable-auto-tool-choice"):
        assert switch in args


def test_the_attention_backend_of_old_engines_is_a_variable(render):
    values = lookup(
        engine={"version": "0.6.3", "attentionBackend": "FLASH_ATTN"}, speculative={"promptLookup": {"max": 4}}
    )
    rendering = render(values)
    assert rendering.env()["VLLM_ATTENTION_BACKEND"] == "FLASH_ATTN"
    assert "--attention-backend" not in rendering.args()


def test_code_of_the_model_does_not_run_unless_asked(render):
    assert "--trust-remote-code" not in render(lookup()).args()


@pytest.mark.parametrize(
    ("image", "version", "expected"),
    [
        ({"tag": "v0.32.0"}, "", "0.32.0"),
        ({"tag": "v0.6.3.post1"}, "", "0.6.3.post1"),
        ({"tag": "v0.32.0-cu129"}, "", "0.32.0"),
        ({"tag": "nightly"}, "0.32.0", "0.32.0"),
        ({"digest": "sha256:" + "0" * 64}, "0.32.0", "0.32.0"),
        ({}, "", "0.32.0"),
    ],
)
def test_the_version_comes_from_the_values_or_the_tag(render, image, version, expected):
    values = lookup(engine={"image": image, "version": version}, speculative={"promptLookup": {"max": 4}})
    template = render(values).workload()["spec"]["template"]
    assert template["metadata"]["annotations"]["vllm-speculative/engine-version"] == expected


def test_the_runner_can_be_chosen_where_there_are_two(render):
    chosen = render(lookup(engine={"runner": "v1"}))
    assert chosen.env()["VLLM_USE_V2_MODEL_RUNNER"] == "0"
    assert "VLLM_USE_V2_MODEL_RUNNER" not in render(lookup()).env()


def test_a_value_that_one_runner_heeds_chooses_it(render):
    engines = {
        "parallel": {"speculative": {"parallelDrafting": True}},
        "block": {"speculative": {"rejectionSampling": "block"}},
        "old": {"engine": {"version": "0.9.2"}, "speculative": {"method": "ngram", "disableByBatchSize": 8}},
        "free": {},
    }
    rendering = render(pair(engines=engines, speculative={"method": "eagle3"}, router={"enabled": False}), *NO_DRAFT)
    told = {name: rendering.env(f"speculative-{name}").get("VLLM_USE_V2_MODEL_RUNNER") for name in engines}
    assert told == {"parallel": "0", "block": "1", "old": None, "free": None}
    assert rendering.env("speculative-old")["VLLM_USE_V1"] == "0"
    annotations = rendering.workload("speculative-old")["spec"]["template"]["metadata"]["annotations"]
    assert annotations["vllm-speculative/runner"] == "v0"


def test_adapters_are_fetched_pinned_and_told_by_path(render):
    modules = [
        {"servedName": "sql", "name": "org/sql", "revision": "c" * 40},
        {"servedName": "a = b", "name": "/srv/my adapters/$(X)"},
    ]
    values = lookup(lora={"enabled": True, "modules": modules, "maxRank": 32, "targetModules": ["q_proj", "v_proj"]})
    rendering = render(values)
    args = rendering.args()
    first = args.index("--lora-modules")
    assert [json.loads(text) for text in args[first + 1 : first + 3]] == [
        {"name": "sql", "path": f"/models/hub/models--org--sql/snapshots/{'c' * 40}"},
        {"name": "a = b", "path": "/srv/my adapters/$(X)"},
    ]
    assert args[args.index("--lora-target-modules") + 1 :][:2] == ["q_proj", "v_proj"]
    assert rendering.flag("--max-lora-rank") == "32"
    (prefetch,) = rendering.pod()["initContainers"]
    assert prefetch["args"][-2:] == ["org/sql", "c" * 40]


def test_options_of_the_draft_s_loader_keep_their_integers(render):
    load = {"format": "safetensors", "extraConfig": {"threads": 1048576, "nested": {"share": 0.5, "on": True}}}
    assert render(pair(speculative={"load": load})).speculation()["draft_load_config"] == {
        "load_format": "safetensors",
        "model_loader_extra_config": {"threads": 1048576, "nested": {"share": 0.5, "on": True}},
    }
    text = render(pair(speculative={"load": load})).flag("--speculative-config")
    assert '"threads":1048576' in text


def test_every_row_of_the_table_has_a_source():
    table = yaml.safe_load((CHART / "files" / "engines.yaml").read_text())
    rows = [row for argument in table["arguments"] for row in argument["rows"]]
    rows += [row for method in table["methods"].values() for row in method["rows"]]
    rows += table["versions"] + table["command"] + table["runners"]
    rows += [row for limit in table["limits"].values() for row in limit]
    assert len(rows) > 60
    assert [row for row in rows if not row.get("source")] == []


def test_unescaping_is_what_kubernetes_does():
    assert unescaped("$$(HOME)") == "$(HOME)"
    assert json.loads(unescaped('{"a": "$$$$"}')) == {"a": "$$"}
