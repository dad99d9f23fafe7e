"""The automaton of the decimals between two bounds, by a kernel.

It is that of `number_automata.tabulate_numbers`, whose conditions a kernel reads digit by digit
(`kernels.digit_tables`). Only sets of listed values and multiples need conditions of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import inf

import numpy as np

from ....automata.compiled_operations import minimise_record
from ....automata.dfa import Dfa
from ....automata.numerals.number_interval import NumberInterval
from ....base.work import spend_work
from ....kernels.automata_layout import NO_SPACE
from ....kernels.entry_points import explore_digits
from .number_parts import split_digits, too_many_states
from .number_table import BOUNDS, CLASSES, STATE

from ....kernels.digit_request_layout import (  # isort: skip
    ALLOWS_EQUAL, ALLOWS_GREATER, ALLOWS_LESS, N_CLASSES, Q_EXPONENT, Q_FRACTION, Q_MIRRORED, Q_SIDES, Q_W, SIDE_HIGH,
    SIDE_INTEGER, SIDE_LOW, SIDE_PRESENT, SIDE_TAIL, SIDE_W, UNLIMITED,
)  # fmt: skip

__all__ = ["DigitCaps", "build_bounded_dfa"]

DigitCaps = Callable[[NumberInterval], tuple[int | None, int | None]]
"""Returns the most digits of the integer part and of the fraction of magnitudes (None: no cap)."""

FIRST_STATES = 192
"""States for which there is space at first: more than nearly all bounds need."""
HEAD = np.array([0, 0, len(BOUNDS), *BOUNDS, *CLASSES], np.int32)
"""The beginning of the record of an automaton of numbers."""


def build_bounded_dfa(
    numbers: NumberInterval, fraction: bool, exponent: float, caps: DigitCaps, max_states: int
) -> Dfa:
    """Return the Dfa of numbers between the bounds of an interval, whose multiples are ignored.

    fraction: whether there may be one. exponent: most digits of an exponent. Raise LimitError for more than max_states
    states.
    """
    mirrored = numbers.mirrored()
    request = [0] * Q_W
    request[Q_FRACTION] = int(fraction)
    request[Q_EXPONENT] = UNLIMITED if exponent == inf else int(exponent)
    request[Q_MIRRORED] = int(mirrored == numbers)
    for place, side in ((Q_SIDES, numbers), (Q_SIDES + SIDE_W, mirrored)):
        if side.has_magnitudes():
            request[place + SIDE_PRESENT] = 1
            integer_digits, tail = caps(side)
            # Digits are counted by a state each, so that more than max_states of them are refused below.
            request[place + SIDE_INTEGER] = UNLIMITED if integer_digits is None else min(integer_digits, max_states)
            request[place + SIDE_TAIL] = UNLIMITED if tail is None else min(tail, max_states)
            low, high = side.low, side.high
            if low is not None and (low > 0 or (low == 0 and side.low_open)):
                request[place + SIDE_LOW] = len(request)
                request += _list_bound(low, ALLOWS_GREATER if side.low_open else ALLOWS_EQUAL | ALLOWS_GREATER)
            if high is not None:
                request[place + SIDE_HIGH] = len(request)
                request += _list_bound(high, ALLOWS_LESS if side.high_open else ALLOWS_LESS | ALLOWS_EQUAL)
    words = np.array(request, np.int32)
    most, charged, found = min(FIRST_STATES, max_states), 0, NO_SPACE
    while found == NO_SPACE:
        record = np.empty(len(HEAD) + most * (N_CLASSES + 1), np.int32)
        record[: len(HEAD)] = HEAD
        # Two int64s for each state, and a hash table of at most four int32s for each.
        scratch = np.empty(4 * (most + 1) + N_CLASSES + 4, np.int64)
        found = explore_digits(words, record, scratch, most)
        if found == NO_SPACE and most == max_states:
            raise too_many_states(max_states)
        explored = most if found == NO_SPACE else found
        spend_work(STATE * (explored - charged), "an automaton of numbers")
        charged, most = explored, min(2 * most, max_states)
    return Dfa(minimise_record(record))


def _list_bound(bound: Fraction, allowed: int) -> list[int]:
    """Return a bound as `kernels.digit_request_layout` says. `allowed`: how numbers may compare with it."""
    integer_digits, tail = split_digits(bound)
    return [len(integer_digits), len(tail), allowed, *map(int, integer_digits + tail)]
