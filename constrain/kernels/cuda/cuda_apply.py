"""Apply packed masks to logits in place: the bits are read once, and only masked logits are written.

    bits     int32 [R, words]     token t of a row is bit t % 32 of word t // 32
    rows     int32 [B] or [0]     the row of bits of each row of logits; -1: that row is not changed
    logits   [B, V]               float bits, flat, row b from b * stride on; masked tokens become -inf

A block loads as many words as it has threads into shared memory, coalesced. Then each warp goes through 32 of them, a
word at a time: lane i writes token i of the word if it is masked, so an empty word is one store of 128 (64) contiguous
bytes, and a full one is a comparison. No logit is read. What bounds it is memory: the card writes sectors of 32 bytes,
and reads those that are written in part. Tokens beyond the bits (a padded vocabulary) are masked; bits beyond the row
are ignored.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .cuda_device import LANES, cuda, kernel
from .cuda_rows import find_mask

__all__ = ["MOST_WORDS", "apply_masks", "count_tiles"]

MOST_WORDS = 256
"""Most words, and threads, of a block."""
TURNS = 32 // LANES
"""Turns in which the lanes of a warp go through a word: one, but in the simulator."""
ONE, COUNT = np.uint64(1), np.uint64(LANES)


def count_tiles(width: int, threads: int) -> int:
    """Return the number of blocks of `threads` threads for a row of `width` tokens."""
    return -(-width // (32 * threads))


@kernel
def apply_masks(
    logits: Any, stride: Any, width: Any, bits: Any, words: Any, masks: Any, rows: Any, minus_infinity: Any
) -> None:
    """Write -inf to the masked tokens. Blocks: [B, count_tiles(width, threads)], of a multiple of LANES threads.

    logits: int32 or int16, flat. stride: elements from row to row. width: tokens of a row. bits: int32, flat
    [masks * words]. rows: as of `find_mask`. minus_infinity: one element.
    """
    shared = cuda.shared.array(MOST_WORDS, np.int32)
    thread, row = cuda.threadIdx.x, cuda.blockIdx.x
    first = cuda.blockIdx.y * cuda.blockDim.x  # the block's first word
    source = find_mask(rows, masks, row)
    if source < 0:
        return
    shared[thread] = bits[source * words + first + thread] if first + thread < words else 0
    cuda.syncthreads()
    # Unsigned, since numba would ask of each signed index whether it counts from the end; `while`, since the state of a
    # range is carried along.
    lane = np.uint64(thread & (LANES - 1))
    warp = np.uint64(thread) - lane
    token = np.uint64(32) * (np.uint64(first) + warp) + lane
    start, last = np.uint64(row) * np.uint64(stride), np.uint64(width)
    i = np.uint64(0)
    while i < COUNT:
        word = shared[warp + i]
        if word != -1:
            for turn in range(TURNS):
                bit = np.uint64(turn * LANES)
                if (np.uint64(word) >> (bit + lane)) & ONE == 0 and token + bit < last:
                    logits[start + token + bit] = minus_infinity
        token += np.uint64(32)
        i += ONE
