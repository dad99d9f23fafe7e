"""Which runs of digits may follow a mantissa, and after which of them the number may end: all runs at once.

With multiples of 997, the 1,110 runs of up to three digits lead to about as many states. A mask needs none of them, but
only two bits of each run. They follow from a few remainders: with D the digits so far, a run of k digits with the value
w gives D * 10^k + w, and the multiples in an interval are counted by division (`_have_multiple`).

Runs that follow the digits of a bound are few. They are read digit by digit.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from math import lcm

import numpy as np
from numpy.typing import NDArray

from ...kernels.digit_run_layout import (
    ALIVE,
    BOUNDS,
    ENDS,
    KIND,
    MEMBER_W,
    MEMBERS,
    MULTIPLE_W,
    MULTIPLES,
    REQUEST_HEADER_W,
    UNSURE,
)  # fmt: skip
from ...kernels.entry_points import mark_runs
from .decimals import Divisor
from .number_reader import NumberReader
from .number_states import FRACTION, INTEGER, MINUS, POINT, START, ZERO, Mantissa, State

__all__ = ["mark_digit_runs", "mark_runs_slowly", "read_run", "read_unsure_runs"]

Marks = NDArray[np.uint8]
"""Bits of `kernels.digit_run_layout` for each run."""
MOST_INTEGER = 1 << 62
MOST_CONSECUTIVE = 64


def mark_digit_runs(
    reader: NumberReader,
    state: Mantissa,
    length: int,
    zeros: int,
    values: NDArray[np.int64],
    marks: Marks,
    *,
    are_alive: bool = False,
) -> bool:
    """Mark the runs of digits after which the text can be completed (ALIVE), and after which it may end (ENDS).

    Return whether all runs are known to be alive. Those marked UNSURE are left to `read_unsure_runs`.

    Parameters
    ----------
    reader : NumberReader
        Of the language.
    state : Mantissa
        A text that can be completed.
    length : int
        Digits of each run; at least 1, at most 9.
    zeros : int
        Zeros before the first other digit of each run: `length` if the run is all zeros. If the text has a significant
        digit, it does not matter, and runs with different numbers of zeros may be judged together.
    values : int64 array
        The runs as integers.
    marks : uint8 array
        Written to; all 0.
    are_alive : bool
        Whether all runs are known to be alive.
    """
    phase, language = state.phase, reader.language
    leading = 0 if state.digits else zeros
    if leading and length > 1 and phase in (START, MINUS):  # an integer part begins with 0 only if that is all of it
        return False
    if leading == length or phase == ZERO:
        marks |= UNSURE
        return False
    is_fraction = phase in (POINT, FRACTION)
    after = Mantissa(  # after any of the runs, but for its digits, and the bounds that they decide
        FRACTION if is_fraction else INTEGER,
        state.side,
        state.digits or 1,
        state.read + length - leading,
        state.fraction + length * is_fraction,
        state.position + length * (not is_fraction) if state.digits or not is_fraction else -state.fraction - leading,
        state.segments or reader.sides[state.side].first,
    )
    most = language.most_fraction if is_fraction else language.most_integer
    if most is not None and (after.fraction if is_fraction else after.position) > most:
        return False
    runs = _Runs(reader, after, state.read, state.digits * 10**length, 10**length - 1, values, marks)
    if are_alive or reader.is_endless(after):
        are_alive = True
        marks |= ALIVE
    else:
        are_alive = any(runs.mark_members(position, what) == 0 for position, what in reader.positions(after))
    if language.form != "marked" or is_fraction:
        runs.mark_ends(max(entry for entry in after.segments if entry[0] <= after.position)[1])
    return are_alive


def read_unsure_runs(
    reader: NumberReader, state: Mantissa, lengths: NDArray[np.int32], values: NDArray[np.int64], marks: Marks
) -> None:
    """Read the runs that are marked UNSURE digit by digit, and mark them. lengths: the digits of each run."""
    states: dict[tuple[int, int], State | None] = {(0, 0): state}

    def read(length: int, value: int) -> State | None:
        """Return the state after a run, if there is one: a text that need not have a completion."""
        if (length, value) not in states:
            before = read(length - 1, value // 10)
            is_read = before is not None and before.phase != ZERO
            states[length, value] = reader.read(before, str(value % 10)) if is_read and before is not None else None
        return states[length, value]

    for index in np.flatnonzero(marks & UNSURE).tolist():
        after = read(int(lengths[index]), int(values[index]))
        is_alive = after is not None and reader.is_alive(after)
        marks[index] = is_alive and ALIVE | (ENDS if after is not None and reader.may_end(after) else 0)


def read_run(reader: NumberReader, state: Mantissa, length: int, value: int) -> State | None:
    """Return the state after a run of digits, or None if the text cannot be completed."""
    after: State | None = state
    for digit in f"{value:0{length}}":
        if after is None or after.phase == ZERO:
            return None
        after = reader.read(after, digit)
    return after if after is not None and reader.is_alive(after) else None


class _Runs:
    """Runs of digits after a mantissa of `read` digits, and what is found out about each.

    after: a mantissa like those after the runs. base: their digits as an integer without the values of the runs.
    greatest: no run has a greater value. marks: as `mark_digit_runs` writes them. UNSURE is set where the digits of a
    bound leave the gap undecided, and where members are not looked for.
    """

    def __init__(
        self, reader: NumberReader, after: Mantissa, read: int, base: int, greatest: int, values: NDArray[np.int64],
        marks: Marks,
    ) -> None:  # fmt: skip
        self.reader, self.after, self.read, self.base, self.greatest = reader, after, read, base, greatest
        self.search, self.values, self.marks = reader.sides[after.side], values, marks

    def mark_members(self, position: int, what: int | tuple[int, int]) -> int:
        """Mark the runs that a member at a position follows, which has a segment.

        Return how many are not alive, or may not be.
        """
        q, grid = position - self.after.read, self.reader.grid(self.after, position)
        unit = self.search.find_unit(q, grid)
        size = 10 ** (q + unit)
        if isinstance(what, int):
            low, steps = self.base * size, list[tuple[int | None, list[int]]]()
            end = low + (self.greatest + 1) * size
            for step, periods in self.search.list_steps(what, unit, grid):
                if step is None or (not periods and size >= step):  # the usual case, which needs no kernel
                    self.marks |= ALIVE
                    return 0
                if -(-low // step) * step < end:  # there are multiples after some run
                    steps.append((step, periods))
            return self._mark_all(MEMBERS, self._list_members(steps, size))
        return self._mark_gaps(
            MEMBERS, what, lambda label: self._list_members(self.search.list_steps(label, unit, grid), size)
        )

    def mark_ends(self, what: int | tuple[int, int]) -> None:
        """Mark the runs after which the number may end, which has a segment there."""
        if isinstance(what, int):
            for multiple, others in self.search.labels[what]:
                if not others and (multiple is None or multiple.reduced_modulus(self.after.fraction) == 1):
                    self.marks |= ENDS  # the usual case, which needs no kernel
                    return
            self._mark_all(MULTIPLES, self._list_multiples(what))
        else:
            self._mark_gaps(MULTIPLES, what, self._list_multiples)

    def _mark_all(self, kind: int, alternatives: list[list[int]]) -> int:
        """Mark runs near no bound. Where all of them are in an alternative, or none, the kernel is not asked."""
        if not alternatives:
            return len(self.marks)
        if ALL_MEMBERS in alternatives or EVERY_MULTIPLE in alternatives:
            self.marks |= ALIVE if kind == MEMBERS else ENDS
            return 0
        place = REQUEST_HEADER_W + 1
        return self._ask([kind, 0, place, len(alternatives), *(word for one in alternatives for word in one)])

    def _mark_gaps(self, kind: int, what: tuple[int, int], describe: Callable[[int], list[list[int]]]) -> int:
        """Mark the runs in the gaps around a range of bounds. describe: returns the alternatives of a label."""
        low, high = what
        count = self.after.read - self.read
        bounds = [int(text[self.read : self.after.read].ljust(count, "0")) for text in self.search.texts[low:high]]
        labels = self.search.gaps[low : high + 1]
        request = [kind, len(bounds), *bounds, *[0] * len(labels)]
        places: dict[int, int] = {0: 0}
        for index, label in enumerate(labels):
            place = places.get(label)
            if place is None:
                alternatives = describe(label)
                place = places[label] = len(request) if alternatives else 0
                if alternatives:
                    request.append(len(alternatives))
                    for one in alternatives:
                        request += one
            request[REQUEST_HEADER_W + len(bounds) + index] = place
        return self._ask(request)

    def _ask(self, request: list[int]) -> int:
        """Mark the runs as a request says. Return how many are not alive."""
        if max(request) < MOST_INTEGER:
            return mark_runs(self.values, np.array(request, np.int64), self.marks)
        return mark_runs_slowly(self.values, request, self.marks)

    def _list_members(self, steps: list[tuple[int | None, list[int]]], size: int) -> list[list[int]]:
        """Return the alternatives of a label for a request of MEMBERS, given its steps."""
        alternatives = list[list[int]]()
        for step, periods in steps:
            enough = _count_enough(periods)
            if step is None or (enough is not None and size >= enough * step):
                return [ALL_MEMBERS]
            if 1 in periods:
                continue
            if enough is None:
                return [*alternatives, UNKNOWN_MEMBERS]
            offset = self.base * size % (lcm(*periods) * step)
            reach = offset + (self.greatest + 1) * size  # so that `_ask` finds out whether this is beyond int64
            alternatives.append([step, size, offset, enough, len(periods), *periods, reach])
        return alternatives

    def _list_multiples(self, label: int) -> list[list[int]]:
        """Return the alternatives of a label for a request of MULTIPLES."""
        return [
            [*((1, 0) if multiple is None else self._find_remainder(multiple)), len(others),
             *(word for other in others for word in self._find_remainder(other))]
            for multiple, others in self.search.labels[label]
        ]  # fmt: skip

    def _find_remainder(self, divisor: Divisor) -> tuple[int, int]:
        """Return the modulus and the remainder of the runs after which the number is a multiple; -1 for none."""
        modulus = divisor.reduced_modulus(self.after.fraction)
        missing = -self.base % modulus
        return min(modulus, self.greatest + 1), missing if missing <= self.greatest else -1


ALL_MEMBERS, UNKNOWN_MEMBERS = [0, 0, 0, 0, 0, 0], [-1, 0, 0, 0, 0, 0]
"""Alternatives of a request of MEMBERS: any run has a member; whether it has one is not found out."""
EVERY_MULTIPLE = [1, 0, 0]
"""An alternative of a request of MULTIPLES that all runs are in."""


def mark_runs_slowly(values: NDArray[np.int64], request: list[int], marks: Marks) -> int:
    """Do what the kernel `mark_runs` does, with integers of any size."""
    count, missing = request[BOUNDS], 0
    bounds = request[REQUEST_HEADER_W : REQUEST_HEADER_W + count]
    for index, value in enumerate(values.tolist()):
        gap = bisect_left(bounds, value)
        if gap < count and bounds[gap] == value:
            marks[index] |= UNSURE
        elif place := request[REQUEST_HEADER_W + count + gap]:
            if request[KIND] == MULTIPLES:
                marks[index] |= _find_multiple(request, place, value)
            elif not marks[index] & ALIVE:
                marks[index] |= _find_member(request, place, value)
        missing += not marks[index] & ALIVE
    return missing


def _find_member(request: list[int], place: int, value: int) -> int:
    """Return the mark of a value that the alternatives at a place of a request of MEMBERS give."""
    k = place + 1
    for _ in range(request[place]):
        step, size, offset, most, count = request[k : k + 5]
        if step <= 0:
            return ALIVE if step == 0 else UNSURE
        periods = request[k + 5 : k + 5 + count]
        first = value * size + offset
        numbers = range(-(-first // step), (first + size - 1) // step + 1)[:most]
        if any(all(number % period for period in periods) for number in numbers):
            return ALIVE
        k += MEMBER_W + count
    return 0


def _find_multiple(request: list[int], place: int, value: int) -> int:
    """Return the mark of a value that the alternatives at a place of a request of MULTIPLES give."""
    k = place + 1
    for _ in range(request[place]):
        count = request[k + 2]
        pairs = zip(request[k + 3 : k + 3 + 2 * count : 2], request[k + 4 : k + 3 + 2 * count : 2])
        if value % request[k] == request[k + 1] and all(value % modulus != remainder for modulus, remainder in pairs):
            return ENDS
        k += MULTIPLE_W + 2 * count
    return 0


def _count_enough(periods: list[int]) -> int | None:
    """Return n so that of any n consecutive integers one is a multiple of no period; None if there may be no such n."""
    return next(
        (n for n in range(1, MOST_CONSECUTIVE) if n > sum((n + period - 1) // period for period in periods)), None
    )
