"""Automata of numbers between bounds: the kernel's are those of the conditions, state by state."""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from math import inf

import pytest
from hypothesis import given, strategies as st

from constrain import LimitError, Style, Vocabulary, compile
from constrain.automata.dfa import Dfa
from constrain.automata.numerals.number_interval import NumberInterval
from constrain.base.work import work_budget
from constrain.frontends.json_schema.numbers.bounded_numbers import build_bounded_dfa
from constrain.frontends.json_schema.numbers.number_automata import _cap_digits, tabulate_numbers

BOUNDS = st.none() | st.one_of(
    st.integers(-300, 300).map(Fraction),
    st.decimals(-1000, 1000, places=3).map(Fraction),
    st.sampled_from([Fraction(0), Fraction(10**20), Fraction(-(10**9) - 1, 10**12), Fraction(1, 2), Fraction(100)]),
)


@given(
    BOUNDS, BOUNDS, st.booleans(), st.booleans(), st.booleans(), st.sampled_from([0, 3, inf]),
    st.none() | st.integers(1, 45), st.booleans(),
)  # fmt: skip
def test_the_kernel_reads_bounds_as_conditions_do(
    low: Fraction | None,
    high: Fraction | None,
    low_open: bool,
    high_open: bool,
    fraction: bool,
    exponent: float,
    digits: int | None,
    integer: bool,
) -> None:
    multiples = [Fraction(1)] if integer else []
    numbers = NumberInterval.of(low, high, low_open, high_open, multiples, ())
    with work_budget(1 << 40) as budget:
        table = tabulate_numbers(numbers, None, fraction, exponent, digits, 10_000)
        expected = Dfa.from_table(table)
        spent = budget.spent
        found = build_bounded_dfa(numbers, fraction, exponent, partial(_cap_digits, fraction, digits), 10_000)
        assert budget.spent == 2 * spent
    assert found == expected
    states = len(table.rows)
    exact = build_bounded_dfa(numbers, fraction, exponent, partial(_cap_digits, fraction, digits), states)
    assert exact == expected
    if states > 1:
        with pytest.raises(LimitError):
            build_bounded_dfa(numbers, fraction, exponent, partial(_cap_digits, fraction, digits), states - 1)


def test_bounds_of_many_digits() -> None:
    high = Fraction(10**2000 + 7, 10**1000)
    numbers = NumberInterval.of(Fraction(0), high, False, False, (), ())
    found = build_bounded_dfa(numbers, True, 0, partial(_cap_digits, True, 40), 20_000)
    assert found == Dfa.from_table(tabulate_numbers(numbers, None, True, 0, 40, 20_000))
    assert found.accepts("1" + "0" * 1000) and not found.accepts("1" + "0" * 999 + "1")


def test_more_digits_than_states_are_too_many() -> None:
    """Caps above `max_states` are the same as one at it, also where they exceed what a kernel counts."""
    numbers = NumberInterval.of(Fraction(0), None, False, False, (), ())
    for cap in (301, 2**31, 10**30):
        with pytest.raises(LimitError):
            build_bounded_dfa(numbers, True, 0, partial(_cap_digits, True, cap), 300)
    small = NumberInterval.of(Fraction(0), Fraction(99), False, False, [Fraction(1)], ())
    assert build_bounded_dfa(small, False, 0, lambda side: (10**30, 10**30), 300) == Dfa.from_table(
        tabulate_numbers(small, None, False, 0, None, 300)
    )


@pytest.mark.parametrize("schema", [
    {"type": "number", "minimum": 1e300, "multipleOf": 2.647e-12},
    {"type": "number", "maximum": -1e300, "multipleOf": 9.9991e-19},
])  # fmt: skip
def test_a_bound_may_be_beyond_the_floats_in_multiples(schema: dict[str, object]) -> None:
    """Its index is then an int that no float can hold, beside the infinity of the other bound."""
    with pytest.raises(LimitError, match="states"):
        compile(Vocabulary.bytes(), schema=schema)
    text = compile(Vocabulary.bytes(), schema=schema, style=Style.any()).matcher().shortest_completion()
    assert text is not None
    value = Fraction(text.decode())
    assert (value / Fraction(repr(schema["multipleOf"]))).denominator == 1
    assert value >= 10**300 if "minimum" in schema else value <= -(10**300)
