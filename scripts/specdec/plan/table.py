"""The plan for people: a bar a rank that shows where memory goes, and the numbers beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

BAR = 50
CONFIGURED = "configured"
PARTS = [
    ("target_weights_gib", "target", "blue"),
    ("draft_weights_gib", "draft", "magenta"),
    ("activation_gib", "activation", "yellow"),
    ("non_torch_gib", "driver", "bright_black"),
    ("cuda_graph_gib", "graphs", "red"),
    ("kv_cache_gib", "KV cache", "green"),
]


def print_plan(out: Console, doc: dict[str, Any]) -> None:
    from rich.text import Text

    head = (
        f"{doc['engine']}: {doc['target']}"
        + (f" + {doc['draft']}" if doc["draft"] else "")
        + (f", {doc['method']}" if doc["method"] else "")
    )
    out.print(Text(head, style="bold"))
    out.print(
        f"vLLM {doc['engine_version']} (runner {doc['runner']}), {gpus(doc)}",
        markup=False,
    )
    if refusal := will_not_start(doc):
        out.print(f"[red]{refusal}[/]")
        for error in errors(doc):
            out.print(f"  {error['code']}: {error['message']}", markup=False)
    same = all({**r} == {**doc["ranks"][0]} for r in doc["ranks"])
    for index, rank in enumerate(doc["ranks"][:1] if same else doc["ranks"]):
        label = f"each of {doc['gpus']} GPUs" if same and doc["gpus"] > 1 else f"GPU {index}"
        label = "CPU" if doc["accelerator"] == "cpu" and label == "GPU 0" else label
        out.print(bar(rank, label))
    rank = doc["ranks"][doc["deciding_rank"]]
    names = "  ".join(f"[{color}]■[/] {name} {rank[key]:.1f}" for key, name, color in PARTS if rank[key])
    out.print(f"  {names}  GiB, budget {rank['budget_gib']:.1f} of {rank['total_gib']:.1f}")
    if not doc["starts"]:
        out.print("the figures below are what it would do if it did start", markup=False)
    if doc["fits"]:
        low, high = rank["band_gib"]
        out.print(
            f"{'[green]fits[/]' if doc['starts'] else 'memory'}:"
            f" KV cache {rank['kv_cache_gib']:.1f} GiB ({low:.1f} to {high:.1f}),"
            f" {doc['kv_cache_tokens']:,} tokens, {doc['max_concurrency']:.1f} sequences of {doc['max_model_len']:,}"
            + (f", in each of {doc['data_parallel_size']} replicas" if doc["data_parallel_size"] > 1 else "")
        )
        if doc.get("draft_cost"):
            out.print(f"the draft costs {doc['draft_cost']['text']}", markup=False)
    else:
        out.print("[red]does not fit[/]")
        for reason in doc["reasons"]:
            out.print(f"  {reason}", markup=False)
        for change in doc["changes_that_fit"]:
            out.print(f"  would fit: {change}", markup=False)
    print_speed(out, doc)
    if found := doc.get("claims"):
        out.print(f"published claims about this pair cannot all hold ({found['source']}; unverified):", markup=False)
        for objection in found["objections"]:
            out.print(f"  - {objection}", markup=False)
    for warning in (w for w in doc["warnings"] if w.get("severity") != "error"):
        out.print(f"[yellow]warning[/] \\[{warning['code']}] {warning['message']}")


def gpus(doc: dict[str, Any]) -> str:
    """8 x h100-80gb, and how they are shared where that is not by tensors alone."""
    sizes = {"TP": doc["tensor_parallel_size"], "PP": doc["pipeline_parallel_size"], "DP": doc["data_parallel_size"]}
    shared = ", ".join(f"{name} {size}" for name, size in sizes.items() if size > 1)
    apart = f" ({shared})" if sizes["PP"] * sizes["DP"] > 1 else ""
    return f"{doc['gpus']} x {doc['accelerator']}{apart}"


def errors(doc: dict[str, Any]) -> list[dict[str, Any]]:
    """What the engine will not start on."""
    return [w for w in doc["warnings"] if w.get("severity") == "error"]


def will_not_start(doc: dict[str, Any]) -> str | None:
    """The headline of a plan whose engine ends at its start; None for any other."""
    if doc["starts"]:
        return None
    codes = ", ".join(dict.fromkeys(error["code"] for error in errors(doc)))
    return f"this engine will not start: {codes}" + ("; its memory would do" if doc["fits"] else "")


def print_speed(out: Console, doc: dict[str, Any]) -> None:
    """Time per output token of each arm by requests at once, the choice of K, the cost."""
    from rich.table import Table

    speeds = [*doc["speed"], *beside(doc)]
    arms = list(dict.fromkeys(row["arm"] for row in speeds))
    table = Table("requests at once", *[f"{arm},\nms a token" for arm in arms], "speed-up", "tokens/s in all")
    for batch in dict.fromkeys(row["batch"] for row in doc["speed"]):
        rows = {row["arm"]: row for row in speeds if row["batch"] == batch}
        last = rows.get("schedule") or rows.get("static") or rows["baseline"]
        cells = [f"{rows[a]['tpot_ms']:.1f}" + (f" (K={rows[a]['k']})" if rows[a]["k"] else "") for a in arms]
        best = max(r["speedup"] for arm, r in rows.items() if arm != CONFIGURED)
        waiting = f" ({last['waiting']} wait)" if last["waiting"] else ""
        table.add_row(f"{batch}{waiting}", *cells, f"{best:.2f}", f"{last['tokens_per_second']:,.0f}")
    out.print(table)
    if doc["acceptance"]:
        tokens = doc["num_speculative_tokens"]
        best = f"K={tokens['static']}" if tokens["static"] else "no speculation"
        load = doc["load"]
        waiting = f" (of {load['concurrency_asked']}, the others wait)" * (
            load["concurrency"] < load["concurrency_asked"]
        )
        out.print(
            f"best at {load['concurrency']} requests{waiting}: {best}; {doc['acceptance']['mean_length']:.2f} tokens a"
            f" step, acceptance {doc['acceptance']['source']}{continued(doc)}",
            markup=False,
        )
        if doc["configured"]:
            out.print(doc["configured"]["text"], markup=False)
        if tokens["schedule"]:
            out.print(
                "schedule: " + ", ".join(f"{r['from']} to {r['to']}: {r['tokens']}" for r in tokens["schedule"]),
                markup=False,
            )
        cross = doc["crossover_batch"]
        out.print(
            f"slower than without from {cross} requests on" if cross else "faster than without at every load that fits",
            markup=False,
        )
    if cost := doc.get("cost"):
        near = min(cost["per_million_output_tokens"], key=lambda r: abs(r["concurrency"] - doc["load"]["concurrency"]))
        arms_cost = ", ".join(f"{arm} ${near[arm]:.2f}" for arm in ("baseline", "static", "schedule") if arm in near)
        approx = ", approximate" if cost["price_approximate"] else ""
        out.print(
            f"a million output tokens at {near['concurrency']} requests: {arms_cost} ({cost['cloud']}"
            f" {cost['machine']}, {cost['provisioning']}, ${cost['engine_dollars_per_hour']:.2f} an hour an engine,"
            f" price of {cost['price_date']}{approx})",
            markup=False,
        )


def continued(doc: dict[str, Any]) -> str:
    """Said where the K that is recommended lies beyond the positions that anything is known of."""
    known, k = doc["acceptance"]["known_positions"], doc["num_speculative_tokens"]["static"]
    return f"; known for {known} positions, and continued to K={k}: measure before you rely on it" if k > known else ""


def beside(doc: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows of the configured K, where it is none of the arms that the plan compares."""
    found = doc["configured"]
    if not found or (
        not found["schedule"] and found["num_speculative_tokens"] == doc["num_speculative_tokens"]["static"]
    ):
        return []
    return [{"arm": CONFIGURED, **row} for row in found["speed"]]


def bar(rank: dict[str, Any], label: str) -> Any:
    """One GPU as a bar; what is over the GPU's memory is marked."""
    from rich.text import Text

    text = Text(f"{label:>14} ")
    scale = BAR / rank["total_gib"] if rank["total_gib"] else 0.0
    used = 0
    for key, _, color in PARTS:
        cells = max(0, round(max(0.0, rank[key]) * scale))
        cells = min(cells, BAR + 10 - used)
        text.append("█" * cells, style=color)
        used += cells
    text.append("·" * max(0, BAR - used), style="bright_black")
    return text
