"""Numbers of JSON texts: floats where these are exact, and otherwise floats that know the number."""

from __future__ import annotations

import json
from decimal import Decimal

import pytest
from hypothesis import given, strategies as st

from constrain.base.json_documents import parse_json, parse_strictly, plain_document
from constrain.base.json_numbers import ExactFloat, parse_exact_float

DIGITS = st.text("0123456789", min_size=1, max_size=30)
numbers = st.builds(
    lambda sign, digits, fraction, exponent: f"{sign}{digits.lstrip('0') or '0'}.{fraction}e{exponent}",
    st.sampled_from(["", "-"]), DIGITS, DIGITS, st.integers(-400, 400),
)  # fmt: skip


@given(numbers)
def test_no_digit_is_lost(text: str) -> None:
    number = parse_exact_float(text)
    exact = number.exact if isinstance(number, ExactFloat) else Decimal(repr(number))
    assert exact == Decimal(text)
    assert abs(number) != float("inf") and json.loads(json.dumps(number)) == number  # code that writes floats works


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_floats_are_plain(value: float) -> None:
    assert type(parse_exact_float(repr(value))) is float


@given(st.lists(numbers | st.integers().map(str), max_size=5))
def test_documents_are_those_of_the_parser_of_schemas(texts: list[str]) -> None:
    text = f'{{"enum": [{", ".join(texts)}]}}'
    found, wanted = plain_document(parse_strictly(text, 9))["enum"], parse_json(text)["enum"]
    assert [Decimal(str(one)) for one in found] == [Decimal(str(one)) for one in wanted]


@pytest.mark.parametrize("text", ["[NaN]", "[-Infinity]", '{"a": 1, "a": 1}', "[" * 9, "[1e99999999999999999999]", "["])
def test_parse_strictly_raises_for_invalid_json(text: str) -> None:
    with pytest.raises(ValueError):
        parse_strictly(text, 8)
