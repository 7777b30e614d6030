"""SD22x, SD23x and SD32x: what the planner finds wrong with a pair, or with the memory that it needs.

The planner knows a model by models.yaml or by a config.json; of any other it says nothing, and no network is asked.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from specdec.manifests import EngineWorkload
from specdec.objects import Path
from specdec.rules.heads import EAGLE3, LLAMA, on_llama
from specdec.rules.model import Check, Problem, Severity, World, rule
from specdec.rules.speculation import example, place

# Found by a rule on the arguments too, which also holds for models that nobody knows.
ELSEWHERE = {"SD201", "SD222", "SD228", "SD230", "SD231", "SD301", "SD322", "SD326", "draft-missing"}
# The planner names values of the chart; in anyone's manifest they are these arguments.
FLAGS = {
    "engine.tensorParallelSize": "--tensor-parallel-size",
    "engine.maxModelLen": "--max-model-len",
    "engine.model.name": "model",
    "engine.quantization": "--quantization",
    "engine.kvCacheDtype": "--kv-cache-dtype",
    "accelerator": "--gpu-memory-utilization",
}

FIELDS = {"speculative.method": "method", "speculative.numTokens": "num_speculative_tokens"}


def where(engine: EngineWorkload, code: str, path: str | None) -> Path:
    """The place in the manifest that a finding of the planner is about."""
    if path and path.startswith("speculative."):
        return place(
            engine,
            {"speculative.method": "method", "speculative.numTokens": "num_speculative_tokens"}.get(path, "model"),
        )
    if path == "accelerator.type":
        return (*engine.path, "nodeSelector")
    if code.startswith("SD2") and path is None:
        return place(engine, "model")
    return engine.path_of(FLAGS.get(path or "", "--gpu-memory-utilization"))


def may_fit(engine: EngineWorkload) -> bool:
    """Whether what does not fit by the planner's best guess would by the upper end of its band."""
    from specdec.plan import kvcache, memory
    from specdec.plan.weights import GIB
    from specdec.plan.workloads import plan_input

    setup = plan_input(engine).setup
    plan = memory.plan(setup)
    return plan.ranks[plan.least].band[1] * GIB >= kvcache.sequence_bytes(setup, plan.least)


def of_plan(code: str) -> Check:
    """The check that passes on the planner's findings with that code."""

    def check(world: World) -> Iterator[Problem]:
        for engine, found in world.planned:
            method = engine.args.speculative.method if engine.args.speculative else None
            # A draft model stops drafting where its positions end; of other heads nobody has reported a crash.
            if found.code != code or (code == "SD227" and method not in ("eagle", "eagle3")):
                continue
            if code != "SD320" or not may_fit(engine):
                yield Problem(engine.manifest, where(engine, code, found.path), found.message, found.fix)

    return check


class Planned(NamedTuple):
    code: str
    name: str
    severity: Severity
    reason: str
    fix: str
    source: str
    bad: str
    good: str


MEMORY = "docs of the planner: specdec plan; vllm/v1/worker/gpu_worker.py: determine_available_memory"


def on_gpu(pod: str, product: str) -> str:
    """An example on nodes with that GPU."""
    return f"{pod}nodeSelector: {{nvidia.com/gpu.product: {product}}}\n"


def known_pair(target: str, draft: str, *more: str, method: str = "draft_model", k: int = 3, gpus: int = 1) -> str:
    config = f'{{"method": "{method}", "model": "{draft}", "num_speculative_tokens": {k}}}'
    return example(config, *more, gpus=gpus).replace("/models/target", target)


def alone(target: str, *flags: str, gpus: int = 1) -> str:
    """An engine of a known model without speculation."""
    lines = "".join(f"\n      - {flag}" for flag in (target, "--shutdown-timeout=60", *flags))
    return f"""
containers:
  - image: vllm/vllm-openai:v0.32.0
    args:{lines}
    resources: {{limits: {{nvidia.com/gpu: "{gpus}", memory: 64Gi}}}}
    startupProbe: {{httpGet: {{path: /health, port: 8000}}, periodSeconds: 10, failureThreshold: 600}}
"""


ROWS = (
    Planned(
        "SD221",
        "head-of-another-size",
        Severity.error,
        "A head reads the target's hidden states. One that was made for states of another size fails on its first "
        "matrix, or gathers wrong rows.",
        "the head that was trained for this target",
        "vllm-project/vllm#18906, #17740",
        on_llama(
            '{"method": "eagle3", "model": "AngelSlim/Qwen3-32B_eagle3", "num_speculative_tokens": 3}',
        ),
        on_llama(f'{{"method": "eagle3", "model": "{EAGLE3}", "num_speculative_tokens": 3}}'),
    ),
    Planned(
        "SD223",
        "target-without-eagle3",
        Severity.error,
        "An EAGLE-3 head needs hidden states of three layers, and the engine's class of this target does not hand "
        "them out.",
        "the target's own MTP layers, or n-gram",
        "vllm-project/vllm#33329",
        known_pair("Qwen/Qwen3-Next-80B-A3B-Instruct", EAGLE3, method="eagle3"),
        known_pair(LLAMA, EAGLE3, method="eagle3"),
    ),
    Planned(
        "SD224",
        "no-layers-to-predict-with",
        Severity.error,
        "Method mtp drafts with multi-token prediction layers that the target's checkpoint brings along, and this one "
        "has none.",
        "another method, or a target with such layers",
        "vllm/config/speculative.py: hf_config_override",
        example('{"method": "mtp", "num_speculative_tokens": 1}').replace("/models/target", LLAMA),
        known_pair(LLAMA, EAGLE3, method="eagle3"),
    ),
    Planned(
        "SD227",
        "head-shorter-than-its-prompts",
        Severity.error,
        "Before 0.25 a head keeps the positions that it was trained for. The first prompt that is longer ends in a "
        "device-side assertion, and every request on the engine is lost.",
        "--max-model-len of the head's positions, max_model_len in the speculative config, or vLLM 0.25",
        "vllm-project/vllm#48894, #21986",
        on_llama(
            f'{{"method": "eagle3", "model": "{EAGLE3}", "num_speculative_tokens": 3}}',
            "--max-model-len=16384",
            "--shutdown-timeout=60",
            version="0.24.0",
        ),
        on_llama(
            f'{{"method": "eagle3", "model": "{EAGLE3}", "num_speculative_tokens": 3}}',
            "--max-model-len=2048",
            "--shutdown-timeout=60",
            version="0.24.0",
        ),
    ),
    Planned(
        "SD229",
        "draft-size-ignored",
        Severity.warning,
        "A head is split over all of the target's ranks whatever its tensor parallel size says: a plan that counts it "
        "on one GPU alone is wrong.",
        "leave draft_tensor_parallel_size out",
        "vllm-project/vllm#31345",
        example(
            f'{{"method": "eagle3", "model": "{EAGLE3}", "num_speculative_tokens": 3, '
            '"draft_tensor_parallel_size": 1}',
            "--tensor-parallel-size=4",
            gpus=4,
        ).replace("/models/target", LLAMA),
        known_pair(LLAMA, EAGLE3, "--tensor-parallel-size=4", method="eagle3", gpus=4),
    ),
    Planned(
        "SD320",
        "does-not-fit",
        Severity.error,
        "Weights of target and draft, activations and the CUDA context leave less of the GPU's memory than one "
        "sequence of --max-model-len needs. The engine ends after it has loaded everything.",
        "what the finding says: each change was planned again before it is named",
        MEMORY,
        on_gpu(
            known_pair(
                "meta-llama/Llama-3.1-70B-Instruct",
                "meta-llama/Llama-3.1-8B-Instruct",
                "--tensor-parallel-size=2",
                "--max-model-len=8192",
                gpus=2,
            ),
            "NVIDIA-H100-80GB-HBM3",
        ),
        on_gpu(
            known_pair(
                "meta-llama/Llama-3.1-70B-Instruct",
                "meta-llama/Llama-3.1-8B-Instruct",
                "--tensor-parallel-size=4",
                "--max-model-len=8192",
                gpus=4,
            ),
            "NVIDIA-H100-80GB-HBM3",
        ),
    ),
    Planned(
        "SD321",
        "heads-not-divisible",
        Severity.error,
        "Attention heads are split over the ranks of tensor parallelism; the engine refuses a number of ranks that "
        "does not divide them.",
        "a tensor parallel size that divides the attention heads",
        "vllm/config/model.py: verify_with_parallel_config",
        alone("Qwen/Qwen2.5-7B-Instruct", "--tensor-parallel-size=8", gpus=8),
        alone("Qwen/Qwen2.5-7B-Instruct", "--tensor-parallel-size=4", gpus=4),
    ),
    Planned(
        "SD330",
        "accelerator-not-in-the-cloud",
        Severity.error,
        "The node selector is for a cloud that has no machine with this GPU, and the pod stays Pending.",
        "an accelerator that the cloud has: the 24 GB class of GKE is the L4",
        "https://cloud.google.com/compute/docs/gpus",
        alone("Qwen/Qwen3-8B", "--max-model-len=8192")
        + "nodeSelector: {cloud.google.com/gke-accelerator: nvidia-a10g}\n",
        alone("Qwen/Qwen3-8B", "--max-model-len=8192")
        + "nodeSelector: {cloud.google.com/gke-accelerator: nvidia-l4}\n",
    ),
)


@rule(
    "SD303",
    "fits-by-luck",
    Severity.warning,
    reason="By the planner's best guess one sequence of --max-model-len does not fit, and by the upper end of its band "
    "it does: whether the engine starts depends on what else is on the GPU and on its driver.",
    fix="what the finding says, or a length that leaves room",
    source=MEMORY,
    bad=on_gpu(alone(LLAMA, "--max-model-len=32768").replace("v0.32.0", "v0.8.5"), "NVIDIA-L4").replace(
        "      - --shutdown-timeout=60\n", ""
    ),
    good=on_gpu(alone(LLAMA, "--max-model-len=16384").replace("v0.32.0", "v0.8.5"), "NVIDIA-L4").replace(
        "      - --shutdown-timeout=60\n", ""
    ),
)
def fits_by_luck(world: World) -> Iterator[Problem]:
    for engine, found in world.planned:
        if found.code == "SD320" and may_fit(engine):
            yield Problem(engine.manifest, engine.path_of("--max-model-len"), found.message, found.fix)


def register() -> None:
    for row in ROWS:
        fields = row._asdict()
        code, name, severity = fields.pop("code"), fields.pop("name"), fields.pop("severity")
        rule(code, name, severity, **fields)(of_plan(code))


register()
