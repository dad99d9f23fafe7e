"""Plots as small SVG texts: lines with bands, points, bars. Frame and letters follow the page, light or dark.

Everything is in pixels of one panel, WIDE by HIGH, rounded to tenths: a plot is a few kilobytes.
"""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

__all__ = ["STYLE", "Line", "draw_bars", "draw_legend", "draw_panel", "draw_points"]

WIDE, HIGH = 430, 250
LEFT, RIGHT, TOP, BOTTOM = 48, 8, 22, 34
STYLE = """svg{max-width:100%;height:auto}svg text{fill:var(--ink);font:11px system-ui,sans-serif}
svg .grid{stroke:var(--rule);stroke-width:1}svg .frame{stroke:var(--soft);fill:none}svg text.t{font-weight:600}"""

Numbers = Sequence[float]
Scale = Callable[[float], float]


@dataclass(frozen=True)
class Line:
    """xs, ys: its points; low, high: a band around it, if any; dashed: no result but a mark to compare with."""

    name: str
    colour: str
    xs: Numbers
    ys: Numbers
    low: Numbers = field(default=())
    high: Numbers = field(default=())
    dashed: bool = False


def draw_panel(
    title: str,
    lines: list[Line],
    *,
    across: str,
    up: str,
    logs: tuple[bool, bool] = (True, True),
    least: float = 1e-4,
    marks: bool = False,
) -> str:
    """One panel as <svg>. across, up: what is on the axes; least: values below are drawn there on a log axis."""
    xs = [x for line in lines for x in line.xs]
    ys = [max(y, least) if logs[1] else y for line in lines for y in (*line.ys, *line.low, *line.high)]
    if not xs or not ys:
        return ""
    span_x, span_y = compute_span(xs, logs[0]), compute_span(ys, logs[1])
    x, y = scale_values(span_x, LEFT, WIDE - RIGHT, logs[0]), scale_values(span_y, HIGH - BOTTOM, TOP, logs[1], least)
    parts = [
        *compute_frame(title, across, up),
        *choose_ticks(span_x, x, logs[0], True),
        *choose_ticks(span_y, y, logs[1], False),
    ]
    for line in lines:
        if len(line.low):
            there = [f"{x(a):.1f},{y(b):.1f}" for a, b in zip(line.xs, line.high)]
            back = [f"{x(a):.1f},{y(b):.1f}" for a, b in zip(line.xs, line.low)]
            parts.append(f'<path d="M{" ".join(there + back[::-1])}z" fill="{line.colour}" opacity=".13"/>')
    for line in lines:
        path = " ".join(f"{x(a):.1f},{y(b):.1f}" for a, b in zip(line.xs, line.ys))
        dash = ' stroke-dasharray="4 3"' if line.dashed else ""
        parts.append(f'<path d="M{path}" fill="none" stroke="{line.colour}" stroke-width="1.6"{dash}/>')
        if marks and not line.dashed:
            dots = "".join(f"M{x(a):.1f},{y(b):.1f}h.1" for a, b in zip(line.xs, line.ys))
            parts.append(f'<path d="{dots}" stroke="{line.colour}" stroke-width="5" stroke-linecap="round"/>')
    return draw_frame(parts)


def draw_points(title: str, xs: Numbers, ys: Numbers, line: Line, *, across: str, up: str) -> str:
    """A cloud on log axes, and one line to compare it with."""
    span_x, span_y = compute_span([*xs, *line.xs], True), compute_span([*ys, *line.ys], True)
    x, y = scale_values(span_x, LEFT, WIDE - RIGHT, True), scale_values(span_y, HIGH - BOTTOM, TOP, True)
    parts = [
        *compute_frame(title, across, up),
        *choose_ticks(span_x, x, True, True),
        *choose_ticks(span_y, y, True, False),
    ]
    dots = dict.fromkeys(f"M{x(a):.0f},{y(b):.0f}h.1" for a, b in zip(xs, ys))
    look = 'stroke="#4477dd" stroke-width="4" stroke-linecap="round" opacity=".35" fill="none"'
    parts.append(f'<path d="{"".join(dots)}" {look}/>')
    path = " ".join(f"{x(a):.1f},{y(b):.1f}" for a, b in zip(line.xs, line.ys))
    parts.append(f'<path d="M{path}" fill="none" stroke="{line.colour}" stroke-dasharray="4 3"/>')
    return draw_frame(parts)


def draw_bars(title: str, rows: list[tuple[str, float, float, float, str]]) -> str:
    """Shares lying down: (name, share, low, high, colour) each, the interval as a whisker."""
    left, high = 158, TOP + 19 * len(rows) + 8
    x = scale_values((0.0, 1.0), left, WIDE - 44, False)
    parts = [f'<text class="t" x="4" y="14">{html.escape(title)}</text>']
    for i, (name, share, low, top, colour) in enumerate(rows):
        at = TOP + 19 * i + 4
        parts.append(f'<text x="{left - 6}" y="{at + 11}" text-anchor="end">{html.escape(name)}</text>')
        parts.append(f'<rect x="{left}" y="{at}" width="{x(share) - left:.1f}" height="14" rx="2" fill="{colour}"/>')
        parts.append(f'<path class="frame" d="M{x(low):.1f},{at + 7}H{x(top):.1f}"/>')
        parts.append(f'<text x="{WIDE - 36}" y="{at + 11}">{share:.0%}</text>')
    return draw_frame(parts, high)


def draw_legend(names: list[tuple[str, str]]) -> str:
    """Names and colours, in a row."""
    return '<p class="legend">' + "".join(
        f'<span><i style="background:{colour}"></i>{html.escape(name)}</span>' for name, colour in names
    ) + "</p>"  # fmt: skip


def draw_frame(parts: list[str], high: int = HIGH) -> str:
    return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDE} {high}" width="{WIDE}">{"".join(parts)}</svg>'


def compute_frame(title: str, across: str, up: str) -> list[str]:
    """Title, box, names of the axes."""
    return [
        f'<text class="t" x="{LEFT}" y="14">{html.escape(title)}</text>',
        f'<rect class="frame" x="{LEFT}" y="{TOP}" width="{WIDE - RIGHT - LEFT}" height="{HIGH - BOTTOM - TOP}"/>',
        f'<text x="{(LEFT + WIDE - RIGHT) / 2:.0f}" y="{HIGH - 4}" text-anchor="middle">{html.escape(across)}</text>',
        f'<text transform="translate(11,{(TOP + HIGH - BOTTOM) / 2:.0f}) rotate(-90)" text-anchor="middle">'
        f"{html.escape(up)}</text>",
    ]


def compute_span(values: Numbers, log: bool) -> tuple[float, float]:
    """From least to largest; a little more where they are one."""
    low, high = min(values), max(values)
    if not log:
        low = min(low, 0.0)
        return (low, high) if high > low else (low, low + 1)
    return (low, high) if high > 1.5 * low else (low / 2, high * 2)


def scale_values(span: tuple[float, float], begin: float, end: float, log: bool, least: float = 1e-12) -> Scale:
    """From a value to its place."""

    def place(value: float) -> float:
        if not log:
            return begin + (value - span[0]) / (span[1] - span[0]) * (end - begin)
        part = math.log(max(value, least) / span[0]) / math.log(span[1] / span[0])
        return begin + part * (end - begin)

    return place


def choose_ticks(span: tuple[float, float], place: Scale, log: bool, flat: bool) -> list[str]:
    """Lines of the grid, and their numbers."""
    if log:
        first, last = math.ceil(math.log10(span[0]) - 1e-9), math.floor(math.log10(span[1]) + 1e-9)
        step = max(1, (last - first) // 5 + 1)
        values = [10.0**power for power in range(first, last + 1, step)]
        if len(values) < 2:
            values = [span[0], span[1]]
    else:
        step = 10 ** math.floor(math.log10((span[1] - span[0]) / 2))
        step = step if (span[1] - span[0]) / step < 7 else 2 * step if (span[1] - span[0]) / step < 13 else 5 * step
        values = [step * i for i in range(math.ceil(span[0] / step), math.floor(span[1] / step) + 1)]
    out = []
    for value in values:
        at = place(value)
        if flat:
            out.append(f'<path class="grid" d="M{at:.1f},{TOP}V{HIGH - BOTTOM}"/>')
            out.append(f'<text x="{at:.1f}" y="{HIGH - BOTTOM + 13}" text-anchor="middle">{format_tick(value)}</text>')
        else:
            out.append(f'<path class="grid" d="M{LEFT},{at:.1f}H{WIDE - RIGHT}"/>')
            out.append(f'<text x="{LEFT - 4}" y="{at + 4:.1f}" text-anchor="end">{format_tick(value)}</text>')
    return out


def format_tick(value: float) -> str:
    """A number on an axis."""
    return f"{value:,.0f}" if value >= 10 else f"{value:.3g}"
