"""JSON values by what they are (JSON Schema 2020-12 core, 4.2.2), whole or half written.

`value_of` turns a text into a value that is equal to another exactly if JSON Schema says so: 1 is 1.0 but not true, an
object has no order. `partial` reads the beginning of such a text; `expected` says by which bytes it may go on if it is
to become a given value, some too many where spellings vary (numbers, escapes, white space).
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, Union

__all__ = ["Number", "Value", "characters_begun", "expected", "partial", "value_of"]


class Number(NamedTuple):
    """sign * int(digits) * 10 ** exponent, digits without zeros at either end ("" for zero, whose sign is +)."""

    negative: bool
    digits: str
    exponent: int


@dataclass(frozen=True, slots=True)
class Items:
    """An array."""

    items: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Fields:
    """An object."""

    members: frozenset[tuple[str, Any]]


class Word(NamedTuple):
    """true or false: of its own type, since Python takes True for 1."""

    truth: bool


Value = Union[None, Word, str, Number, Items, Fields]


def number_of(text: str) -> Number:
    """The value of a JSON number."""
    mantissa, _, exponent = text.lower().partition("e")
    whole, _, fraction = mantissa.lstrip("-").partition(".")
    digits = (whole + fraction).lstrip("0")
    stripped = digits.rstrip("0")
    if not stripped:
        return Number(False, "", 0)
    return Number(text[0] == "-", stripped, int(exponent or 0) - len(fraction) + len(digits) - len(stripped))


def _frozen(value: Any) -> Any:
    if isinstance(value, bool):
        return Word(value)
    if isinstance(value, list):
        return Items(tuple(map(_frozen, value)))
    return value


def _fields(pairs: list[tuple[str, Any]]) -> Fields:
    return Fields(frozenset((name, _frozen(value)) for name, value in pairs))


_DECODER = json.JSONDecoder(
    object_pairs_hook=_fields, parse_int=number_of, parse_float=number_of, strict=False
)  # fmt: skip


@lru_cache(1024)
def value_of(text: bytes) -> Value:
    """The value of a JSON text."""
    value: Value = _frozen(_DECODER.decode(text.decode("utf-8", "surrogatepass")))
    return value


# ---- the beginning of a text -------------------------------------------------------------------------------------


class Blank(NamedTuple):
    """A value is about to begin; white space may have been written."""


class Begun(NamedTuple):
    """Inside a string: its characters so far, and the bytes of a character that is not whole."""

    text: str
    pending: bytes


class Figure(NamedTuple):
    """A number so far: sign, digits of its mantissa without leading zeros, place of the first, exponent."""

    negative: bool
    digits: str
    place: int
    exponent: str | None


class Letters(NamedTuple):
    """The beginning of true, false or null."""

    text: bytes


class OpenItems(NamedTuple):
    """An array so far: its whole items, and the one that is being written (None: a comma or the end comes next)."""

    items: tuple[Any, ...]
    last: Any


class OpenFields(NamedTuple):
    """An object so far: whole members, key of the next (None: none yet; Begun: half), its value (None: no colon)."""

    members: frozenset[tuple[str, Any]]
    key: Any
    last: Any
    comma: bool  # a key must come


class Whole(NamedTuple):
    """A value that has ended, and whether anything stands behind it."""

    value: Any
    more: bool


_SPACE = re.compile(rb"[ \t\r\n]*")
_NUMBER = re.compile(rb"-?[0-9]*(?:\.[0-9]*)?(?:[eE][+-]?[0-9]*)?")
_STRING = re.compile(rb'(?:[^"\\]|\\[^u]|\\u[0-9a-fA-F]{4})*')
WORDS = {b"t": b"true", b"f": b"false", b"n": b"null"}


@lru_cache(1024)
def partial(text: bytes) -> Any:
    """The beginning of a JSON text: Blank, Begun, Figure, Letters, OpenItems, OpenFields or Whole."""
    state, place = _read(text, 0)
    if place < len(text) and isinstance(state, Whole):
        return Whole(state.value, True)
    return state


def _read(text: bytes, place: int) -> tuple[Any, int]:
    """The value that begins at a place, and the place behind it; what is open reaches to the end."""
    place = _skip(text, place)
    if place == len(text):
        return Blank(), place
    first = text[place : place + 1]
    if first == b'"':
        return _read_string(text, place + 1)
    if first == b"[":
        return _read_items(text, place + 1)
    if first == b"{":
        return _read_fields(text, place + 1)
    if first in WORDS:
        word = WORDS[first]
        if text[place : place + len(word)] == word:
            return Whole(None if word == b"null" else Word(word == b"true"), False), place + len(word)
        return Letters(text[place:]), len(text)
    match = _NUMBER.match(text, place)
    assert match is not None
    if match.end() < len(text):
        return Whole(number_of(match[0].decode()), False), match.end()
    return _figure(match[0].decode()), match.end()


def _figure(text: str) -> Figure:
    mantissa, e, exponent = text.lower().partition("e")
    whole, _, fraction = mantissa.lstrip("-").partition(".")
    digits = (whole + fraction).lstrip("0")
    signless = exponent.lstrip("+-")
    if e:
        exponent = ("-" if exponent.startswith("-") else "") + (signless.lstrip("0") or signless[:1])
    place = len(whole) + len(digits) - len(whole + fraction)
    digits = digits.rstrip("0") if "." in mantissa else digits
    if not digits:  # zero so far, wherever its point is, and for good once an exponent has begun
        return Figure(text[0] == "-", "", 0, "" if e else None)
    return Figure(text[0] == "-", digits, place, exponent if e else None)


def _skip(text: bytes, place: int) -> int:
    match = _SPACE.match(text, place)
    assert match is not None
    return match.end()


def _read_string(text: bytes, place: int) -> tuple[Any, int]:
    match = _STRING.match(text, place)
    assert match is not None
    end = match.end()
    if end < len(text) and text[end] == 0x22:
        return Whole(_decoded(text[place:end]), False), end + 1
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
    return Begun(_decoded(raw), pending), len(text)


def _decoded(raw: bytes) -> str:
    text: str = json.loads(b'"' + raw + b'"', strict=False) if b"\\" in raw else raw.decode("utf-8", "surrogatepass")
    return text


def _read_items(text: bytes, place: int) -> tuple[Any, int]:
    items: list[Any] = []
    place = _skip(text, place)
    if place < len(text) and text[place] == 0x5D:
        return Whole(Items(()), False), place + 1
    while True:
        state, place = _read(text, place)
        if not isinstance(state, Whole):
            return OpenItems(tuple(items), state), len(text)
        items.append(state.value)
        place = _skip(text, place)
        if place == len(text):
            return OpenItems(tuple(items), None), place
        if text[place] == 0x5D:
            return Whole(Items(tuple(items)), False), place + 1
        place += 1


def _read_fields(text: bytes, place: int) -> tuple[Any, int]:
    members: list[tuple[str, Any]] = []
    place = _skip(text, place)
    if place < len(text) and text[place] == 0x7D:
        return Whole(Fields(frozenset()), False), place + 1
    while True:
        place = _skip(text, place)
        if place == len(text):
            return OpenFields(frozenset(members), None, None, bool(members)), place
        key, place = _read_string(text, place + 1)
        if not isinstance(key, Whole):
            return OpenFields(frozenset(members), key, None, False), place
        place = _skip(text, place)
        if place == len(text):
            return OpenFields(frozenset(members), key.value, None, False), place
        state, place = _read(text, place + 1)
        if not isinstance(state, Whole):
            return OpenFields(frozenset(members), key.value, state, False), place
        members.append((key.value, state.value))
        place = _skip(text, place)
        if place == len(text):
            return OpenFields(frozenset(members), None, None, False), place
        if text[place] == 0x7D:
            return Whole(Fields(frozenset(members)), False), place + 1
        place += 1


# ---- what may follow ---------------------------------------------------------------------------------------------

SPACES = frozenset(b" \t\r\n")
SHORT = {'"': b'\\"', "\\": b"\\\\", "/": b"\\/", "\b": b"\\b", "\f": b"\\f", "\n": b"\\n", "\r": b"\\r", "\t": b"\\t"}
FIGURES = frozenset(b"0123456789.eE+-")


def expected(text: bytes, value: Value) -> frozenset[int] | None:
    """The bytes by which a text may go on to become a spelling of the value, some too many; None if it cannot."""
    return _expected(partial(text), value)


def _expected(state: Any, value: Any) -> frozenset[int] | None:
    if isinstance(state, Blank):
        return SPACES | _first(value)
    if isinstance(state, Begun):
        return _in_string(state, value) if isinstance(value, str) else None
    if isinstance(state, Figure):
        return _in_number(state, value) if isinstance(value, Number) else None
    if isinstance(state, Letters):
        word = b"null" if value is None else (b"true" if value.truth else b"false") if isinstance(value, Word) else b""
        return frozenset(word[len(state.text) : len(state.text) + 1]) if word.startswith(state.text) else None
    if isinstance(state, Whole):
        return frozenset() if state.value == value and not state.more else None
    if isinstance(state, OpenItems):
        return _in_items(state, value) if isinstance(value, Items) else None
    return _in_fields(state, value) if isinstance(value, Fields) else None


def _first(value: Any) -> frozenset[int]:
    """The bytes with which a value begins."""
    if isinstance(value, Number):
        return frozenset(b"-0123456789" if not value.digits else b"-" if value.negative else b"0123456789")
    if value is None or isinstance(value, Word):
        return frozenset(b"n" if value is None else b"t" if value.truth else b"f")
    return frozenset(b'"' if isinstance(value, str) else b"[" if isinstance(value, Items) else b"{")


def _in_string(state: Begun, value: str) -> frozenset[int] | None:
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


def characters_begun(pending: bytes) -> list[tuple[int, int]] | None:
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


def _in_number(state: Figure, value: Number) -> frozenset[int] | None:
    zero = not value.digits
    if zero:
        alike = not state.digits
    else:
        alike = state.negative == value.negative and (
            value.digits.startswith(state.digits) or state.digits.rstrip("0") == value.digits
        )
        if state.exponent is not None:
            alike = alike and state.digits.rstrip("0") == value.digits
    return FIGURES if alike else None


def _in_items(state: OpenItems, value: Items) -> frozenset[int] | None:
    n = len(state.items)
    if n > len(value.items) or state.items != value.items[:n]:
        return None
    if state.last is None:
        return SPACES | frozenset(b"]" if n == len(value.items) else b",")
    if isinstance(state.last, Blank) and n == 0 and not value.items:
        return SPACES | frozenset(b"]")
    following = _expected(state.last, value.items[n]) if n < len(value.items) else None
    if following is None or not isinstance(state.last, Figure):
        return following
    return following | SPACES | frozenset(b"]" if n + 1 == len(value.items) else b",")


def _in_fields(state: OpenFields, value: Fields) -> frozenset[int] | None:
    if not state.members <= value.members:
        return None
    left = {name: item for name, item in value.members if (name, item) not in state.members}
    if state.key is None:
        if state.comma or (not state.members and left):
            return SPACES | frozenset(b'"') if left else None
        return SPACES | frozenset(b"," if left else b"}")
    if isinstance(state.key, Begun):
        ways = [way for way in (_in_string(state.key, name) for name in left) if way is not None]
        return frozenset().union(*ways) if ways else None
    if state.key not in left:
        return None
    if state.last is None:
        return SPACES | frozenset(b":")
    following = _expected(state.last, left[state.key])
    if following is None or not isinstance(state.last, Figure):
        return following
    return following | SPACES | frozenset(b"," if len(left) > 1 else b"}")
