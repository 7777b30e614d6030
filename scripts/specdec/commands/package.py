"""`specdec package`: the chart as a release."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from specdec.errors import SpecdecError
from specdec.output import Format


def package(
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for what is made.")] = Path("dist"),
    tag: Annotated[str | None, typer.Option(help="The release's tag; has to be v and the chart's version.")] = None,
    digest: Annotated[
        list[str] | None, typer.Option(help="IMAGE=sha256:..., in place of asking the registry. Repeatable.")
    ] = None,
    format: Annotated[Format, typer.Option("--format", help="text or json.")] = Format.text,
) -> None:
    """Package the chart with the digests of its images, so that a release never changes under those who use it."""
    from specdec.output import console, make_folder, print_json
    from specdec.package import build, registry

    known: dict[str, str] = {}
    for pair in digest or ():
        image, separator, value = pair.partition("=")
        if not separator:
            raise SpecdecError(f"--digest {pair}", code="usage", fix="IMAGE=sha256:...")
        known[image] = value
    make_folder(output, "--output")
    made = build.package(output, tag, known, registry.digest)
    if format is Format.json:
        print_json(
            {"chart": str(made.chart), "pinned": str(made.pinned), "version": made.version, "sha256": made.sha256}
        )
        return
    out = console()
    out.print(f"{made.chart}  sha256:{made.sha256}", markup=False)
    out.print(f"{made.pinned}", markup=False)
