"""The distribution of the next token under a mask, represented by the model's row and partial sums.

One pass over the row sums exp(log) of the allowed tokens by words of the mask; a token is then drawn by scanning about
a hundred sums. A distribution thus takes the memory of its row and 36 KB, however many draws are made, and no array of
tokens is built. Where few tokens are allowed and needed one by one, `enumerate_tokens` lists them.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...base.errors import ArgumentError
from ...kernels import entry_points
from ...kernels.call_layout import GROUP
from .results import log_sum

__all__ = [
    "Masses",
    "allowed_tokens",
    "as_kernel_row",
    "draw_index",
    "enumerate_tokens",
    "exclude_tokens",
    "find_quantile",
    "mask_of",
    "sum_ends",
]

FEW = 512
"""Maximum number of tokens that are listed instead of being summed in place."""
FAINT = 1e-17
"""Sums below this are recomputed from a row that is shifted up, because exponentials of float32 underflow at 1e-38."""

Row = NDArray[np.floating[Any]]


class Masses:
    """The distribution of a row (float [V], natural logs) over the tokens of a Mask (int32 [words]).

    logmass: log of the mass of these tokens, accurate to 2e-7 for float32 rows and 1e-15 for float64; tokens are drawn
    with exactly the numbers that were summed. Raises ValueError for NaN among them.
    """

    __slots__ = ("_row", "_shift", "_sums", "logmass", "mask", "row")

    def __init__(self, row: Row, mask: NDArray[np.int32]) -> None:
        self.row = self._row = as_kernel_row(row)
        self.mask = mask
        words = len(mask)
        self._sums = np.empty(words + -(-words // GROUP))
        total, shift = entry_points.sum_masses(self._row, mask, self._sums), 0.0
        if math.isnan(total):
            raise ArgumentError("the model's log-probabilities are not numbers (NaN)")
        if total < FAINT:
            shift = float(row[allowed_tokens(mask)].max(initial=-np.inf))
            if shift > -np.inf:
                self._row = self._row - self._row.dtype.type(shift)
                total = entry_points.sum_masses(self._row, mask, self._sums)
        self._shift = shift
        self.logmass = math.log(total) + shift if shift > -np.inf else -math.inf

    def token_at(self, uniform: float) -> int:
        """Return the token at a quantile (from 0 to 1) of the mass, tokens in ascending order. logmass must be above
        -inf.
        """
        return int(entry_points.find_token(self._row, self.mask, self._sums, uniform))

    def log_of(self, tokens: tuple[int, ...]) -> float:
        """Return the log of the total mass of some tokens, counting only those that the mask allows."""
        allowed = [token for token in tokens if self.mask[token >> 5] >> (token & 31) & 1]
        return float(self.row[allowed[0]]) if len(allowed) == 1 else log_sum(self.row[allowed].astype(np.float64))

    def list_likeliest(self, count: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return up to `count` of the likeliest allowed tokens (int64, ascending), and their logs (float64)."""
        tokens, logs = np.empty(count, np.int64), np.empty(count)
        found = entry_points.list_likeliest(self._row, self.mask, self._sums, tokens, logs)
        tokens = tokens[:found]
        return tokens, self.row[tokens].astype(np.float64) if self._shift else logs[:found]

    def without(self, tokens: NDArray[np.int64]) -> Masses:
        """Return the distribution over the mask without some tokens. Its mass is summed anew, not subtracted."""
        rest = Masses.__new__(Masses)
        rest.row, rest._row, rest._shift = self.row, self._row, self._shift
        rest.mask, rest._sums = self.mask.copy(), self._sums.copy()
        total = entry_points.remove_tokens(self._row, rest.mask, rest._sums, np.ascontiguousarray(tokens))
        if total < FAINT:
            return Masses(self.row, rest.mask)
        rest.logmass = math.log(total) + self._shift
        return rest

    @property
    def nbytes(self) -> int:
        """Size of the arrays in bytes."""
        return int(self.row.nbytes + self.mask.nbytes + self._sums.nbytes)


def as_kernel_row(row: Row) -> Row:
    """Return a row in the form that kernels read: contiguous float32 or float64."""
    if row.dtype != np.float32 and row.dtype != np.float64:
        row = row.astype(np.float32 if row.dtype.itemsize < 4 else np.float64)
    return row if row.flags.carray else np.require(row, requirements=["C", "A"])


def mask_of(tokens: Iterable[int], size: int) -> NDArray[np.int32]:
    """Return the Mask of some tokens of a vocabulary of `size` tokens."""
    bits = np.zeros(-(-size // 32) * 32, np.uint8)
    bits[list(tokens)] = 1
    return np.packbits(bits, bitorder="little").view(np.int32)


def exclude_tokens(mask: NDArray[np.int32], tokens: NDArray[np.int64]) -> NDArray[np.int32]:
    """Return a copy of a Mask without some tokens."""
    out: NDArray[np.int32] = mask.copy()
    np.bitwise_and.at(out, tokens >> 5, ~np.left_shift(1, tokens & 31, dtype=np.int64).astype(np.int32))
    return out


def allowed_tokens(mask: NDArray[np.int32]) -> NDArray[np.int64]:
    """Return the ids whose bit is set in a Mask (int32 [words], bit i % 32 of word i // 32), ascending."""
    listed = enumerate_tokens(mask)
    return np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little")) if listed is None else listed


def enumerate_tokens(mask: NDArray[np.int32]) -> NDArray[np.int64] | None:
    """Return the same as `allowed_tokens` if there are at most FEW; otherwise None."""
    buffer = np.empty(FEW, np.int64)
    count = entry_points.list_tokens(mask, buffer)
    return buffer[:count].copy() if count <= FEW else None


def sum_ends(row: Row, ends: Sequence[int]) -> float:
    """Return the log of the total probability of the end tokens in the model's row (float [V])."""
    return log_sum(row[list(ends)].astype(np.float64))


def draw_index(weights: NDArray[np.float64], rng: np.random.Generator) -> int:
    """Draw an index with probability proportional to its weight (float64 [k], not all 0)."""
    return find_quantile(np.cumsum(weights), rng.random())


def find_quantile(edges: NDArray[np.float64], uniform: float) -> int:
    """Return the index at a quantile (from 0 to 1) of cumulative weights (float64 [k], not all 0); never one of weight
    0.
    """
    index = bisect_right(edges, uniform * edges[-1])
    if index == len(edges):  # rounding exceeded the last possible index
        index = int(edges.searchsorted(edges[-1]))
    return index
