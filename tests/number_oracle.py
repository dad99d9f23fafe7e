"""Random sets of numbers and their definition by exact fractions, for tests of the automata of their spellings."""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import dataclass
from fractions import Fraction
from heapq import heappop, heappush
from math import lcm
from random import Random

from constrain.automata.numerals.decimals import lcm_of
from constrain.automata.numerals.number_automaton import NumberAutomaton
from constrain.automata.numerals.number_interval import NumberInterval
from constrain.automata.numerals.number_language import Form, NumberLanguage

NUMBER = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?")
PREFIX = re.compile(r"-?((0|[1-9]\d*)((\.\d*)?|(\.\d+)?[eE]([+-]?\d*)))?")
ALPHABET = "01259-+.e"
MOST_EXPONENT = 3
"""Digits of an exponent in tests: the definition computes the power of ten."""

Bounds = tuple[Fraction | None, bool, Fraction | None, bool, Fraction | None, tuple[Fraction, ...]]
"""low, whether it is open, high, whether it is open, multiple, multiples that are excluded."""


@dataclass(frozen=True)
class NumberOracle:
    """A union of sets given by bounds and multiples, as Fraction decides it; options as of NumberLanguage."""

    cases: tuple[Bounds, ...]
    most_integer: int | None = None
    most_fraction: int | None = None
    form: Form = "any"

    def language(self) -> NumberLanguage:
        """Return the language under test."""
        intervals = [
            NumberInterval.of(low, high, low_open, high_open, () if multiple is None else (multiple,), others)
            for low, low_open, high, high_open, multiple, others in self.cases
        ]
        return NumberLanguage.of(intervals, self.most_integer, self.most_fraction, self.form)

    def contains(self, value: Fraction) -> bool:
        """Return whether a value is a member."""
        return any(
            (low is None or value > low or (value == low and not low_open))
            and (high is None or value < high or (value == high and not high_open))
            and (multiple is None or (value / multiple).denominator == 1)
            and all((value / other).denominator > 1 for other in others)
            for low, low_open, high, high_open, multiple, others in self.cases
        )

    def has_form(self, text: str) -> bool:
        """Return whether a number has no more digits than are allowed, and the mark that it needs."""
        integer, _, fraction = re.split("[eE]", text)[0].lstrip("-").partition(".")
        return (
            (self.most_integer is None or len(integer) <= self.most_integer)
            and (self.most_fraction is None or len(fraction) <= self.most_fraction)
            and (self.form == "any" or text.lstrip("-").isdigit() == (self.form == "integer"))
        )

    def accepts(self, text: str) -> bool:
        """Return whether a text is a spelling of a member."""
        return bool(NUMBER.fullmatch(text)) and self.has_form(text) and self.contains(exact_value(text))

    def samples(self, random: Random) -> list[Fraction]:
        """Return members near the bounds and zero, and a few others."""
        found = set[Fraction]()
        for low, _, high, _, multiple, _ in self.cases:
            step = multiple or Fraction(1, 1000)
            for end in (bound for bound in (low, high, Fraction(0)) if bound is not None):
                for shift in [*range(-12, 13), *(random.randint(-(10**9), 10**9) for _ in range(4))]:
                    found.add((end // step + shift) * step)
                found |= {end + Fraction(random.randint(-999, 999), 10 ** random.randint(0, 6)) for _ in range(8)}
        return sorted(value for value in found if self.contains(value))

    def is_prefix(self, prefix: str, value: Fraction) -> bool:
        """Return whether a mantissa is the beginning of a spelling of a member, in any style without limits of digits.

        An exponent corrects the place of the point, so only the digits count.
        """
        if value and (value < 0) != prefix.startswith("-"):
            return False
        digits = prefix.lstrip("-").replace(".", "").lstrip("0")
        while value.denominator > 1:
            value *= 10
        written = str(abs(value.numerator)).rstrip("0")
        return (written.ljust(len(digits), "0").startswith(digits)) if value else not digits


def exact_value(text: str) -> Fraction:
    """Return the value of a number, whose exponent may be long if it is zero."""
    mantissa, _, exponent = text.lower().partition("e")
    value = Fraction(mantissa)
    return value and value * Fraction(10) ** int(exponent or 0)


def is_spelled(language: NumberLanguage, text: str) -> bool:
    """Return whether a text is in a language, by its definition: the gap or the bound where the value lies."""
    if not NUMBER.fullmatch(text):
        return False
    options = NumberOracle((), language.most_integer, language.most_fraction, language.form)
    value = exact_value(text)
    numbers = language.negative if value < 0 else language.positive
    place = bisect_left(numbers.points, abs(value))
    if not value:
        is_member = language.has_zero
    elif place < len(numbers.points) and numbers.points[place] == abs(value):
        is_member = numbers.has_points[place]
    else:
        is_member = any(
            (multiple is None or (value / multiple).denominator == 1)
            and all((value / other).denominator > 1 for other in others)
            for multiple, others in numbers.gaps[place]
        )
    return is_member and options.has_form(text)


def random_decimal(random: Random, *, positive: bool = False) -> Fraction:
    """Return a decimal such as schemas have as bounds."""
    kind = random.random()
    if kind < 0.5:
        value = Fraction(random.choice([0, 1, 2, 5, 9, 10, 12, 20, 25, 50, 90, 100, 101, 255, 360, 999, 1000, 65535]))
    elif kind < 0.8:
        value = Fraction(random.randint(0, 2000), random.choice([10, 100, 1000]))
    else:
        value = random.randint(1, 99) * Fraction(10) ** random.randint(-8, 8)
    return -value if not positive and random.random() < 0.3 else value


MULTIPLES = [
    Fraction(text)
    for text in (
        "1 1 1 0.01 0.1 2.5 0.5 2 3 7 4 0.25 10 100 25 11 12 1.5 0.375 0.123 16 40 0.07 1250 99 97 0.123456789".split()
    )
]


EDGES = [1, 2, 5, 10, 30, 50, 99, 100, 101, 200, 400, 500, 999, 1000, 2000, 10_000]
"""Bounds of neighbouring intervals."""


def random_case(random: Random, multiple: Fraction | None, n_others: int) -> Bounds:
    """Return bounds, one or both of which may be missing."""
    ends = sorted([random_decimal(random), random_decimal(random)])
    low, high = (end if random.random() < 0.6 else None for end in ends)
    others = tuple(random.choice(MULTIPLES) for _ in range(n_others))
    return low, random.random() < 0.3, high, random.random() < 0.3, multiple, others


def random_oracle(random: Random) -> NumberOracle:
    """Return a random set: often a single divisor and a bound or two, since one error of merging may hide another."""
    kind = random.random()
    if kind < 0.55:
        cases: tuple[Bounds, ...] = (random_case(random, random.choice(MULTIPLES), 0),)
    elif kind < 0.65:
        cases = (random_case(random, None, 1),)
    elif kind < 0.75:
        cases = (random_case(random, None, 0),)
    elif kind < 0.8:
        product = lcm(*(random.choice([2, 3, 4, 5, 7, 8, 25]) for _ in range(2)))
        cases = (random_case(random, Fraction(product, random.choice([1, 10, 100])), random.randint(0, 1)),)
    elif kind < 0.87:
        values = sorted({random_decimal(random) for _ in range(random.randint(1, 12))})
        if random.random() < 0.5:
            cases = tuple((value, False, value, False, None, ()) for value in values)
        else:
            edges = [None, *values, None]
            cases = tuple((low, True, high, True, None, ()) for low, high in zip(edges, edges[1:]))
    elif kind < 0.93:  # neighbours, so that what a remainder is of depends on the digits
        ends: list[Fraction | None] = [*map(Fraction, sorted(random.sample(EDGES, 4)))]
        ends[-1] = random.choice([ends[-1], None])
        cases = tuple((low, False, high, True, random.choice(MULTIPLES), ()) for low, high in zip(ends, ends[1:]))
    else:
        cases = tuple(
            random_case(random, random.choice([None, *MULTIPLES]), random.choice([0, 0, 1, 2]))
            for _ in range(random.randint(2, 3))
        )
    form: Form = random.choice(["any"] * 8 + ["marked", "integer"])
    if form == "integer":  # bounds of integers, so that the integers of an unbounded set do not end
        cases = tuple(
            (*case[:4], case[4] if case[0] == case[2] else lcm_of((case[4] or ONE, ONE)), ()) for case in cases
        )
    if random.random() < 0.2:
        return NumberOracle(cases, random.randint(5, 9), random.randint(4, 9), form)
    return NumberOracle(cases, form=form)


ONE = Fraction(1)


def follow(automaton: NumberAutomaton, text: str, state: int = 0) -> int | None:
    """Return the state after a text, or None if it is refused."""
    for byte in text.encode():
        following = automaton.row(state).get(byte)
        if following is None:
            return None
        state = following
    return state


def complete(automaton: NumberAutomaton, state: int) -> str:
    """Return a shortest completion, found by best-first search (A*) with the least number of bytes as the estimate."""
    heap, seen = [(automaton.least(state), "", state)], set[int]()
    while True:
        _, text, current = heappop(heap)
        if automaton.accepts(current):
            return text
        if current not in seen:
            seen.add(current)
            for byte, after in sorted(automaton.row(current).items()):
                heappush(heap, (len(text) + 1 + automaton.least(after), text + chr(byte), after))


def descend(automaton: NumberAutomaton, state: int, known: dict[int, str]) -> str:
    """Return a completion, remembering those of the states on its way in `known`.

    It is found by a descent along the least numbers of bytes, and shortest. Where a limit of digits makes these too
    small for a descent, `complete` goes on.
    """
    path: list[tuple[int, str]] = []
    while state not in known:
        least = automaton.least(state)
        row = automaton.row(state)
        byte = next((byte for byte, after in row.items() if automaton.least(after) == least - 1), None)
        if byte is None:
            known[state] = complete(automaton, state)
        else:
            path.append((state, chr(byte)))
            state = row[byte]
    for before, char in reversed(path):
        known[before] = char + known[state]
        state = before
    return known[state]


def random_suffix(random: Random, text: str) -> str:
    """Return what may follow a text syntactically, most often."""

    def digits(most: int) -> str:
        return "".join(random.choice("0001255789") for _ in range(random.randint(0, most)))

    exponent = random.choice(["", "", "e", "e-", "e+"])
    exponent += random.choice(["", "0", "1", "2", "3", "5", "7", "9", "12", "30", "007"]) if exponent else ""
    if "e" in text or "E" in text:
        written = len(text.lower().partition("e")[2].lstrip("+-0"))
        return random.choice(["", "", "-", "+"]) + digits(max(0, MOST_EXPONENT - written))
    if "." in text:
        return digits(5) + exponent
    return digits(4) + random.choice(["", "." + digits(4)]) + exponent
