"""The command `specdec`: each subcommand is one module in `specdec.commands`, and only the one that runs loads more."""

from __future__ import annotations

import itertools
import sys
from typing import cast

import typer

from specdec import __version__
from specdec.commands import COMMANDS
from specdec.errors import SpecdecError
from specdec.output import print_error


def show_version(asked: bool) -> None:
    if asked:
        typer.echo(f"specdec {__version__}")
        raise typer.Exit


# Typer exports the errors of its command-line parser by their leaves alone; this is what they all are.
UsageError = cast("type[typer.BadParameter]", typer.BadParameter.__base__)

app = typer.Typer(
    name="specdec",
    help="Plan, check, deploy and measure speculative decoding with vLLM on Kubernetes.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback(invoke_without_command=False)
def root(
    version: bool = typer.Option(False, "--version", is_eager=True, callback=show_version, help="Print the version."),
) -> None:
    """Plan, check, deploy and measure speculative decoding with vLLM on Kubernetes."""


for command in COMMANDS:
    app.command(name=command.__name__.replace("_", "-").strip("-"))(command)


def wants_json(arguments: list[str]) -> bool:
    """Whether `--format json` was asked for: known before parsing, so that a usage error obeys it too."""
    return "--format=json" in arguments or ("--format", "json") in itertools.pairwise(arguments)


def main(arguments: list[str] | None = None) -> None:
    """Exit 0: fine. 1: found something wrong. 2: bad input. 130: interrupted."""
    arguments = sys.argv[1:] if arguments is None else arguments
    as_json = wants_json(arguments)
    try:
        code = app(args=arguments, standalone_mode=False)
    except SpecdecError as error:
        print_error(error, as_json=as_json)
        sys.exit(error.exit_code)
    except typer.Exit as stop:
        sys.exit(stop.exit_code)
    except (typer.Abort, KeyboardInterrupt):
        sys.exit(130)
    except UsageError as error:
        print_error(SpecdecError(error.format_message(), code="usage", fix="see --help"), as_json=as_json)
        sys.exit(2)
    sys.exit(code if isinstance(code, int) else 0)
