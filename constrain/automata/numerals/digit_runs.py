"""Which runs of digits may follow a mantissa, and after which of them the number may end: all runs at once.

With multiples of 997, the 1,110 runs of up to three digits lead to about as many states. A mask needs none of them, but
only two bits of each run. They follow from a few remainders: with D the digits so far, a run of k digits with the value
w gives D * 10^k + w, and the multiples in an interval are counted by division (`_have_multiple`).

Runs that follow the digits of a bound are few. They are read digit by digit.
"""

from __future__ import annotations

from math import lcm
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .decimals import Divisor
from .number_reader import NumberReader
from .number_states import FRACTION, INTEGER, MINUS, POINT, START, ZERO, Mantissa, State

__all__ = ["judge_digit_runs", "read_run"]

Bits = NDArray[np.bool_]
MOST_INTEGER = 1 << 62
MOST_CONSECUTIVE = 64


def judge_digit_runs(
    reader: NumberReader, state: Mantissa, length: int, zeros: int, values: NDArray[np.int64]
) -> tuple[Bits, Bits]:
    """Return for each run of digits whether the text can be completed after it, and whether it may end there.

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
    """
    phase, language = state.phase, reader.language
    alive, ends = np.zeros(len(values), np.bool_), np.zeros(len(values), np.bool_)
    leading = 0 if state.digits else zeros
    if leading and length > 1 and phase in (START, MINUS):  # an integer part begins with 0 only if that is all of it
        return alive, ends
    if leading == length or phase == ZERO:
        return _read_each(reader, state, length, values, alive, ends, np.ones(len(values), np.bool_))
    is_fraction = phase in (POINT, FRACTION)
    search = reader.sides[state.side]
    after = state._replace(  # after any of the runs, but for its digits, and the bounds that they decide
        phase=FRACTION if is_fraction else INTEGER,
        digits=state.digits or 1,
        read=state.read + length - leading,
        fraction=state.fraction + length * is_fraction,
        position=state.position + length * (not is_fraction) if state.digits or not is_fraction
        else -state.fraction - leading,
        segments=state.segments or search.first,
    )  # fmt: skip
    most = language.most_fraction if is_fraction else language.most_integer
    if most is not None and (after.fraction if is_fraction else after.position) > most:
        return alive, ends
    runs = _Runs(reader, after, state.read, state.digits * 10**length, values)
    is_unsure = np.zeros(len(values), np.bool_)
    if reader.is_endless(after):
        alive[:] = True
    else:
        for position, what in reader.positions(after):
            for label, which in runs.find_labels(what, is_unsure):
                found = runs.have_member(position, label, which)
                if found is None:
                    is_unsure |= which & ~alive
                else:
                    alive |= found & which
            if alive.all():
                break
    if language.form != "marked" or is_fraction:
        what = max(entry for entry in after.segments if entry[0] <= after.position)[1]
        for label, which in runs.find_labels(what, is_unsure):
            ends |= runs.are_members(label) & which
    return _read_each(reader, state, length, values, alive, ends, is_unsure)


def read_run(reader: NumberReader, state: Mantissa, length: int, value: int) -> State | None:
    """Return the state after a run of digits, or None if the text cannot be completed."""
    after: State | None = state
    for digit in f"{value:0{length}}":
        if after is None or after.phase == ZERO:
            return None
        after = reader.read(after, digit)
    return after if after is not None and reader.is_alive(after) else None


def _read_each(
    reader: NumberReader, state: Mantissa, length: int, values: NDArray[np.int64], alive: Bits, ends: Bits, which: Bits
) -> tuple[Bits, Bits]:
    """Return the two results, after judging some of the runs digit by digit."""
    for index in np.flatnonzero(which).tolist():
        after = read_run(reader, state, length, int(values[index]))
        alive[index] = after is not None
        ends[index] = after is not None and reader.may_end(after)
    return alive, ends


class _Runs:
    """Runs of digits after a mantissa of `read` digits.

    after: a mantissa like those after the runs. base: their digits as an integer without the values of the runs.
    """

    def __init__(self, reader: NumberReader, after: Mantissa, read: int, base: int, values: NDArray[np.int64]) -> None:
        self.reader, self.after, self.read, self.base, self.values = reader, after, read, base, values
        self.search = reader.sides[after.side]
        self.greatest = int(values.max(initial=0))

    def find_labels(self, what: int | tuple[int, int], is_unsure: Bits) -> list[tuple[int, Bits]]:
        """Return the labels that hold in a segment after the runs, each with the runs after which it does.

        Runs after which a bound is still undecided are added to `is_unsure`.
        """
        if isinstance(what, int):
            return [(what, np.ones(len(self.values), np.bool_))] if what else []
        low, high = what
        count = self.after.read - self.read
        texts = [text[self.read : self.after.read].ljust(count, "0") for text in self.search.texts[low:high]]
        bounds = np.array([int(text) for text in texts], np.int64)
        below = np.searchsorted(bounds, self.values)
        is_undecided = bounds[np.minimum(below, len(bounds) - 1)] == self.values
        is_unsure |= is_undecided
        labels = np.array(self.search.gaps[low : high + 1])[below]
        labels[is_undecided] = 0
        return [(label, labels == label) for label in set(labels.tolist()) - {0}]

    def have_member(self, position: int, label: int, which: Bits) -> Bits | None:
        """Return after which runs a member of a label follows at a position; None if that is not found out."""
        q, grid = position - self.after.read, self.reader.grid(self.after, position)
        found = np.zeros(len(self.values), np.bool_)
        unit = self.search.find_unit(q, grid)
        for step, periods in self.search.list_steps(label, unit, grid):
            if step is None:
                return which
            if 1 in periods:
                continue
            enough = _count_enough(periods)
            if enough is None:
                return None
            size = 10 ** (q + unit)
            found |= which if size >= enough * step else self._have_multiple(step, periods, size, enough)
        return found

    def _have_multiple(self, step: int, periods: list[int], size: int, most: int) -> Bits:
        """Return whether there is a k that no period divides with k * step in the interval of each run.

        The interval is of the numbers n with n // size = base + value. most: numbers k to look at.
        """
        cycle = lcm(*periods) * step
        first: NDArray[Any] = self.values
        if cycle + (self.greatest + 1) * size >= MOST_INTEGER:
            first = first.astype(object)
        first = first * size + self.base * size % cycle
        k, last = (first - 1) // step + 1, (first + (size - 1)) // step
        found = np.zeros(len(self.values), np.bool_)
        for _ in range(most):
            fits = k <= last
            for period in periods:
                fits &= k % period != 0
            found |= fits.astype(np.bool_)
            k = k + 1
        return found

    def are_members(self, label: int) -> Bits:
        """Return after which runs the number is a member of a label, where the label holds."""
        found = np.zeros(len(self.values), np.bool_)
        for multiple, others in self.search.labels[label]:
            one = np.ones(len(self.values), np.bool_) if multiple is None else self._are_multiples(multiple)
            for other in others:
                one &= ~self._are_multiples(other)
            found |= one
        return found

    def _are_multiples(self, divisor: Divisor) -> Bits:
        """Return after which runs the number is a multiple."""
        modulus = divisor.reduced_modulus(self.after.fraction)
        missing = -self.base % modulus
        if missing > self.greatest:  # most often
            return np.zeros(len(self.values), np.bool_)
        if modulus > self.greatest:
            return np.asarray(self.values == missing)
        return np.asarray(self.values % modulus == missing)


def _count_enough(periods: list[int]) -> int | None:
    """Return n so that of any n consecutive integers one is a multiple of no period; None if there may be no such n."""
    return next(
        (n for n in range(1, MOST_CONSECUTIVE) if n > sum((n + period - 1) // period for period in periods)), None
    )
