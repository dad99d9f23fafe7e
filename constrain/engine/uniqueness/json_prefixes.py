"""The beginning of a JSON text, read as far as it goes: what is whole in it, and what is being written.

A text comes out the same however its white space and its escapes are spelled.
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
    """A value is about to begin; white space may have been written."""


class OpenString(NamedTuple):
    """Inside a string: its characters so far, and the bytes of a character that is not whole."""

    text: str
    pending: bytes


class OpenNumber(NamedTuple):
    """A number so far: sign, digits of its mantissa without leading zeros, place of the first, exponent."""

    negative: bool
    digits: str
    place: int
    exponent: str | None


class OpenLiteral(NamedTuple):
    """The beginning of true, false or null."""

    text: bytes


class OpenArray(NamedTuple):
    """An array so far: its whole items, and the one that is being written (None: a comma or the end comes next)."""

    items: tuple[Any, ...]
    last: Any


class OpenObject(NamedTuple):
    """An object so far: whole members, key of the next (None: none yet; Begun: half), its value (None: no colon)."""

    members: frozenset[tuple[str, Any]]
    key: Any
    last: Any
    comma: bool  # a key must come


class ClosedValue(NamedTuple):
    """A value that has ended, and whether anything stands behind it."""

    value: Any
    more: bool


_SPACE = re.compile(rb"[ \t\r\n]*")
_NUMBER = re.compile(rb"-?[0-9]*(?:\.[0-9]*)?(?:[eE][+-]?[0-9]*)?")
_STRING = re.compile(rb'(?:[^"\\]|\\[^u]|\\u[0-9a-fA-F]{4})*')
LITERALS = {b"t": b"true", b"f": b"false", b"n": b"null"}


@lru_cache(1024)
def parse_prefix(text: bytes) -> Any:
    """The beginning of a JSON text: Blank, Begun, Figure, Letters, OpenItems, OpenFields or Whole."""
    state, place = _read(text, 0)
    if place < len(text) and isinstance(state, ClosedValue):
        return ClosedValue(state.value, True)
    return state


def _read(text: bytes, place: int) -> tuple[Any, int]:
    """The value that begins at a place, and the place behind it; what is open reaches to the end."""
    place = _skip(text, place)
    if place == len(text):
        return NoValueYet(), place
    first = text[place : place + 1]
    if first == b'"':
        return _read_string(text, place + 1)
    if first == b"[":
        return _read_items(text, place + 1)
    if first == b"{":
        return _read_fields(text, place + 1)
    if first in LITERALS:
        word = LITERALS[first]
        if text[place : place + len(word)] == word:
            return ClosedValue(None if word == b"null" else BooleanValue(word == b"true"), False), place + len(word)
        return OpenLiteral(text[place:]), len(text)
    match = _NUMBER.match(text, place)
    assert match is not None
    if match.end() < len(text):
        return ClosedValue(parse_number(match[0].decode()), False), match.end()
    return _figure(match[0].decode()), match.end()


def _figure(text: str) -> OpenNumber:
    mantissa, e, exponent = text.lower().partition("e")
    whole, _, fraction = mantissa.lstrip("-").partition(".")
    digits = (whole + fraction).lstrip("0")
    signless = exponent.lstrip("+-")
    if e:
        exponent = ("-" if exponent.startswith("-") else "") + (signless.lstrip("0") or signless[:1])
    place = len(whole) + len(digits) - len(whole + fraction)
    digits = digits.rstrip("0") if "." in mantissa else digits
    if not digits:  # zero so far, wherever its point is, and for good once an exponent has begun
        return OpenNumber(text[0] == "-", "", 0, "" if e else None)
    return OpenNumber(text[0] == "-", digits, place, exponent if e else None)


def _skip(text: bytes, place: int) -> int:
    match = _SPACE.match(text, place)
    assert match is not None
    return match.end()


def _read_string(text: bytes, place: int) -> tuple[Any, int]:
    match = _STRING.match(text, place)
    assert match is not None
    end = match.end()
    if end < len(text) and text[end] == 0x22:
        return ClosedValue(_decoded(text[place:end]), False), end + 1
    raw, pending = text[place:end], text[end:]
    for k in range(1, min(4, len(raw) + 1)):  # a UTF-8 sequence that is not whole
        lead = raw[-k]
        if lead >= 0xC0:
            if k < (2 if lead < 0xE0 else 3 if lead < 0xF0 else 4):
                raw, pending = raw[:-k], raw[-k:]
            break
        if lead < 0x80:
            break
    if re.search(rb"(?<!\\)(?:\\\\)*\\u[dD][89abAB][0-9a-fA-F]{2}$", raw):  # half a pair, perhaps
        raw, pending = raw[:-6], raw[-6:] + pending
    return OpenString(_decoded(raw), pending), len(text)


def _decoded(raw: bytes) -> str:
    text: str = json.loads(b'"' + raw + b'"', strict=False) if b"\\" in raw else raw.decode("utf-8", "surrogatepass")
    return text


def _read_items(text: bytes, place: int) -> tuple[Any, int]:
    items: list[Any] = []
    place = _skip(text, place)
    if place < len(text) and text[place] == 0x5D:
        return ClosedValue(ArrayValue(()), False), place + 1
    while True:
        state, place = _read(text, place)
        if not isinstance(state, ClosedValue):
            return OpenArray(tuple(items), state), len(text)
        items.append(state.value)
        place = _skip(text, place)
        if place == len(text):
            return OpenArray(tuple(items), None), place
        if text[place] == 0x5D:
            return ClosedValue(ArrayValue(tuple(items)), False), place + 1
        place += 1


def _read_fields(text: bytes, place: int) -> tuple[Any, int]:
    members: list[tuple[str, Any]] = []
    place = _skip(text, place)
    if place < len(text) and text[place] == 0x7D:
        return ClosedValue(ObjectValue(frozenset()), False), place + 1
    while True:
        place = _skip(text, place)
        if place == len(text):
            return OpenObject(frozenset(members), None, None, bool(members)), place
        key, place = _read_string(text, place + 1)
        if not isinstance(key, ClosedValue):
            return OpenObject(frozenset(members), key, None, False), place
        place = _skip(text, place)
        if place == len(text):
            return OpenObject(frozenset(members), key.value, None, False), place
        state, place = _read(text, place + 1)
        if not isinstance(state, ClosedValue):
            return OpenObject(frozenset(members), key.value, state, False), place
        members.append((key.value, state.value))
        place = _skip(text, place)
        if place == len(text):
            return OpenObject(frozenset(members), None, None, False), place
        if text[place] == 0x7D:
            return ClosedValue(ObjectValue(frozenset(members)), False), place + 1
        place += 1
