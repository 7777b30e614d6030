"""Bad values, each with the code and words that it is refused with, beside the nearest good value, which passes.

A rule that refuses everything fails on the good half, and one that refuses nothing on the bad half.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import pytest
from specdec.manifests import Manifest

from .helpers import EAGLE3_8B, LLAMA_8B, LLAMA_70B, drafted, finds, passes, pod, refuses, renders, values


class Row(NamedTuple):
    """What is wrong, the code, what the message says, and what would be right."""

    bad: Any
    code: str
    says: str
    good: Any


def spec(method: str = "ngram", k: Any = 3, **more: Any) -> dict[str, Any]:
    given = {"method": method, "num_speculative_tokens": k, **more}
    return {key: value for key, value in given.items() if value is not None}


def speculating(config: dict[str, Any], *args: str, **more: Any) -> list[Manifest]:
    return pod(*args, speculative=config, **more)


def flags(*args: str, **more: Any) -> list[Manifest]:
    return pod(*args, **more)


def env(name: str, value: str, **more: Any) -> list[Manifest]:
    return pod(env=[(name, value)], **more)


def container(**fields: Any) -> list[Manifest]:
    return pod(container=fields)


def probe(name: str = "livenessProbe", path: str = "/health", port: Any = 8000, **more: Any) -> list[Manifest]:
    return container(**{name: {"httpGet": {"path": path, "port": port}, **more}})


KEY = {"name": "VLLM_API_KEY", "valueFrom": {"secretKeyRef": {"name": "clients", "key": "key"}}}
HEAD, DRAFT = "/models/head", "/models/draft"
SCHEDULE = "num_speculative_tokens_per_batch_size"
TOOLS = ("--enable-auto-tool-choice", "--tool-call-parser=hermes")

ARGUMENTS = [
    Row(flags("--max-modl-len=8192"), "SD101", "did you mean --max-model-len?", flags("--max-model-len=8192")),
    Row(
        flags("--swap-space=4", version="0.32.0"),
        "SD101",
        "no flag --swap-space",
        flags("--swap-space=4", version="0.10.2"),
    ),
    Row(
        flags("--shutdown-timeout=60", version="0.16.0"),
        "SD101",
        "from 0.18.0 on",
        flags("--shutdown-timeout=60", version="0.18.0"),
    ),
    Row(
        flags("--speculative-model=/m", "--num-speculative-tokens=4"),
        "SD102",
        "has no --speculative-model",
        flags("--speculative-model=/m", "--num-speculative-tokens=4", version="0.7.3"),
    ),
    Row(
        flags("--speculative-config", "map[method:ngram]"),
        "SD103",
        "is not JSON",
        flags("--speculative-config", '{"method": "ngram", "num_speculative_tokens": 3}'),
    ),
    Row(flags("--speculative-config", "[]"), "SD103", "has to be a JSON object", flags("--speculative-config", "null")),
    Row(flags("--max-num-seqs", "many"), "SD104", "'many', not a number", flags("--max-num-seqs", "64")),
    Row(flags("--max-model-len", "32 k"), "SD104", "not a number", flags("--max-model-len", "32k")),
    Row(flags("--port", "http"), "SD104", "'http', not a number", flags("--port", "8000")),
    Row(flags("--max-model-len", "$(LEN)"), "SD105", "$(LEN) is not a variable", flags("--max-model-len=8192")),
    Row(
        container(image="vllm/vllm-openai:latest"),
        "SD106",
        "not checked against",
        container(image="vllm/vllm-openai:v0.32.0"),
    ),
    Row(flags("--max-num-seqs=0"), "SD107", "--max-num-seqs is 0", flags("--max-num-seqs=1")),
    Row(flags("--tensor-parallel-size=0"), "SD107", "--tensor-parallel-size is 0", flags("--tensor-parallel-size=1")),
    Row(flags("--max-model-len=-2"), "SD107", "--max-model-len is -2", flags("--max-model-len=-1")),
    Row(
        flags("--max-num-seqs=256", "--max-num-batched-tokens=255"),
        "SD108",
        "255, less than --max-num-seqs 256",
        flags("--max-num-seqs=256", "--max-num-batched-tokens=256"),
    ),
    Row(flags("--dtype=half", "--dtype=bfloat16"), "SD109", "the last one holds", flags("--dtype=bfloat16")),
    Row(flags("--dtype=bf16"), "SD130", "did you mean bfloat16?", flags("--dtype=bfloat16")),
    Row(flags("--kv-cache-dtype=fp8_e4m4"), "SD130", "did you mean fp8_e4m3?", flags("--kv-cache-dtype=fp8_e4m3")),
    Row(flags("--quantization=gptq-marlin"), "SD130", "did you mean gptq_marlin?", flags("--quantization=gptq_marlin")),
    Row(
        env("VLLM_ATTENTION_BACKEND", "FLASH_ATTN", version="0.15.0"),
        "SD131",
        "--attention-backend",
        env("VLLM_ATTENTION_BACKEND", "FLASH_ATTN", version="0.12.0"),
    ),
    Row(
        env("VLLM_USE_V1", "0", version="0.12.0"),
        "SD131",
        "does not read VLLM_USE_V1",
        env("VLLM_USE_V1", "1", version="0.10.2"),
    ),
    Row(flags(TOOLS[0]), "SD132", "without --tool-call-parser", flags(*TOOLS)),
    Row(
        flags("--kv-cache-memory-bytes=20G", "--gpu-memory-utilization=0.9"),
        "SD133",
        "mean nothing",
        flags("--kv-cache-memory-bytes=20G"),
    ),
    Row(
        flags("--gpu-memory-utilization=92"),
        "SD301",
        "the share of memory is 92",
        flags("--gpu-memory-utilization=0.92"),
    ),
    Row(flags("--gpu-memory-utilization=0"), "SD301", "the share of memory is 0", flags("--gpu-memory-utilization=1")),
]

SPECULATION = [
    Row(speculating(spec(k=0)), "SD110", "is 0", speculating(spec(k=1))),
    Row(speculating(spec(k=-1)), "SD110", "is -1", speculating(spec(k="3"))),
    Row(speculating(spec(k=2.5)), "SD110", "is 2.5", speculating(spec(k=2))),
    Row(speculating(spec(k=None)), "SD110", "is missing", speculating(spec("mtp", k=None))),
    Row(speculating(spec(promptLookupMax=4)), "SD111", "'promptLookupMax'", speculating(spec(prompt_lookup_max=4))),
    Row(
        speculating(spec("draft_model", model=DRAFT, tensor_parallel_size=1)),
        "SD111",
        "draft_tensor_parallel_size",
        speculating(spec("draft_model", model=DRAFT, draft_tensor_parallel_size=1)),
    ),
    Row(
        speculating(spec("eagle-3", model=HEAD)),
        "SD112",
        "did you mean eagle3?",
        speculating(spec("eagle3", model=HEAD)),
    ),
    Row(
        speculating(spec("dflash", model=HEAD), version="0.18.0"),
        "SD112",
        "0.18.0 has no method 'dflash'",
        speculating(spec("dflash", model=HEAD), version="0.20.0"),
    ),
    Row(
        speculating(spec("draft_model", model=DRAFT), version="0.14.1"),
        "SD113",
        "raises NotImplementedError on method draft_model",
        speculating(spec("draft_model", model=DRAFT), version="0.15.0"),
    ),
    Row(
        speculating(spec("eagle3", model=HEAD, draft_tensor_parallel_size=2), "-tp=4", gpus=4),
        "SD114",
        "is 2; here it can be 1 or 4",
        speculating(spec("eagle3", model=HEAD, draft_tensor_parallel_size=4), "-tp=4", gpus=4),
    ),
    Row(speculating(spec(), "-pp=2", gpus=2), "SD115", "2 pipeline stages", speculating(spec(), "-tp=2", gpus=2)),
    Row(
        speculating(spec(disable_by_batch_size=32), version="0.14.0"),
        "SD116",
        "disable_by_batch_size has no effect",
        speculating(spec(disable_by_batch_size=32, prompt_lookup_max=4), version="0.9.2"),
    ),
    Row(speculating(spec("medusa")), "SD117", "medusa without a model", speculating(spec("medusa", model=HEAD))),
    Row(
        speculating(spec(), "--spec-tokens=4"),
        "SD118",
        "both give num_speculative_tokens",
        flags("--spec-method=ngram", "--spec-tokens=4"),
    ),
    Row(
        speculating(spec(prompt_lookup_min=5, prompt_lookup_max=3)),
        "SD119",
        "5 is above prompt_lookup_max 3",
        speculating(spec(prompt_lookup_min=3, prompt_lookup_max=5)),
    ),
    Row(
        speculating(spec(prompt_lookup_max=0)),
        "SD119",
        "prompt_lookup_max is 0",
        speculating(spec(prompt_lookup_max=1)),
    ),
    Row(
        speculating(spec(prompt_lookup_min=2, prompt_lookup_max=4), *TOOLS),
        "SD120",
        "from 2 tokens on",
        speculating(spec(prompt_lookup_min=8, prompt_lookup_max=8), *TOOLS),
    ),
    Row(
        speculating(spec(**{SCHEDULE: [[1, 16, 3]]}), "-dp=2", gpus=2),
        "SD121",
        "the engine drops this schedule",
        speculating(spec(**{SCHEDULE: [[1, 16, 3]]})),
    ),
    Row(
        speculating(spec(), "--enable-lora", version="0.11.0"),
        "SD123",
        "LoRA",
        speculating(spec(), "--enable-lora", version="0.11.1"),
    ),
    Row(
        speculating(spec("suffix", k=None)),
        "SD124",
        "arctic-inference",
        speculating(spec("suffix", k=None), container={"image": "registry.example/arctic:v0.32.0"}),
    ),
    Row(
        speculating(
            spec("suffix", k=None), env=[("VLLM_USE_V2_MODEL_RUNNER", "1")], container={"image": "a/b-vllm:v0.32.0"}
        ),
        "SD125",
        "suffix runs on V1 alone",
        speculating(
            spec("suffix", k=None), env=[("VLLM_USE_V2_MODEL_RUNNER", "0")], container={"image": "a/b-vllm:v0.32.0"}
        ),
    ),
    Row(
        speculating(spec(**{SCHEDULE: [[1, 16, 3], [16, 32, 2]]})),
        "SD126",
        "[1, 16, 3] and [16, 32, 2] overlap",
        speculating(spec(**{SCHEDULE: [[1, 16, 3], [17, 32, 2]]})),
    ),
    Row(
        speculating(spec(**{SCHEDULE: [[2, 16, 3]]})),
        "SD126",
        "begins at 2",
        speculating(spec(**{SCHEDULE: [[1, 16, 3]]})),
    ),
    Row(
        speculating(spec(**{SCHEDULE: [[1, 16, 5]]})),
        "SD127",
        "with 5 tokens",
        speculating(spec(k=5, **{SCHEDULE: [[1, 16, 5]]})),
    ),
    Row(
        speculating(spec("draft_model", model=DRAFT, max_model_len=8193), "--max-model-len=8192"),
        "SD128",
        "8193, the target's 8192",
        speculating(spec("draft_model", model=DRAFT, max_model_len=8192), "--max-model-len=8192"),
    ),
    Row(
        speculating(spec("draft_model", model="Qwen/Qwen2.5-0.5B-Instruct"), model="Qwen/Qwen2.5-7B-Instruct"),
        "SD201",
        "152064",
        speculating(spec("draft_model", model="Qwen/Qwen2.5-0.5B-Instruct"), model="Qwen/Qwen2.5-3B-Instruct"),
    ),
    Row(
        speculating(spec("eagle", model=EAGLE3_8B), model=LLAMA_8B),
        "SD202",
        "is an eagle3 head",
        speculating(spec("eagle3", model=EAGLE3_8B), model=LLAMA_8B),
    ),
    Row(
        speculating(spec("eagle3", model="/models/target")),
        "SD205",
        "is the target",
        speculating(spec("eagle3", model=HEAD)),
    ),
    Row(
        speculating(spec("eagle3", model="AngelSlim/Qwen3-32B_eagle3"), model="Qwen/Qwen3-8B"),
        "SD221",
        "hidden states of 5120",
        speculating(spec("eagle3", model="AngelSlim/Qwen3-8B_eagle3"), model="Qwen/Qwen3-8B"),
    ),
    Row(
        flags("-tp=8", model="Qwen/Qwen2.5-7B-Instruct", gpus=8),
        "SD321",
        "does not divide the 28 attention heads",
        flags("-tp=4", model="Qwen/Qwen2.5-7B-Instruct", gpus=4),
    ),
    Row(
        flags("-tp=2", "--max-model-len=8192", model=LLAMA_70B, gpus=2, accelerator="NVIDIA-L4"),
        "SD320",
        "the weights alone do not fit",
        flags("-tp=4", "--max-model-len=8192", model=LLAMA_70B, gpus=4, accelerator="NVIDIA-H100-80GB-HBM3"),
    ),
]

PODS = [
    Row(probe(path="/healthz"), "SD405", "/healthz", probe(path="/health")),
    Row(probe("readinessProbe", port=8080), "SD406", "the engine listens on 8000", probe("readinessProbe", port=8000)),
    Row(probe(failureThreshold=1), "SD407", "after 1 failures", probe(failureThreshold=3)),
    Row(container(readinessProbe=None), "SD403", "no readiness probe", probe("readinessProbe")),
    Row(container(livenessProbe={"tcpSocket": {"port": 8000}}), "SD404", "asks the port", probe()),
    Row(
        flags("--shutdown-timeout=60", terminationGracePeriodSeconds=75),
        "SD410",
        "75 s ends before preStop (15 s) and the drain (60 s)",
        flags("--shutdown-timeout=60", terminationGracePeriodSeconds=76),
    ),
    Row(container(args=["/models/target"]), "SD411", "--shutdown-timeout is not set", flags("--shutdown-timeout=60")),
    Row(
        container(lifecycle=None, args=["/models/target", "--shutdown-timeout=60"]),
        "SD413",
        "takes no new requests",
        container(lifecycle={"preStop": {"sleep": {"seconds": 5}}}, args=["/models/target", "--shutdown-timeout=60"]),
    ),
    Row(flags("-tp=2", gpus=2, volumes=[]), "SD420", "share 64 MiB", flags("-tp=1", volumes=[])),
    Row(flags("-tp=4", gpus=2), "SD422", "start 4 ranks, the container has 2 GPUs", flags("-tp=4", gpus=4)),
    Row(flags("-tp=2", gpus=8), "SD423", "has 8 GPUs, the arguments use 2", flags("-tp=8", gpus=8)),
    Row(
        container(resources={"requests": {"nvidia.com/gpu": "2"}}),
        "SD435",
        "a request of 2 nvidia.com/gpu and a limit of 1",
        container(resources={"requests": {"nvidia.com/gpu": "1"}}),
    ),
    Row(env("NVIDIA_VISIBLE_DEVICES", "all"), "SD439", "is all", env("NVIDIA_VISIBLE_DEVICES", "void")),
    Row(
        flags(securityContext={"runAsUser": 2000}),
        "SD441",
        "user 2000",
        flags(securityContext={"runAsUser": 2000}, env=[("HOME", "/tmp")]),
    ),
    Row(flags("--trust-remote-code"), "SD701", "run code of its own", flags("--no-trust-remote-code")),
    Row(env("HF_TOKEN", "hf_x"), "SD702", "the value of HF_TOKEN", env("HF_HOME", "/models")),
    Row(
        flags("--api-key=sk-x"),
        "SD702",
        "the value of --api-key",
        container(args=["/models/target", "--shutdown-timeout=60", "--api-key=$(VLLM_API_KEY)"], env=[KEY]),
    ),
    Row(
        container(securityContext={"privileged": True}),
        "SD706",
        "privileged",
        container(securityContext={"privileged": False}),
    ),
    Row(flags(automountServiceAccountToken=True), "SD708", "Kubernetes API", flags(automountServiceAccountToken=False)),
    Row(env("VLLM_SERVER_DEV_MODE", "1"), "SD710", "anyone may", env("VLLM_SERVER_DEV_MODE", "0")),
    Row(
        flags("--allowed-local-media-path=/"), "SD711", "every file below /", flags("--allowed-local-media-path=/media")
    ),
]

RULES = [*ARGUMENTS, *SPECULATION, *PODS]

CHART = [
    Row(values(engine={"replica": 2}), "replica", "not allowed", values(engine={"replicas": 2})),
    Row(values(speculative={"numTokens": 0}), "numTokens", "minimum", values(speculative={"numTokens": 1})),
    Row(
        values(engine={"gpuMemoryUtilization": 2}),
        "gpuMemoryUtilization",
        "maximum",
        values(engine={"gpuMemoryUtilization": 1}),
    ),
    Row(values(engine={"version": "0.34.0"}), "SD152", "0.34.0", values(engine={"version": "0.33.0"})),
    Row(
        values(engine={"version": "0.32.0", "image": {"tag": "v0.31.0"}}),
        "SD153",
        "says 0.31.0",
        values(engine={"version": "0.32.0", "image": {"tag": "v0.32.0"}}),
    ),
    Row(drafted(engine={"version": "0.12.0"}), "SD155", "NotImplementedError", drafted(engine={"version": "0.15.0"})),
    Row(
        values(engine={"extraArgs": ["--tensor-parallel-size=2"]}),
        "SD156",
        "engine.tensorParallelSize",
        values(engine={"tensorParallelSize": 2}),
    ),
    Row(
        values(engine={"pipelineParallelSize": 2}),
        "SD160",
        "across pipeline stages",
        values(engine={"tensorParallelSize": 2}),
    ),
    Row(
        values(lora={"enabled": True}, engine={"version": "0.10.2"}),
        "SD163",
        "LoRA",
        values(lora={"enabled": True}, engine={"version": "0.32.0"}),
    ),
    Row(values(speculative={"method": "eagle3"}), "SD251", "model.name", drafted("eagle3", EAGLE3_8B)),
    Row(
        values(speculative={"promptLookup": {"min": 5, "max": 3}}),
        "SD255",
        "promptLookup",
        values(speculative={"promptLookup": {"min": 3, "max": 5}}),
    ),
    Row(
        drafted(engine={"tensorParallelSize": 4}, speculative={"draftTensorParallelSize": 1}),
        "SD263",
        "draftTensorParallelSize",
        drafted(engine={"tensorParallelSize": 4}, speculative={"draftTensorParallelSize": 4}),
    ),
    Row(
        values(engine={"model": {"revision": ""}}),
        "SD751",
        "revision",
        values(engine={"model": {"revision": "c" * 40}}),
    ),
    Row(
        values(engine={"model": {"revision": "main"}}),
        "SD752",
        "main",
        values(engine={"model": {"revision": "d" * 40}}),
    ),
    Row(
        values(engine={"extraEnv": [{"name": "HF_TOKEN", "value": "hf_x"}]}),
        "SD753",
        "HF_TOKEN",
        values(huggingFace={"tokenSecret": {"name": "hub"}}),
    ),
    Row(
        values(cloud="gke", accelerator={"type": "a10g"}),
        "SD453",
        "gke",
        values(cloud="eks", accelerator={"type": "a10g"}, engine={"maxModelLen": 8192}),
    ),
]


def name_of(row: Row) -> str:
    return f"{row.code}-{row.says[:24]}"


@pytest.mark.parametrize("row", RULES, ids=name_of)
def test_a_bad_value_is_found_by_validate_and_its_nearest_good_one_passes(row: Row) -> None:
    finds(row.bad, row.code, row.says)
    passes(row.good, row.code)


@pytest.mark.parametrize("row", CHART, ids=name_of)
def test_a_bad_value_is_refused_by_the_chart_and_its_nearest_good_one_renders(row: Row) -> None:
    refuses(row.bad, row.code, row.says)
    renders(row.good)


def test_there_are_enough_of_them() -> None:
    rows = [*RULES, *CHART]
    assert len(rows) >= 60
    assert len({row.code for row in rows if row.code.startswith("SD")}) >= 25
    shown = [json.dumps(row.bad, default=lambda manifest: manifest.data, sort_keys=True) for row in rows]
    assert len(set(shown)) == len(shown), "a bad value stands there twice"


def test_the_nearest_good_value_is_near() -> None:
    """Bad and good differ in few places: a good value from elsewhere shows nothing."""
    far = [name_of(row) for row in RULES if _distance(row.bad[0].data, row.good[0].data) > 4]
    assert far == []


def _distance(left: Any, right: Any) -> int:
    """How many values differ."""
    if isinstance(left, dict) and isinstance(right, dict):
        return sum(_distance(left.get(key), right.get(key)) for key in left.keys() | right.keys())
    if isinstance(left, list) and isinstance(right, list) and len(left) == len(right):
        return sum(_distance(one, other) for one, other in zip(left, right, strict=True))
    return int(left != right)
