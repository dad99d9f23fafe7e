"""The order in which tokens stand: by their float, the larger first; ties by token id, the smaller first.

Float and id make one int64, the *rank*, and larger ranks come first. No two tokens of a row have the same one, so that
"the k largest" and "the largest that hold this mass" are one set each, in whatever order threads run. -0 and 0 are one.

    rank = (place of the float32 among all floats: 32 bits) << 20 | (2^20 - 1 - token)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .cuda_device import bits_of, device, float_of

__all__ = [
    "BFLOAT16",
    "FLOAT16",
    "FLOAT32",
    "ID_BITS",
    "INFINITY",
    "MOST_TOKENS",
    "rank_of",
    "token_of",
    "value_at",
    "value_of",
]

FLOAT32, BFLOAT16, FLOAT16 = 0, 1, 2
"""Kinds of rows."""
ID_BITS = 20
LAST_ID = (1 << ID_BITS) - 1
MOST_TOKENS = 1 << 19
"""Of a row: `sample` adds up as many masses of 2^44 in an int64."""
ZERO = 1 << 31
"""The place of 0."""
UP = np.float32(2.0**112)
"""2^(127 - 15), by which the bits of a float16, taken for those of a float32, are too small; subnormals too."""
INFINITY = np.float32(np.inf)


@device
def value_of(bits: Any, kind: Any) -> Any:
    """Return the float32 that the bits of a float of some kind spell; exact."""
    if kind == FLOAT32:
        return float_of(np.int32(bits))
    if kind == BFLOAT16:
        return float_of(np.int32(np.int64(bits) << 16))
    small = np.int64(bits) & 0x7FFF
    if small >= 0x7C00:  # infinity, and what is no number
        size = float_of(np.int32(0x7F800000 | (small & 0x3FF) << 13))
    else:
        size = float_of(np.int32(small << 13)) * UP
    return -size if bits < 0 else size


@device
def rank_of(value: Any, token: Any) -> Any:
    """Return the rank of a token of this float32."""
    bits = np.int64(bits_of(value))
    place = ZERO + (bits if bits >= 0 else -(bits & 0x7FFFFFFF))
    return place << ID_BITS | (LAST_ID - token)


@device
def token_of(rank: Any) -> Any:
    """Return the token of a rank."""
    return LAST_ID - (rank & LAST_ID)


@device
def value_at(place: Any) -> Any:
    """Return the float32 at a place, a rank without its token: place = rank >> ID_BITS."""
    size = place - ZERO
    return float_of(np.int32(size)) if size >= 0 else -float_of(np.int32(-size))
