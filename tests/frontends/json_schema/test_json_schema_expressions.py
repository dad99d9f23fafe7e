"""The format `regex`: tables, the pattern parser as the reference, and the engine against the recogniser."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import cache

import pytest
from hypothesis import assume, given, settings, strategies as st

import constrain
from constrain import Style, Vocabulary
from constrain.base.errors import RegexError, UnsatisfiableError, UnsupportedError
from constrain.frontends.json_schema.strings.regex_format import is_regex
from constrain.frontends.regex import parse_pattern
from tests.text_acceptance import accepts_text

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


def test_bounds_of_a_quantifier_of_a_group() -> None:
    pairs = [(low, high) for low in (*range(100), 100, 305) for high in (*range(100), 100, 305)]
    assert [pair for pair in pairs if is_regex(f"(a){{{pair[0]},{pair[1]}}}?") != (pair[0] <= pair[1])] == [(305, 100)]


def reads(text: str) -> bool:
    """Whether our reader of patterns takes it for one, though perhaps not for one that it can enforce."""
    try:
        parse_pattern(text, dialect="ecma", flags="", nesting=100)
    except UnsupportedError:
        return True
    except RegexError:
        return False
    return True


PIECES = ["a", "z", "0", "{", "}", "{2}", "{1,3}", "*", "?", "[", "]", "-", "^", "$", "|", "(", "(?:", ")", ".",
          "\\d", "\\x41", "\\u0042", "\\-", "\\]", "é", "[a-z]", "[^", "(?<n>", ","]  # fmt: skip
TEXTS = st.lists(st.sampled_from(PIECES), max_size=9).map("".join)


@settings(max_examples=360)
@given(TEXTS)
def test_agrees_with_the_reader_of_patterns(text: str) -> None:
    # The reader takes a dash beside a set for a character, which Unicode mode does not.
    assume("[" not in text or not re.search(r"\\d-|-\\d", text))
    assert is_regex(text) == reads(text), text


@cache
def compiled_text(schema: str) -> constrain.Constraint:
    """Compile a schema, given as JSON; each once, and none when tests are collected, which every process does."""
    return constrain.compile(Vocabulary.bytes(), schema=json.loads(schema), style=Style.any())


def compiled(schema: object) -> constrain.Constraint:
    return compiled_text(json.dumps(schema))


def accepts_value(text: str, constraint: constrain.Constraint | None = None) -> bool:
    return accepts_text(constraint or compiled({"format": "regex", "type": "string"}), json.dumps(text))


@settings(max_examples=100)
@given(TEXTS)
def test_the_engine_takes_what_is_one(text: str) -> None:
    assert accepts_value(text) == is_regex(text), text


def test_the_engine_on_the_tables() -> None:
    assert all(map(accepts_value, VALID)) and not any(map(accepts_value, INVALID))
    assert accepts_value("(" * 50 + ")" * 50) and not accepts_value("(" * 50 + ")" * 49)


def test_beside_other_keywords() -> None:
    some = compiled({"type": "string", "format": "regex", "minLength": 1})
    assert (
        not accepts_value("", some)
        and accepts_value("a", some)
        and accepts_value("()", some)
        and not accepts_value("(", some)
    )
    flat = compiled({"type": "string", "format": "regex", "pattern": "^[a-c*]{1,3}$"})
    assert accepts_value("ab*", flat) and not accepts_value("**", flat) and not accepts_value("abcc", flat)
    listed = compiled({"format": "regex", "enum": ["(a", "(a)", "*", 3]})
    assert accepts_value("(a)", listed) and not accepts_value("(a", listed) and not accepts_value("*", listed)
    nothing = compiled({"type": ["string", "null"], "format": "regex", "pattern": "^[*]$"})
    assert not accepts_value("*", nothing)


PIECES = st.sampled_from([
    "(", ")", "(?:", "(?=", "(?<a>", "(?<", "(?", "*", "+", "?", "a", "[", "]", "\\", "|", "{", "2", "}", ",", "(?i:",
    "{3,2}", "{1,2}", "^", "b", "(?<!",
])  # fmt: skip
texts = st.lists(PIECES, max_size=7).map("".join)

CONDITIONS = [
    ({"maxLength": 6}, lambda text: len(text) <= 6),
    ({"minLength": 2}, lambda text: len(text) >= 2),
    ({"pattern": r"^\(a"}, lambda text: text.startswith("(a")),
    ({"pattern": "a.*b", "minLength": 4}, lambda text: 0 <= text.find("a") < text.rfind("b") and len(text) >= 4),
    ({"not": {"enum": ["a", "(a)", "((a)b)", "("]}}, lambda text: text not in ("a", "(a)", "((a)b)", "(")),
    ({"enum": ["a", "(a)", "((a)b)", "("]}, lambda text: text in ("a", "(a)", "((a)b)", "(")),
    ({}, lambda text: True),
]
BESIDE = [
    ({"type": "string", **condition, **said}, holds, wanted)
    for condition, holds in CONDITIONS
    for said, wanted in (({"format": "regex"}, True), ({"allOf": [{"not": {"format": "regex"}}]}, False))
]


@pytest.mark.slow
@given(texts)
def test_beside_any_condition_and_as_a_complement(text: str) -> None:
    for schema, holds, wanted in BESIDE:
        assert accepts_value(text, compiled(schema)) == (holds(text) and is_regex(text) == wanted), text


def test_nothing_left_is_unsatisfiable() -> None:
    for schema in (
        {"pattern": r"^\([^)]*$"}, {"pattern": r"^\*"}, {"not": {"format": "regex"}}, {"pattern": "a", "maxLength": 0},
    ):  # fmt: skip
        with pytest.raises(UnsatisfiableError):
            compiled({"type": "string", "format": "regex", "allOf": [schema]})


keys = st.dictionaries(texts | st.sampled_from(["ab", "(", "(a)"]), st.sampled_from([None, 1]), max_size=4)
OBJECTS: list[tuple[dict[str, object], Callable[[dict[str, object]], bool]]] = [
    ({"propertyNames": {"format": "regex"}}, lambda value: all(map(is_regex, value))),
    ({"not": {"propertyNames": {"format": "regex"}}}, lambda value: not all(map(is_regex, value))),
    (
        {"propertyNames": {"format": "regex", "minLength": 1}, "properties": {"ab": {"type": "null"}, "(": {}},
         "required": ["ab"], "maxProperties": 3, "additionalProperties": {"type": "integer"}},
        lambda value: all(name and is_regex(name) for name in value) and "ab" in value and len(value) <= 3
        and all((each is None) == (name == "ab") for name, each in value.items()),
    ),
    (
        {"propertyNames": {"format": "regex"}, "minProperties": 2, "dependentRequired": {"ab": ["(a)"]}},
        lambda value: all(map(is_regex, value)) and len(value) >= 2 and ("ab" not in value or "(a)" in value),
    ),
]  # fmt: skip


def compiled_object(schema: dict[str, object]) -> constrain.Constraint:
    return compiled({"type": "object", **schema})


@given(keys)
def test_as_keys(value: dict[str, object]) -> None:
    for schema, holds in OBJECTS:
        assert accepts_text(compiled_object(schema), json.dumps(value)) == holds(value), value


def test_no_key_comes_twice() -> None:
    constraint = compiled_object(OBJECTS[0][0])
    assert accepts_text(constraint, '{"(a)": 1, "(b)": 2}')
    assert not accepts_text(constraint, '{"(a)": 1, "(a)": 2}')
    assert not accepts_text(constraint, r'{"(a)": 1, "\u0028a)": 2}')


@pytest.mark.parametrize("name", ["http://json-schema.org/draft-06/schema", "http://json-schema.org/draft-07/schema",
                                  "https://json-schema.org/draft/2019-09/schema",
                                  "https://json-schema.org/draft/2020-12/schema"])  # fmt: skip
@pytest.mark.parametrize("style", [Style(), Style.any()])
def test_the_meta_schemas(name: str, style: Style) -> None:
    constraint = constrain.compile(Vocabulary.bytes(), schema={"$schema": name, "$ref": name}, style=style)
    assert accepts_text(constraint, '{"patternProperties": {"^(a)": {"type": "string"}}}')
    assert not accepts_text(constraint, '{"patternProperties": {"^(a": {"type": "string"}}}')
    assert not accepts_text(constraint, '{"pattern": "("}')
    assert not accepts_text(constraint, '{"minLength": -1}')


def test_too_much_work_is_refused_when_the_schema_is_compiled() -> None:
    with pytest.raises(constrain.LimitError, match="not a regular language"):
        compiled({"type": "string", "format": "regex", "maxLength": 20})
