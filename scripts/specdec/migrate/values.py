"""An engine, wherever it was found, as values of the chart."""

from __future__ import annotations

from collections.abc import Mapping

from specdec import engine_args
from specdec.errors import SpecdecError
from specdec.migrate.container import container, revisions
from specdec.migrate.migration import OURS, SPECULATIVE, Migration, flags
from specdec.migrate.shell import unknown
from specdec.migrate.sources import Engine
from specdec.migrate.speculation import speculation


def migrate(engine: Engine, to: str, commits: Mapping[str, str] | None = None) -> Migration:
    """The values for an engine of version `to`. commits: those of models, by name.

    Raises SpecdecError for what no value and no argument can say.
    """
    made = Migration(dropped=list(engine.dropped))
    argv = _known(made, engine.argv)
    args = engine_args.parse(argv)
    if args.errors:
        raise SpecdecError(args.errors[0], code="migrate-unreadable", fix="the arguments as the engine takes them")
    if not args.model:
        raise SpecdecError("no model is named", code="migrate-model", fix="vllm serve MODEL, or --model MODEL")
    made.put("engine.version", to)
    made.put("engine.model.name", args.model)
    flags(made, argv, args, engine.version, to)
    speculation(made, args, engine.version, to)
    container(made, engine, to)
    revisions(made, to, commits or {})
    return made


def _known(made: Migration, argv: list[str]) -> list[str]:
    """The words without flags whose value is a variable that nothing here tells.

    Raises SpecdecError where the model or the speculation is one.
    """
    words: list[str] = []
    flag = "--model"
    for word in argv:
        if word.startswith("-"):
            flag = engine_args.canonical(word.partition("=")[0])
        names = unknown(word)
        if not names:
            words.append(word)
            continue
        told = " ".join(f"--env {name}=VALUE" for name in names)
        if flag == "--model" or flag.partition(".")[0] in SPECULATIVE:
            raise SpecdecError(f"{flag}: nothing tells the value of {word}", code="migrate-variable", fix=told)
        if words and engine_args.canonical(words[-1]) == flag:
            words.pop()
        if flag not in OURS:
            made.drop(f"{flag} {word.removeprefix(flag + '=')}", f"nothing tells the value of {', '.join(names)}", told)
    return words
