"""Line charts and memory bars as inline SVG: no scripts, no fonts to load, sharp on a phone and on paper."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

COLORS = {"baseline": "#5b6472", "static": "#1f6feb", "schedule": "#0a8f5b"}
NAMES = {"baseline": "no speculation", "static": "one K", "schedule": "K by load"}
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 640, 350, 92, 32, 18, 62


@dataclass(frozen=True)
class Line:
    arm: str
    points: Sequence[tuple[float, float]]


def line_chart(
    lines: Sequence[Line], *, x_label: str, y_label: str, mark: tuple[float, str] | None = None, money: bool = False
) -> str:
    """Lines over a logarithmic x axis, from zero up. `mark`: a dashed upright at x with words."""
    xs = sorted({x for line in lines for x, _ in line.points})
    top = nice(max(y for line in lines for _, y in line.points) * 1.05)
    low, high = math.log2(xs[0]), math.log2(xs[-1]) or 1.0
    span = (high - low) or 1.0

    def px(x: float) -> float:
        return LEFT + (math.log2(x) - low) / span * (WIDTH - LEFT - RIGHT)

    def py(y: float) -> float:
        return HEIGHT - BOTTOM - y / top * (HEIGHT - TOP - BOTTOM)

    parts = [
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(y_label)} against {escape(x_label)}">'
    ]
    for i in range(5):
        y = top * i / 4
        label = f"${y:,.2f}" if money else f"{y:,.0f}" if y == int(y) else f"{y:,.1f}"
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{py(y):.1f}" y2="{py(y):.1f}" class="grid"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{py(y) + 5:.1f}" text-anchor="end">{label}</text>')
    shown = -100.0
    for x in xs:
        if px(x) - shown > 52:
            shown = px(x)
            parts.append(f'<text x="{px(x):.1f}" y="{HEIGHT - BOTTOM + 24}" text-anchor="middle">{x:g}</text>')
    parts.append(
        f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 6}" text-anchor="middle"'
        f' class="axis">{escape(x_label)}</text>'
    )
    if mark and xs[0] <= mark[0] <= xs[-1]:
        x = px(mark[0])
        side, offset = ("end", -6) if x > WIDTH * 0.6 else ("start", 6)
        parts.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}" class="mark"/>')
        parts.append(
            f'<text x="{x + offset:.1f}" y="{TOP + 12}" text-anchor="{side}" class="markText">{escape(mark[1])}</text>'
        )
    for line in lines:
        path = " ".join(f"{'M' if i == 0 else 'L'}{px(x):.1f},{py(y):.1f}" for i, (x, y) in enumerate(line.points))
        parts.append(f'<path d="{path}" fill="none" stroke="{COLORS[line.arm]}" stroke-width="2.5"{dashes(line.arm)}/>')
        parts += [
            f'<circle cx="{px(x):.1f}" cy="{py(y):.1f}" r="3.2" fill="{COLORS[line.arm]}"/>' for x, y in line.points
        ]
    return "".join(parts) + "</svg>"


def dashes(arm: str) -> str:
    """The schedule often lies on the static line: both stay to be seen."""
    return ' stroke-dasharray="7 5"' if arm == "schedule" else ""


def legend(arms: Sequence[str]) -> str:
    return (
        '<p class="legend">'
        + "".join(f'<span><i style="background:{COLORS[a]}"></i>{NAMES[a]}</span>' for a in arms)
        + "</p>"
    )


def nice(value: float) -> float:
    """The next round number at or above `value`, a multiple that four steps divide well."""
    if value <= 0:
        return 1.0
    power = 10 ** math.floor(math.log10(value))
    return float(next(step * power for step in (1, 1.2, 1.6, 2, 2.4, 3.2, 4, 5, 6, 8, 10) if step * power >= value))


BAR_PARTS = [
    ("target_weights_gib", "target weights", "#1f6feb"),
    ("draft_weights_gib", "draft weights", "#a371f7"),
    ("activation_gib", "activations", "#d29922"),
    ("non_torch_gib", "driver, NCCL", "#8b949e"),
    ("cuda_graph_gib", "CUDA graphs", "#db6d28"),
    ("kv_cache_gib", "KV cache", "#0a8f5b"),
]


def memory_bar(rank: dict[str, float]) -> str:
    """One GPU: parts in order, the budget as a line, what is over it striped red."""
    total = rank["total_gib"]
    parts_sum = sum(max(0.0, rank[key]) for key, _, _ in BAR_PARTS)
    scale = 640 / max(total, parts_sum)
    out = [
        '<svg viewBox="0 0 640 84" class="bar" role="img" aria-label="memory of one GPU">',
        f'<rect x="0" y="14" width="{total * scale:.1f}" height="34" fill="#eceff3" rx="3"/>',
    ]
    x = 0.0
    for key, name, color in BAR_PARTS:
        width = max(0.0, rank[key]) * scale
        if width <= 0:
            continue
        out.append(
            f'<rect x="{x:.1f}" y="14" width="{width:.1f}" height="34" fill="{color}"><title>{name} {rank[key]:.1f}'
            " GiB</title></rect>"
        )
        if width > 34:
            out.append(
                f'<text x="{x + width / 2:.1f}" y="36" text-anchor="middle" class="inBar">{rank[key]:.1f}</text>'
            )
        x += width
    budget = rank["budget_gib"] * scale
    out.append(f'<line x1="{budget:.1f}" x2="{budget:.1f}" y1="6" y2="56" class="budget"/>')
    out.append(
        f'<text x="{budget - 4:.1f}" y="76" text-anchor="end" class="small">budget {rank["budget_gib"]:.1f} of'
        f" {total:.1f} GiB</text>"
    )
    return "".join(out) + "</svg>"


def bar_legend(rank: dict[str, float]) -> str:
    items = [
        f'<span><i style="background:{color}"></i>{name} {rank[key]:.1f} GiB</span>'
        for key, name, color in BAR_PARTS
        if rank[key] > 0.005
    ]
    if (missing := -rank["kv_cache_gib"]) > 0.005:
        items.append(f'<span><i style="background:#cf222e"></i>{missing:.1f} GiB too much, no KV cache</span>')
    return '<p class="legend">' + "".join(items) + "</p>"
