"""What to do instead of a flag that vLLM has no more, where there is something to do.

Flags and versions are in files/surfaces.yaml; what took their place is told by vllm/engine/arg_utils.py and
vllm/entrypoints/openai/cli_args.py of the last version that has the flag, in its help or its warning.
"""

from __future__ import annotations

NOTHING = "nothing, the engine does so by itself"

INSTEAD = {
    "--use-v2-block-manager": NOTHING,
    "--disable-log-requests": "nothing, requests are logged only with --enable-log-requests",
    "--disable-frontend-multiprocessing": "nothing, the API server is a process of its own",
    "--disable-async-output-proc": "nothing, V1 has no such switch",
    "--multi-step-stream-outputs": "nothing, V1 has no multi-step scheduling; --async-scheduling does its work",
    "--num-scheduler-steps": "nothing, V1 has no multi-step scheduling; --async-scheduling does its work",
    "--num-lookahead-slots": "nothing, the slots follow from speculative.numTokens",
    "--preemption-mode": "nothing, a preempted sequence is computed again",
    "--swap-space": "nothing, a preempted sequence is computed again; or engine.extraArgs [--kv-offloading-size, GIB]",
    "--scheduler-delay-factor": "nothing, V1 delays no prompt",
    "--max-seq-len-to-capture": "engine.extraArgs [--max-cudagraph-capture-size, N], in tokens of a batch",
    "--max-context-len-to-capture": "engine.extraArgs [--max-cudagraph-capture-size, N], in tokens of a batch",
    "--cuda-graph-sizes": "engine.extraArgs [--cudagraph-capture-sizes, N, ...]",
    "--device": "accelerator.type, which chooses the image too",
    "--worker-use-ray": "engine.extraArgs [--distributed-executor-backend, ray]",
    "--task": "engine.extraArgs [--runner, pooling] for anything but generate",
    "--enable-reasoning": "nothing, --reasoning-parser alone turns it on",
    "--guided-decoding-backend": """engine.extraArgs [--structured-outputs-config, '{"backend": "..."}']""",
    "--guided-decoding-disable-fallback": "nothing, a backend that is named has no fallback",
    "--guided-decoding-disable-any-whitespace": (
        """engine.extraArgs [--structured-outputs-config, '{"disable_any_whitespace": ...}']"""
    ),
    "--guided-decoding-disable-additional-properties": (
        """engine.extraArgs [--structured-outputs-config, '{"disable_additional_properties": ...}']"""
    ),
    "--rope-scaling": "engine.extraArgs [--hf-overrides, JSON with the key of the model's config.json]",
    "--rope-theta": "engine.extraArgs [--hf-overrides, JSON with the key of the model's config.json]",
    "--override-pooler-config": "engine.extraArgs [--pooler-config, '{...}']",
    "--disable-mm-preprocessor-cache": 'engine.extraArgs [--mm-processor-cache-gb, "0"]',
    "--enable-multimodal-encoder-data-parallel": "engine.extraArgs [--mm-encoder-tp-mode, data]",
    "--calculate-kv-scales": "a checkpoint that brings its scales",
    "--quantization-param-path": "a checkpoint that brings its scales",
    "--max-num-partial-prefills": "nothing, V1 never heeded it",
    "--max-long-partial-prefills": "nothing, V1 never heeded it",
    "--enable-prompt-adapter": "an adapter of LoRA: lora.modules",
    "--prompt-adapters": "an adapter of LoRA: lora.modules",
    "--max-prompt-adapters": "an adapter of LoRA: lora.modules",
    "--max-prompt-adapter-token": "an adapter of LoRA: lora.modules",
    "--lora-extra-vocab-size": "nothing, adapters with words of their own are not served any more",
    "--enable-lora-bias": "nothing, adapters with a bias are not served any more",
    "--long-lora-scaling-factors": "nothing, adapters for long contexts are not served any more",
    "--num-redundant-experts": """engine.extraArgs [--eplb-config, '{"num_redundant_experts": ...}']""",
    "--eplb-window-size": """engine.extraArgs [--eplb-config, '{"window_size": ...}']""",
    "--eplb-step-interval": """engine.extraArgs [--eplb-config, '{"step_interval": ...}']""",
    "--eplb-log-balancedness": """engine.extraArgs [--eplb-config, '{"log_balancedness": ...}']""",
}

# Flags that were gone before the first version of files/surfaces.yaml, 0.6.3. Source: vllm/engine/arg_utils.py of 0.4.0
# to 0.6.0.
OLDER = {
    "--engine-use-ray": NOTHING,
    "--disable-image-processor": "nothing, the model's configuration says it",
    "--image-input-type": "nothing, the model's configuration says it",
    "--image-token-id": "nothing, the model's configuration says it",
    "--image-input-shape": "nothing, the model's configuration says it",
    "--image-feature-size": "nothing, the model's configuration says it",
}
