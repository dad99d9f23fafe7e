"""Masses: the law of the next token under a mask, kept as the model's row and its sums.

One pass over the row adds up exp(log) of the allowed tokens by words of the mask; a token is then drawn by walking a
hundred sums. So a law costs its row and 36 KB, however many draws are made from it, and no array of tokens is made.
Few tokens are quicker dealt with by listing them: `enumerate_tokens`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...base.errors import ArgumentError
from ...kernels import draws
from .results import log_sum

__all__ = ["Masses", "allowed_tokens", "draw_index", "enumerate_tokens", "mask_of", "as_kernel_row"]

FEW = 512
"""Tokens that are listed rather than summed up where they stand."""
FAINT = 1e-17
"""A sum smaller than this is made again of a row that is shifted up: exponentials of float32 end at 1e-38."""

Row = NDArray[np.floating[Any]]


class Masses:
    """The law of a row (float [V], natural logs) on the tokens of a Mask (int32 [words]).

    logmass: log of the mass of these tokens. Within 2e-7 of it for float32 rows, 1e-15 for float64, and the tokens are
    drawn by the numbers that it was summed up from. Raises ValueError for NaN among them.
    """

    __slots__ = ("_row", "_sums", "logmass", "mask", "row")

    def __init__(self, row: Row, mask: NDArray[np.int32]) -> None:
        self.row = self._row = as_kernel_row(row)
        self.mask = mask
        words = len(mask)
        self._sums = np.empty(words + -(-words // draws.GROUP))
        total, shift = draws.sum_masses(self._row, mask, self._sums), 0.0
        if math.isnan(total):
            raise ArgumentError("the model's log-probabilities are not numbers (NaN)")
        if total < FAINT:
            shift = float(row[allowed_tokens(mask)].max(initial=-np.inf))
            if shift > -np.inf:
                self._row = self._row - self._row.dtype.type(shift)
                total = draws.sum_masses(self._row, mask, self._sums)
        self.logmass = math.log(total) + shift if shift > -np.inf else -math.inf

    def place(self, uniform: float) -> int:
        """The token at this part (from 0 to 1) of the mass, tokens in ascending order. logmass must be above -inf."""
        return int(draws.find_token(self._row, self.mask, self._sums, uniform))

    def log_of(self, tokens: tuple[int, ...]) -> float:
        """Log of the mass that some tokens have together, as far as the mask allows them."""
        allowed = [token for token in tokens if self.mask[token >> 5] >> (token & 31) & 1]
        return float(self.row[allowed[0]]) if len(allowed) == 1 else log_sum(self.row[allowed].astype(np.float64))

    @property
    def nbytes(self) -> int:
        """Of the arrays."""
        return int(self.row.nbytes + self.mask.nbytes + self._sums.nbytes)


def as_kernel_row(row: Row) -> Row:
    """A row as the kernels read it: float32 or float64, without gaps."""
    if row.dtype != np.float32 and row.dtype != np.float64:
        row = row.astype(np.float32 if row.dtype.itemsize < 4 else np.float64)
    return row if row.flags.carray else np.require(row, requirements=["C", "A"])


def mask_of(tokens: Iterable[int], size: int) -> NDArray[np.int32]:
    """The Mask of some tokens of `size`."""
    bits = np.zeros(-(-size // 32) * 32, np.uint8)
    bits[list(tokens)] = 1
    return np.packbits(bits, bitorder="little").view(np.int32)


def allowed_tokens(mask: NDArray[np.int32]) -> NDArray[np.int64]:
    """The ids whose bit is set in a Mask (int32 [words], bit i % 32 of word i // 32), ascending."""
    listed = enumerate_tokens(mask)
    return np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little")) if listed is None else listed


def enumerate_tokens(mask: NDArray[np.int32]) -> NDArray[np.int64] | None:
    """The same where they are FEW at most; else None."""
    room = np.empty(FEW, np.int64)
    count = draws.list_tokens(mask, room)
    return room[:count].copy() if count <= FEW else None


def draw_index(weights: NDArray[np.float64], rng: np.random.Generator) -> int:
    """Draw an index with probability proportional to its weight (float64 [k], not all 0)."""
    edges = np.cumsum(weights)
    index = int(np.searchsorted(edges, rng.random() * edges[-1], side="right"))
    if index == len(weights) or weights[index] == 0:  # rounding pointed behind the last one that is possible
        index = int(np.flatnonzero(weights)[-1])
    return index
