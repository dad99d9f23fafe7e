"""The code of an object with its blocks, written at once (kernels; see `object_request_layout` and `program_layout`).

This is what `program.object_code.append_object` writes for the usual case: keys without dependencies, no class of names
of which a member is required. It has the same words as the general case there, in the same order.
"""

from __future__ import annotations

from typing import Any

from numba import types

from .automata_records import READ, READ_BYTES, WRITE
from .context_views import at
from .jit.compilation import entry, inlined
from .object_request_layout import (
    CLASS_FIELDS,
    IS_BLOCK,
    IS_QUOTED,
    LAYOUT_PARTS,
    LEAF_WORDS,
    R_BASE,
    R_BEFORE,
    R_BEHIND,
    R_CLASSES,
    R_COUNTED,
    R_ESCAPES,
    R_EXCLUDED,
    R_HIGH,
    R_LEAVES,
    R_LOW,
    R_NAMES,
    R_ORDER,
    R_W,
    SORTING_PARTS,
    THE_KEYS,
    THE_NAMES,
)
from .program_layout import (
    CALL,
    CLOSE,
    END,
    INIT,
    JUMP,
    KEYS,
    LEAF,
    MORE,
    OBJ_COUNT,
    OBJ_COUNTED,
    OBJ_EXCLUDED,
    OBJ_HIGH,
    OBJ_KEYS,
    OBJ_LOW,
    OBJ_MARKS,
    OBJ_NEEDS,
    OBJ_ORDER,
    OBJ_OTHERS,
    OBJ_RANKS,
    OBJ_REQUIRED,
    OBJ_TARGETS,
    OBJ_W,
    OBJ_WORDS,
    OTHER,
    SET,
    SPLIT,
    STR_COUNT,
    STR_ESCAPES,
    STR_OFFSETS,
)

QUOTE = 34
OTHER_W, MEMBER_W = 6, 4
"""Words of the instruction OTHER, and of the code of a member besides its colon: a call and a jump."""


@inlined("int64(uint8[:], pointer, int64, int64, int64)")
def is_before(text: Any, starts: Any, a: Any, b: Any, end: Any) -> Any:
    """Return whether name a comes before name b, where byte `end` follows each of them (-1: nothing)."""
    i, j = starts[a] + 0, starts[b] + 0
    past_a, past_b = starts[a + 1] - 1, starts[b + 1] - 1
    while i < past_a and j < past_b:
        if text[i] != text[j]:
            return text[i] < text[j]
        i += 1
        j += 1
    x = types.int64(text[i]) if i < past_a else end
    y = types.int64(text[j]) if j < past_b else end
    return x < y


@inlined("int64(uint8[:], pointer, pointer, pointer, int64, int64)")
def sort_names(text: Any, starts: Any, order: Any, spare: Any, n: Any, end: Any) -> Any:
    """Sort the names listed in `order` by their bytes, merging runs from the bottom up. Return 0."""
    width = 1
    while width < n:
        for low in range(0, n, 2 * width):
            middle, high = min(low + width, n), min(low + 2 * width, n)
            a, b = low, middle
            for k in range(low, high):
                if b >= high or (a < middle and not is_before(text, starts, order[b] + 0, order[a] + 0, end)):
                    spare[k] = order[a]
                    a += 1
                else:
                    spare[k] = order[b]
                    b += 1
        for k in range(n):
            order[k] = spare[k]
        width *= 2
    return 0


@inlined("int64(uint8[:], pointer, pointer, int64, pointer, int64, int64, int64)")
def write_strings(text: Any, starts: Any, order: Any, n: Any, out: Any, p: Any, base: Any, closes: Any) -> Any:
    """Write a string block of n names in this order at word p, each with a quote if `closes`. Return the word after."""
    out[p + STR_COUNT], out[p + STR_ESCAPES] = n, 0 if closes else 1
    q = p + STR_OFFSETS + n + 1
    for k in range(n):
        out[p + STR_OFFSETS + k] = base + q
        for i in range(starts[order[k]], starts[order[k] + 1] - 1):
            out[q] = text[i]
            q += 1
        if closes:
            out[q] = QUOTE
            q += 1
    out[p + STR_OFFSETS + n] = base + q
    return q


@inlined("int64(pointer, int64, pointer, int64, int64)")
def copy_words(source: Any, first: Any, out: Any, p: Any, length: Any) -> Any:
    """Copy words, and return the word after."""
    for i in range(length):
        out[p + i] = source[first + i]
    return p + length


@inlined("int64(pointer, int64, int64, int64)")
def write_pair(out: Any, p: Any, first: Any, second: Any) -> Any:
    """Write two words, and return the word after."""
    out[p], out[p + 1] = first, second
    return p + 2


@entry([types.int64(READ, READ_BYTES, WRITE)], releases_gil=False)
def write_object(request: Any, text: Any, output: Any) -> Any:
    """Write the code of an object to `output`. Return its length.

    text: which keys must be present, and their names. The end of the output is scratch (SORTING_PARTS); its last word
    becomes the offset of the entry address.
    """
    head, out = at(request.ctypes.data), at(output.ctypes.data)
    base, n, m = head[R_BASE] + 0, head[R_NAMES] + 0, head[R_CLASSES] + 0
    n_leaves, closes = head[R_LEAVES] + 0, head[R_ESCAPES] == 0
    classes = R_W
    values = classes + CLASS_FIELDS * m
    leaves = values + n + m
    sizes = leaves + n_leaves
    n_opened, n_close, n_comma = head[sizes] + 0, head[sizes + 1] + 0, head[sizes + 2] + 0
    n_colon, n_empty = head[sizes + 3] + 0, head[sizes + 4] + 0
    opened = sizes + LAYOUT_PARTS
    close = opened + n_opened
    comma = close + n_close
    colon = comma + n_comma
    empty = colon + n_colon

    part = 4 * (n + m + 1)
    scratch = output.ctypes.data + 4 * (output.size - 1) - SORTING_PARTS * part
    starts, order, spare, rank = at(scratch), at(scratch + part), at(scratch + 2 * part), at(scratch + 3 * part)
    byte = n
    for k in range(n):
        starts[k], order[k] = byte, k
        while text[byte] != QUOTE:
            byte += 1
        byte += 1
    starts[n] = byte

    # The blocks.
    sort_names(text, starts, order, spare, n, QUOTE if closes else -1)
    for k in range(n):
        rank[order[k]] = k
    p = write_strings(text, starts, order, n, out, 0, base, closes)
    excluded = 0
    if head[R_EXCLUDED] != THE_KEYS:
        excluded = p
        if head[R_EXCLUDED] == THE_NAMES:  # Without the quote: a name comes before those that begin with it.
            sort_names(text, starts, order, spare, n, -1)
            p = write_strings(text, starts, order, n, out, p, base, False)
        else:
            p = write_strings(text, starts, order, 0, out, p, base, False)
    bits, width = p, max((n + 31) // 32, 1)
    targets = bits + width
    ranks = targets + n
    block = base + ranks + n
    for k in range(width):
        out[bits + k] = 0
    for k in range(n):
        if text[k] != 0:
            out[bits + (k >> 5)] |= 1 << (k & 31)
        out[ranks + k] = rank[k]
    p = ranks + n
    out[p + OBJ_COUNT], out[p + OBJ_ORDER] = n, head[R_ORDER]
    out[p + OBJ_LOW], out[p + OBJ_HIGH], out[p + OBJ_COUNTED] = head[R_LOW], head[R_HIGH], head[R_COUNTED]
    out[p + OBJ_OTHERS], out[p + OBJ_KEYS], out[p + OBJ_WORDS] = m, base, width
    out[p + OBJ_REQUIRED], out[p + OBJ_NEEDS] = base + bits, 0
    out[p + OBJ_TARGETS], out[p + OBJ_RANKS] = base + targets, base + ranks
    out[p + OBJ_EXCLUDED], out[p + OBJ_MARKS] = base + excluded, 0
    p += OBJ_W

    # The opening bracket, and either nothing or the first key.
    entry_offset = p
    has_members = base + p + 11 + n_empty
    key = has_members + 2 + n_opened
    first_class = key + 6 + m
    members = first_class + OTHER_W * m
    stride = n_colon + MEMBER_W
    after = members + stride * (n + m)
    is_last = after + 8 + n_comma
    p = write_pair(out, p, INIT, block)
    out[p] = head[R_BEFORE]
    p = write_pair(out, p + 1, SPLIT, 2)
    p = write_pair(out, p, base + p + 2, has_members)
    p = write_pair(out, p, CLOSE, block)
    p = copy_words(head, empty, out, p, n_empty)
    p = write_pair(out, p, head[R_BEHIND] + 0, END)
    p = write_pair(out, p, MORE, block)
    p = copy_words(head, opened, out, p, n_opened)
    out[p] = QUOTE
    p = write_pair(out, p + 1, SPLIT, 1 + m)
    out[p] = key + 4 + m
    p += 1
    for k in range(m):
        out[p + k] = first_class + OTHER_W * k
    p = write_pair(out, p + m, KEYS, block)
    for k in range(m):
        record = classes + CLASS_FIELDS * k
        p = write_pair(out, p, OTHER, block)
        p = write_pair(out, p, head[record] + 0, members + stride * (n + k))
        p = write_pair(out, p, head[record + 1] + 0, head[record + 2] + 0)

    # The members, what follows them, and the leaves.
    place = after + 12 + n_comma + n_close
    for k in range(n_leaves):
        spare[k] = place
        place += LEAF_WORDS - 1 + (head[leaves + k] & IS_QUOTED) - (head[leaves + k] & IS_BLOCK)  # two words less
    for k in range(n + m):
        if k < n:
            out[targets + k] = base + p
        p = copy_words(head, colon, out, p, n_colon)
        value = head[values + k] + 0
        if value >= 0:
            p = write_pair(out, p, CALL, value)
        else:
            p = write_pair(out, p, JUMP, spare[-1 - value] + 0)
        p = write_pair(out, p, JUMP, after)
    p = write_pair(out, p, SPLIT, 2)
    p = write_pair(out, p, after + 4, is_last)
    p = write_pair(out, p, MORE, block)
    p = copy_words(head, comma, out, p, n_comma)
    p = write_pair(out, p, JUMP, key)
    p = write_pair(out, p, CLOSE, block)
    p = copy_words(head, close, out, p, n_close)
    p = write_pair(out, p, head[R_BEHIND] + 0, END)
    for k in range(n_leaves):
        if head[leaves + k] & IS_QUOTED:
            out[p] = QUOTE
            p += 1
        if head[leaves + k] & IS_BLOCK:
            p = write_pair(out, p, SET, head[leaves + k] >> 2)
        else:
            p = write_pair(out, p, LEAF, head[leaves + k] >> 2)
            p = write_pair(out, p, 0, -1)
        p = write_pair(out, p, JUMP, after)
    out[output.size - 1] = entry_offset
    return p
