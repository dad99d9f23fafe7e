"""What may come next, in words; where a text is refused; where a keyword lives."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

import constrain
from constrain.authoring.explanations import (
    ByteRefusal,
    describe_expected,
    find_keyword_rows,
    first_refusal,
    join_words,
    refusal_of,
)
from constrain.frontends.json_schema.reading.keywords import KEYWORDS

ROOT = Path(__file__).resolve().parents[2]
BYTES = constrain.Vocabulary.bytes()
PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer", "minimum": 0}, "ok": {"type": "boolean"}},
    "required": ["name", "age"],
    "additionalProperties": False,
}
ANY = constrain.Style.any()
COMPACT = constrain.Style(whitespace="compact")


@cache
def made(source: str, style: constrain.Style = COMPACT) -> constrain.Constraint:
    """A constraint of a schema as JSON text, or of a regex after a slash."""
    if source.startswith("/"):
        return constrain.compile(BYTES, regex=source[1:])
    return constrain.compile(BYTES, schema=source, style=style)


def words(source: Any, prefix: str = "", style: constrain.Style = COMPACT) -> str:
    """What is expected after a prefix, as a sentence."""
    matcher = made(source if isinstance(source, str) else json.dumps(source), style).matcher()
    matcher.advance_bytes(prefix.encode())
    return join_words(describe_expected(matcher))


@pytest.mark.parametrize(
    ("source", "prefix", "said"),
    [
        ({"type": "array", "items": {"type": "integer"}}, "[1", 'a digit, "," or "]"'),
        ({"type": "array", "items": {"type": "integer"}}, "[", 'a digit, "-" or "]"'),
        ({"type": "array", "items": {"type": "boolean"}}, "[", 'false, true or "]"'),
        ({"type": ["string", "null"]}, "", "a string or null"),
        ({"type": "string"}, '"a', "any character or '\"'"),
        ({"type": "string"}, '"\\u00', "a hexadecimal digit"),
        ({"enum": ["abc", "abd", "x", None]}, "", '"abc", "abd", "x" or null'),
        ({"enum": ["abc", "abd", "x", None]}, '"ab', '"c" or "d"'),
        ({"const": "abc"}, '"', '`abc"`'),
        ({"const": "abc"}, '"abc"', "the end of the text"),
        ({"type": "integer"}, "12", "a digit or the end of the text"),
        (PERSON, "{", '`"name":` (then a string)'),
        (PERSON, '{"', '`name":` (then a string)'),
        (PERSON, '{"name":"A"', '`,"age":`'),
        (PERSON, '{"name":"A","age":3', 'a digit, "," or "}"'),
        ("/[a-z]+@", "", "a small letter"),
        ("/[a-z]+@", "ab", 'a small letter or "@"'),
        ("/(foo|bar)!?", "", '"b" or "f"'),
        ("/[!-/:-@]", "", "one of !-/ :-@"),
        ("/[^!-~]", "", "a control character, any character beyond ASCII or white space"),
        ("/é", "", '"é"'),
        ("/.*", "x", "any character or the end of the text"),
    ],
)
def test_words(source: Any, prefix: str, said: str) -> None:
    assert words(source, prefix) == said


def test_half_a_character() -> None:
    matcher = made('{"type": "string"}').matcher()
    matcher.advance_bytes(b'"\xc3')
    assert describe_expected(matcher) == ("the rest of a UTF-8 character",)


def test_keys_in_any_order_are_named() -> None:
    assert words(PERSON, "{", constrain.Style(whitespace="compact", key_order="any")) == '"age", "name" or "ok"'
    assert words(PERSON, '{"ok":true', constrain.Style(whitespace="compact", key_order="any")) == (
        '"," (then "age" or "name")'
    )
    assert words(PERSON, '{"ok":true', ANY) == '"," (then "age" or "name") or white space'


def refused(source: Any, text: str | bytes, style: constrain.Style = ANY) -> ByteRefusal | None:
    data = text.encode() if isinstance(text, str) else text
    return first_refusal(made(json.dumps(source), style), data)


def test_a_valid_text_is_not_refused() -> None:
    assert refused(PERSON, '{"name": "A", "age": 1}\n') is None


@pytest.mark.parametrize(
    ("text", "place", "found"),
    [
        ("", (0, 1, 1), "nothing at all"),
        ("[", (0, 1, 1), '"["'),
        ('{\n "name": "Zoë",\n "age": -1}', (28, 3, 10), '"1"'),
        ('{"name": "é", "age": "x"}', (22, 1, 22), "'\"'"),
        ('{"name": "A"', (12, 1, 13), "the end of the text"),
        ('{"name": "A", "age": 1} x', (24, 1, 25), '"x"'),
        ('{"nome": 1}', (3, 1, 4), '"nome"'),
        (b"\xef\xbb\xbf{}", (0, 1, 1), "a byte order mark"),
        (b'{"name": "\xff', (10, 1, 11), "the byte 0xff"),
    ],
)
def test_the_position_of_a_refusal(text: str | bytes, place: tuple[int, int, int], found: str) -> None:
    refusal = refused(PERSON, text)
    assert refusal is not None
    assert (refusal.offset, refusal.line, refusal.column) == place
    assert refusal.found == found
    assert refusal.expected


def test_a_wrong_string_is_reported_completely() -> None:
    refusal = refused({"enum": ["red", "rose"]}, '"ruby"')
    assert refusal is not None
    assert (refusal.offset, refusal.found, refusal.expected) == (2, '"ruby"', ('"red"', '"rose"', "white space")[:2])


def test_a_piece_after_a_position() -> None:
    matcher = made(json.dumps(PERSON)).matcher()
    matcher.advance_bytes(b'{"name":"A","age":')
    before = matcher.next_bytes()
    assert refusal_of(matcher, b"12}") is None
    refusal = refusal_of(matcher, b"12x")
    assert refusal is not None and refusal.offset == 2
    assert refusal.expected == ("a digit", '","', '"}"')
    assert matcher.next_bytes() == before


@given(st.text(alphabet='{}[]",:0123456789aeflnrstu \\\n', max_size=30))
def test_a_refusal_is_where_the_matcher_stops(text: str) -> None:
    """Oracle: single bytes. No query raises."""
    constraint = made("true", ANY)
    matcher, offset = constraint.matcher(), 0
    for byte in text.encode():
        if byte not in matcher.next_bytes():
            break
        matcher.advance_bytes(bytes((byte,)))
        offset += 1
    refusal = first_refusal(constraint, text.encode())
    if offset == len(text.encode()) and matcher.is_complete:
        assert refusal is None
        json.loads(text)
    else:
        assert refusal is not None and refusal.offset == offset
        assert refusal.expected


@pytest.mark.parametrize("row", KEYWORDS, ids=lambda row: f"{row.name}-{row.since}")
def test_whereabouts_point_at_functions(row: Any) -> None:
    found = [place for place in find_keyword_rows(row.name) if place.how == row.how]
    assert found
    for where in (found[0].parsed_by, found[0].enforced_by):
        if where == "-":
            continue
        matched = re.fullmatch(r"(constrain/\S+\.py):(\d+) (\S+)", where)
        assert matched, where
        line = (ROOT / matched[1]).read_text("utf-8").splitlines()[int(matched[2]) - 1]
        assert "def " in line or "lambda" in line or line.startswith("@")


def test_an_unknown_keyword_has_no_whereabouts() -> None:
    assert find_keyword_rows("minItem") == []
