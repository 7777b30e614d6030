"""From a manifest's engine to a Setup: GPU, models, arguments; what cannot start is refused."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from specdec import facts
from specdec.errors import SpecdecError
from specdec.objects import mapping, sequence
from specdec.plan import catalogue
from specdec.plan.gpus import accelerator, refuse_slices
from specdec.plan.models import Model
from specdec.plan.setup import Setup, build
from specdec.plan.speculation import speculation
from specdec.plan.weights import GIB, chosen_format

if TYPE_CHECKING:
    from specdec.engine_args import EngineArgs
    from specdec.manifests import EngineWorkload
    from specdec.plan.speed import Load

ASSUMED_ACCELERATOR = "h100-80gb"
# The KV cache of a CPU engine that is told nothing (VLLM_CPU_KVCACHE_SPACE), GiB.
CPU_KV_GIB = 4


@dataclass
class Planned:
    """One engine of the manifests, ready to plan. refusals: what the rules say that it will not start on."""

    name: str
    setup: Setup
    replicas: int
    gpus: int
    cloud: str | None = None
    warnings: list[tuple[str, str]] = field(default_factory=list)
    refusals: list[tuple[str, str]] = field(default_factory=list)


def plan_input(
    engine: EngineWorkload,
    *,
    configs: dict[str, Path] | None = None,
    accelerator_name: str | None = None,
    cloud: str | None = None,
    engine_version: str | None = None,
) -> Planned:
    """A Setup from one workload. Raises SpecdecError on anything that keeps the engine from being planned."""
    where = engine.manifest.file
    args = engine.args
    warnings: list[tuple[str, str]] = []
    if args.errors:
        raise SpecdecError(args.errors[0], code="bad-arguments", file=where, path=f"{engine.name}.args")
    if not args.model:
        raise SpecdecError(
            "the engine names no model", code="no-model", file=where, path=f"{engine.name}.args", fix="--model NAME"
        )
    version = facts.known_version(engine_version) if engine_version else engine.engine_version
    if version is not None and not facts.in_range(facts.engines()["versions"], version):
        nearest = facts.nearest_version(version)
        warnings.append(("SD337", f"vLLM {version} is not known: planned as {nearest}, the nearest that is"))
        version = nearest
    if version is None:
        raise SpecdecError(
            f"the image {engine.image} does not say which vLLM it is",
            code="version-unknown",
            file=where,
            path="engine.version",
            fix="--engine-version 0.32.0",
        )
    name = accelerator_name or engine.accelerator
    if name is None:
        name = ASSUMED_ACCELERATOR
        warnings.append(("SD331", f"no GPU type is stated: planned for {ASSUMED_ACCELERATOR} (--accelerator TYPE)"))
    refuse_slices(engine)
    gpu = accelerator(name, cloud or cloud_of(engine))
    kv_cache_bytes = args.kv_cache_memory_bytes
    if gpu.key == "cpu":
        gpu = replace(gpu, memory_gib=memory_limit(engine))
        kv_cache_bytes = kv_cache_bytes or int(float(engine.env.get("VLLM_CPU_KVCACHE_SPACE") or CPU_KV_GIB) * GIB)
    configs = host_folders(engine) | (configs or {})
    target = catalogue.load(args.model, configs)
    tp, pp = args.tensor_parallel_size, args.pipeline_parallel_size
    check_parallelism(target, tp, pp, engine.gpus * args_nodes(engine), gpu.key, where)
    spec, spec_warnings = speculation(engine, target, configs)
    _, format_warnings = chosen_format(target, args.quantization)
    warnings += spec_warnings + [("SD324", w) for w in format_warnings]
    setup = build(
        target,
        gpu,
        version=version,
        runner=engine.runner,
        tp=tp,
        pp=pp,
        dp=args.data_parallel_size,
        utilisation=args.gpu_memory_utilization,
        max_model_len=args.max_model_len,
        max_num_seqs=args.max_num_seqs,
        max_num_batched_tokens=args.max_num_batched_tokens,
        kv_dtype=args.kv_cache_dtype,
        dtype=args.dtype,
        quantization=args.quantization,
        eager=args.enforce_eager,
        hybrid_kv=not args.has("--disable-hybrid-kv-cache-manager"),
        prefix_caching=prefix_caching(args),
        multimodal=multimodal(args),
        speculation=spec,
        kv_cache_memory_bytes=kv_cache_bytes,
        flashinfer_sampler=flashinfer_sampler(engine),
    )
    check_lengths(setup, where)
    warnings += longer_than_known(setup, engine) + fewer_tokens_than_sequences(setup)
    return Planned(engine.name, setup, engine.replicas, engine.gpus, cloud or cloud_of(engine), warnings)


def longer_than_known(setup: Setup, engine: EngineWorkload) -> list[tuple[str, str]]:
    """max_model_len beyond the model's positions: the engine refuses it unless it is told how to reach further."""
    told = engine.args.has("--rope-scaling", "--hf-overrides") or engine.env.get("VLLM_ALLOW_LONG_MAX_MODEL_LEN")
    if told or not setup.target.max_positions or setup.max_model_len <= setup.target.max_positions:
        return []
    text = f"max_model_len {setup.max_model_len} is more than the {setup.target.max_positions} positions of"
    return [("SD336", f"{text} {setup.target.name}: the engine refuses it without a rope scaling")]


def fewer_tokens_than_sequences(setup: Setup) -> list[tuple[str, str]]:
    """A step that cannot hold one token of each sequence, by what is given and what the engine fills in."""
    if setup.max_num_batched_tokens >= setup.max_num_seqs:
        return []
    text = f"max_num_batched_tokens {setup.max_num_batched_tokens} is less than max_num_seqs {setup.max_num_seqs}"
    return [("SD108", f"{text}, by what is given and the defaults of vLLM {setup.version}: the engine refuses that")]


def flashinfer_sampler(engine: EngineWorkload) -> bool | None:
    """What the variable says; None where the engine decides by what its image has."""
    value = engine.env.get("VLLM_USE_FLASHINFER_SAMPLER")
    return None if value is None else value.strip() not in ("", "0")


def prefix_caching(args: EngineArgs) -> bool | None:
    """What the arguments say; None where the engine decides."""
    if args.has("--no-enable-prefix-caching"):
        return False
    return True if args.has("--enable-prefix-caching") else None


def multimodal(args: EngineArgs) -> bool:
    """Whether encoders are loaded: not where the arguments turn them off, or allow none of any kind."""
    if args.has("--language-model-only"):
        return False
    try:
        limits = json.loads(args.value("--limit-mm-per-prompt") or "null")
    except json.JSONDecodeError:
        return True  # the older form, image=2; what the engine cannot read is another rule's
    return not (isinstance(limits, dict) and limits and all(value == 0 for value in limits.values()))


def memory_limit(engine: EngineWorkload) -> float:
    """GiB that the container may use; 0 where it states no limit."""
    limits = mapping(mapping(engine.container.get("resources")).get("limits"))
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([KMGT]i?)?", str(limits.get("memory") or ""))
    if not match:
        return 0.0
    unit = {"": 1, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40}
    return float(match.group(1)) * unit[match.group(2) or ""] / GIB


def host_folders(engine: EngineWorkload) -> dict[str, Path]:
    """Models that the pod reads from a folder of this machine, by the path that they have in the container."""
    args = engine.args
    names = [args.model, args.speculative.model if args.speculative else None]
    volumes = {
        str(mapping(v).get("name")): mapping(mapping(v).get("hostPath")).get("path")
        for v in sequence(engine.pod_spec.get("volumes"))
    }
    found: dict[str, Path] = {}
    for mount in map(mapping, sequence(engine.container.get("volumeMounts"))):
        host, inside = volumes.get(str(mount.get("name"))), str(mount.get("mountPath") or "").rstrip("/")
        for name in names:
            if host and inside and name and name.startswith(inside + "/"):
                folder = Path(str(host)) / name.removeprefix(inside + "/")
                if (folder / "config.json").is_file():
                    found[name] = folder
    return found


def cloud_of(engine: EngineWorkload) -> str | None:
    """The cloud that the pod's node selector is written for, where it says."""
    selector = mapping(engine.pod_spec.get("nodeSelector"))
    return "gke" if any(str(key).startswith("cloud.google.com/") for key in selector) else None


def args_nodes(engine: EngineWorkload) -> int:
    """Nodes that one engine spans (LeaderWorkerSet)."""
    size = engine.manifest.get(("spec", "leaderWorkerTemplate", "size"))
    return size if isinstance(size, int) and size > 0 else 1


def check_parallelism(target: Model, tp: int, pp: int, gpus: int, gpu: str, file: str | None = None) -> None:
    if tp < 1 or pp < 1:
        raise SpecdecError(
            f"a parallel size of {min(tp, pp)}",
            code="SD321",
            file=file,
            path="engine.tensorParallelSize",
            fix="1 or more",
        )
    if target.heads % tp:
        fits = [n for n in (1, 2, 4, 8, 16) if target.heads % n == 0]
        raise SpecdecError(
            f"tensor parallel size {tp} does not divide the {target.heads} attention heads of {target.name}",
            code="SD321",
            file=file,
            path="engine.tensorParallelSize",
            fix=f"one of {', '.join(map(str, fits))}",
        )
    if gpu != "cpu" and gpus and gpus < tp * pp:
        raise SpecdecError(
            f"{gpus} GPUs for tensor parallel size {tp} x pipeline parallel size {pp} = {tp * pp}",
            code="SD322",
            file=file,
            path="engine.resources",
            fix=f"ask for {tp * pp} GPUs",
        )


def check_load(setup: Setup, load: Load) -> None:
    """A request that the engine would refuse cannot be planned for."""
    if load.input_len + load.output_len > setup.max_model_len:
        raise SpecdecError(
            f"{load.input_len} tokens in and {load.output_len} out are more than max_model_len {setup.max_model_len}",
            code="SD335",
            path="--input-len",
            fix=f"at most {setup.max_model_len} together, or a longer engine.maxModelLen",
        )


def check_lengths(setup: Setup, file: str | None = None) -> None:
    if not 0 < setup.utilisation <= 1:
        raise SpecdecError(
            f"gpu_memory_utilization is {setup.utilisation}",
            code="SD301",
            file=file,
            path="engine.gpuMemoryUtilization",
            fix="above 0, at most 1",
        )
    if setup.max_model_len < 1:
        none = setup.max_model_len == setup.target.max_positions
        raise SpecdecError(
            f"{setup.target.name} states no length and none is given"
            if none
            else f"max_model_len is {setup.max_model_len}",
            code="SD326",
            file=file,
            path="engine.maxModelLen",
            fix="set it" if none else f"1 to {setup.target.max_positions}",
        )
    for value, path in (
        (setup.max_num_seqs, "engine.maxNumSeqs"),
        (setup.max_num_batched_tokens, "engine.maxNumBatchedTokens"),
        (setup.dp, "engine.dataParallelSize"),
        (1 if setup.kv_cache_memory_bytes is None else setup.kv_cache_memory_bytes, "engine.kvCacheMemoryBytes"),
    ):
        if value < 1:
            raise SpecdecError(f"{path} is {value}", code="SD326", file=file, path=path, fix="1 or more")
