"""SD440 to SD443: where caches may be written, and whether the weights fit into them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from specdec.manifests import EngineWorkload
from specdec.objects import mapping, sequence
from specdec.quantities import gib, to_bytes
from specdec.rules.model import Problem, Severity, each_engine, rule
from specdec.rules.probes import weights
from specdec.rules.storage import mounts

HUB = "https://huggingface.co/docs/huggingface_hub/package_reference/environment_variables"
MODEL = "meta-llama/Llama-3.1-70B-Instruct"
# Variables that move a cache -> where it is without them, below HOME or XDG_CACHE_HOME.
CACHES = {
    "HF_HOME": ("XDG_CACHE_HOME", "huggingface"),
    "VLLM_CACHE_ROOT": ("XDG_CACHE_HOME", "vllm"),
    "TRITON_CACHE_DIR": ("HOME", ".triton/cache"),
    "FLASHINFER_WORKSPACE_BASE": ("HOME", ""),
}
# /tmp is another rule's.
IN_TMP = ("TORCHINDUCTOR_CACHE_DIR",)


def cache_paths(engine: EngineWorkload) -> dict[str, str]:
    """Where each cache of the engine is, as far as literal variables say; the home of root and of nobody differ."""
    home = engine.env.get("HOME") or ("/root" if _root(engine) else "/")
    base = {"HOME": home, "XDG_CACHE_HOME": engine.env.get("XDG_CACHE_HOME") or f"{home.rstrip('/')}/.cache"}
    paths = {}
    for name, (parent, below) in CACHES.items():
        paths[name] = engine.env.get(name) or f"{base[parent].rstrip('/')}/{below}".rstrip("/") or "/"
    paths |= {name: str(engine.env[name]) for name in IN_TMP if engine.env.get(name)}
    return paths


def _root(engine: EngineWorkload) -> bool:
    together = {**mapping(engine.pod_spec.get("securityContext")), **mapping(engine.container.get("securityContext"))}
    return together.get("runAsUser") in (None, 0) and not together.get("runAsNonRoot")


def _written(engine: EngineWorkload, path: str) -> bool:
    return any(path == mount or path.startswith(f"{mount}/") for mount in mounts(engine, writable=True))


def _sound(extra_env: str = "", more: str = "") -> str:
    return f"""
containers:
  - securityContext: {{readOnlyRootFilesystem: true}}
    env: [{{name: HOME, value: /home/engine}}{extra_env}]
    volumeMounts:
      - {{name: shm, mountPath: /dev/shm}}
      - {{name: tmp, mountPath: /tmp}}
      - {{name: home, mountPath: /home/engine{more}}}
volumes:
  - {{name: shm, emptyDir: {{medium: Memory, sizeLimit: 16Gi}}}}
  - {{name: tmp, emptyDir: {{}}}}
  - {{name: home, emptyDir: {{}}}}
"""


@rule(
    "SD440",
    "cache-on-a-read-only-root",
    Severity.error,
    reason="With a read-only root file system each cache that the engine writes needs a writable volume: its own, "
    "Hugging Face's, Triton's and FlashInfer's. One that has none ends the engine with a PermissionError or an OSError "
    "at its first kernel.",
    fix="HOME, XDG_CACHE_HOME, HF_HOME, VLLM_CACHE_ROOT and TRITON_CACHE_DIR on an emptyDir",
    source=f"{HUB}; vllm/envs.py; llm-d/llm-d-kv-cache#83, vllm-project/vllm#9118",
    bad=_sound(", {name: VLLM_CACHE_ROOT, value: /var/cache/vllm}"),
    good=_sound(),
)
@each_engine
def cache_on_a_read_only_root(engine: EngineWorkload) -> Iterator[Problem]:
    if mapping(engine.container.get("securityContext")).get("readOnlyRootFilesystem") is not True:
        return
    if not engine.env and not mounts(engine, writable=True):
        return  # nothing about caches is said at all: the temporary directory's rule speaks
    lost = {name: path for name, path in cache_paths(engine).items() if not _written(engine, path)}
    if "HF_HOME" in lost and (engine.env.get("HF_HUB_CACHE") or engine.env.get("HF_HUB_OFFLINE")):
        lost.pop("HF_HOME")
    if lost:
        told = ", ".join(f"{name} ({path})" for name, path in lost.items())
        path = (*engine.container_path, "securityContext", "readOnlyRootFilesystem")
        yield Problem(engine.manifest, path, f"not writable: {told}")


@rule(
    "SD441",
    "home-of-nobody",
    Severity.error,
    reason="A user that the image does not know has / as its home, where it may not write: the first cache fails with "
    "`PermissionError: '/.cache'`.",
    fix="env: [{name: HOME, value: /tmp}], or a home on an emptyDir",
    source="vllm-project/vllm#9118, #20127; llm-d/llm-d#485",
    bad="""
securityContext: {runAsNonRoot: true, runAsUser: 2000}
""",
    good="""
securityContext: {runAsNonRoot: true, runAsUser: 2000}
containers:
  - env: [{name: HOME, value: /tmp}]
""",
)
@each_engine
def home_of_nobody(engine: EngineWorkload) -> Iterator[Problem]:
    together = {**mapping(engine.pod_spec.get("securityContext")), **mapping(engine.container.get("securityContext"))}
    user = together.get("runAsUser")
    told = {"HOME", "XDG_CACHE_HOME"} & engine.env.keys() or {"HF_HOME", "VLLM_CACHE_ROOT"} <= engine.env.keys()
    # Users up to 1000 exist in many images, with a home.
    if isinstance(user, int) and user > 1000 and not told and not engine.container.get("envFrom"):
        message = f"user {user} has no home to write to"
        yield Problem(engine.manifest, (*engine.container_path, "env"), message)


def caching(size: str) -> str:
    """An example that keeps its weights on an emptyDir of that size."""
    return f"""
containers:
  - args: [{MODEL}, --tensor-parallel-size=4, --shutdown-timeout=60]
    resources: {{limits: {{nvidia.com/gpu: "4", memory: 64Gi}}}}
    env: [{{name: HF_HOME, value: /models}}, {{name: HF_TOKEN, valueFrom: {{secretKeyRef: {{name: hub, key: token}}}}}}]
    volumeMounts:
      - {{name: shm, mountPath: /dev/shm}}
      - {{name: models, mountPath: /models}}
volumes:
  - {{name: shm, emptyDir: {{medium: Memory, sizeLimit: 16Gi}}}}
  - {{name: models, emptyDir: {{sizeLimit: {size}}}}}
"""


def volume_at(engine: EngineWorkload, path: str) -> tuple[int, dict[str, Any]] | None:
    """(index, volume) of the pod's volume that holds this path of the container: the deepest mount above it."""
    found = [
        mapping(mount)
        for mount in sequence(engine.container.get("volumeMounts"))
        if f"{path}/".startswith(str(mapping(mount).get("mountPath")).rstrip("/") + "/")
    ]
    if not found:
        return None
    name = max(found, key=lambda mount: len(str(mount.get("mountPath")))).get("name")
    volumes = list(enumerate(sequence(engine.pod_spec.get("volumes"))))
    return next(((index, mapping(volume)) for index, volume in volumes if mapping(volume).get("name") == name), None)


def hub_cache(engine: EngineWorkload) -> str:
    """Where models of the Hub are kept."""
    explicit = engine.env.get("HF_HUB_CACHE") or engine.args.value("--download-dir")
    return explicit or f"{cache_paths(engine)['HF_HOME'].rstrip('/')}/hub"


KSERVE = ("InferenceService", "LLMInferenceService", "ServingRuntime", "ClusterServingRuntime")


def fetches(engine: EngineWorkload) -> list[str]:
    """Models of the engine that come from the Hub."""
    draft = engine.args.speculative.model if engine.args.speculative else None
    names = [name for name in (engine.args.model, draft) if name]
    return [name for name in names if name.count("/") == 1 and not name.startswith(("/", "."))]


@rule(
    "SD442",
    "cache-smaller-than-its-weights",
    Severity.error,
    reason="When the files on an emptyDir exceed its size limit the kubelet evicts the pod, and the next one starts to "
    "download again: it never serves. Target and draft are both in there.",
    fix="sizeLimit above the bytes of target and draft together, with a tenth to spare",
    source="https://kubernetes.io/docs/concepts/storage/volumes/#emptydir",
    bad=caching("100Gi"),
    good=caching("160Gi"),
)
@each_engine
def cache_smaller_than_its_weights(engine: EngineWorkload) -> Iterator[Problem]:
    size = weights(engine)
    found = volume_at(engine, hub_cache(engine)) if fetches(engine) and size else None
    if not found or size is None:
        return
    index, volume = found
    limit = to_bytes(mapping(volume.get("emptyDir")).get("sizeLimit"))
    if limit is not None and limit < size:
        message = f"the cache may hold {gib(limit)}, and the weights are {gib(size)}"
        yield Problem(engine.manifest, (*engine.path, "volumes", index, "emptyDir", "sizeLimit"), message)


@rule(
    "SD443",
    "weights-in-the-container",
    Severity.warning,
    reason="Without a volume at the Hub's cache the weights are written into the container's own layer: they count "
    "against its ephemeral storage, and are downloaded again at every restart of the container.",
    fix="a volume at HF_HOME: emptyDir, a claim or the node's SSD",
    source=f"{HUB}#hfhome",
    bad="""
containers:
  - args: [Qwen/Qwen3-8B, --shutdown-timeout=60]
""",
    good="""
containers:
  - args: [Qwen/Qwen3-8B, --shutdown-timeout=60]
    env: [{name: HF_HOME, value: /models}]
    volumeMounts:
      - {name: shm, mountPath: /dev/shm}
      - {name: models, mountPath: /models}
volumes:
  - {name: shm, emptyDir: {medium: Memory, sizeLimit: 16Gi}}
  - {name: models, emptyDir: {sizeLimit: 100Gi}}
""",
)
@each_engine
def weights_in_the_container(engine: EngineWorkload) -> Iterator[Problem]:
    if not fetches(engine) or engine.container.get("envFrom") or engine.manifest.kind in KSERVE:
        return
    place = hub_cache(engine)
    if not any(f"{place}/".startswith(f"{mount}/") for mount in mounts(engine)):
        message = f"{' and '.join(fetches(engine))} would be kept at {place}, where no volume is"
        yield Problem(engine.manifest, (*engine.container_path, "volumeMounts"), message)
