"""Parse a prefix of a JSON text into the values that are complete and those that are still open.

The result does not depend on white space or on how characters are escaped.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import Any, NamedTuple

from .json_equality import ArrayValue, BooleanValue, ObjectValue, parse_number

__all__ = [
    "OpenString",
    "NoValueYet",
    "OpenNumber",
    "OpenLiteral",
    "OpenObject",
    "OpenArray",
    "ClosedValue",
    "parse_prefix",
]


class NoValueYet(NamedTuple):
    """No character of the value has been written yet, except perhaps white space."""


class OpenString(NamedTuple):
    """A string so far: its characters, and the bytes of an incomplete character or escape."""

    text: str
    pending: bytes


class OpenNumber(NamedTuple):
    """A number so far.

    `digits` are those of the mantissa without leading zeros, `point` the number of them before the decimal point
    (negative if zeros follow the point), and `exponent` is None before an `e`.
    """

    negative: bool
    digits: str
    point: int
    exponent: str | None


class OpenLiteral(NamedTuple):
    """A proper prefix of true, false or null."""

    text: bytes


class OpenArray(NamedTuple):
    """An array so far: its complete items, and the open one, None if a comma or the closing bracket is next."""

    items: tuple[Any, ...]
    last: Any


class OpenObject(NamedTuple):
    """An object so far.

    `members` are complete. `key` is the key of the open member: None before it begins, an OpenString within it, then a
    str. `last` is the state of its value, None before the colon. `comma` says whether a comma was written, after which
    a key must follow.
    """

    members: frozenset[tuple[str, Any]]
    key: Any
    last: Any
    comma: bool


class ClosedValue(NamedTuple):
    """A complete value, and whether anything follows it."""

    value: Any
    more: bool


_SPACE = re.compile(rb"[ \t\r\n]*")
_NUMBER = re.compile(rb"-?[0-9]*(?:\.[0-9]*)?(?:[eE][+-]?[0-9]*)?")
_STRING = re.compile(rb'(?:[^"\\]|\\[^u]|\\u[0-9a-fA-F]{4})*')
LITERALS = {b"t": b"true", b"f": b"false", b"n": b"null"}


@lru_cache(1024)
def parse_prefix(text: bytes) -> Any:
    """Return the state after a prefix of a JSON text: one of the classes of this module."""
    state, position = _read_value(text, 0)
    if position < len(text) and isinstance(state, ClosedValue):
        return ClosedValue(state.value, True)
    return state


def _read_value(text: bytes, position: int) -> tuple[Any, int]:
    """Return the state of the value at a position, and the position after it: the end of the text if it is open."""
    position = _skip_space(text, position)
    if position == len(text):
        return NoValueYet(), position
    first = text[position : position + 1]
    if first == b'"':
        return _read_string(text, position + 1)
    if first == b"[":
        return _read_array(text, position + 1)
    if first == b"{":
        return _read_object(text, position + 1)
    if first in LITERALS:
        word = LITERALS[first]
        if text[position : position + len(word)] == word:
            return ClosedValue(None if word == b"null" else BooleanValue(word == b"true"), False), position + len(word)
        return OpenLiteral(text[position:]), len(text)
    match = _NUMBER.match(text, position)
    assert match is not None
    if match.end() < len(text):
        return ClosedValue(parse_number(match[0].decode()), False), match.end()
    return _make_open_number(match[0].decode()), match.end()


def _make_open_number(text: str) -> OpenNumber:
    """Return the state within a number of which `text` is written so far."""
    mantissa, e, exponent = text.lower().partition("e")
    integer, _, fraction = mantissa.lstrip("-").partition(".")
    digits = (integer + fraction).lstrip("0")
    signless = exponent.lstrip("+-")
    if e:
        exponent = ("-" if exponent.startswith("-") else "") + (signless.lstrip("0") or signless[:1])
    point = len(integer) + len(digits) - len(integer + fraction)
    digits = digits.rstrip("0") if "." in mantissa else digits
    if not digits:  # zero so far, wherever its point is; it remains zero once an exponent has begun
        return OpenNumber(text[0] == "-", "", 0, "" if e else None)
    return OpenNumber(text[0] == "-", digits, point, exponent if e else None)


def _skip_space(text: bytes, position: int) -> int:
    """Return the position after white space."""
    match = _SPACE.match(text, position)
    assert match is not None
    return match.end()


def _read_string(text: bytes, position: int) -> tuple[Any, int]:
    """Return the state of the string whose opening quote is before `position`, and the position after it."""
    match = _STRING.match(text, position)
    assert match is not None
    end = match.end()
    if end < len(text) and text[end] == 0x22:
        return ClosedValue(_unescape(text[position:end]), False), end + 1
    raw, pending = text[position:end], text[end:]
    for k in range(1, min(4, len(raw) + 1)):  # an incomplete UTF-8 sequence
        lead = raw[-k]
        if lead >= 0xC0:
            if k < (2 if lead < 0xE0 else 3 if lead < 0xF0 else 4):
                raw, pending = raw[:-k], raw[-k:]
            break
        if lead < 0x80:
            break
    if re.search(
        rb"(?<!\\)(?:\\\\)*\\u[dD][89abAB][0-9a-fA-F]{2}$", raw
    ):  # a surrogate that may be the first of a pair
        raw, pending = raw[:-6], raw[-6:] + pending
    return OpenString(_unescape(raw), pending), len(text)


def _unescape(raw: bytes) -> str:
    """Return the characters of the content of a string."""
    text: str = json.loads(b'"' + raw + b'"', strict=False) if b"\\" in raw else raw.decode("utf-8", "surrogatepass")
    return text


def _read_array(text: bytes, position: int) -> tuple[Any, int]:
    """Return the state of the array whose bracket is before `position`, and the position after it."""
    items: list[Any] = []
    position = _skip_space(text, position)
    if position < len(text) and text[position] == 0x5D:
        return ClosedValue(ArrayValue(()), False), position + 1
    while True:
        state, position = _read_value(text, position)
        if not isinstance(state, ClosedValue):
            return OpenArray(tuple(items), state), len(text)
        items.append(state.value)
        position = _skip_space(text, position)
        if position == len(text):
            return OpenArray(tuple(items), None), position
        if text[position] == 0x5D:
            return ClosedValue(ArrayValue(tuple(items)), False), position + 1
        position += 1


def _read_object(text: bytes, position: int) -> tuple[Any, int]:
    """Return the state of the object whose brace is before `position`, and the position after it."""
    members: list[tuple[str, Any]] = []
    position = _skip_space(text, position)
    if position < len(text) and text[position] == 0x7D:
        return ClosedValue(ObjectValue(frozenset()), False), position + 1
    while True:
        position = _skip_space(text, position)
        if position == len(text):
            return OpenObject(frozenset(members), None, None, bool(members)), position
        key, position = _read_string(text, position + 1)
        if not isinstance(key, ClosedValue):
            return OpenObject(frozenset(members), key, None, False), position
        position = _skip_space(text, position)
        if position == len(text):
            return OpenObject(frozenset(members), key.value, None, False), position
        state, position = _read_value(text, position + 1)
        if not isinstance(state, ClosedValue):
            return OpenObject(frozenset(members), key.value, state, False), position
        members.append((key.value, state.value))
        position = _skip_space(text, position)
        if position == len(text):
            return OpenObject(frozenset(members), None, None, False), position
        if text[position] == 0x7D:
            return ClosedValue(ObjectValue(frozenset(members)), False), position + 1
        position += 1
