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
    what: list[str] = typer.Argument(
        None, metavar="(ENV | FILE...)", help="An environment; manifests or folders of them; - for standard input."
    ),
    values: list[Path] = typer.Option([], "--values", "-f", help="Values files in place of an environment."),
    set_values: list[str] = typer.Option([], "--set", help="A value, as in helm: key=value."),
    model_config: list[str] = typer.Option([], "--model-config", help="NAME=DIR with the model's config.json."),
    accelerator: str = typer.Option(None, help="GPU type, where the manifest does not say."),
    engine_version: str | None = typer.Option(None, help="vLLM version, where the image does not say."),
    task: str = typer.Option("chat", help="code, chat, translation or json: what acceptance is assumed."),
    acceptance: str = typer.Option(None, help="Measured acceptance by position: 0.8,0.6,0.4"),
    benchmark: Path = typer.Option(None, help="A benchmark's JSON result: acceptance and times are taken from it."),
    engine_log: list[Path] = typer.Option(
        [], "--engine-log", help="Log of this engine's start: its KV cache is taken; two lengths give bytes a token."
    ),
    input_len: int = typer.Option(512, help="Tokens of a prompt."),
    output_len: int = typer.Option(256, help="Tokens of an answer."),
    concurrency: int = typer.Option(50, help="Requests at once on one engine, that K is chosen for."),
    prefix_hits: float = typer.Option(0.0, help="Share of prompt tokens found in the prefix cache."),
    cloud: str = typer.Option(None, help="gke or eks."),
    machine: str = typer.Option(None, help="Machine shape."),
    region: str = typer.Option(None, help="Region of the price."),
    provisioning: str = typer.Option(None, help="on_demand, spot, flex_start..."),
    price: float = typer.Option(None, help="Dollars an hour of the machine, in place of prices.yaml."),
    sale: float = typer.Option(None, help="Dollars that a million output tokens are sold for: shows the margin."),
    search: bool = typer.Option(
        False, "--search", help="Search TP, K, method, quantisation, GPU and draft for the cheapest."
    ),
    target_tpot: float = typer.Option(20.0, help="With --search: ms an output token that have to be kept."),
    write: Path | None = typer.Option(None, help="Write the chosen K or schedule into this values file."),
    output: Path | None = typer.Option(None, "--output", "-o", help="Write to a file in place of the screen."),
    format: PlanFormat = typer.Option(PlanFormat.text, help="text, json, md or html."),
) -> int:
    """Plan memory, speed, K and cost before a GPU is bought. Exit 1 when it does not fit or will not start."""
    from specdec import facts
    from specdec.infrastructure import bought
    from specdec.infrastructure.configs import beside
    from specdec.output import check_file
    from specdec.plan import enginelog, start
    from specdec.plan.calibrate import above_zero, positive
    from specdec.plan.document import plan_document
    from specdec.plan.inputs import configs_of, engines_of, named, share
    from specdec.plan.speed import Load
    from specdec.plan.wishes import Wishes
    from specdec.plan.workloads import check_load, plan_input

    for file, option in ((output, "--output"), (write, "--write")):
        if file is not None:
            check_file(file, option)
    for value, name in ((input_len, "--input-len"), (output_len, "--output-len"), (concurrency, "--concurrency")):
        positive(value, name)
    for number, name in ((price, "--price"), (sale, "--sale"), (target_tpot, "--target-tpot")):
        above_zero(number, name)
    accepted, times = measured(acceptance, benchmark)
    wishes = Wishes(
        load=Load(input_len, output_len),
        task=task,
        acceptance=accepted,
        times=times,
        concurrency=concurrency,
        prefix_hits=share(prefix_hits, "--prefix-hits"),
        cloud=cloud,
        machine=machine,
        region=region,
        provisioning=provisioning,
        dollars_per_hour=price,
        sale=sale,
        engine_logs=tuple(enginelog.read(file) for file in engine_log),
    )
    if engine_version is not None:
        engine_version = facts.known_version(engine_version)
    what = named(what or [])
    workloads = engines_of(what, values, set_values, engine_version)
    configs = beside(what) | configs_of(model_config)
    planned = []
    for workload in workloads:
        try:
            planned.append(
                plan_input(
                    workload,
                    configs=configs,
                    accelerator_name=accelerator,
                    cloud=cloud,
                    engine_version=engine_version,
                )
            )
        except SpecdecError as error:
            # Of several engines it has to be said which.
            if len(workloads) > 1:
                error.message = f"{workload.name}: {error.message}"
            raise
    found = start.found_by_rules(workloads, engine_version, configs)
    for p, workload in zip(planned, workloads, strict=True):
        start.refuse(p, workload, found)
    if search:
        from specdec.plan.search import print_search

        if len(planned) > 1:
            names = ", ".join(p.name for p in planned)
            raise SpecdecError(f"--search takes one engine, and these are {names}", code="usage", fix="a file with one")
        if format in (PlanFormat.md, PlanFormat.html) or output is not None or write is not None:
            fix = "leave out --output, --write and --format md or html"
            raise SpecdecError("--search prints a table, or JSON with --format json", code="usage", fix=fix)
        return print_search(planned[0], wishes, target_tpot, as_json=format == PlanFormat.json)
    target = bought.target_of(what)
    for p in planned:
        check_load(p.setup, wishes.load)
    documents = [plan_document(p, bought.wishes_for(wishes, target, p.setup.accelerator.key)) for p in planned]
    # What needs the cloud's credentials is no part of this: it is said, not passed over.
    apart = [{**found, "severity": "warning"} for found in bought.disagreement(target, workloads)]
    documents = [d | {"terraform": bought.SKIPPED, "warnings": [*d["warnings"], *apart]} for d in documents]
    if write is not None:
        from specdec.plan.write import write_choice

        for line in write_choice(write, documents):
            typer.echo(f"{write}: {line}", err=True)
    show(documents, format, output, bought.note(what))
    return 0 if all(d["fits"] and d["starts"] for d in documents) else 1


def measured(text: str | None, benchmark: Path | None) -> tuple[Any, tuple[tuple[int, int, float], ...]]:
    """Acceptance and times, from the command line or from a benchmark; (None, ()) where neither is given."""
    from specdec.plan import acceptance, calibrate

    if text and benchmark:
        raise SpecdecError("--acceptance and --benchmark say the same twice", code="usage", fix="give one of them")
    if benchmark:
        accepted, times = calibrate.from_benchmark(benchmark)
        return accepted, tuple(times)
    return (acceptance.parse(text) if text else None), ()


def show(documents: list[dict[str, Any]], format: PlanFormat, file: Path | None, note: str | None = None) -> None:
    from specdec import output

    if format == PlanFormat.text and file is None:
        from specdec.plan.table import print_plan

        for document in documents:
            print_plan(output.console(), document)
        if note:
            typer.echo(note)
        return
    if format == PlanFormat.json:
        import json

        text = (
            json.dumps(
                documents[0]
                if len(documents) == 1
                else {"terraform": documents[0]["terraform"], "engines": {d["engine"]: d for d in documents}},
                indent=2,
            )
            + "\n"
        )
    elif format == PlanFormat.html:
        from specdec.plan.html import report

        text = report(documents)
    else:
        from specdec.plan.markdown import report as markdown

        text = markdown(documents)
    if file is None:
        typer.echo(text, nl=False)
    else:
        output.save(file, text, "--output")
