"""The automaton of a NumberLanguage: states are computed when they are reached, and merged if they have one future.

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

from collections.abc import Hashable, Iterator, Sequence
from fractions import Fraction
from math import inf
from typing import Final, NamedTuple

from .exponent_states import (
    IntegerSet,
    contains_integer,
    follow_digits,
    magnitudes,
    shortest_suffix,
    unite_intervals,
)
from .magnitude_set import MagnitudeSearch, Segments
from .number_language import NumberLanguage

__all__ = ["NumberAutomaton"]

START, MINUS, ZERO, INTEGER, POINT, FRACTION, E, SIGN, EXPONENT = range(9)
"""Phases: what was read last. ZERO is a leading zero, INTEGER another integer part."""

DIGITS: Final = b"0123456789"
MOST_VALUES = 64
"""Most numbers that are listed."""


class Mantissa(NamedTuple):
    """A text before the e.

    phase, side: of the text; side is the index of the searches of its sign. digits: the significant digits as an
    integer D, 0 if there are none. read: their number. fraction: digits after the point. position: of the first
    significant digit. segments: what the digits say about the set (empty before the first one).

    Where D no longer counts, it is replaced by 1.
    """

    phase: int
    side: int = 0
    digits: int = 0
    read: int = 0
    fraction: int = 0
    position: int = 0
    segments: Segments = ()


class Exponent(NamedTuple):
    """A text behind the e. allowed: the exponents, or after a sign or digit their magnitudes. value: of the digits."""

    phase: int
    allowed: IntegerSet
    value: int = 0


State = Mantissa | Exponent


class NumberAutomaton:
    """The states of a NumberLanguage that have been reached, by number; not to be used by several threads at once.

    State 0 is that before any text. The language must not be empty: see `is_empty`.
    """

    def __init__(self, language: NumberLanguage) -> None:
        self.language = language
        positive = MagnitudeSearch(language.positive)
        is_symmetric = language.positive == language.negative
        self.sides = (positive, positive if is_symmetric else MagnitudeSearch(language.negative))
        self.negative = 0 if is_symmetric else 1
        self.states: list[State] = []
        self.numbers: dict[Hashable, int] = {}
        self._rows: dict[int, dict[int, int]] = {}
        self._least: dict[int, int] = {}
        self._is_positive: dict[int, bool] = {}
        self._values: dict[int, frozenset[Fraction] | None] = {}
        self._number(Mantissa(START))

    @property
    def is_empty(self) -> bool:
        """Whether the language has no text."""
        return not self.row(0)

    def row(self, number: int) -> dict[int, int]:
        """Return the successors of a state by byte; texts with other bytes cannot be completed."""
        row = self._rows.get(number)
        if row is None:
            row = {}
            for byte_group in self._alike_bytes(self.states[number]):
                after = self._read(self.states[number], chr(byte_group[0]))
                if after is not None and self._is_alive(after):
                    row.update(dict.fromkeys(byte_group, self._number(after)))
            self._rows[number] = row
        return row

    def accepts(self, number: int) -> bool:
        """Return whether the text may end at a state."""
        state = self.states[number]
        if isinstance(state, Exponent):
            return state.phase == EXPONENT and contains_integer(state.allowed, state.value)
        if self.language.form == "marked" and state.phase != FRACTION:
            return False
        return state.phase in (ZERO, INTEGER, FRACTION) and contains_integer(self._exponents(state), 0)

    def least(self, number: int) -> int:
        """Return the least number of bytes from a state to an end of the text."""
        least = self._least.get(number)
        if least is None:
            state = self.states[number]
            if self.accepts(number):
                least = 0
            elif isinstance(state, Exponent) and state.phase == EXPONENT and state.value:
                following = follow_digits(state.allowed, state.value)
                assert following is not None
                least = shortest_suffix(following)
            elif isinstance(state, Exponent) or state.phase in (START, MINUS):
                least = 1 + min(self.least(after) for after in set(self.row(number).values()) - {number})
            else:
                least = self._least_of_mantissa(state)
            self._least[number] = least
        return least

    def few_values(self, number: int) -> frozenset[Fraction] | None:
        """Return the magnitudes of all numbers that the text may become; None if there are more than MOST_VALUES.

        Also None without a digit, after the e, and where digits are limited.
        """
        state = self.states[number]
        if isinstance(state, Exponent) or state.phase < ZERO or self.language.most_fraction is not None:
            return None
        if number not in self._values:
            self._values[number] = self._find_few_values(state)
        return self._values[number]

    def _find_few_values(self, state: Mantissa) -> frozenset[Fraction] | None:
        """Return `few_values` of a mantissa."""
        if not state.digits:
            found = {Fraction(0)} if self.language.has_zero else set[Fraction]()
            for digit in DIGITS[1:]:
                after = self._read(state._replace(phase=FRACTION), chr(digit))
                assert isinstance(after, Mantissa)
                values = self._find_few_values(after)
                if values is None or len(found | values) > MOST_VALUES:
                    return None
                found |= values
            return frozenset(found)
        search, (_, first), (_, last) = self.sides[state.side], state.segments[0], state.segments[-1]
        if last or any(multiple is None for multiple, _ in search.labels[first]):  # type: ignore[index]
            return None
        found = set()
        for position, what in self._positions(state):
            for value, unit in search.iterate_members(
                state.digits, state.read, position, what, self._grid(state, position)
            ):
                found.add(Fraction(value, 10**unit))
                if len(found) > MOST_VALUES:
                    return None
        return frozenset(found)

    def _number(self, state: State) -> int:
        """Return the number of a state."""
        key = self._exponent_key(state) if isinstance(state, Exponent) else self._mantissa_key(state)
        number = self.numbers.get(key)
        if number is None:
            number = len(self.states)
            self.states.append(state)
            self.numbers[key] = number
        return number

    # ---- one byte

    def _alike_bytes(self, state: State) -> Iterator[Sequence[int]]:
        """Yield the bytes that may follow, in groups that lead to the same state."""
        if isinstance(state, Exponent):
            yield from ((byte,) for byte in DIGITS + (b"+-" if state.phase == E else b""))
            return
        if state.phase == START:
            yield b"-"
        if self.language.form != "integer":
            if state.phase in (ZERO, INTEGER, FRACTION):
                yield b"eE"
            if state.phase in (ZERO, INTEGER):
                yield b"."
        if state.phase == ZERO:
            return
        search = self.sides[state.side]
        turns = set(range(10))
        if search.is_decimal:
            turns = {0, 1} | search.turning_digits(state.segments or search.first, state.read)
        first = 0
        for digit in range(1, 11):
            if digit in turns or digit == 10:
                yield DIGITS[first:digit]
                first = digit

    def _read(self, state: State, character: str) -> State | None:
        """Return the state after a character that fits the syntax, or None if there is none."""
        if isinstance(state, Exponent):
            return _read_exponent(state, character)
        if character == "-":
            return Mantissa(MINUS, self.negative)
        if character == ".":
            return state._replace(phase=POINT)
        if character == "e":
            return Exponent(E, self._exponents(state))
        digit, side = ord(character) - 48, state.side
        if state.phase in (START, MINUS) and not digit:
            return Mantissa(ZERO, side)
        is_fraction = state.phase in (POINT, FRACTION)
        fraction = state.fraction + is_fraction
        most = self.language.most_fraction if is_fraction else self.language.most_integer
        if most is not None and (fraction if is_fraction else state.position + 1) > most:
            return None
        if not state.digits and not digit:
            return Mantissa(FRACTION, side, fraction=fraction)
        search = self.sides[side]
        segments = search.read_digit(state.segments or search.first, state.read, character)
        position = state.position + 1 if not is_fraction else state.position if state.digits else 1 - fraction
        digits, read = state.digits * 10 + digit, state.read + 1
        if not any(isinstance(what, tuple) or search.divisors[what] for _, what in segments):
            digits, read = 1, 1
        return Mantissa(FRACTION if is_fraction else INTEGER, side, digits, read, fraction, position, segments)

    # ---- what a mantissa says

    def _exponents(self, state: Mantissa) -> IntegerSet:
        """Return the exponents that may follow a mantissa."""
        if not state.digits:
            return ((-inf, inf),) if self.language.has_zero else ()
        search, parts = self.sides[state.side], list[tuple[float, float]]()
        for index, (begin, what) in enumerate(state.segments):
            end = state.segments[index + 1][0] - 1 if index + 1 < len(state.segments) else inf
            for multiple, others in search.ends_in(what, state.read):
                first, last = begin - state.position, end - state.position
                if multiple is not None:
                    first = max(first, multiple.least_exponent(state.digits) + state.fraction)
                for other in others:
                    last = min(last, other.least_exponent(state.digits) + state.fraction - 1)
                if first <= last and first < inf and last > -inf:
                    parts.append((first, last))
        return unite_intervals(parts)

    def _room(self, state: Mantissa) -> int | None:
        """Return how many digits may follow a mantissa; None for any number."""
        most_integer, most_fraction = self.language.most_integer, self.language.most_fraction
        if self.language.form == "integer":
            return None if most_integer is None else most_integer - state.position
        if most_fraction is None or (most_integer is None and state.phase == INTEGER):
            return None
        if state.phase == INTEGER:
            assert most_integer is not None
            return most_integer - state.position + most_fraction
        return most_fraction - state.fraction

    def _is_alive(self, state: State) -> bool:
        """Return whether some text continues from a state to an end."""
        if isinstance(state, Exponent):
            if state.phase < EXPONENT or not state.value:
                return bool(state.allowed)
            return follow_digits(state.allowed, state.value) is not None
        if state.phase == MINUS:
            return any(
                after is not None and self._is_alive(after) for after in (self._read(state, chr(d)) for d in DIGITS)
            )
        if not state.digits:
            if self.language.form == "integer":
                return self.language.has_zero
            return self.language.has_zero or self._has_number_after_zeros(state)
        search, room = self.sides[state.side], self._room(state)
        if room is None:
            first, last = state.segments[0][1], state.segments[-1][1]
            assert isinstance(first, int) and isinstance(last, int)
            is_free = any(multiple is None for multiple, _ in search.labels[first]) and self.language.form != "integer"
            if last or is_free:
                return True
        return any(
            search.find_member(state.digits, state.read, position, what, self._grid(state, position)) is not None
            for position, what in self._positions(state)
        )

    def _positions(self, state: Mantissa) -> Iterator[tuple[int, int | tuple[int, int]]]:
        """Yield the positions, with their segments, at which members may begin with the digits of a mantissa."""
        room = self._room(state)
        lowest, highest = -inf, inf
        if self.language.form == "integer":  # each digit adds one to the position
            lowest, highest = state.position, inf if room is None else state.position + room
        for first, last, what in self.sides[state.side].position_ranges(
            state.segments, state.read, state.position, room, lowest
        ):
            last = int(min(last, highest))
            for position in range(last, first - 1, -1):
                yield position, what

    def _grid(self, state: Mantissa, position: int) -> int | None:
        """Return the exponent of the power of ten that divides whatever may begin with a mantissa at a position."""
        if self.language.form == "integer":
            return 0
        room = self._room(state)
        return None if room is None else position - state.read - room

    def _has_number_after_zeros(self, state: Mantissa) -> bool:
        """Return whether a positive number of the side may follow zeros."""
        room = self._room(state)
        place = state.side if room is None else 2 * room + state.side + 2
        known = self._is_positive.get(place)
        if known is None:
            zeros = Mantissa(FRACTION, state.side, fraction=state.fraction)
            following = (self._read(zeros, chr(digit)) for digit in DIGITS[1:])
            known = any(after is not None and self._is_alive(after) for after in following)
            self._is_positive[place] = known
        return known

    # ---- keys

    def _exponent_key(self, state: Exponent) -> Hashable:
        if state.phase < EXPONENT or not state.value:
            return state
        return EXPONENT, follow_digits(state.allowed, state.value)

    def _mantissa_key(self, state: Mantissa) -> Hashable:
        """Return what determines the future of a mantissa; exponents are relative to the end of the text so far."""
        phase, side, digits, read, fraction, position, segments = state
        search = self.sides[side]
        limits = self.language.most_integer, self.language.most_fraction
        capped = position if limits[0] is not None and phase == INTEGER else 0, 0 if limits[1] is None else fraction
        if phase < ZERO:
            return phase, side
        if not digits:
            return phase, side, fraction if search.depends_on_position else 0, capped
        regions = [
            (first - position, what if isinstance(what, int) else _describe_bounds(search, what, read))
            for first, what in segments
        ]
        if self.language.form == "integer":  # No exponent is below 0, for each further digit adds one.
            index = max(index for index, (begin, _) in enumerate(regions) if begin <= 0)
            at_zero = isinstance(regions[index][1], tuple)
            regions = [(0 if at_zero else -inf, regions[index][1]), *regions[index + 1 :]]
            segments = segments[index:]
        labels = {label for _, what in segments for label in search.labels_of(what)} - {0}
        divisors = list(dict.fromkeys(one for label in sorted(labels) for one in search.divisors[label]))
        if not divisors:
            return phase, side, tuple(regions), capped
        exponents = [(first, following[0] - 1) for (first, _), following in zip(regions, [*regions[1:], (inf, 0)])]
        allowed = [ends for ends, (_, what) in zip(exponents, regions) if what]
        first, last = allowed[0][0], allowed[-1][1]
        if self.language.form == "integer":
            first = max(first, 0)
        least = {one: one.least_exponent(digits) + fraction for one in divisors}
        multiples = [multiple for label in labels for multiple, _ in search.labels[label]]
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
            (0 if is_decided else digits % one.modulus, min(max(least[one], first), last + 1)) for one in divisors
        )
        return phase, side, tuple(regions), 0 if phase == INTEGER else min(fraction, enough), residues, capped

    # ---- shortest completions

    def _least_of_mantissa(self, state: Mantissa) -> int:
        """Return the least number of bytes after a leading zero, a point or digits, where the text may not end."""
        if not state.digits:
            if self.language.has_zero:  # a point or the mark is missing
                return 1 if state.phase == POINT else 2
            if state.phase == ZERO:
                return 1 + self._least_of_mantissa(state._replace(phase=POINT))
            following = (self._read(state._replace(phase=FRACTION), chr(digit)) for digit in DIGITS[1:])
            alive = [after for after in following if isinstance(after, Mantissa) and self._is_alive(after)]
            return 1 + min(min(self._costs(after, zeros=True)) for after in alive)
        return min(self._costs(state, zeros=False))

    def _costs(self, state: Mantissa, *, zeros: bool) -> Iterator[int]:
        """Yield numbers of bytes that complete a mantissa with a significant digit, among them the least one.

        zeros: whether zeros may have been written before the last digit, which then count, too. A limit of digits may
        make this too small.
        """
        positions = list(self._positions(state))
        own = max(entry for entry in state.segments if entry[0] <= state.position)[1]
        positions.append((state.position, own))
        best = inf
        for position, what in sorted(set(positions), key=lambda one: abs(one[0] - state.position)):
            exponent = position - state.position
            if self.language.form != "integer" and _least_exponent_cost(state.phase, exponent) >= best:
                continue
            count = self._least_digits(state, position, what)
            if count is None:
                continue
            if self.language.form == "integer":
                cost = exponent
            elif state.phase == INTEGER:
                cost = _integer_cost(count, exponent, self.language.form == "marked")
            else:
                cost = max(count, state.phase == POINT) + _exponent_cost(exponent)
                if zeros and exponent < 0:
                    cost = min(cost, count - exponent)
            if cost < best:
                best = cost
                yield cost

    def _least_digits(self, state: Mantissa, position: int, what: int | tuple[int, int]) -> int | None:
        """Return the least number of further digits that spell a member at a position; None if there is none."""
        search = self.sides[state.side]
        place = state.digits, state.read, position, what
        found = search.find_member(*place, self._grid(state, position))
        if found is None:
            return None
        spelled = str(found[0]).rstrip("0")
        low, high = 0, max(len(spelled) - state.read, 0)
        while low < high:
            middle = (low + high) // 2
            if search.find_member(*place, position - state.read - middle) is None:
                low = middle + 1
            else:
                high = middle
        return low


def _describe_bounds(search: MagnitudeSearch, bounds: tuple[int, int], read: int) -> Hashable:
    """Return what a range of bounds means for the digits to come: their own, and the sets around them."""
    first, end = bounds
    steps = tuple((search.texts[k][read:], search.has_points[k], search.gaps[k + 1]) for k in range(first, end))
    return search.gaps[first], steps


def _read_exponent(state: Exponent, character: str) -> Exponent | None:
    """Return the state after a sign or a digit of the exponent."""
    if character in "+-":
        allowed = magnitudes(state.allowed, character == "-")
        return Exponent(SIGN, allowed) if allowed else None
    allowed = magnitudes(state.allowed, False) if state.phase == E else state.allowed
    return Exponent(EXPONENT, allowed, state.value * 10 + ord(character) - 48) if allowed else None


def _exponent_cost(exponent: int) -> int:
    """Return the bytes of an exponent, which is left out where it is 0."""
    return 1 + len(str(exponent)) if exponent else 0


def _integer_cost(count: int, shift: int, needs_mark: bool) -> int:
    """Return the least bytes of at least `count` more digits after an integer part, whose position shifts by `shift`.

    The digits may be zeros, and a point costs less than a negative exponent if that many digits follow.
    """
    if shift < 0:
        return count + _exponent_cost(shift - count)
    if count > shift:
        return count + 1  # with a point after `shift` of them
    without_exponent = shift + (2 if needs_mark else 0)
    return min(without_exponent, count + _exponent_cost(shift - count) if count < shift else without_exponent)


def _least_exponent_cost(phase: int, exponent: int) -> int:
    """Return a lower bound of the bytes of any completion with this change of the position."""
    if phase == INTEGER and exponent > 0:
        return min(exponent, 1 + len(str(exponent)))
    return _exponent_cost(exponent)
