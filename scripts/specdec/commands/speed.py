"""`specdec speed`: time per output token with and without speculation, by batch size."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from specdec.output import Format


def speed(
    target: str = typer.Option(..., help="The target model."),
    accelerator: str = typer.Option(..., help="The GPU type; specdec accelerators lists them."),
    tp: int = typer.Option(1, help="Tensor parallel size."),
    method: str = typer.Option(..., help="draft_model, eagle, eagle3, medusa, mtp, ngram, suffix..."),
    draft: str = typer.Option(None, help="The draft model or head."),
    quantization: str = typer.Option(None, help="fp8, awq, ... of the target."),
    engine_version: str = typer.Option("0.32.0", help="vLLM version."),
    k: int = typer.Option(..., "--k", help="Speculative tokens."),
    acceptance: str = typer.Option(None, help="By position, accepted / drafts: 0.8,0.6,0.4"),
    mean_length: float = typer.Option(None, help="Tokens a step: 1 + accepted / drafts."),
    measured: str = typer.Option(
        None, metavar="BATCH=SPEEDUP", help="A measured speed-up; acceptance follows from it."
    ),
    input_len: int = typer.Option(512, help="Tokens of a prompt."),
    output_len: int = typer.Option(256, help="Tokens of an answer."),
    batch: str = typer.Option("1,16,64,128", help="Requests at once."),
    model_config: list[str] = typer.Option([], "--model-config", help="NAME=DIR with the model's config.json."),
    format: Format = typer.Option(Format.text, help="text or json."),
) -> None:
    """Predict the speed-up of speculation over batch sizes. With no acceptance given, an assumption by method."""
    from specdec import output
    from specdec.plan.inputs import configs_of

    configs: dict[str, Path] = configs_of(model_config)
    document = predict(
        target,
        accelerator,
        tp,
        method,
        draft,
        quantization,
        engine_version,
        k,
        acceptance,
        mean_length,
        measured,
        input_len,
        output_len,
        batch,
        configs,
    )
    if format == Format.json:
        output.print_json(document)
        return
    from rich.table import Table

    table = Table("batch", "without, ms a token", "with, ms a token", "speed-up")
    for row in document["batches"]:
        style = "green" if row["speedup"] > 1.02 else "red" if row["speedup"] < 0.98 else "yellow"
        table.add_row(
            str(row["batch"]),
            f"{row['baseline_tpot_ms']:.2f}",
            f"{row['speculative_tpot_ms']:.2f}",
            f"[{style}]{row['speedup']:.2f}[/]",
        )
    out = output.console()
    out.print(table)
    out.print(f"{document['mean_length']:.2f} tokens a step; acceptance {document['acceptance_source']}", markup=False)


def predict(
    target: str,
    accelerator: str,
    tp: int,
    method: str,
    draft: str | None,
    quantization: str | None,
    version: str,
    k: int,
    acceptance: str | None,
    mean_length: float | None,
    measured: str | None,
    input_len: int,
    output_len: int,
    batch: str,
    configs: dict[str, Path],
) -> dict[str, Any]:
    """The JSON form. Raises SpecdecError on anything that cannot be."""
    from specdec import manifests
    from specdec.plan import catalogue
    from specdec.plan import speed as model
    from specdec.plan.calibrate import acceptance_of, numbers, positive
    from specdec.plan.setup import build
    from specdec.plan.speculation import make_speculation
    from specdec.plan.workloads import accelerator as gpu_of
    from specdec.plan.workloads import check_parallelism

    batches = numbers(batch)
    positive(input_len, "--input-len")
    positive(output_len, "--output-len")
    gpu = gpu_of(accelerator)
    the_target = catalogue.load(target, configs)
    check_parallelism(the_target, tp, 1, 0, gpu.key)
    spec, warnings = make_speculation(method, the_target, k=k, draft_name=draft, configs=configs, usual_head=True)
    setup = build(
        the_target,
        gpu,
        version=version,
        runner=manifests.runner(version, {}),
        tp=tp,
        quantization=quantization,
        speculation=spec,
    )
    engine = model.engine(setup, model.Load(input_len, output_len))
    accepted = acceptance_of(engine, k, acceptance, mean_length, measured)
    rows = []
    for b in batches:
        base, speculative = engine.baseline_ms(b), engine.speculative_ms(b, accepted, k)
        rows.append(
            {
                "batch": b,
                "speedup": round(base / speculative, 4),
                "baseline_tpot_ms": round(base, 3),
                "speculative_tpot_ms": round(speculative, 3),
            }
        )
    return {
        "batches": rows,
        "mean_length": round(accepted.mean_length(k), 3),
        "acceptance_by_position": [round(p, 4) for p in accepted.cut(k)],
        "acceptance_source": accepted.source,
        "drafting_probability": round(engine.drafting(accepted, k), 3),
        "warnings": [{"code": code, "message": message} for code, message in warnings],
    }
