"""Many numbers in any spelling, each with its own continuation: rules over digits, built on demand.

Numbers without continuations are one leaf (`number_sets.emit_numbers`), which is exact; here the continuation differs
from number to number.

A number other than zero is 0.ddd * 10^point. After some digits of a text, the numbers whose digits begin with them
remain (zeros may follow the last digit), and the position of the decimal point in the text determines the exponent that
each of them needs. The numbers are sorted by their digits, so the remaining ones form a range. A mantissa with an
exponent has at most REACH digits before the point and zeros after it; a cap on digits applies to the fraction, unless
the number itself needs more, and to all digits of such a mantissa.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from fractions import Fraction
from math import inf
from typing import NamedTuple

import numpy as np

from ....automata.dfa import Dfa
from ....automata.numerals.decimals import as_decimal
from ....base.options import Style
from ....base.work import memoize_work
from ....grammar.nodes import EMPTY, Chars, Literal, Node, Rule, Sequence
from ..core.node_building import choice_of
from ..strings.enum_words import Follow
from .number_automata import constant_dfa, plain_integer_dfa

__all__ = ["SortedDecimals", "DecimalSuffix", "emit_decimals", "exponent_dfa"]

REACH = 20
"""More than the 17 significant digits of a float, and than the 19 of a 64-bit integer."""


class SortedDecimals:
    """Non-zero numbers of one sign, sorted by their digits. Compared by identity.

    scaled: (a, s) for a / 10^s. follow: emits what follows a number, given the indices of the numbers. cap: most digits
    in a row. needs_mark: whether a number must have a point or an exponent.
    """

    def __init__(
        self, scaled: list[tuple[int, int]], numbers: list[int], follow: Follow, cap: int | None, needs_mark: bool
    ) -> None:
        significands = [str(abs(figures)) for figures, _ in scaled]
        points = [len(text) - scale for text, (_, scale) in zip(significands, scaled)]
        texts = [text.rstrip("0") for text in significands]
        order = sorted(range(len(scaled)), key=points.__getitem__)
        order.sort(key=texts.__getitem__)
        self.digits = [texts[k] for k in order]
        self.points = [points[k] for k in order]
        self.numbers = [numbers[k] for k in order]
        self.follow = follow
        self.needs_mark = needs_mark
        self.cap = inf if cap is None else cap
        self.most_integer = min(REACH, self.cap)
        self.lengths = np.array([len(text) for text in self.digits])
        self.point_array = np.array(self.points)
        self.longest = int(self.lengths.max())

    def split(self, low: int, high: int, read: int) -> Iterator[tuple[str, int, int]]:
        """Return the ranges of the numbers that continue with the same digit."""
        digits = self.digits
        prefix = digits[low][:read].ljust(read, "0")
        while low < high:
            digit = digits[low][read : read + 1] or "0"
            end = high if digit == "9" else bisect_left(digits, prefix + chr(ord(digit) + 1), low, high)
            yield digit, low, end
            low = end

    def end_of_equal(self, low: int, high: int) -> int:
        """Return the end of the subrange of the numbers with the same digits as the first one."""
        return bisect_right(self.digits, self.digits[low], low, high)

    def can_finish(self, low: int, high: int, read: int, point: int, after_point: bool) -> bool:
        """Return whether some number of a range can be completed, with or without an exponent."""
        if not after_point:
            longest = self.cap if not read else self.most_integer + self.cap if point <= self.most_integer else -1
        elif read:
            longest = self.cap + point if -REACH <= point <= self.most_integer and read - point <= self.cap else -1
        else:
            longest = self.cap + point if point >= -REACH else -1
        if longest >= self.longest:
            return True
        lengths, points = self.lengths[low:high], self.point_array[low:high]
        if after_point and read:
            fits = (points == point) & (read - point <= np.maximum(np.maximum(lengths - points, 0) + 1, self.cap))
        else:
            fits = points >= point if read else points <= point
        return bool((fits | (lengths <= longest)).any())


class DecimalSuffix(NamedTuple):
    """The name of a rule: the numbers low to high - 1, which remain after some digits.

    read: number of digits read, from the first that is not zero. point: the text so far is 0.ddd * 10^point.
    after_point: whether the decimal point has been read. bare: whether it was the last character read.
    """

    numbers: SortedDecimals
    low: int
    high: int
    read: int
    point: int
    after_point: bool
    bare: bool = False

    def node(self) -> Node:
        """Return the node of the rule."""
        numbers, low, high, read, point, after_point, bare = self
        options: list[Node] = []
        if read and len(numbers.digits[low]) <= read and not bare:
            options += self._emit_ends(numbers.end_of_equal(low, high))
        if read or after_point:
            next_point = point + (not after_point) if read else point
            for digit, first, end in numbers.split(low, high, read):
                options += _emit_character(
                    digit.encode(), DecimalSuffix(numbers, first, end, read + 1, next_point, after_point)
                )
        if after_point and read == 0:  # One more zero before the first digit that is not.
            options += _emit_character(b"0", DecimalSuffix(numbers, low, high, 0, point - 1, True))
        if not after_point:
            options += _emit_character(b".", DecimalSuffix(numbers, low, high, read, point, True, True))
        return choice_of(options)

    def _emit_ends(self, end: int) -> Iterator[Node]:
        """Return the ends of the numbers before `end`, with the exponents that they need here."""
        numbers, first, _, read, point, after_point, _ = self
        tail = read - point if after_point else 0
        while first < end:
            own_point = numbers.points[first]
            end_of_group = bisect_right(numbers.points, own_point, first, end)
            continuation = numbers.follow(numbers.numbers[first:end_of_group])
            needed = max(len(numbers.digits[first]) - own_point, 0) + 1
            if own_point == point and tail <= max(needed, numbers.cap) and (after_point or not numbers.needs_mark):
                yield continuation
            if -REACH <= point <= numbers.most_integer and tail <= numbers.cap:
                yield _concatenate(Chars(exponent_dfa(own_point - point)), continuation)
            first = end_of_group


def _emit_character(byte: bytes, name: DecimalSuffix) -> Iterator[Node]:
    """Return one more character and what follows it, if some number can still be completed after it."""
    numbers, low, high, read, point, after_point, _ = name
    if numbers.can_finish(low, high, read, point, after_point):
        if after_point and numbers.cap == inf:  # More zeros than any number has digits make no difference.
            name = name._replace(read=min(read, numbers.longest))
        yield Sequence((Literal(byte), Rule(name)))


def emit_decimals(
    values: list[Fraction], numbers: list[int], follow: Follow, style: Style, *, needs_mark: bool = False
) -> Node:
    """Return the node of one of the values in any spelling, with the continuation of its indices.

    needs_mark: whether each is written with a point or an exponent.
    """
    options: list[Node] = []
    scaled = [as_decimal(value) for value in values]
    for sign in (b"", b"-"):
        selected = [k for k, (figures, _) in enumerate(scaled) if figures and (figures < 0) == bool(sign)]
        if selected:
            decimals = SortedDecimals(
                [scaled[k] for k in selected], [numbers[k] for k in selected], follow, style.digits, needs_mark
            )
            first_digits: list[Node] = []
            for digit, first, end in decimals.split(0, len(selected), 0):
                first_digits += _emit_character(digit.encode(), DecimalSuffix(decimals, first, end, 1, 1, False))
            first_digits += _emit_character(b"0", DecimalSuffix(decimals, 0, len(selected), 0, 0, False))
            options.append(_concatenate(Literal(sign), choice_of(first_digits)) if sign else choice_of(first_digits))
    zeros = [number for (figures, _), number in zip(scaled, numbers) if not figures]
    if zeros:
        dfa = constant_dfa(Fraction(0), style)
        options.append(_concatenate(Chars(dfa.subtract(plain_integer_dfa()) if needs_mark else dfa), follow(zeros)))
    return choice_of(options)


@memoize_work(maxsize=1024)
def exponent_dfa(value: int) -> Dfa:
    """Return the Dfa of the spellings of an exponent, including the e."""
    zeros = Dfa.from_strings(["0"]).star()
    signs = ["e-", "E-"] if value < 0 else ["e", "E", "e+", "E+"]
    if value == 0:
        signs = ["e", "E", "e+", "E+", "e-", "E-"]
    return Dfa.from_strings(signs).concatenate(zeros).concatenate(Dfa.from_strings([str(abs(value))]))


def _concatenate(one: Node, other: Node) -> Node:
    return one if other is EMPTY else Sequence((one, other))
