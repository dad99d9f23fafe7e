"""Intersections of a Grammar with a Dfa, and expanded objects, against membership in both."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from typing import Any

import jsonschema
import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st

from constrain import LimitError, Limits, Style, UnsupportedError, Vocabulary
from constrain.automata.dfa import Dfa
from constrain.compilation.constraint_compiler import compile_grammar
from constrain.frontends import json_schema
from constrain.frontends.gbnf import to_grammar
from constrain.frontends.regex import to_dfa
from constrain.grammar.intersection import intersect_grammar
from constrain.grammar.json_spelling import spell_as_json
from constrain.grammar.nodes import EMPTY, Chars, Choice, Grammar, JsonString, Literal, Node, Repeat, Sequence
from constrain.grammar.object_expansion import expand_objects
from tests import grammar_factory as make
from tests.grammar_oracle import Reference
from tests.grammar_strategies import dfas
from tests.recogniser_oracle import accepts

PATTERNS = ["(aa)*", "a*b*", "[ab(]{1,3}", "(a|b|[()])*(a|\\))", "[^b]*", "(ab|ba|b\\()*", ".*aa.*", "(..)*", "x?"]
ALL = ["".join(word) for length in range(5) for word in product("ab()", repeat=length)]


STARTS: dict[str, Callable[[Node], Node]] = {
    "as it is": lambda start: start,
    "twice": lambda start: Sequence((start, start)),
    "two or three times": lambda start: Repeat(start, 2, 3),
    "any number of times": lambda start: Repeat(start, 0, None),
    "or nothing": lambda start: Choice((start, EMPTY)),
}


@settings(max_examples=20)
@given(make.rules, st.sampled_from(PATTERNS), st.sampled_from(sorted(STARTS)))
def test_the_texts_of_both(grammar: Grammar, pattern: str, start: str) -> None:
    grammar = Grammar(STARTS[start](grammar.start), grammar.rules)
    assume(make.sound(grammar))
    dfa = to_dfa(pattern, flags="s")
    before = Reference(grammar)
    wanted = {text for text in ALL if before.accepts(text.encode()) and dfa.accepts(text)}
    made = intersect_grammar(grammar, dfa)
    if made is None:
        assert not wanted
        return
    after = Reference(made)
    assert make.sound(made)
    for text in ALL:
        assert after.accepts(text.encode()) == (text in wanted), text


@pytest.mark.parametrize(
    ("low", "high", "pattern", "inside", "outside"),
    [
        (0, None, "[a-z]{0,3}", ["", "abc"], ["abcd"]),
        (2, 5, "(aa)*", ["aa", "aaaa"], ["", "aaa", "aaaaaa"]),
        (1, None, "(aa)*b?", ["aa", "b", "aab"], ["", "a", "ab"]),
        (1000, 2000, "a*", ["a" * 1000, "a" * 1500], ["a" * 999, "a" * 2001]),
    ],
)
def test_counted_characters(low: int, high: int | None, pattern: str, inside: list[str], outside: list[str]) -> None:
    made = intersect_grammar(Grammar(Chars(Dfa.any_text(), "utf8", low, high), {}), to_dfa(pattern))
    assert made is not None
    for text in inside:
        assert accepts(made, text), text
    for text in outside:
        assert not accepts(made, text), text


@pytest.mark.parametrize("start", sorted(STARTS))
def test_a_start_that_is_no_rule(start: str) -> None:
    """Where one rule leads is known only after the start was looked at for the first time."""
    one = to_grammar('root ::= "(" root ")" | ""')
    grammar = Grammar(STARTS[start](one.start), one.rules)
    two_hills = to_dfa("\\(*\\)*(\\(*\\)*)?")
    made = intersect_grammar(grammar, two_hills)
    assert made is not None
    before, after = Reference(grammar), Reference(made)
    for text in ("", "()", "()()", "(())()", "()()()", "()()()()", "(", "())"):
        assert after.accepts(text.encode()) == (before.accepts(text.encode()) and two_hills.accepts(text)), text


def test_brackets_of_even_length() -> None:
    grammar = to_grammar('root ::= "(" root* ")" | "x"')
    made = intersect_grammar(grammar, to_dfa("(..)*"))
    assert made is not None
    oracle, both = Reference(made), Reference(grammar)
    for word in product("(x)", repeat=6):
        text = "".join(word).encode()
        assert oracle.accepts(text) == both.accepts(text)
    assert not oracle.accepts(b"x")
    assert not oracle.accepts(b"(x)")


def test_a_grammar_of_endless_rules_is_refused() -> None:
    with pytest.raises(LimitError, match="more than 500 rules"):  # indentation has no end
        expand_objects(
            json_schema.to_grammar(SCHEMA, style=Style(whitespace=2)), "a test", limits=Limits(dfa_states=500)
        )


def test_nothing_in_common_and_too_much() -> None:
    assert intersect_grammar(Grammar(Literal(b"ab"), {}), to_dfa("a*")) is None
    with pytest.raises(LimitError, match="more than 50"):
        intersect_grammar(
            to_grammar('root ::= "(" root* ")" | ("x" | "y" root){7}'), to_dfa("(.{7})*"), Limits(dfa_states=50)
        )


SCHEMA = {
    "type": "object",
    "properties": {
        "a": {"type": "integer"},
        "b": {"type": "array", "items": {"type": "string", "maxLength": 3}},
        "c": {"$ref": "#"},
    },
    "required": ["b"],
    "additionalProperties": False,
    "dependentRequired": {"a": ["c"]},
}
DOCUMENTS = [
    *({"b": []}, {"a": 1, "b": []}, {"a": 1, "b": ["abc"], "c": {"b": []}}, {"b": ["abcd"]}, {"c": {"b": []}, "b": []}),
    *({"b": ["é😀\n"]}, {}, {"a": 1}, {"b": [], "a": 1, "c": {"b": [""]}}, {"b": [], "d": 1}),
]


@pytest.mark.parametrize("style", [Style(), replace(Style.any(), numbers="plain"), Style(whitespace="compact")])
def test_objects_are_expanded(style: Style) -> None:
    grammar = json_schema.to_grammar(SCHEMA, style=style)
    plain = expand_objects(grammar, "a test")
    hits = 0
    for document in DOCUMENTS:
        for ascii_only, marks in product((True, False), (None, (",", ":"))):
            text = json.dumps(document, ensure_ascii=ascii_only, separators=marks)
            hits += accepts(grammar, text)
            assert accepts(plain, text) == accepts(grammar, text), text
    assert hits > 3


@pytest.mark.parametrize(
    ("schema", "cause"),
    [
        ({"type": "object"}, "undeclared keys"),
        ({"type": "array", "uniqueItems": True, "items": {"type": "integer"}}, "unique array items"),
        ({"properties": {c: {} for c in "abcdefghi"}, "type": "object", "additionalProperties": False}, "512"),
        ({"minimum": 3, "type": "number"}, "numbers with an exponent"),
    ],
)
def test_expand_objects_names_the_inexpressible_construct(schema: dict[str, object], cause: str) -> None:
    with pytest.raises(UnsupportedError, match=cause) as caught:
        expand_objects(json_schema.to_grammar(schema, style=Style(key_order="any", numbers="any")), "an export")
    assert caught.value.hint


OPEN_SCHEMAS: list[dict[str, Any]] = [
    {"type": "object"},
    {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], "minProperties": 2},
    {"type": "object", "patternProperties": {"^a": {"type": "integer"}}, "additionalProperties": {"type": "string"}},
    {"type": "object", "additionalProperties": {"type": "object", "additionalProperties": {"type": "null"}}},
    {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
]
MEMBERS = [
    '"a":1',
    '"b":1',
    '"ab":"a"',
    '"ab":"b"',
    '"b":{}',
    '"a":{"a":null}',
    '"\\u0061":1',
    '"a":{"b":null,"b":null}',
]
OPEN_TEXTS = [
    *("{" + ",".join(members) + "}" for length in range(3) for members in product(MEMBERS, repeat=length)),
    *(
        "[" + ",".join(items) + "]"
        for length in range(4)
        for items in product(('"a"', '"b"', '"\\u0062"'), repeat=length)
    ),
]


@pytest.mark.parametrize("pattern", [".*b.*", "[^b]*", "(..)*", '.*"a".*b.*', "[^0-9]*1?[^0-9]*"])
@pytest.mark.parametrize("schema", OPEN_SCHEMAS, ids=str)
@pytest.mark.parametrize("order", ["schema", "any"])
def test_undeclared_keys_and_unique_strings_differ(schema: dict[str, Any], pattern: str, order: Any) -> None:
    grammar = json_schema.to_grammar(schema, style=Style(key_order=order, whitespace="compact", escapes="any"))
    dfa = to_dfa(pattern, flags="s")
    made = intersect_grammar(grammar, dfa)
    assert made is not None
    wanted = {text for text in OPEN_TEXTS if accepts(grammar, text) and dfa.accepts(text)}
    assert {text for text in OPEN_TEXTS if accepts(made, text)} == wanted


@pytest.mark.parametrize("schema", OPEN_SCHEMAS, ids=str)
def test_no_text_with_undeclared_keys_ends_in_a_dead_end(schema: dict[str, Any]) -> None:
    """From every position that tokens lead to there is a completion, which both accept."""
    pattern = ".*ab.*"
    made = intersect_grammar(json_schema.to_grammar(schema, style=Style(whitespace="compact")), to_dfa(pattern))
    assert made is not None
    constraint, rng = compile_grammar(made, Vocabulary.bytes()), np.random.default_rng(1)
    preferred = np.array([ord(char) for char in '{}[]":,ab1'])
    for _ in range(20):
        matcher, text = constraint.matcher(), b""
        while not matcher.is_finished and len(text) < 40:
            allowed = [token for token in preferred if matcher.allows(int(token))]
            if not allowed:
                break
            token = int(rng.choice(allowed))
            matcher.advance(token)
            text += bytes([token])
            rest = matcher.shortest_completion()
            assert rest is not None
        whole = (text + rest).decode()
        value = json.loads(whole, object_pairs_hook=list_distinct)
        jsonschema.validate(value, schema)
        assert re.fullmatch(pattern, whole)


def list_distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of which no key is repeated."""
    assert len(dict(pairs)) == len(pairs)
    return dict(pairs)


@settings(max_examples=40)
@given(dfas(), st.text('ab\\"u0619é\U0001f600cd8', max_size=8))
def test_spellings(dfa: Dfa, text: str) -> None:
    made = spell_as_json(dfa, max_states=5000)
    grammar = Grammar(JsonString(dfa), {})
    for one in (text, json.dumps(text)[1:-1]):
        wanted = accepts(grammar, f'"{one}"') if readable(one) else False
        assert made.accepts(one) == wanted


def readable(text: str) -> bool:
    """Return whether it is the content of one JSON string, without partial characters."""
    try:
        json.loads(f'"{text}"').encode()
    except ValueError:
        return False
    return True
