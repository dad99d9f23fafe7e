"""Strings and declared keys, byte by byte through all of their spellings, against lists of these spellings."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import product

import pytest
from hypothesis import given, settings, strategies as st

from constrain import Vocabulary
from constrain.compilation.constraint_compiler import compile_grammar
from constrain.engine.matcher import Matcher
from constrain.grammar.nodes import EMPTY, Choice, Grammar, Layout, Literal, Node, Object, Property, Sequence, Strings
from constrain.kernels import layout as at
from constrain.kernels.call_layout import AT_SET
from tests.token_mask_oracle import list_tokens

CODES = [
    0x01, 0x08, 0x22, 0x2F, 0x41, 0x5C, 0x7F, 0x80, 0x7FF, 0x800, 0xFFF, 0x1000, 0xCFFF, 0xD000, 0xD7FF, 0xE000, 0xFFFF,
    0x10000, 0x10001, 0x103FE, 0x103FF, 0x10400, 0x107FF, 0x10800, 0x40000, 0xFFC00, 0xFFFFF, 0x100000, 0x10FBFF,
    0x10FC00, 0x10FFFF,
]  # fmt: skip
LAYOUT = Layout(EMPTY, EMPTY, Literal(b","), Literal(b":"), EMPTY)
VOCABULARY = Vocabulary.bytes()
Spelled = tuple[bytes, frozenset[int]]
"""A text as it may be written, and the places of its hexadecimal digits, which are in lower case."""

characters = st.sampled_from(CODES).map(chr)
names = st.lists(st.text(characters, max_size=2), min_size=1, max_size=4, unique=True)


def spellings(text: str) -> Iterator[Spelled]:
    """All spellings of a text inside a JSON string: a character as it is, by `\\uXXXX` or by a short escape."""
    for parts in product(*map(spellings_of_character, text)):
        out, places = b"", set[int]()
        for part, digits in parts:
            places |= {len(out) + place for place in digits}
            out += part
        yield out, frozenset(places)


def spellings_of_character(char: str) -> list[Spelled]:
    unit = char.encode("utf-16-be").hex()
    escape = "".join("\\u" + unit[k : k + 4] for k in range(0, len(unit), 4)).encode()
    digits = frozenset(place for place in range(len(escape)) if place % 6 >= 2)
    short = {'"': b'\\"', "\\": b"\\\\", "/": b"\\/", "\b": b"\\b"}.get(char)
    plain = [char.encode()] if char >= " " and char not in '"\\' else []
    return [(one, frozenset()) for one in [*plain, *([short] if short else [])]] + [(escape, digits)]


def walk(matcher: Matcher, texts: list[Spelled], begun: bytes = b"") -> None:
    """Assert that exactly these texts may follow, by all queries."""
    here = [(text, places) for text, places in texts if text.startswith(begun)]
    place = len(begun)
    wanted = set[int]()
    for text, places in here:
        if len(text) > place:
            wanted |= {text[place]} | ({text[place] - 32} if place in places and text[place] >= 97 else set())
    assert matcher.next_bytes() == wanted, begun
    assert list_tokens(matcher.mask()) - {256} == wanted, begun
    assert matcher.is_complete == any(len(text) == place for text, _ in here), begun
    for byte in sorted(wanted):
        matcher.advance(byte)
        lower = byte if any(text[place : place + 1] == bytes([byte]) for text, _ in here) else byte + 32
        if byte == lower:
            walk(matcher, here, begun + bytes([byte]))
        else:  # as the same digit in lower case
            follow = {text[place + 1] for text, _ in here if text[place : place + 1] == bytes([lower])}
            assert {byte | 32 if byte | 32 in follow else byte for byte in matcher.next_bytes()} == follow
        matcher.rollback(1)


def read(node: Node, begun: bytes) -> Matcher:
    matcher = compile_grammar(Grammar(node, {}), VOCABULARY).matcher()
    matcher.advance_bytes(begun)
    return matcher


@settings(max_examples=40)
@given(names)
def test_keys_in_any_spelling(names: list[str]) -> None:
    properties = tuple(Property(name, Literal(b"1")) for name in names)
    node = Object(properties, (), LAYOUT, high=1, order="any", escapes="any")
    texts = [(text + b'":1}', places) for name in names for text, places in spellings(name)]
    walk(read(node, b'{"'), texts)


@settings(max_examples=20)
@given(names.filter(lambda names: len(names) > 1), st.data())
def test_keys_that_are_there_already_are_not_written_again(names: list[str], data: st.DataObject) -> None:
    properties = tuple(Property(name, Literal(b"1")) for name in names)
    node = Object(properties, (), LAYOUT, high=2, order="any", escapes="any")
    first = data.draw(st.sampled_from(names))
    texts = [(text + b'":1}', places) for name in names if name != first for text, places in spellings(name)]
    walk(read(node, b'{"' + next(spellings(first))[0] + b'":1,"'), texts)


@pytest.mark.parametrize("first", [0xD000, 0xD7FF, 0xE000, 0xFFFF, 0x10000, 0x103FF, 0x10400, 0x10FBFF, 0x10FC00])
def test_keys_of_neighbouring_characters(first: int) -> None:
    """Which digits may follow depends on just these."""
    for code in {first, *(code for code in (first ^ 1, first ^ 0x400, first ^ 0x3FF, 0x10FFFF, 0x61) if code != first)}:
        if not 0xD800 <= code < 0xE000 and code < 0x110000:
            test_keys_in_any_spelling.hypothesis.inner_test([*{chr(first), chr(code)}])  # type: ignore[attr-defined]


@settings(max_examples=30)
@given(st.lists(st.text("ab\u00e9", max_size=3), min_size=1, max_size=8, unique=True), st.sampled_from(["", "!"]))
def test_keys_and_strings_as_they_stand(names: list[str], end: str) -> None:
    """Also where one begins another."""
    properties = tuple(Property(name, Literal(b"1")) for name in names)
    written = [json.dumps(name, ensure_ascii=False)[1:].encode() for name in names]
    node = Object(properties, (), LAYOUT, high=1, order="any")
    walk(read(node, b'{"'), plain(text + b":1}" for text in written))
    texts = sorted({(name + end).encode() for name in names})
    walk(read(Sequence((Literal(b"<"), Strings(tuple(texts)))), b"<"), plain(texts))
    node = Sequence((Literal(b"<"), Strings(tuple(texts)), Literal(b">")))
    walk(read(node, b"<"), plain(text + b">" for text in texts))


def plain(texts: Iterable[bytes]) -> list[Spelled]:
    return [(text, frozenset()) for text in texts]


def test_the_state_after_a_string_is_stored_once() -> None:
    """By any path: the set holds it once."""
    node = Sequence((Choice((Strings((b"a", b"ab")), Literal(b"a"))), Literal(b"x")))
    matcher = read(node, b"a")
    sets = matcher._state_cache.arrays[at.SETS]
    assert sets[matcher._position[AT_SET] * at.SET_W + at.SET_COUNT] == 2
