"""`specdec speed`: time per output token with and without speculation, by batch size."""

from __future__ import annotations

from dataclasses import replace
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
) -> int:
    """Predict the speed-up of speculation over batch sizes. With no acceptance given, an assumption by method.

    Exit 1 when the pair will not start on that engine, or does not fit.
    """
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
    code = 0 if document["fits"] and document["starts"] else 1
    if format == Format.json:
        output.print_json(document)
        return code
    from rich.table import Table

    out = output.console()
    for found in document["warnings"]:
        word = "[red]will not start[/]" if found["severity"] == "error" else "[yellow]warning[/]"
        out.print(f"{word} \\[{found['code']}]", end=" ")
        out.print(found["message"], markup=False)
    for reason in document["reasons"]:
        out.print("[red]does not fit[/]", end=" ")
        out.print(reason, markup=False)
    if code:
        out.print("what follows is what it would do if it did", markup=False)
    table = Table("batch", "without, ms a token", "with, ms a token", "speed-up")
    for row in document["batches"]:
        style = "green" if row["speedup"] > 1.02 else "red" if row["speedup"] < 0.98 else "yellow"
        waiting = f" ({row['waiting']} wait)" if row["waiting"] else ""
        table.add_row(
            f"{row['batch']}{waiting}",
            f"{row['baseline_tpot_ms']:.2f}",
            f"{row['speculative_tpot_ms']:.2f}",
            f"[{style}]{row['speedup']:.2f}[/]",
        )
    out.print(table)
    out.print(f"{document['mean_length']:.2f} tokens a step; acceptance {document['acceptance_source']}", markup=False)
    return code


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
    from specdec import facts, manifests
    from specdec.plan import catalogue, serving, start
    from specdec.plan import speed as model
    from specdec.plan.calibrate import acceptance_of, numbers, positive
    from specdec.plan.checks import pair_findings
    from specdec.plan.gpus import accelerator as gpu_of
    from specdec.plan.setup import build
    from specdec.plan.speculation import canonical, make_speculation
    from specdec.plan.verdict import judge
    from specdec.plan.workloads import check_load, check_parallelism

    version = facts.known_version(version)
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
        runner=manifests.runner(version, {}, spec.method, gpu.key == "cpu"),
        tp=tp,
        quantization=quantization,
        speculation=spec,
    )
    load = model.Load(input_len, output_len)
    check_load(setup, load)
    told = {"method": canonical(method), "num_speculative_tokens": k} | ({"model": draft} if draft else {})
    found = start.refusals_of_arguments(target, told, version, tp=tp, quantization=quantization, configs=configs)
    refusals, warnings = start.parted(found, [*warnings, *pair_findings(setup)])
    # Room for these requests, not for the longest that the model knows.
    needed = replace(setup, max_model_len=input_len + output_len)
    verdict = judge(needed)
    engine = model.engine(setup, load)
    most = serving.capacity(engine, verdict.memory) or max(batches)
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
                "waiting": max(0, b - most),
            }
        )
    return {
        "batches": rows,
        "mean_length": round(accepted.mean_length(k), 3),
        "acceptance_by_position": [round(p, 4) for p in accepted.cut(k)],
        "acceptance_source": accepted.source,
        "drafting_probability": round(engine.drafting(accepted, k), 3),
        "fits": verdict.fits,
        "starts": not refusals,
        "reasons": verdict.reasons,
        "requests_at_once": most,
        "warnings": [{"code": c, "message": m, "severity": "error"} for c, m in refusals]
        + [{"code": c, "message": m, "severity": "warning"} for c, m in warnings],
    }
