"""Sets of numbers and their automata against exact arithmetic, over all short texts."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from random import Random

import pytest

from constrain.automata.numerals.number_interval import reduce_multiples
from constrain.base.options import Style
from constrain.frontends.json_schema.numbers import number_sets
from constrain.frontends.json_schema.numbers.number_automata import count_numbers, find_number
from constrain.frontends.json_schema.numbers.number_multiples import multiples_dfa
from constrain.frontends.json_schema.numbers.number_sets import NumberCase, contains_number
from constrain.grammar.nodes import Grammar
from tests.recogniser_oracle import accepts

WHOLE = [str(number) for number in (*range(41), 99, 100, 125, 250, 640, 1000)]
TEXTS = [sign + whole + tail for sign, whole, tail in product(
    ("", "-"), WHOLE, ("", *(f".{number:0{size}}" for size in (1, 2) for number in range(0, 10**size, 5)),
                       ".125", ".008", ".016", ".004", ".375", ".0", ".0080", ".04", ".01", ".02"))]  # fmt: skip
FACTORS = [
    Fraction(text) for text in "1 2 3 7 10 20 25 40 0.5 0.25 0.125 0.1 0.04 0.008 0.016 0.375 1.5 2.5 0.3 12".split()
]


@pytest.mark.parametrize("fraction", [True, False], ids=["fraction", "whole"])
@pytest.mark.parametrize("wanted", [True, False], ids=["multiples", "others"])
@pytest.mark.parametrize("factor", FACTORS, ids=str)
def test_multiples_of_a_decimal(factor: Fraction, wanted: bool, fraction: bool) -> None:
    dfa = multiples_dfa(factor, wanted, fraction, 10_000)
    for text in TEXTS[:: 1 if fraction else 7]:
        multiple = (Fraction(text) / factor).denominator == 1
        assert dfa.accepts(text) == (multiple == wanted and (fraction or "." not in text)), text


def test_reduced_factors_are_minimal() -> None:
    for seed in range(100):
        random = Random(seed)
        multiple = random.choice([None, *FACTORS])
        others = random.sample(FACTORS, random.randint(0, 4))
        kept = reduce_multiples(multiple, others)
        assert list(kept) == sorted(kept)
        assert not any((one / other).denominator == 1 for one in kept for other in kept if one != other)
        for value in {Fraction(n, 1000) * step for step in (1, 125, *FACTORS) for n in range(0, 40_000, 2_500)}:
            if multiple is None or (value / multiple).denominator == 1:
                missed = all((value / other).denominator > 1 for other in others)
                assert all((value / other).denominator > 1 for other in kept) == missed


def is_decimal(value: Fraction) -> bool:
    rest = value.denominator
    for prime in (2, 5):
        while rest % prime == 0:
            rest //= prime
    return rest == 1


def test_a_number_that_is_found_is_a_short_decimal() -> None:
    """Between two bounds that are a multiple of 10^-k apart there is a decimal of k + 1 digits."""
    for seed in range(300):
        random = Random(seed)
        places = random.randint(0, 4)
        step = Fraction(1, 10**places)
        low = random.randint(-300, 300) * step
        high = low + random.randint(1, 2) * step
        excluded = tuple(
            random.sample([Fraction(1), Fraction(1, 2), Fraction(3), Fraction(1, 100)], random.randint(0, 2))
        )
        found = find_number(low, high, True, True, None, excluded)
        assert found is not None and low < found < high and is_decimal(found)
        assert all((found / other).denominator > 1 for other in excluded)
        if not excluded:
            assert (found * 10 ** (places + 1)).denominator == 1
        assert count_numbers(low, high, True, True, None, excluded, cap=3) == 3


# ---- cases -----------------------------------------------------------------------------------------------------


def random_case(random: Random) -> NumberCase:
    """A case of numbers."""
    bounds = [random.choice([None, Fraction(random.randint(-12, 12), random.choice([1, 2, 4]))]) for _ in range(2)]
    if random.random() < 0.2:
        return NumberCase(tuple({Fraction(random.randint(-8, 8), random.choice([1, 2])): None for _ in range(3)}))
    steps = [Fraction(1), Fraction(2), Fraction(3, 2), Fraction(1, 4), Fraction(5)]
    multiple = random.choice([None, *steps])
    excluded = [] if random.random() < 0.6 else [random.choice(steps)]
    if multiple is not None:
        excluded = [step for step in excluded if multiple % step]
    low, high = bounds
    return NumberCase(
        None, low, low is not None and random.random() < 0.5, high, high is not None and random.random() < 0.5,
        multiple, tuple(excluded),
    )  # fmt: skip


def test_the_automaton_of_a_case() -> None:
    texts = Random(0).sample(TEXTS, 150) + ["0", "-0", "1", "2.0", "3.0", "1.50", "-2.0", "4", "5.0"]
    for seed in range(60):
        case = random_case(Random(seed))
        dfa = number_sets.number_case_dfa(case, Style(), 10_000)
        whole = case.multiple is not None and case.multiple.denominator == 1
        for text in texts:
            value = Fraction(text)
            wanted = contains_number(case, value)
            if case.values is not None:
                assert wanted or not dfa.accepts(text)
                assert not wanted or dfa.accepts(str(int(value)) if value.denominator == 1 else str(float(value)))
            elif whole:  # integers are written without a fraction
                assert dfa.accepts(text) == (wanted and "." not in text), (case, text)
            else:
                assert dfa.accepts(text) == wanted, (case, text)


@pytest.mark.parametrize("digits", [None, 8])
def test_the_leaf_of_cases_in_any_spelling(digits: int | None) -> None:
    style = Style(numbers="any", digits=digits)
    texts = [*Random(0).sample(TEXTS, 150), "0", "-0e3", "1E0", "20e-1", "0.3e+1", "1.50", "-2.0", "400e-2", "5.0"]
    for seed in range(20):
        random = Random(seed)
        cases = tuple(random_case(random)._replace(spelling=random.choice([None, None, "fraction"])) for _ in range(2))
        nodes = number_sets.emit_any_spelling(cases, style)
        for text in texts:
            is_marked = not text.lstrip("-").isdigit()
            wanted = any(
                contains_number(case, Fraction(text)) and (is_marked or case.spelling is None) for case in cases
            )
            assert any(accepts(Grammar(node, {}), text) for node in nodes) == wanted, (cases, text)


def test_whether_a_case_has_a_number() -> None:
    values = [Fraction(n, 8) for n in range(-400, 401)]
    for seed in range(400):
        case = random_case(Random(seed))
        there_is = any(contains_number(case, value) for value in values)
        assert number_sets.is_number_satisfiable(case, Style(), number_sets.Limits()) == there_is, case


@pytest.mark.parametrize(
    ("case", "numbers", "wanted"),
    [
        (NumberCase(), "any", False), (NumberCase(multiple=Fraction(1)), "any", False),
        (NumberCase(low=Fraction(0)), "plain", True), (NumberCase(high=Fraction(0)), "plain", True),
        (NumberCase((Fraction(1),)), "plain", False), (NumberCase((Fraction(1),)), "any", True),
    ],
)  # fmt: skip
def test_numbers_that_become_a_rule(case: NumberCase, numbers: str, wanted: bool) -> None:
    style = Style(numbers=numbers)  # type: ignore[arg-type]
    assert (
        number_sets.needs_number_rule((case,), style)
        == number_sets.needs_number_rule((NumberCase(), case), style)
        == wanted
    )
    assert not number_sets.needs_number_rule((), style)
