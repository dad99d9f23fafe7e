"""Resampling: which of n weighted particles live on, and how often, so that nothing is gained or lost on average.

    ancestors = systematic(weights, n, rng)        E[how often i is among them] = n weights[i]

Weights are float64 [m] and sum to 1; ancestors are int64 [n], ascending, and weigh 1 / n each afterwards. They differ
in how much chance they add: multinomial the most, systematic mostly the least (Douc, Cappé & Moulines 2005).
`resample_without_replacement` takes no candidate twice, so what it keeps does not weigh the same (Fearnhead & Clifford
2003).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "RESAMPLERS",
    "Resampler",
    "resample_multinomial",
    "resample_residual",
    "resample_stratified",
    "resample_systematic",
    "resample_without_replacement",
]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Resampler = Callable[[Floats, int, np.random.Generator], Ints]

ROUNDING = 1e-9
"""A number of copies this close below a whole one is that whole one."""


def resample_systematic(weights: Floats, n: int, rng: np.random.Generator) -> Ints:
    """n points at equal distances, all moved by one uniform number."""
    return np.searchsorted(_edges(weights), (rng.random() + np.arange(n)) / n, side="right")


def resample_stratified(weights: Floats, n: int, rng: np.random.Generator) -> Ints:
    """A point in each of n equal parts, each by its own uniform number."""
    return np.searchsorted(_edges(weights), (rng.random(n) + np.arange(n)) / n, side="right")


def resample_multinomial(weights: Floats, n: int, rng: np.random.Generator) -> Ints:
    """n independent ones."""
    return np.sort(np.searchsorted(_edges(weights), rng.random(n), side="right"))


def resample_residual(weights: Floats, n: int, rng: np.random.Generator) -> Ints:
    """As many whole copies as n weights[i] has; the rest independently, by what remains."""
    shares = n * weights
    whole = np.floor(shares + ROUNDING)
    left = n - int(whole.sum())
    sure = np.repeat(np.arange(len(weights)), whole.astype(np.int64))
    if left <= 0:
        return sure[:n]
    rest = np.maximum(shares - whole, 0.0)
    return np.sort(np.concatenate([sure, resample_multinomial(rest / rest.sum(), left, rng)]))


RESAMPLERS: dict[str, Resampler] = {
    "systematic": resample_systematic,
    "stratified": resample_stratified,
    "residual": resample_residual,
    "multinomial": resample_multinomial,
}


def resample_without_replacement(scores: Floats, n: int, rng: np.random.Generator) -> tuple[Ints, Floats]:
    """At most n of the candidates with positive scores (float64 [m]), none twice, and how likely each was to be kept.

    Candidate i is kept with probability min(1, c scores[i]), c such that these sum to n; what is kept weighs
    its weight divided by that. With scores proportional to the weights no choice of n has less variance.
    Returns int64 [k], ascending, and float64 [k].
    """
    order = np.argsort(-scores, kind="stable")
    order = order[scores[order] > 0]
    if len(order) <= n:
        return np.sort(order), np.ones(len(order))
    ranked = scores[order]
    behind = np.cumsum(ranked[::-1])[::-1]  # the sum from each on
    sure = int(np.argmax((n - np.arange(n)) * ranked[:n] <= behind[:n]))
    tail, total, room = order[sure:], float(behind[sure]), n - sure
    picked = tail[np.searchsorted(_edges(scores[tail] / total), (rng.random() + np.arange(room)) / room, side="right")]
    kept = np.concatenate([order[:sure], picked])
    chance = np.concatenate([np.ones(sure), np.minimum(room * scores[picked] / total, 1.0)])
    back = np.argsort(kept, kind="stable")
    return kept[back], chance[back]


def _edges(weights: Floats) -> Floats:
    """Ends of the weights' intervals in [0, 1): float64 [m]; nothing is left behind the last positive one."""
    edges = np.cumsum(weights)
    edges /= edges[-1]
    edges[int(np.flatnonzero(weights)[-1]) :] = 1.0
    return edges
