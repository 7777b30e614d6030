"""`specdec plan`: memory, speed, K and cost of what an environment or a manifest would start."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Any

import typer

from specdec.errors import SpecdecError


class PlanFormat(StrEnum):
    text = "text"
    json = "json"
    md = "md"
    html = "html"


def plan(
    what: list[str] = typer.Argument(None, metavar="(ENV | FILE...)", help="An environment, or manifests; - reads standard input."),
    values: list[Path] = typer.Option([], "--values", "-f", help="Values files in place of an environment."),
    set_values: list[str] = typer.Option([], "--set", help="A value, as in helm: key=value."),
    model_config: list[str] = typer.Option([], "--model-config", help="NAME=DIR with the model's config.json."),
    accelerator: str = typer.Option(None, help="GPU type, where the manifest does not say."),
    cloud: str = typer.Option(None, help="gke or eks: refuse a GPU that it does not have."),
    engine_version: str = typer.Option(None, help="vLLM version, where the image does not say."),
    format: PlanFormat = typer.Option(PlanFormat.text, help="text, json, md or html."),
) -> int:
    """Plan memory, speed, K and cost before a GPU is bought. Exit 1 when it does not fit."""
    from specdec.plan.document import plan_document
    from specdec.plan.inputs import configs_of, engines_of
    from specdec.plan.workloads import plan_input

    workloads = engines_of(what or [], values, set_values, engine_version)
    configs = configs_of(model_config)
    documents = [
        plan_document(plan_input(w, configs=configs, accelerator_name=accelerator, cloud=cloud, engine_version=engine_version))
        for w in workloads
    ]
    show(documents, format)
    return 0 if all(d["fits"] for d in documents) else 1


def show(documents: list[dict[str, Any]], format: PlanFormat) -> None:
    from specdec import output

    if format == PlanFormat.json:
        output.print_json(documents[0] if len(documents) == 1 else {"engines": {d["engine"]: d for d in documents}})
        return
    if format != PlanFormat.text:
        raise SpecdecError(f"no {format} yet", code="usage")
    from specdec.plan.table import print_plan

    for document in documents:
        print_plan(output.console(), document)
