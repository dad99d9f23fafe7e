"""The order of candidates: indices of an array of keys from the largest down, computed a few at a time.

A step of a search uses a handful of some 100,000 candidates, but it is not known beforehand how many: a checker may
refuse any of them. The largest keys are therefore selected in portions of doubling size (top-k first, lazy refill).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

__all__ = ["iterate_falling", "top_falling"]

PORTION = 64


def iterate_falling(keys: NDArray[np.float64]) -> Iterator[int]:
    """Yield the indices of `keys` (float64 [k], no NaN), largest key first, equal keys by index."""
    start, portion = 0, PORTION
    while start < len(keys):
        yield from top_falling(keys, start + portion)[start:].tolist()
        start, portion = start + portion, 4 * portion


def top_falling(keys: NDArray[np.float64], most: int) -> NDArray[np.int64]:
    """Return the indices (int64) of the `most` largest of `keys`, largest first, equal keys by index."""
    if most >= len(keys):
        return np.argsort(-keys, kind="stable")
    least = np.partition(keys, len(keys) - most)[len(keys) - most]
    chosen = np.flatnonzero(keys >= least)
    return chosen[np.argsort(-keys[chosen], kind="stable")][:most]
