"""One engine's arguments as values: what has a typed value, what stays a free argument, what falls away and why."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from specdec import engine_args, facts
from specdec.errors import SpecdecError, nearest
from specdec.migrate import inverse
from specdec.migrate.instead import INSTEAD, OLDER
from specdec.migrate.inverse import Typed
from specdec.rules import versions
from specdec.rules.security import SECRET_FLAGS

Values = dict[str, Any]
Note = dict[str, str]
SPECULATIVE = ("--speculative-config", *engine_args.LEGACY_FLAGS.values(), *engine_args.SHORT_FLAGS.values())
# What the chart says itself: its own port, and nothing that a reader of manifests could steal.
OURS = {
    "--host": "the chart's engines listen on every address of their pod",
    "--port": "the chart's engines listen on 8000",
    "--uvicorn-log-level": "the chart leaves it to the engine",
    "--hf-token": "a token belongs into a Secret: huggingFace.tokenSecret",
    "--api-key": "a key belongs into a Secret: traffic.apiKeySecret",
    "--download-dir": "the chart's modelCache holds the models",
}
# The first version whose parser takes --no-FLAG for every switch. Source: vllm/engine/arg_utils.py of 0.9.0.
NEGATED_SINCE = (0, 9)


@dataclass
class Migration:
    """dropped: what the values do not say, and why; instead: what to do about it. decide: what a person has to look at.

    origin: the words that a value came from, by its path. asked: the words that asked for the speculation.
    """

    values: Values = field(default_factory=dict)
    dropped: list[Note] = field(default_factory=list)
    decide: list[Note] = field(default_factory=list)
    origin: dict[str, str] = field(default_factory=dict)
    asked: str = ""

    def put(self, path: str, value: Any, shown: str | None = None) -> None:
        """Sets a value at a dotted path."""
        *above, last = path.split(".")
        place = self.values
        for key in above:
            place = place.setdefault(key, {})
        place[last] = value
        if shown is not None:
            self.origin[path] = shown

    def drop(self, argument: str, why: str, instead: str | None = None) -> None:
        self.dropped.append({"argument": argument, "why": why} | ({"instead": instead} if instead else {}))

    def without_speculation(self) -> None:
        """Speculation off, and a word on each flag that was about it without asking for it."""
        for path in [path for path in self.origin if path.startswith("speculative.")]:
            words = self.origin.pop(path)
            if words.startswith("-") and words not in self.asked:
                self.drop(words, "nothing speculates in these values")
        self.decide = [note for note in self.decide if not note["value"].startswith("speculative.")]
        self.values["speculative"] = {"enabled": False}

    def ask(self, argument: str, why: str, value: str) -> None:
        self.decide.append({"argument": argument, "why": why, "value": value})


def flags(made: Migration, argv: list[str], args: engine_args.EngineArgs, source: str | None, to: str) -> None:
    """Every flag but those of speculation. Raises SpecdecError for one that no version has."""
    for flag, value in args.raw:
        if flag != "--model" and flag.partition(".")[0] not in SPECULATIVE:
            _flag(made, flag, value, _values_of(argv, flag), source, to)


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
    positive = "--" + flag[5:] if flag.startswith("--no-") else None
    typed = inverse.of_flag(flag, source) or (inverse.of_flag(positive, source) if positive else None)
    shown = flag if value is None or flag in SECRET_FLAGS else f"{flag} {value}"
    if flag in OURS:
        made.drop(shown, OURS[flag])
    elif typed is not None:
        put_typed(made, typed, False if positive else value, shown, to)
    elif flag in OLDER:
        made.drop(shown, f"vLLM {to} has no {flag}; it was gone before 0.6.3", OLDER[flag])
    elif flag not in versions.anywhere("flags") and not positive and "." not in flag:
        guess = nearest(flag, versions.anywhere("flags"))
        oldest = facts.engines()["versions"][0]["from"]
        raise SpecdecError(
            f"no version of vLLM from {oldest} on has {flag}",
            code="migrate-flag",
            fix=f"did you mean {guess}?" if guess else "take it out",
        )
    elif versions.has("flags", positive or flag.partition(".")[0], to) is False:
        plain = flag.partition(".")[0]
        when = versions.versions_with("flags", positive or plain) or "never"
        made.drop(shown, f"vLLM {to} has no {positive or plain}; it has been there {when}", INSTEAD.get(plain))
    else:
        # Old parsers took a word behind a switch; newer ones have a spelling of its own for off.
        if [word.lower() for word in words] in (["true"], ["false"]) and facts.version_key(to) >= NEGATED_SINCE:
            flag, words = (flag if words[0].lower() == "true" else "--no-" + flag[2:]), []
        extra = made.values.setdefault("engine", {}).setdefault("extraArgs", [])
        made.origin[f"engine.extraArgs[{len(extra)}]"] = shown
        extra.extend([flag, *words])


def put_typed(made: Migration, typed: Typed, given: Any, shown: str, to: str) -> None:
    """The typed value that was given, as the target says it: put, dropped with why, or left out as the default."""
    value = inverse.value_of(typed, given)
    argument = next(each for each in facts.engines()["arguments"] if each["value"] == typed.value)
    rows = facts.in_range(argument["rows"], to)
    if not rows:
        # Off is what an engine does that has no such switch.
        if not argument.get("optional") and value is not False:
            made.drop(shown, f"vLLM {to} has nothing for {typed.value}", argument.get("instead"))
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
        made.drop(shown, f"vLLM {to} takes it and it {without_effect}", argument.get("instead"))
        return
    made.put(typed.value, value, shown)


def _default(path: str) -> Any:
    value: Any = facts.load(facts.chart_dir() / "values.yaml")
    for key in path.split("."):
        value = value.get(key) if isinstance(value, dict) else None
    return value
