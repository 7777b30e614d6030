"""`specdec models`: what the planner knows of a model: parameters, bytes, KV cache."""

from __future__ import annotations

import typer

from specdec.output import Format


def models(
    name: str = typer.Argument(None, help="A model; all known ones where none is named."),
    model_config: list[str] = typer.Option([], "--model-config", help="NAME=DIR with the model's config.json."),
    format: Format = typer.Option(Format.text, help="text or json."),
) -> None:
    """Parameters, bytes of weights and KV cache bytes a token of known models and heads, or of any config.json."""
    from specdec import facts, output
    from specdec.plan import catalogue, weights
    from specdec.plan.inputs import configs_of

    configs = configs_of(model_config)
    names = [name] if name else [*facts.models(), *[n for n in configs if n not in facts.models()]]
    rows = []
    for each in names:
        m = catalogue.load(each, configs)
        rows.append(
            {
                "name": m.name,
                "family": m.family,
                "parameters": m.parameters,
                "checkpoint_gib": round(weights.checkpoint_bytes(m) / weights.GIB, 2),
                "format": weights.stored_format(m).name,
                "layers": m.layers,
                "vocabulary": m.vocab,
                "positions": m.max_positions,
                "kv_bytes_per_token": sum(g.count * g.kv_numbers(1) * 2 for g in m.kv),
                "source": m.source,
            }
        )
    if format == Format.json:
        output.print_json(rows)
        return
    from rich.table import Table

    table = Table("model", "parameters", "GiB", "format", "layers", "vocabulary", "positions", "KV bytes a token")
    for r in rows:
        table.add_row(
            str(r["name"]),
            f"{r['parameters']:,}",
            f"{r['checkpoint_gib']:.2f}",
            "16 bit" if r["format"] == "none" else str(r["format"]),
            str(r["layers"]),
            f"{r['vocabulary']:,}",
            f"{r['positions']:,}",
            f"{r['kv_bytes_per_token']:,}",
        )
    output.console().print(table)
