"""A benchmark as one HTML page: what was measured, how sure it is, and what the planner said before."""

from __future__ import annotations

from html import escape
from pathlib import Path

from specdec import plan
from specdec.bench import charts
from specdec.bench.document import Arm, Ratio, Run
from specdec.bench.stats import LEAST_REPEATS

EXTRA = "svg .name{fill:#1c2430;font-weight:600}@media (max-width:560px){h1{overflow-wrap:anywhere}}"


def page(run: Run) -> str:
    style = Path(str(plan.__file__)).with_name("report.css").read_text(encoding="utf-8") + EXTRA
    body = "".join((head(run), verdict(run), ratio_section(run), latency(run), pair(run), numbers(run), how(run)))
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
    faster = f"{one.ratio:.2f} times as fast as {one.baseline}"
    return f"{faster}{label(one, run)}, {words}" if one.ratio > 1 else f"slower: {faster}{label(one, run)}, {words}"


def verdict(run: Run) -> str:
    items = "".join(f"<li><b>{escape(one.arm)}</b>: {escape(sentence(one, run))}.</li>" for one in run.ratios)
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
        charts.Bar(one.arm + label(one, run), shade(one.arm, run), one.ratio, *one.interval, one.predicted)
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
    rows = [(arm.name + label(arm, run), shade(arm.name, run), arm.raw_tpot_ms) for arm in run.arms]
    chart = charts.distributions(rows, "ms an output token")
    return (
        f"<section><h2>Time per output token, every request</h2>{chart}<p class=how>Box: the middle half of the"
        " requests; line: from the 5th to the 95th percentile; mark: the median.</p></section>"
    )


def pair(run: Run) -> str:
    return f"<div class=two>{throughput(run)}{acceptance(run)}</div><p></p>"


def throughput(run: Run) -> str:
    series = [
        charts.Series(
            name,
            shade(name, run),
            [(arm.concurrency, arm.output_tokens_per_second) for arm in run.arms if arm.name == name],
        )
        for name in run.engines
    ]
    chart = charts.lines(series, "requests at once", "output tokens a second")
    return f"<section><h2>Output tokens a second</h2>{chart}{charts.legend(run.engines)}</section>"


def acceptance(run: Run) -> str:
    """By position under the first load: it belongs to models and prompts, hardly to the load."""
    first: dict[str, Arm] = {}
    for arm in run.arms:
        if arm.acceptance_by_position:
            first.setdefault(arm.name, arm)
    if not first:
        return ""
    series = [
        charts.Series(name, shade(name, run), [(place, share) for place, share in
                                               enumerate(arm.acceptance_by_position, 1)])
        for name, arm in first.items()
    ]  # fmt: skip
    chart = charts.lines(series, "position in the draft", "accepted ÷ drafts", top=1.0)
    return f"<section><h2>Acceptance by position</h2>{chart}{charts.legend(run.engines)}</section>"


HEADINGS = ("arm", "K", "ms a token", "95 %", "mean", "p95", "p99", "first token p50", "p99", "whole answer p50",
            "tokens/s", "acceptance", "speed-up", "predicted")  # fmt: skip


def numbers(run: Run) -> str:
    ratios = {(one.arm, one.max_concurrency, one.request_rate): one for one in run.ratios}
    rows = []
    for arm in run.arms:
        one = ratios.get((arm.name, arm.max_concurrency, arm.request_rate))
        cells = (
            escape(arm.name + label(arm, run)),
            str(arm.k or "-"),
            f"{arm.tpot_ms:.2f}",
            f"{arm.interval[0]:.2f} to {arm.interval[1]:.2f}",
            f"{arm.tpot.mean:.2f}",
            f"{arm.tpot.p95:.2f}",
            f"{arm.tpot.p99:.2f}",
            f"{arm.ttft.p50:,.0f}",
            f"{arm.ttft.p99:,.0f}",
            f"{arm.e2e.p50:,.0f}",
            f"{arm.output_tokens_per_second:,.0f}",
            "-" if arm.acceptance_rate is None else f"{arm.acceptance_rate:.3f}",
            f"{one.ratio:.2f}" if one else "-",
            "-" if one is None or one.predicted is None else f"{one.predicted:.2f}",
        )
        rows.append(f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>")
    heads = "".join(f"<th>{name}</th>" for name in HEADINGS)
    return (
        f"<section><h2>The numbers</h2><div class=scroll><table><tr>{heads}</tr>{''.join(rows)}</table></div>"
        "<p class=how>Times in ms.</p></section>"
    )


def how(run: Run) -> str:
    items = (
        f"vllm bench serve in a Job of each engine's own image; {run.repeats} repeats, arms in turn, the first one"
        " another in each repeat; a warm-up of each arm before that is not counted.",
        "Time per output token of a request: decode time ÷ tokens after the first.",
        "Acceptance: the engines' own counters before and after each run.",
        "Intervals: bootstrap over repeats, 10,000 times, of both arms' repeats together.",
        f"Manifests {run.manifests_sha256[:12]}; the run's directory holds every request's figures.",
    )
    return (
        f"<section><h2>How it was measured</h2><ul>{''.join(f'<li>{escape(one)}</li>' for one in items)}</ul></section>"
    )
