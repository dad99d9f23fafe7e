"""Many numbers in every spelling, each with what follows it: read digit by digit, as rules made on the way.

A number that is not zero is 0.ddd * 10^point. After some digits of a text those numbers are left whose digits begin so
(zeros may follow the last), and where the text's own decimal point stands says which exponent each of them needs. As
for a constant by itself (`number_exponents`), a mantissa beside an exponent has at most REACH digits before the point
and zeros behind it.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

from ....automata.dfa import Dfa
from ....grammar.nodes import EMPTY, Chars, Choice, Literal, Node, Rule, Sequence
from ....style import Style
from ..strings.words import Follow
from .number_exponents import REACH
from .number_parts import as_decimal
from .numbers import constant_dfa

__all__ = ["Digits", "decimals"]


class Decimals:
    """Numbers of one sign, none of them zero. Equal only to itself."""

    def __init__(self, values: list[Fraction], numbers: list[int], follow: Follow) -> None:
        self.numbers = numbers
        self.follow = follow
        self.digits: list[str] = []
        self.points: list[int] = []
        for value in values:
            scaled, scale = (abs(value.numerator), 0) if value.denominator == 1 else as_decimal(abs(value))
            text = str(scaled)
            self.digits.append(text.rstrip("0"))
            self.points.append(len(text) - scale)


class Digits(NamedTuple):
    """The name of a rule: the numbers that are left after some digits.

    read: digits read from the first that is not zero on. point: what has been read is 0.ddd * 10^point, so far.
    behind: whether the decimal point has been there. bare: whether it was the last that was read.
    """

    numbers: Decimals
    left: tuple[int, ...]
    read: int
    point: int
    behind: bool
    bare: bool = False

    def node(self) -> Node:
        """What it stands for."""
        all_of, left, read, point, behind, bare = self
        groups: dict[str, list[int]] = {}
        ends: dict[int, list[int]] = {}
        options: list[Node] = []
        for number in left:
            text = all_of.digits[number]
            groups.setdefault(text[read] if read < len(text) else "0", []).append(number)
            if read >= len(text) and not bare:
                ends.setdefault(all_of.points[number], []).append(number)
        for exponent, same in ends.items():
            options += self._ends(exponent - point, same)
        if read == 0 and not bare and not behind:
            groups = {}  # After the zero before the point comes the point.
        moves = point + (not behind) if read else point
        for digit, numbers in sorted(groups.items()):
            options += self._next(digit.encode(), numbers, read + 1, moves, behind)
        if behind and read == 0:  # One more zero before the first digit that is not.
            options += self._next(b"0", list(left), 0, point - 1, True)
        if not behind:
            options += self._next(b".", list(left), read, point, True, True)
        return options[0] if len(options) == 1 else Choice(tuple(options))

    def _next(
        self, byte: bytes, numbers: list[int], read: int, point: int, behind: bool, bare: bool = False
    ) -> Iterator[Node]:
        """One more character, for the numbers that can still be finished after it."""
        points = self.numbers.points
        if abs(point) > REACH:  # Without an exponent, that is.
            settled = behind and read
            numbers = [n for n in numbers if (points[n] == point if settled else self._later(points[n], point))]
        if numbers:
            if behind:  # More zeros than any number has digits make no difference.
                read = min(read, max(len(self.numbers.digits[n]) for n in numbers))
            name = Digits(self.numbers, tuple(numbers), read, point, behind, bare)
            yield Sequence((Literal(byte), Rule(name)))

    def _later(self, wanted: int, point: int) -> bool:
        """Whether more digits before the point, or more zeros behind it, may bring the point where it is wanted."""
        return wanted >= point if point > 0 else wanted <= point

    def _ends(self, exponent: int, same: list[int]) -> Iterator[Node]:
        """A number may end here, with the exponent that it then needs."""
        then = self.numbers.follow([self.numbers.numbers[number] for number in same])
        if exponent == 0:
            yield then
        if -REACH <= self.point <= REACH:
            yield _then(Chars(_exponent(exponent)), then)


def decimals(values: list[Fraction], numbers: list[int], follow: Follow, style: Style) -> Node:
    """One of the values in any spelling of a style without a cap on digits, and what follows it for its numbers."""
    options: list[Node] = []
    for sign in (b"", b"-"):
        chosen = [k for k, value in enumerate(values) if value and (value < 0) == bool(sign)]
        if chosen:
            all_of = Decimals([values[k] for k in chosen], [numbers[k] for k in chosen], follow)
            groups: dict[str, list[int]] = {}
            for number, text in enumerate(all_of.digits):
                groups.setdefault(text[0], []).append(number)
            heads: list[Node] = [
                Sequence((Literal(digit.encode()), Rule(Digits(all_of, tuple(held), 1, 1, False))))
                for digit, held in sorted(groups.items())
            ]
            heads.append(Sequence((Literal(b"0"), Rule(Digits(all_of, tuple(range(len(chosen))), 0, 0, False)))))
            options.append(Sequence((Literal(sign), Choice(tuple(heads)))) if sign else Choice(tuple(heads)))
    zeros = [number for value, number in zip(values, numbers) if not value]
    if zeros:
        options.append(_then(Chars(constant_dfa(Fraction(0), style)), follow(zeros)))
    return options[0] if len(options) == 1 else Choice(tuple(options))


@lru_cache(maxsize=1024)
def _exponent(value: int) -> Dfa:
    """The spellings of an exponent, the e included."""
    zeros = Dfa.from_strings(["0"]).star()
    signs = ["e-", "E-"] if value < 0 else ["e", "E", "e+", "E+"]
    if value == 0:
        signs = ["e", "E", "e+", "E+", "e-", "E-"]
    return Dfa.from_strings(signs).concatenate(zeros).concatenate(Dfa.from_strings([str(abs(value))]))


def _then(one: Node, other: Node) -> Node:
    return one if other is EMPTY else Sequence((one, other))
