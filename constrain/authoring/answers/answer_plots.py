"""Plots of an answer as inline SVG: the mass left at each token, and the product of the masses."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, log
from typing import TYPE_CHECKING

from ..rendering.html_pages import draw_frame
from ..rendering.readable_tokens import escape_html
from .answer_text import describe_chooser, format_share

if TYPE_CHECKING:
    from .answer_steps import TokenStep

__all__ = ["draw_mass_plot", "draw_weight_plot"]

FILLS = {"model": "#3c8c5a", "mask": "#dc7814", "forced": "#888888", "closing": "#965adc"}
LEFT, TOP, HEIGHT, BOTTOM = 58, 14, 150, 26
WIDTH = 820
"""Width of a plot; wider if there are many tokens, so that every bar can be seen."""


def bar_width(count: int) -> float:
    """Return the width of a token in a plot."""
    return max(3.0, min(26.0, WIDTH / max(1, count)))


def draw_mass_plot(steps: Sequence[TokenStep]) -> str:
    """Return bars of the share of the model's probability that the mask left, one for each token."""
    step_width = bar_width(len(steps))
    width = LEFT + step_width * len(steps) + 10
    parts = [draw_level(TOP + HEIGHT * (1 - share), f"{share:.0%}", width) for share in (0.0, 0.5, 1.0)]
    for step in steps:
        tall = max(1.0, HEIGHT * step.mass)
        title = f"token {step.number} {step.text}: {describe_chooser(step)}, {format_share(step.mass)} left"
        parts.append(
            f'<rect x="{LEFT + step.number * step_width:.1f}" y="{TOP + HEIGHT - tall:.1f}" '
            f'width="{step_width - 1:.1f}" height="{tall:.1f}" fill="{FILLS[step.chosen_by]}">'
            f"<title>{escape_html(title)}</title></rect>"
        )
    parts += draw_numbers(len(steps), step_width)
    label = "Share of the model's probability that the constraint left, for each token; the table below has the numbers"
    return draw_frame(width, TOP + HEIGHT + BOTTOM, label, parts)


def draw_weight_plot(steps: Sequence[TokenStep]) -> str:
    """Return the product of the masses up to each token as a line, on a logarithmic scale."""
    step_width = bar_width(len(steps))
    width = LEFT + step_width * len(steps) + 10
    powers, total = [0.0], 0.0
    for step in steps:
        total += step.logmass / log(10)
        powers.append(total)
    finite = [power for power in powers if power > -400]
    lowest = max(1, ceil(-min(finite)))

    def height(power: float) -> float:
        return TOP + HEIGHT * min(1.0, -power / lowest)

    every = max(1, ceil(lowest / 5))
    parts = [draw_level(height(-power), name_power(power), width) for power in range(0, lowest + 1, every)]
    points = " ".join(f"{LEFT + k * step_width:.1f},{height(power):.1f}" for k, power in enumerate(powers))
    parts.append(f'<polyline points="{points}" fill="none" stroke="#3a6fc4" stroke-width="2"/>')
    parts += draw_numbers(len(steps), step_width)
    label = "Product of the shares so far, on a logarithmic scale; the table below has the factors"
    return draw_frame(width, TOP + HEIGHT + BOTTOM, label, parts)


def name_power(power: int) -> str:
    """Return 10 to a negative power as a label."""
    return ("1", "0.1", "0.01", "0.001")[power] if power < 4 else f"1e-{power}"


def draw_level(y: float, label: str, width: float) -> str:
    """Return a horizontal line with its label."""
    return (
        f'<line x1="{LEFT}" y1="{y:.1f}" x2="{width:.1f}" y2="{y:.1f}" stroke="currentColor" stroke-opacity=".25"/>'
        f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{label}</text>'
    )


def draw_numbers(count: int, step_width: float) -> list[str]:
    """Return the numbers of tokens below a plot, as many as fit."""
    every = max(1, ceil(40 / step_width))
    y = TOP + HEIGHT + 18
    return [
        f'<text x="{LEFT + (number + 0.5) * step_width:.1f}" y="{y}" text-anchor="middle">{number}</text>'
        for number in range(0, count, every)
    ]
