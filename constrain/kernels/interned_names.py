"""Byte strings and lists as hash-consed cells: equal ones have equal ids (kernels).

An undeclared key is the chain of the bytes that spell it and, once it is complete, the chain of the bytes that these
decode to (RFC 8259 section 7). The undeclared keys of an object are a list of decoded chains. `request`,
`mix_hash` and `probe_slot`, which every kernel uses, are here too, because this file imports no other kernels.
"""

from __future__ import annotations

from typing import Any

from .context_layout import ARGUMENT, BUFFER, FULL, HEAD, N_NAMES, NAME_HASH, NAMES, STATUS
from .context_views import size, view
from .jit.compilation import inlined, kernel
from .record_layout import DECODED, NAME_PARENT, NAME_SLOT, NAME_VALUE, NAME_W, UNKNOWN_NAMES


@inlined("int64(int64, int64, int64)")
def request(c: Any, status: Any, argument: Any) -> Any:
    """Write the request of a kernel to HEAD[STATUS] and HEAD[ARGUMENT]. Return -1."""
    head = view(c, HEAD)
    head[STATUS] = status
    head[ARGUMENT] = argument
    return -1


@inlined("int64(int64, int64)")
def mix_hash(h: Any, x: Any) -> Any:
    """Return hash h extended by number x: multiplicative, the high bits folded into the low ones that tables use."""
    h = (h ^ x) * 0x9E3779B97F4A7C1
    return h ^ ((h >> 29) & 0x7FFFFFFFF)


@inlined("int64(int64, int64, int64, int64, int64, int64)")
def mix_config(h: Any, pc: Any, q: Any, node: Any, reg: Any, ext: Any) -> Any:
    """Return hash h extended by a configuration."""
    return mix_hash(mix_hash(mix_hash(h, pc << 32 ^ q), node << 32 ^ reg), ext)


@inlined("int64(int64, int64, int64, int64, int64, int64, int64, int64)")
def probe_slot(c: Any, table: Any, h: Any, least: Any, count: Any, records: Any, width: Any, field: Any) -> Any:
    """Return the record in slot h of a hash table, or -1 if the slot is free: a probe of open addressing.

    A record stores its slot, so an entry is valid only if its record points back (Briggs and Torczon, 1993): records
    are discarded by lowering their count, and the table need not be cleared.

    table, records: slots of the context. least, count: valid records are least .. count - 1. width: int32s of a record,
    1 where records are addressed by offset. field: where a record holds its slot.
    """
    k = view(c, table)[h]
    if k < least or k >= count or view(c, records)[width * k + field] != h:
        return -1
    return k


@inlined("int64(int64)")
def hex_value(b: Any) -> Any:
    """Return the value of a hexadecimal digit, -1 for other bytes."""
    if 48 <= b <= 57:
        return b - 48
    if 97 <= b <= 102:
        return b - 87
    if 65 <= b <= 70:
        return b - 55
    return -1


@inlined("int64(int64)")
def decode_escape(b: Any) -> Any:
    """Return the character of the escape backslash, b (RFC 8259 section 7); -1 for other bytes and u."""
    if b == 34 or b == 92 or b == 47:
        return b
    return 8 if b == 98 else 12 if b == 102 else 10 if b == 110 else 13 if b == 114 else 9 if b == 116 else -1


@kernel("int64(int64, int64, int64)")
def spell_utf8(c: Any, x: Any, at: Any) -> Any:
    """Write code point x in UTF-8 to BUFFER from `at` on. Return the offset after it."""
    buffer = view(c, BUFFER)
    if x < 0x80:
        buffer[at] = x
        return at + 1
    if x < 0x800:
        buffer[at] = 0xC0 | x >> 6
        buffer[at + 1] = 0x80 | x & 63
        return at + 2
    if x < 0x10000:
        buffer[at] = 0xE0 | x >> 12
        buffer[at + 1] = 0x80 | (x >> 6) & 63
        buffer[at + 2] = 0x80 | x & 63
        return at + 3
    buffer[at] = 0xF0 | x >> 18
    buffer[at + 1] = 0x80 | (x >> 12) & 63
    buffer[at + 2] = 0x80 | (x >> 6) & 63
    buffer[at + 3] = 0x80 | x & 63
    return at + 4


@kernel("int64(int64, int64, int64)")
def extend_chain(c: Any, parent: Any, value: Any) -> Any:
    """Append `value` to chain `parent`. Return the id of the chain, or -1."""
    head, names, table = view(c, HEAD), view(c, NAMES), view(c, NAME_HASH)
    last = size(c, NAME_HASH) - 1
    h = mix_hash(mix_hash(0, parent), value) & last
    while True:
        k = probe_slot(c, NAME_HASH, h, 0, head[N_NAMES], NAMES, NAME_W, NAME_SLOT)
        if k < 0:
            break
        if names[NAME_W * k + NAME_PARENT] == parent and names[NAME_W * k + NAME_VALUE] == value:
            return k
        h = (h + 1) & last
    k = head[N_NAMES]
    if NAME_W * (k + 1) > size(c, NAMES) or 2 * k > last:
        return request(c, FULL, NAMES)
    names[NAME_W * k + NAME_PARENT] = parent
    names[NAME_W * k + NAME_VALUE] = value
    names[NAME_W * k + NAME_SLOT] = h
    table[h] = k
    head[N_NAMES] = k + 1
    return k


@kernel("int64(int64, int64, int64)")
def write_name_to_buffer(c: Any, name: Any, n: Any) -> Any:
    """Write the bytes of a decoded chain to BUFFER from n on. Return their number, or -1."""
    names, buffer = view(c, NAMES), view(c, BUFFER)
    m, k = 0, name
    while k != DECODED:
        m += 1
        k = names[NAME_W * k + NAME_PARENT] + 0
    if n + m > size(c, BUFFER):
        return request(c, FULL, BUFFER)
    k = name
    for i in range(m):
        buffer[n + m - 1 - i] = names[NAME_W * k + NAME_VALUE]
        k = names[NAME_W * k + NAME_PARENT] + 0
    return m


@kernel("int64(int64, int64, int64, int64)")
def decode_spelling(c: Any, read: Any, end: Any, written: Any) -> Any:
    """Decode the spelling in BUFFER[read .. end) and write it to BUFFER from `written` on, at most `read`.

    It is never longer. An incomplete escape at its end is left out. Return the offset after the result.
    """
    buffer = view(c, BUFFER)
    while read < end:
        b = buffer[read]
        if b != 92:
            buffer[written] = b
            read += 1
            written += 1
            continue
        if read + 1 >= end:
            break
        b = buffer[read + 1]
        if b != 117:
            buffer[written] = decode_escape(b)
            read += 2
            written += 1
            continue
        if read + 6 > end:
            break
        x = 0
        for i in range(4):
            x = 16 * x + hex_value(buffer[read + 2 + i])
        read += 6
        if 0xD800 <= x < 0xDC00:
            if read + 6 > end:
                break
            y = 0
            for i in range(4):
                y = 16 * y + hex_value(buffer[read + 2 + i])
            read += 6
            x = 0x10000 + ((x - 0xD800) << 10) + (y - 0xDC00)
        written = spell_utf8(c, x, written)
    return written


@kernel("int64(int64, int64)")
def decode_name(c: Any, spelled: Any) -> Any:
    """Decode a spelled chain into BUFFER, less an incomplete escape at its end. Return the number of bytes, or -1."""
    names, buffer = view(c, NAMES), view(c, BUFFER)
    n = 0
    k = spelled
    while k > UNKNOWN_NAMES:
        n += 1
        k = names[NAME_W * k + NAME_PARENT]
    if 2 * n + 8 > size(c, BUFFER):
        return request(c, FULL, BUFFER)
    k = spelled
    for i in range(n):
        buffer[2 * n - 1 - i] = names[NAME_W * k + NAME_VALUE]
        k = names[NAME_W * k + NAME_PARENT]
    return decode_spelling(c, n, 2 * n, 0)
