"""Mask deltas: a mask is stored as the few tokens in which it differs from a prepared row (kernels).

Most masks are nearly a row (inside a string: what stays inside it) or nearly empty (a few tokens along a key). A delta
is (row or NO_ROW, n, the n tokens whose bits are flipped); a mask unlike both is stored in full: (WHOLE, 0, its words).
Restoring a mask copies 16 KB and flips some bits, however long the first walk took.
"""

from __future__ import annotations

from typing import Any

from .context_layout import ARGUMENT, FULL, HEAD, MASKS, N_MASKS, ROWS, STATUS, T_WORDS, TABLE
from .context_views import at, lowest_bit, size, view
from .jit.compilation import kernel
from .record_layout import MOST_MASKS

NO_ROW = -1
FULL_MASK = -2
NOT_STORED = -2
BLOCK_WORDS = 16
"""Words that are compared together."""


@kernel("int64(int64, int64, int64)")
def apply_delta(c: Any, delta: Any, out: Any) -> Any:
    """Write the mask of a mask delta to the int32 words at address `out`. Return 0."""
    masks, mask, words = view(c, MASKS), at(out), view(c, TABLE)[T_WORDS] + 0
    base, n = masks[delta] + 0, masks[delta + 1] + 0
    if base == NO_ROW:
        for w in range(words):
            mask[w] = 0
    else:
        first = delta + 2 if base == FULL_MASK else base * words
        source = masks if base == FULL_MASK else view(c, ROWS)
        for w in range(words):
            mask[w] = source[first + w]
    for k in range(delta + 2, delta + 2 + n):
        mask[masks[k] >> 5] ^= 1 << (masks[k] & 31)
    return 0


@kernel("int64(int64, int64, int64, int64)")
def store_delta(c: Any, base: Any, out: Any, parsed: Any) -> Any:
    """Store the mask at address `out` as a delta to row `base` (or NO_ROW).

    parsed: whether it is the mask of a parsed text: those take longest and recur, so MASKS grows for them.

    Return its offset, -1 to request more space, or NOT_STORED.
    """
    head, masks, mask, rows = view(c, HEAD), view(c, MASKS), at(out), view(c, ROWS)
    words, delta = view(c, TABLE)[T_WORDS] + 0, head[N_MASKS] + 0
    if delta + 2 + words > size(c, MASKS):
        if parsed and size(c, MASKS) < MOST_MASKS * words:
            head[STATUS], head[ARGUMENT] = FULL, MASKS
            return -1
        return NOT_STORED
    n, first, w = delta + 2, max(base, 0) * words, 0
    while w < words:
        stop, changed = min(w + BLOCK_WORDS, words), 0
        if base == NO_ROW:
            for i in range(w, stop):
                changed |= mask[i]
        else:
            for i in range(w, stop):
                changed |= mask[i] ^ rows[first + i]
        if changed:
            if n + 32 * BLOCK_WORDS > delta + 2 + words:  # the delta would be no shorter than the mask
                for i in range(words):
                    masks[delta + 2 + i] = mask[i]
                masks[delta], masks[delta + 1] = FULL_MASK, 0
                head[N_MASKS] = delta + 2 + words
                return delta
            for i in range(w, stop):
                bits = (mask[i] if base == NO_ROW else mask[i] ^ rows[first + i]) & 0xFFFFFFFF
                while bits:
                    masks[n] = 32 * i + lowest_bit(bits)
                    bits &= bits - 1
                    n += 1
        w = stop
    masks[delta], masks[delta + 1] = base, n - delta - 2
    head[N_MASKS] = n
    return delta
