"""`specdec init`: a new environment that plans."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from specdec.output import Format


def init(
    name: Annotated[str, typer.Argument(metavar="ENV", help="The new environment's name.")],
    cloud: Annotated[str | None, typer.Option(help="gke or eks.")] = None,
    accelerator: Annotated[str | None, typer.Option(help="GPU type, for example h100-80gb.")] = None,
    provisioning: Annotated[str | None, typer.Option(help="on_demand, spot, flex_start or queued.")] = None,
    region: Annotated[str | None, typer.Option(help="Region.")] = None,
    project: Annotated[str | None, typer.Option(help="Google Cloud project.")] = None,
    model: Annotated[str | None, typer.Option(help="Target model, org/name.")] = None,
    revision: Annotated[str | None, typer.Option(help="Its commit, 40 digits.")] = None,
    method: Annotated[str | None, typer.Option(help="How to speculate, or none.")] = None,
    draft: Annotated[str | None, typer.Option(help="Draft model or head, org/name.")] = None,
    draft_revision: Annotated[str | None, typer.Option(help="Its commit, 40 digits.")] = None,
    quantization: Annotated[str | None, typer.Option(help="For example fp8; default: the checkpoint's.")] = None,
    replicas: Annotated[int | None, typer.Option(min=1, max=10_000, help="Engines.")] = None,
    max_model_len: Annotated[int | None, typer.Option(min=1, help="Longest sequence, tokens.")] = None,
    tensor_parallel_size: Annotated[
        int | None, typer.Option(min=1, help="GPUs of an engine; default: the fewest that fit.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Take the default of what is not given.")] = False,
    output: Annotated[Format, typer.Option("--format", help="text or json.")] = Format.text,
) -> None:
    """Make an environment from a few answers, and plan it at once. Nothing is made where it does not fit (exit 1)."""
    from specdec.init.answers import check_name, collect, likely_misspelt
    from specdec.init.build import build
    from specdec.output import console, print_json

    given = {
        "cloud": cloud,
        "accelerator": accelerator,
        "provisioning": provisioning,
        "region": region,
        "project": project,
        "model": model,
        "revision": revision,
        "method": method,
        "draft": draft,
        "draft_revision": draft_revision,
        "quantization": quantization,
        "replicas": replicas,
        "max_model_len": max_model_len,
        "tensor_parallel_size": tensor_parallel_size,
    }
    check_name(name)
    out = console(stderr=True)
    if near := likely_misspelt(name):
        out.print(f"there is an environment {near}; {name} becomes another one", style="yellow")

    def ask(question: str, default: str, choices: list[str]) -> str:
        if yes or not sys.stdin.isatty():
            return default
        hint = f" ({', '.join(choices)})" if choices else ""
        return str(typer.prompt(f"{question}{hint}", default=default or None))

    folder, plans, bill = build(collect(name, given, ask))
    if output is Format.json:
        print_json({"environment": name, "folder": str(folder), "cost": bill.as_dict(), "plans": plans})
        return
    from specdec.plan.table import print_plan

    screen = console()
    for plan in plans:
        print_plan(screen, plan)
    screen.print(f"made {folder}: {', '.join(sorted(file.name for file in folder.iterdir()))}")
    screen.print(str(bill), markup=False)
    screen.print(f"next: put your names in its files, then make plan ENV={name} and make validate ENV={name}")
