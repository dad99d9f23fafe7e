"""Mask deltas: a mask is stored as the few words in which it differs from a prepared row (kernels).

Most masks are nearly a row (inside a string: what stays inside it) or nearly empty (a few tokens along a key). A delta
is (row or NO_ROW, n, next, n pairs of a word of the mask and its bits that are flipped); a mask unlike both is stored
in full: (FULL_MASK, 0, next, its words). Restoring a mask copies 16 KB and flips some bits, however long the first walk
took. Sets are many and their masks few, so equal ones are stored once: `next` chains the records of a bucket of
MASK_HASH.
"""

from __future__ import annotations

from typing import Any

from .context_layout import ARGUMENT, FULL, HEAD, MASK_HASH, MASKS, N_MASKS, ROWS, STATUS, T_WORDS, TABLE
from .context_views import (
    COMPARED,
    address,
    at,
    copy_memory,
    find_changed_words,
    find_filled_words,
    lowest_bit,
    size,
    view,
)
from .interned_names import mix_hash
from .jit.compilation import kernel
from .record_layout import MASK_BASE, MASK_COUNT, MASK_HEAD, MASK_NEXT, MOST_MASKS

NO_ROW = -1
FULL_MASK = -2
NOT_STORED = -2
PAIR_WORDS = 2
"""Words of a delta per word of the mask."""


@kernel("int64(int64, int64, int64)")
def apply_delta(c: Any, delta: Any, out: Any) -> Any:
    """Write the mask of a mask delta to the int32 words at address `out`. Return 0."""
    masks, mask, words = view(c, MASKS), at(out), view(c, TABLE)[T_WORDS] + 0
    base, n = masks[delta + MASK_BASE] + 0, masks[delta + MASK_COUNT] + 0
    if base == NO_ROW:
        for w in range(words):
            mask[w] = 0
    else:
        source = (
            address(c, MASKS) + 4 * (delta + MASK_HEAD) if base == FULL_MASK else address(c, ROWS) + 4 * base * words
        )
        copy_memory(out, source, words)
    first = delta + MASK_HEAD
    for k in range(n):
        mask[masks[first + PAIR_WORDS * k]] ^= masks[first + PAIR_WORDS * k + 1]
    return 0


@kernel("int64(int64, int64, int64)")
def intern_delta(c: Any, base: Any, n: Any) -> Any:
    """Complete the record whose n int32s after the header were written after the last mask. Return its offset, or that
    of an equal record.
    """
    head, masks, buckets = view(c, HEAD), view(c, MASKS), view(c, MASK_HASH)
    delta, first = head[N_MASKS] + 0, head[N_MASKS] + MASK_HEAD
    h = mix_hash(base, n)
    if base == FULL_MASK:
        total = 0
        for k in range(first, first + n):
            total += masks[k]
        h = mix_hash(h, total)
    elif n > 0:
        h = mix_hash(mix_hash(mix_hash(h, masks[first]), masks[first + n // 2]), masks[first + n - 1])
    h &= size(c, MASK_HASH) - 1
    count = 0 if base == FULL_MASK else n // PAIR_WORDS
    known = buckets[h] + 0
    while known > 0:
        is_equal = masks[known + MASK_BASE] == base and masks[known + MASK_COUNT] == count
        k = 0
        while is_equal and k < n:
            is_equal = masks[known + MASK_HEAD + k] == masks[first + k]
            k += 1
        if is_equal:
            return known
        known = masks[known + MASK_NEXT] + 0
    masks[delta + MASK_BASE], masks[delta + MASK_COUNT], masks[delta + MASK_NEXT] = base, count, buckets[h]
    buckets[h] = delta
    head[N_MASKS] = first + n
    return delta


@kernel("int64(int64, int64, int64, int64)")
def store_delta(c: Any, base: Any, out: Any, parsed: Any) -> Any:
    """Store the mask at address `out` as a delta to row `base` (or NO_ROW).

    parsed: whether it is the mask of a parsed text: those take longest and recur, so MASKS grows for them.

    Return its offset, -1 to request more space, or NOT_STORED.
    """
    head, masks, mask = view(c, HEAD), view(c, MASKS), at(out)
    words, start = view(c, TABLE)[T_WORDS] + 0, head[N_MASKS] + MASK_HEAD
    if start + words > size(c, MASKS):
        if parsed and size(c, MASKS) < MOST_MASKS * words:
            head[STATUS], head[ARGUMENT] = FULL, MASKS
            return -1
        return NOT_STORED
    row = address(c, ROWS) + 4 * words * max(base, 0)
    bits, n, w = at(row), start, 0
    while w < words:
        if w + COMPARED > words:
            changed = 0
            for i in range(words - w):
                changed |= 1 << i if mask[w + i] != (0 if base == NO_ROW else bits[w + i]) else 0
        elif base == NO_ROW:
            changed = find_filled_words(at(out + 4 * w))
        else:
            changed = find_changed_words(at(out + 4 * w), at(row + 4 * w))
        if changed and n + PAIR_WORDS * COMPARED > start + words:  # the delta would be no shorter than the mask
            copy_memory(address(c, MASKS) + 4 * start, out, words)
            return intern_delta(c, FULL_MASK, words)
        while changed:
            i = w + lowest_bit(changed)
            masks[n], masks[n + 1] = i, mask[i] if base == NO_ROW else mask[i] ^ bits[i]
            n += PAIR_WORDS
            changed &= changed - 1
        w += COMPARED
    return intern_delta(c, base, n - start)
