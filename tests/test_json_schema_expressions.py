"""The format `regex`: tables, our own reader of patterns as the judge, and the engine against the recogniser."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import assume, given, settings, strategies as st

import constrain
from constrain import Style, Vocabulary
from constrain.errors import RegexError, TokenRefused, UnsupportedError
from constrain.frontends.json_schema import to_grammar
from constrain.frontends.json_schema.strings.expressions import is_regex
from constrain.frontends.regex import parse

VALID = [
    "", "a", r"([abc])+\s+$", "(?<name>x)", r"(?<n>a)\k<n>", r"(a)\1", "(?<=a+)b", "(?=a)b", "[]", "[^]", r"\cA", r"\0",
    "(?i:a)", "(?i-m:x)", "a{1,255}", "a{2}?", "a{2,}", "a*?", "a|b", "|", "()", "(a)*", "(a){2}", "(a){2", "((a)|(b))",
    # What is no quantifier is a character.
    "a{", "}", "]", "{", "{{2}", "a{,5}", "a{x}", "{1",
    "x{10,20}", "x{9,10}", "a{5,05}", "x{100,1000}",
    "[a-z]", "[-a]", "[a-]", "[a-z-]", "[a-b-c]", r"[\w-]", "[--a]", "[---]", "[--]", "[!--]", r"[\]-a]", r"[\0-a]",
    r"[\u0400-\u04ff]", "[а-я]", "[^-a]", "[(]", "[)]",
    r"\p{L}", r"\p{Script=Greek}", r"[\p{L}x]", r"\u{10FFFF}", r"\u{000010FFFF}", r"\/", r"\-", r"\@",
]  # fmt: skip

INVALID = [
    "^(abc]", r"\a", "(?P<name>x)", "(?P<n>a)(?P=n)", "(?#comment)a", "(?i)abc", "(?ims)abc", "(?ii:a)", "(?<>a)",
    "(?<1>a)",
    "*", "^*", "a**", "a???", "(?=a)*", "a|*", "(*)", "\\", "[", "[a", "(", "a)", ")", "[[]]](",
    "{2}", "^{2}", "|{2}", "({2})", "a{2}{3}", "a{2}*", "a*{2}", "(a)*{2}", "(a){2}{2}",
    "a{2,1}", "x{10,9}", "x{20,19}", "x{100,99}", "(a){3,2}", "(a){3,2}?",
    "[z-a]", r"[b-\!]", "[a--x]", r"[\w-x]", r"[a-\d]", "[а-a]",
    r"\01", r"[\01]", r"\x4", r"\u12", r"\u{}", r"\u{110000}", r"\u{1000000}",
    r"\k", r"\k<1>", r"\p", r"\p{}", r"\p{=L}",
]  # fmt: skip


@pytest.mark.parametrize(("texts", "wanted"), [(VALID, True), (INVALID, False)])
def test_tables(texts: list[str], wanted: bool) -> None:
    assert [text for text in texts if is_regex(text) != wanted] == []


def reads(text: str) -> bool:
    """Whether our reader of patterns takes it for one, though perhaps not for one that it can enforce."""
    try:
        parse(text, dialect="ecma", flags="", nesting=100)
    except UnsupportedError:
        return True
    except RegexError:
        return False
    return True


PIECES = ["a", "z", "0", "{", "}", "{2}", "{1,3}", "*", "?", "[", "]", "-", "^", "$", "|", "(", "(?:", ")", ".",
          "\\d", "\\x41", "\\u0042", "\\-", "\\]", "é", "[a-z]", "[^", "(?<n>", ","]  # fmt: skip
TEXTS = st.lists(st.sampled_from(PIECES), max_size=9).map("".join)


@settings(max_examples=600)
@given(TEXTS)
def test_agrees_with_the_reader_of_patterns(text: str) -> None:
    # The reader takes a dash beside a set for a character, which Unicode mode does not.
    assume("[" not in text or not re.search(r"\\d-|-\\d", text))
    assert is_regex(text) == reads(text), text


CONSTRAINT = constrain.compile(Vocabulary.bytes(), schema={"format": "regex", "type": "string"}, style=Style.any())


def accepts(text: str, constraint: constrain.Constraint = CONSTRAINT) -> bool:
    matcher = constraint.matcher()
    try:
        matcher.advance_bytes(json.dumps(text).encode())
    except TokenRefused:
        return False
    return matcher.is_complete


@settings(max_examples=100)
@given(TEXTS)
def test_the_engine_takes_what_is_one(text: str) -> None:
    assert accepts(text) == is_regex(text), text


def test_the_engine_on_the_tables() -> None:
    assert all(map(accepts, VALID)) and not any(map(accepts, INVALID))
    assert accepts("(" * 50 + ")" * 50) and not accepts("(" * 50 + ")" * 49)


def compiled(schema: object) -> constrain.Constraint:
    return constrain.compile(Vocabulary.bytes(), schema=schema, style=Style.any())


def test_beside_other_keywords() -> None:
    some = compiled({"type": "string", "format": "regex", "minLength": 1})
    assert not accepts("", some) and accepts("a", some) and accepts("()", some) and not accepts("(", some)
    flat = compiled({"type": "string", "format": "regex", "pattern": "^[a-c*]{1,3}$"})
    assert accepts("ab*", flat) and not accepts("**", flat) and not accepts("abcc", flat)
    listed = compiled({"format": "regex", "enum": ["(a", "(a)", "*", 3]})
    assert accepts("(a)", listed) and not accepts("(a", listed) and not accepts("*", listed)
    nothing = compiled({"type": ["string", "null"], "format": "regex", "pattern": "^[*]$"})
    assert not accepts("*", nothing)


@pytest.mark.parametrize(
    "schema",
    [
        {"not": {"format": "regex"}},
        {"format": "regex", "maxLength": 9},
        {"format": "regex", "minLength": 2},
        {"format": "regex", "pattern": "a"},
        {"items": {"allOf": [{"format": "regex"}, {"format": "uri"}]}},
        {"propertyNames": {"format": "regex"}},
    ],
)
def test_what_would_take_a_stack_and_more_is_refused(schema: object) -> None:
    with pytest.raises(UnsupportedError, match="nest"):
        to_grammar(schema, style=Style.any())  # type: ignore[arg-type]
