"""SD444 to SD446: how the weights of target and draft are fetched."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from specdec.manifests import EngineWorkload
from specdec.objects import mapping, sequence
from specdec.rules.caches import KSERVE, caching, fetches
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
