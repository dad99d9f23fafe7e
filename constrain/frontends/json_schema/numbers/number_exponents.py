"""Numbers with an exponent under bounds or multiples: `mantissa [eE] [+-]? digits`.

A mantissa restricts its exponent E to an interval. With the first non-zero digit at decimal position p
(value = 0.ddd * 10^p), the value is beyond a bound 0.bbb * 10^q exactly if E > q - p, or E = q - p and the digits
compare accordingly. With D its digits without trailing zeros and value = D * 10^g, it is a multiple of a / 10^s exactly
if E >= t - g - s, where t is the least number with D * 10^t a multiple of a (there may be none; and D * 10^-1 is no
integer). So after the e a state is an interval of E, and any exponent in it may be written, of any size, with leading
zeros.

p and g grow with the mantissa, so no finite automaton can represent them all. Here, and only here, a mantissa is
limited:

    no bounds but 0, no multiples   no limit: only the sign and being zero matter
    bounds                          at most REACH digits in the integer part, and zeros before the first non-zero
                                    digit of a fraction; any number of digits after that
    multiples of 1, 0.1, 0.01 ..    at most TAIL digits in the fraction and trailing zeros;
                                    any number of other digits, as soon as a lower bound is reached
    the same below a bound          at most REACH digits in the integer part, and
                                    `SignConstraints.most_leading_zeros` (4 to TAIL) zeros before
                                    the first non-zero digit of a fraction; any number after that;
                                    where the bound has more than MOST_BOUND_DIGITS digits, at most
                                    12 digits in all
    other multiples                 at most 5 digits in all; 3 or 2 where a is large (`SHORT`)

With a cap on digits (`Style.digits`), REACH applies everywhere, and zeros that no longer matter are omitted.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import inf, lcm
from typing import Any, NamedTuple

from ....automata.dfa import Table
from ....base.work import memoize_work
from .number_intervals import NumberInterval
from .number_parts import BoundDigits, as_decimal
from .number_table import explore_states, row_of

__all__ = ["exponent_table"]

MOST_BOUND_DIGITS = 13
"""Most digits of an upper bound with which only the bound itself limits a mantissa."""

REACH = 20
"""More than the 17 significant digits of a float, and than the 19 of a 64-bit integer."""

TAIL = 16
"""json.dumps writes a float with an exponent as one digit and at most 16 of fraction."""

SHORT = ((1, 12), (20, 5), (1000, 3), (inf, 2))
"""(largest number of residues, digits of the mantissa): keeps these automata below some 1,000 states, or 2,000 for an
interval of 64-bit integers.
"""

SIGN, START, INTEGER, POINT, PART, NIL, NIL_POINT, NIL_PART = "-", "start", "whole", ".", "part", "0", "0.", "0.0"
"""Phases. NIL*: all digits so far are zero."""


class Mantissa(NamedTuple):
    """A state before the e.

    sign; phase; position: p above (0 where it does not matter); tail: number of digits of the fraction (0 where it does
    not matter); low, high: number of digits that agree with the bound so far, or LESS / GREATER; zeros: number of
    trailing zeros; residues: of D modulo a, one for each multiple.
    """

    sign: str
    phase: str
    position: int = 0
    tail: int = 0
    low: int = 0
    high: int = 0
    zeros: int = 0
    residues: tuple[int, ...] = ()


LESS, GREATER, FREE = -1, -2, -3
"""Decided comparisons, and one that no longer matters; values >= 0 count the digits that agree so far."""


class MantissaBound:
    """A bound > 0 as 0.digits * 10^position, and its comparison with the digits read."""

    def __init__(self, bound: Fraction) -> None:
        scaled, scale = as_decimal(bound)
        text = str(scaled)
        self.position = len(text) - scale
        self.digits = [int(digit) for digit in text.rstrip("0")]

    def read(self, agree: int, digit: int) -> int:
        """Return the comparison after one more significant digit."""
        if agree < 0:
            return agree
        expected = self.digit(agree)
        if digit != expected:
            return LESS if digit < expected else GREATER
        return min(agree + 1, len(self.digits))

    def digit(self, index: int) -> int:
        """Return a digit of the bound."""
        return self.digits[index] if index < len(self.digits) else 0

    def sign(self, agree: int) -> int:
        """Return -1, 0 or 1: the comparison of the digits, if they end here, with those of the bound."""
        if agree < 0:
            return -1 if agree == LESS else 1
        return 0 if agree == len(self.digits) else -1


class SignConstraints:
    """The constraints on the magnitudes of one sign."""

    def __init__(self, numbers: NumberInterval, digits: int | None) -> None:
        low, high = numbers.low, numbers.high
        self.low = MantissaBound(low) if low is not None and low > 0 else None
        self.high = MantissaBound(high) if high is not None and high > 0 else None
        self.low_open, self.high_open = numbers.low_open, numbers.high_open
        self.zero = numbers.contains(Fraction(0))
        self.only_zero = high == 0
        multiples = [(numbers.multiple, True)] if numbers.multiple is not None else []
        self.factors = [
            (*as_decimal(f), want) for f, want in (*multiples, *((f, False) for f in numbers.not_multiples))
        ]
        self.bounded = self.low is not None or self.high is not None
        residues = lcm(*(a for a, _, _ in self.factors))
        self.short = next(length for most, length in SHORT if residues <= most)
        self.modular = residues > 1
        self.decimal = not self.modular and all(want for _, _, want in self.factors)
        self.scale = max((scale for _, scale, _ in self.factors), default=0)
        self.counts_position = self.bounded or self.modular
        self.cap = inf if digits is None else digits
        self.counts_tail = bool(self.factors) or digits is not None
        most_digits = self.high.position + self.scale if self.high and self.factors and self.decimal else inf
        self.is_tight = most_digits <= MOST_BOUND_DIGITS
        self.most_leading_zeros = int(min(TAIL, max(4, 1000 // max(most_digits, 1) ** 2))) if self.is_tight else REACH

    def allows(self, integer_digits: int, tail: int, zeros: int) -> bool:
        """Return whether a mantissa may have these numbers of digits.

        integer_digits: of the integer part (0: not counted). tail: of the fraction. zeros: trailing zeros.
        """
        if max(integer_digits, tail) > self.cap or integer_digits > REACH:
            return False
        if not self.factors or self.is_tight:
            return True
        if self.counts_position and (self.high or not self.decimal):
            return integer_digits + tail <= self.short
        return tail <= TAIL and zeros <= TAIL

    def counts(self, state: Mantissa) -> bool:
        """Return whether the position of the first digit may still matter."""
        capped = self.cap < inf and state.phase in (START, INTEGER)
        return capped or (self.counts_position and not (state.low == FREE and self.high is None))

    def normalise(self, state: Mantissa) -> Mantissa:
        """Return the representative of all states with the same continuations, if the multiples are those of a power of
        ten.

        The last non-zero digit and a decided lower bound each imply a least exponent. Zeros change neither, and any
        other digit only raises the first, so the smaller one can be dropped.
        """
        if not self.decimal or not self.bounded:
            return state if self.counts(state) else state._replace(position=0)
        sign, phase, position, tail, low, high, zeros, residues = state
        decided = low in (LESS, GREATER) and self.low is not None and bool(self.factors)
        if decided:
            least = self.low.position - position + (low == LESS) + self.scale  # type: ignore[union-attr]
            if tail - zeros >= least:
                low = FREE
            elif phase == PART:
                zeros = tail - least + 1
        if (
            phase == PART
            and (self.is_tight or not self.factors)
            and high == GREATER
            and low != LESS
            and not (self.low and low >= 0)
        ):
            position, high, low = position + 1, LESS, LESS if low == GREATER else low
        if self.is_tight and phase == PART:
            most = self.most(position)
            tail, zeros = min(tail, most), zeros - max(tail - most, 0)
        state = Mantissa(sign, phase, position, tail, low, high, zeros, residues)
        return state if self.counts(state) else state._replace(position=0)

    def most(self, position: int) -> int:
        """Return the number of digits of the fraction after which only zeros may follow, or the number is no
        multiple.
        """
        assert self.high is not None
        return max(self.high.position - position + self.scale, 0)

    def relevant_digits(self, state: Mantissa) -> set[int]:
        """Return the digits whose effect may differ from that of the digit before."""
        if self.modular:
            return set(range(10))
        relevant_digits = {0, 1}
        for bound, agree in ((self.low, state.low), (self.high, state.high)):
            if bound is not None and agree >= 0:
                relevant_digits |= {bound.digit(agree), bound.digit(agree) + 1}
        return relevant_digits

    def significant(self, state: Mantissa, digit: int) -> Mantissa:
        """Return the state after one more digit that is not a leading zero."""
        sign, phase, position, tail, low, high, zeros, residues = state
        if self.low and low >= 0:
            low = self.low.read(low, digit)
        if self.high and high >= 0:
            high = self.high.read(high, digit)
        if self.factors and digit == 0:
            zeros += 1
        elif self.factors:
            if self.modular:
                shift = 10 ** (zeros + 1)
                residues = tuple((old * shift + digit) % a for old, (a, _, _) in zip(residues, self.factors))
            zeros = 0
        return Mantissa(sign, phase, position, tail, low, high, zeros, residues)

    def is_dead(self, state: Mantissa) -> bool:
        """Return whether no exponent fits, whatever digits follow: a multiple with these digits is beyond the bound."""
        if self.high is None or self.modular:
            return False
        depth = state.tail - state.zeros  # position of the last non-zero digit after the point
        return any(must_divide and depth - scale > self.last(state) for _, scale, must_divide in self.factors)

    def last(self, state: Mantissa) -> float:
        """Return the last exponent below the upper bound."""
        if self.high is None:
            return inf
        sign = self.high.sign(state.high)
        return self.high.position - state.position - (sign > 0 or (sign == 0 and self.high_open))

    def exponents(self, state: Mantissa) -> tuple[float, float]:
        """Return the interval of exponents of this non-zero mantissa; empty if first > last."""
        first, last = -inf, self.last(state)
        if self.low and state.low != FREE:
            sign = self.low.sign(state.low)
            first = self.low.position - state.position + (sign < 0 or (sign == 0 and self.low_open))
        for residue, (a, scale, must_divide) in zip(state.residues, self.factors):
            least = shift_to_multiple(residue, a) - (state.zeros - state.tail + scale)
            if must_divide:
                first = max(first, least)
            else:
                last = min(last, least - 1)
        return first, last


@memoize_work(maxsize=4096)
def shift_to_multiple(residue: int, a: int) -> float:
    """Return the least t >= 0 with residue * 10^t a multiple of a; infinity if there is none."""
    for shift in range(a.bit_length() + 1):  # No more than the twos or fives in a.
        if residue % a == 0:
            return shift
        residue = residue * 10 % a
    return inf


def exponent_table(
    positive: NumberInterval | None, negative: NumberInterval | None, digits: int | None, max_states: int
) -> Table:
    """Return the Table of the numbers with an exponent, of magnitudes `positive` and, after a minus sign, `negative`.

    Raises LimitError beyond max_states states.
    """
    sides = {
        sign: SignConstraints(side, digits) for sign, side in (("", positive), (SIGN, negative)) if side is not None
    }
    symmetric = positive == negative

    def successors(state: Any) -> tuple[Sequence[Any], bool]:
        if not isinstance(state, Mantissa):
            return _exponent_row(*state)
        side = sides.get(state.sign)
        minus = None
        if state == Mantissa("", START) and SIGN in sides:
            minus = Mantissa(SIGN, START)
        if side is None:
            return row_of(digits=(None,) * 10, minus=minus), False
        if symmetric:
            state = state._replace(sign="")  # Equal automata on both sides of zero are built once.
        relevant_digits = side.relevant_digits(state)
        after: list[Mantissa | None] = []
        for digit in range(10):
            after.append(_read_digit(side, state, digit) if digit in relevant_digits else after[-1])
        return row_of(digits=after, minus=minus, point=_point(state), e=_exponent_interval(side, state)), False

    return explore_states(Mantissa("", START), successors, max_states)


def _read_digit(side: SignConstraints, state: Mantissa, digit: int) -> Mantissa | None:
    """Return the state after a digit of the mantissa, or None beyond the limits."""
    phase = state.phase
    if phase == NIL:
        return None
    if phase in (START, NIL_POINT, NIL_PART) and digit == 0:
        if phase == START:
            return state._replace(phase=NIL)
        if not side.allows(1, state.tail + 1, 0):
            return None
        counted = (side.counts_position or side.counts_tail) and (
            state.tail <= side.most_leading_zeros or side.cap < inf
        )
        return state._replace(phase=NIL_PART, tail=state.tail + counted)
    if side.only_zero:
        return None
    if phase in (START, INTEGER):
        started = state if phase == INTEGER else state._replace(phase=INTEGER, residues=(0,) * len(side.factors))
        started = started._replace(position=started.position + 1 if side.counts(started) else 0)
        following = side.significant(started, digit)
        fits = side.allows(following.position, 0, following.zeros) and not side.is_dead(following)
        return side.normalise(following) if fits else None
    if phase in (NIL_POINT, NIL_PART):
        if state.tail > side.most_leading_zeros and side.counts_position:
            return None  # A number of zeros that was no longer counted.
        position = -state.tail if side.counts_position else 0
        state = state._replace(position=position, residues=(0,) * len(side.factors))
    tail = state.tail + 1 if side.counts_tail else 0
    if side.is_tight and tail > side.most(state.position) and (digit or side.cap < inf):
        return None
    following = side.significant(state._replace(phase=PART, tail=tail), digit)
    integer_digits = (
        int(side.counts_position)
        if side.is_tight or not side.factors
        else max(following.position, int(side.counts_position))
    )
    fits = side.allows(integer_digits, tail if side.cap < inf or not side.is_tight else 0, following.zeros)
    return side.normalise(following) if fits and not side.is_dead(following) else None


def _point(state: Mantissa) -> Mantissa | None:
    phase = {NIL: NIL_POINT, INTEGER: POINT}.get(state.phase)
    return None if phase is None else state._replace(phase=phase)


def _exponent_interval(side: SignConstraints, state: Mantissa) -> tuple[Any, ...] | None:
    """Return the state after the e: the interval of exponents."""
    if state.phase in (NIL, NIL_PART):
        return ("e", -inf, inf) if side.zero else None
    if state.phase not in (INTEGER, PART):
        return None
    first, last = side.exponents(state)
    return ("e", first, last) if first <= last and first < inf else None


def _exponent_row(kind: str, first: float, last: float, *part_states: Any) -> tuple[Sequence[Any], bool]:
    """Return the successors of a state after the e.

    States are ("e", interval), ("+", interval of magnitudes) and ("d", interval of magnitudes, states of its bounds),
    where the states are None as long as only zeros were read.
    """
    magnitudes = (max(first, 0), last)
    if kind == "e":
        plus = ("+", *magnitudes) if last >= 0 else None
        minus = ("+", max(-last, 0), -first) if first <= 0 else None
        digits = _exponent_digits(*magnitudes, None) if last >= 0 else (None,) * 10
        return row_of(digits=digits, plus=plus, minus=minus), False
    states = part_states[0] if part_states else None
    accepts = bool(part_states) and (
        first <= 0 if states is None else all(part.accepts(state) for part, state in zip(_bounds(first, last), states))
    )
    return row_of(digits=_exponent_digits(first, last, states)), accepts


def _exponent_digits(first: float, last: float, known_states: tuple[Any, ...] | None) -> list[Any]:
    """Return the states after each digit of an exponent whose magnitude must lie in first..last."""
    parts = _bounds(first, last)
    states = tuple(part.start for part in parts) if known_states is None else known_states
    columns = zip(*[part.digits(state) for part, state in zip(parts, states)]) if parts else ((),) * 10
    row: list[Any] = [None if None in after else ("d", first, last, after) for after in columns]
    if known_states is None:
        row[0] = ("d", first, last, None)
    return row


@memoize_work(maxsize=4096)
def _bounds(first: float, last: float) -> tuple[BoundDigits, ...]:
    """Return the conditions on an exponent's magnitude, which may be any int >= 0 if both ends are open."""
    low = (BoundDigits(Fraction(int(first)), (0, 1)),) if first > 0 else ()
    return low if last == inf else (*low, BoundDigits(Fraction(int(last)), (-1, 0)))
