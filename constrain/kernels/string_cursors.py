"""String cursors: positions in a sorted block of strings, found by binary search (kernels).

The strings with the prefix read so far are a range of the sorted block: the range and the length of the prefix are the
state. So a thousand enum values or keys are one configuration, and no trie is built for them.
"""

from __future__ import annotations

from typing import Any

from .context_layout import CODE, CURSOR_HASH, CURSORS, FULL, HEAD, N_CURSORS
from .context_views import size, view
from .interned_names import mix_hash, probe_slot, request
from .jit.compilation import inlined, kernel
from .program_layout import STR_OFFSETS
from .record_layout import CURSOR_BLOCK, CURSOR_DEPTH, CURSOR_HIGH, CURSOR_LOW, CURSOR_SLOT, CURSOR_W


@kernel("int64(int64, int64, int64, int64, int64)")
def intern_cursor(c: Any, block: Any, low: Any, high: Any, depth: Any) -> Any:
    """Intern the cursor `depth` bytes into strings low .. high - 1 of `block`. Return its id, or -1."""
    head, cursors, table = view(c, HEAD), view(c, CURSORS), view(c, CURSOR_HASH)
    last = size(c, CURSOR_HASH) - 1
    h = mix_hash(mix_hash(mix_hash(block, low), high), depth) & last
    while True:
        k = probe_slot(c, CURSOR_HASH, h, 0, head[N_CURSORS], CURSORS, CURSOR_W, CURSOR_SLOT)
        if k < 0:
            break
        p = CURSOR_W * k
        is_equal = cursors[p + CURSOR_BLOCK] == block and cursors[p + CURSOR_LOW] == low
        if is_equal and cursors[p + CURSOR_HIGH] == high and cursors[p + CURSOR_DEPTH] == depth:
            return k
        h = (h + 1) & last
    k = head[N_CURSORS]
    if CURSOR_W * (k + 1) > size(c, CURSORS) or 2 * k > last:
        return request(c, FULL, CURSORS)
    cursors[CURSOR_W * k + CURSOR_BLOCK] = block
    cursors[CURSOR_W * k + CURSOR_LOW] = low
    cursors[CURSOR_W * k + CURSOR_HIGH] = high
    cursors[CURSOR_W * k + CURSOR_DEPTH] = depth
    cursors[CURSOR_W * k + CURSOR_SLOT] = h
    table[h] = k
    head[N_CURSORS] = k + 1
    return k


@inlined("int64(int64, int64, int64, int64, int64, int64)")
def find_bound(c: Any, block: Any, low: Any, high: Any, depth: Any, b: Any) -> Any:
    """Return the first string of low .. high - 1 whose byte at `depth` is at least b, or high. The end counts as -1."""
    code = view(c, CODE)
    offsets = block + STR_OFFSETS
    while low < high:
        middle = (low + high) >> 1
        at = code[offsets + middle] + depth
        if at < code[offsets + middle + 1] and code[at] >= b:
            high = middle
        else:
            low = middle + 1
    return low


@inlined("int64(int64, int64, int64)")
def read_code_point(c: Any, at: Any, end: Any) -> Any:
    """Decode the UTF-8 at `at` of CODE. Return code point * 8 + number of bytes; -1 at the end."""
    code = view(c, CODE)
    if at >= end:
        return -1
    b = code[at]
    if b < 0x80:
        return b * 8 + 1
    if b < 0xE0:
        return ((b & 31) << 6 | code[at + 1] & 63) * 8 + 2
    if b < 0xF0:
        return ((b & 15) << 12 | (code[at + 1] & 63) << 6 | code[at + 2] & 63) * 8 + 3
    return ((b & 7) << 18 | (code[at + 1] & 63) << 12 | (code[at + 2] & 63) << 6 | code[at + 3] & 63) * 8 + 4
