"""Sets of numbers and their automata against exact arithmetic, over all short texts."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from random import Random

import pytest

from constrain.base.options import Style
from constrain.frontends.json_schema.numbers import number_sets
from constrain.frontends.json_schema.numbers.number_automata import count_numbers, find_number, number_dfa
from constrain.frontends.json_schema.numbers.number_multiples import multiples_dfa, reduce_multiples
from constrain.frontends.json_schema.numbers.number_sets import NumberCase, complement_numbers, contains_number

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


@pytest.mark.parametrize(("factor", "digits"), [(1, 12), (2, 5), (19, 5), (20, 5), (21, 3), (1000, 3), (1001, 2)])
def test_digits_before_an_exponent_beside_other_multiples(factor: int, digits: int) -> None:
    dfa = number_dfa(low=Fraction(0), high=Fraction(10), not_multiples=(Fraction(factor),), style=Style.any())
    for size in range(2, 15):
        assert dfa.accepts(f"1.{'1' * (size - 1)}e0") == (size <= digits), size
        assert dfa.accepts(f"1.{'1' * (size - 1)}")


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


@pytest.mark.parametrize("numbers", ["plain", "any"])
def test_the_automaton_of_a_case(numbers: str) -> None:
    style = Style(numbers=numbers)  # type: ignore[arg-type]
    texts = Random(0).sample(TEXTS, 150) + ["0", "-0", "1", "2.0", "3.0", "1.50", "-2.0", "4", "5.0"]
    for seed in range(60 if numbers == "plain" else 6):
        case = random_case(Random(seed))
        dfa = number_sets.number_case_dfa(case, style, 10_000)
        whole = case.multiple is not None and case.multiple.denominator == 1
        for text in texts:
            value = Fraction(text)
            wanted = contains_number(case, value)
            if numbers == "plain" and case.values is not None:
                assert wanted or not dfa.accepts(text)
                assert not wanted or dfa.accepts(str(int(value)) if value.denominator == 1 else str(float(value)))
            elif numbers == "plain" and whole:  # integers are written without a fraction
                assert dfa.accepts(text) == (wanted and "." not in text), (case, text)
            else:
                assert dfa.accepts(text) == wanted, (case, text)


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
def test_large_automata_are_predicted(case: NumberCase, numbers: str, wanted: bool) -> None:
    style = Style(numbers=numbers)  # type: ignore[arg-type]
    assert (
        number_sets.needs_number_rule((case,), style)
        == number_sets.needs_number_rule((NumberCase(), case), style)
        == wanted
    )
    assert not number_sets.needs_number_rule((), style)


def test_gaps_between_constants() -> None:
    """The complement_numbers of constants is a chain of open intervals from no bound to no bound, in whatever order."""
    for seed in range(50):
        random = Random(seed)
        values = random.sample(range(-9, 9), random.randint(1, 5))
        chain = complement_numbers(NumberCase(tuple(map(Fraction, values))))
        mixed = random.sample(chain, len(chain))
        assert number_sets.find_gaps(tuple(mixed)) == chain
        assert number_sets.find_gaps((*mixed, NumberCase((Fraction(50),)))) == chain
        for missing in chain:
            assert number_sets.find_gaps(tuple(case for case in mixed if case != missing)) == []
        closed = [chain[0]._replace(high_open=False), *chain[1:]]
        assert number_sets.find_gaps(tuple(closed)) == []
