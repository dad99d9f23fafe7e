r"""Numbers: the automaton of exactly the JSON numbers that a schema allows, and searches in the set of these numbers.

The text is RFC 8259 section 6, `-? (0|[1-9][0-9]*) (\. [0-9]+)? ([eE] [+-]? [0-9]+)?`; -0 is zero. The value is the
exact decimal that is written, never a float. A sign turns an interval into one of magnitudes, which the conditions of
`number_parts` read in parallel, digit by digit: states are explored breadth-first, then trimmed, so that there is no
dead end (`0.005` for a multiple of 0.01), and minimised by `Dfa`. Multiples have automata of their own
(`number_multiples`), which are intersected with those of the bounds.

The language depends on `Style.numbers`:

    plain, integer   no fraction, no exponent
    plain, number    no bounds but 0, no multiples: fraction, exponent of 1 to 3 digits; else fraction, no exponent
    any, number      no bounds but 0, no multiples: everything
    any, otherwise   no DFA: exponents make bounds and multiples irregular (a mantissa of any length against an exponent
                     of any size); see `number_sets.build_number_language`

`Style.digits` caps the digits in a row of an integer part without a bound, and of every fraction, unless the schema
itself needs more, or asserts multiples with more than MOST_CAPPED residues.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import partial
from math import ceil, floor, inf, lcm
from typing import Any

from ....automata.dfa import MAX_STATES, Dfa, Table
from ....automata.numerals.decimals import lcm_of
from ....automata.numerals.number_interval import NumberInterval
from ....base.options import Style
from ....base.work import memoize_work
from .bounded_numbers import build_bounded_dfa
from .number_multiples import ARRAY_STATES, count_lasting_residues, count_residues, multiples_dfa
from .number_parts import (
    BoundDigits,
    DigitCap,
    DigitCondition,
    ValueDigits,
    plain_texts,
    split_digits,
    too_many_states,
)
from .number_table import explore_states, row_of

__all__ = [
    "bounded_dfa", "constant_dfa", "count_most_digits", "count_numbers", "find_number", "number_dfa",
    "plain_integer_dfa", "tabulate_numbers",
]  # fmt: skip

MOST_MEMBERS = 5_000
"""Most values that are enumerated where a multiple has too many residues."""

MANY_RESIDUES = 500
"""Number of residues from which the values are counted, to enumerate them if there are fewer."""

MOST_CAPPED = 300
"""Most residues with which digits are capped: each needs a state for each digit that may be written."""

ZERO_BOUND, ONE = Fraction(0), Fraction(1)

PLAIN_EXPONENT = 3
"""Digits of an exponent in plain style: all floats have at most three (`1e-323`)."""


def number_dfa(
    *,
    low: Fraction | None = None,
    high: Fraction | None = None,
    low_open: bool = False,
    high_open: bool = False,
    multiple_of: Fraction | None = None,
    not_multiples: tuple[Fraction, ...] = (),
    integer: bool = False,
    style: Style,
    max_states: int = MAX_STATES,
) -> Dfa:
    """Return the Dfa (over ASCII) of the JSON numbers in the set, as defined in the module docstring; empty if there
    are none.

    low, high, multiple_of, not_multiples: decimals (ValueError otherwise); multiples are positive. integer: whether the
    fraction must be zero. Raises ValueError where there is no Dfa, and LimitError for more than max_states states, or a
    bound of more than 4,096 digits.
    """
    key = (low, high, low_open, high_open, multiple_of, tuple(not_multiples), integer)
    return _number_dfa(*key, style.numbers == "any", style.digits, max_states)


@memoize_work(maxsize=512)
def bounded_dfa(low: int | None, high: int | None, integer: bool, digits: int | None, max_states: int) -> Dfa:
    """Return what `number_dfa` does in plain style for bounds that are integers, the usual ones, in less time.

    digits: of the style. The normal form of the interval is that of `NumberInterval.of`.
    """
    least, most = None if low is None else Fraction(low), None if high is None else Fraction(high)
    if integer:
        is_positive, is_negative = low == 1, high == -1
        numbers = NumberInterval(
            ZERO_BOUND if is_positive else least, ZERO_BOUND if is_negative else most, is_positive, is_negative, ONE, ()
        )
    else:
        numbers = NumberInterval(least, most, False, False, None, ())
    exponent = PLAIN_EXPONENT if numbers.is_scalable else 0
    return build_bounded_dfa(numbers, not integer, exponent, partial(_cap_digits, not integer, digits), max_states)


def constant_dfa(value: Fraction | int, style: Style) -> Dfa:
    """Return the Dfa of the spellings of exactly this decimal.

    Plain: the shortest text without an exponent, and that of `json.dumps` for the float if it denotes the same number:
    1 and 1.0; 0.000001 and 1e-06. Any: as number_dfa, of zero only.
    """
    value = Fraction(value)
    if style.numbers == "any":
        return number_dfa(low=value, high=value, style=style)
    return _constant_dfa(value)


@memoize_work(maxsize=1)
def plain_integer_dfa() -> Dfa:
    """Return the Dfa of numbers without fraction and exponent."""
    digit, zero = Dfa.from_ranges([(48, 57)]), Dfa.from_ranges([(48, 48)])
    magnitude = zero.union(Dfa.from_ranges([(49, 57)]).concatenate(digit.star()))
    return Dfa.from_strings(["", "-"]).concatenate(magnitude)


def find_number(
    low: Fraction | None,
    high: Fraction | None,
    low_open: bool,
    high_open: bool,
    multiple_of: Fraction | None,
    not_multiples: tuple[Fraction, ...] = (),
) -> Fraction | None:
    """Return a number of the set with a small magnitude and a short decimal; None exactly if the set is empty."""
    numbers = NumberInterval.of(low, high, low_open, high_open, _as_tuple(multiple_of), not_multiples)
    if low is not None and low == high:
        return low if numbers.contains(low) else None
    if numbers.multiple is not None:
        return next(_multiples(numbers, numbers.multiple), None)
    if low is not None and high is not None and low > high:
        return None
    step = Fraction(1)
    # Terminates: an interval holds multiples of any sufficiently small step, not all of them multiples of the excluded.
    while (number := next(_multiples(numbers, step), None)) is None:
        step /= 10
    return number


def count_numbers(
    low: Fraction | None,
    high: Fraction | None,
    low_open: bool,
    high_open: bool,
    multiple_of: Fraction | None,
    not_multiples: tuple[Fraction, ...] = (),
    *,
    cap: int,
) -> int:
    """Return how many numbers the set has, at most cap."""
    numbers = NumberInterval.of(low, high, low_open, high_open, _as_tuple(multiple_of), not_multiples)
    if low is not None and low == high:
        return min(cap, int(numbers.contains(low)))
    if numbers.multiple is None:
        return cap if low is None or high is None or low < high else 0
    first, last = _index_range(numbers, numbers.multiple)
    if not numbers.not_multiples and first > -inf and last < inf:
        return max(0, min(cap, int(last - first) + 1))
    return sum(1 for _, _ in zip(range(cap), _multiples(numbers, numbers.multiple)))


# ---- sets ------------------------------------------------------------------------------------------------------


def _as_tuple(value: Fraction | None) -> tuple[Fraction, ...]:
    return () if value is None else (value,)


def _index_range(numbers: NumberInterval, step: Fraction) -> tuple[float, float]:
    """Return the first and last k with k * step between the bounds, as ints or infinities."""
    first, last = -inf, inf
    if numbers.low is not None:
        first = ceil(numbers.low / step)
        first += numbers.low_open and first * step == numbers.low
    if numbers.high is not None:
        last = floor(numbers.high / step)
        last -= numbers.high_open and last * step == numbers.high
    return first, last


def _multiples(numbers: NumberInterval, step: Fraction) -> Iterator[Fraction]:
    """Yield the numbers of the set that are multiples of step, those nearest to zero first.

    k * step is a multiple of n exactly if k is a multiple of lcm(step, n) / step. So unless that is 1, among any few
    consecutive k there is one that is not a multiple of any n: results are never far apart.
    """
    periods = [int(lcm_of((step, other)) / step) for other in numbers.not_multiples]
    if 1 in periods:
        return
    first, last = _index_range(numbers, step)
    up = max(first, 0)
    down = min(last, -1)
    while up <= last or down >= first:
        if up <= last:
            if all(up % period for period in periods):
                yield int(up) * step
            up += 1
        if down >= first:
            if all(down % period for period in periods):
                yield int(down) * step
            down -= 1


# ---- the automaton ---------------------------------------------------------------------------------------------


@memoize_work(maxsize=512)
def _constant_dfa(value: Fraction) -> Dfa:
    return Dfa.from_strings(plain_texts(value))


@memoize_work(maxsize=512)
def _number_dfa(
    low: Fraction | None,
    high: Fraction | None,
    low_open: bool,
    high_open: bool,
    multiple_of: Fraction | None,
    not_multiples: tuple[Fraction, ...],
    integer: bool,
    spell_any: bool,
    digits: int | None,
    max_states: int,
) -> Dfa:
    multiples = _as_tuple(multiple_of) + ((Fraction(1),) if integer else ())
    numbers = NumberInterval.of(low, high, low_open, high_open, multiples, not_multiples)
    if spell_any and not numbers.is_scalable:
        raise ValueError("bounds and multiples of numbers in any spelling have no DFA")
    fraction = spell_any or not integer
    exponent = (inf if spell_any else PLAIN_EXPONENT) if numbers.is_scalable else 0
    factors = [(other, False) for other in numbers.not_multiples]
    if numbers.multiple is not None and (fraction or numbers.multiple != 1):
        factors.insert(0, (numbers.multiple, True))
    number = lcm(*(count_residues(factor) for factor, _ in factors))
    values = _list_small_set(numbers, number)
    if values is None and (numbers.low is None or numbers.high is None) and count_lasting_residues(number) > max_states:
        raise too_many_states(max_states)  # raised early, since the product would find it slowly
    capped = digits if values is not None or number <= MOST_CAPPED else None
    if values is None:
        dfa = build_bounded_dfa(numbers, fraction, exponent, partial(_cap_digits, fraction, capped), max_states)
    else:
        dfa = Dfa.from_table(tabulate_numbers(numbers, values, fraction, exponent, capped, max_states))
    for factor, wanted in factors if values is None else ():
        dfa = dfa.intersect(multiples_dfa(factor, wanted, fraction, max_states), max_states=ARRAY_STATES * max_states)
    return dfa


START, ZERO, INTEGER, POINT, TAIL = range(5)
"""Phases of reading: no digit yet; a leading zero; more digits; the point; digits of the fraction."""

E, E_SIGN, SIGN = "e", "e+", "-"
"""Further phases: the e; its sign; the minus sign. After the digits of an exponent the state is ("e", their number)."""


def tabulate_numbers(
    numbers: NumberInterval,
    listed: list[Fraction] | None,
    fraction: bool,
    exponent: float,
    digits: int | None,
    max_states: int,
) -> Table:
    """Return the Table of numbers in terms of their conditions: of listed ones, or of those between the bounds.

    fraction: whether there may be one. exponent: most digits of an exponent, if numbers are scalable.
    """
    mirrored = numbers.mirrored()
    conditions: dict[Any, list[DigitCondition]] = {}
    for sign, side in (("", numbers), (SIGN, mirrored)):
        if side.has_magnitudes():
            values = listed and [-value if sign else value for value in listed]
            conditions[sign] = _build_conditions(side, values, fraction, digits)
    negative_sign = "" if mirrored == numbers else SIGN  # Equal automata on both sides of zero are built once.

    def successors(state: Any) -> tuple[Sequence[Any], bool]:
        if state[0] == "e":
            return _exponent_row(state[1], exponent)
        sign, phase, states = state
        if phase == START and sign == "":
            minus = (SIGN, START, _start_states(conditions[SIGN])) if SIGN in conditions else None
            digit_row = _digit_row("", conditions[""], START, states) if "" in conditions else (None,) * 10
            return row_of(digits=digit_row, minus=minus), False
        parts = conditions[sign]
        ends = phase in (ZERO, INTEGER, TAIL)
        accepts = ends and all(part.accepts(state_of_part) for part, state_of_part in zip(parts, states))
        digit_row = (None,) * 10 if phase == ZERO else _digit_row(sign and negative_sign, parts, phase, states)
        point = None
        if fraction and phase in (ZERO, INTEGER):
            after = tuple(part.point(state_of_part) for part, state_of_part in zip(parts, states))
            point = None if None in after else (sign, POINT, after)
        return row_of(digits=digit_row, point=point, e=("e", E) if exponent and accepts else None), accepts

    first = ("", START, _start_states(conditions.get("", [])))
    return explore_states(first, successors, max_states)


def _start_states(parts: Sequence[DigitCondition]) -> tuple[Any, ...]:
    return tuple(part.start for part in parts)


def _digit_row(sign: str, parts: Sequence[DigitCondition], phase: int, states: tuple[Any, ...]) -> list[Any]:
    """Return the states after each digit."""
    following = TAIL if phase >= POINT else INTEGER
    columns = zip(*[part.digits(state) for part, state in zip(parts, states)]) if parts else ((),) * 10
    row: list[Any] = [None if None in after else (sign, following, after) for after in columns]
    if phase == START and row[0] is not None:
        row[0] = (sign, ZERO, row[0][2])
    return row


def _exponent_row(read: Any, most: float) -> tuple[Sequence[Any], bool]:
    """Return the states after the e: `read` is E, E_SIGN or the number of digits."""
    count = read if isinstance(read, int) else 0
    next_digit = ("e", min(count + 1, most) if most < inf else 1) if count < most else None
    sign = ("e", E_SIGN) if read == E else None
    return row_of(digits=(next_digit,) * 10, plus=sign, minus=sign), count > 0


def _build_conditions(
    numbers: NumberInterval, values: list[Fraction] | None, fraction: bool, digits: int | None
) -> list[DigitCondition]:
    """Return the conditions on a magnitude other than multiples. A lower bound of 0 needs none."""
    parts: list[DigitCondition] = []
    low, high = numbers.low, numbers.high
    if values is not None:
        parts.append(ValueDigits(value for value in values if value >= 0))
    if values is None and low is not None and (low > 0 or (low == 0 and numbers.low_open)):
        parts.append(BoundDigits(low, (1,) if numbers.low_open else (0, 1)))
    if values is None and high is not None:
        parts.append(BoundDigits(high, (-1,) if numbers.high_open else (-1, 0)))
    parts.append(DigitCap(*_cap_digits(fraction, digits, numbers)))
    return parts


def _list_small_set(numbers: NumberInterval, residues: int) -> list[Fraction] | None:
    """Return the numbers as a list if there are fewer than residues of all factors, else None."""
    if numbers.multiple is None or residues < MANY_RESIDUES:
        return None
    first, last = _index_range(numbers, numbers.multiple)
    if last >= first + min(MOST_MEMBERS, residues):  # not last - first: an int may be too large to be less infinity
        return None
    values = (index * numbers.multiple for index in range(int(first), int(last) + 1))
    return [value for value in values if numbers.contains(value)]


def _cap_digits(fraction: bool, digits: int | None, numbers: NumberInterval) -> tuple[int | None, int | None]:
    """Return the most digits of the integer part and of the fraction of a number without an exponent (None: no cap).

    The integer part needs no cap below a bound.
    """
    if digits is None or not (fraction or numbers.high is None):
        return None, None
    most_integer, most_tail = count_most_digits(numbers, digits)
    return (most_integer if numbers.high is None else None), most_tail


def count_most_digits(numbers: NumberInterval, digits: int) -> tuple[int, int]:
    """Return the most digits of an integer part and of a fraction: `digits`, or what the constraints need.

    Beyond a lower bound of n digits there are numbers of n + 1 digits, among them a multiple of each a < 10^n. Between
    two bounds with at most f digits of fraction lies a number with f + 1.
    """
    most_integer, most_tail = digits, digits
    for bound in (numbers.low, numbers.high):
        if bound is not None:
            before, after = split_digits(abs(bound))
            most_integer, most_tail = max(most_integer, len(before) + 1), max(most_tail, len(after) + 1)
    for factor in (*_as_tuple(numbers.multiple), *numbers.not_multiples):
        before, after = split_digits(factor)
        most_integer, most_tail = max(most_integer, len(before) + 1), max(most_tail, len(after) + 1)
    return most_integer, most_tail
