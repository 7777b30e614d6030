"""The speculation that an engine was asked for, as values: method, model, K, and what else the target knows of it."""

from __future__ import annotations

from typing import Any

from specdec import engine_args, facts
from specdec.errors import SpecdecError, nearest
from specdec.migrate import inverse, methods
from specdec.migrate.migration import SPECULATIVE, Migration, Values, put_typed
from specdec.rules import versions


def speculation(made: Migration, args: engine_args.EngineArgs, source: str | None, to: str) -> None:
    """Raises SpecdecError for a method or a field that no version has.

    A method that the target cannot run leaves the engine without speculation: it answers the same, and slower.
    """
    asked = args.speculative
    tokens_alone = args.value("--num-speculative-tokens")
    if asked is None and tokens_alone is None:
        made.without_speculation()
        return
    shown = made.asked = asked_as(args)
    flags = {name: flag for name, flag in engine_args.LEGACY_FLAGS.items() if args.has(flag)}
    fields = dict(asked.raw) if asked else {"num_speculative_tokens": tokens_alone}
    model = fields.pop("model", None)
    method = _method(made, fields.pop("method", None), model, fields, shown, to)
    if method is None:
        made.without_speculation()
        return
    made.put("speculative.method", method, shown)
    if model and model not in ("ngram", "[ngram]"):
        if facts.engines()["methods"][method]["needsModel"] or method in ("mtp", "dspark"):
            made.put("speculative.model.name", model, f"model {model}")
        else:
            made.drop(f"model {model}", f"{method} drafts without a model")
    _tokens(made, fields.pop("num_speculative_tokens", None))
    if method == "suffix":
        made.put("engine.image.hasArcticInference", True)
        made.ask("method suffix", "it needs an image with arctic-inference: engine.image.repository", "engine.image")
    for key, value in fields.items():
        _field(made, key, value, f"{flags.get(key, key)} {value}", source, to)


def asked_as(args: engine_args.EngineArgs) -> str:
    """The words that asked for the speculation."""
    asking = [(flag, value) for flag, value in args.raw if flag.partition(".")[0] in SPECULATIVE]
    return " ".join(flag if value is None else f"{flag} {value}" for flag, value in asking)


def _tokens(made: Migration, tokens: Any) -> None:
    shown = f"num_speculative_tokens {tokens}"
    if tokens is None:
        made.ask(
            "num_speculative_tokens", "none was given: as many as specdec plan finds best", "speculative.numTokens"
        )
        return
    try:
        made.put("speculative.numTokens", int(tokens), shown)
    except (TypeError, ValueError):
        raise SpecdecError(
            f"num_speculative_tokens is {tokens!r}, not a number", code="migrate-value", fix="for example 3"
        ) from None


def _method(made: Migration, name: Any, model: Any, fields: Values, shown: str, to: str) -> str | None:
    """The chart's method; None where the target has none such, which is noted."""
    if name:
        method = methods.of_name(str(name))
        if method is None:
            known = sorted({*facts.engines()["methods"], *facts.surfaces()["methods"]})
            if name not in known:
                guess = nearest(str(name), known)
                fix = f"did you mean {guess}?" if guess else f"known: {', '.join(facts.engines()['methods'])}"
                raise SpecdecError(f"no version of vLLM has the method {name!r}", code="migrate-method", fix=fix)
            made.drop(shown, f"the chart has no method {name}", f"speculative.method: {', '.join(_runs(to))}")
            return None
    elif model:
        method, certain = methods.of_model(str(model))
        if not certain:
            made.ask(f"model {model}", f"no method was named, as its name looks: {method}", "speculative.method")
    elif "prompt_lookup_max" in fields:
        method = "ngram"
    else:
        method = "mtp"
        made.ask(
            "speculation without method and model",
            "the engine takes the target's own multi-token head: mtp",
            "speculative.method",
        )
    if not facts.in_range(facts.engines()["methods"][method]["rows"], to):
        does = versions.not_run(method, to)
        why = f"vLLM {to} cannot run {method}" + (f": it {does}" if does else "")
        made.drop(shown, why, f"speculative.method: {', '.join(_runs(to))}; or another --to")
        return None
    return method


def _runs(to: str) -> list[str]:
    return [name for name, other in facts.engines()["methods"].items() if facts.in_range(other["rows"], to)]


def _field(made: Migration, key: str, value: Any, shown: str, source: str | None, to: str) -> None:
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
        there = versions.has("fields", key, to)
        made.drop(shown, f"vLLM {to} has no {key}" if there is False else "the chart has no value for it")
        return
    for typed, each in found:
        put_typed(made, typed, each, shown, to)
    if isinstance(value, dict) and len(found) < len(value):
        made.drop(shown, f"only {', '.join(typed.row['key'] for typed, _ in found)} of it has values")
