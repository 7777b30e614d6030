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
    check: Annotated[bool, typer.Option(help="Render the values before printing them.")] = True,
    output: Annotated[Format, typer.Option("--format", help="text (values.yaml) or json.")] = Format.text,
) -> None:
    """Turn legacy flags, a `vllm serve` command line or manifests into values for the chart.

    Values go to standard output; what fell away and what is to be decided go to standard error.
    """
    from specdec.migrate import migrate as migrated
    from specdec.migrate import read

    engines = read(*_text(file, command))
    made = []
    for engine in engines:
        if source:
            engine.image = engine.image or f"vllm/vllm-openai:v{source}"
        made.append(migrated(engine, to or engine.version or _chart_version()))
    values = _together(engines, made)
    if check:
        _render(values)
    if output is Format.json:
        notes = {"dropped": [note for each in made for note in each.dropped]}
        print_json({"values": values, **notes, "decide": [note for each in made for note in each.decide]})
        return
    _say(made)
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


def _render(values: dict[str, Any]) -> None:
    """Raises SpecdecError with the chart's own words where it refuses the values."""
    import tempfile

    import yaml

    from specdec import helm

    with tempfile.TemporaryDirectory(prefix="specdec-migrate-") as folder:
        file = Path(folder) / "values.yaml"
        file.write_text(yaml.safe_dump(values), encoding="utf-8")
        try:
            helm.render([file])
        except SpecdecError as error:
            fix = f"{error.fix}; --no-check prints the values all the same" if error.fix else "--no-check prints them"
            raise SpecdecError(error.message, code=error.code, path=error.path, fix=fix) from None


def _say(made: list[Migration]) -> None:
    out = console(stderr=True)
    for each in made:
        for title, notes in (("dropped", each.dropped), ("decide", each.decide)):
            for note in notes:
                out.print(f"{title}: {note['argument']}: {note['why']}", markup=False)
