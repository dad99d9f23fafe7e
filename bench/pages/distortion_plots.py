"""Draw the plots of docs/theory.md: what masking does to a distribution, exactly, and how fast samplers come close.

    python -m bench pages.distortion_plots [--out docs/plots]

two-answers.svg    probabilities of two answers under the target and under masking (`TwoAnswers`)
fields.svg         divergence, and worth of a masked draw, as a text has more fields in which the same happens
convergence.svg    divergence of draws from the target, from the newest committed result of `bench faithful`

The first two are computed in closed form, so that there is nothing to repeat. Needs matplotlib (the extra "bench").
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..options import build_parser
from .committed_results import load_newest_result

__all__ = ["TwoAnswers", "draw_convergence", "draw_fields", "draw_two_answers"]

INK, MASKED, TARGET = "#7d8790", "#d98200", "#1a9f4a"
LINES = {"masked": MASKED, "asap": "#8a6bd8", "smc awrs 16": "#2b86d9", "exact": TARGET}
NAMES = {"smc awrs 16": "smc, 16 particles"}
FIXTURE = "traps, trigram"


@dataclass(frozen=True)
class TwoAnswers:
    """A model that begins one of two answers and then ends it validly or not.

    Attributes
    ----------
    begin : ndarray of float64, shape (2,)
        Probability with which the model begins each answer.
    survive : ndarray of float64, shape (2,)
        Probability that an answer which has begun goes on as the constraint requires; above 0.
    """

    begin: NDArray[np.float64]
    survive: NDArray[np.float64]

    @property
    def mass(self) -> float:
        """Z: the probability that the model satisfies the constraint."""
        return float(self.begin @ self.survive)

    @property
    def target(self) -> NDArray[np.float64]:
        """The model's distribution given the constraint."""
        return self.begin * self.survive / self.mass

    @property
    def divergence(self) -> float:
        """KL(masked || target) in nats; masking draws the answers with the probabilities `begin`."""
        return float(self.begin @ np.log(self.begin / self.target))

    @property
    def worth(self) -> float:
        """Effective sample size of a masked draw: 1 if it is as good as a draw from the target."""
        weights = self.survive / self.mass
        return float((self.begin @ weights) ** 2 / (self.begin @ weights**2))


REVIEW = TwoAnswers(np.array([0.9, 0.1]), np.array([0.05, 1.0]))
"""The example of the page: "great", after which a full stop is rare, and "fine", after which it is certain."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Draw the plots. Return the exit code."""
    parser = build_parser("pages.distortion_plots", __doc__)
    parser.add_argument("--out", type=Path, default=Path("docs/plots"), help="the folder")
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    draw_two_answers(options.out / "two-answers.svg")
    draw_fields(options.out / "fields.svg")
    draw_convergence(options.out / "convergence.svg")
    return 0


def draw_two_answers(path: Path) -> None:
    """Draw bars of both answers under the target and under masking."""
    figure, (axes,) = open_figure(1, 2.3)
    for i in range(2):
        for shift, share, colour in ((-0.19, REVIEW.target[i], TARGET), (0.19, REVIEW.begin[i], MASKED)):
            axes.barh(i + shift, share, 0.34, color=colour)
            axes.text(share + 0.01, i + shift, f"{share:.0%}", va="center", color=INK)
    axes.set_yticks([0, 1], ["great.", "fine."])
    axes.invert_yaxis()
    axes.set_xlim(0, 1)
    axes.set_xticks([])
    axes.spines["bottom"].set_visible(False)
    handles = [axes.barh(0, 0, color=colour) for colour in (TARGET, MASKED)]
    labels = ["the model, asked again until the answer is valid", "the model, masked"]
    axes.legend(handles, labels, loc="lower right", frameon=False, labelcolor=INK)
    save_figure(figure, path)


def draw_fields(path: Path) -> None:
    """Draw divergence and worth of a masked draw against the number of independent fields."""
    figure, (left, right) = open_figure(2, 3.0)
    fields = np.arange(0, 13)
    for survive, style in ((0.5, ":"), (0.2, "--"), (0.05, "-")):
        one = TwoAnswers(REVIEW.begin, np.array([survive, 1.0]))
        left.plot(fields, one.divergence * fields, style, color=MASKED, label=f"{survive:.0%} survive")
        right.plot(fields, one.worth**fields, style, color=MASKED)
    left.set_title("KL(masked ‖ target), nats", loc="left", fontsize=10, color=INK)
    right.set_title("worth of a masked draw, in faithful ones", loc="left", fontsize=10, color=INK)
    right.set_yscale("log")
    for axes in (left, right):
        axes.set_xlabel("fields of the text", color=INK)
    left.legend(frameon=False, labelcolor=INK)
    save_figure(figure, path)


def draw_convergence(path: Path) -> None:
    """Draw the divergence of the empirical distribution of n draws against n and against calls of the model."""
    document = load_newest_result("faithful")
    if document is None:
        raise FileNotFoundError("no result of `python -m bench faithful` is committed")
    curve = next(one for one in document["facts"]["curves"] if one["name"] == FIXTURE)
    figure, (left, right) = open_figure(2, 3.4)
    for line in curve["lines"]:
        if line["sampler"] not in LINES:
            continue
        colour, count = LINES[line["sampler"]], len(line["mean"])
        name = NAMES.get(line["sampler"], line["sampler"])
        left.plot(curve["at"][:count], line["mean"], "o-", markersize=3, color=colour, label=name)
        right.plot(line["asked"], line["mean"], "o-", markersize=3, color=colour)
    left.plot(curve["at"], curve["floor"], "--", color=INK, label="draws from the target itself")
    for axes, label in ((left, "draws"), (right, "different prefixes that the model was asked for")):
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel(label, color=INK)
    left.set_title("KL(draws ‖ target), nats", loc="left", fontsize=10, color=INK)
    left.legend(frameon=False, labelcolor=INK, fontsize=8)
    save_figure(figure, path)


def open_figure(count: int, high: float) -> tuple[Any, Sequence[Any]]:
    """Return a figure that suits light and dark pages, and its axes side by side. high: in inches."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "constrain", "font.family": "sans-serif"})
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, count, figsize=(8, high), squeeze=False, layout="constrained")
    for one in axes[0]:
        one.patch.set_alpha(0)
        one.tick_params(colors=INK, which="both")
        one.spines[["top", "right"]].set_visible(False)
        one.spines[["left", "bottom"]].set_color(INK)
    return figure, list(axes[0])


def save_figure(figure: Any, path: Path) -> None:
    """Write the figure as SVG without a date and with a transparent background."""
    figure.savefig(path, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    text = path.read_text("utf-8")
    path.write_text("\n".join(line.rstrip() for line in text.splitlines()) + "\n", "utf-8")
    print(f"written: {path}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
