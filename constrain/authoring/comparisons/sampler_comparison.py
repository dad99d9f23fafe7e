"""Two or more samplers under one constraint: which answers they give, how far masking is off, and what they cost.

The *shares* of a sampler are those of the texts as a caller gets them: one for each draw, except for samplers whose
draws only mean something with their weights ("consistent" and "without_replacement" in `sampling.SAMPLERS`), where they
are shares of the weight.

Two finite samples differ even if they come from the same distribution, so the total variation distance of the shares is
given with the distance that chance alone would cause: the mean over random divisions of all draws into two samples
(a permutation test). It is known only for samplers whose draws count equally.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import nan
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from ...base.errors import ArgumentError, UnsupportedError
from ...sampling import SAMPLERS, Draws, LanguageModel, draw
from ...sampling.core.weight_statistics import weight_stats
from .comparison_report import draw_samplers
from .comparison_results import ComparedSamplers, SamplerRow

if TYPE_CHECKING:
    from ...engine.constraint import Constraint

__all__ = ["SamplerComparison", "compare_samplers"]

PERMUTATIONS = 200
"""Number of random divisions of the draws into two samples."""


class SamplerComparison(ComparedSamplers):
    """Samplers under one constraint, for a notebook too. The attributes are those of `ComparedSamplers`."""

    def __repr__(self) -> str:
        names = ", ".join(f"{row.sampler}: {row.draws} draws" for row in self.rows)
        return f"SamplerComparison({names}; distance {self.distance:.3f}, by chance {self.chance:.3f})"

    def _repr_html_(self) -> str:
        return draw_samplers(self)


def compare_samplers(
    lm: LanguageModel,
    constraint: Constraint,
    samplers: Sequence[str] = ("masked", "exact"),
    *,
    n: int = 100,
    rng: np.random.Generator,
    max_tokens: int,
    options: Mapping[str, Mapping[str, Any]] | None = None,
) -> SamplerComparison:
    """Draw n texts with each of several samplers, and compare them.

    Parameters
    ----------
    lm : LanguageModel
        The model, after its prompt.
    constraint : Constraint
        What the texts must satisfy.
    samplers : sequence of str
        At least two names in `sampling.SAMPLERS`. The first two are compared with each other.
    n : int
        Number of draws of each.
    rng : numpy.random.Generator
        The only source of randomness.
    max_tokens : int
        Maximum number of tokens of a text, end token included.
    options : mapping, optional
        Options by the name of the sampler.

    Returns
    -------
    SamplerComparison

    Raises
    ------
    ArgumentError
        If there are fewer than two samplers.
    UnsupportedError
        If there is no sampler of a name.
    LimitError
        If a sampler finds no text.
    """
    if len(samplers) < 2:
        raise ArgumentError("give at least two samplers to compare")
    for name in samplers:
        if name not in SAMPLERS:
            raise UnsupportedError(f"there is no sampler {name!r}", hint=f"The samplers are {', '.join(SAMPLERS)}.")
    drawn, rows = [], []
    for name in samplers:
        start = perf_counter()
        given = dict((options or {}).get(name, {}))
        draws = draw(lm, constraint, sampler=name, n=n, rng=rng, max_tokens=max_tokens, **given)
        drawn.append(draws)
        rows.append(make_row(name, draws, perf_counter() - start))
    distance = find_distance(rows[0].shares, rows[1].shares)
    is_counted = not (rows[0].by_weight or rows[1].by_weight)
    first, second = ([one.text for one in draws] for draws in drawn[:2])
    return SamplerComparison(tuple(rows), distance, find_chance(first, second, rng) if is_counted else nan)


def make_row(name: str, draws: Draws, seconds: float) -> SamplerRow:
    """Return the row of a sampler."""
    sampler = SAMPLERS[name]
    by_weight = sampler.target == "consistent" or name == "without_replacement"
    counts = Counter(one.text for one in draws)
    shares = draws.by_text() if by_weight else {text: k / max(1, len(draws)) for text, k in counts.most_common()}
    stats = weight_stats(draws.log_weights)
    distortion = 0.0 if sampler.target == "exact" else stats.get("kl_to_target", nan)
    return SamplerRow(
        name, sampler.target, len(draws), draws.unfinished, len(counts), shares, by_weight, draws.ess,
        nan if sampler.target == "consistent" else distortion, round(draws.stats.get("model_calls", 0)), seconds,
    )  # fmt: skip


def find_distance(first: Mapping[str, float], second: Mapping[str, float]) -> float:
    """Return the total variation distance of two distributions of texts."""
    return sum(abs(first.get(text, 0.0) - second.get(text, 0.0)) for text in {*first, *second}) / 2


def find_chance(first: Sequence[str], second: Sequence[str], rng: np.random.Generator) -> float:
    """Return the mean distance of random divisions of all texts into samples of these sizes; nan for no texts."""
    if not first or not second:
        return nan
    _, codes = np.unique(np.array([*first, *second], dtype=object).astype(str), return_inverse=True)
    kinds, total = int(codes.max()) + 1, 0.0
    for _ in range(PERMUTATIONS):
        mixed = rng.permutation(codes)
        a = np.bincount(mixed[: len(first)], minlength=kinds) / len(first)
        b = np.bincount(mixed[len(first) :], minlength=kinds) / len(second)
        total += float(np.abs(a - b).sum()) / 2
    return total / PERMUTATIONS
