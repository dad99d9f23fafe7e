"""The least number of bytes that complete a mantissa."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

from ...base.work import spend_work
from .decimals import count_significant
from .number_reader import NumberReader
from .number_states import DIGITS, FRACTION, INTEGER, POINT, ZERO, Mantissa

__all__ = ["least_bytes"]

TRIAL, DIGITS_PER_UNIT = 4, 40
"""Units of work of a position that is tried, and digits of its numbers that take one more."""


def least_bytes(reader: NumberReader, state: Mantissa) -> int:
    """Return the least number of bytes after a leading zero, a point or digits, where the text may not end."""
    if not state.digits:
        if reader.language.has_zero:  # a point or the mark is missing
            return 1 if state.phase == POINT else 2
        if state.phase == ZERO:
            return 1 + least_bytes(reader, state._replace(phase=POINT))
        following = (reader.read(state._replace(phase=FRACTION), chr(digit)) for digit in DIGITS[1:])
        alive = [after for after in following if isinstance(after, Mantissa) and reader.is_alive(after)]
        return 1 + min(min(_costs(reader, after, zeros=True)) for after in alive)
    return min(_costs(reader, state, zeros=False))


def _costs(reader: NumberReader, state: Mantissa, *, zeros: bool) -> Iterator[int]:
    """Yield numbers of bytes that complete a mantissa with a significant digit, among them the least one.

    zeros: whether zeros may have been written before the last digit, which then count, too. A limit of digits may
    make this too small.
    """
    positions = list(reader.positions(state))
    own = max(entry for entry in state.segments if entry[0] <= state.position)[1]
    positions.append((state.position, own))
    best = inf
    for position, what in sorted(set(positions), key=lambda one: abs(one[0] - state.position)):
        exponent = position - state.position
        if reader.language.form != "integer" and _least_exponent_cost(state.phase, exponent) >= best:
            continue
        count = _least_digits(reader, state, position, what)
        if count is None:
            continue
        if reader.language.form == "integer":
            cost = exponent
        elif state.phase == INTEGER:
            cost = _integer_cost(count, exponent, reader.language.form == "marked")
        else:
            cost = max(count, state.phase == POINT) + _exponent_cost(exponent)
            if zeros and exponent < 0:
                cost = min(cost, count - exponent)
        if cost < best:
            best = cost
            yield cost


def _least_digits(reader: NumberReader, state: Mantissa, position: int, what: int | tuple[int, int]) -> int | None:
    """Return the least number of further digits that spell a member at a position; None if there is none."""
    search = reader.sides[state.side]
    place = state.digits, state.read, position, what
    digits = abs(position) + search.most_digits  # of the integers that are divided
    spend_work(TRIAL + digits // DIGITS_PER_UNIT, "the shortest rest of a number")
    found = search.find_member(*place, reader.grid(state, position))
    if found is None:
        return None
    low, high = 0, max(count_significant(found[0]) - state.read, 0)
    spend_work((TRIAL + digits // DIGITS_PER_UNIT) * high.bit_length(), "the shortest rest of a number")
    while low < high:
        middle = (low + high) // 2
        if search.find_member(*place, position - state.read - middle) is None:
            low = middle + 1
        else:
            high = middle
    return low


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
