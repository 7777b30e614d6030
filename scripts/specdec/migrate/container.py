"""What an engine's container says beside its arguments, as values: image, variables, resources, the Hub's token."""

from __future__ import annotations

import re
from collections.abc import Mapping

from specdec import facts, manifests
from specdec.migrate import inverse
from specdec.migrate.migration import Migration, Values, put_typed
from specdec.migrate.sources import Engine
from specdec.rules.fetching import GATED, HUB_TOKENS

RUNNERS = {("VLLM_USE_V1", "0"): "v0", ("VLLM_USE_V1", "1"): "v1"}
RUNNERS |= {("VLLM_USE_V2_MODEL_RUNNER", "0"): "v1", ("VLLM_USE_V2_MODEL_RUNNER", "1"): "v2"}
SHA = re.compile(r"[0-9a-f]{40}")
SECRET = re.compile(r"(^|_)(TOKEN|SECRET|PASSWORD|PASSWD|KEY|CREDENTIALS?)$")
# Variables of the place that the engine ran in.
OURS = {
    "CUDA_VISIBLE_DEVICES": "Kubernetes gives a pod its GPUs, as many as the parallel sizes need",
    "NVIDIA_VISIBLE_DEVICES": "Kubernetes gives a pod its GPUs, as many as the parallel sizes need",
    "NVIDIA_DRIVER_CAPABILITIES": "the image says it",
    "HF_HOME": "the chart's modelCache holds the models",
    "HF_HUB_CACHE": "the chart's modelCache holds the models",
    "HUGGINGFACE_HUB_CACHE": "the chart's modelCache holds the models",
    "TRANSFORMERS_CACHE": "the chart's modelCache holds the models",
    "HF_HUB_OFFLINE": "huggingFace.offline says it",
    "VLLM_PORT": "the chart's engines listen on 8000",
}


def container(made: Migration, engine: Engine, to: str) -> None:
    """What the engine's container says beside its arguments."""
    if engine.replicas != 1:
        made.put("engine.replicas", engine.replicas)
    _image(made, engine, to)
    if engine.token_secret:
        name, key = engine.token_secret
        made.put("huggingFace.tokenSecret.name", name)
        if key != "token":
            made.put("huggingFace.tokenSecret.key", key)
    for name, value in engine.env.items():
        _variable(made, name, value, engine.version, to)
    requests = manifests.mapping(engine.resources.get("requests"))
    limits = manifests.mapping(engine.resources.get("limits"))
    for part, amounts in (("requests", requests), ("limits", limits)):
        kept = {key: amount for key, amount in amounts.items() if key in ("cpu", "memory")}
        if kept:
            made.put(f"engine.resources.{part}", kept)


def _image(made: Migration, engine: Engine, to: str) -> None:
    if not engine.image:
        return
    name, _, digest = engine.image.partition("@")
    tag = manifests.image_tag(name)
    repository = name.removesuffix(f":{tag}") if tag else name
    if repository not in ("vllm/vllm-openai", "docker.io/vllm/vllm-openai"):
        made.put("engine.image.repository", repository)
    if engine.version and facts.version_key(engine.version) != facts.version_key(to):
        made.drop(f"image {engine.image}", f"the target is vLLM {to}")
    elif tag and tag not in (f"v{to}", "latest"):
        made.put("engine.image.tag", tag)
    if digest and engine.version in (None, to):
        made.put("engine.image.digest", digest)


def _variable(made: Migration, name: str, value: str | None, source: str | None, to: str) -> None:
    if name in OURS:
        made.drop(f"env {name}" if value is None else f"env {name}={value}", OURS[name])
        return
    if value is None:
        if name not in HUB_TOKENS:
            made.drop(f"env {name}", "its value comes from elsewhere", f"engine.extraEnv with {name} and its valueFrom")
        return
    runner = RUNNERS.get((name, value.lower()))
    typed = inverse.of_variable(name, source)
    if runner:
        rows = facts.in_range(facts.engines()["runners"], to)
        if rows and runner in rows[0].get("choice", []):
            made.put("engine.runner", runner, f"env {name}={value}")
        else:
            made.drop(f"env {name}={value}", f"vLLM {to} leaves no choice of the runner")
    elif typed is not None:
        put_typed(made, typed, value, f"env {name}={value}", to)
    elif SECRET.search(name):
        instead = {**dict.fromkeys(HUB_TOKENS, "huggingFace.tokenSecret"), "VLLM_API_KEY": "traffic.apiKeySecret"}
        where = instead.get(name, "engine.extraEnv with valueFrom.secretKeyRef")
        made.drop(f"env {name}", "a secret in clear", f"a Secret, and {where}")
    else:
        extra = made.values.setdefault("engine", {}).setdefault("extraEnv", [])
        made.origin[f"engine.extraEnv[{len(extra)}]"] = f"env {name}"
        extra.append({"name": name, "value": value})


def revisions(made: Migration, to: str, commits: Mapping[str, str]) -> None:
    """A model of the Hub needs a revision; without one the command took the main branch, and so do the values.

    commits: the commit of a model, by its name; it wins over what the command says.
    """
    _adapters(made, commits)
    sections = [pair for pair in _models(made.values) if not str(pair[1]["name"]).startswith("/")]
    for _, section in sections:
        section["revision"] = commits.get(section["name"]) or section.get("revision") or "main"
    moving = [pair for pair in sections if not SHA.fullmatch(str(pair[1]["revision"]))]
    if moving and "speculative.model" in dict(sections) and not _holds("speculative.model.revision", to):
        instead = " ".join(f"--revision {section['name']}=COMMIT" for _, section in moving)
        why = f"vLLM {to} cannot be told a draft's revision, so its files have to be fetched before, by commits"
        made.drop(made.origin["speculative.method"], why, f"{instead}, or a newer --to")
        made.without_speculation()
    _token(made, [str(section["name"]) for _, section in sections])
    by_name = facts.in_range(facts.engines()["limits"]["offlineNames"], to)
    for path, section in moving:
        if path == "speculative.model" and "model" not in made.values["speculative"]:
            continue
        made.put("huggingFace.allowMutableRevision", True)
        needed = "" if by_name else "; modelCache.prefetch.enabled true needs it"
        made.ask(
            f"revision {section['revision']} of {section['name']}",
            f"it can move to other weights: --revision {section['name']}=COMMIT pins them{needed}",
            f"{path}.revision",
        )
        if not by_name:
            # A fetched model is told to the engine by the directory of its commit; without one it fetches itself.
            made.put("modelCache.prefetch.enabled", False)


def _token(made: Migration, names: list[str]) -> None:
    gated = [name for name in names if GATED.fullmatch(name)]
    if gated and "tokenSecret" not in made.values.get("huggingFace", {}):
        why = f"{' and '.join(gated)} need a token: the name of a Secret with it, under the key token"
        made.ask("huggingFace.tokenSecret.name", why, "huggingFace.tokenSecret.name")


def _adapters(made: Migration, commits: Mapping[str, str]) -> None:
    """An adapter of the Hub has to be fetched beforehand, which takes its commit."""
    modules = made.values.get("lora", {}).get("modules", [])
    for module in list(modules):
        name = str(module["name"])
        if name.startswith("/"):
            continue
        if commits.get(name):
            module["revision"] = commits[name]
            continue
        shown = f"--lora-modules {module['servedName']}={name}"
        made.drop(shown, "an adapter of the Hub needs its commit", f"--revision {name}=COMMIT")
        modules.remove(module)
    if not modules:
        made.values.get("lora", {}).pop("modules", None)


def _holds(path: str, version: str) -> bool:
    argument = next(each for each in facts.engines()["arguments"] if each["value"] == path)
    return bool(facts.in_range(argument["rows"], version))


def _models(values: Values) -> list[tuple[str, Values]]:
    found = [("engine.model", values["engine"]["model"])]
    if "name" in values.get("speculative", {}).get("model", {}):
        found.append(("speculative.model", values["speculative"]["model"]))
    return found
