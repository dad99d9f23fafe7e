"""The parts of a JSON text: strings, values, and how deep it is (kernels)."""

from __future__ import annotations

from typing import Any

from numba import types

from .automata_records import READ_BYTES
from .context_views import int64s_at
from .jit.compilation import entry, inlined

QUOTE, BACKSLASH, COMMA, OPEN_LIST, CLOSE_LIST, OPEN_OBJECT, CLOSE_OBJECT = 34, 92, 44, 91, 93, 123, 125
EACH, HIGHEST = 0x0101010101010101, -0x7F7F7F7F7F7F7F80
"""1 in each of eight bytes, and the highest bit of each."""


@inlined("int64(uint8[:], int64)")
def skip_space(text: Any, p: Any) -> Any:
    """Return the position of the next character that is not white space."""
    while p < text.size and (text[p] == 32 or 9 <= text[p] <= 13):
        p += 1
    return p


@inlined("boolean(int64)")
def has_string_mark(octets: Any) -> Any:
    """Return whether one of eight bytes is a quote or a backslash.

    A byte is 0 if subtracting 1 borrows from above it, and its highest bit was not set (Warren, Hacker's Delight, 6-1).
    """
    quotes, backslashes = octets ^ (QUOTE * EACH), octets ^ (BACKSLASH * EACH)
    return ((quotes - EACH) & ~quotes | (backslashes - EACH) & ~backslashes) & HIGHEST != 0


@inlined("int64(uint8[:], int64)")
def find_quote(text: Any, p: Any) -> Any:
    """Return the position of the quote that closes a string whose content begins at p."""
    words, is_aligned = int64s_at(text.ctypes.data), text.ctypes.data & 7 == 0
    while p < text.size and text[p] != QUOTE:
        p += 2 if text[p] == BACKSLASH else 1
        while is_aligned and p & 7 == 0 and p + 8 <= text.size and not has_string_mark(words[p >> 3]):
            p += 8
    return p


@inlined("int64(uint8[:], int64)")
def skip_value(text: Any, p: Any) -> Any:
    """Return the position after the value at p."""
    level = 0
    while p < text.size:
        c = text[p]
        if c == QUOTE:
            p = find_quote(text, p + 1) + 1
        elif c == OPEN_LIST or c == OPEN_OBJECT:
            level += 1
            p += 1
        elif c == CLOSE_LIST or c == CLOSE_OBJECT:
            if level == 0:
                return p
            level -= 1
            p += 1
        elif c == COMMA:
            if level == 0:
                return p
            p += 1
            continue
        else:
            p += 1
            continue
        if level == 0:
            return p
    return p


@inlined("int64(uint8[:], int64)")
def skip_number(text: Any, p: Any) -> Any:
    """Return the position after the number or the word at p."""
    while p < text.size:
        c = text[p]
        if c == COMMA or c == CLOSE_LIST or c == CLOSE_OBJECT or c == 32 or 9 <= c <= 13:
            return p
        p += 1
    return p


@entry([types.int64(READ_BYTES, types.int64)], releases_gil=False)
def measure_text(text: Any, most_digits: Any) -> Any:
    """Return the levels of a JSON text: the greatest number of open brackets outside strings.

    Return -1 minus the levels if more than `most_digits` digits follow each other outside strings.
    """
    level, most, p, digits, has_long = 0, 0, 0, 0, False
    while p < text.size:
        c = text[p]
        if c == QUOTE:
            p = find_quote(text, p + 1)
        elif c == OPEN_LIST or c == OPEN_OBJECT:
            level += 1
            most = max(most, level)
        elif c == CLOSE_LIST or c == CLOSE_OBJECT:
            level -= 1
        digits = digits + 1 if 48 <= c <= 57 else 0
        has_long = has_long or digits > most_digits
        p += 1
    return -1 - most if has_long else most
