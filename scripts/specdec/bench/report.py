"""A benchmark as one HTML page: what was measured, how sure it is, and what the planner said before."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from pathlib import Path

from specdec import plan
from specdec.bench import charts
from specdec.bench.charts import Series
from specdec.bench.document import Arm, Ratio, Run
from specdec.bench.stats import LEAST_REPEATS

EXTRA = (
    "@media (min-width:561px){.two svg text{font-size:17px}}svg .name{fill:#1c2430;font-weight:600}"
    "@media (max-width:560px){h1{overflow-wrap:anywhere}}"
)


def page(run: Run) -> str:
    style = Path(str(plan.__file__)).with_name("report.css").read_text(encoding="utf-8") + EXTRA
    parts = [head, unfinished]
    parts += [verdict, ratio_section] if run.ratios else []
    parts += [latency, pair, numbers, drafts] if run.arms else []
    body = "".join(part(run) for part in (*parts, how))
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport"'
        ' content="width=device-width,initial-scale=1">'
        f"<title>Benchmark of {escape(run.environment)}</title><style>{style}</style></head>"
        f"<body><main>{body}</main></body></html>\n"
    )


def write_page(run: Run, directory: Path) -> Path:
    """The page beside the figures."""
    file = directory / "report.html"
    file.write_text(page(run), encoding="utf-8")
    return file


def label(arm: Arm | Ratio, run: Run) -> str:
    """The load of an arm in words, empty where the run had only one."""
    if len(run.points) == 1:
        return ""
    parts = [] if arm.max_concurrency is None else [f"{arm.max_concurrency} at once"]
    parts += [] if arm.request_rate is None else [f"{arm.request_rate:g} a second"]
    return ", " + (", ".join(parts) or "all at once")


def short(name: str, run: Run) -> str:
    """An engine's name without the release's, which all of them have."""
    return name.removeprefix(f"{run.release}-")


def shade(name: str, run: Run) -> str:
    return charts.color(run.engines.index(name))


def head(run: Run) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in run.versions.items())
    asked = run.load
    size = f"{asked.input_len} tokens in and " if asked.dataset == "random" else ""
    return (
        f"<h1>Benchmark of {escape(run.environment)}: {escape(run.target)}</h1><p class=sub>"
        f"{escape(run.created)}, {escape(versions)}. {escape(asked.source)}: {size}{asked.output_len} out, "
        f"{asked.num_prompts} prompts, temperature {asked.temperature:g}, {run.repeats} repeats.</p>"
    )


def sentence(one: Ratio, run: Run) -> str:
    low, high = one.interval
    words = f"between {low:.2f} and {high:.2f}"
    if one.repeats < LEAST_REPEATS:
        return f"{one.ratio:.2f}{label(one, run)}, but {one.repeats} repeats are too few to tell it from noise"
    if not one.real:
        return f"no difference that the measurement can tell{label(one, run)}: {one.ratio:.2f}, {words}"
    faster = f"{one.ratio:.2f} times as fast as {short(one.baseline, run)}"
    return f"{faster}{label(one, run)}, {words}" if one.ratio > 1 else f"slower: {faster}{label(one, run)}, {words}"


def unfinished(run: Run) -> str:
    if run.complete:
        return ""
    return (
        f"<section class=warn><h2>Not finished</h2><p>{run.made} of {run.wanted} runs were made. What follows is of "
        "those alone; <code>specdec bench --resume</code> makes the rest.</p></section>"
    )


def verdict(run: Run) -> str:
    items = "".join(
        f"<li><b>{escape(short(one.arm, run))}</b>: {escape(sentence(one, run))}.</li>" for one in run.ratios
    )
    warned = "".join(f"<li>{escape(text)}.</li>" for text in run.warnings)
    more = f"<section class=warn><h2>Read with care</h2><ul>{warned}</ul></section>" if warned else ""
    good = any(one.real and one.ratio > 1 for one in run.ratios)
    return (
        f'<section class="verdict{"" if good else " no"}"><h2>What it shows</h2><ul>{items}</ul><p class=how>Time per'
        " output token, median of the repeats' medians. A difference is called one where its 95 % interval leaves 1"
        f" out.</p></section>{more}"
    )


def ratio_section(run: Run) -> str:
    bars = [
        charts.Bar(short(one.arm, run) + label(one, run), shade(one.arm, run), one.ratio, *one.interval, one.predicted)
        for one in run.ratios
    ]
    known = any(one.predicted is not None for one in run.ratios)
    note = (
        "The diamond is what the planner predicts with the acceptance that was measured here."
        if known
        else "The planner does not know these models or this accelerator, and predicts nothing."
    )
    return f"<section><h2>Speed-up</h2>{charts.ratios(bars)}<p class=how>{note}</p></section>"


def latency(run: Run) -> str:
    rows = [(short(arm.name, run) + label(arm, run), shade(arm.name, run), arm.raw_tpot_ms) for arm in run.arms]
    chart = charts.distributions(rows, "ms an output token")
    return (
        f"<section><h2>Time per output token, every request</h2>{chart}<p class=how>Box: the middle half of the"
        " requests; line: from the 5th to the 95th percentile; mark: the median.</p></section>"
    )


def pair(run: Run) -> str:
    return f"<div class=two>{throughput(run)}{first_token(run)}{by_k(run)}{acceptance(run)}</div><p></p>"


def by_load(run: Run, value: Callable[[Arm], float], interval: Callable[[Arm], tuple[float, float]]) -> list[Series]:
    """A line for each arm over the loads, with intervals."""
    found = []
    for name in run.engines:
        mine = [arm for arm in run.arms if arm.name == name]
        found.append(
            Series(
                short(name, run),
                shade(name, run),
                [(arm.concurrency, value(arm)) for arm in mine],
                [(arm.concurrency, *interval(arm)) for arm in mine],
            )
        )
    return found


def figure(title: str, series: Sequence[Series], x: str, y: str, top: float | None = None, note: str = "") -> str:
    more = f"<p class=how>{escape(note)}</p>" if note else ""
    return f"<section><h2>{title}</h2>{charts.lines(series, x, y, top=top)}{charts.legend(series)}{more}</section>"


def throughput(run: Run) -> str:
    series = by_load(run, lambda arm: arm.output_tokens_per_second, lambda arm: arm.throughput_interval)
    return figure("Output tokens a second", series, "requests at once", "output tokens a second", note=BARS)


def first_token(run: Run) -> str:
    series = by_load(run, lambda arm: arm.ttft_ms, lambda arm: arm.ttft_interval)
    return figure("Time to first token, ms", series, "requests at once", "ms to the first token", note=BARS)


def by_k(run: Run) -> str:
    """Speed-up over K, a line for each load; empty where only one K was measured."""
    if len({arm.k for arm in run.arms if arm.k}) < 2:
        return ""
    ks = {arm.name: arm.k for arm in run.arms}
    series = []
    for index, point in enumerate(run.points):
        mine = [
            one for one in run.ratios
            if (one.max_concurrency, one.request_rate) == (point.concurrency, point.rate) and ks[one.arm]
        ]  # fmt: skip
        name = label(mine[0], run).removeprefix(", ") if mine and len(run.points) > 1 else "speed-up"
        points = [(ks[one.arm], one.ratio) for one in mine]
        series.append(Series(name, charts.color(index + 1), points, [(ks[one.arm], *one.interval) for one in mine]))
    return figure("Speed-up by K", series, "K, tokens drafted in a step", "speed-up", note=BARS)


def acceptance(run: Run) -> str:
    """By position under the first load: it belongs to models and prompts, hardly to the load."""
    first: dict[str, Arm] = {}
    for arm in run.arms:
        if arm.acceptance_by_position:
            first.setdefault(arm.name, arm)
    if not first:
        return ""
    series = [
        Series(short(name, run), shade(name, run), list(enumerate(arm.acceptance_by_position, 1)))
        for name, arm in first.items()
    ]
    return figure("Acceptance by position", series, "position in the draft", "accepted ÷ drafts", top=1.0)


BARS = "Bars: 95 % of the median over repeats."
HEADINGS = ("arm", "ms a token", "95 %", "mean", "p95", "p99", "first token", "p99", "whole answer", "tokens/s",
            "speed-up", "predicted")  # fmt: skip
DRAFTS = ("arm", "K", "drafts", "acceptance rate", "accepted length", "by position", "answers as the baseline")


def numbers(run: Run) -> str:
    ratios = {(one.arm, one.max_concurrency, one.request_rate): one for one in run.ratios}
    rows = []
    for arm in run.arms:
        one = ratios.get((arm.name, arm.max_concurrency, arm.request_rate))
        cells = (
            escape(short(arm.name, run) + label(arm, run)),
            f"{arm.tpot_ms:.2f}",
            f"{arm.interval[0]:.2f} to {arm.interval[1]:.2f}",
            f"{arm.tpot.mean:.2f}",
            f"{arm.tpot.p95:.2f}",
            f"{arm.tpot.p99:.2f}",
            f"{arm.ttft_ms:,.0f}",
            f"{arm.ttft.p99:,.0f}",
            f"{arm.e2e.p50:,.0f}",
            f"{arm.output_tokens_per_second:,.0f}",
            f"{one.ratio:.2f}" if one else "-",
            "-" if one is None or one.predicted is None else f"{one.predicted:.2f}",
        )
        rows.append(cells)
    return (
        f"<section><h2>The numbers</h2>{table(HEADINGS, rows)}<p class=how>Times in ms. Plain figures are medians over"
        " repeats, percentiles are of every request.</p></section>"
    )


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    heads = "".join(f"<th>{name}</th>" for name in headings)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>" for cells in rows)
    return f"<div class=scroll><table><tr>{heads}</tr>{body}</table></div>"


def drafts(run: Run) -> str:
    """What the engines counted, and whether speculation changed an answer."""
    rows = [
        (
            escape(short(arm.name, run) + label(arm, run)),
            str(arm.k),
            f"{arm.drafts:,.0f}",
            "-" if arm.acceptance_rate is None else f"{arm.acceptance_rate:.3f}",
            "-" if arm.mean_length is None else f"{arm.mean_length:.2f}",
            " ".join(f"{share:.2f}" for share in arm.acceptance_by_position),
            "-" if arm.same_answers is None else f"{arm.same_answers:.0%}",
        )
        for arm in run.arms
        if arm.k or arm.acceptance_by_position
    ]
    if not rows:
        return ""
    return (
        f"<section><h2>Speculation</h2>{table(DRAFTS, rows)}<p class=how>Acceptance rate: accepted ÷ drafted tokens."
        " Accepted length: 1 + accepted ÷ drafts, the tokens of a step. By position: accepted there ÷ drafts."
        " Answers: whole texts, greedy; in bfloat16 one token that rounds otherwise changes the rest, and"
        " <code>specdec smoke --equivalence</code> tells whether it is more than that.</p></section>"
    )


def how(run: Run) -> str:
    items = (
        f"vllm bench serve in a Job of each engine's own image; {run.repeats} repeats, arms in turn, each second"
        " repeat in the opposite order; a warm-up of each arm before that is not counted.",
        "Time per output token of a request: decode time ÷ tokens after the first.",
        "Acceptance: the engines' own counters before and after each run.",
        "Intervals: bootstrap over repeats, 10,000 times, of both arms' repeats together. Below 5 repeats they are too"
        " narrow, and no difference is called one.",
        "All arms of a repeat are asked the same prompts; random ones are others in each repeat.",
        f"Manifests {run.manifests_sha256[:12]}; the run's directory holds every request's figures.",
    )
    return (
        f"<section><h2>How it was measured</h2><ul>{''.join(f'<li>{escape(one)}</li>' for one in items)}</ul></section>"
    )
