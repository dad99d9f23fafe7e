"""The total order of tokens in a row: by float, the larger first; ties by token id, the smaller first.

Float and id are packed into one int64, the *rank*, and larger ranks come first. The ranks of a row are distinct, so
that "the k largest" and "the largest that hold this mass" are unique sets, in whatever order threads run. -0 equals 0.

    rank = (ordinal of the float32 among all floats: 32 bits) << 20 | (2^20 - 1 - token)
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
    "LAST_ID",
    "MOST_TOKENS",
    "rank_of",
    "token_of",
    "value_at",
    "value_of",
]

FLOAT32, BFLOAT16, FLOAT16 = 0, 1, 2
"""Float formats of rows."""
ID_BITS = 20
LAST_ID = (1 << ID_BITS) - 1
MOST_TOKENS = 1 << 19
"""Most tokens of a row: so many masses of 2^44 fit into the int64 sums of `cuda_sample`."""
ZERO = 1 << 31
"""The ordinal of 0."""
UP = np.float32(2.0**112)
"""2^(127 - 15), the difference of the exponent biases: a float16 shifted to float32 bits is too small by it."""
INFINITY = np.float32(np.inf)


@device
def value_of(bits: Any, kind: Any) -> Any:
    """Return the float32 of the bits of a float of format `kind`; exact."""
    if kind == FLOAT32:
        return float_of(np.int32(bits))
    if kind == BFLOAT16:
        return float_of(np.int32(np.int64(bits) << 16))
    small = np.int64(bits) & 0x7FFF
    if small >= 0x7C00:  # infinity and NaN
        size = float_of(np.int32(0x7F800000 | (small & 0x3FF) << 13))
    else:
        size = float_of(np.int32(small << 13)) * UP
    return -size if bits < 0 else size


@device
def rank_of(value: Any, token: Any) -> Any:
    """Return the rank of a token with a float32 value."""
    bits = np.int64(bits_of(value))
    ordinal = ZERO + (bits if bits >= 0 else -(bits & 0x7FFFFFFF))
    return ordinal << ID_BITS | (LAST_ID - token)


@device
def token_of(rank: Any) -> Any:
    """Return the token of a rank."""
    return LAST_ID - (rank & LAST_ID)


@device
def value_at(ordinal: Any) -> Any:
    """Return the float32 with an ordinal, which is rank >> ID_BITS."""
    size = ordinal - ZERO
    return float_of(np.int32(size)) if size >= 0 else -float_of(np.int32(-size))
