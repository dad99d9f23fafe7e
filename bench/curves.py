"""What benches of speed share: a run's JSON with all that is needed to repeat it, and a plot on log axes beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

__all__ = ["draw_plot"]


def draw_plot(
    path: Path, title: str, across: str, up: str, panels: Mapping[str, Mapping[str, Sequence[tuple[float, float]]]]
) -> Path:
    """Write one svg: a panel for each title, in it a curve of (x, y) for each label, both axes logarithmic."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams |= {"svg.hashsalt": "constrain", "svg.fonttype": "none"}  # small, and the same again
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, len(panels), figsize=(4.2 * len(panels) + 2, 4), sharey=True, squeeze=False)
    for axis, (name, curves) in zip(axes[0], panels.items()):
        for label, points in curves.items():
            axis.plot(*zip(*points), marker="o", markersize=3, linewidth=1.2, label=label)
        axis.set(xscale="log", yscale="log", title=name, xlabel=across)
        axis.grid(True, linewidth=0.3)
    axes[0][0].set_ylabel(up)
    axes[0][-1].legend(fontsize=7, loc="center left", bbox_to_anchor=(1.02, 0.5))
    figure.suptitle(title, fontsize=10)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None}, bbox_inches="tight")
    pyplot.close(figure)
    return path
