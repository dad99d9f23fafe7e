"""The tiles of a row: TILE tokens that one warp loads at once, 32 tokens and one word of the mask for each lane.

A tile is the unit in which masses are added (`cuda_sample`). Tiles are the same on all cards and in all batches. A lane
has eight groups of four adjacent tokens, group j of lane i being group j * LANES + i of the tile, so that accesses of a
warp are adjacent. It loads a group by one access, if rows are aligned; all accesses come before the first use of a
value, so that they take about as long as one (memory-level parallelism).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .cuda_block import from_lane
from .cuda_device import LANES, cuda, device, load_four
from .cuda_order import BFLOAT16, FLOAT32, value_of
from .cuda_rows import EXCLUDED

__all__ = ["MOST_TILES", "OWN", "TILE", "count_tiles", "load_tile", "token_at"]

OWN = 32
"""Tokens of a lane: as many as a word of the mask has bits."""
TILE = OWN * LANES
"""Tokens of a tile."""
MOST_TILES = (1 << 19) // 1024
"""Most tiles of a row on a card."""
GROUPS = OWN // 4


def count_tiles(width: int) -> int:
    """Return the number of tiles of a row."""
    return -(-width // TILE)


@device
def token_at(tile: Any, i: Any) -> Any:
    """Return the token i of this lane."""
    lane = np.int64(cuda.threadIdx.x & (LANES - 1))
    return np.int64(tile) * TILE + 4 * lane + (i >> 2) * (4 * LANES) + (i & 3)


@device
def load_word(rows: Any, place: Any, tile: Any, scratch: Any) -> Any:
    """Return which tokens of this lane the mask allows: 32 bits in an int64. A lane loads one word of the mask."""
    _, at, limit = place
    lane = np.int64(cuda.threadIdx.x & (LANES - 1))
    position = np.int64(tile) * LANES + lane
    rest = limit - 32 * position  # allowed tokens from this word on
    word = np.int32(-1)
    if rest <= 0:
        word = np.int32(0)
    elif at >= 0:
        word = np.int32(rows.bits[np.uint64(at + position)])
    if 0 < rest < 32:
        word = np.int32(np.int64(word) & ((np.int64(1) << rest) - 1))
    allowed, shift = np.int64(0), 4 * (lane & 7)
    for j in range(GROUPS):
        found = np.int64(from_lane(word, (j * LANES + lane) >> 3, scratch))
        allowed |= ((found >> shift) & 15) << (4 * j)
    return allowed


@device
def load_tile(rows: Any, place: Any, tile: Any, values: Any, scratch: Any) -> Any:
    """Load this lane's tokens of a tile. Return which of them the mask allows, as 32 bits.

    place: of `open_row`. values: float32 [OWN], written; -inf beyond the row.
    """
    raw = cuda.local.array(OWN, np.int32)
    start, width = place[0], np.int64(rows.width)
    is_whole = (np.int64(tile) + 1) * TILE <= width
    if is_whole and rows.aligned != 0:
        for j in range(GROUPS):
            a, b, c, d = load_four(rows.logits, np.uint64(start + token_at(tile, 4 * j)))
            raw[4 * j], raw[4 * j + 1], raw[4 * j + 2], raw[4 * j + 3] = a, b, c, d
    else:
        for i in range(OWN):
            raw[i] = rows.logits[np.uint64(start + min(token_at(tile, i), width - 1))]
    allowed = load_word(rows, place, tile, scratch)
    if rows.kind == FLOAT32:
        for i in range(OWN):
            values[i] = value_of(raw[i], FLOAT32)
    elif rows.kind == BFLOAT16:
        for i in range(OWN):
            values[i] = value_of(raw[i], BFLOAT16)
    else:
        for i in range(OWN):
            values[i] = value_of(raw[i], rows.kind)
    if not is_whole:
        for i in range(OWN):
            if token_at(tile, i) >= width:
                values[i] = EXCLUDED
    return allowed
