"""All numbers except many listed ones, in any spelling: the complement of the trie of `digit_rules`, built on demand.

While the digits of a text are a prefix of those of a listed number, the text may end where its decimal point differs
from that of the number, or with any exponent except the one that would yield that number. After the first different
digit any continuation is allowed. A number other than zero always has an exponent left, so the only dead end is a zero
after which the cap allows no further digit.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from math import inf
from typing import NamedTuple

from ....automata.dfa import Dfa
from ....base.options import Style
from ....base.work import memoize_work
from ....grammar.nodes import EMPTY, Chars, Choice, Literal, Node, Rule, Sequence
from .digit_rules import SortedDecimals, exponent_dfa
from .number_automata import number_dfa
from .number_parts import as_decimal

__all__ = ["OtherNumberSuffix", "emit_other_numbers"]


class OtherNumberSuffix(NamedTuple):
    """The name of a rule: the suffix of a number that begins like the listed numbers low to high - 1 but is not listed.

    zero: whether zero is excluded, too. The other fields are those of `DecimalSuffix`; while `read` is 0, all digits
    were zeros.
    """

    numbers: SortedDecimals
    zero: bool
    low: int
    high: int
    read: int
    point: int
    after_point: bool
    bare: bool = False

    def node(self) -> Node:
        """Return the node of the rule."""
        numbers, zero, low, high, read, point, after_point, bare = self
        options = [] if bare else list(self._emit_ends())
        tail = read - point if after_point else 0
        if tail < numbers.cap if after_point else 0 < read < numbers.cap:
            next_point = point + (not after_point)
            ranges = {digit: (first, end) for digit, first, end in numbers.split(low, high, read)}
            for digit in "0123456789":
                if digit == "0" and read == 0:
                    if zero and tail + 1 >= numbers.cap:
                        continue  # only zeros would remain
                    name = OtherNumberSuffix(numbers, zero, low, high, 0, point - 1, True)
                elif digit in ranges:
                    length = read + 1 if numbers.cap < inf or not after_point else min(read + 1, numbers.longest)
                    name = OtherNumberSuffix(numbers, zero, *ranges[digit], length, next_point, after_point)
                else:
                    options.append(Sequence((Literal(digit.encode()), self._emit_any_continuation())))
                    continue
                options.append(Sequence((Literal(digit.encode()), Rule(name))))
        if not after_point:
            options.append(
                Sequence((Literal(b"."), Rule(OtherNumberSuffix(numbers, zero, low, high, read, point, True, True))))
            )
        return Choice(tuple(options))

    def _emit_ends(self) -> Iterator[Node]:
        """Yield the ends of the number in this state, except those that yield a listed number."""
        numbers, zero, low, high, read, point, _, _ = self
        if read == 0:
            if not zero:
                yield EMPTY
                yield Chars(other_exponents_dfa(frozenset()))
            return
        first = numbers.digits[low]
        listed = frozenset(
            numbers.points[k] - point
            for k in range(low, numbers.end_of_equal(low, high) if len(first) <= read else low)
        )
        if 0 not in listed:
            yield EMPTY
        yield Chars(other_exponents_dfa(listed))

    def _emit_any_continuation(self) -> Node:
        """Return any continuation after one more digit."""
        cap = self.numbers.cap
        if cap == inf:
            return Chars(number_suffix_dfa(None if self.after_point else inf, inf))
        if self.after_point:
            return Chars(number_suffix_dfa(None, cap - (self.read - self.point) - 1))
        return Chars(number_suffix_dfa(cap - self.read - 1, cap))


@memoize_work(maxsize=1024)
def other_exponents_dfa(excluded: frozenset[int]) -> Dfa:
    """Return the Dfa of all exponents except the given ones, including the e."""
    digits = Dfa.from_ranges([(48, 57)]).repeat(1, None)
    dfa = Dfa.from_strings(["e", "E", "e+", "E+", "e-", "E-"]).concatenate(digits)
    for value in excluded:
        dfa = dfa.subtract(exponent_dfa(value))
    return dfa


@memoize_work(maxsize=256)
def number_suffix_dfa(most_integer: float | None, tail: float) -> Dfa:
    """Return the Dfa of the suffix of a number: digits, a point and digits, and an exponent.

    most_integer: most further digits of the integer part; None after the point. tail: most digits of the fraction.
    """
    digit, empty = Dfa.from_ranges([(48, 57)]), Dfa.from_strings([""])
    most_tail = None if tail == inf else int(tail)
    suffix_end = empty.union(other_exponents_dfa(frozenset()))
    if most_integer is None:
        return digit.repeat(0, most_tail).concatenate(suffix_end)
    fraction = empty.union(Dfa.from_strings(["."]).concatenate(digit.repeat(1, most_tail)))
    return (
        digit.repeat(0, None if most_integer == inf else int(most_integer))
        .concatenate(fraction)
        .concatenate(suffix_end)
    )


def emit_other_numbers(values: list[Fraction], style: Style) -> Node:
    """Return the node of any number except these, in any spelling."""
    scaled = [as_decimal(value) for value in values]
    zero = any(not figures for figures, _ in scaled)
    options: list[Node] = []
    for sign in (b"", b"-"):
        selected = [pair for pair in scaled if pair[0] and (pair[0] < 0) == bool(sign)]
        if not selected:
            bounds = {"high" if sign else "low": Fraction(0), "high_open" if sign else "low_open": zero}
            options.append(Chars(number_dfa(**bounds, style=style)))  # type: ignore[arg-type]
            continue
        numbers = SortedDecimals(selected, [0] * len(selected), lambda _: EMPTY, style.digits, False)
        leading_zero = OtherNumberSuffix(numbers, zero, 0, len(selected), 0, 0, False)
        first_digits: list[Node] = [Sequence((Literal(b"0"), Rule(leading_zero)))]
        ranges = {digit: (first, end) for digit, first, end in numbers.split(0, len(selected), 0)}
        for digit in "123456789":
            following = (
                Rule(OtherNumberSuffix(numbers, zero, *ranges[digit], 1, 1, False))
                if digit in ranges
                else leading_zero._emit_any_continuation()
            )
            first_digits.append(Sequence((Literal(digit.encode()), following)))
        options.append(Sequence((Literal(sign), Choice(tuple(first_digits)))) if sign else Choice(tuple(first_digits)))
    return Choice(tuple(options))
