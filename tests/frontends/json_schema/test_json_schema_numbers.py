"""Number automata against exact arithmetic: every short text, random ones, and the ends of the bounds."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from functools import cache
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

import constrain
from constrain import Vocabulary
from constrain.automata.dfa import Dfa
from constrain.base.errors import LimitError
from constrain.base.options import Style
from constrain.frontends.json_schema.numbers.number_automata import constant_dfa, count_numbers, find_number, number_dfa

PLAIN, PLAIN_UNCAPPED, ANY = Style(), Style(digits=None), Style.any()
NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
PREFIX = re.compile(r"-?((0|[1-9][0-9]*)(\.[0-9]*)?|(0|[1-9][0-9]*)(\.[0-9]+)?[eE][+-]?[0-9]*)?")


@cache
def every_number(alphabet: str, length: int) -> tuple[tuple[str, Fraction], ...]:
    """Every RFC 8259 number of at most `length` characters of the alphabet, with its value."""
    found, layer = [], [""]
    for _ in range(length):
        layer = [text + char for text, char in product(layer, alphabet) if PREFIX.fullmatch(text + char)]
        found += [(text, Fraction(text)) for text in layer if NUMBER.fullmatch(text)]
    return tuple(found)


def allowed(
    value: Fraction,
    low: Fraction | None = None,
    high: Fraction | None = None,
    low_open: bool = False,
    high_open: bool = False,
    multiple_of: Fraction | None = None,
    not_multiples: tuple[Fraction, ...] = (),
    integer: bool = False,
) -> bool:
    """What a schema says, by arithmetic alone."""
    return (
        (low is None or value > low or (value == low and not low_open))
        and (high is None or value < high or (value == high and not high_open))
        and (multiple_of is None or (value / multiple_of).denominator == 1)
        and all((value / other).denominator != 1 for other in not_multiples)
        and (not integer or value.denominator == 1)
    )


def check(dfa: Dfa, text: str, value: Fraction, style: Style, constraints: dict[str, Any]) -> None:
    """The Dfa accepts the text exactly if the plain style and the constraints do."""
    fits = allowed(value, **constraints)
    exponent, point = "e" in text.lower(), "." in text
    scalable = not any(value for name, value in constraints.items() if not name.endswith("open"))
    fits = fits and not (exponent and not scalable) and not (point and constraints.get("integer"))
    assert dfa.accepts(text) == fits, (text, constraints, style)


F = Fraction
CASES: list[dict[str, Any]] = [
    {},
    {"integer": True},
    {"low": F(0)},
    {"low": F(0), "low_open": True},
    {"high": F(0), "high_open": True},
    {"high": F(0), "integer": True},
    {"low": F(1), "high": F(1)},
    {"low": F(-1, 2), "high": F("0.25")},
    {"low": F("-20.5"), "high": F(15), "low_open": True},
    {"low": F(-20), "high": F(-1), "integer": True},
    {"low": F(0), "high": F(100), "integer": True},
    {"low": F("9.5"), "high": F("10.5"), "low_open": True, "high_open": True},
    {"low": F("0.0005"), "high": F("0.02")},
    {"low": F(12345)},
    {"high": F(-12345)},
    {"low": F(3), "high": F(2)},
    {"low": F(3), "high": F(3), "high_open": True},
    {"multiple_of": F("0.01")},
    {"multiple_of": F("0.1"), "low": F(0), "high": F(2)},
    {"multiple_of": F(7)},
    {"multiple_of": F(7), "integer": True, "low": F(0), "high": F(13)},
    {"multiple_of": F("1e-8")},
    {"multiple_of": F("0.123456789"), "low": F(-1), "high": F(1)},
    {"multiple_of": F("1.5")},
    {"multiple_of": F("1.5"), "integer": True},
    {"multiple_of": F(20), "low": F(-100)},
    {"not_multiples": (F(3),), "integer": True},
    {"not_multiples": (F("0.5"), F(3))},
    {"not_multiples": (F(4), F(25)), "multiple_of": F(5), "low": F(0), "high": F(1000)},
    {"low": F(2) ** 63, "integer": True},
    {"low": F("1e400")},
    {"low": F("-1e-400"), "high": F("1e-400")},
]


@pytest.mark.parametrize("constraints", CASES, ids=str)
@pytest.mark.parametrize("style", [PLAIN_UNCAPPED, PLAIN], ids=["uncapped", "plain"])
def test_every_short_text(style: Style, constraints: dict[str, Any]) -> None:
    dfa = number_dfa(style=style, **constraints)
    for text, value in every_number("-0123459.eE+", 4) + every_number("-0125.e", 5) + every_number("015.", 7):
        check(dfa, text, value, style, constraints)
    assert dfa.subtract(number_dfa(style=ANY)).is_empty, "not a number of RFC 8259"
    assert dfa.is_empty == (find_of(constraints) is None)
    assert (dfa.distances() >= 0).all(), "a dead end"


def find_of(constraints: dict[str, Any]) -> Fraction | None:
    rest = dict(constraints)
    if rest.pop("integer", False) and rest.get("multiple_of") != F("1.5"):
        rest.setdefault("multiple_of", F(1))
    names = ("low", "high", "low_open", "high_open", "multiple_of", "not_multiples")
    default = (None, None, False, False, None, ())
    return find_number(*(rest.get(name, other) for name, other in zip(names, default)))  # type: ignore[arg-type]


decimals = st.builds(lambda digits, scale: F(digits) / 10**scale, st.integers(-30_000, 30_000), st.integers(0, 4))
factors = st.builds(lambda digits, scale: F(digits) / 10**scale, st.integers(1, 60), st.integers(0, 3))
sets = st.fixed_dictionaries(
    {},
    optional={
        "low": decimals,
        "high": decimals,
        "low_open": st.booleans(),
        "high_open": st.booleans(),
        "multiple_of": factors,
        "not_multiples": st.lists(factors, max_size=2).map(tuple),
        "integer": st.booleans(),
    },
)


def near(value: Fraction) -> st.SearchStrategy[str]:
    """Decimal texts near this value, with trailing zeros."""
    shifts = st.builds(lambda digits, scale: F(digits) / 10**scale, st.integers(-20, 20), st.integers(0, 5))
    return st.builds(lambda shift, zeros: spell(value + shift, zeros), shifts, st.integers(0, 3))


def spell(value: Fraction, zeros: int = 0) -> str:
    scale = next(s for s in range(500) if (value * 10**s).denominator == 1)
    digits = str(abs(int(value * 10**scale))).rjust(scale + 1, "0")
    tail = digits[len(digits) - scale :] + "0" * zeros
    return ("-" if value < 0 else "") + digits[: len(digits) - scale] + ("." + tail if tail else "")


@settings(max_examples=60, deadline=None)
@given(st.data(), sets, st.sampled_from([PLAIN, PLAIN_UNCAPPED]))
def test_random_sets_near_their_bounds(data: st.DataObject, constraints: dict[str, Any], style: Style) -> None:
    try:
        dfa = number_dfa(style=style, max_states=1_500, **constraints)
    except LimitError:
        return
    asked = {name: value for name, value in constraints.items() if value is not False and value != ()}
    if not {"low", "high", "multiple_of", "not_multiples", "integer"} & set(asked):
        asked = {}
    for _ in range(4):
        text = data.draw(
            near(data.draw(st.sampled_from([constraints.get("low", F(0)), constraints.get("high", F(1))])))
        )
        check(dfa, text, F(text), style, asked)
    if not dfa.is_empty:
        assert allowed(F(dfa.shortest()), **constraints)


@settings(max_examples=200, deadline=None)
@given(sets)
def test_find_and_count(constraints: dict[str, Any]) -> None:
    rest = {**constraints, "low": constraints.get("low", F(-3)), "high": constraints.get("high", F(40))}
    rest.pop("integer", None)
    names = ("low", "high", "low_open", "high_open", "multiple_of", "not_multiples")
    given_ = [rest.get(name, default) for name, default in zip(names, (None, None, False, False, None, ()))]
    found = find_number(*given_)
    assert found is None or allowed(found, **rest)
    factor = rest.get("multiple_of")
    if factor is not None:
        first = int(rest["low"] / factor) - 1
        brute = [k for k in range(first, first + 300) if allowed(k * factor, **rest)]
        assert count_numbers(*given_, cap=50) == min(50, len(brute)) or len(brute) > 200
        assert (found is None) == (count_numbers(*given_, cap=1) == 0) and (found is not None or not brute)
    elif rest["low"] < rest["high"]:
        assert count_numbers(*given_, cap=9) == 9 and found is not None
    else:
        assert count_numbers(*given_, cap=9) == (found is not None)


def test_find_among_residues() -> None:
    assert find_number(None, None, False, False, F(1), (F(2), F(3), F(5), F(7))) in (1, -1)
    assert find_number(F(2), F(10), False, False, F(1), (F(2), F(3), F(5), F(7))) is None
    assert find_number(F(2), None, False, False, F(1), (F(2), F(3), F(5), F(7))) == 11
    assert find_number(F(0), F(0), False, False, None, (F(3),)) is None
    assert find_number(F(0), F("1e-30"), True, True, None) is not None
    assert find_number(None, None, False, False, F(6), (F(2),)) is None
    assert find_number(None, F(-5), False, True, None) == -6
    assert count_numbers(None, None, False, False, F(1), cap=7) == 7
    assert count_numbers(F(0), F(10), False, False, F(1), (F(2),), cap=99) == 5


@settings(max_examples=40, deadline=None)
@given(st.floats(allow_nan=False, allow_infinity=False))
def test_plain_accepts_every_number_of_json_dumps(value: float) -> None:
    text = json.dumps(value)
    assert number_dfa(style=PLAIN).accepts(text)
    assert constant_dfa(F(text), PLAIN).accepts(text) or text == "-0.0"
    if "e" not in text:
        low, high = F(text) - F("0.5"), F(text)
        assert number_dfa(style=PLAIN, low=low, high=high).accepts(text)
        assert not number_dfa(style=PLAIN, low=low, high=high, high_open=True).accepts(text)
    assert number_dfa(style=PLAIN, integer=True).accepts(str(int(value))) or abs(value) >= 1e40
    assert number_dfa(style=ANY, low=F(0)).accepts(text) == (value >= 0)
    assert number_dfa(style=PLAIN, high=F(0), high_open=True).accepts(text) == (value < 0)


def test_spellings_of_an_integer() -> None:
    plain = number_dfa(style=PLAIN, integer=True)
    assert all(plain.accepts(text) for text in ("0", "-0", "-12", "9" * 40))
    assert not any(plain.accepts(text) for text in ("1.0", "1e2", "01", "+1", "", "-", "9" * 41))


def test_numbers_in_any_spelling_have_no_automaton() -> None:
    assert number_dfa(style=ANY, low=F(0)).accepts("1.50e-7")
    for constraints in ({"low": F(1)}, {"multiple_of": F(2)}, {"integer": True}):
        with pytest.raises(ValueError, match="any spelling"):
            number_dfa(style=ANY, **constraints)  # type: ignore[arg-type]


def test_digits_are_capped_unless_bounds_need_more() -> None:
    few = Style(digits=3)
    assert number_dfa(style=few, integer=True).accepts("999") and not number_dfa(style=few, integer=True).accepts(
        "1000"
    )
    assert number_dfa(style=few).accepts("1.123") and not number_dfa(style=few).accepts("1.1234")
    assert number_dfa(style=few, low=F(10) ** 50).accepts("1" + "0" * 50)
    assert number_dfa(style=few, integer=True, low=F(10) ** 50 - 1, low_open=True).accepts("1" + "0" * 50)
    assert not number_dfa(style=few, low=F(0), high=F("1e-50"), low_open=True, high_open=True).is_empty
    assert not number_dfa(style=few, multiple_of=F("1e-20"), low=F(0), high=F("1e-19"), low_open=True).is_empty


def test_dead_ends_are_cut() -> None:
    cents = number_dfa(style=PLAIN, multiple_of=F("0.01"))
    assert cents.accepts("0.05") and cents.accepts("0.0500") and not cents.accepts("0.005")
    sevens = number_dfa(style=PLAIN, multiple_of=F(7), low=F(0), high=F(13), integer=True)
    assert sorted(sevens.enumerate(9)) == ["-0", "0", "7"]
    assert number_dfa(style=PLAIN, low=F("0.2"), high=F("0.1")).is_empty


def test_constants() -> None:
    assert sorted(constant_dfa(1, PLAIN).enumerate(9)) == ["1", "1.0"]
    assert sorted(constant_dfa(F("1e-6"), PLAIN).enumerate(9)) == ["0.000001", "1e-06"]
    assert sorted(constant_dfa(F("1e400"), PLAIN).enumerate(9)) == ["1" + "0" * 400]
    assert constant_dfa(F("0.1") + F("1e-30"), PLAIN).enumerate(9) == ["0.100000000000000000000000000001"]
    assert constant_dfa(0, ANY).accepts("-0.0e7") and not constant_dfa(0, ANY).accepts("1e0")


def test_limits_are_named() -> None:
    with pytest.raises(LimitError, match="20000 states"):
        number_dfa(style=PLAIN, multiple_of=F(1000003))
    with pytest.raises(LimitError, match="4,096 digits"):
        number_dfa(style=PLAIN, low=F(10) ** 5000)
    with pytest.raises(ValueError, match="decimal"):
        number_dfa(style=PLAIN, low=F(1, 3))
    assert number_dfa(style=PLAIN, multiple_of=F(2, 3)) == number_dfa(style=PLAIN, multiple_of=F(2))


@pytest.mark.parametrize("style", [PLAIN, ANY])
@pytest.mark.parametrize("keyword", ["maximum", "exclusiveMinimum", "multipleOf"])
def test_numbers_of_too_many_digits_are_refused_when_they_are_read(keyword: str, style: Style) -> None:
    """Before and after the point they are short enough, together they are not; the keyword is named."""
    number = f"{'7' * 3000}.{'7' * 1500}"
    for schema in (f'{{"{keyword}": {number}}}', f'{{"items": {{"{keyword}": {number}}}}}'):
        with pytest.raises(LimitError, match="4,096 digits") as error:
            constrain.compile(Vocabulary.bytes(), schema=schema, style=style)
        assert error.value.pointer == f"{'/items' if 'items' in schema else ''}/{keyword}"


@pytest.mark.parametrize("style", [PLAIN, ANY])
def test_numbers_of_many_digits_are_bounds(style: Style) -> None:
    """As many as a document may have: compiled, and masked."""
    for schema in ('{"type": "number", "maximum": 1e3900}', '{"const": 1e3999}'):
        matcher = constrain.compile(Vocabulary.bytes(), schema=schema, style=style).matcher()
        matcher.advance_bytes(b"1" + b"0" * 3000)
        assert matcher.allows(ord("0"))


def test_values_of_too_many_digits_are_refused_in_any_spelling() -> None:
    factors = f'"multipleOf": {10**2100 + 7}, "allOf": [{{"multipleOf": {10**2100 + 9}}}]'
    for schema in (f'{{"const": {"7" * 3000}.{"7" * 1500}}}', f'{{"type": "number", {factors}}}'):
        with pytest.raises(LimitError, match="4,096 digits"):
            constrain.compile(Vocabulary.bytes(), schema=schema, style=ANY)


def test_many_residues() -> None:
    """Powers of ten need no residues; of factors that divide one another one is enough; too large ones are named."""
    billions = number_dfa(style=PLAIN, multiple_of=F(10) ** 9, integer=True)
    assert billions.accepts("7" + "0" * 9) and not billions.accepts("7" + "0" * 8)
    factors = tuple(map(F, (2, 5, 7, 11, 77, 1001, "6.5")))
    none = number_dfa(style=PLAIN, not_multiples=factors)
    assert len(none.delta) > 1_000
    for text in [*map(str, range(9_000, 9_100)), "0.5", "45.5", "45.50", "45.500001", "-13.0", "-13.01"]:
        assert none.accepts(text) == allowed(F(text), not_multiples=factors), text
    with pytest.raises(LimitError, match="20000 states"):
        number_dfa(style=PLAIN, not_multiples=tuple(map(F, (7, 11, 13, 17, 37))))
    few = {"low": F(0), "high": F(900), "multiple_of": F(27), "not_multiples": tuple(map(F, (7, 11, 13, 17, 37)))}
    assert number_dfa(style=PLAIN, integer=True, **few).accepts("864")  # type: ignore[arg-type]
    assert not number_dfa(style=PLAIN, integer=True, **few).accepts("189")  # type: ignore[arg-type]


def test_equal_sets_have_equal_automata() -> None:
    assert number_dfa(style=PLAIN, integer=True, multiple_of=F("0.5")) == number_dfa(style=PLAIN, integer=True)
    exclusive = number_dfa(style=PLAIN, integer=True, low=F(-1), low_open=True, high=F(10), high_open=True)
    # -0 begins like -0.5, so both spell zero with a sign.
    assert exclusive == number_dfa(style=PLAIN, integer=True, low=F(0), high=F(9))
