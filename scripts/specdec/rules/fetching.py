"""SD444 to SD447: how the weights of target and draft are fetched."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from specdec.manifests import EngineWorkload
from specdec.objects import mapping, sequence
from specdec.rules.caches import KSERVE, caching, fetches, hub_cache
from specdec.rules.model import Problem, Severity, each_engine, rule

GATED = ("meta-llama/", "google/gemma-", "mistralai/Mistral-Large", "mistralai/Mistral-Small", "CohereForAI/")
TOKENS = ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HF_TOKEN_PATH")


def _has_token(container: dict[str, Any]) -> bool:
    names = {str(mapping(variable).get("name")) for variable in sequence(container.get("env"))}
    return bool(names & set(TOKENS)) or bool(container.get("envFrom"))


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
@each_engine
def gated_model_without_token(engine: EngineWorkload) -> Iterator[Problem]:
    if (engine.env.get("HF_HUB_OFFLINE") or "") in ("1", "true") or engine.manifest.kind in KSERVE:
        return
    fetching = [engine.container, *(mapping(item) for item in sequence(engine.pod_spec.get("initContainers")))]
    if any(_has_token(container) for container in fetching):
        return
    gated = [name for name in fetches(engine) if name.startswith(GATED)]
    if gated:
        message = f"{' and '.join(gated)} is gated, and no container has a token"
        yield Problem(engine.manifest, (*engine.container_path, "env"), message)


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
    if len(names) < 2 or (engine.env.get("HF_HUB_OFFLINE") or "").lower() not in ("1", "true", "on", "yes"):
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
    offline = (engine.env.get("HF_HUB_OFFLINE") or "").lower() in ("1", "true", "on", "yes")
    if offline or not fetches(engine) or engine.manifest.kind in KSERVE:
        return
    cache = hub_cache(engine)
    for index, item in enumerate(sequence(engine.container.get("volumeMounts"))):
        mount = mapping(item)
        if mount.get("readOnly") is True and f"{cache}/".startswith(str(mount.get("mountPath")).rstrip("/") + "/"):
            path = (*engine.container_path, "volumeMounts", index)
            message = f"{' and '.join(fetches(engine))} would be fetched into {cache}, which is mounted read-only"
            yield Problem(engine.manifest, path, message)
