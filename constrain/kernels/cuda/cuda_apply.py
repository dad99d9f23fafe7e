"""Apply packed masks to logits in place: the bits are read once, and only masked logits are written.

    bits     int32 [R, words]     token t of a row is bit t % 32 of word t // 32
    rows     int32 [B]            the row of bits of each row of logits; -1: that row is not changed
    logits   [B, V]               float bits, flat, row b from b * stride on; masked tokens become -inf

A block loads TILE words of a row into shared memory, coalesced. Then adjacent threads handle adjacent chunks of 16
bytes: 4 tokens of float32, 8 of 16-bit floats. If no token of a chunk is allowed it is one store, so an empty word is
128 (64) contiguous bytes of its warp; if all are, nothing is written; else only the masked tokens are. No logit is
read. Rows need not begin at a multiple of 16 bytes: the chunks do, and the bits are shifted accordingly. Tokens beyond
the bits (a padded vocabulary) are masked; bits beyond the row are ignored.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .cuda_device import cuda, kernel, store16

__all__ = ["TILE", "apply_masks", "count_tiles"]

TILE = 64
"""Words per block: 63 blocks for one row of 128k, so that even a single row occupies half of a large GPU."""
TILE_WORDS = TILE + 1
"""Words in shared memory: chunks that begin in the last word of a tile may end in the next word."""


def count_tiles(width: int) -> int:
    """Return the number of blocks for a row of `width` tokens; blocks are numbered row by row."""
    return -(-width // (32 * TILE))


@kernel
def apply_masks(
    logits: Any, stride: Any, width: Any, head: Any, head_step: Any,
    bits: Any, words: Any, rows: Any,
    minus_infinity: Any, pattern: Any,
) -> None:  # fmt: skip
    """Write -inf to the masked tokens. Blocks: B * count_tiles(width).

    logits: int32 or int16, flat. stride: elements from row to row. width: tokens of a row. head: elements of row 0
    before its first multiple of 16 bytes. head_step: additional ones per row, modulo those of 16 bytes. bits: int32,
    flat [R * words]. rows: int32 [B]. minus_infinity: one element. pattern: 4 bytes of minus infinity, int32.
    """
    shared = cuda.shared.array(TILE_WORDS, np.int32)
    thread, threads = cuda.threadIdx.x, cuda.blockDim.x
    blocks = (width + 32 * TILE - 1) // (32 * TILE)
    row = cuda.blockIdx.x // blocks
    first = (cuda.blockIdx.x - row * blocks) * TILE  # the tile's first word
    source = rows[row]
    if source < 0:
        return
    for i in range(thread, TILE_WORDS, threads):
        word = first + i
        shared[i] = bits[source * words + word] if word < words else 0
    cuda.syncthreads()
    piece = 16 // logits.itemsize
    all_set = (1 << piece) - 1
    skew = (head + row * head_step) % piece
    start = row * stride
    if first == 0 and thread < skew and thread < width and (shared[0] >> thread) & 1 == 0:
        logits[start + thread] = minus_infinity
    for i in range(thread, TILE * (32 // piece), threads):
        token = first * 32 + skew + i * piece
        if token >= width:
            return
        word_index = (skew + i * piece) >> 5
        low = np.int64(shared[word_index]) & 0xFFFFFFFF
        high = np.int64(shared[word_index + 1]) & 0x7FFFFFFF  # of which at most 7 bits are used
        allowed = ((high << 32 | low) >> ((skew + i * piece) & 31)) & all_set
        if allowed == 0 and token + piece <= width:
            store16(logits, start + token, pattern)
        elif allowed != all_set:
            for lane in range(min(piece, width - token)):
                if (allowed >> lane) & 1 == 0:
                    logits[start + token + lane] = minus_infinity
