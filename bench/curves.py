"""Draw plots as SVG with matplotlib: the same data gives the same bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

__all__ = ["build_axes", "draw_plot", "save_figure"]


def build_axes(rows: int, columns: int, size: tuple[float, float], **options: Any) -> tuple[Any, Any]:
    """Return a matplotlib figure and its axes [rows, columns]. size: width and height in inches."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams |= {"svg.hashsalt": "constrain", "svg.fonttype": "none"}  # small, and reproducible
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(rows, columns, figsize=size, squeeze=False, **options)
    return figure, axes


def save_figure(figure: Any, path: Path) -> Path:
    """Write a figure to a file and close it."""
    from matplotlib import pyplot

    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None}, bbox_inches="tight")
    pyplot.close(figure)
    return path


def draw_plot(
    path: Path, title: str, across: str, up: str, panels: Mapping[str, Mapping[str, Sequence[tuple[float, float]]]]
) -> Path:
    """Write one SVG: a panel for each title, in it a curve of (x, y) for each label, both axes logarithmic."""
    figure, axes = build_axes(1, len(panels), (4.2 * len(panels) + 2, 4), sharey=True)
    for axis, (name, curves) in zip(axes[0], panels.items()):
        for label, points in curves.items():
            axis.plot(*zip(*points), marker="o", markersize=3, linewidth=1.2, label=label)
        axis.set(xscale="log", yscale="log", title=name, xlabel=across)
        axis.grid(True, linewidth=0.3)
    axes[0][0].set_ylabel(up)
    axes[0][-1].legend(fontsize=7, loc="center left", bbox_to_anchor=(1.02, 0.5))
    figure.suptitle(title, fontsize=10)
    return save_figure(figure, path)
