"""Resampling schemes: choose which of m weighted particles survive, and how often, without bias.

    ancestors = systematic(weights, n, rng)        E[number of copies of i] = n weights[i]

Weights are float64 [m] and sum to 1; ancestors are int64 [n], ascending, and have the weight 1 / n each afterwards. The
schemes differ in the variance they add: multinomial the most, systematic usually the least (Douc, Cappé & Moulines
2005). `resample_without_replacement` takes no candidate twice, so the survivors have different weights (Fearnhead &
Clifford 2003).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "RESAMPLERS",
    "Resampler",
    "find_inclusion_probabilities",
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
"""Tolerance when numbers of copies are rounded down: a value this close below an integer counts as that integer."""


def resample_systematic(weights: Floats, n: int, rng: np.random.Generator) -> Ints:
    """Return ancestors at n equidistant points, shifted by one uniform number."""
    return np.searchsorted(_edges(weights), (rng.random() + np.arange(n)) / n, side="right")


def resample_stratified(weights: Floats, n: int, rng: np.random.Generator) -> Ints:
    """Return ancestors at one uniform point in each of n equal intervals."""
    return np.searchsorted(_edges(weights), (rng.random(n) + np.arange(n)) / n, side="right")


def resample_multinomial(weights: Floats, n: int, rng: np.random.Generator) -> Ints:
    """Return n independent draws."""
    return np.sort(np.searchsorted(_edges(weights), rng.random(n), side="right"))


def resample_residual(weights: Floats, n: int, rng: np.random.Generator) -> Ints:
    """Return floor(n weights[i]) copies of each i, and independent draws by the remainders for the rest."""
    shares = n * weights
    copies = np.floor(shares + ROUNDING)
    left = n - int(copies.sum())
    certain = np.repeat(np.arange(len(weights)), copies.astype(np.int64))
    if left <= 0:
        return certain[:n]
    remainders = np.maximum(shares - copies, 0.0)
    return np.sort(np.concatenate([certain, resample_multinomial(remainders / remainders.sum(), left, rng)]))


RESAMPLERS: dict[str, Resampler] = {
    "systematic": resample_systematic,
    "stratified": resample_stratified,
    "residual": resample_residual,
    "multinomial": resample_multinomial,
}


def resample_without_replacement(scores: Floats, n: int, rng: np.random.Generator) -> tuple[Ints, Floats]:
    """Return at most n candidates with positive scores (float64 [m]), none twice, and their inclusion probabilities.

    Candidate i is included with probability min(1, c scores[i]), where c is such that these sum to n; its new weight is
    its weight divided by that probability. With scores proportional to the weights no other selection of n candidates
    has less variance. Returns int64 [k], ascending, and float64 [k].
    """
    order = np.argsort(-scores, kind="stable")
    order = order[scores[order] > 0]
    if len(order) <= n:
        return np.sort(order), np.ones(len(order))
    certain, rest = _count_certain(scores[order], n)
    # In the order given: candidates that are side by side, such as those of one text, get even shares.
    tail, drawn_count = np.sort(order[certain:]), n - certain
    picked = tail[
        np.searchsorted(
            _edges(scores[tail] / rest), (rng.random() + np.arange(drawn_count)) / drawn_count, side="right"
        )
    ]
    chosen = np.concatenate([order[:certain], picked])
    probabilities = np.concatenate([np.ones(certain), np.minimum(drawn_count * scores[picked] / rest, 1.0)])
    ascending = np.argsort(chosen, kind="stable")
    return chosen[ascending], probabilities[ascending]


def find_inclusion_probabilities(scores: Floats, n: int) -> Floats:
    """Return the probability that `resample_without_replacement` includes each candidate: float64 [m]."""
    ranked = np.sort(scores[scores > 0])[::-1]
    if len(ranked) <= n:
        return (scores > 0).astype(np.float64)
    certain, rest = _count_certain(ranked, n)
    return np.minimum((n - certain) * scores / rest, 1.0)


def _count_certain(ranked: Floats, n: int) -> tuple[int, float]:
    """Return how many of more than n positive scores, in descending order, are included with certainty, and the sum of
    the others.
    """
    suffix_sums = np.cumsum(ranked[::-1])[::-1]
    certain = int(np.argmax((n - np.arange(n)) * ranked[:n] <= suffix_sums[:n]))
    return certain, float(suffix_sums[certain])


def _edges(weights: Floats) -> Floats:
    """Return the right ends of the weights' intervals in [0, 1), float64 [m]; the last positive weight ends at 1."""
    edges = np.cumsum(weights)
    edges /= edges[-1]
    edges[int(np.flatnonzero(weights)[-1]) :] = 1.0
    return edges
