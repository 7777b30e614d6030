"""The plan as one HTML page: for who pays and who runs it. Every figure says whether it is computed, fitted or
measured."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import Any

from specdec.plan.charts import COLORS, Line, bar_legend, legend, line_chart, memory_bar
from specdec.plan.table import errors, gpus, will_not_start


def report(documents: list[dict[str, Any]]) -> str:
    body = "".join(engine_page(d) for d in documents)
    style = Path(__file__).with_name("report.css").read_text(encoding="utf-8")
    title = escape("Plan of " + ", ".join(d["engine"] for d in documents))
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport"'
        ' content="width=device-width,initial-scale=1">'
        f"<title>{title}</title><style>{style}</style></head><body><main>{body}</main></body></html>\n"
    )


def engine_page(doc: dict[str, Any]) -> str:
    pair = escape(doc["target"].rsplit("/", 1)[-1])
    if doc["draft"]:
        pair += " with " + escape(doc["draft"].rsplit("/", 1)[-1])
    elif doc["method"]:
        pair += f" with {escape(doc['method'])}"
    parts = [
        (
            f"<h1>{pair}</h1><p class=sub>{escape(doc['engine'])} on {gpus(doc)}, vLLM"
            f" {escape(doc['engine_version'])}, {doc['load']['input_len']} tokens in and"
            f" {doc['load']['output_len']} out</p>"
        ),
        verdict(doc),
        memory(doc),
        curves(doc),
        money(doc),
        numbers(doc),
        claims(doc),
        warnings(doc),
        sources(doc),
    ]
    return "".join(parts)


def verdict(doc: dict[str, Any]) -> str:
    near = at_load(doc)
    facts: list[tuple[str, str]] = []
    best = min(near.values(), key=lambda r: r["tpot_ms"])
    tokens = doc["num_speculative_tokens"]
    if doc["fits"]:
        facts.append((f"{doc['kv_cache_tokens']:,}", "tokens of KV cache"))
        facts.append((f"{doc['requests_at_once']:,}", "requests at once"))
    facts.append((f"{best['tpot_ms']:.1f} ms", f"a token at {best['batch']} requests"))
    if doc["method"]:
        facts.append((f"{best['speedup']:.2f} x", "faster than without"))
        facts.append(
            (
                f"K = {tokens['static']}" if tokens["static"] else "none",
                f"best at {doc['load']['concurrency']} requests",
            )
        )
    if doc["cost"]:
        row = min(doc["cost"]["per_million_output_tokens"], key=lambda r: abs(r["concurrency"] - best["batch"]))
        facts.append((f"${row.get(best['arm'], row['baseline']):.2f}", "a million output tokens"))
    cells = "".join(f"<div><b>{escape(a)}</b><span>{escape(b)}</span></div>" for a, b in facts)
    if refusal := will_not_start(doc):
        found = "".join(f"<p>{escape(e['code'])}: {escape(e['message'])}</p>" for e in errors(doc))
        note = "<p class=how>The speed and cost below are what it would do if it did start.</p>"
        text = f"<b class=word>{escape(refusal)}.</b>{found}"
        text += "".join(f"<p>{escape(r)}.</p>" for r in doc["reasons"])
        return f'<section class="verdict no">{text}{note}<div class=facts>{cells}</div></section>'
    if doc["fits"]:
        text = (
            f"<b class=word>It fits.</b> KV cache of {doc['ranks'][doc['deciding_rank']]['kv_cache_gib']:.1f} GiB a GPU"
        )
        text += f"; the draft costs {escape(doc['draft_cost']['text'])}." if doc.get("draft_cost") else "."
        return f"<section class=verdict>{text}<div class=facts>{cells}</div></section>"
    reasons = "".join(f"<p>{escape(r)}.</p>" for r in doc["reasons"])
    changes = "".join(f"<li>{escape(c)}</li>" for c in doc["changes_that_fit"])
    would = f"<p>Each of these would fit:</p><ul>{changes}</ul>" if changes else ""
    note = "<p class=how>The speed and cost below are what it would do if it did fit.</p>"
    return (
        f'<section class="verdict no"><b class=word>It does not fit.</b>{reasons}{would}{note}<div'
        f" class=facts>{cells}</div></section>"
    )


def at_load(doc: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The rows of every arm at the number of requests nearest to the one that K was chosen for."""
    batches = sorted({r["batch"] for r in doc["curve"]}, key=lambda b: abs(b - doc["load"]["concurrency"]))
    return {r["arm"]: r for r in doc["curve"] if r["batch"] == batches[0]}


def label(doc: dict[str, Any], index: int, same: bool) -> str:
    return f"each of {doc['gpus']} GPUs" if same and doc["gpus"] > 1 else f"GPU {index}"


def memory(doc: dict[str, Any]) -> str:
    ranks = doc["ranks"]
    same = all(r == ranks[0] for r in ranks)
    bars = "".join(
        f"<p class=how>{label(doc, i, same)}</p>{memory_bar(r)}" for i, r in enumerate(ranks[:1] if same else ranks)
    )
    deciding = ranks[doc["deciding_rank"]]
    low, high = deciding["band_gib"]
    cache = ""
    if doc["fits"]:
        cache = (
            f" The KV cache lies between {low:.1f} and {high:.1f} GiB in four cases of five; kvCacheMemoryBytes"
            f" {doc['kv_cache_memory_bytes']:,} fixes it."
            f" {escape(doc['when_the_kv_cache_is_full'][:1].upper() + doc['when_the_kv_cache_is_full'][1:])}."
        )
    return (
        f"<section><h2>Where the memory goes</h2>{bars}{bar_legend(deciding)}<p class=how>Weights computed from the"
        " models' configurations; activations, driver and graphs from what this engine version profiles, constants"
        f" fitted to engine logs.{cache}</p></section>"
    )


def series(doc: dict[str, Any], key: str) -> list[Line]:
    arms = [a for a in COLORS if any(r["arm"] == a for r in doc["curve"])]
    return [Line(a, [(r["batch"], r[key]) for r in doc["curve"] if r["arm"] == a]) for a in arms]


def curves(doc: dict[str, Any]) -> str:
    cross = doc["crossover_batch"]
    mark = (float(cross), f"slower from {cross} on") if cross and cross > 1 else None
    time, rate = series(doc, "tpot_ms"), series(doc, "tokens_per_second")
    arms = [line.arm for line in time]
    how = (
        "Fitted: one set of constants for all models and GPUs; on 27 published points, each predicted from"
        " its batch of 1, 2 % mean and 9 % worst error."
    )
    where = ""
    if doc["method"]:
        where = (
            f"Speculation makes every token slower from {cross} requests at once on. "
            if cross
            else f"Speculation is faster at every load up to {time[0].points[-1][0]:g} requests at once. "
        )
    if doc["configured"]:
        where += f"{escape(doc['configured']['text'][:1].upper() + doc['configured']['text'][1:])}. "
    times = line_chart(time, x_label="requests at once", y_label="ms a token", mark=mark)
    rates = line_chart(rate, x_label="requests at once", y_label="tokens a second")
    between = "<p class=how>Computed from the time per token with the prompts of the other requests between.</p>"
    return (
        f"<div class=two><section><h2>Time per output token, ms</h2>{times}{legend(arms)}"
        f"<p class=how>{where}{how}</p></section>"
        f"<section><h2>Output tokens a second, whole engine</h2>{rates}{legend(arms)}{between}</section></div><p></p>"
    )


def money(doc: dict[str, Any]) -> str:
    cost = doc["cost"]
    if not cost:
        missing = doc.get("cost_missing")
        return f"<section><h2>Cost</h2><p>{escape(missing)}</p></section>" if missing else ""
    rows = cost["per_million_output_tokens"]
    arms = [a for a in COLORS if a in rows[0]]
    # Few users carry the whole machine: their dollars would flatten the rest of the chart.
    drawn = [r for r in rows if r["concurrency"] >= 8] or rows
    lines = [Line(a, [(r["concurrency"], r[a]) for r in drawn]) for a in arms]
    approx = " (approximate)" if cost["price_approximate"] else ""
    sale = ""
    if cost["sale_dollars_per_million"]:
        near = min(rows, key=lambda r: abs(r["concurrency"] - doc["load"]["concurrency"]))
        margins = ", ".join(f"{a} {near[f'{a}_margin']:.0%}" for a in arms)
        sale = (
            f"<p>Sold at ${cost['sale_dollars_per_million']:.2f} a million, the margin at {near['concurrency']}"
            f" requests is: {margins}.</p>"
        )
    chart = line_chart(
        lines, x_label="users at once, one engine", y_label="dollars a million output tokens", money=True
    )
    idle = escape(cost["idle"][0].upper() + cost["idle"][1:])
    return (
        f"<section><h2>Dollars for a million output tokens, against users at once</h2>{chart}{legend(arms)}{sale}"
        f"<p class=how>{cost['cloud']} {cost['machine']}, {cost['region']}, {cost['provisioning'].replace('_', ' ')}: "
        f"${cost['machine_dollars_per_hour']:.2f} an hour for {cost['engines_per_machine']} engines, "
        f"price of {escape(cost['price_date'])}{approx}. {cost['replicas']} replicas: "
        f"${cost['dollars_per_month']:,.0f} a month. {idle}.</p></section>"
    )


HEADINGS = (
    "requests, arm",
    "K",
    "ms a token",
    "p99",
    "first token, ms",
    "tokens/s a user",
    "tokens/s in all",
    "speed-up",
)


def numbers(doc: dict[str, Any]) -> str:
    head = "".join(f"<th>{name}</th>" for name in HEADINGS)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells(row))}</tr>" for row in doc["speed"])
    schedule = doc["num_speculative_tokens"]["schedule"]
    text = ", ".join(f"{span(r['from'], r['to'])}: {r['tokens']}" for r in schedule)
    return (
        f"<section><h2>The numbers</h2><div class=scroll><table><tr>{head}</tr>{body}</table></div>"
        f"{f'<p>K by load: {text}.</p>' if schedule else ''}</section>"
    )


def span(first: int, last: int) -> str:
    if first == last:
        return f"{first} request{'s' if first > 1 else ''}"
    return f"{first} to {last} requests"


def cells(row: dict[str, Any]) -> list[str]:
    return [
        f"{row['batch']}, {row['arm']}",
        str(row["k"] or "-"),
        f"{row['tpot_ms']:.1f}",
        f"{row['tpot_p99_ms']:.1f}",
        f"{row['ttft_ms']:,.0f}",
        f"{row['user_tokens_per_second']:.0f}",
        f"{row['tokens_per_second']:,.0f}",
        f"{row['speedup']:.2f}",
    ]


def claims(doc: dict[str, Any]) -> str:
    found = doc.get("claims")
    if not found:
        return ""
    items = "".join(f"<li>{escape(o)}.</li>" for o in found["objections"])
    return (
        "<section class=warn><h2>Published claims about this pair cannot all hold</h2><p>Source:"
        f" {escape(found['source'])}. Unverified; none of the figures here is from it.</p><ul>{items}</ul></section>"
    )


def warnings(doc: dict[str, Any]) -> str:
    if not doc["warnings"]:
        return ""
    items = "".join(
        f"<li>{escape(w['message'])} <span class=how>[{escape(w['code'])}]</span></li>" for w in doc["warnings"]
    )
    return f"<section class=warn><h2>Before you deploy</h2><ul>{items}</ul></section>"


def sources(doc: dict[str, Any]) -> str:
    accepted = doc["acceptance"]
    rows = [
        "Weights and KV bytes: computed, exact for published configurations.",
        "KV cache: fitted to real engine logs. On 30 logs that state version, utilisation and GPU memory: 0.3 GiB mean"
        " and 0.6 % median error, 2.7 GiB worst; the band holds four of five.",
        "Time and throughput: fitted, errors as shown under the chart; measured times replace the scale where given."
        if doc["time_scale"] == 1
        else f"Time and throughput: fitted, scaled by {doc['time_scale']:.2f} to what was measured.",
        "Dollars: computed from the price and its date, and the throughput above.",
    ]
    if accepted:
        rows.append(
            f"Acceptance: {accepted['source']}; {accepted['mean_length']:.2f} tokens a step, by position"
            f" {', '.join(f'{a:.2f}' for a in accepted['by_position'])}."
        )
    return (
        "<section><h2>What these figures are</h2><ul>"
        + "".join(f"<li>{escape(r)}</li>" for r in rows)
        + "</ul></section>"
    )
