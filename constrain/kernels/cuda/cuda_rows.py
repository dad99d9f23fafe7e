"""Loads of the tokens of a row under its mask, four at a time: their logits, -inf if the mask excludes them.

Four independent loads take as long as one (memory-level parallelism). So a thread loads four tokens, a block of threads
apart, before it uses any of them, without branches: indices beyond the row or the mask are clamped, and the values not
used. Adjacent threads load adjacent tokens.

    row = (logits, start, width, kind, bits, at, limit, ...)

    start, at   where the row of logits and its mask begin; at < 0: no mask
    limit       tokens from it on are excluded, since the mask or the row ends there
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .cuda_device import device
from .cuda_order import value_of

__all__ = ["LANES", "EXCLUDED", "load_value", "compute_limit", "load_values"]

LANES = 4
EXCLUDED = np.float32(-np.inf)


@device
def compute_limit(width: Any, at: Any, words: Any) -> Any:
    """Return the `limit` of a row."""
    return width if at < 0 else min(np.int64(width), 32 * words)


@device
def mask_value(row: Any, raw: Any, word: Any, token: Any) -> Any:
    """Return the value of a token given the bits of its float and its word of the mask; -inf if it is excluded."""
    if token >= row[6] or (word >> (token & 31)) & 1 == 0:
        return EXCLUDED
    return value_of(raw, row[3])


@device
def load_value(row: Any, token: Any) -> Any:
    """Load one token. Return its value, -inf if it is excluded."""
    if token >= row[6] or (row[5] >= 0 and (row[4][row[5] + (token >> 5)] >> (token & 31)) & 1 == 0):
        return EXCLUDED
    return value_of(row[0][row[1] + token], row[3])


@device
def load_values(row: Any, first: Any, threads: Any) -> Any:
    """Load tokens first, first + threads, ...: four of them. Return their values, float32."""
    logits, start, last, bits, at, end = row[0], row[1], row[2] - 1, row[4], row[5], row[6] - 1
    second, third, fourth = first + threads, first + 2 * threads, first + 3 * threads
    a, b = logits[start + min(first, last)], logits[start + min(second, last)]
    c, d = logits[start + min(third, last)], logits[start + min(fourth, last)]
    p = q = r = s = np.int32(-1)
    if at >= 0:
        p, q = bits[at + (min(first, end) >> 5)], bits[at + (min(second, end) >> 5)]
        r, s = bits[at + (min(third, end) >> 5)], bits[at + (min(fourth, end) >> 5)]
    return (
        mask_value(row, a, p, first),
        mask_value(row, b, q, second),
        mask_value(row, c, r, third),
        mask_value(row, d, s, fourth),
    )
