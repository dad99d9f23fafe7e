"""Sets of numbers: bounds, `multipleOf`, integers, and the numbers of `enum` and `const`.

A `NumberCase` is a finite tuple of exact values, or an interval with a step and excluded steps. In plain style
`number_automata` builds the automata of their spellings. In any style all cases together are one leaf, whose states are
computed when they are reached (`automata.numerals`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from math import gcd
from typing import Literal, NamedTuple

from ....automata.dfa import Dfa
from ....automata.numerals.decimals import as_decimal
from ....automata.numerals.number_automaton import NumberAutomaton
from ....automata.numerals.number_interval import NumberInterval
from ....automata.numerals.number_language import Form, NumberLanguage
from ....base.options import Limits, Style
from ....base.work import memoize_work, spend_work
from ....grammar.nodes import Chars, Node, Number
from . import number_automata
from .number_parts import plain_texts

__all__ = [
    "ANY_NUMBER",
    "NumberCase",
    "number_case_dfa",
    "complement_numbers",
    "may_exceed_states",
    "emit_any_spelling",
    "emit_numbers",
    "needs_number_rule",
    "intersect_numbers",
    "is_number_satisfiable",
]


class NumberCase(NamedTuple):
    """Numbers: one of `values` if that is not None, otherwise the multiples in an interval.

    spelling: draft 4 defines integers by their spelling: "integer" has neither fraction nor exponent, "fraction" has
    one or the other, None allows both.
    """

    values: tuple[Fraction, ...] | None = None
    low: Fraction | None = None
    low_open: bool = False
    high: Fraction | None = None
    high_open: bool = False
    multiple: Fraction | None = None
    not_multiples: tuple[Fraction, ...] = ()
    spelling: Literal["integer", "fraction"] | None = None


ANY_NUMBER = NumberCase()

ONE = Fraction(1)
PLAIN_INTEGERS = NumberCase(multiple=ONE, spelling="integer")
"""All integers of draft 4, which have one spelling in any style."""
NUMBER = 20
"""Units of work for an interval of numbers in any spelling."""


def least_common_multiple(one: Fraction, other: Fraction) -> Fraction:
    """Return the least positive number that is a multiple of both."""
    if one == other:
        return one
    top = one.numerator * other.numerator // gcd(one.numerator, other.numerator)
    # lcm(a/b, c/d) = lcm(a, c) / gcd(b, d) for fractions in lowest terms.
    return Fraction(top, gcd(one.denominator, other.denominator))


def intersect_numbers(one: NumberCase, other: NumberCase) -> NumberCase | None:
    """Return the numbers of both cases; None if there are none."""
    spelling = one.spelling or other.spelling
    if one.spelling and other.spelling and one.spelling != other.spelling:
        return None
    if one.values is not None or other.values is not None:
        if one.values is None:
            one, other = other, one
        assert one.values is not None
        if other.values is not None:
            common = set(other.values)
            values = tuple(value for value in one.values if value in common)
        else:
            values = tuple(value for value in one.values if contains_number(other, value))
        return one._replace(values=values, spelling=spelling) if values else None
    low, low_open = one.low, one.low_open
    if other.low is not None and (low is None or (other.low, other.low_open) > (low, low_open)):
        low, low_open = other.low, other.low_open
    high, high_open = one.high, one.high_open
    if other.high is not None and (high is None or (other.high, not other.high_open) < (high, not high_open)):
        high, high_open = other.high, other.high_open
    if low is not None and high is not None and (low > high or (low == high and (low_open or high_open))):
        return None
    multiple = one.multiple if other.multiple is None else other.multiple
    if one.multiple is not None and other.multiple is not None:
        multiple = least_common_multiple(one.multiple, other.multiple)
    excluded = tuple(sorted({*one.not_multiples, *other.not_multiples}))
    if multiple is not None and any(multiple % step == 0 for step in excluded):
        return None
    return NumberCase(None, low, low_open, high, high_open, multiple, excluded, spelling)


def contains_number(case: NumberCase, value: Fraction) -> bool:
    """Return whether a value is in the case, however it is spelled."""
    if case.values is not None:
        return value in case.values
    if case.low is not None and (value < case.low or (case.low_open and value == case.low)):
        return False
    if case.high is not None and (value > case.high or (case.high_open and value == case.high)):
        return False
    if case.multiple is not None and value % case.multiple:
        return False
    return all(value % step for step in case.not_multiples)


def complement_numbers(case: NumberCase) -> list[NumberCase]:
    """Return the numbers that are not in the case, as a union of cases."""
    out: list[NumberCase] = []
    if case.spelling:
        out.append(NumberCase(spelling="fraction" if case.spelling == "integer" else "integer"))
    if case.values is not None:
        edges = [None, *sorted(case.values), None]
        for low, high in zip(edges, edges[1:]):
            out.append(NumberCase(None, low, low is not None, high, high is not None))
        return out
    if case.low is not None:
        out.append(NumberCase(high=case.low, high_open=not case.low_open))
    if case.high is not None:
        out.append(NumberCase(low=case.high, low_open=not case.high_open))
    if case.multiple is not None:
        out.append(NumberCase(not_multiples=(case.multiple,)))
    out.extend(NumberCase(multiple=step) for step in case.not_multiples)
    return out


def is_number_satisfiable(case: NumberCase, style: Style, limits: Limits) -> bool:
    """Return whether the case has a number, and a spelling of it."""
    if case.spelling == "fraction" and style.numbers == "plain":
        if case.values is not None:
            return any(True for _ in spell_values(case, style))
        return not number_case_dfa(case, style, limits.dfa_states).is_empty
    if case.spelling == "integer" and case.values is not None:
        return any(value.denominator == 1 for value in case.values)
    if case.values is not None:
        return bool(case.values)
    if case.multiple is None and not case.not_multiples:
        return (
            case.low is None
            or case.high is None
            or case.low < case.high
            or (case.low == case.high and not case.low_open and not case.high_open)
        )
    if not case.not_multiples and (case.low is None or case.high is None):
        return True
    number = number_automata.find_number(
        case.low, case.high, case.low_open, case.high_open, case.multiple, case.not_multiples
    )
    return number is not None


def may_exceed_states(case: NumberCase, style: Style) -> bool:
    """Return whether the automaton of the case may exceed a limit, so that it must be built to know."""
    has_multiples = case.not_multiples or case.multiple not in (None, ONE)
    return bool(case.values is None and has_multiples and style.numbers == "plain")


def needs_number_rule(cases: tuple[NumberCase, ...], style: Style) -> bool:
    """Return whether there is more to do than for a type: such numbers become a rule, which is built when it is
    reached.
    """
    return any(
        case.low is not None or case.high is not None or (case.values is not None and style.numbers == "any")
        for case in cases
    )


@memoize_work(maxsize=2048)
def number_case_dfa(case: NumberCase, style: Style, max_states: int) -> Dfa:
    """Return the spellings of the numbers of a case in plain style, of PLAIN_INTEGERS in any."""
    if style.numbers != "plain":  # checking the options of a new Style takes a part of the time of most automata
        style = replace(style, numbers="plain")
    if case.values is not None:
        parts = [number_automata.constant_dfa(value, style) for value in case.values]
        dfa = Dfa.union_of(parts, max_states=max_states)
    else:
        integer = case.multiple is not None and case.multiple.denominator == 1
        dfa = number_automata.number_dfa(
            low=case.low, high=case.high, low_open=case.low_open, high_open=case.high_open,
            multiple_of=None if integer and case.multiple == 1 else case.multiple,
            not_multiples=case.not_multiples, integer=integer, style=style, max_states=max_states,
        )  # fmt: skip
    if case.spelling == "integer":
        return dfa.intersect(number_automata.plain_integer_dfa(), max_states=max_states)
    if case.spelling == "fraction":
        return dfa.subtract(number_automata.plain_integer_dfa(), max_states=max_states)
    return dfa


def emit_numbers(cases: tuple[NumberCase, ...], style: Style, limits: Limits) -> tuple[set[bytes], list[Node]]:
    """Return the enumerated spellings of numbers, to be merged with other constants, and the nodes of other numbers."""
    constants: set[bytes] = set()
    nodes: list[Node] = []
    any_spelling: list[NumberCase] = []
    for case in cases:
        if case.values is not None and (style.numbers == "plain" or case.spelling == "integer"):
            constants.update(text.encode() for text in spell_values(case, style))
        elif style.numbers == "any" and case != PLAIN_INTEGERS:
            any_spelling.append(case)
        else:
            dfa = number_case_dfa(case, style, limits.dfa_states)
            if not dfa.is_empty:
                nodes.append(Chars(dfa))
    return constants, nodes + emit_any_spelling(tuple(any_spelling), style) if any_spelling else nodes


FORMS: dict[str | None, Form] = {None: "any", "fraction": "marked", "integer": "integer"}


@memoize_work(maxsize=2048)
def emit_any_spelling(cases: tuple[NumberCase, ...], style: Style) -> list[Node]:
    """Return the nodes of all spellings of the numbers of some cases: one for each kind of spelling of draft 4."""
    nodes: list[Node] = []
    for spelling, form in FORMS.items():
        intervals = [interval for case in cases if case.spelling == spelling for interval in _intervals(case)]
        if len(intervals) == 1 and intervals[0].is_scalable and form == "any":
            one = intervals[0]
            bounds = {"low": one.low, "high": one.high, "low_open": one.low_open, "high_open": one.high_open}
            nodes.append(Chars(number_automata.number_dfa(**bounds, style=style)))  # type: ignore[arg-type]
        elif intervals:
            nodes.append(Number(build_number_language(intervals, style, form)))
    return nodes


def build_number_language(intervals: list[NumberInterval], style: Style, form: Form) -> NumberLanguage:
    """Return the language of a union of intervals.

    Digits are capped by the style, unless a listed value has more or an interval has no number with fewer. Raise
    LimitError for a number of too many digits, which the automaton would meet only while masking.
    """
    spend_work(NUMBER * len(intervals), "numbers in any spelling")
    for one in intervals:
        for number in (one.low, one.high, one.multiple, *one.not_multiples):
            if number is not None:
                as_decimal(number)
    digits = style.digits
    if digits is None:
        return NumberLanguage.of(intervals, form=form)
    most_integer, most_fraction = digits, digits
    for one in intervals:
        needed = number_automata.count_most_digits(one, digits)
        if needed != (digits, digits) and NumberAutomaton(NumberLanguage.of([one], digits, digits, form)).is_empty:
            most_integer, most_fraction = max(most_integer, needed[0]), max(most_fraction, needed[1])
    return NumberLanguage.of(intervals, most_integer, most_fraction, form)


def _intervals(case: NumberCase) -> list[NumberInterval]:
    """Return the numbers of a case as intervals: one for each value that is listed."""
    if case.values is not None:
        return [NumberInterval.of(value, value, False, False, (), ()) for value in case.values]
    multiples = [one for one in (case.multiple, ONE if case.spelling == "integer" else None) if one is not None]
    return [NumberInterval.of(case.low, case.high, case.low_open, case.high_open, multiples, case.not_multiples)]


def spell_values(case: NumberCase, style: Style) -> Iterator[str]:
    """Yield the spellings of listed numbers in plain style, and of integers of draft 4 in any style."""
    for value in case.values or ():
        if value.denominator == 1 and case.spelling != "fraction":
            yield str(value.numerator)
            if style.numbers == "any" and not value.numerator:
                yield "-0"
        elif case.spelling != "integer":
            for text in plain_texts(value):
                if case.spelling is None or not text.lstrip("-").isdigit():
                    yield text
