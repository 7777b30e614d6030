"""`specdec render`: the manifests that an environment stands for."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from specdec.errors import unknown
from specdec.output import Format, print_json

ENGINE_LABEL = "vllm-speculative/engine"


def render(
    environment: Annotated[str | None, typer.Argument(metavar="ENV", help="An environment's name.")] = None,
    values: Annotated[list[Path] | None, typer.Option("--values", "-f", help="Values file, later ones win.")] = None,
    set_values: Annotated[list[str] | None, typer.Option("--set", help="One value, key=value.")] = None,
    release: Annotated[str | None, typer.Option(help="Release's name.", envvar="RELEASE")] = None,
    namespace: Annotated[str | None, typer.Option(help="Namespace.", envvar="NAMESPACE")] = None,
    engine: Annotated[str | None, typer.Option(help="Only the objects of this engine.")] = None,
    kube_version: Annotated[str | None, typer.Option(help="Kubernetes version to render for.")] = None,
    output: Annotated[Format, typer.Option("--format", help="text (YAML) or json (a list of objects).")] = Format.text,
) -> None:
    """Print the manifests of an environment, or of values files."""
    from specdec import environments, helm

    where = environments.choose(environment, values, release, namespace)
    text = helm.render(where.values, set_values or [], where.release, where.namespace, kube_version)
    text = text if engine is None else only(text, engine)
    if output is Format.json:
        from specdec.manifests import parse

        print_json([manifest.data for manifest in parse(text, where.name)])
    else:
        sys.stdout.write(text)


def only(text: str, engine: str) -> str:
    """The documents that carry that engine's label. Raises SpecdecError when none does."""
    from specdec.manifests import parse

    parts = [part for part in ("\n" + text).split("\n---\n") if part.strip()]
    labelled = [
        (str(manifest.labels[ENGINE_LABEL]), part)
        for part in parts
        for manifest in parse(part, "rendered")
        if ENGINE_LABEL in manifest.labels
    ]
    names = {name for name, _ in labelled}
    if engine not in names:
        raise unknown("engine", engine, names)
    return "".join(f"---\n{part.strip(chr(10))}\n" for name, part in labelled if name == engine)
