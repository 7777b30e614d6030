"""`specdec migrate`: another deployment's engine arguments as values of the chart."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from specdec import reading
from specdec.errors import SpecdecError
from specdec.output import Format, console, print_json

if TYPE_CHECKING:
    from specdec.migrate import Engine, Migration
    from specdec.migrate.migration import Note


def migrate(
    file: Annotated[
        str | None,
        typer.Argument(metavar="FILE", help="Command lines, manifests, compose file or systemd unit; - is stdin."),
    ] = None,
    command: Annotated[str | None, typer.Option("--command", "-c", help="The command line itself.")] = None,
    to: Annotated[str | None, typer.Option(help="vLLM version of the values; else the image's or chart's.")] = None,
    source: Annotated[str | None, typer.Option("--from", help="vLLM version of the arguments.")] = None,
    env: Annotated[
        list[str] | None, typer.Option(help="A variable that the command line uses, NAME=VALUE. Repeatable.")
    ] = None,
    revision: Annotated[
        list[str] | None, typer.Option(help="A model's commit, ORG/NAME=40 digits. Repeatable.")
    ] = None,
    check: Annotated[bool, typer.Option(help="Render the values, drop what the version lacks.")] = True,
    output: Annotated[Format, typer.Option("--format", help="text (values.yaml) or json.")] = Format.text,
) -> None:
    """Turn legacy flags, a `vllm serve` or `docker run` line, manifests or compose files into values for the chart.

    Values go to standard output; what fell away and what is to be decided go to standard error and into the values as
    comments. What the chart refuses for the version falls away too. Which models run on how many GPUs never changes:
    where the version cannot speculate with them, the speculation goes as a whole.
    """
    from specdec.migrate import known_version, read, source_version
    from specdec.migrate import migrate as migrated
    from specdec.migrate.target import is_known
    from specdec.migrate.text import document

    known = _variables(env or [])
    commits = _commits(revision or [])
    target = known_version(to) if to is not None else None
    stated = source_version(source) if source is not None else None
    engines = read(*_text(file, command), known)
    made = []
    for engine in engines:
        engine.stated = stated
        own = engine.version if engine.version and is_known(engine.version) else None
        made.append(migrated(engine, target or own or _chart_version(), commits))
    values, origin = _together(engines, made)
    dropped = [note for each in made for note in each.dropped] + (_fit(values, origin) if check else [])
    # Of a speculation that went as a whole nothing is left to decide.
    gone = tuple(f"{note['value']}." for note in dropped if note.get("value", "").endswith("speculative"))
    decide = [note for each in made for note in each.decide if not (gone and note["value"].startswith(gone))]
    if output is Format.json:
        print_json({"values": values, "dropped": dropped, "decide": decide})
        return
    out = console(stderr=True)
    for title, notes in (("dropped", dropped), ("decide", decide)):
        for note in notes:
            out.print(f"{title}: {_line(note)}", markup=False)
    sys.stdout.write(document(values, [f"{title}: {_line(note)}" for title, note in _titled(dropped, decide)]))


def _titled(dropped: list[Note], decide: list[Note]) -> list[tuple[str, Note]]:
    return [("dropped", note) for note in dropped] + [("decide", note) for note in decide]


def _line(note: Note) -> str:
    instead = f"; instead: {note['instead']}" if note.get("instead") else ""
    code = f" ({note['code']})" if note.get("code") else ""
    return f"{note['argument']}: {note['why']}{instead}{code}"


def _variables(pairs: list[str]) -> dict[str, str]:
    for pair in pairs:
        if not pair.partition("=")[1] or not pair.partition("=")[0].isidentifier():
            raise SpecdecError(f"{pair!r} is not NAME=VALUE", code="usage", path="--env", fix="--env MODEL=org/name")
    return {name: value for name, _, value in (pair.partition("=") for pair in pairs)}


def _commits(pairs: list[str]) -> dict[str, str]:
    for pair in pairs:
        if not re.fullmatch(r"[^=]+=[0-9a-f]{40}", pair):
            fix = "--revision ORG/NAME=COMMIT, 40 digits"
            raise SpecdecError(f"{pair!r} names no commit of a model", code="usage", path="--revision", fix=fix)
    return {name: commit for name, _, commit in (pair.partition("=") for pair in pairs)}


def _text(file: str | None, command: str | None) -> tuple[str, str]:
    """The text and where it came from. Raises SpecdecError unless it comes from one place."""
    if (file is None) == (command is None):
        raise SpecdecError("one of FILE and --command", code="usage", fix="specdec migrate --command 'vllm serve ...'")
    if command is not None:
        return command, "--command"
    return reading.text(str(file)), "standard input" if file == "-" else str(file)


def _chart_version() -> str:
    from specdec import facts

    return str(facts.load(facts.chart_dir() / "Chart.yaml")["appVersion"])


def _together(engines: list[Engine], made: list[Migration]) -> tuple[dict[str, Any], dict[str, str]]:
    """The release's values, and where each came from. One engine is the release's own; of several each has its name."""
    from specdec.migrate.text import engine_name

    if len(made) == 1:
        return made[0].values, made[0].origin
    values: dict[str, Any] = {"engines": {}, "router": {"enabled": False}}
    origin: dict[str, str] = {}
    for number, (engine, each) in enumerate(zip(engines, made, strict=True), start=1):
        name = engine_name(engine.name)
        if not name or name in values["engines"]:
            name = f"engine-{number}"
        values["engines"][name] = each.values
        for note in [*each.dropped, *each.decide]:
            if "value" in note:
                note["value"] = f"engines.{name}.{note['value']}"
        origin |= {f"engines.{name}.{path}": words for path, words in each.origin.items()}
    return values, origin


def _fit(values: dict[str, Any], origin: dict[str, str]) -> list[Note]:
    """What fell away until the values rendered. Raises SpecdecError with the chart's own words for what may not."""
    from specdec.migrate.fitting import fit

    try:
        return fit(values, origin)
    except SpecdecError as error:
        fix = f"{error.fix}; --no-check prints the values all the same" if error.fix else "--no-check prints them"
        raise SpecdecError(error.message, code=error.code, path=error.path, fix=fix) from None
