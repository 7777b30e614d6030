"""Kubernetes manifests, anyone's: the objects (`objects`) and the vLLM engines found in them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from specdec import engine_args, facts
from specdec.containers import ConfigMaps, arguments, config_maps, environment
from specdec.engine_args import EngineArgs
from specdec.errors import SpecdecError
from specdec.objects import Manifest, Path, dotted, keys, mapping, parse, sequence

__all__ = ["EngineWorkload", "Manifest", "dotted", "engines", "keys", "mapping", "parse", "sequence"]

ANNOTATION = "vllm-speculative/"
GPU_RESOURCES = ("nvidia.com/gpu", "amd.com/gpu", "gpu.intel.com/i915", "gpu.intel.com/xe", "habana.ai/gaudi")


@dataclass
class EngineWorkload:
    """One vLLM engine container in one workload.

    path            where its pod's spec stands in the manifest; `container_path` where the container does
    engine_version  from the tag of vLLM's own image, which is what runs; else from our annotation or label, else the
                    tag of any image with vLLM in its name; None when none of them says
    stated_version  what our annotation or label says, whatever the image is
    runner          "v0", "v1" or "v2"
    env             values that stand in the manifests, of a ConfigMap among them too; None where the value comes from
                    elsewhere (Secret, field)
    gpus            what the container asks for, of any vendor
    accelerator     our annotation, else the node selector's value
    """

    manifest: Manifest
    container: dict[str, Any]
    pod_spec: dict[str, Any]
    pod_metadata: dict[str, Any]
    path: Path
    container_path: Path
    name: str
    image: str
    engine_version: str | None
    stated_version: str | None
    runner: str
    args: EngineArgs
    argv: list[str]
    env: dict[str, str | None]
    gpus: int
    replicas: int
    accelerator: str | None

    def path_of(self, flag: str) -> Path:
        """Where that flag stands in the manifest; the container's args where it does not."""
        position = self.args.index.get(flag)
        command = sequence(self.container.get("command"))
        if position is None:
            return (*self.container_path, "args")
        if position < len(command):
            return (*self.container_path, "command", position)
        return (*self.container_path, "args", position - len(command))

    @property
    def label(self) -> str | None:
        """The engine's name in our chart."""
        label = mapping(self.pod_metadata.get("labels")).get(ANNOTATION + "engine")
        return str(label) if label else None


def _ray(cluster: Path, groups: int = 8) -> Iterator[Path]:
    """The head's pods, and those of the first groups of workers."""
    yield (*cluster, "headGroupSpec", "template", "spec")
    for index in range(groups):
        yield (*cluster, "workerGroupSpecs", index, "template", "spec")


LLM_SERVICE: tuple[Path, ...] = (
    ("spec", "template"),
    ("spec", "worker"),
    ("spec", "prefill", "template"),
    ("spec", "prefill", "worker"),
)
# KServe takes the image from a runtime that it chooses.
IMAGE_ELSEWHERE = ("InferenceService", "LLMInferenceService", "LLMInferenceServiceConfig")
POD_SPECS: dict[str, tuple[Path, ...]] = {
    "Pod": (("spec",),),
    "CronJob": (("spec", "jobTemplate", "spec", "template", "spec"),),
    "InferenceService": (("spec", "predictor"), ("spec", "predictor", "workerSpec")),
    "LLMInferenceService": LLM_SERVICE,
    "LLMInferenceServiceConfig": LLM_SERVICE,
    "LeaderWorkerSet": (
        ("spec", "leaderWorkerTemplate", "leaderTemplate", "spec"),
        ("spec", "leaderWorkerTemplate", "workerTemplate", "spec"),
    ),
    "RayCluster": tuple(_ray(("spec",))),
    "RayService": tuple(_ray(("spec", "rayClusterConfig"))),
    "JobSet": tuple(("spec", "replicatedJobs", index, "template", "spec", "template", "spec") for index in range(8)),
    "PodTemplate": (("template", "spec"),),
    "ServingRuntime": (("spec",),),
    "ClusterServingRuntime": (("spec",),),
}
TEMPLATE = (("spec", "template", "spec"),)


def pod_specs(manifest: Manifest) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Every pod specification in the object, with its path."""
    for path in POD_SPECS.get(manifest.kind, TEMPLATE):
        spec = manifest.get(path)
        if isinstance(spec, dict):
            yield path, spec


def pod_metadata(manifest: Manifest, path: Path) -> dict[str, Any]:
    """Labels and annotations that the pods of the specification at that path get."""
    template = mapping(manifest.get((*path[:-1], "metadata"))) if path[-1] == "spec" and len(path) > 1 else {}
    beside = {"InferenceService": path, "LLMInferenceService": ("spec",)}.get(manifest.kind)
    if beside:
        # KServe's objects hold them beside the containers, or beside the template.
        holder = mapping(manifest.get(beside))
        template = {key: holder[key] for key in ("labels", "annotations") if key in holder}
    return template or mapping(manifest.data.get("metadata"))


def engines(manifests: Sequence[Manifest], engine_version: str | None = None) -> list[EngineWorkload]:
    """The vLLM engines among the workloads, in order. `engine_version` wins over what the manifests say."""
    maps = config_maps(manifests)
    return [engine for manifest in manifests for engine in _engines(manifest, engine_version, maps)]


def _engines(manifest: Manifest, engine_version: str | None, maps: ConfigMaps) -> Iterator[EngineWorkload]:
    for path, spec in pod_specs(manifest):
        for container, container_path in _containers(spec, path):
            env = environment(container, maps.get(manifest.namespace, {}))
            argv = arguments(container, env)
            # Without an image it is a patch of a container that stands elsewhere: what it does not say, that one may.
            if (container.get("image") or manifest.kind in IMAGE_ELSEWHERE) and is_engine(container, argv):
                yield _workload(manifest, spec, path, container, container_path, argv, env, engine_version)


def _containers(spec: dict[str, Any], path: Path) -> Iterator[tuple[dict[str, Any], Path]]:
    for index, container in enumerate(sequence(spec.get("containers"))):
        if isinstance(container, dict):
            yield container, (*path, "containers", index)
    # KServe's predictor may be a model with the fields of a container.
    if isinstance(spec.get("model"), dict):
        yield spec["model"], (*path, "model")


def pod_containers(spec: dict[str, Any], path: Path) -> Iterator[tuple[dict[str, Any], Path]]:
    """Every container of the pod with its place, those that run before the others first."""
    for kind in ("initContainers", "containers"):
        for index, container in enumerate(sequence(spec.get(kind))):
            if isinstance(container, dict):
                yield container, (*path, kind, index)


def is_engine(container: dict[str, Any], argv: list[str]) -> bool:
    """Whether the container runs vLLM's API server: by its command, or by its image where that brings the command."""
    script = engine_args.shell_script(argv)
    if script is not None:
        try:
            return bool(engine_args.plain_command(script))
        except ValueError:
            return "vllm serve" in script or "vllm.entrypoints" in script
    # A whole command line in one element starts nothing, which is for a rule to say.
    if engine_args.is_engine_command(argv) or (argv and engine_args.is_engine_command(argv[0].split())):
        return True
    if container.get("command"):
        return False
    repository = str(container.get("image") or "").split("@")[0].lower()
    looks = re.search(r"(^|[/_-])vllm([/:_-]|$)", repository) and "router" not in repository
    asks = any(word.split("=")[0] in ("--model", "--tensor-parallel-size", "--speculative-config") for word in argv)
    return bool(looks and argv) or asks


def _workload(
    manifest: Manifest,
    spec: dict[str, Any],
    path: Path,
    container: dict[str, Any],
    container_path: Path,
    argv: list[str],
    env: dict[str, str | None],
    engine_version: str | None,
) -> EngineWorkload:
    metadata = pod_metadata(manifest, path)
    told = {**manifest.labels, **mapping(metadata.get("labels")), **manifest.annotations}
    told |= mapping(metadata.get("annotations"))
    image = str(container.get("image") or "")
    stated = str(told.get(ANNOTATION + "engine-version") or "") or None
    tagged = version_of_image(image)
    version = engine_version or (tagged if tag_counts(image) else None) or stated or tagged
    # Labels of another version's rendering tell nothing of the runner that this one takes.
    current = stated is None or version is None or same_version(stated, version)
    told_runner = told.get(ANNOTATION + "runner") if current else None
    args, accelerator = engine_args.parse(argv, version), _accelerator(spec, told)
    method = args.speculative.method if args.speculative else None
    cpu = accelerator == "cpu" or "cpu" in image
    return EngineWorkload(
        manifest=manifest,
        container=container,
        pod_spec=spec,
        pod_metadata=metadata,
        path=path,
        container_path=container_path,
        name=manifest.name,
        image=image,
        engine_version=version,
        stated_version=stated,
        runner=str(told_runner or runner(version, env, method, cpu)),
        args=args,
        argv=argv,
        env=env,
        gpus=gpus(container),
        replicas=_replicas(manifest),
        accelerator=accelerator,
    )


def version_of_image(image: str) -> str | None:
    """vLLM's version by the image's tag; None where another project's tags count its own.

    Those are images that are not called vLLM and, unless it is vLLM's own image, tags below the first version that
    engines.yaml knows (LMCache's vllm-openai:v0.3.9) and tags that count years (NVIDIA's vllm:26.02-py3).
    """
    version = facts.version_of_tag(image_tag(image) or "") if "vllm" in image.lower() else None
    oldest = str(facts.engines()["versions"][0]["from"])
    near = version and facts.version_key(oldest) <= facts.version_key(version) < (2,)
    return version if near or published(image) else None


def published(image: str) -> bool:
    """Whether it is vLLM's own image, or a mirror of it, whose tags are vLLM's versions."""
    return _named(image, r"vllm-openai(-[\w-]+)?")


def tag_counts(image: str) -> bool:
    """Whether the tag says what runs, whatever a label says: of vLLM's own image, or of one that is called vllm."""
    return published(image) or (_named(image, "vllm") and version_of_image(image) is not None)


def _named(image: str, pattern: str) -> bool:
    name = image.split("@")[0].lower()
    return bool(re.search(rf"(^|/){pattern}(:|$)", name)) and "lmcache" not in name


def same_version(one: str, other: str) -> bool:
    """Whether both name the same release, builds and post-releases of it aside."""
    try:
        return facts.version_key(one)[:3] == facts.version_key(other)[:3]
    except SpecdecError:
        return one == other


def image_tag(image: str) -> str | None:
    """The tag of an image reference, None when there is none."""
    name = image.split("@")[0].rsplit("/", 1)[-1]
    return name.partition(":")[2] or None


def runner(version: str | None, env: dict[str, str | None], method: str | None = None, cpu: bool = False) -> str:
    """The model runner: what the engine's own variables say, else its version's default (engines.yaml)."""
    if env.get("VLLM_USE_V2_MODEL_RUNNER") is not None:
        return "v2" if str(env["VLLM_USE_V2_MODEL_RUNNER"]).lower() in ("1", "true") else "v1"
    if env.get("VLLM_USE_V1") in ("0", "1"):
        return "v" + str(env["VLLM_USE_V1"])
    return facts.default_runner(version, method, cpu)


def gpus(container: dict[str, Any]) -> int:
    """GPUs that the container asks for; limits before requests, as extended resources cannot differ."""
    resources = mapping(container.get("resources"))
    for part in ("limits", "requests"):
        for name, amount in mapping(resources.get(part)).items():
            if name in GPU_RESOURCES or re.match(r"nvidia\.com/mig-", str(name)):
                try:
                    return int(amount)
                except (TypeError, ValueError):
                    return 0
    return 0


def _replicas(manifest: Manifest) -> int:
    for path in (("spec", "replicas"), ("spec", "predictor", "minReplicas"), ("spec", "parallelism")):
        replicas = manifest.get(path)
        if isinstance(replicas, int) and not isinstance(replicas, bool):
            return replicas
    return 1


_NODE_LABELS = ("cloud.google.com/gke-accelerator", "nvidia.com/gpu.product", "karpenter.k8s.aws/instance-gpu-name")


def _accelerator(spec: dict[str, Any], told: dict[str, Any]) -> str | None:
    stated = told.get(ANNOTATION + "accelerator")
    if stated:
        return str(stated)
    selector = mapping(spec.get("nodeSelector"))
    return next((str(selector[name]) for name in _NODE_LABELS if selector.get(name)), None)
