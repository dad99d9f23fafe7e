"""The automata of NumberLanguages: states are computed when they are reached, and merged if they have one future.

So are states of different languages: once its digits are beyond all bounds, an integer is read as any other.

With D the integer of the significant digits read, f of them after the point, and E the exponent, the value is
D * 10^(E - f). What a mantissa says about its exponent is found exactly:

- A bound is exceeded from some E on, for ever once the digits differ from those of the bound
  (`magnitude_set.Segments`, in which the position is E plus that of the first digit).
- The value is a multiple of a / 10^s exactly from some E on, which only changes with trailing zeros, and otherwise
  depends on D modulo a divisor of a (`decimals.Divisor`).

So the exponents that may follow form finitely many intervals. A mantissa can be completed if a member of the set begins
with its digits, whatever the position, since the exponent corrects the position.

A state has a *key*, which determines its future, and one representative, from which its successors are computed. So a
key may distinguish too much, but must never distinguish too little. Three facts keep keys few: an exponent from which
on something holds is cut to the exponents that are allowed at all; if all that is allowed are multiples, bounds far
below the least exponent of any do not count; and if further digits that are not zero would need an exponent beyond the
last one allowed, D does not count. There are still infinitely many states: under a bound each length of an integer part
has its own exponents, and with multiples each number of trailing zeros and digits after the point.
"""

from __future__ import annotations

from collections.abc import Hashable
from fractions import Fraction
from functools import lru_cache
from math import inf
from typing import Any

from .exponent_states import follow_digits, shortest_suffix
from .magnitude_set import MagnitudeSearch, SearchTable
from .number_language import NumberLanguage
from .number_reader import NumberReader
from .number_states import DIGITS, EXPONENT, FRACTION, INTEGER, MINUS, START, ZERO, Exponent, Mantissa, State
from .shortest_numbers import least_bytes

__all__ = ["NumberAutomata", "NumberAutomaton"]

MOST_VALUES = 64
"""Most numbers that are listed."""


class NumberAutomata:
    """The states of some NumberLanguages that have been reached, by number; not for several threads at once.

    Attributes
    ----------
    states : list of State
        A representative of each.
    readers : list of NumberReader
        That of the language that the representative is a state of.
    keys : list of tuple
        What determines the future of each.
    """

    def __init__(self) -> None:
        self.states: list[State] = []
        self.readers: list[NumberReader] = []
        self.keys: list[tuple[Any, ...]] = []
        self.searches = SearchTable()
        self.numbers: dict[tuple[Any, ...], int] = {}
        self._rows: dict[int, dict[int, int]] = {}
        self._least: dict[int, int] = {}
        self._values: dict[int, frozenset[Fraction] | None] = {}

    def start(self, language: NumberLanguage) -> int:
        """Return the number of the state before any text of a language."""
        return self._number(Mantissa(START), NumberReader(language, self.searches))

    def row(self, number: int) -> dict[int, int]:
        """Return the successors of a state by byte; texts with other bytes cannot be completed."""
        row = self._rows.get(number)
        if row is None:
            row, state, reader = {}, self.states[number], self.readers[number]
            for byte_group in reader.alike_bytes(state):
                after = reader.read(state, chr(byte_group[0]))
                if after is not None and reader.is_alive(after):
                    row.update(dict.fromkeys(byte_group, self._number(after, reader)))
            self._rows[number] = row
        return row

    def accepts(self, number: int) -> bool:
        """Return whether the text may end at a state."""
        return self.readers[number].may_end(self.states[number])

    def least(self, number: int) -> int:
        """Return the least number of bytes from a state to an end of the text."""
        least = self._least.get(number)
        if least is None:
            state = self.states[number]
            if self.accepts(number):
                least = 0
            elif isinstance(state, Exponent) and state.phase == EXPONENT and state.value:
                exponents = follow_digits(state.allowed, state.value)
                assert exponents is not None
                least = shortest_suffix(exponents)
            elif isinstance(state, Exponent) or state.phase in (START, MINUS):
                following = set(self.row(number).values()) - {number}
                is_near = any(map(self.accepts, following))  # then the others, which may take long, do not matter
                least = 1 if is_near else 1 + min(map(self.least, following))
            else:
                least = least_bytes(self.readers[number], state)
            self._least[number] = least
        return least

    def few_values(self, number: int) -> frozenset[Fraction] | None:
        """Return the magnitudes of all numbers that the representative may become; None for more than MOST_VALUES.

        Also None without a digit, after the e, and where digits are limited. Other texts of the state, perhaps of
        another language, may become other numbers, but as many: further digits spell equal numbers after the one text
        if and only if they do so after the other.
        """
        state, reader = self.states[number], self.readers[number]
        if isinstance(state, Exponent) or state.phase < ZERO or reader.language.most_fraction is not None:
            return None
        if number not in self._values:
            self._values[number] = _find_few_values(state, reader)
        return self._values[number]

    def is_written_out(self, number: int) -> bool:
        """Return whether no digit but 0 can follow, in a state that has `few_values`.

        Texts that share a state may have other values, but as many digits to come.
        """
        state, values = self.states[number], self.few_values(number)
        assert values is not None and not isinstance(state, Exponent)
        digits = str(state.digits).strip("0")
        return all(_list_digits(value) == digits for value in values)

    def describe(self, number: int) -> tuple[Any, ...]:
        """Return the key of a state as a tuple that `marshal` writes, which is the same in every process."""
        state, key = self.states[number], self.keys[number]
        if isinstance(state, Exponent) or state.phase < ZERO:
            return tuple(key)
        search = self.readers[number].sides[state.side]
        if not state.digits:
            phase, form, has_zero, _, passed, room = key
            return phase, form, has_zero, search.describe(), passed, room
        phase, form, regions, *residues, room = key
        if residues:
            passed, found = residues
            residues = [passed, tuple([(one.value.as_integer_ratio(), *rest) for one, *rest in found])]
        return phase, form, tuple([(first, _name_labels(search, what)) for first, what in regions]), *residues, room

    def _number(self, state: State, reader: NumberReader) -> int:
        """Return the number of a state."""
        key = _exponent_key(state) if isinstance(state, Exponent) else _mantissa_key(state, reader)
        number = self.numbers.get(key)
        if number is None:
            number = len(self.numbers)
            # In place of what an interrupt has left there.
            self.states[number:], self.readers[number:], self.keys[number:] = [state], [reader], [key]
            self.numbers[key] = number
        return number


class NumberAutomaton(NumberAutomata):
    """The states of one language. State 0 is that before any text."""

    def __init__(self, language: NumberLanguage) -> None:
        super().__init__()
        self.language = language
        self.start(language)

    @property
    def is_empty(self) -> bool:
        """Whether the language has no text."""
        return not self.row(0)


def _find_few_values(state: Mantissa, reader: NumberReader) -> frozenset[Fraction] | None:
    """Return `few_values` of a mantissa."""
    if not state.digits:
        found = {Fraction(0)} if reader.language.has_zero else set[Fraction]()
        for digit in DIGITS[1:]:
            after = reader.read(state._replace(phase=FRACTION), chr(digit))
            assert isinstance(after, Mantissa)
            values = _find_few_values(after, reader)
            if values is None or len(found | values) > MOST_VALUES:
                return None
            found |= values
        return frozenset(found)
    search, (_, first), (_, last) = reader.sides[state.side], state.segments[0], state.segments[-1]
    if last or any(multiple is None for multiple, _ in search.labels[first]):  # type: ignore[index]
        return None
    found = set()
    for position, what in reader.positions(state):
        for value, unit in search.iterate_members(
            state.digits, state.read, position, what, reader.grid(state, position)
        ):
            found.add(Fraction(value, 10**unit))
            if len(found) > MOST_VALUES:
                return None
    return frozenset(found)


def _exponent_key(state: Exponent) -> tuple[Any, ...]:
    """Return what determines the future of a state behind the e."""
    if state.phase < EXPONENT or not state.value:
        return state
    return EXPONENT, follow_digits(state.allowed, state.value)


def _mantissa_key(state: Mantissa, reader: NumberReader) -> tuple[Any, ...]:
    """Return what determines the future of a mantissa; exponents are relative to the end of the text so far."""
    phase, side, digits, read, fraction, position, segments = state
    search, language = reader.sides[side], reader.language
    if phase < ZERO:
        return phase, language.key
    most_integer, most_fraction, form = language.most_integer, language.most_fraction, language.form
    room = (
        None if most_integer is None or phase != INTEGER else most_integer - position,
        None if most_fraction is None else most_fraction - fraction,
    )
    if not digits:
        passed = fraction if search.depends_on_position else 0
        return phase, form, language.has_zero, search.number, passed, room
    regions = [
        (first - position, what if isinstance(what, int) else _describe_bounds(search, what, read))
        for first, what in segments
    ]
    if form == "integer":  # No exponent is below 0, for each further digit adds one.
        index = max(index for index, (begin, _) in enumerate(regions) if begin <= 0)
        at_zero = isinstance(regions[index][1], tuple)
        regions = [(0 if at_zero else -inf, regions[index][1]), *regions[index + 1 :]]
        segments = segments[index:]
    divisors, multiples = search.divisors_of(tuple([what for _, what in segments]))
    if not divisors:
        return phase, form, tuple(regions), room
    exponents = [(first, following[0] - 1) for (first, _), following in zip(regions, [*regions[1:], (inf, 0)])]
    allowed = [ends for ends, (_, what) in zip(exponents, regions) if what]
    first, last = allowed[0][0], allowed[-1][1]
    if form == "integer":
        first = max(first, 0)
    least = {one: one.least_exponent(digits) + fraction for one in divisors}
    if None not in multiples and not any(isinstance(what, tuple) for _, what in regions):
        # Below the least exponent of every multiple, now and later, nothing is allowed: these regions are one.
        floor = min(min(least[one], fraction + 1 + one.least) for one in multiples if one is not None)
        index = max(index for index, (begin, _) in enumerate(regions) if begin <= floor)
        regions = [(-inf, regions[index][1]), *regions[index + 1 :]]
        first = max(first, min(floor, last))
    # After so many digits of the fraction, one more that is not zero decides about every divisor.
    enough = max(last - one.least for one in divisors)
    is_decided = phase != INTEGER and fraction >= enough
    residues = tuple(
        (one, 0 if is_decided else digits % one.modulus, min(max(least[one], first), last + 1)) for one in divisors
    )
    return phase, form, tuple(regions), 0 if phase == INTEGER else min(fraction, enough), residues, room


def _name_labels(search: MagnitudeSearch, what: Any) -> tuple[Any, ...]:
    """Return a region of a key with the names of labels in place of their numbers."""
    if isinstance(what, int):
        return search.names[what]
    below, steps = what
    return search.names[below], tuple([(text, has_point, search.names[above]) for text, has_point, above in steps])


def _describe_bounds(search: MagnitudeSearch, bounds: tuple[int, int], read: int) -> Hashable:
    """Return what a range of bounds means for the digits to come: their own, and the sets around them."""
    first, end = bounds
    steps = tuple((search.texts[k][read:], search.has_points[k], search.gaps[k + 1]) for k in range(first, end))
    return search.gaps[first], steps


@lru_cache(maxsize=1024)
def _list_digits(value: Fraction) -> str:
    """Return the digits of a decimal, from the first to the last that is not 0."""
    while value.denominator != 1:
        value *= 10
    return str(value.numerator).strip("0")
