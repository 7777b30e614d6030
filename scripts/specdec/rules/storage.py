"""SD428 and SD429: where the engine finds its models, and where it may write."""

from __future__ import annotations

import re
from collections.abc import Iterator

from specdec.manifests import EngineWorkload
from specdec.objects import mapping, sequence
from specdec.rules.model import Problem, Severity, each_engine, rule


def mounts(engine: EngineWorkload, writable: bool = False) -> list[str]:
    """Paths of the container's mounts."""
    found = [mapping(mount) for mount in sequence(engine.container.get("volumeMounts"))]
    return [str(mount.get("mountPath")).rstrip("/") for mount in found if not (writable and mount.get("readOnly"))]


def offline(engine: EngineWorkload) -> bool:
    """Whether the engine may fetch nothing from the Hub."""
    return (engine.env.get("HF_HUB_OFFLINE") or "").lower() in ("1", "true", "on", "yes")


@rule(
    "SD428",
    "offline-without-models",
    Severity.warning,
    reason="HF_HUB_OFFLINE keeps the engine from fetching anything, and no volume of the pod can hold the models "
    "already: emptyDirs start empty. The draft's repository is the one that is forgotten.",
    fix="an init container that fetches target and draft, a volume that holds them, or paths that start with /",
    source="https://huggingface.co/docs/huggingface_hub/package_reference/environment_variables#hfhuboffline",
    bad="""
containers:
  - args: [Qwen/Qwen3-8B, --shutdown-timeout=60]
    env: [{name: HF_HUB_OFFLINE, value: "1"}]
""",
    good="""
containers:
  - args: [/models/qwen3-8b, --shutdown-timeout=60]
    env: [{name: HF_HUB_OFFLINE, value: "1"}]
""",
)
@each_engine
def offline_without_models(engine: EngineWorkload) -> Iterator[Problem]:
    if not offline(engine):
        return
    kept = [volume for volume in sequence(engine.pod_spec.get("volumes")) if "emptyDir" not in mapping(volume)]
    claims = sequence(engine.manifest.get("spec.volumeClaimTemplates"))
    if engine.pod_spec.get("initContainers") or claims or any(not _only_configuration(volume) for volume in kept):
        return
    draft = engine.args.speculative.model if engine.args.speculative else None
    for name, flag in ((engine.args.model, "model"), (draft, "--speculative-config")):
        if name and re.fullmatch(r"[\w.-]+/[\w.-]+", name):
            yield Problem(engine.manifest, engine.path_of(flag), f"{name} has to be fetched, and the engine is offline")


def _only_configuration(volume: object) -> bool:
    return bool({"configMap", "secret", "projected", "downwardAPI"} & mapping(volume).keys())


# In the order of Python's tempfile; TMPDIR comes before them.
TEMPORARY = ("/tmp", "/var/tmp", "/usr/tmp")


@rule(
    "SD429",
    "no-temporary-directory",
    Severity.error,
    reason="The root file system is read-only and nothing writable is mounted where Python looks for a temporary "
    "directory. The engine asks for one when it is imported, for its sockets, and ends.",
    fix="an emptyDir at /tmp",
    source="vllm/envs.py: VLLM_RPC_BASE_PATH; https://docs.python.org/3/library/tempfile.html#tempfile.gettempdir",
    bad="""
containers:
  - securityContext: {readOnlyRootFilesystem: true}
""",
    good="""
containers:
  - securityContext: {readOnlyRootFilesystem: true}
    env: [{name: HOME, value: /tmp}]
    volumeMounts:
      - {name: shm, mountPath: /dev/shm}
      - {name: tmp, mountPath: /tmp}
volumes:
  - {name: shm, emptyDir: {medium: Memory, sizeLimit: 16Gi}}
  - {name: tmp, emptyDir: {}}
""",
)
@each_engine
def no_temporary_directory(engine: EngineWorkload) -> Iterator[Problem]:
    if mapping(engine.container.get("securityContext")).get("readOnlyRootFilesystem") is not True:
        return
    named = [engine.env.get(name) for name in ("TMPDIR", "TEMP", "TMP")]
    places = [*(place for place in named if place), *TEMPORARY, str(engine.container.get("workingDir") or "")]
    written = mounts(engine, writable=True)
    if not any(place == mount or place.startswith(mount + "/") for place in places for mount in written):
        path = (*engine.container_path, "securityContext", "readOnlyRootFilesystem")
        yield Problem(engine.manifest, path, "no temporary directory is writable")
