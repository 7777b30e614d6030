"""`specdec migrate`: another deployment's engine arguments as values of the chart."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from specdec.errors import SpecdecError
from specdec.output import Format, console, print_json

if TYPE_CHECKING:
    from specdec.migrate import Engine, Migration


def migrate(
    file: Annotated[
        str | None, typer.Argument(metavar="FILE", help="Command line, manifests or compose; - is stdin.")
    ] = None,
    command: Annotated[str | None, typer.Option("--command", "-c", help="The command line itself.")] = None,
    to: Annotated[str | None, typer.Option(help="vLLM version of the values; else the image's or chart's.")] = None,
    source: Annotated[str | None, typer.Option("--from", help="vLLM version of the arguments.")] = None,
    check: Annotated[bool, typer.Option(help="Render the values, drop what the version lacks.")] = True,
    output: Annotated[Format, typer.Option("--format", help="text (values.yaml) or json.")] = Format.text,
) -> None:
    """Turn legacy flags, a `vllm serve` command line or manifests into values for the chart.

    Values go to standard output; what fell away and what is to be decided go to standard error. What the chart refuses
    for the version falls away too, unless it changes which models run or how many tokens they draft.
    """
    from specdec.migrate import migrate as migrated
    from specdec.migrate import known_version, read

    engines = read(*_text(file, command))
    made = []
    for engine in engines:
        if source:
            engine.image = engine.image or f"vllm/vllm-openai:v{source}"
        made.append(migrated(engine, known_version(to or engine.version or _chart_version())))
    values = _together(engines, made)
    dropped = [note for each in made for note in each.dropped] + (_fit(values) if check else [])
    decide = [note for each in made for note in each.decide]
    if output is Format.json:
        print_json({"values": values, "dropped": dropped, "decide": decide})
        return
    _say(dropped, decide)
    import yaml

    sys.stdout.write(yaml.safe_dump(values, sort_keys=False, allow_unicode=True, width=120))


def _text(file: str | None, command: str | None) -> tuple[str, str]:
    """The text and where it came from. Raises SpecdecError unless it comes from one place."""
    if (file is None) == (command is None):
        raise SpecdecError("one of FILE and --command", code="usage", fix="specdec migrate --command 'vllm serve ...'")
    if command is not None:
        return command, "--command"
    if file == "-":
        return sys.stdin.read(), "standard input"
    try:
        return Path(str(file)).read_text(encoding="utf-8"), str(file)
    except (OSError, UnicodeDecodeError) as error:
        raise SpecdecError(f"not readable: {error}", code="unreadable-file", file=file) from None


def _chart_version() -> str:
    from specdec import facts

    return str(facts.load(facts.chart_dir() / "Chart.yaml")["appVersion"])


def _together(engines: list[Engine], made: list[Migration]) -> dict[str, Any]:
    """One engine is the release's own; of several each has its name."""
    if len(made) == 1:
        return made[0].values
    values: dict[str, Any] = {"engines": {}, "router": {"enabled": False}}
    for number, (engine, each) in enumerate(zip(engines, made, strict=True), start=1):
        name = engine.name if engine.name and engine.name not in values["engines"] else f"engine-{number}"
        values["engines"][name] = each.values
    return values


def _fit(values: dict[str, Any]) -> list[dict[str, str]]:
    """What fell away until the values rendered. Raises SpecdecError with the chart's own words for what may not."""
    from specdec.migrate.fitting import fit

    try:
        return fit(values)
    except SpecdecError as error:
        fix = f"{error.fix}; --no-check prints the values all the same" if error.fix else "--no-check prints them"
        raise SpecdecError(error.message, code=error.code, path=error.path, fix=fix) from None


def _say(dropped: list[dict[str, str]], decide: list[dict[str, str]]) -> None:
    out = console(stderr=True)
    for note in dropped:
        why = f" ({note['why']}, {note['code']})" if "code" in note else f": {note['why']}"
        out.print(f"dropped: {note['argument']}{why}", markup=False)
    for note in decide:
        out.print(f"decide: {note['argument']}: {note['why']}", markup=False)
