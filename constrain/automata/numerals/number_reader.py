"""Reads the texts of a NumberLanguage byte by byte: what a mantissa says, which texts go on, and which may end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf

from .exponent_states import IntegerSet, contains_integer, follow_digits, magnitudes, unite_intervals
from .magnitude_set import SearchTable
from .number_language import NumberLanguage

from .number_states import (  # isort: skip
    DIGITS, E, EXPONENT, FRACTION, INTEGER, MINUS, POINT, SIGN, START, ZERO, Exponent, Mantissa, State,
)  # fmt: skip

__all__ = ["NumberReader"]


MINUS_SIGN, DOT, CAPITAL_E = b"-.E"


class NumberReader:
    """What the texts of a language say, without numbers for states.

    Attributes
    ----------
    language : NumberLanguage
    negative : int
        Which of the sides has the negative numbers: 0 if both have the same magnitudes.
    sides : tuple of MagnitudeSearch
        The positive numbers, and the magnitudes of the negative ones.
    """

    def __init__(self, language: NumberLanguage, searches: SearchTable | None = None) -> None:
        self.language = language
        searches = SearchTable() if searches is None else searches
        self.sides = searches.search(language.positive), searches.search(language.negative)
        self.negative = int(self.sides[0] is not self.sides[1])
        self._is_positive: dict[int, bool] = {}
        self._latest: tuple[Mantissa | None, IntegerSet] = None, ()  # of `exponents`, which is asked for e and for E

    def may_end(self, state: State) -> bool:
        """Return whether the text is in the language."""
        if isinstance(state, Exponent):
            return state.phase == EXPONENT and contains_integer(state.allowed, state.value)
        if self.language.form == "marked" and state.phase != FRACTION:
            return False
        return state.phase in (ZERO, INTEGER, FRACTION) and contains_integer(self.exponents(state), 0)

    def follow(self, state: State, byte: int) -> State | None:
        """Return the state after a byte, or None if no text of the language begins so."""
        if not self._fits(state, byte):
            return None
        after = self.read(state, "e" if byte == CAPITAL_E else chr(byte))
        return after if after is not None and self.is_alive(after) else None

    def _fits(self, state: State, byte: int) -> bool:
        """Return whether a byte fits the syntax after a state."""
        if byte in DIGITS:
            return state.phase != ZERO
        if byte in b"+-" and state.phase == E:
            return True
        if byte == MINUS_SIGN:
            return state.phase == START
        if self.language.form == "integer":
            return False
        return state.phase in ((ZERO, INTEGER) if byte == DOT else (ZERO, INTEGER, FRACTION) if byte in b"eE" else ())

    def alike_bytes(self, state: State) -> Iterator[Sequence[int]]:
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

    def read(self, state: State, character: str) -> State | None:
        """Return the state after a character that fits the syntax, or None if there is none."""
        if isinstance(state, Exponent):
            return _read_exponent(state, character)
        if character == "-":
            return Mantissa(MINUS, self.negative)
        if character == ".":
            return state._replace(phase=POINT)
        if character == "e":
            return Exponent(E, self.exponents(state))
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
        for _, what in segments:
            if isinstance(what, tuple) or search.divisors[what]:
                break
        else:
            digits, read = 1, 1
        return Mantissa(FRACTION if is_fraction else INTEGER, side, digits, read, fraction, position, segments)

    # ---- what a mantissa says

    def exponents(self, state: Mantissa) -> IntegerSet:
        """Return the exponents that may follow a mantissa."""
        if not state.digits:
            return ((-inf, inf),) if self.language.has_zero else ()
        latest, known = self._latest
        if latest is state:
            return known
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
        found = unite_intervals(parts)
        self._latest = state, found
        return found

    def room(self, state: Mantissa) -> int | None:
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

    def is_alive(self, state: State) -> bool:
        """Return whether some text continues from a state to an end."""
        if isinstance(state, Exponent):
            if state.phase < EXPONENT or not state.value:
                return bool(state.allowed)
            return follow_digits(state.allowed, state.value) is not None
        if state.phase == MINUS:
            if self.sides[state.side].is_empty:
                return self.language.has_zero
            return any(
                after is not None and self.is_alive(after) for after in (self.read(state, chr(d)) for d in DIGITS)
            )
        if not state.digits:
            if self.language.form == "integer":
                return self.language.has_zero
            return self.language.has_zero or self._has_number_after_zeros(state)
        if self.is_endless(state):
            return True
        search = self.sides[state.side]
        for position, what in self.positions(state):
            if search.find_member(state.digits, state.read, position, what, self.grid(state, position)) is not None:
                return True
        return False

    def is_endless(self, state: Mantissa) -> bool:
        """Return whether members are known to begin with a mantissa with a significant digit, whatever its digits."""
        if self.room(state) is not None:
            return False
        first, last = state.segments[0][1], state.segments[-1][1]
        assert isinstance(first, int) and isinstance(last, int)
        if last:
            return True
        search = self.sides[state.side]
        return self.language.form != "integer" and any(multiple is None for multiple, _ in search.labels[first])

    def positions(self, state: Mantissa) -> Iterator[tuple[int, int | tuple[int, int]]]:
        """Yield the positions, with their segments, at which members may begin with the digits of a mantissa."""
        room = self.room(state)
        lowest, highest = -inf, inf
        if self.language.form == "integer":  # each digit adds one to the position
            lowest, highest = state.position, inf if room is None else state.position + room
        for first, last, what in self.sides[state.side].position_ranges(
            state.segments, state.read, state.position, room, lowest
        ):
            last = int(min(last, highest))
            for position in range(last, first - 1, -1):
                yield position, what

    def grid(self, state: Mantissa, position: int) -> int | None:
        """Return the exponent of the power of ten that divides whatever may begin with a mantissa at a position."""
        if self.language.form == "integer":
            return 0
        room = self.room(state)
        return None if room is None else position - state.read - room

    def _has_number_after_zeros(self, state: Mantissa) -> bool:
        """Return whether a positive number of the side may follow zeros."""
        room = self.room(state)
        place = state.side if room is None else 2 * room + state.side + 2
        known = self._is_positive.get(place)
        if known is None:
            zeros = Mantissa(FRACTION, state.side, fraction=state.fraction)
            following = (self.read(zeros, chr(digit)) for digit in DIGITS[1:])
            known = any(after is not None and self.is_alive(after) for after in following)
            self._is_positive[place] = known
        return known


def _read_exponent(state: Exponent, character: str) -> Exponent | None:
    """Return the state after a sign or a digit of the exponent."""
    if character in "+-":
        allowed = magnitudes(state.allowed, character == "-")
        return Exponent(SIGN, allowed) if allowed else None
    allowed = magnitudes(state.allowed, False) if state.phase == E else state.allowed
    return Exponent(EXPONENT, allowed, state.value * 10 + ord(character) - 48) if allowed else None
