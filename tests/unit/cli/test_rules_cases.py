"""Reports from the field, each with the smallest manifest that shows it, and the nearest that is right."""

from __future__ import annotations

import json

import pytest
from specdec import rules
from specdec.rules.examples import manifests_of


def found(pod: str, engine_version: str | None = None) -> dict[str, str]:
    return {finding.code: finding.message for finding in rules.check(manifests_of(pod), engine_version)}


def engine(*arguments: str, version: str = "0.32.0", gpus: int = 1, more: str = "") -> str:
    argv = json.dumps(["/models/target", *arguments])
    return f"""
containers:
  - image: vllm/vllm-openai:v{version}
    args: {argv}
    resources: {{limits: {{nvidia.com/gpu: "{gpus}", memory: 64Gi}}}}
{more}
"""


def speculative(config: dict[str, object], *arguments: str, version: str = "0.32.0", gpus: int = 1) -> str:
    return engine("--speculative-config", json.dumps(config), *arguments, version=version, gpus=gpus)


DRAFT = {"method": "draft_model", "model": "/models/draft", "num_speculative_tokens": 5}
NGRAM = {"method": "ngram", "num_speculative_tokens": 3}


class TestVersionsAndMethods:
    @pytest.mark.parametrize("version", ["0.10.0", "0.10.2", "0.13.0", "0.14.1"])
    def test_v2_a_draft_model_where_the_engine_raises(self, version: str) -> None:
        assert "NotImplementedError" in found(speculative(DRAFT, version=version))["SD113"]

    @pytest.mark.parametrize("version", ["0.9.2", "0.15.0", "0.15.1", "0.32.0"])
    def test_v2_and_where_it_runs(self, version: str) -> None:
        assert "SD113" not in found(speculative(DRAFT, version=version))

    @pytest.mark.parametrize("flag", ["--speculative-model=/m", "--num-speculative-tokens=4"])
    def test_v4_flags_of_before_0_8(self, flag: str) -> None:
        assert "SD102" in found(engine(flag, version="0.9.2"))
        assert "SD102" not in found(engine(flag, version="0.6.3"))
        assert "SD101" not in found(engine(flag, version="0.6.3"))

    def test_v4_an_old_flags_name_inside_the_json(self) -> None:
        manifests = manifests_of(speculative(NGRAM | {"ngram_prompt_lookup_max": 5}))
        finding = next(finding for finding in rules.check(manifests) if finding.code == "SD111")
        assert finding.fix == "did you mean prompt_lookup_max?"

    def test_v4_tensor_parallel_size_is_a_field_that_only_warns_of_itself(self) -> None:
        manifests = manifests_of(speculative(DRAFT | {"tensor_parallel_size": 1}))
        finding = next(finding for finding in rules.check(manifests) if finding.code == "SD111")
        assert finding.fix == "did you mean draft_tensor_parallel_size?"

    def test_v4_disable_by_batch_size_did_nothing_and_then_went(self) -> None:
        config = NGRAM | {"disable_by_batch_size": 32}
        assert "SD116" in found(speculative(config, version="0.11.0"))
        assert not {"SD111", "SD116"} & set(found(speculative(config, version="0.9.2")))
        assert "SD111" in found(speculative(config, version="0.18.0"))

    def test_v4_the_short_flags_of_newer_versions(self) -> None:
        assert "SD118" in found(speculative(NGRAM, "--spec-tokens=4"))
        assert "SD118" not in found(engine("--spec-method=ngram", "--spec-tokens=4"))
        assert "SD101" in found(engine("--spec-method=ngram", version="0.18.0"))

    @pytest.mark.parametrize("tag", ["latest", "nightly", "nightly-abcdef0"])
    def test_v2_a_tag_that_names_no_version(self, tag: str) -> None:
        pod = "containers:\n  - {image: 'vllm/vllm-openai:" + tag + "', args: [/models/target]}"
        assert "SD106" in found(pod)
        assert "SD106" not in found(pod, engine_version="0.32.0")

    def test_the_version_that_is_asked_about_wins_over_the_image(self) -> None:
        assert "SD102" in found(engine("--speculative-model=/m", version="0.6.3"), engine_version="0.32.0")
        assert "SD102" not in found(engine("--speculative-model=/m"), engine_version="0.6.3")


class TestDraftTensorParallelSize:
    def test_v5_one_beside_four_for_a_draft_model(self) -> None:
        config = DRAFT | {"draft_tensor_parallel_size": 1}
        assert "here it can be 4" in found(speculative(config, "-tp=4", gpus=4))["SD114"]

    @pytest.mark.parametrize(("size", "wrong"), [(1, False), (4, False), (2, True)])
    def test_v5_a_head_may_have_one_or_the_targets(self, size: int, wrong: bool) -> None:
        head = {"method": "eagle3", "model": "/models/head", "num_speculative_tokens": 3}
        config = head | {"draft_tensor_parallel_size": size}
        assert ("SD114" in found(speculative(config, "-tp=4", gpus=4))) is wrong

    def test_v5_an_old_engine_takes_one_alone(self) -> None:
        flags = ["--speculative-model=/m", "--num-speculative-tokens=4", "-tp=4"]
        of = "--speculative-draft-tensor-parallel-size"
        assert "SD114" in found(engine(*flags, f"{of}=4", version="0.6.3", gpus=4))
        assert "SD114" not in found(engine(*flags, f"{of}=1", version="0.6.3", gpus=4))


class TestTokensAndFields:
    @pytest.mark.parametrize("tokens", [0, -1, "0", "many", 2.5, True])
    def test_k_has_to_be_a_whole_number_above_zero(self, tokens: object) -> None:
        assert "SD110" in found(speculative(NGRAM | {"num_speculative_tokens": tokens}))

    def test_a_draft_model_has_no_k_of_its_own_and_mtp_does(self) -> None:
        assert "SD110" in found(speculative({"method": "draft_model", "model": "/models/draft"}))
        assert "SD110" not in found(speculative({"method": "mtp"}))

    def test_null_is_no_speculation(self) -> None:
        assert not [code for code in found(engine("--speculative-config", "null")) if code.startswith("SD1")]

    def test_v10_suffix_decoding_needs_no_k_and_ngram_does(self) -> None:
        assert "SD110" not in found(speculative({"method": "suffix"}))
        assert "SD110" in found(speculative({"method": "ngram"}))

    @pytest.mark.parametrize("method", ["eagle", "eagle3", "medusa", "mlp_speculator", "draft_model"])
    def test_v6_a_method_that_needs_a_model(self, method: str) -> None:
        config = {"method": method, "num_speculative_tokens": 3}
        assert "SD117" in found(speculative(config))
        assert "SD117" not in found(speculative(config | {"model": "/models/head"}))

    @pytest.mark.parametrize("method", ["ngram", "suffix", "mtp"])
    def test_v6_and_one_that_does_not(self, method: str) -> None:
        assert "SD117" not in found(speculative({"method": method, "num_speculative_tokens": 3}))

    def test_v12_family_names_of_mtp_are_methods(self) -> None:
        assert "SD112" not in found(speculative({"method": "qwen3_next_mtp", "num_speculative_tokens": 1}))
        assert "SD112" in found(speculative({"method": "qwen9_mtp", "num_speculative_tokens": 1}))

    def test_a_method_that_came_later(self) -> None:
        config = {"method": "dflash", "model": "/models/head", "num_speculative_tokens": 7}
        assert "SD112" in found(speculative(config, version="0.14.0"))
        assert "SD112" not in found(speculative(config, version="0.32.0"))

    def test_hyphens_in_field_names_are_the_engines_own_spelling_too(self) -> None:
        assert not {"SD110", "SD111"} & set(found(speculative({"method": "ngram", "num-speculative-tokens": 3})))

    def test_v3_pipeline_stages(self) -> None:
        assert "SD115" in found(speculative(NGRAM, "--pipeline-parallel-size=2", gpus=2))
        assert "SD115" not in found(engine("--pipeline-parallel-size=2", gpus=2))

    def test_v17_tools_with_short_matches(self) -> None:
        tools = ("--enable-auto-tool-choice", "--tool-call-parser=hermes")
        assert "SD120" in found(speculative(NGRAM, *tools))
        assert "SD120" not in found(speculative(NGRAM | {"prompt_lookup_min": 8, "prompt_lookup_max": 8}, *tools))
        assert "SD120" not in found(speculative(NGRAM))


class TestJsonBrokenOnTheWay:
    @pytest.mark.parametrize(
        "value",
        [
            "map[method:ngram num_speculative_tokens:3]",
            '\'{"method": "ngram", "num_speculative_tokens": 3}\'',
            "{method: ngram}",
            "[1]",
            "",
            '{"method": "ngram"',
        ],
    )
    def test_c1_what_templates_and_shells_make_of_it(self, value: str) -> None:
        assert "SD103" in found(engine("--speculative-config", value))

    def test_c1_a_variable_that_nobody_sets(self) -> None:
        assert "SD105" in found(engine("--max-model-len", "$(LEN)"))
        assert "SD105" not in found(engine("--override-generation-config", '{"a": "$$(LEN)"}'))

    def test_the_value_is_read_after_kubernetes_has_put_the_variable_in(self) -> None:
        pod = engine("--speculative-config", '{"method": "ngram", "num_speculative_tokens": $(K)}')
        pod = pod.replace("    resources:", "    env: [{name: K, value: '0'}]\n    resources:")
        assert "SD110" in found(pod)


class TestPods:
    def test_c2_shared_memory_for_two_ranks(self) -> None:
        none = engine("-tp=2", gpus=2, more="volumes: []")
        assert "SD420" in found(none)
        assert "SD420" not in found(engine("-tp=2", gpus=2))
        assert "SD420" not in found(engine(more="volumes: []"))

    def test_c2_a_volume_on_disk_is_no_shared_memory(self) -> None:
        assert "SD420" in found(engine("-tp=2", gpus=2, more="volumes: [{name: shm, emptyDir: {sizeLimit: 1Gi}}]"))

    @pytest.mark.parametrize(("gpus", "code"), [(1, "SD422"), (2, "SD422"), (4, None), (8, "SD423")])
    def test_gpus_are_the_product_of_the_parallel_sizes(self, gpus: int, code: str | None) -> None:
        assert {"SD422", "SD423"} & set(found(engine("-tp=2", "-dp=2", gpus=gpus))) == ({code} if code else set())

    @pytest.mark.parametrize(("period", "wrong"), [(75, True), (76, False)])
    def test_c9_the_grace_period_covers_hook_and_drain(self, period: int, wrong: bool) -> None:
        pod = engine("--shutdown-timeout=60", more=f"terminationGracePeriodSeconds: {period}")
        assert ("SD410" in found(pod)) is wrong

    def test_c9_a_hook_that_sleeps_in_a_shell(self) -> None:
        pod = """
terminationGracePeriodSeconds: 30
containers:
  - lifecycle: {preStop: {sleep: null, exec: {command: [sh, -c, "sleep 40"]}}}
    args: [/models/target]
"""
        assert "SD410" in found(pod)

    def test_c9_versions_without_a_drain_are_not_asked_for_one(self) -> None:
        assert "SD411" in found(engine())
        assert "SD411" not in found(engine(version="0.16.0"))

    @pytest.mark.parametrize(
        ("shell", "script", "kept"),
        [
            ("sh", "vllm serve /models/target", True),
            ("sh", "exec vllm serve /models/target", False),
            ("bash", "vllm serve /models/target", False),
            ("bash", "pip install x && exec vllm serve /models/target", False),
            ("bash", "vllm serve /models/target | tee /log", True),
            ("bash", "vllm serve /models/target; sleep infinity", True),
            ("/bin/bash", "vllm serve /models/target &\nwait", True),
        ],
    )
    def test_c9_who_hears_the_signal(self, shell: str, script: str, kept: bool) -> None:
        pod = f"containers:\n  - command: [{shell}, -c]\n    args: [{json.dumps(script)}]"
        assert ("SD412" in found(pod)) is kept

    def test_c3_a_liveness_probe_that_waits_long_enough(self) -> None:
        probe = "{httpGet: {path: /health, port: 8000}, initialDelaySeconds: %d}"
        pod = "containers:\n  - args: [Qwen/Qwen3-0.6B]\n    startupProbe: null\n    livenessProbe: " + probe
        assert "SD401" in found(pod.replace("Qwen/Qwen3-0.6B", "someone/unheard-of") % 0)
        assert "SD401" not in found(pod % 3600)

    def test_c5_a_rollout_with_and_without_spare_gpus(self) -> None:
        deployment = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: engine}
spec:
  replicas: %d
  strategy: %s
  template: {spec: {containers: [{name: a, image: "vllm/vllm-openai:v0.32.0", args: [/models/target],
    resources: {limits: {nvidia.com/gpu: 4}}}]}}
"""
        assert "4 spare GPUs" in found(deployment % (1, "{}"))["SD424"]
        assert "SD424" not in found(deployment % (1, "{type: Recreate}"))
        assert "SD424" not in found(deployment % (4, "{}"))
        assert "SD424" in found(deployment % (4, "{rollingUpdate: {maxSurge: 1, maxUnavailable: 0}}"))


def pair(target: str, draft: str) -> str:
    config = {"method": "draft_model", "model": draft, "num_speculative_tokens": 3}
    return speculative(config).replace("/models/target", target)


class TestPairs:
    @pytest.mark.parametrize(
        ("target", "draft"),
        [
            ("Qwen/Qwen2.5-72B-Instruct", "Qwen/Qwen2.5-0.5B-Instruct"),
            ("deepseek-ai/DeepSeek-R1-Distill-Qwen-32B", "deepseek-ai/DeepSeek-R1-Distill-Qwen-1.5B"),
        ],
    )
    def test_v1_vocabularies_that_differ_by_padding(self, target: str, draft: str) -> None:
        message = found(pair(target, draft))["SD201"]
        assert "152064" in message
        assert "151936" in message

    @pytest.mark.parametrize(
        ("target", "draft"),
        [
            ("Qwen/Qwen2.5-72B-Instruct", "Qwen/Qwen2.5-7B-Instruct"),
            ("meta-llama/Llama-3.3-70B-Instruct", "meta-llama/Llama-3.2-1B-Instruct"),
            ("Qwen/Qwen3-32B", "Qwen/Qwen3-0.6B"),
            ("Qwen/Qwen2.5-72B-Instruct", "someone/unheard-of"),
        ],
    )
    def test_v1_and_pairs_that_agree_or_are_not_known(self, target: str, draft: str) -> None:
        assert "SD201" not in found(pair(target, draft))

    def test_v1_a_head_follows_another_rule(self) -> None:
        config = {"method": "eagle3", "model": "Qwen/Qwen2.5-0.5B-Instruct", "num_speculative_tokens": 3}
        assert "SD201" not in found(speculative(config).replace("/models/target", "Qwen/Qwen2.5-72B-Instruct"))


class TestStorage:
    OFFLINE = """
containers:
  - args:
      - Qwen/Qwen3-8B
      - --speculative-config
      - '{"method": "eagle3", "model": "org/head", "num_speculative_tokens": 3}'
    env: [{name: HF_HUB_OFFLINE, value: "1"}]
"""

    def test_c16_offline_and_nowhere_to_find_the_draft(self) -> None:
        messages = [f.message for f in rules.check(manifests_of(self.OFFLINE)) if f.code == "SD428"]
        assert len(messages) == 2
        assert any("org/head" in message for message in messages)

    def test_c16_offline_with_what_can_hold_them(self) -> None:
        claim = "volumes: [{name: shm, persistentVolumeClaim: {claimName: models}}]"
        assert "SD428" not in found(self.OFFLINE + claim)
        assert "SD428" not in found(self.OFFLINE + "initContainers: [{name: fetch}]")

    def test_c8_a_read_only_root_needs_a_temporary_directory(self) -> None:
        pod = "containers:\n  - securityContext: {readOnlyRootFilesystem: true}\n"
        assert "SD429" in found(pod)
        assert "SD429" in found(pod + "    volumeMounts: [{name: shm, mountPath: /tmp, readOnly: true}]")
        assert "SD429" not in found(pod + "    volumeMounts: [{name: shm, mountPath: /tmp}]")
        scratch = "    volumeMounts: [{name: shm, mountPath: /scratch}]\n    env: [{name: TMPDIR, value: /scratch/tmp}]"
        assert "SD429" not in found(pod + scratch)


class TestSecrets:
    @pytest.mark.parametrize("name", ["HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "VLLM_API_KEY", "AWS_SECRET_ACCESS_KEY"])
    def test_c16_a_literal_variable(self, name: str) -> None:
        pod = f"containers:\n  - env: [{{name: {name}, value: s3cr3t-value}}]"
        findings = rules.check(manifests_of(pod))
        assert "SD702" in {finding.code for finding in findings}
        assert not any("s3cr3t-value" in str(finding) for finding in findings), "the secret is in the report"

    @pytest.mark.parametrize("name", ["TOKENIZERS_PARALLELISM", "HF_TOKEN_PATH", "VLLM_MAX_TOKEN"])
    def test_names_that_only_look_like_it(self, name: str) -> None:
        assert "SD702" not in found(f"containers:\n  - env: [{{name: {name}, value: 'true'}}]")

    def test_c16_an_argument(self) -> None:
        assert "SD702" in found(engine("--api-key", "sk-1"))
        assert "SD702" not in found(engine("--api-key", "$(KEY)"))
