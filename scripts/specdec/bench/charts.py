"""The benchmark's charts as inline SVG, in the planner's style: distributions, throughput, acceptance, ratios."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from specdec.bench.stats import percentile
from specdec.plan.charts import nice

COLORS = ("#5b6472", "#1f6feb", "#0a8f5b", "#d29922", "#a371f7", "#cf222e", "#0598bc", "#bf3989")
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 640, 350, 92, 32, 18, 62


@dataclass(frozen=True)
class Series:
    name: str
    color: str
    points: Sequence[tuple[float, float]]
    # (x, low, high): the interval of each point.
    spread: Sequence[tuple[float, float, float]] = ()


def color(index: int) -> str:
    return COLORS[index % len(COLORS)]


def legend(series: Sequence[Series]) -> str:
    spans = (f'<span><i style="background:{one.color}"></i>{escape(one.name)}</span>' for one in series)
    return f'<p class="legend">{"".join(spans)}</p>'


def lines(series: Sequence[Series], x_label: str, y_label: str, top: float | None = None) -> str:
    """Lines with a mark at each point; the x values are spaced evenly."""
    xs = sorted({x for one in series for x, _ in one.points})
    highest = [y for one in series for _, y in one.points] + [high for one in series for _, _, high in one.spread]
    top = top or nice(max(highest, default=1) * 1.05)
    step = (WIDTH - LEFT - RIGHT) / max(1, len(xs) - 1)
    place = {x: LEFT + index * step if len(xs) > 1 else (LEFT + WIDTH - RIGHT) / 2 for index, x in enumerate(xs)}
    parts = _frame(top, x_label, y_label)
    for x in xs:
        parts.append(f'<text x="{place[x]:.1f}" y="{HEIGHT - BOTTOM + 24}" text-anchor="middle">{x:g}</text>')
    for one in series:
        marks = [(place[x], _y(y, top)) for x, y in sorted(one.points)]
        path = " ".join(f"{'L' if index else 'M'}{x:.1f},{y:.1f}" for index, (x, y) in enumerate(marks))
        parts.append(f'<path d="{path}" fill="none" stroke="{one.color}" stroke-width="2.5"/>')
        for x, low, high in one.spread:
            parts.append(
                f'<line x1="{place[x]:.1f}" x2="{place[x]:.1f}" y1="{_y(low, top):.1f}" y2="{_y(high, top):.1f}"'
                f' stroke="{one.color}" stroke-width="5" opacity=".35"/>'
            )
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.6" fill="{one.color}"/>' for x, y in marks]
    return "".join(parts) + "</svg>"


def distributions(values: Sequence[tuple[str, str, Sequence[float]]], x_label: str) -> str:
    """A row for each (name, colour, values): the middle half as a box, p5 to p95 as a line, the median as a mark."""
    row, left = 56, 20
    height = row * len(values) + 66
    top = nice(max(percentile(found, 0.99) for _, _, found in values) * 1.02)

    def px(value: float) -> float:
        return left + min(value, top) / top * (WIDTH - left - RIGHT)

    parts = [f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(x_label)} by arm">']
    for index in range(5):
        x = px(top * index / 4)
        parts.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="8" y2="{height - 56}" class="grid"/>')
        parts.append(
            f'<text x="{x:.1f}" y="{height - 34}" text-anchor="{"start" if not index else "middle"}">'
            f"{top * index / 4:g}</text>"
        )
    for index, (name, shade, found) in enumerate(values):
        y = 41 + row * index
        low, first, middle, third, high = (px(percentile(found, share)) for share in (0.05, 0.25, 0.5, 0.75, 0.95))
        box = max(2.0, third - first)
        parts += [
            f'<text x="{left + 2}" y="{y - 16}" class="name">{escape(name)}</text>',
            f'<line x1="{low:.1f}" x2="{high:.1f}" y1="{y}" y2="{y}" stroke="{shade}" stroke-width="2"/>',
            f'<rect x="{first:.1f}" y="{y - 10}" width="{box:.1f}" height="20" rx="3" fill="{shade}" opacity=".35"/>',
            f'<line x1="{middle:.1f}" x2="{middle:.1f}" y1="{y - 12}" y2="{y + 12}" stroke="{shade}"'
            ' stroke-width="4"/>',
        ]
    parts.append(f'<text x="{WIDTH / 2}" y="{height - 6}" text-anchor="middle" class="axis">{escape(x_label)}</text>')
    return "".join(parts) + "</svg>"


@dataclass(frozen=True)
class Bar:
    """One ratio with its interval, and what was predicted."""

    name: str
    color: str
    value: float
    low: float
    high: float
    predicted: float | None


def ratios(bars: Sequence[Bar]) -> str:
    """A row for each ratio: point and interval, the prediction as a hollow diamond, and an upright at 1."""
    row, left = 56, 20
    height = row * len(bars) + 66
    top = nice(max(max(bar.high, bar.predicted or 0, 1.1) for bar in bars) * 1.02)

    def px(value: float) -> float:
        return left + value / top * (WIDTH - left - RIGHT)

    parts = [f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="speed-up by arm with intervals">']
    for index in range(5):
        x = px(top * index / 4)
        parts.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="8" y2="{height - 56}" class="grid"/>')
        parts.append(
            f'<text x="{x:.1f}" y="{height - 34}" text-anchor="{"start" if not index else "middle"}">'
            f"{top * index / 4:g}</text>"
        )
    parts.append(f'<line x1="{px(1):.1f}" x2="{px(1):.1f}" y1="8" y2="{height - 56}" class="mark"/>')
    for index, bar in enumerate(bars):
        y = 41 + row * index
        parts += [
            f'<text x="{left + 2}" y="{y - 16}" class="name">{escape(bar.name)}</text>',
            f'<line x1="{px(bar.low):.1f}" x2="{px(bar.high):.1f}" y1="{y}" y2="{y}" stroke="{bar.color}"'
            ' stroke-width="4" stroke-linecap="round"/>',
            f'<circle cx="{px(bar.value):.1f}" cy="{y}" r="7" fill="{bar.color}"/>',
        ]
        if bar.predicted is not None:
            x = px(bar.predicted)
            shape = f"{x:.1f},{y - 10} {x + 10:.1f},{y} {x:.1f},{y + 10} {x - 10:.1f},{y}"
            parts.append(f'<polygon points="{shape}" fill="none" stroke="#1c2430" stroke-width="2"/>')
    label = "speed-up: baseline ÷ arm, time per output token"
    parts.append(f'<text x="{WIDTH / 2}" y="{height - 6}" text-anchor="middle" class="axis">{label}</text>')
    return "".join(parts) + "</svg>"


def _frame(top: float, x_label: str, y_label: str) -> list[str]:
    parts = [f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(y_label)} by {escape(x_label)}">']
    for index in range(5):
        y = _y(top * index / 4, top)
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" class="grid"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{y + 5:.1f}" text-anchor="end">{top * index / 4:,g}</text>')
    middle = (LEFT + WIDTH - RIGHT) / 2
    parts.append(f'<text x="{middle}" y="{HEIGHT - 6}" text-anchor="middle" class="axis">{escape(x_label)}</text>')
    return parts


def _y(value: float, top: float) -> float:
    return HEIGHT - BOTTOM - value / top * (HEIGHT - TOP - BOTTOM)
