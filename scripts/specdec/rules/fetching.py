"""SD444 to SD447: how the weights of target and draft are fetched."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from specdec.manifests import EngineWorkload, pod_containers, pod_specs
from specdec.objects import Manifest, Path, mapping, sequence
from specdec.rules.caches import KSERVE, caching, fetches, hub_cache
from specdec.rules.model import Problem, Severity, World, each_engine, rule
from specdec.rules.storage import offline

# Gemma is free from its fourth version on.
GATED = re.compile(
    r"\b(?:meta-llama/|google/gemma-(?!4-)|mistralai/Mistral-(?:Large|Small)|CohereForAI/|CohereLabs/|"
    r"bigcode/starcoder|databricks/dbrx)[\w.-]*"
)
HUB_TOKENS = ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN")
TOKENS = (*HUB_TOKENS, "HF_TOKEN_PATH")
# What a command or a script is called that downloads; one that only waits for the files has none of it.
DOWNLOADER = re.compile(
    r"huggingface-cli|huggingface_hub|snapshot_download|hf_hub_download|\b(?:download|fetch|pull|prefetch\.)"
)


def _has_token(container: dict[str, Any]) -> bool:
    names = {str(mapping(variable).get("name")) for variable in sequence(container.get("env"))}
    return bool(names & set(TOKENS)) or bool(container.get("envFrom")) or "--token" in _words(container)


def _words(container: dict[str, Any]) -> str:
    """What the container runs: command, arguments and literal variables as one text."""
    env = [mapping(variable).get("value") for variable in sequence(container.get("env"))]
    words = [*sequence(container.get("command")), *sequence(container.get("args")), *env]
    return " ".join(str(word) for word in words if word is not None)


def _gated(text: str) -> list[str]:
    return list(dict.fromkeys(GATED.findall(text)))


@rule(
    "SD444",
    "gated-model-without-token",
    Severity.warning,
    reason="The publisher hands these weights out to accounts that accepted a licence. Without a token the download "
    "ends with 401 or 403: of the target, or of the draft, whose repository is gated by itself.",
    fix="env HF_TOKEN from a Secret in the container that downloads",
    source="https://huggingface.co/docs/hub/models-gated",
    bad=caching("160Gi").replace(", {name: HF_TOKEN, valueFrom: {secretKeyRef: {name: hub, key: token}}}", ""),
    good=caching("160Gi"),
)
def gated_model_without_token(world: World) -> Iterator[Problem]:
    for engine in world.engines:
        yield from _without_token(engine)
    theirs = {(id(engine.manifest), engine.path) for engine in world.engines}
    for manifest in world.manifests:
        for path, spec in pod_specs(manifest):
            if (id(manifest), path) not in theirs:
                yield from _downloads_without_token(manifest, spec, path)


def _without_token(engine: EngineWorkload) -> Iterator[Problem]:
    prefetched: set[str] = set()
    for container, path in pod_containers(engine.pod_spec, engine.path):
        text = _words(container) if "initContainers" in path else ""
        names = _gated(text) if DOWNLOADER.search(text) else []
        prefetched.update(names)
        # Where the engine has the token, another rule says that it is in the wrong container.
        if names and not _has_token(container) and not _has_token(engine.container):
            yield _no_token(engine.manifest, container, path, names)
    everywhere = [container for container, _ in pod_containers(engine.pod_spec, engine.path)]
    if offline(engine) or engine.manifest.kind in KSERVE or any(map(_has_token, [*everywhere, engine.container])):
        return
    names = [name for name in fetches(engine) if GATED.match(name) and name not in prefetched]
    if names:
        yield _no_token(engine.manifest, engine.container, engine.container_path, names)


def _downloads_without_token(manifest: Manifest, spec: dict[str, Any], path: Path) -> Iterator[Problem]:
    """In a Job or DaemonSet that fills a cache for engines."""
    for container, place in pod_containers(spec, path):
        text = _words(container)
        if DOWNLOADER.search(text) and (names := _gated(text)) and not _has_token(container):
            yield _no_token(manifest, container, place, names)


def _no_token(manifest: Manifest, container: dict[str, Any], path: Path, names: list[str]) -> Problem:
    gated = f"{' and '.join(names)} {'is' if len(names) == 1 else 'are'} gated"
    return Problem(manifest, (*path, "env"), f"{gated}, and container {container.get('name')} has no token")


PREFETCH = """
initContainers:
  - name: fetch
    image: registry.example/hub:1
    command: [hf, download]
    args: [%s]
    env: [{name: HF_HOME, value: /models}%s]
    volumeMounts: [{name: models, mountPath: /models}]
containers:
  - args:
      - meta-llama/Llama-3.1-8B-Instruct
      - --shutdown-timeout=60
      - --speculative-config
      - '{"method": "draft_model", "model": "meta-llama/Llama-3.2-1B-Instruct", "num_speculative_tokens": 3}'
    env: [{name: HF_HOME, value: /models}, {name: HF_HUB_OFFLINE, value: "1"}%s]
    volumeMounts:
      - {name: shm, mountPath: /dev/shm}
      - {name: models, mountPath: /models}
volumes:
  - {name: shm, emptyDir: {medium: Memory, sizeLimit: 16Gi}}
  - {name: models, emptyDir: {sizeLimit: 100Gi}}
"""
TOKEN = ", {name: HF_TOKEN, valueFrom: {secretKeyRef: {name: hub, key: token}}}"
BOTH = "meta-llama/Llama-3.1-8B-Instruct, meta-llama/Llama-3.2-1B-Instruct"


@rule(
    "SD445",
    "draft-not-fetched",
    Severity.error,
    reason="An init container fetches the target and not the draft, and the engine is offline: it finds no draft and "
    "ends. The second repository is the one that is forgotten.",
    fix="fetch both in the init container, with the same token",
    source="a gated draft in an air-gapped cluster; vllm-project/vllm#39039, #23684; defilantech/LLMKube#1750",
    bad=PREFETCH % ("meta-llama/Llama-3.1-8B-Instruct", TOKEN, ""),
    good=PREFETCH % (BOTH, TOKEN, ""),
)
@each_engine
def draft_not_fetched(engine: EngineWorkload) -> Iterator[Problem]:
    names = fetches(engine)
    if len(names) < 2 or not offline(engine):
        return
    texts = [str(item) for item in sequence(engine.pod_spec.get("initContainers"))]
    target, draft = names
    if any(target in text for text in texts) and not any(draft in text for text in texts):
        path = (*engine.path, "initContainers")
        yield Problem(engine.manifest, path, f"{target} is fetched and {draft} is not, and the engine is offline")


@rule(
    "SD446",
    "token-in-the-wrong-container",
    Severity.warning,
    reason="The container that downloads is the init container, and the token is in the engine's: the download fails "
    "with 401, and the engine holds a secret that it does not need.",
    fix="HF_TOKEN in the init container's env",
    source="kserve/website#482",
    bad=PREFETCH % (BOTH, "", TOKEN),
    good=PREFETCH % (BOTH, TOKEN, ""),
)
@each_engine
def token_in_the_wrong_container(engine: EngineWorkload) -> Iterator[Problem]:
    first = [mapping(item) for item in sequence(engine.pod_spec.get("initContainers"))]
    fetching = [item for item in first if any(name in str(item) for name in fetches(engine))]
    if fetching and _has_token(engine.container) and not any(_has_token(item) for item in fetching):
        message = f"{fetching[0].get('name')} downloads, and the token is in {engine.container.get('name')}"
        yield Problem(engine.manifest, (*engine.container_path, "env"), message)


ONLINE = """
containers:
  - args: [Qwen/Qwen3-8B, --shutdown-timeout=60]
    env: [{name: HF_HOME, value: /models}]
    volumeMounts:
      - {name: shm, mountPath: /dev/shm}
      - {name: models, mountPath: /models%s}
volumes:
  - {name: shm, emptyDir: {medium: Memory, sizeLimit: 16Gi}}
  - {name: models, persistentVolumeClaim: {claimName: models}}
"""


@rule(
    "SD447",
    "download-to-a-read-only-mount",
    Severity.error,
    reason="The engine fetches its models into the Hub's cache, and that is mounted read-only: the download ends with "
    "`Read-only file system`. A claim that is filled beforehand goes with HF_HUB_OFFLINE=1.",
    fix="HF_HUB_OFFLINE=1 where the claim holds target and draft, else a writable mount",
    source="https://huggingface.co/docs/huggingface_hub/package_reference/environment_variables#hfhuboffline",
    bad=ONLINE % ", readOnly: true",
    good=ONLINE % "",
)
@each_engine
def download_to_a_read_only_mount(engine: EngineWorkload) -> Iterator[Problem]:
    if offline(engine) or not fetches(engine) or engine.manifest.kind in KSERVE:
        return
    cache = hub_cache(engine)
    for index, item in enumerate(sequence(engine.container.get("volumeMounts"))):
        mount = mapping(item)
        if mount.get("readOnly") is True and f"{cache}/".startswith(str(mount.get("mountPath")).rstrip("/") + "/"):
            path = (*engine.container_path, "volumeMounts", index)
            message = f"{' and '.join(fetches(engine))} would be fetched into {cache}, which is mounted read-only"
            yield Problem(engine.manifest, path, message)
