"""Field cases V: vLLM's speculation in deployment. Each names its case; the reports stand beside the rules."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from specdec.manifests import Manifest

from .helpers import (
    EAGLE3_8B,
    LLAMA_1B,
    LLAMA_8B,
    LLAMA_70B,
    drafted,
    finds,
    found,
    passes,
    pod,
    refuses,
    renders,
    template,
    values,
)

QWEN_72B, QWEN_7B, QWEN_05B = (f"Qwen/Qwen2.5-{size}-Instruct" for size in ("72B", "7B", "0.5B"))


def spec(method: str, model: str | None = None, k: int | None = 3, **more: Any) -> dict[str, Any]:
    given = {"method": method, "model": model, "num_speculative_tokens": k, **more}
    return {key: value for key, value in given.items() if value is not None}


class TestV1VocabularyDiffersByPadding:
    """vLLM compares the padded sizes, whatever the tokenizers are."""

    def test_v1_qwen_72b_with_05b(self) -> None:
        bad = pod(model=QWEN_72B, speculative=spec("draft_model", QWEN_05B))
        finds(bad, "SD201", "vocab_size", "152064", "151936", "n-gram")
        passes(pod(model=QWEN_72B, speculative=spec("draft_model", QWEN_7B), gpus=4, accelerator=None), "SD201")

    def test_v1_r1_distill_32b_with_15b(self) -> None:
        distilled = "deepseek-ai/DeepSeek-R1-Distill-Qwen-{}"
        target = distilled.format("32B")
        finds(pod(model=target, speculative=spec("draft_model", distilled.format("1.5B"))), "SD201", "152064", "151936")
        passes(pod(model=target, speculative=spec("draft_model", distilled.format("7B"))), "SD201")

    @pytest.mark.parametrize(
        ("target", "draft"), [(LLAMA_8B, LLAMA_1B), (LLAMA_70B, LLAMA_1B), ("Qwen/Qwen3-32B", "Qwen/Qwen3-0.6B")]
    )
    def test_v1_pairs_that_agree(self, target: str, draft: str) -> None:
        assert not found(pod(model=target, speculative=spec("draft_model", draft)), "SD201")

    def test_v1_a_build_with_heterogeneous_vocabularies(self) -> None:
        allowed = spec("draft_model", QWEN_05B, use_heterogeneous_vocab=True)
        assert not found(pod(model=QWEN_72B, speculative=allowed), "SD201")
        # The field came with 0.26; before it the engine knows no such thing.
        finds(pod(model=QWEN_72B, speculative=allowed, version="0.20.0"), "SD111", "use_heterogeneous_vocab")

    def test_v1_a_heads_own_smaller_vocabulary_is_right(self) -> None:
        passes(pod(model=LLAMA_8B, speculative=spec("eagle3", EAGLE3_8B)), "SD201")


class TestV2MethodOfAnotherVersionOrRunner:
    @pytest.mark.parametrize("version", ["0.10.0", "0.13.0", "0.14.1"])
    def test_v2_a_draft_model_where_it_is_not_implemented(self, version: str) -> None:
        finds(
            pod(speculative=spec("draft_model", "/models/draft"), version=version), "SD113", version, "NotImplemented"
        )
        refuses(drafted(engine={"version": version}), "SD155", "draft_model", version)

    @pytest.mark.parametrize("version", ["0.15.0", "0.32.0"])
    def test_v2_and_where_it_is_back(self, version: str) -> None:
        passes(pod(speculative=spec("draft_model", "/models/draft"), version=version), "SD113")
        renders(drafted(engine={"version": version}))

    def test_v2_a_runner_that_is_forced_on_a_method(self) -> None:
        given = spec("ngram")
        forced = [("VLLM_USE_V2_MODEL_RUNNER", "1")]
        finds(pod(speculative=given, version="0.30.0", env=forced), "SD125", "VLLM_USE_V2_MODEL_RUNNER=1", "V1 alone")
        passes(pod(speculative=given, version="0.30.0"), "SD125")
        passes(pod(speculative=given, version="0.32.0", env=forced), "SD125")
        refuses(values(engine={"version": "0.30.0", "runner": "v2"}), "SD157", "ngram")
        renders(values(engine={"version": "0.30.0", "runner": "v1"}))

    @pytest.mark.parametrize("tag", ["latest", "nightly"])
    def test_v2_a_tag_that_tells_no_version(self, tag: str) -> None:
        refuses(values(engine={"image": {"tag": tag}}), "SD151", tag)
        renders(values(engine={"image": {"tag": tag}, "version": "0.32.0"}))
        finds(pod(container={"image": f"vllm/vllm-openai:{tag}"}), "SD106", tag)


class TestV3SpeculationOverPipelineStages:
    @pytest.mark.parametrize("version", ["0.6.3", "0.13.0", "0.32.0"])
    def test_v3_no_version_speculates_over_stages(self, version: str) -> None:
        method = {"speculative": {"promptLookup": {"max": 4}}} if version == "0.6.3" else {}
        two = {"engine": {"version": version, "pipelineParallelSize": 2}}
        refuses(values(**{**method, **two}), "SD160", "engine.pipelineParallelSize", "tensorParallelSize")
        renders(values(**{**method, "engine": {"version": version, "tensorParallelSize": 2}}))

    def test_v3_in_anyones_manifest(self) -> None:
        config = spec("mtp", k=1)
        finds(pod("-tp=8", "-pp=2", speculative=config, gpus=16), "SD115", "2 pipeline stages")
        passes(pod("-tp=8", speculative=config, gpus=8), "SD115")


class TestV4FlagsAndFieldsThatCameAndWent:
    def test_v4_one_set_of_values_four_lists_of_arguments(self) -> None:
        given = {"speculative": {"method": "ngram", "numTokens": 4, "promptLookup": {"max": 5}}}
        told = {version: renders(values(engine={"version": version}, **given)) for version in VERSIONS}
        old = told["0.7.3"].args()
        assert old[old.index("--speculative-model") + 1] == "[ngram]"
        assert old[old.index("--num-speculative-tokens") + 1] == "4"
        assert old[old.index("--ngram-prompt-lookup-max") + 1] == "5"
        for version in ("0.9.2", "0.13.0", "0.28.0"):
            assert told[version].speculation() == {
                "method": "ngram",
                "num_speculative_tokens": 4,
                "prompt_lookup_max": 5,
            }, version
        # They differ beside the speculation too: what a version has not is not said.
        assert "--shutdown-timeout" in told["0.28.0"].args()
        assert "--shutdown-timeout" not in told["0.13.0"].args()

    def test_v4_flags_of_before(self) -> None:
        old = ("--speculative-model=[ngram]", "--num-speculative-tokens=4", "--ngram-prompt-lookup-max=5")
        finds(pod(*old, version="0.13.0"), "SD102", "--speculative-model", '"prompt_lookup_max": 5')
        passes(pod(*old, version="0.7.3"), "SD102")

    def test_v4_an_old_name_inside_the_json(self) -> None:
        finds(pod(speculative=spec("ngram", ngram_prompt_lookup_max=5)), "SD111", "did you mean prompt_lookup_max?")
        passes(pod(speculative=spec("ngram", prompt_lookup_max=5)), "SD111")

    def test_v4_the_targets_word_for_the_drafts_size(self) -> None:
        bad = spec("eagle3", "/models/head", tensor_parallel_size=1)
        finds(pod(speculative=bad), "SD111", "draft_tensor_parallel_size")
        passes(pod(speculative=spec("eagle3", "/models/head", draft_tensor_parallel_size=1)), "SD111")

    def test_v4_a_missing_number_of_tokens(self) -> None:
        finds(pod(speculative=spec("ngram", k=None)), "SD110", "num_speculative_tokens is missing")
        # Our chart always says a number: the one that is set, or its task's.
        assert renders(values(speculative={"numTokens": None})).speculation()["num_speculative_tokens"] >= 1
        passes(pod(speculative=spec("ngram")), "SD110")

    def test_v4_disable_by_batch_size_that_did_nothing(self) -> None:
        config = spec("ngram", prompt_lookup_max=4, disable_by_batch_size=16)
        passes(pod(speculative=config, version="0.9.2"), "SD116")
        finds(
            pod(speculative=config, version="0.13.0"), "SD116", "has no effect", "num_speculative_tokens_per_batch_size"
        )
        finds(pod(speculative=config, version="0.28.0"), "SD111", "disable_by_batch_size")

    def test_v4_the_short_flags_beside_the_object(self) -> None:
        finds(pod("--spec-tokens=4", speculative=spec("ngram")), "SD118", "--spec-tokens")
        passes(pod("--spec-method=ngram", "--spec-tokens=4"), "SD118")
        refuses(values(engine={"extraArgs": ["--spec-tokens=4"]}), "SD156", "speculative.numTokens")

    def test_v4_each_way_to_write_it_is_read(self) -> None:
        bad = json.dumps(spec("ngram", k=0))
        for way in ([f"--speculative-config={bad}"], ["-sc", bad], ["--speculative_config", bad]):
            finds(pod(*way), "SD110", "num_speculative_tokens is 0")
        dotted = ["--speculative-config.method=ngram", "--speculative-config.num_speculative_tokens=0"]
        finds(pod(*dotted), "SD110", "num_speculative_tokens is 0")
        passes(pod(*[word.replace("tokens=0", "tokens=3") for word in dotted]), "SD110")


VERSIONS = ("0.7.3", "0.9.2", "0.13.0", "0.28.0")


class TestV5TheDraftsTensorParallelSize:
    def test_v5_two_beside_four(self) -> None:
        bad = spec("eagle3", "/models/head", draft_tensor_parallel_size=2)
        finds(pod("-tp=4", speculative=bad, gpus=4), "SD114", "is 2", "1 or 4")
        refuses(
            drafted("eagle3", EAGLE3_8B, engine={"tensorParallelSize": 4}, speculative={"draftTensorParallelSize": 2}),
            "SD263",
            "draftTensorParallelSize",
        )

    def test_v5_one_for_a_head_is_taken_and_ignored(self) -> None:
        given = spec("eagle3", EAGLE3_8B, draft_tensor_parallel_size=1)
        manifests = pod("-tp=4", model=LLAMA_8B, speculative=given, gpus=4)
        assert not found(manifests, "SD114")
        finds(manifests, "SD229", "ignored", "split over 4")
        passes(pod("-tp=4", model=LLAMA_8B, speculative=spec("eagle3", EAGLE3_8B), gpus=4), "SD229")

    @pytest.mark.parametrize("version", ["0.15.1", "0.24.0", "0.32.0"])
    def test_v5_the_seeds_draft_on_one_gpu_does_not_start(self, version: str) -> None:
        bad = spec("draft_model", "/models/draft", draft_tensor_parallel_size=1)
        finds(pod("-tp=4", speculative=bad, gpus=4, version=version), "SD114", "is 1", "here it can be 4")
        good = spec("draft_model", "/models/draft", draft_tensor_parallel_size=4)
        passes(pod("-tp=4", speculative=good, gpus=4, version=version), "SD114")
        refuses(
            drafted(engine={"version": version, "tensorParallelSize": 4}, speculative={"draftTensorParallelSize": 1}),
            "SD263",
        )
        renders(drafted(engine={"version": version, "tensorParallelSize": 4}))


HEAD = {
    "architectures": ["LlamaForCausalLMEagle3"],
    "model_type": "llama",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 1,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
    "draft_vocab_size": 32000,
    "max_position_embeddings": 131072,
    "torch_dtype": "bfloat16",
}


class TestV6AHeadThatCannotBeLoaded:
    """Its config.json is read from the folder that the pod mounts."""

    @pytest.fixture
    def with_head(self, tmp_path: Path) -> Any:
        def made(
            method: str = "eagle3", *, model: str = LLAMA_8B, version: str = "0.32.0", **config: Any
        ) -> list[Manifest]:
            (tmp_path / "head").mkdir(exist_ok=True)
            given = {key: value for key, value in {**HEAD, **config}.items() if value is not None}
            name = f"head{abs(hash(json.dumps(given, default=str)))}"
            (tmp_path / name).mkdir(exist_ok=True)
            (tmp_path / name / "config.json").write_text(json.dumps(given), encoding="utf-8")
            mounts = [{"name": "shm", "mountPath": "/dev/shm"}, {"name": "heads", "mountPath": "/heads"}]
            volumes = [
                {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "16Gi"}},
                {"name": "heads", "hostPath": {"path": str(tmp_path)}},
            ]
            return pod(
                "--max-model-len=8192",
                model=model,
                speculative=spec(method, f"/heads/{name}"),
                version=version,
                container={"volumeMounts": mounts},
                volumes=volumes,
            )

        return made

    def test_v6a_a_head_of_another_hidden_size(self, with_head: Any) -> None:
        finds(with_head(hidden_size=6144), "SD221", "6144", "4096")
        passes(with_head(), "SD221")
        # The 70B head has a narrower body of its own and says for which states it was made.
        narrow = {"hidden_size": 6144, "num_attention_heads": 48, "target_hidden_size": 8192}
        assert not found(with_head(model=LLAMA_70B, **narrow), "SD221")

    def test_v6b_an_architecture_that_nobody_has(self, with_head: Any) -> None:
        config = {"architectures": ["EagleQwen2ForCausalLM"], "model_type": "eagle", "draft_vocab_size": None}
        finds(with_head("eagle", **config), "SD203", "EagleQwen2ForCausalLM")
        passes(with_head("eagle", **{**config, "architectures": ["EagleLlamaForCausalLM"]}), "SD203")

    def test_v6c_a_head_that_came_later_than_the_engine(self, with_head: Any) -> None:
        config = {"architectures": ["Eagle3DeepseekV2ForCausalLM"]}
        finds(with_head(version="0.16.0", **config), "SD203", "0.16.0", "from 0.18.0 on")
        assert not found(with_head(version="0.32.0", **config), "SD203")

    def test_v6d_a_head_with_four_layers_or_with_one_too_deep(self, with_head: Any) -> None:
        finds(with_head(eagle_aux_hidden_state_layer_ids=[2, 16, 24, 29]), "SD204", "4 layers", "three")
        finds(with_head(eagle_aux_hidden_state_layer_ids=[2, 16, 40]), "SD204", "layer 40", "32 layers")
        passes(with_head(eagle_aux_hidden_state_layer_ids=[2, 16, 29]), "SD204")

    def test_v6d_a_speculators_head_of_another_target_or_forced_to_another_method(self, with_head: Any) -> None:
        def of(verifier: str) -> dict[str, Any]:
            return {
                "speculators_model_type": "eagle3",
                "speculators_config": {"verifier": {"name_or_path": verifier}},
            }

        finds(with_head(**of("Qwen/Qwen3-8B")), "SD206", "Qwen/Qwen3-8B", LLAMA_8B)
        passes(with_head(**of("/data/Llama-3.1-8B-Instruct")), "SD206")
        finds(with_head("eagle", **of(LLAMA_8B)), "SD202", "eagle3 head", "method is eagle")

    def test_v6e_a_target_without_the_interface(self) -> None:
        target = "Qwen/Qwen3-Next-80B-A3B-Instruct"
        finds(pod(model=target, speculative=spec("eagle3", EAGLE3_8B)), "SD223", "qwen3_next", "EAGLE-3")
        assert not found(pod(model=LLAMA_8B, speculative=spec("eagle3", EAGLE3_8B)), "SD223")

    def test_v6f_the_original_files_of_eagle_1(self, with_head: Any) -> None:
        config = {"architectures": ["Model"], "model_type": "eagle", "draft_vocab_size": None}
        finds(with_head("eagle", **config), "SD203", "convert", "EagleModel")
        passes(with_head("eagle", **{**config, "architectures": ["LlamaForCausalLM"]}), "SD203")

    def test_v6g_a_head_that_is_not_named_or_is_the_target(self) -> None:
        finds(pod("-tp=8", speculative=spec("eagle3"), gpus=8), "SD117", "method eagle3 without a model")
        refuses(values(speculative={"method": "eagle3"}), "SD251", "speculative.model.name")
        finds(pod(speculative=spec("eagle3", "/models/target")), "SD205", "/models/target is the target")
        passes(pod("-tp=8", speculative=spec("eagle3", "/models/head"), gpus=8), "SD117")


class TestV7AHeadThatWasTrainedForShorterPrompts:
    def test_v7_two_thousand_positions_and_a_longer_context(self) -> None:
        config = spec("eagle3", EAGLE3_8B)
        finding = finds(
            pod("--max-model-len=16384", model=LLAMA_8B, speculative=config, version="0.24.0"),
            "SD227",
            "2048 positions",
            "max_model_len is 16384",
            "crashes vLLM 0.24.0",
            "or vLLM 0.25.0 and newer",
        )
        assert finding.severity == "error"
        passes(pod("--max-model-len=2048", model=LLAMA_8B, speculative=config, version="0.24.0"), "SD227")
        passes(pod("--max-model-len=16384", model=LLAMA_8B, speculative=config, version="0.32.0"), "SD227")
        shorter = {**config, "max_model_len": 2048}
        passes(pod("--max-model-len=16384", model=LLAMA_8B, speculative=shorter, version="0.24.0"), "SD227")


class TestV9AdaptersWithSpeculation:
    def test_v9_before_0_11_1(self) -> None:
        config = spec("ngram", prompt_lookup_max=4)
        finds(pod("--enable-lora", speculative=config, version="0.10.2"), "SD123", "0.10.2", "LoRA")
        passes(pod("--enable-lora", speculative=config, version="0.11.1"), "SD123")
        passes(pod("--enable-lora", version="0.10.2"), "SD123")
        lora = {"lora": {"enabled": True}}
        refuses(values(engine={"version": "0.10.2"}, **lora), "SD163", "LoRA")
        renders(values(engine={"version": "0.11.1"}, **lora))


class TestV10SuffixDecodingsPackage:
    def test_v10_the_stock_image_lacks_it(self) -> None:
        config = spec("suffix", k=None)
        finds(pod(speculative=config), "SD124", "arctic-inference", "vllm/vllm-openai:v0.32.0")
        own = {"image": "registry.example/vllm-arctic:v0.32.0"}
        passes(pod(speculative=config, container=own), "SD124")
        suffix = {"method": "suffix", "numTokens": None}
        refuses(values(speculative=suffix), "SD257", "arctic-inference")
        ours = {"image": {"hasArcticInference": True, "repository": "registry.example/vllm-arctic"}}
        # An omitted K is right here and wrong for n-gram.
        done = renders(values(speculative=suffix, engine=ours))
        assert done.speculation().get("method") == "suffix"


class TestV12NamesOfMtp:
    @pytest.mark.parametrize(
        ("version", "name"),
        [("0.9.2", "deepseek_mtp"), ("0.10.2", "deepseek_mtp"), ("0.11.0", "mtp"), ("0.32.0", "mtp")],
    )
    def test_v12_our_one_name_becomes_the_versions(self, version: str, name: str) -> None:
        given = {
            "engine": {
                "version": version,
                "model": {"name": "deepseek-ai/DeepSeek-V3", "revision": "a" * 40},
                "tensorParallelSize": 8,
            },
            "speculative": {"method": "mtp", "numTokens": 1},
        }
        done = template(given)
        assert done.ok, done.message
        assert done.speculation()["method"] == name

    def test_v12_family_names_are_known_and_typos_are_not(self) -> None:
        passes(pod(speculative=spec("glm4_moe_mtp", k=1)), "SD112")
        finds(pod(speculative=spec("glm4_mtp", k=1)), "SD112", "glm4_mtp", "did you mean")

    def test_v12_a_target_without_such_layers(self) -> None:
        finds(pod(model=LLAMA_8B, speculative=spec("mtp", k=1)), "SD224", "no multi-token prediction layers")


class TestV13NoTokensLeftToSchedule:
    def test_v13_dflash_with_sixteen_tokens_on_0_26(self) -> None:
        config = spec("dflash", "/models/head", k=16)
        small = ("--max-num-seqs=256", "--max-num-batched-tokens=2048")
        finds(pod(*small, speculative=config, version="0.26.0"), "SD122", "-1792", "max-num-batched-tokens")
        larger = ("--max-num-seqs=256", "--max-num-batched-tokens=12288")
        passes(pod(*larger, speculative=config, version="0.26.0"), "SD122")
        fewer = ("--max-num-seqs=64", "--max-num-batched-tokens=2048")
        passes(pod(*fewer, speculative=config, version="0.26.0"), "SD122")

    @pytest.mark.parametrize("version", ["0.28.0", "0.32.0", "0.33.0"])
    def test_v13_newer_engines_reckon_otherwise(self, version: str) -> None:
        small = ("--max-num-seqs=256", "--max-num-batched-tokens=2048")
        passes(pod(*small, speculative=spec("dflash", "/models/head", k=16), version=version), "SD122")

    def test_v13_the_defaults_of_its_gpu(self) -> None:
        config = spec("dflash", "/models/head", k=16)
        finds(pod(speculative=config, version="0.26.0", accelerator="NVIDIA-L4"), "SD122", "-1792", "2048 tokens")


class TestV17ToolsWithNgram:
    TOOLS = ("--enable-auto-tool-choice", "--tool-call-parser=qwen3_coder")

    def test_v17_short_matches_fold_values_into_keys(self) -> None:
        short = spec("ngram", prompt_lookup_min=2, prompt_lookup_max=4)
        finds(pod(*self.TOOLS, speculative=short), "SD120", "from 2 tokens on", '"prompt_lookup_min": 8')
        passes(pod(*self.TOOLS, speculative=spec("ngram", prompt_lookup_min=8, prompt_lookup_max=12)), "SD120")
        passes(pod(speculative=short), "SD120")

    def test_v17_in_our_chart(self) -> None:
        tools = {"toolCalling": {"enabled": True, "parser": "qwen3_coder"}}
        refuses(values(engine=tools, speculative={"promptLookup": {"min": 2, "max": 4}}), "SD256", "promptLookup.min")
        renders(values(engine=tools, speculative={"promptLookup": {"min": 8, "max": 12}}))
