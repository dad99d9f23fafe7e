"""Partial values agree with closing the brackets of every prefix by hand, however the text is cut."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from constrain import ArgumentError
from constrain.decoding.partial_json import NOTHING, PartialJson

TEXTS = st.text(st.characters(codec=None) | st.sampled_from('"\\/\n\té😀\ud83d\ude00'), max_size=6)
NUMBERS = st.integers(-(10**6), 10**25) | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
LAYOUTS: Any = st.sampled_from(
    [{}, {"ensure_ascii": False}, {"indent": 1}, {"separators": (",", ":")}, {"separators": (" , ", " : ")}]
)
HIGH = re.compile(r"(?<!\\)(?:\\\\)*\\u[dD][89abAB][0-9a-fA-F]{2}$")
OPEN_NUMBER = re.compile(r"[-0-9][-+.eE0-9]*$")
BEGUN = re.compile(r"(\\(u[0-9a-fA-F]{0,3})?)?")


def open_brackets(text: str) -> tuple[str, bool]:
    """The brackets that close a text, and whether it ends within a string."""
    closing, inside, escaped = "", False, False
    for char in text:
        if inside:
            inside, escaped = escaped or char != '"', not escaped and char == "\\"
        elif char == '"':
            inside = True
        elif char in "[{":
            closing = "]}"["[{".index(char)] + closing
        elif char in "]}":
            closing = closing[1:]
    return closing, inside


def by_closing(text: str) -> Any:
    """The slow definition: the longest beginning that is JSON once its string and brackets are closed, where a number
    and half of a pair that may go on do not count."""
    for length in range(len(text), 0, -1):
        start, rest = text[:length], text[length:]
        closing, inside = open_brackets(start)
        if not inside and OPEN_NUMBER.search(start) and (not rest or rest[0] in "0123456789.eE+-"):
            continue
        if inside and HIGH.search(start) and BEGUN.fullmatch(rest):
            continue
        try:
            return json.loads(start + '"' * inside + closing)
        except ValueError:
            pass
    return NOTHING


def is_prefix(part: Any, whole: Any) -> bool:
    """Whether a partial value is what was written first of a value."""
    if part is NOTHING:
        return True
    if isinstance(part, list) and isinstance(whole, list):
        ends = part[:-1] == whole[: len(part) - 1] if part else True
        return len(part) <= len(whole) and ends and all(map(is_prefix, part[-1:], whole[len(part) - 1 :]))
    if isinstance(part, dict) and isinstance(whole, dict):
        return list(part) == list(whole)[: len(part)] and all(is_prefix(part[key], whole[key]) for key in part)
    if isinstance(part, str) and isinstance(whole, str):
        return whole.startswith(part)
    return part == whole and type(part) is type(whole)


@given(VALUES, LAYOUTS)
@settings(max_examples=180, deadline=None)
def test_every_prefix_shows_what_closing_it_shows(value: Any, layout: dict) -> None:
    text = json.dumps(value, **layout)
    whole, parser, changes, shown = json.loads(text), PartialJson(), 0, NOTHING
    for length, char in enumerate(text, 1):
        parser.feed(char)
        expected = by_closing(text[:length])
        assert repr(parser.value) == repr(expected), text[:length]
        assert repr(parser.snapshot()) == repr(expected)
        assert is_prefix(parser.value, whole)
        assert (repr(expected) == repr(shown)) or parser.changes > changes
        changes, shown = parser.changes, parser.snapshot()
    parser.finish()
    assert parser.is_finished
    assert repr(parser.value) == repr(whole)
    assert parser.open_path() is None


@given(VALUES, LAYOUTS, st.data())
@settings(max_examples=150, deadline=None)
def test_pieces_of_any_length_show_the_same(value: Any, layout: dict, data: Any) -> None:
    text = json.dumps(value, **layout)
    cuts = sorted({0, len(text), *data.draw(st.lists(st.integers(0, len(text)), max_size=5))})
    parser, kept = PartialJson(), []
    for start, end in zip(cuts, cuts[1:]):
        parser.feed(text[start:end])
        if data.draw(st.booleans()):
            kept.append((parser.snapshot(), repr(parser.value)))
        assert repr(parser.value) == repr(by_closing(text[:end]))
    assert all(repr(snapshot) == seen for snapshot, seen in kept), "a snapshot does not change"


def paths(value: Any, path: tuple = ()) -> Any:
    """Every part of a value with its path."""
    yield path, value
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in children:
        yield from paths(child, (*path, key))


@given(VALUES)
@settings(max_examples=100, deadline=None)
def test_parts_outside_of_the_open_path_are_final(value: Any) -> None:
    text = json.dumps(value)
    whole, parser = json.loads(text), PartialJson()
    for char in text:
        parser.feed(char)
        path = parser.open_path()
        assert (path is None) == (parser.value is NOTHING or parser.is_finished)
        for place, part in () if parser.value is NOTHING else paths(parser.value):
            final = whole
            for key in place:
                final = final[key]
            if path is None or path[: len(place)] != place:
                assert repr(part) == repr(final)


def test_the_open_path_ends_at_the_innermost_value() -> None:
    parser = PartialJson()
    for piece, path in [
        ('{"a"', ()), (": [1, ", ("a",)), ('{"b": "x', ("a", 1, "b")), ('"', ("a", 1)), ("}", ("a",)), ("]", ()),
        ("}", None),
    ]:  # fmt: skip
        parser.feed(piece)
        assert parser.open_path() == path


def test_nesting_is_no_limit() -> None:
    deep = 100_000
    parser = PartialJson()
    parser.feed("[" * deep + '{"a":' * deep + '"x')
    assert len(parser.open_path() or ()) == 2 * deep
    inner = parser.snapshot()
    for _ in range(deep):
        [inner] = inner
    for _ in range(deep):
        inner = inner["a"]
    assert inner == "x"
    parser.feed('"' + "}" * deep + "]" * deep)
    assert parser.is_finished


def test_a_long_stream_is_read_piece_by_piece() -> None:
    parser = PartialJson()
    parser.feed("[")
    for number in range(20_000):
        parser.feed(f"{number}")
        parser.feed(", ")
        assert parser.value[-1] == number
    parser.feed('"')
    for _ in range(50_000):
        parser.feed("ab")
    assert len(parser.value[-1]) == 100_000


def test_numbers_are_shown_when_they_are_complete() -> None:
    parser = PartialJson()
    parser.feed("12")
    assert parser.value is NOTHING
    parser.finish()
    assert parser.value == 12
    digits = "9" * 5000
    big = PartialJson(str)
    big.feed(f"[{digits}, 1.50,")
    assert big.value == [10**5000 - 1, "1.50"]


@pytest.mark.parametrize(
    "text",
    ["]", "}", "[,", "[1,]", "{,", '{"a":}', '{"a" 1', "{1", "[01 ", "[1.]", "[+1", "tru ", "nul1", '"\x01', '"\\x',
     '"\\u12g', "1 2", '"a""', "[}", "{]", "[1}", '{"a":1]', "x", "[- ", "\ufeff1", '{"a",', ":", '{"a":1,}'],
)  # fmt: skip
def test_invalid_json_raises_with_its_position(text: str) -> None:
    for pieces in ([text], list(text)):
        parser = PartialJson()
        with pytest.raises(ArgumentError, match="this is not JSON: at character"):
            for piece in pieces:
                parser.feed(piece)
    with pytest.raises(TypeError, match="text is b'1'"):
        PartialJson().feed(b"1")  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["", " ", "[", '"a', "tru", "-", "1e", "[1", '{"a":1'])
def test_an_end_too_early_is_refused(text: str) -> None:
    parser = PartialJson()
    parser.feed(text)
    with pytest.raises(ArgumentError):
        parser.finish()
