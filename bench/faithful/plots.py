"""Plots of `bench faithful` and `bench faithful.shapes`, drawn from the results that they store as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..curves import build_axes, save_figure

__all__ = ["COLOURS", "draw_curves", "draw_shapes"]

COLOURS: dict[str, str] = {
    "masked": "#8a939c", "awrs": "#a8a03c", "asap": "#d98200", "exact": "#1a7f37", "smc awrs 4": "#8db4f0",
    "smc awrs 16": "#4477dd", "smc awrs 64": "#254f9e", "pimh 8": "#a8407f", "smc twisted 8": "#14a3a3",
    "rejection": "#e0555f", "ASAp": "#d98200", "AWRS-SMC 5": "#4477dd",
}  # fmt: skip
LEAST = 1e-3
"""Divergence in nats at which the logarithmic axes begin."""
WIDTH, HEIGHT = 4.6, 3.0
"""Inches of a panel."""


def draw_curves(path: Path, curves: Sequence[Mapping[str, Any]]) -> Path:
    """Write the divergence of each fixture against draws (left) and against model evaluations (right).

    Lines are means of repeats with a band from the least to the largest; the dashed floor is the divergence of exact
    draws of that number. A line that stops falling above the floor is biased.
    """
    figure, axes = build_axes(max(1, len(curves)), 2, (2 * WIDTH, HEIGHT * max(1, len(curves))), sharey="row")
    for (left, right), one in zip(axes, curves):
        for line in one["lines"]:
            for axis, xs in ((left, one["at"][: len(line["mean"])]), (right, line["asked"])):
                axis.plot(xs, line["mean"], color=COLOURS[line["sampler"]], label=line["sampler"])
                axis.fill_between(xs, line["low"], line["high"], color=COLOURS[line["sampler"]], alpha=0.13)
        left.plot(one["at"], one["floor"], "k--", label="floor")
        left.set(title=f"{one['name']}: {one['sequences']:,} sequences, p(L) = {one['z']:.2g}", xlabel="draws")
        right.set(xlabel="model evaluations")
        set_logarithmic(left, right)
    axes[0][1].legend(fontsize=7, loc="center left", bbox_to_anchor=(1.02, 0.5))
    return save_figure(figure, path)


def set_logarithmic(*axes: Any, across: str = "log") -> None:
    """Set logarithmic scales on axes of divergences."""
    for axis in axes:
        axis.set(xscale=across, yscale="log", ylabel="KL, nats")
        axis.set_ylim(bottom=LEAST)
        axis.grid(True, linewidth=0.3)


def draw_shapes(path: Path, facts: Mapping[str, Any]) -> Path:
    """Write shares of right answers by kind of task, AWRS's checks against exp(KL), and GAD's windows by grammar.

    Columns of GAD's protocol: the KL of the window from p given L; the same as GAD estimates it; the KL of p given L
    from the law that ASAp has learnt by then.
    """
    kinds, protocol = list(facts["kinds"].items()), facts["gad"]
    above = -(-(len(kinds) + 1) // 3)
    rows = above + len(protocol)
    figure, axes = build_axes(rows, 3, (3 * WIDTH, HEIGHT * rows))
    upper = axes[:above].ravel()
    for axis, (kind, answers) in zip(upper, kinds):
        names, shares = [row["method"] for row in answers], [row["right"] for row in answers]
        errors = [[row["right"] - row["low"] for row in answers], [row["high"] - row["right"] for row in answers]]
        axis.barh(names, shares, xerr=[[max(0.0, error) for error in side] for side in errors], color="#8db4f0")
        axis.invert_yaxis()
        axis.set(title=f"{kind}: right answers", xlim=(0, 1.05))
    steps, dots = facts["steps"], upper[len(kinds)]
    dots.scatter(steps["exp_kl"], steps["checks"], s=6, alpha=0.35)
    dots.plot([1, max(steps["exp_kl"])], [1, max(steps["exp_kl"])], "k--", label="the bound")
    dots.set(title="AWRS", xlabel="exp(KL)", ylabel=f"checks, mean of {steps['races']}", xscale="log", yscale="log")
    for axis in upper[len(kinds) + 1 :]:
        axis.set_axis_off()
    for panels, one in zip(axes[above:], protocol):
        draw_windows(panels, one)
    return save_figure(figure, path)


def draw_windows(panels: Sequence[Any], one: Mapping[str, Any]) -> None:
    """Draw the three panels of one grammar."""
    true, estimated, learnt = panels
    for axis, title, lines in ((true, "true", one["true"]), (estimated, "as GAD estimates", one["estimated"])):
        for name, values in lines.items():
            axis.plot(one["at"], values, color=COLOURS[name], label=name)
        axis.axhline(one["floor"], color="k", linestyle="--", label="floor")
        axis.set(title=f"{one['name']}, {title}", xlabel="draws")
        axis.legend(fontsize=7)
    begin, far = [max(at, 0.5) for at, _ in one["learnt"]], [kl for _, kl in one["learnt"]]
    learnt.plot(begin, far, color=COLOURS["ASAp"], marker="o", markersize=3)
    learnt.axhline(far[0], color=COLOURS["masked"], linestyle="--")
    learnt.set(title=f"{one['name']}, ASAp's law", xlabel="draws")
    set_logarithmic(true, estimated, across="linear")
    set_logarithmic(learnt)
