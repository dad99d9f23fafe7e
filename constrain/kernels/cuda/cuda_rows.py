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

__all__ = ["EXCLUDED", "LOADS", "compute_limit", "find_mask", "load_values", "pick"]

LOADS = 4
"""Tokens that a thread loads at a time."""
EXCLUDED = np.float32(-np.inf)


@device
def find_mask(rows: Any, masks: Any, row: Any) -> Any:
    """Return the index of the mask of a row, -1 for none.

    rows: int32 [B], or [0]: mask i is for row i, a single one for all. masks: their number.
    """
    if rows.size > 0:
        return np.int64(rows[row])
    if masks > 0:
        return np.int64(row) if masks > 1 else np.int64(0)
    return np.int64(-1)


@device
def pick(values: Any, common: Any, row: Any) -> Any:
    """Return the parameter of a row: from values, [B], or `common` if they are [0]."""
    return values[row] if values.size > 0 else common


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
