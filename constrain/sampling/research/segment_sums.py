"""Sums and maxima of segments of log-values, as forward and backward passes need them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["max_segments", "sum_segments"]

Floats = NDArray[np.float64]


def find_nonempty_segments(first: NDArray[np.int64]) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Return which segments are not empty (bool [n]), and where those begin (int64)."""
    full = np.diff(first) > 0
    return full, first[:-1][full]


def max_segments(values: Floats, first: NDArray[np.int64]) -> Floats:
    """Return the maximum of each segment values[first[i]:first[i + 1]]; -inf for an empty one."""
    out = np.full(len(first) - 1, -np.inf)
    full, starts = find_nonempty_segments(first)
    if len(starts):
        out[full] = np.maximum.reduceat(values, starts)
    return out


def sum_segments(values: Floats, first: NDArray[np.int64]) -> Floats:
    """Return log(sum(exp)) of each segment values[first[i]:first[i + 1]]; -inf for an empty one."""
    out = np.full(len(first) - 1, -np.inf)
    full, starts = find_nonempty_segments(first)
    if len(starts):
        tops = np.maximum.reduceat(values, starts)
        shift = np.where(tops > -np.inf, tops, 0.0)
        scaled = np.exp(values - np.repeat(shift, np.diff(first)[full]))
        with np.errstate(divide="ignore"):
            out[full] = shift + np.log(np.add.reduceat(scaled, starts))
    return out
