"""Steps of keys and constants by a byte: strings of a block, spelled literally or with any escapes (kernels).

In an object, only the keys that its state allows count; of constants (SET), all strings do. With escapes, the strings
of the block are decoded UTF-8, and `extra` of the configuration holds an incomplete escape: kind << KIND | digits
left << LEFT | value, with the kinds of a leaf's decoder. A digit is refused unless some allowed key continues with a
character that the digits can spell.
"""

from __future__ import annotations

from typing import Any

from .closure import emit_config, push_item
from .context_layout import BUFFER, CODE, CURSORS, OBJECTS, SETS
from .context_views import view
from .interned_names import decode_escape, hex_value, spell_utf8
from .jit.compilation import inlined, kernel
from .object_states import add_member, first_allowed_key
from .program_layout import ARG_OBJECT, OBJ_RANKS, OBJ_TARGETS, SET, STR_OFFSETS
from .record_layout import CURSOR_BLOCK, CURSOR_DEPTH, CURSOR_HIGH, CURSOR_LOW, CURSOR_W, O_NAMES, SET_NEXT, SET_W
from .string_cursors import find_bound, intern_cursor, read_code_point
from .table_layout import ESCAPE, HEX, HIGH, HIGH_ESCAPE, KIND, LEFT, LOW, PLAIN, VALUE


@inlined("int64(int64, int64, int64)")
def allow_byte(c: Any, s: Any, b: Any) -> Any:
    """Add byte b to the allowed bytes of set record s (a bit set in SET_NEXT while the set is interned). Return 0."""
    view(c, SETS)[s * SET_W + SET_NEXT + (b >> 5)] |= 1 << (b & 31)
    return 0


@kernel("int64(int64, int64, int64, int64, int64)")
def finish_key(c: Any, pc: Any, node: Any, reg: Any, rank: Any) -> Any:
    """Continue with the value after the declared key of rank `rank` is complete. Return 0 or -1."""
    code, objects = view(c, CODE), view(c, OBJECTS)
    block = code[pc + ARG_OBJECT]
    key = 0
    while code[code[block + OBJ_RANKS] + key] != rank:
        key += 1
    state = add_member(c, reg, key, objects[reg + O_NAMES])
    if state < 0:
        return -1
    return push_item(c, code[code[block + OBJ_TARGETS] + key], -1, node, state, 0)


@kernel("int64(int64, int64, int64, int64)")
def allow_cursor(c: Any, s: Any, q: Any, state: Any) -> Any:
    """Add the bytes that may follow at cursor q to those of set record s. Return 0.

    state: the object state whose allowed keys count; -1: all strings do.
    """
    code, cursors = view(c, CODE), view(c, CURSORS)
    p = CURSOR_W * q
    block, low = cursors[p + CURSOR_BLOCK], cursors[p + CURSOR_LOW] + 0
    high, depth = cursors[p + CURSOR_HIGH], cursors[p + CURSOR_DEPTH]
    offsets = block + STR_OFFSETS
    while low < high:
        at = code[offsets + low] + depth
        if at >= code[offsets + low + 1]:
            low += 1
            continue
        b = code[at]
        after = find_bound(c, block, low, high, depth, b + 1)
        if state < 0 or first_allowed_key(c, state, low, after) >= 0:
            allow_byte(c, s, b)
        low = after
    return 0


@kernel("int64(int64, int64, int64, int64, int64, int64)")
def step_cursor(c: Any, pc: Any, q: Any, node: Any, reg: Any, b: Any) -> Any:
    """Step a configuration in a block of literal strings by byte b. Return 0 or -1."""
    code, cursors = view(c, CODE), view(c, CURSORS)
    block, depth = cursors[CURSOR_W * q + CURSOR_BLOCK], cursors[CURSOR_W * q + CURSOR_DEPTH] + 1
    low = find_bound(c, block, cursors[CURSOR_W * q + CURSOR_LOW], cursors[CURSOR_W * q + CURSOR_HIGH], depth - 1, b)
    high = find_bound(c, block, low, cursors[CURSOR_W * q + CURSOR_HIGH], depth - 1, b + 1)
    if low >= high:
        return 0
    ends = code[block + STR_OFFSETS + low] + depth == code[block + STR_OFFSETS + low + 1]
    if code[pc] == SET:
        if ends:
            if push_item(c, pc + 2, -1, node, reg, 0) < 0:
                return -1
            low += 1
            if low >= high:
                return 0
    else:
        low = first_allowed_key(c, reg, low, high)
        if low < 0:
            return 0
        if code[block + STR_OFFSETS + low] + depth == code[block + STR_OFFSETS + low + 1]:
            return finish_key(c, pc, node, reg, low)
    after = intern_cursor(c, block, low, high, depth)
    return -1 if after < 0 else emit_config(c, pc, after, node, reg, 0)


@kernel("int64(int64, int64, int64, int64, int64, int64)")
def find_key_in_range(c: Any, q: Any, state: Any, least: Any, most: Any, low: Any) -> Any:
    """Return the first allowed key from rank `low` on at cursor q whose next code point is in least .. most, or -1."""
    code, cursors = view(c, CODE), view(c, CURSORS)
    p = CURSOR_W * q
    block, high, depth = cursors[p + CURSOR_BLOCK], cursors[p + CURSOR_HIGH], cursors[p + CURSOR_DEPTH]
    k = first_allowed_key(c, state, low, high)
    while k >= 0:
        x = read_code_point(c, code[block + STR_OFFSETS + k] + depth, code[block + STR_OFFSETS + k + 1])
        if x >= 0 and least <= x >> 3 <= most:
            return k
        k = first_allowed_key(c, state, k + 1, high)
    return -1


@kernel("int64(int64, int64, int64, int64)")
def can_spell_digits(c: Any, q: Any, state: Any, pending: Any) -> Any:
    """Return whether some allowed key continues with a character that the pending hexadecimal digits can spell."""
    cursors = view(c, CURSORS)
    low = cursors[CURSOR_W * q + CURSOR_LOW]
    kind, left, value = pending >> KIND, (pending >> LEFT) & 7, pending & VALUE
    least, most = value << 4 * left, ((value + 1) << 4 * left) - 1
    if kind == HEX:
        if find_key_in_range(c, q, state, least, min(most, 0xFFFF), low) >= 0:
            return 1
        # High surrogates spell the characters beyond U+FFFF, 1,024 each.
        least, most = max(least, 0xD800), min(most, 0xDBFF)
        if least > most:
            return 0
        least, most = 0x10000 + ((least - 0xD800) << 10), 0x10000 + ((most - 0xD800) << 10) + 0x3FF
        return 1 if find_key_in_range(c, q, state, least, most, low) >= 0 else 0
    # LOW: 10 bits of the high surrogate, then the digits so far of DC00 .. DFFF.
    bits, digits = value >> 12, value & 0xFFF
    least, most = digits << 4 * left, ((digits + 1) << 4 * left) - 1
    least, most = max(least, 0xDC00), min(most, 0xDFFF)
    if least > most:
        return 0
    base = 0x10000 + (bits << 10)
    return 1 if find_key_in_range(c, q, state, base + least - 0xDC00, base + most - 0xDC00, low) >= 0 else 0


@inlined("int64(int64, int64)")
def is_inside_character(c: Any, q: Any) -> Any:
    """Return whether cursor q is inside a UTF-8 sequence; its strings share the bytes before, so it is so in all."""
    code, cursors = view(c, CODE), view(c, CURSORS)
    offsets, low = cursors[CURSOR_W * q + CURSOR_BLOCK] + STR_OFFSETS, cursors[CURSOR_W * q + CURSOR_LOW]
    at = code[offsets + low] + cursors[CURSOR_W * q + CURSOR_DEPTH]
    return 1 if at < code[offsets + low + 1] and code[at] >> 6 == 2 else 0


@inlined("int64(int64, int64, int64)")
def keys_state(c: Any, pc: Any, reg: Any) -> Any:
    """Return the object state whose allowed keys count in a configuration, -1 if it is in constants."""
    return -1 if view(c, CODE)[pc] == SET else reg


@kernel("int64(int64, int64, int64, int64, int64, int64)")
def step_escaped_character(c: Any, pc: Any, q: Any, node: Any, reg: Any, x: Any) -> Any:
    """Step a configuration in keys or constants by character x, written as an escape. Return 0 or -1."""
    cursors, buffer = view(c, CURSORS), view(c, BUFFER)
    p = CURSOR_W * q
    block, low = cursors[p + CURSOR_BLOCK], cursors[p + CURSOR_LOW] + 0
    high, depth = cursors[p + CURSOR_HIGH] + 0, cursors[p + CURSOR_DEPTH] + 0
    n = spell_utf8(c, x, 0)
    for i in range(n):
        low = find_bound(c, block, low, high, depth, buffer[i])
        high = find_bound(c, block, low, high, depth, buffer[i] + 1)
        depth += 1
    if first_allowed_key(c, keys_state(c, pc, reg), low, high) < 0:
        return 0
    after = intern_cursor(c, block, low, high, depth)
    return -1 if after < 0 else emit_config(c, pc, after, node, reg, 0)


@kernel("int64(int64, int64, int64)")
def find_ended_key(c: Any, q: Any, state: Any) -> Any:
    """Return the rank of the allowed key that ends at cursor q, or -1."""
    code, cursors = view(c, CODE), view(c, CURSORS)
    p = CURSOR_W * q
    block, low = cursors[p + CURSOR_BLOCK], cursors[p + CURSOR_LOW]
    first = block + STR_OFFSETS + low
    if low < cursors[p + CURSOR_HIGH] and code[first] + cursors[p + CURSOR_DEPTH] == code[first + 1]:
        return first_allowed_key(c, state, low, low + 1)
    return -1


@kernel("int64(int64, int64, int64, int64, int64, int64, int64)")
def step_escaped(c: Any, pc: Any, q: Any, node: Any, reg: Any, ext: Any, b: Any) -> Any:
    """Step a configuration in keys or constants that may be spelled with escapes by byte b. Return 0 or -1."""
    cursors, state = view(c, CURSORS), keys_state(c, pc, reg)
    kind, left, value = ext >> KIND, (ext >> LEFT) & 7, ext & VALUE
    if kind == PLAIN:
        if b == 34:
            rank = find_ended_key(c, q, state)
            if rank < 0:
                return 0
            return push_item(c, pc + 2, -1, node, reg, 0) if state < 0 else finish_key(c, pc, node, reg, rank)
        if b == 92:
            if (
                is_inside_character(c, q)
                or find_key_in_range(c, q, state, 0, 0x10FFFF, cursors[CURSOR_W * q + CURSOR_LOW]) < 0
            ):
                return 0
            return emit_config(c, pc, q, node, reg, ESCAPE << KIND)
        if b < 32:
            return 0
        block, depth = cursors[CURSOR_W * q + CURSOR_BLOCK], cursors[CURSOR_W * q + CURSOR_DEPTH]
        low = find_bound(c, block, cursors[CURSOR_W * q + CURSOR_LOW], cursors[CURSOR_W * q + CURSOR_HIGH], depth, b)
        high = find_bound(c, block, low, cursors[CURSOR_W * q + CURSOR_HIGH], depth, b + 1)
        if first_allowed_key(c, state, low, high) < 0:
            return 0
        after = intern_cursor(c, block, low, high, depth + 1)
        return -1 if after < 0 else emit_config(c, pc, after, node, reg, 0)
    if kind == ESCAPE:
        if b == 117:
            pending = HEX << KIND | 4 << LEFT
            return emit_config(c, pc, q, node, reg, pending) if can_spell_digits(c, q, state, pending) else 0
        x = decode_escape(b)
        return 0 if x < 0 else step_escaped_character(c, pc, q, node, reg, x)
    if kind == HIGH or kind == HIGH_ESCAPE:
        if b != (92 if kind == HIGH else 117):
            return 0
        pending = HIGH_ESCAPE << KIND | value if kind == HIGH else LOW << KIND | 4 << LEFT | value << 12
        return emit_config(c, pc, q, node, reg, pending)
    digit = hex_value(b)
    if digit < 0:
        return 0
    if kind == HEX:
        value = value << 4 | digit
    else:
        value = (value & ~0xFFF) | ((value & 0xFFF) << 4 | digit) & 0xFFF
        if left == 1:
            low_half = 0xD000 | (value & 0xFFF)
            x = 0x10000 + ((value >> 12 & 0x3FF) << 10) + (low_half - 0xDC00)
            return step_escaped_character(c, pc, q, node, reg, x) if low_half >= 0xDC00 else 0
    if left > 1:
        pending = kind << KIND | (left - 1) << LEFT | value
        return emit_config(c, pc, q, node, reg, pending) if can_spell_digits(c, q, state, pending) else 0
    if 0xD800 <= value < 0xDC00:
        pending = HIGH << KIND | (value - 0xD800)
        base = 0x10000 + ((value - 0xD800) << 10)
        some = find_key_in_range(c, q, state, base, base + 0x3FF, cursors[CURSOR_W * q + CURSOR_LOW])
        return emit_config(c, pc, q, node, reg, pending) if some >= 0 else 0
    return step_escaped_character(c, pc, q, node, reg, value) if value < 0xD800 or value > 0xDFFF else 0


@kernel("int64(int64, int64, int64, int64)")
def allow_unescaped(c: Any, s: Any, q: Any, state: Any) -> Any:
    """Do the same between two characters of a string spelled with any escapes: its end and escapes count, too."""
    code, cursors = view(c, CODE), view(c, CURSORS)
    p = CURSOR_W * q
    block, low = cursors[p + CURSOR_BLOCK], cursors[p + CURSOR_LOW] + 0
    high, depth = cursors[p + CURSOR_HIGH], cursors[p + CURSOR_DEPTH]
    offsets, may_escape = block + STR_OFFSETS, not is_inside_character(c, q)
    while low < high:
        at = code[offsets + low] + depth
        if at >= code[offsets + low + 1]:
            if first_allowed_key(c, state, low, low + 1) >= 0:
                allow_byte(c, s, 34)
            low += 1
            continue
        b = code[at]
        after = find_bound(c, block, low, high, depth, b + 1)
        if first_allowed_key(c, state, low, after) >= 0:
            if may_escape:
                allow_byte(c, s, 92)
            if b >= 32 and b != 34 and b != 92:
                allow_byte(c, s, b)
        low = after
    return 0


@kernel("int64(int64, int64, int64, int64, int64)")
def allow_escaped(c: Any, s: Any, q: Any, state: Any, ext: Any) -> Any:
    """Add the bytes that may follow in a string spelled with any escapes to those of set record s. Return 0.

    state: as in `allow_cursor`.

    An upper bound: a step decides.
    """
    kind = ext >> KIND
    if kind == PLAIN:
        allow_unescaped(c, s, q, state)
    elif kind == ESCAPE:
        cursors = view(c, CURSORS)
        p = CURSOR_W * q
        block, depth = cursors[p + CURSOR_BLOCK], cursors[p + CURSOR_DEPTH]
        allow_byte(c, s, 117)
        for b in range(34, 117):
            x = decode_escape(b)
            if x < 0:
                continue
            low = find_bound(c, block, cursors[p + CURSOR_LOW], cursors[p + CURSOR_HIGH], depth, x)
            if first_allowed_key(c, state, low, find_bound(c, block, low, cursors[p + CURSOR_HIGH], depth, x + 1)) >= 0:
                allow_byte(c, s, b)
    elif kind == HIGH:
        allow_byte(c, s, 92)
    elif kind == HIGH_ESCAPE:
        allow_byte(c, s, 117)
    else:
        for b in range(48, 58):
            allow_byte(c, s, b)
        for b in range(65, 71):
            allow_byte(c, s, b)
            allow_byte(c, s, b + 32)
    return 0
