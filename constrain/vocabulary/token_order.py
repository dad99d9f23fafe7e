"""Sort tokens by their bytes, for the trie.

The first 16 bytes are compared as integers, and all bytes only where these are equal. For 128,000 tokens this is twice
as fast as comparing the tokens directly.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["order_tokens"]

PREFIX_BYTES = 16
"""Bytes of a token that are compared as two integers."""


def order_tokens(blob: bytes, offsets: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return the ids of all non-empty tokens as int32, sorted by bytes, then by id.

    `blob` and `offsets` are those of a Vocabulary.
    """
    lengths = np.diff(offsets)
    padded = np.frombuffer(blob + bytes(PREFIX_BYTES), np.uint8)
    columns = np.arange(PREFIX_BYTES)
    heads = padded[offsets[:-1, None] + columns]
    heads[columns >= lengths[:, None]] = 0
    keys = heads.view(">u8").astype(np.uint64)
    order: NDArray[np.int64] = np.lexsort((lengths, keys[:, 1], keys[:, 0]))
    order = order[lengths[order] > 0]
    # Runs of equal keys: tokens that differ after these bytes, or only in trailing zeros.
    sorted_keys = keys[order]
    are_equal = np.concatenate([[False], (sorted_keys[1:] == sorted_keys[:-1]).all(axis=1), [False]])
    edges = np.flatnonzero(are_equal[1:] != are_equal[:-1]).tolist()
    for first, last in zip(edges[::2], edges[1::2]):
        run = order[first : last + 1].tolist()
        order[first : last + 1] = sorted(run, key=lambda i: (blob[offsets[i] : offsets[i + 1]], i))
    return order.astype(np.int32)
