"""Numbers as sets: bounds, multiples, constants and their complements, whatever the spelling."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, strategies as st

from constrain.base.errors import UnsatisfiableError
from constrain.base.options import Style
from constrain.frontends.json_schema import to_grammar
from constrain.frontends.json_schema.numbers.number_sets import (
    NumberCase,
    complement_numbers,
    contains_number,
    intersect_numbers,
    least_common_multiple,
)
from tests.recogniser_oracle import accepts

halves = st.integers(-8, 8).map(lambda value: Fraction(value, 2))
steps = st.sampled_from([Fraction(1), Fraction(2), Fraction(3), Fraction(1, 2), Fraction(3, 2)])
cases = st.one_of(
    st.lists(halves, min_size=1, max_size=3, unique=True).map(lambda values: NumberCase(tuple(values))),
    st.builds(
        NumberCase, st.none(), st.none() | halves, st.booleans(), st.none() | halves, st.booleans(), st.none() | steps,
        st.lists(steps, max_size=2, unique=True).map(tuple), st.none(),
    ),
)  # fmt: skip


@given(cases, cases, halves)
def test_intersection_contains_common_values(one: NumberCase, other: NumberCase, value: Fraction) -> None:
    both = intersect_numbers(one, other)
    assert (both is not None and contains_number(both, value)) == (
        contains_number(one, value) and contains_number(other, value)
    )


@given(cases, halves)
def test_complement_holds_all_others(case: NumberCase, value: Fraction) -> None:
    assert any(contains_number(other, value) for other in complement_numbers(case)) != contains_number(case, value)


@given(steps, steps, st.integers(-30, 30))
def test_least_common_multiple(one: Fraction, other: Fraction, count: int) -> None:
    value = Fraction(count, 2)
    assert (value % least_common_multiple(one, other) == 0) == (value % one == 0 and value % other == 0)


@pytest.mark.parametrize(
    ("schema", "yes", "no"),
    [
        ({"type": "integer", "minimum": 3, "exclusiveMaximum": 6}, ["3", "5"], ["2", "6", "4.5"]),
        ({"type": "number", "exclusiveMinimum": 0.5, "maximum": 1}, ["0.75", "1", "1.0"], ["0.5", "1.1", "0"]),
        ({"type": "number", "multipleOf": 0.01}, ["0.07", "-3", "0"], ["0.005"]),
        ({"type": "integer", "multipleOf": 7, "minimum": 0, "maximum": 13}, ["0", "7"], ["8", "14"]),
        ({"type": "integer", "not": {"multipleOf": 2}}, ["3", "-1"], ["0", "4"]),
        ({"type": "number", "not": {"type": "integer"}}, ["0.5"], ["1", "1.0"]),
        ({"enum": [1, 2.5, 3, "x"], "type": "integer"}, ["1", "3"], ["2.5", '"x"']),
        ({"enum": [1, 2, 3], "minimum": 2}, ["2", "3"], ["1"]),
        ({"const": 1}, ["1"], ["true", "2"]),
        ({"const": 1.0}, ["1"], ["1.5"]),
        ({"enum": [0.1, 12345678901234567890]}, ["0.1", "12345678901234567890"], ["0.10000000001"]),
    ],
)
def test_plain(schema: Any, yes: list[str], no: list[str]) -> None:
    grammar = to_grammar(schema)
    assert [text for text in yes if not accepts(grammar, text)] == []
    assert [text for text in no if accepts(grammar, text)] == []


@pytest.mark.parametrize(
    ("schema", "yes", "no"),
    [
        ({"const": 1}, ["1", "1.0", "1e0", "10e-1", "0.1E1"], ["true", "1.1"]),
        ({"type": "integer"}, ["1", "1.0", "1e2", "-0"], ["1.5", "1e-1"]),
        ({"enum": [0]}, ["0", "-0", "0.0", "0e5"], ["0.1", "false"]),
    ],
)
def test_every_spelling(schema: Any, yes: list[str], no: list[str]) -> None:
    grammar = to_grammar(schema, style=Style.any())
    assert [text for text in yes if not accepts(grammar, text)] == []
    assert [text for text in no if accepts(grammar, text)] == []


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "integer", "minimum": 3, "maximum": 2},
        {"type": "integer", "exclusiveMinimum": 2, "exclusiveMaximum": 3},
        {"type": "number", "exclusiveMinimum": 2, "maximum": 2},
        {"type": "integer", "multipleOf": 5, "minimum": 1, "maximum": 4},
        {"type": "integer", "not": {"multipleOf": 1}},
        {"enum": [1, 2], "minimum": 3, "type": "integer"},
        {"enum": [1], "type": "boolean"},
    ],
)
def test_no_number(schema: Any) -> None:
    with pytest.raises(UnsatisfiableError):
        to_grammar(schema)
