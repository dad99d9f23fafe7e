"""Distinct instances, and the enumeration of small languages, against brute force over the values of a schema."""

from __future__ import annotations

import itertools
import json
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings, strategies as st

import constrain
from constrain.authoring.samples.distinct_instances import distinct_texts
from constrain.compilation.constraint_compiler import to_grammar
from constrain.engine.text_enumeration import hashable_json, list_texts
from constrain.frontends.regex import to_dfa
from constrain.grammar.nodes import (
    EMPTY,
    Chars,
    Choice,
    Grammar,
    Layout,
    Literal,
    Member,
    NameClass,
    Node,
    Object,
    Property,
    Repeat,
    Rule,
    Sequence,
    Strings,
    Unique,
)
from constrain.sampling.core.token_masses import allowed_tokens

BYTES = constrain.Vocabulary.bytes()
FINITE: list[tuple[Any, int]] = [
    ({"enum": [1, 1.0, True, None, "a"]}, 4),
    ({"type": "boolean"}, 2),
    ({"type": "integer", "minimum": -3, "maximum": 3}, 7),
    ({"type": "string", "pattern": "^[ab]{0,2}$"}, 7),
    ({"type": "array", "items": {"enum": [1, 2]}, "minItems": 1, "maxItems": 2}, 6),
    ({"properties": {"a": {"enum": [1, 2]}, "b": {"const": 0}, "c": {"type": "null"}}, "type": "object",
      "additionalProperties": False, "required": ["b"], "maxProperties": 2}, 4),
    ({"properties": {"a": {"const": 1}, "b": {"const": 2}}, "type": "object", "additionalProperties": False,
      "dependentRequired": {"a": ["b"]}}, 3),
    ({"type": "object", "maxProperties": 0}, 1),
]  # fmt: skip


def drawn(schema: Any, n: int, **style: Any) -> list[bytes]:
    constraint = constrain.compile(BYTES, schema=schema, style=constrain.Style(**style))
    return list(distinct_texts(constraint, n, rng=np.random.default_rng(1)))


@pytest.mark.parametrize(("schema", "count"), FINITE)
def test_all_of_a_finite_schema(schema: Any, count: int) -> None:
    listed = list_texts(to_grammar(schema=schema), 100)
    assert listed is not None
    assert len({hashable_json(text) for text in listed}) == count
    made = drawn(schema, 30)
    assert len(made) == len({hashable_json(text) for text in made}) == count


RECURSIVE = {"$ref": "#/$defs/n", "$defs": {"n": {"items": {"$ref": "#/$defs/n"}}}}


@pytest.mark.parametrize(
    "schema", [True, {"type": "number"}, {"type": "object"}, {"minItems": 1, "type": "array"}, RECURSIVE]
)
def test_infinite_languages_are_not_enumerated(schema: Any) -> None:
    assert list_texts(to_grammar(schema=schema), 100) is None
    assert len({hashable_json(text) for text in drawn(schema, 50)}) == 50


def test_an_enumeration_is_that_of_brute_force() -> None:
    schema = {"type": "array", "items": {"enum": ["x", None, 2]}, "minItems": 1, "maxItems": 3}
    listed = list_texts(to_grammar(schema=schema), 1000)
    assert listed is not None
    every = [list(row) for size in (1, 2, 3) for row in itertools.product(["x", None, 2], repeat=size)]
    values = [json.loads(text) for text in listed]
    assert len(values) == len(every)
    assert all(value in values for value in every)


def test_a_cross_check_can_reject_an_instance() -> None:
    constraint = constrain.compile(BYTES, schema={"type": "integer", "minimum": 0, "maximum": 9})
    made = distinct_texts(constraint, 20, rng=np.random.default_rng(0), agree=lambda text: int(text) % 2 == 0)
    assert sorted(map(int, made)) == [0, 2, 4, 6, 8]


@pytest.mark.parametrize(("one", "other", "same"), [(b"1", b"1.0", True), (b"1", b"true", False), (b"[", b"[", True),
                                                    (b'{"a":1,"b":2}', b'{"b": 2, "a": 1}', True)])  # fmt: skip
def test_sameness_is_that_of_json_values(one: bytes, other: bytes, same: bool) -> None:
    assert (hashable_json(one) == hashable_json(other)) == same


# ---- grammars that are made by hand ----------------------------------------------------------------------------------

TIGHT = Layout(EMPTY, EMPTY, Literal(b","), Literal(b":"), EMPTY)
LOOSE = Layout(Literal(b" "), Literal(b"\n"), Literal(b", "), Literal(b": "), Literal(b"\t"))
DIGIT = Strings((b"1", b"2"))
PIECES = st.sampled_from([
    EMPTY, Literal(b"x"), DIGIT, Rule("three"), Repeat(EMPTY, 2, 3), Repeat(EMPTY, 0, None),
    Chars(to_dfa("[ab]{0,2}")), Chars(to_dfa("[ab]*"), low=1, high=2), Chars(to_dfa("\"|é"), "json"),
])  # fmt: skip
NODES = st.recursive(
    PIECES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda parts: Sequence(tuple(parts))),
        st.lists(inner, min_size=1, max_size=3).map(lambda parts: Choice(tuple(parts))),
        st.builds(lambda node, low, more: Repeat(node, low, low + more), inner, st.integers(0, 2), st.integers(0, 1)),
    ),
    max_leaves=4,
)


def properties(names: list[str]) -> st.SearchStrategy[tuple[Property, ...]]:
    needs = st.sets(st.sampled_from(names), max_size=1).map(frozenset)
    return st.tuples(*(st.builds(Property, st.just(name), PIECES, st.booleans(), needs) for name in names))


OBJECTS = st.builds(
    lambda given, others, layout, low, high: Object(
        given, (NameClass(to_dfa("[xy]"), DIGIT),) * others, layout,
        0 if any(one.needs for one in given) else low, 0 if others else high,
    ),
    properties(["a", 'é"', "b"]), st.booleans(), st.sampled_from([TIGHT, LOOSE]), st.integers(0, 3),
    st.none() | st.integers(0, 3),
)  # fmt: skip


def language(grammar: Grammar) -> set[bytes]:
    """Every text that a Matcher takes, byte by byte; JSON strings in their canonical spelling only."""
    found, begun = set[bytes](), [(constrain.compile_grammar(grammar, BYTES).matcher(), b"")]
    while begun:
        matcher, text = begun.pop()
        if matcher.is_complete:
            found.add(text)
        for token in allowed_tokens(matcher.mask()).tolist():
            longer = text + (BYTES.tokens[token] or b"")
            if token not in BYTES.eos_ids and not longer.endswith(b"\\u"):
                after = matcher.fork()
                after.advance(token)
                begun.append((after, longer))
    return found


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.one_of(NODES, OBJECTS))
def test_the_list_is_what_a_matcher_takes(node: Node) -> None:
    grammar = Grammar(node, {"three": Choice((DIGIT, Literal(b"3")))})
    listed = list_texts(grammar, 100_000)
    assert listed is not None
    assert listed == sorted(set(listed), key=lambda text: (len(text), text))
    assume(0 < len(listed) < 100)
    assert language(grammar) == set(listed)


VALUES = [b"1", b"2", b"1.0", b"true", b'"a"', b"[]", b"null"]


@settings(max_examples=25, deadline=None)
@given(st.lists(st.sampled_from(VALUES), min_size=2, max_size=4, unique=True), st.booleans())
def test_members_of_a_list_differ(values: list[bytes], more: bool) -> None:
    one = Member(Strings(tuple(values)))
    pair = Sequence((one, Literal(b","), one))
    node = Sequence((Literal(b"["), Unique(Choice((pair, one)) if more else pair), Literal(b"]")))
    pairs = [(a, b) for a, b in itertools.product(values, repeat=2) if hashable_json(a) != hashable_json(b)]
    wanted = {b"[%s,%s]" % one for one in pairs} | {b"[%s]" % value for value in values if more}
    assert set(list_texts(Grammar(node, {}), 100) or ()) == wanted


def test_languages_beyond_the_limit_are_not_enumerated() -> None:
    other = (NameClass(to_dfa("[xy]"), DIGIT),)
    member = Member(DIGIT, again=Rule("end"))
    for node in (
        Object((), other, TIGHT), Object((), other, TIGHT, 0, 1), Repeat(DIGIT, 0, None), Repeat(DIGIT, 0, 101),
        Unique(Sequence((member, Rule("end")))), Rule("round"), Repeat(DIGIT, 7, 7), Chars(to_dfa("[a-z]{2}")),
        Object(tuple(Property(f"{i}", DIGIT) for i in range(13)), (), TIGHT),
    ):  # fmt: skip
        rules = {"end": EMPTY, "round": Choice((EMPTY, Sequence((Rule("round"), DIGIT))))}
        assert list_texts(Grammar(node, rules), 100) is None


@pytest.mark.parametrize("count", [1, 2, 5])
def test_the_requested_number_is_listed(count: int) -> None:
    options = tuple(b"%d" % i for i in range(count))
    pattern = to_dfa("|".join(map(str, range(count))))
    for node in (Strings(options), Chars(pattern), Choice(tuple(map(Literal, options)))):
        assert list_texts(Grammar(node, {}), count) == list(options)
        assert list_texts(Grammar(node, {}), count - 1) is None
