"""Characters for the slow oracle: byte by byte, as UTF-8 or as the inside of a JSON string.

`feed` takes one more byte of an unfinished character; `completions` says which characters an unfinished one may
still become, as ranges of code points. Both are written from RFC 3629 and RFC 8259 section 7, not from the engine.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any, Literal

from constrain.automata.dfa import Dfa

Encoding = Literal["utf8", "json"]
SIMPLE = {ord('"'): '"', ord("\\"): "\\", ord("/"): "/", ord("b"): "\b", ord("f"): "\f", ord("n"): "\n"}
SIMPLE |= {ord("r"): "\r", ord("t"): "\t"}
HEX = b"0123456789abcdefABCDEF"
ALL = ((0, 0xD7FF), (0xE000, 0x10FFFF))


def feed(encoding: Encoding, pending: bytes, byte: int) -> tuple[str, bytes] | None:
    """Return (the finished character or "", unfinished bytes), or None if no character has these bytes."""
    data = pending + bytes([byte])
    if encoding == "json":
        if data[0] == ord("\\"):
            return feed_escape(data)
        if data[0] < 0x20 or data[0] == ord('"'):
            return None
    try:
        return data.decode(), b""
    except UnicodeDecodeError:
        return ("", data) if completions(encoding, data) else None


def feed_escape(data: bytes) -> tuple[str, bytes] | None:
    """`feed` for bytes that start with a backslash."""
    if len(data) == 2 and data[1] in SIMPLE:
        return SIMPLE[data[1]], b""
    if not completions("json", data):
        return None
    if len(data) == 6 and not 0xD800 <= int(data[2:], 16) < 0xDC00:
        return chr(int(data[2:], 16)), b""
    if len(data) == 12:
        high, low = int(data[2:6], 16), int(data[8:], 16)
        return chr(0x10000 + (high - 0xD800) * 0x400 + low - 0xDC00), b""
    return "", data


@lru_cache(maxsize=4096)
def completions(encoding: Encoding, pending: bytes) -> tuple[tuple[int, int], ...]:
    """Inclusive ranges of the code points that may begin with these bytes; none if nothing does."""
    if encoding == "json" and pending[:1] == b"\\":
        return tuple(escape_completions(pending))
    return tuple(utf8_completions(pending))


def utf8_completions(pending: bytes) -> list[tuple[int, int]]:
    """RFC 3629: every character is written in its shortest form, none is a surrogate, the last is U+10FFFF."""
    if not pending:
        return list(ALL)
    lead, rest = pending[0], pending[1:]
    leads = ((1, 0, 0x7F, 0), (2, 0xC0, 0xDF, 0x80), (3, 0xE0, 0xEF, 0x800), (4, 0xF0, 0xF7, 0x10000))
    length, first, least = next(((n, a, least) for n, a, b, least in leads if a <= lead <= b), (0, 0, 0))
    if len(rest) >= length or any(not 0x80 <= byte <= 0xBF for byte in rest):
        return []
    low = high = lead - first
    for index in range(length - 1):
        low = low << 6 | (rest[index] & 0x3F if index < len(rest) else 0)
        high = high << 6 | (rest[index] & 0x3F if index < len(rest) else 0x3F)
    return clip(max(low, least), high, ALL)


def escape_completions(pending: bytes) -> list[tuple[int, int]]:
    """RFC 8259 section 7: a letter, or `u` and four hexadecimal digits, two of those for what lies beyond U+FFFF."""
    if pending == b"\\":
        return list(ALL)
    if len(pending) == 2 and pending[1] in SIMPLE:
        return [(ord(SIMPLE[pending[1]]),) * 2]
    first, second = pending[:6], pending[6:]
    spread = hex_range(first)
    if spread is None:
        return []
    plain = [] if second else clip(*spread, ALL)
    units = hex_range(second or b"\\u")
    if units is None or len(pending) > 12:
        return plain
    out = list(plain)
    for low, high in clip(*spread, [(0xD800, 0xDBFF)]):
        for low_unit, high_unit in clip(*units, [(0xDC00, 0xDFFF)]):
            for unit in range(low, high + 1):
                start = 0x10000 + (unit - 0xD800) * 0x400 - 0xDC00
                out.append((start + low_unit, start + high_unit))
    return out


def hex_range(data: bytes) -> tuple[int, int] | None:
    """Least and greatest value of `\\uXXXX` that begins so, or None."""
    if not b"\\u".startswith(data[:2]) or any(byte not in HEX for byte in data[2:]):
        return None
    digits = data[2:].decode()
    return int(digits.ljust(4, "0"), 16), int(digits.ljust(4, "F"), 16)


def clip(low: int, high: int, ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """The parts of [low, high] inside the ranges."""
    return [(max(low, a), min(high, b)) for a, b in ranges if max(low, a) <= min(high, b)]


@lru_cache(maxsize=65536)
def samples(dfa: Dfa, ranges: tuple[tuple[int, int], ...], each: int = 1) -> list[str]:
    """Up to `each` characters of every stretch of the ranges that the Dfa does not distinguish."""
    out = []
    ends = [*dfa.bounds.tolist()[1:], 0x110000]
    for start, end in zip(dfa.bounds.tolist(), ends):
        for low, high in ranges:
            for part_low, part_high in clip(max(start, low), min(end - 1, high), ALL):
                out += [chr(code) for code in range(part_low, min(part_high, part_low + each - 1) + 1)]
    return out


def next_states(dfa: Dfa, encoding: Encoding, state: int, pending: bytes) -> set[int]:
    """The states that the Dfa may be in once the unfinished character is finished."""
    found = {dfa.step(state, char) for char in samples(dfa, completions(encoding, pending))}
    return found - {-1}


@lru_cache(maxsize=65536)
def successors(dfa: Dfa, state: int) -> frozenset[int]:
    """The states after any one character."""
    return frozenset(dfa.step(state, char) for char in samples(dfa, ALL)) - {-1}


def all_next_states(dfa: Dfa, states: set[int]) -> set[int]:
    """The states after any one character, from any of these states."""
    return {after for state in states for after in successors(dfa, state)}


def can_end(dfa: Dfa, states: set[int], seen: int, low: int, high: int | None) -> bool:
    """Whether from one of these states, after `seen` characters, some text of low to high characters is accepted."""
    most = max(0, low - seen) + len(dfa.accepting)  # once there are enough, acceptance is less than that far
    for more in range(most + 1):
        if high is not None and seen + more > high:
            return False
        if seen + more >= low and any(dfa.accepting[state] for state in states):
            return True
        states = all_next_states(dfa, states)
    return False


def decode(raw: bytes) -> tuple[str, bytes] | None:
    """The text so far and the unfinished character of the inside of a JSON string; None if it is none."""
    text, pending = "", b""
    for byte in raw:
        fed = feed("json", pending, byte)
        if fed is None:
            return None
        text, pending = text + fed[0], fed[1]
    return text, pending


def names_from(dfa: Any, head: str, pending: bytes, enough: int) -> Iterator[str]:
    """Names of the Dfa that begin so, shorter ones first: at least `enough` of them if there are that many.

    Of the texts that lead to one state, `enough` are kept: what completes one completes all.
    """
    states: dict[int, list[str]] = {}
    state = 0 if len(dfa.accepting) else -1
    for char in head:
        state = dfa.step(state, char)
    if state < 0:
        return
    if pending:
        for char in samples(dfa, completions("json", pending), enough):
            states.setdefault(dfa.step(state, char), []).append(head + char)
    else:
        states[state] = [head]
    for _ in range(len(dfa.accepting) * (enough + 1) + 1):
        states.pop(-1, None)
        for state, texts in states.items():
            if dfa.accepting[state]:
                yield from texts
        longer: dict[int, list[str]] = {}
        for state, texts in states.items():
            for char in samples(dfa, ALL, enough):
                found = longer.setdefault(dfa.step(state, char), [])
                found += [text + char for text in texts[: max(0, enough - len(found))]]
        states = longer
