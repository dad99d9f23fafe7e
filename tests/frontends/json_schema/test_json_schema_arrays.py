"""Arrays: prefixes, rests, lengths, `contains` and its counts; and what is written for them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import constrain
from constrain.authoring.samples.random_instances import random_text
from constrain.base.errors import LimitError, UnsatisfiableError, UnsupportedError
from constrain.base.options import Limits, Style
from constrain.frontends.json_schema import to_grammar
from constrain.frontends.json_schema.arrays.array_cases import (
    complement_array,
    intersect_arrays,
    is_array_subset,
    simplify_array,
)
from constrain.frontends.json_schema.arrays.integer_feasibility import CountConstraint, is_feasible
from constrain.frontends.json_schema.core.schema_sets import ANY, NEVER, intersect_sets
from constrain.frontends.json_schema.shapes.array_case import ArrayCase, ContainsConstraint
from constrain.grammar.nodes import Node, Repeat
from tests.dead_end_oracle import dead_parts
from tests.recogniser_oracle import accepts
from tests.schema_strategies import counting, item_values, valid

LISTS: list[Any] = [
    [], [1], [None], ["a"], [1, 2], [1, "a"], ["a", 1], [1, 2, 3], ["a", "b", "c"], [1, None, "a"], [1, 2, 3, 4], [[]],
    [{}], [[1], [2]], [1, 1], [True, 1],
]  # fmt: skip


@pytest.mark.parametrize(
    "schema",
    [
        {"items": {"type": "integer"}},
        {"items": False},
        {"items": {"type": "integer"}, "minItems": 2},
        {"minItems": 1, "maxItems": 3},
        {"maxItems": 0},
        {"prefixItems": [{"type": "integer"}, {"type": "string"}]},
        {"prefixItems": [{"type": "integer"}, {"type": "string"}], "items": False},
        {"prefixItems": [{"type": "integer"}, {"type": "string"}], "items": {"type": "null"}, "minItems": 1},
        {"prefixItems": [{"type": "integer"}, False]},
        {"prefixItems": [{"type": "integer"}], "maxItems": 1},
        {"contains": {"type": "string"}},
        {"contains": {"type": "string"}, "maxItems": 2},
        {"contains": {"type": "string"}, "minItems": 2, "maxItems": 3},
        {"contains": {"type": "string"}, "minItems": 3},
        {"contains": {"type": "string"}, "minContains": 0},
        {"contains": {"type": "string"}, "prefixItems": [{"type": "integer"}]},
        {"contains": {"const": "a"}, "items": {"enum": ["a", "b", "c"]}},
        {"contains": {"type": "integer"}, "items": {"type": "integer"}},
        {"contains": True},
        {"contains": {"type": "string"}, "minContains": 2},
        {"contains": {"type": "string"}, "minContains": 2, "maxItems": 2},
        {"contains": {"type": "string"}, "minContains": 2, "maxContains": 2},
        {"contains": {"type": "string"}, "maxContains": 1},
        {"contains": {"type": "integer"}, "minContains": 1, "maxContains": 3, "minItems": 3, "maxItems": 3},
        {"contains": {"type": "string"}, "minContains": 2, "prefixItems": [{"type": "integer"}, {"type": "string"}]},
        {"contains": {"type": "string"}, "minContains": 0, "maxContains": 0},
        {"contains": {"type": "string"}, "minContains": 0, "maxContains": 1},
        {"maxContains": 0, "minContains": 7},
        {"contains": True, "minContains": 2, "maxContains": 3},
        {"contains": False, "minContains": 0, "maxContains": 3},
        {"allOf": [{"contains": {"type": "string"}}, {"contains": {"type": "integer"}}]},
        {"allOf": [{"contains": {"const": "a"}}, {"contains": {"type": "string"}, "maxContains": 1}], "maxItems": 2},
        {"oneOf": [{"contains": {"type": "string"}}, {"contains": {"type": "integer"}}]},
        {"not": {"contains": {"type": "string"}, "minContains": 2}},
        {"not": {"contains": {"type": "string"}, "maxContains": 1}},
        {"not": {"contains": {"type": "string"}, "minContains": 2, "maxContains": 2}, "items": {"type": "string"}},
        {"not": {"items": {"type": "integer"}}, "contains": {"type": "integer"}, "maxItems": 2},
        {"not": {"contains": {"type": "string"}}},
        {"not": {"items": {"type": "integer"}}},
        {"not": {"minItems": 2}},
        {"not": {"prefixItems": [{"type": "integer"}, {"type": "string"}]}},
        {"not": {"maxItems": 2}},
        {"allOf": [{"minItems": 1}, {"maxItems": 2}, {"items": {"type": ["integer", "null"]}}]},
        {"allOf": [{"prefixItems": [{"type": "integer"}]}, {"items": {"minimum": 2}}]},
        {"enum": [[1, "a"], [[]], 3]},
        {"const": [1, True]},
        {"oneOf": [{"items": {"type": "integer"}}, {"items": {"type": "string"}}]},
        {"oneOf": [{"minItems": 2}, {"maxItems": 2}]},
        {"uniqueItems": True, "maxItems": 1},
        {"uniqueItems": True, "prefixItems": [{"type": "integer"}, {"type": "string"}], "items": False},
        {"uniqueItems": False},
    ],
)
def test_verdicts(schema: dict[str, Any]) -> None:
    grammar = to_grammar(schema, style=Style.any())
    for value in [*LISTS, None, 1, {}]:
        assert accepts(grammar, json.dumps(value)) == valid(schema, value), value


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "array", "minItems": 2, "maxItems": 1},
        {"type": "array", "minItems": 1, "items": False},
        {"type": "array", "minItems": 2, "prefixItems": [{}, False]},
        {"type": "array", "contains": False},
        {"type": "array", "contains": {"type": "string"}, "items": {"type": "null"}},
        {"type": "array", "contains": {}, "maxItems": 0},
        {"type": "array", "contains": {"const": 1}, "minContains": 3, "maxItems": 2},
        {"type": "array", "contains": {"const": 1}, "minContains": 2, "maxContains": 1},
        {"type": "array", "contains": {"const": 1}, "maxContains": 1, "items": {"const": 1}, "minItems": 2},
        {"type": "array", "contains": {"const": 1}, "allOf": [{"contains": {"const": 2}}], "maxItems": 1},
        {
            "type": "array",
            "contains": {"type": "integer"},
            "minContains": 2,
            "prefixItems": [{}, {"type": "null"}],
            "maxItems": 2,
        },
        {"type": "array", "items": {"$ref": "#"}, "minItems": 1},
    ],
)
def test_no_array(schema: dict[str, Any]) -> None:
    with pytest.raises(UnsatisfiableError):
        to_grammar(schema)


def nodes_in(node: Any) -> Iterator[Node]:
    todo = [node]
    while todo:
        node = todo.pop()
        yield node
        for name in getattr(node, "__slots__", ()):
            part = getattr(node, name)
            todo.extend(item for item in (part if isinstance(part, tuple) else (part,)) if hasattr(item, "__slots__"))


def test_counts_are_counted_and_not_unrolled() -> None:
    grammar = to_grammar({"type": "array", "items": {"type": "null"}, "minItems": 5_000, "maxItems": 1_000_000})
    body = grammar.rules[grammar.start.name]  # type: ignore[union-attr]
    found = list(nodes_in(body))
    assert [(node.low, node.high) for node in found if isinstance(node, Repeat)] == [(4_999, 999_999)]
    assert len(found) < 50


@given(counting, st.lists(item_values, max_size=12))
@settings(max_examples=150)
def test_item_counts_agree_with_jsonschema(schema: dict[str, Any], lists: list[Any]) -> None:
    schema = {"type": "array", **schema}
    lists = [*LISTS, *lists]
    try:
        grammar = to_grammar(schema, style=Style.any())
    except UnsatisfiableError:
        assert not any(valid(schema, value) for value in lists)
        return
    except UnsupportedError as error:
        assert "complement of uniqueItems" in error.cause
        return
    for value in lists:
        assert accepts(grammar, json.dumps(value)) == valid(schema, value), value
    assert dead_parts(grammar) == []


BYTES = constrain.Vocabulary.bytes()


@given(counting, st.integers(0, 99))
@settings(max_examples=60)
def test_counted_items_have_no_dead_ends(schema: dict[str, Any], seed: int) -> None:
    schema = {"type": "array", **schema}
    try:
        constraint = constrain.compile(BYTES, schema=schema)
    except (UnsatisfiableError, UnsupportedError):
        return
    text = random_text(constraint, np.random.default_rng(seed), size=80)
    assert valid(schema, json.loads(text))
    matcher = constraint.matcher()
    for byte in text:
        assert matcher.allows(byte)
        matcher.advance(byte)
    assert matcher.is_complete


@pytest.mark.parametrize(
    "schema",
    [
        {"contains": {"const": 1}, "minItems": 10**7},
        {"contains": {"const": 1}, "maxItems": 10**7, "minContains": 3},
        {"contains": {"const": 1}, "minItems": 10**6, "maxItems": 10**7, "minContains": 10**5, "maxContains": 10**6},
        {"contains": {"const": 1}, "maxItems": 10**7, "allOf": [{"contains": {"type": "integer"}, "minContains": 9}]},
    ],
    ids=json.dumps,
)
def test_large_counts_are_linked_lazily(schema: dict[str, Any]) -> None:
    grammar = to_grammar({"type": "array", **schema})
    assert accepts(grammar, json.dumps([1, 2] * 20)) == valid(schema, [1, 2] * 20)
    assert len(grammar.rules) < 300


def test_satisfied_constraints_are_not_counted() -> None:
    grammar = to_grammar({"type": "array", "contains": {"const": 1}, "minItems": 5_000, "maxItems": 1_000_000})
    assert not accepts(grammar, "[1]")
    repeats = [node for name in grammar.rules for node in nodes_in(grammar.rules[name]) if isinstance(node, Repeat)]
    assert (4_999, 999_999) in [(node.low, node.high) for node in repeats]


@given(
    st.lists(st.one_of(st.none(), st.integers(0, 3)), min_size=1, max_size=4),
    st.lists(st.tuples(st.sets(st.integers(0, 3)), st.integers(0, 4), st.one_of(st.none(), st.integers(0, 4)))),
)
def test_feasibility_agrees_with_enumeration(most: list[int | None], given_totals: list[Any]) -> None:
    totals = [
        CountConstraint(tuple(kind for kind in sorted(kinds) if kind < len(most)), low, high)
        for kinds, low, high in given_totals
    ]
    ranges = (range(5 if top is None else top + 1) for top in most)
    tried = any(
        all(low <= sum(numbers[kind] for kind in kinds) <= (99 if high is None else high)
            for kinds, low, high in totals)
        for numbers in product(*ranges)
    )  # fmt: skip
    assert is_feasible(most, totals) == tried


def test_large_totals_are_decided_by_bisection() -> None:
    # Each two of three kinds together an odd number of times: the sum of all three would be half an odd number.
    for odd in (10**9 + 1, 10**9):
        totals = [CountConstraint(pair, odd, odd) for pair in ((0, 1), (1, 2), (0, 2))]
        assert is_feasible([None] * 3, totals) == (odd % 2 == 0)


def test_a_search_that_is_out_of_hand_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("constrain.frontends.json_schema.arrays.integer_feasibility.MOST_BISECTIONS", 3)
    with pytest.raises(LimitError):
        is_feasible([None] * 3, [CountConstraint(pair, 1_001, 1_001) for pair in ((0, 1), (1, 2), (0, 2))])
    with pytest.raises(UnsupportedError) as caught:
        two = [{"contains": {"minimum": low}, "minContains": 9, "maxContains": 11} for low in (1, 5)]
        to_grammar({"type": "array", "allOf": two, "minItems": 30})
    assert caught.value.pointer == "/allOf/0/contains"


def test_items_that_are_such_arrays_themselves_are_charged() -> None:
    """Whether there are items leads to the items of these, and from each of their cells to those below."""
    schema = {
        "anyOf": [{"contains": {"const": 1}}, True], "contains": {"$ref": "#"}, "uniqueItems": True,
        "unevaluatedItems": {"type": "string"},
    }  # fmt: skip
    with pytest.raises(LimitError, match=r"Limits\.work"):
        constrain.compile(constrain.Vocabulary.bytes(), schema=schema, style=Style.any(), limits=Limits(work=100_000))


def test_arrays_that_are_listed_again_and_again_are_charged() -> None:
    schema = {
        "not": {"items": {"$ref": "#"}, "contains": {"type": "null"}, "maxContains": 0, "uniqueItems": True},
        "prefixItems": [
            {"prefixItems": [{"$ref": "#"}, {"minLength": 2}], "items": {"minLength": 3}, "uniqueItems": True}
        ],
        "items": {"const": "x"}, "uniqueItems": True,
    }  # fmt: skip
    with pytest.raises(LimitError, match=r"Limits\.work"):
        constrain.compile(constrain.Vocabulary.bytes(), schema=schema, limits=Limits(work=200_000))


def test_too_many_contains_constraints_are_refused() -> None:
    schema = {"type": "array", "allOf": [{"contains": {"const": value}} for value in range(9)]}
    with pytest.raises(UnsupportedError) as caught:
        to_grammar(schema)
    assert caught.value.pointer is not None and caught.value.pointer.endswith("/contains") and caught.value.hint


class Plain:
    """An algebra that sees only what is plain."""

    def is_satisfiable(self, schemas: tuple[int, ...]) -> bool:
        return schemas != NEVER

    def intersect(self, one: tuple[int, ...], other: tuple[int, ...]) -> tuple[int, ...]:
        return intersect_sets(one, other)

    def complement(self, schemas: tuple[int, ...]) -> tuple[int, ...]:
        return (-schemas[0],)


def test_cases_have_one_form() -> None:
    assert simplify_array(ArrayCase((ANY, ANY), ANY)) == ArrayCase()
    assert simplify_array(ArrayCase(((1,), NEVER, (2,)), ANY)) == ArrayCase(((1,),), NEVER, 0, 1)
    assert simplify_array(ArrayCase(((1,), (2,)), (3,), high=1)) == ArrayCase(((1,),), NEVER, 0, 1)
    one, other = ArrayCase(((1,),), (2,), 1), ArrayCase((), (3,), 0, 5)
    merged = intersect_arrays(one, other, Plain())  # type: ignore[arg-type]
    assert merged == ArrayCase(((1, 3),), (2, 3), 1, 5)
    assert is_array_subset(merged, one) and is_array_subset(merged, other) and not is_array_subset(one, merged)


def test_contains_constraints_have_one_normal_form() -> None:
    assert simplify_array(ArrayCase(contains=(ContainsConstraint(1, ANY, 2, 4),))) == ArrayCase(low=3, high=5)
    assert simplify_array(ArrayCase(contains=(ContainsConstraint(0, (1,), 0, None),))) == ArrayCase()
    one = ArrayCase(contains=(ContainsConstraint(0, (1,), 1, 5),))
    merged = intersect_arrays(one, ArrayCase(contains=(ContainsConstraint(0, (1,), 3, None),)), Plain())  # type: ignore[arg-type]
    assert merged == ArrayCase(low=3, contains=(ContainsConstraint(0, (1,), 3, 5),))
    assert is_array_subset(merged, one) and not is_array_subset(one, merged)
    assert intersect_arrays(one, ArrayCase(contains=(ContainsConstraint(0, (1,), 6, None),)), Plain()) is None  # type: ignore[arg-type]


def test_the_complement_of_a_count_is_a_count() -> None:
    case = ArrayCase(contains=(ContainsConstraint(0, (1,), 2, 5),))
    ways = complement_array(case, Plain())  # type: ignore[arg-type]
    assert ways == [
        ArrayCase(contains=(ContainsConstraint(0, (1,), 0, 1),)),
        ArrayCase(low=6, contains=(ContainsConstraint(0, (1,), 6),)),
    ]
    assert complement_array(ArrayCase(unique=True), Plain()) == [ArrayCase(low=2, has_duplicates=True)]  # type: ignore[arg-type]
