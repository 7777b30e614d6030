"""One engine's arguments as values: what has a typed value, what stays a free argument, what falls away and why."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from specdec import engine_args, facts, manifests
from specdec.errors import SpecdecError, nearest
from specdec.migrate import inverse, methods
from specdec.migrate.inverse import Typed
from specdec.migrate.sources import Engine
from specdec.rules import versions

Values = dict[str, Any]
Note = dict[str, str]
SPECULATIVE = ("--speculative-config", *engine_args.LEGACY_FLAGS.values(), *engine_args.SHORT_FLAGS.values())
# What the chart says itself: its own port, and nothing that a reader of manifests could steal.
OURS = {
    "--host": "the chart's engines listen on every address of their pod",
    "--port": "the chart's engines listen on 8000",
    "--uvicorn-log-level": "the chart leaves it to the engine",
    "--hf-token": "a token belongs into a Secret: huggingFace.tokenSecret",
    "--api-key": "a key belongs into a Secret: traffic's own, or the engine's variable VLLM_API_KEY in engine.extraEnv",
    "--download-dir": "the chart's modelCache holds the models",
}
RUNNERS = {("VLLM_USE_V1", "0"): "v0", ("VLLM_USE_V1", "1"): "v1"}
RUNNERS |= {("VLLM_USE_V2_MODEL_RUNNER", "0"): "v1", ("VLLM_USE_V2_MODEL_RUNNER", "1"): "v2"}
SHA = re.compile(r"[0-9a-f]{40}")


@dataclass
class Migration:
    """dropped: what the values do not say, and why. decide: what a person has to look at. Both: {argument, why}."""

    values: Values = field(default_factory=dict)
    dropped: list[Note] = field(default_factory=list)
    decide: list[Note] = field(default_factory=list)

    def put(self, path: str, value: Any) -> None:
        """Sets a value at a dotted path."""
        *above, last = path.split(".")
        place = self.values
        for key in above:
            place = place.setdefault(key, {})
        place[last] = value

    def drop(self, argument: str, why: str) -> None:
        self.dropped.append({"argument": argument, "why": why})

    def ask(self, argument: str, why: str) -> None:
        self.decide.append({"argument": argument, "why": why})


def migrate(engine: Engine, to: str) -> Migration:
    """The values for an engine of version `to`. Raises SpecdecError for what no value and no argument can say."""
    made = Migration()
    args = engine_args.parse(engine.argv)
    if args.errors:
        raise SpecdecError(args.errors[0], code="migrate-unreadable", fix="the arguments as the engine takes them")
    if not args.model:
        raise SpecdecError("no model is named", code="migrate-model", fix="vllm serve MODEL, or --model MODEL")
    made.put("engine.version", to)
    made.put("engine.model.name", args.model)
    for flag, value in args.raw:
        if flag == "--model" or flag.partition(".")[0] in SPECULATIVE:
            continue
        _flag(made, flag, value, _values_of(engine.argv, flag), engine.version, to)
    _speculation(made, args, engine.version, to)
    _container(made, engine, to)
    _revisions(made)
    return made


def _values_of(argv: list[str], flag: str) -> list[str]:
    """The words behind a flag's last occurrence, each as it stood."""
    spelled = [engine_args.canonical(word.partition("=")[0]) if word.startswith("-") else "" for word in argv]
    position = max((place for place, name in enumerate(spelled) if name == flag), default=len(argv))
    word = argv[position] if position < len(argv) else ""
    if "=" in word:
        return [word.partition("=")[2]]
    following = argv[position + 1 :]
    return following[: next((n for n, each in enumerate(following) if re.match(r"-+[A-Za-z]", each)), len(following))]


def _flag(made: Migration, flag: str, value: str | None, words: list[str], source: str | None, to: str) -> None:
    switched_off = flag.startswith("--no-")
    typed = inverse.of_flag(flag, source) or (inverse.of_flag("--" + flag[5:], source) if switched_off else None)
    shown = flag if value is None else f"{flag} {value}"
    if flag in OURS:
        made.drop(shown, OURS[flag])
    elif typed is not None:
        if switched_off:
            made.drop(shown, f"it is off unless {typed.value} is true")
        else:
            _typed(made, typed, value, shown, to)
    elif flag not in versions.anywhere("flags") and not switched_off and "." not in flag:
        guess = nearest(flag, versions.anywhere("flags"))
        raise SpecdecError(
            f"no version of vLLM has {flag}", code="migrate-flag", fix=f"did you mean {guess}?" if guess else None
        )
    elif versions.has("flags", "--" + flag[5:] if switched_off else flag.partition(".")[0], to) is False:
        made.drop(
            shown, f"vLLM {to} has no {flag}; it has been there {versions.versions_with('flags', flag) or 'never'}"
        )
    else:
        made.values.setdefault("engine", {}).setdefault("extraArgs", []).extend([flag, *words])


def _typed(made: Migration, typed: Typed, given: Any, shown: str, to: str) -> None:
    value = inverse.value_of(typed, given)
    argument = next(each for each in facts.engines()["arguments"] if each["value"] == typed.value)
    rows = facts.in_range(argument["rows"], to)
    if not rows:
        if not argument.get("optional"):
            instead = f"; instead: {argument['instead']}" if "instead" in argument else ""
            made.drop(shown, f"vLLM {to} has nothing for {typed.value}{instead}")
        return
    if typed.value == "engine.model.servedName":
        names = str(value).split()
        if names[1:]:
            made.drop(" ".join(names[1:]), "an engine of the chart serves one name")
        value = names[0]
        if value == made.values["engine"]["model"]["name"]:
            return
    if value is None or value == argument.get("default") or value == _default(typed.value):
        return
    name = rows[0].get("field", "")
    without_effect = versions.without_effect(name, to) if name else None
    if without_effect:
        made.drop(shown, f"vLLM {to} takes it and it {without_effect}")
        return
    made.put(typed.value, value)


def _default(path: str) -> Any:
    value: Any = facts.load(facts.chart_dir() / "values.yaml")
    for key in path.split("."):
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _speculation(made: Migration, args: engine_args.EngineArgs, source: str | None, to: str) -> None:
    asked = args.speculative
    tokens_alone = args.value("--num-speculative-tokens")
    if asked is None and tokens_alone is None:
        made.put("speculative.enabled", False)
        return
    fields = dict(asked.raw) if asked else {"num_speculative_tokens": tokens_alone}
    model = fields.pop("model", None)
    name = fields.pop("method", None)
    method = _method(made, name, model, fields, to)
    made.put("speculative.method", method)
    if model and model not in ("ngram", "[ngram]"):
        if facts.engines()["methods"][method]["needsModel"] or method in ("mtp", "dspark"):
            made.put("speculative.model.name", model)
        else:
            made.drop(f"model {model}", f"{method} drafts without a model")
    tokens = fields.pop("num_speculative_tokens", None)
    made.put("speculative.numTokens", None if tokens is None else int(tokens))
    for key, value in fields.items():
        _field(made, key, value, source, to)


def _method(made: Migration, name: Any, model: Any, fields: Values, to: str) -> str:
    if name:
        method = methods.of_name(str(name))
        if method is None:
            known = ", ".join(facts.engines()["methods"])
            raise SpecdecError(f"the chart has no method {name!r}", code="migrate-method", fix=f"known: {known}")
    elif model:
        method, certain = methods.of_model(str(model))
        if not certain:
            made.ask(f"model {model}", f"no method was named, as its name looks: {method}")
    elif "prompt_lookup_max" in fields:
        method = "ngram"
    else:
        method = "mtp"
        made.ask("speculation without method and model", "the engine takes the target's own multi-token head: mtp")
    entry = facts.engines()["methods"][method]
    if not facts.in_range(entry["rows"], to):
        runs = [name for name, other in facts.engines()["methods"].items() if facts.in_range(other["rows"], to)]
        raise SpecdecError(
            f"vLLM {to} cannot run {method}", code="migrate-method", fix=f"another --to, or one of {', '.join(runs)}"
        )
    return method


def _field(made: Migration, key: str, value: Any, source: str | None, to: str) -> None:
    shown = f"{key} {value}"
    if value is None:
        return
    found = inverse.of_field(key, value, source)
    if not found:
        known = versions.anywhere("fields")
        if key not in known:
            guess = nearest(key, known)
            raise SpecdecError(
                f"SpeculativeConfig of no version has {key!r}",
                code="migrate-field",
                fix=f"did you mean {guess}?" if guess else None,
            )
        if versions.has("fields", key, to) is False:
            made.drop(shown, f"vLLM {to} has no {key}")
            return
        raise SpecdecError(f"the chart has no value for {key}", code="migrate-field", fix="leave it out")
    for typed, each in found:
        _typed(made, typed, each, shown, to)
    if isinstance(value, dict) and len(found) < len(value):
        made.drop(shown, f"only {', '.join(typed.row['key'] for typed, _ in found)} of it has values")


def _container(made: Migration, engine: Engine, to: str) -> None:
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
    if value is None:
        if name not in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"):
            made.drop(f"env {name}", "its value comes from elsewhere; put it into engine.extraEnv")
        return
    runner = RUNNERS.get((name, value.lower()))
    typed = inverse.of_variable(name, source)
    if runner:
        rows = facts.in_range(facts.engines()["runners"], to)
        if rows and runner in rows[0].get("choice", []):
            made.put("engine.runner", runner)
        else:
            made.drop(f"env {name}={value}", f"vLLM {to} leaves no choice of the runner")
    elif typed is not None:
        _typed(made, typed, value, f"env {name}={value}", to)
    elif name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "VLLM_API_KEY"):
        made.drop(f"env {name}", "a secret in clear; put it into a Secret")
    else:
        made.values.setdefault("engine", {}).setdefault("extraEnv", []).append({"name": name, "value": value})


def _revisions(made: Migration) -> None:
    """A model of the Hub needs a revision; without one the command took the main branch, and so do the values."""
    for section in _models(made.values):
        if str(section["name"]).startswith("/"):
            continue
        if not section.get("revision"):
            section["revision"] = "main"
        if not SHA.fullmatch(str(section["revision"])):
            made.put("huggingFace.allowMutableRevision", True)
            made.ask(
                f"revision {section['revision']} of {section['name']}",
                "it can move to other weights: the 40 digits of a commit, and huggingFace.allowMutableRevision false",
            )


def _models(values: Values) -> Iterator[Values]:
    yield values["engine"]["model"]
    if "name" in values.get("speculative", {}).get("model", {}):
        yield values["speculative"]["model"]
    yield from values.get("lora", {}).get("modules", [])
