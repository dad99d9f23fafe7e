"""Continuations: the bytes that can follow the beginning of a JSON text that is to become a given value.

The result may contain too many bytes where spellings vary (numbers, white space), but never too few.
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
    """As `find_continuations`, of a text that `parse_prefix` has read."""
    if isinstance(state, NoValueYet):
        return SPACES | find_first_bytes(value)
    if isinstance(state, OpenString):
        return _in_string(state, value) if isinstance(value, str) else None
    if isinstance(state, OpenNumber):
        return _in_number(state, value) if isinstance(value, NumberValue) else None
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
        return _in_items(state, value) if isinstance(value, ArrayValue) else None
    return _in_fields(state, value) if isinstance(value, ObjectValue) else None


def find_first_bytes(value: Any) -> frozenset[int]:
    """Return the bytes with which a value can begin."""
    if isinstance(value, NumberValue):
        return frozenset(b"-0123456789" if not value.digits else b"-" if value.negative else b"0123456789")
    if value is None or isinstance(value, BooleanValue):
        return frozenset(b"n" if value is None else b"t" if value.truth else b"f")
    return frozenset(b'"' if isinstance(value, str) else b"[" if isinstance(value, ArrayValue) else b"{")


def _in_string(state: OpenString, value: str) -> frozenset[int] | None:
    if not value.startswith(state.text):
        return None
    rest = value[len(state.text) :]
    if not state.pending:
        return _raw(rest) | frozenset(b"\\" if rest else b'"')
    if not rest:
        return None
    if state.pending.lower() == _escaped(rest[0]):  # half a pair of surrogates that is the whole of one
        return _raw(rest[1:]) | frozenset(b'\\"')
    following: set[int] = set()
    for spelling in (rest[0].encode("utf-8", "surrogatepass"), SHORT.get(rest[0], b""), _escaped(rest[0])):
        if spelling.startswith(state.pending.lower()):
            byte = spelling[len(state.pending) : len(state.pending) + 1]
            following.update(byte, byte.upper() if spelling[1:2] == b"u" and len(state.pending) > 1 else b"")
    return frozenset(following) if following else None


def _escaped(char: str) -> bytes:
    """The spelling of a character by \\u, in small letters."""
    units = char.encode("utf-16-be", "surrogatepass")
    return b"".join(b"\\u" + units[k : k + 2].hex().encode() for k in range(0, len(units), 2))


def possible_characters(pending: bytes) -> list[tuple[int, int]] | None:
    """The ranges of code points that the bytes of a character or an escape, not whole, may still become; None: none."""
    if not pending:
        return None
    if pending == b"\\":
        return [(0, 0x10FFFF)]
    if pending[0] >= 0xC0:
        size = 2 if pending[0] < 0xE0 else 3 if pending[0] < 0xF0 else 4
        least = [pending[0], *pending[1:], *[0x80] * (size - len(pending))]
        most = [pending[0], *pending[1:], *[0xBF] * (size - len(pending))]
        shortest = (0x80, 0x800, 0x10000)[size - 2]  # less would be spelled in fewer bytes
        return [(max(_code_point(least), shortest), min(_code_point(most), 0x10FFFF))]
    digits = pending[2:6].decode()
    least_unit, most_unit = int(digits.ljust(4, "0"), 16), int(digits.ljust(4, "F"), 16)
    if len(pending) <= 6:
        high = (max(least_unit, 0xD800), min(most_unit, 0xDBFF))
        pairs = [(0x10000 + (high[0] - 0xD800) * 0x400, 0x103FF + (high[1] - 0xD800) * 0x400)]
        whole = len(pending) == 6 and 0xD800 <= least_unit <= 0xDFFF
        return ([] if whole else [(least_unit, most_unit)]) + (pairs if high[0] <= high[1] else [])
    digits = pending[8:].decode()
    base = 0x10000 + (least_unit - 0xD800) * 0x400 - 0xDC00
    low = (max(int(digits.ljust(4, "0"), 16), 0xDC00), min(int(digits.ljust(4, "F"), 16), 0xDFFF))
    return [(base + low[0], base + low[1])] if low[0] <= low[1] else []


def _code_point(sequence: list[int]) -> int:
    """What the bytes of a UTF-8 sequence spell (RFC 3629, section 3)."""
    value = sequence[0] & (0x1F if len(sequence) == 2 else 0x0F if len(sequence) == 3 else 0x07)
    for byte in sequence[1:]:
        value = value << 6 | byte & 0x3F
    return value


def _raw(rest: str) -> frozenset[int]:
    """The byte with which the first character of a text begins."""
    return frozenset(rest[:1].encode("utf-8", "surrogatepass")[:1])


def _in_number(state: OpenNumber, value: NumberValue) -> frozenset[int] | None:
    zero = not value.digits
    if zero:
        may_go_on = not state.digits
    else:
        may_go_on = state.negative == value.negative and (
            value.digits.startswith(state.digits) or state.digits.rstrip("0") == value.digits
        )
        if state.exponent is not None:
            may_go_on = may_go_on and state.digits.rstrip("0") == value.digits
    return NUMBER_BYTES if may_go_on else None


def _in_items(state: OpenArray, value: ArrayValue) -> frozenset[int] | None:
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


def _in_fields(state: OpenObject, value: ObjectValue) -> frozenset[int] | None:
    if not state.members <= value.members:
        return None
    left = {name: item for name, item in value.members if (name, item) not in state.members}
    if state.key is None:
        if state.comma or (not state.members and left):
            return SPACES | frozenset(b'"') if left else None
        return SPACES | frozenset(b"," if left else b"}")
    if isinstance(state.key, OpenString):
        ways = [way for way in (_in_string(state.key, name) for name in left) if way is not None]
        return frozenset().union(*ways) if ways else None
    if state.key not in left:
        return None
    if state.last is None:
        return SPACES | frozenset(b":")
    following = continuations_of_prefix(state.last, left[state.key])
    if following is None or not isinstance(state.last, OpenNumber):
        return following
    return following | SPACES | frozenset(b"," if len(left) > 1 else b"}")
