"""Continuations: the bytes that can follow a prefix of a JSON text that is to spell a given value.

Every result is a superset: it may contain too many bytes where spellings vary (numbers, white space), but never too
few.
"""

from __future__ import annotations

from typing import Any

from .json_equality import ArrayValue, BooleanValue, NumberValue, ObjectValue, Value
from .json_prefixes import (
    ClosedValue,
    NoValueYet,
    OpenArray,
    OpenLiteral,
    OpenNumber,
    OpenObject,
    OpenString,
    parse_prefix,
)

__all__ = ["possible_characters", "find_continuations", "continuations_of_prefix", "find_first_bytes"]

SPACES = frozenset(b" \t\r\n")
SHORT = {'"': b'\\"', "\\": b"\\\\", "/": b"\\/", "\b": b"\\b", "\f": b"\\f", "\n": b"\\n", "\r": b"\\r", "\t": b"\\t"}
NUMBER_BYTES = frozenset(b"0123456789.eE+-")


def find_continuations(text: bytes, value: Value) -> frozenset[int] | None:
    """Return a superset of the bytes by which a text can continue to spell the value; None if it cannot."""
    return continuations_of_prefix(parse_prefix(text), value)


def continuations_of_prefix(state: Any, value: Any) -> frozenset[int] | None:
    """Return what `find_continuations` does, for the state that `parse_prefix` returned."""
    if isinstance(state, NoValueYet):
        return SPACES | find_first_bytes(value)
    if isinstance(state, OpenString):
        return _continue_string(state, value) if isinstance(value, str) else None
    if isinstance(state, OpenNumber):
        return _continue_number(state, value) if isinstance(value, NumberValue) else None
    if isinstance(state, OpenLiteral):
        word = (
            b"null"
            if value is None
            else (b"true" if value.truth else b"false")
            if isinstance(value, BooleanValue)
            else b""
        )
        return frozenset(word[len(state.text) : len(state.text) + 1]) if word.startswith(state.text) else None
    if isinstance(state, ClosedValue):
        return frozenset() if state.value == value and not state.more else None
    if isinstance(state, OpenArray):
        return _continue_array(state, value) if isinstance(value, ArrayValue) else None
    return _continue_object(state, value) if isinstance(value, ObjectValue) else None


def find_first_bytes(value: Any) -> frozenset[int]:
    """Return the bytes with which a value can begin."""
    if isinstance(value, NumberValue):
        return frozenset(b"-0123456789" if not value.digits else b"-" if value.negative else b"0123456789")
    if value is None or isinstance(value, BooleanValue):
        return frozenset(b"n" if value is None else b"t" if value.truth else b"f")
    return frozenset(b'"' if isinstance(value, str) else b"[" if isinstance(value, ArrayValue) else b"{")


def _continue_string(state: OpenString, value: str) -> frozenset[int] | None:
    """Return the bytes that can follow within a string, or None."""
    if not value.startswith(state.text):
        return None
    rest = value[len(state.text) :]
    if not state.pending:
        return _first_byte(rest) | frozenset(b"\\" if rest else b'"')
    if not rest:
        return None
    if state.pending.lower() == _escape(rest[0]):  # a surrogate that is not the first of a pair
        return _first_byte(rest[1:]) | frozenset(b'\\"')
    following: set[int] = set()
    for spelling in (rest[0].encode("utf-8", "surrogatepass"), SHORT.get(rest[0], b""), _escape(rest[0])):
        if spelling.startswith(state.pending.lower()):
            byte = spelling[len(state.pending) : len(state.pending) + 1]
            following.update(byte, byte.upper() if spelling[1:2] == b"u" and len(state.pending) > 1 else b"")
    return frozenset(following) if following else None


def _escape(char: str) -> bytes:
    """Return a character as one or two \\u escapes, with lower-case digits."""
    units = char.encode("utf-16-be", "surrogatepass")
    return b"".join(b"\\u" + units[k : k + 2].hex().encode() for k in range(0, len(units), 2))


def possible_characters(pending: bytes) -> list[tuple[int, int]] | None:
    """Return the ranges of code points that an incomplete character or escape may become; None if it is empty."""
    if not pending:
        return None
    if pending == b"\\":
        return [(0, 0x10FFFF)]
    if pending[0] >= 0xC0:
        size = 2 if pending[0] < 0xE0 else 3 if pending[0] < 0xF0 else 4
        least = [pending[0], *pending[1:], *[0x80] * (size - len(pending))]
        most = [pending[0], *pending[1:], *[0xBF] * (size - len(pending))]
        shortest = (0x80, 0x800, 0x10000)[size - 2]  # a smaller one has a shorter encoding
        return [(max(_code_point(least), shortest), min(_code_point(most), 0x10FFFF))]
    digits = pending[2:6].decode()
    least_unit, most_unit = int(digits.ljust(4, "0"), 16), int(digits.ljust(4, "F"), 16)
    if len(pending) <= 6:
        high = (max(least_unit, 0xD800), min(most_unit, 0xDBFF))
        pairs = [(0x10000 + (high[0] - 0xD800) * 0x400, 0x103FF + (high[1] - 0xD800) * 0x400)]
        is_surrogate = len(pending) == 6 and 0xD800 <= least_unit <= 0xDFFF
        return ([] if is_surrogate else [(least_unit, most_unit)]) + (pairs if high[0] <= high[1] else [])
    digits = pending[8:].decode()
    base = 0x10000 + (least_unit - 0xD800) * 0x400 - 0xDC00
    low = (max(int(digits.ljust(4, "0"), 16), 0xDC00), min(int(digits.ljust(4, "F"), 16), 0xDFFF))
    return [(base + low[0], base + low[1])] if low[0] <= low[1] else []


def _code_point(sequence: list[int]) -> int:
    """Decode a UTF-8 sequence to its code point (RFC 3629, section 3). It need not be valid."""
    value = sequence[0] & (0x1F if len(sequence) == 2 else 0x0F if len(sequence) == 3 else 0x07)
    for byte in sequence[1:]:
        value = value << 6 | byte & 0x3F
    return value


def _first_byte(rest: str) -> frozenset[int]:
    """Return the first byte of a text in UTF-8; nothing for an empty text."""
    return frozenset(rest[:1].encode("utf-8", "surrogatepass")[:1])


def _continue_number(state: OpenNumber, value: NumberValue) -> frozenset[int] | None:
    """Return the bytes that can follow within a number, or None."""
    is_zero = not value.digits
    if is_zero:
        can_become = not state.digits
    else:
        can_become = state.negative == value.negative and (
            value.digits.startswith(state.digits) or state.digits.rstrip("0") == value.digits
        )
        if state.exponent is not None:
            can_become = can_become and state.digits.rstrip("0") == value.digits
    return NUMBER_BYTES if can_become else None


def _continue_array(state: OpenArray, value: ArrayValue) -> frozenset[int] | None:
    """Return the bytes that can follow within an array, or None."""
    n = len(state.items)
    if n > len(value.items) or state.items != value.items[:n]:
        return None
    if state.last is None:
        return SPACES | frozenset(b"]" if n == len(value.items) else b",")
    if isinstance(state.last, NoValueYet) and n == 0 and not value.items:
        return SPACES | frozenset(b"]")
    following = continuations_of_prefix(state.last, value.items[n]) if n < len(value.items) else None
    if following is None or not isinstance(state.last, OpenNumber):
        return following
    return following | SPACES | frozenset(b"]" if n + 1 == len(value.items) else b",")


def _continue_object(state: OpenObject, value: ObjectValue) -> frozenset[int] | None:
    """Return the bytes that can follow within an object, or None."""
    if not state.members <= value.members:
        return None
    missing = {name: item for name, item in value.members if (name, item) not in state.members}
    if state.key is None:
        if state.comma or (not state.members and missing):
            return SPACES | frozenset(b'"') if missing else None
        return SPACES | frozenset(b"," if missing else b"}")
    if isinstance(state.key, OpenString):
        possible = [some for some in (_continue_string(state.key, name) for name in missing) if some is not None]
        return frozenset().union(*possible) if possible else None
    if state.key not in missing:
        return None
    if state.last is None:
        return SPACES | frozenset(b":")
    following = continuations_of_prefix(state.last, missing[state.key])
    if following is None or not isinstance(state.last, OpenNumber):
        return following
    return following | SPACES | frozenset(b"," if len(missing) > 1 else b"}")
