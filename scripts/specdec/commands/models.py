"""`specdec models`: what the planner knows of a model: parameters, bytes, KV cache."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

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
                "row": row_of(each, m.source, configs),
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
    out = output.console()
    out.print(table)
    for r in rows:
        if r["row"] not in (None, r["name"]):
            # The rest of the source says what else was read out of the name: a quantisation.
            _, _, by_name = str(r["source"]).partition("; ")
            out.print(
                f"{r['name']} is not in the tables: the row of {r['row']} was used ({by_name or 'by name'}). Give its "
                f"own config.json where they differ: --model-config {r['name']}=DIR",
                markup=False,
            )


def row_of(name: str, source: str, configs: Mapping[str, Path]) -> str | None:
    """The model of models.yaml whose row answered for `name`; None where a config.json did."""
    from specdec import facts
    from specdec.plan import catalogue

    rows = facts.models()
    if name in configs or name in rows:
        return None if name in configs else name
    where = source.partition("; ")[0]
    found = [key for key, row in rows.items() if row["source"] == where]
    hub = catalogue.hub_name(name)
    # Rows that share a source: the one whose name is nearest.
    same = [key for key in found if catalogue.last(key) == catalogue.last(hub)]
    return next(iter([*same, *found]), None)
