"""Times with all leap seconds: `hh:mm:60` with the offset that makes it 23:59:60 UTC (RFC 3339, section 5.7).

The offset comes last and is determined by the time: 15:59:60-08:00, 00:29:60+00:30. So an automaton has to remember one
of 1,440 minutes from the minute to the offset, in each of the seven positions between: some 11,000 states. Every
`date-time` needs it, so it is not built state by state: its states form blocks, one state per minute, and entire blocks
are linked at once. The result is the minimal automaton, with the canonical numbering.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ....automata.dfa import Dfa

__all__ = ["times_with_leap_seconds"]

HOUR = 60
DAY = 24 * HOUR
Ints = NDArray[np.int32]


class StateBlocks(NamedTuple):
    """First state of each block, in the order of a text. A block is named by the suffix that remains to be read.

    time: hh:mm (0), h:mm (3: by the first digit), :mm (24: by the hour), mm (24), m (144). leap_second, six with a
    state per minute: `:60`, `60`, `0`, then `.` or the offset, a digit of the fraction, a digit or the offset. offset:
    the remaining suffix of an offset that is determined: hh:mm (1,440), h:mm (600), :mm (60), mm (60), m (10).
    other_seconds: the states of times without a leap second. end: the number of states.
    """

    time: tuple[int, ...]
    leap_second: tuple[int, ...]
    offset: tuple[int, ...]
    other_seconds: int
    end: int


class TransitionTable:
    """The transition table under construction: delta[state, column]."""

    def __init__(self, states: int, alphabet: str) -> None:
        self.delta = np.full((states, len(alphabet) + 1), -1, np.int32)
        self.columns = {char: column for column, char in enumerate(alphabet, 1)}
        self.digits = np.array([self.columns[digit] for digit in "0123456789"])

    def link(self, states: Ints | int, chars: str, targets: Ints | int) -> None:
        """Make each of these characters lead from each state to its target."""
        for char in chars:
            self.delta[states, self.columns[char]] = targets

    def link_digits(self, states: Ints, digits: Ints, targets: Ints | int) -> None:
        """Make each state's own digit lead to its own target."""
        self.delta[states, self.digits[digits]] = targets

    def copy(self, dfa: Dfa, base: int) -> None:
        """Copy the transitions of a Dfa, with its states from `base` on."""
        for char in self.columns:
            for state in range(dfa.delta.shape[0]):
                target = dfa.step(state, char)
                if target >= 0:
                    self.link(base + state, char, base + target)


def times_with_leap_seconds(prefix: Dfa, other_seconds: Dfa) -> Dfa:
    """Return the Dfa of prefix followed by a leap second with its offset, or by hh:mm: and other_seconds.

    prefix must be prefix-free; other_seconds must begin with a digit 0 to 5 and have one accepting state, without
    transitions.
    """
    alphabet = "+-.0123456789:" + ("" if prefix.accepting[0] else "T") + "Z"
    at = _blocks(0 if prefix.accepting[0] else prefix.delta.shape[0] - 1, other_seconds)
    transitions = TransitionTable(at.end, alphabet)
    last = at.other_seconds + int(np.flatnonzero(other_seconds.accepting)[0])
    if not prefix.accepting[0]:
        transitions.copy(prefix, 0)
        # The time begins in its accepting state, which has no transitions.
        assert prefix.accepting.nonzero()[0].tolist() == [at.time[0]], "the prefix has one end"
    transitions.copy(other_seconds, at.other_seconds)
    _link_time(transitions, at)
    _link_leap_seconds(transitions, at, other_seconds, last)
    _link_offsets(transitions, at, last)
    return _to_canonical_dfa(transitions.delta, last, alphabet)


def _blocks(first: int, other_seconds: Dfa) -> StateBlocks:
    sizes = (1, 3, 24, 24, 144, *(DAY,) * 6, DAY, 600, 60, 60, 10)
    starts = [first]
    for size in sizes:
        starts.append(starts[-1] + size)
    return StateBlocks(
        tuple(starts[:5]),
        tuple(starts[5:11]),
        tuple(starts[11:16]),
        starts[16],
        starts[16] + other_seconds.delta.shape[0],
    )


def _link_time(transitions: TransitionTable, at: StateBlocks) -> None:
    """Add the transitions of hh:mm, which lead to a separate state for each minute."""
    hour_start, unit, colon, ten, one = at.time
    hour = np.arange(24, dtype=np.int32)
    minute = np.arange(DAY, dtype=np.int32)
    transitions.link_digits(np.full(3, hour_start, np.int32), hour[:3], unit + hour[:3])
    transitions.link_digits(unit + hour // 10, hour % 10, colon + hour)
    transitions.link(colon + hour, ":", ten + hour)
    sixth = minute[:144]
    transitions.link_digits(ten + sixth // 6, sixth % 6, one + sixth)
    transitions.link_digits(one + minute // 10, minute % 10, at.leap_second[0] + minute)


def _link_leap_seconds(transitions: TransitionTable, at: StateBlocks, other_seconds: Dfa, last: int) -> None:
    """Add the transitions of `:60` and its fraction for each minute, and of other seconds."""
    colon, six, zero, dot, digit, more = at.leap_second
    minute = np.arange(DAY, dtype=np.int32)
    transitions.link(colon + minute, ":", six + minute)
    transitions.link(six + minute, "6", zero + minute)
    for char in "012345":
        transitions.link(six + minute, char, at.other_seconds + other_seconds.step(0, char))
    transitions.link(zero + minute, "0", dot + minute)
    transitions.link(dot + minute, ".", digit + minute)
    for state in (digit, more):
        transitions.link(state + minute, "0123456789", more + minute)
    for state in (dot, more):
        transitions.link(state + minute, "+", at.offset[0] + (minute + 1) % DAY)
        transitions.link(state + minute, "-", at.offset[0] + DAY - 1 - minute)
        transitions.link(state + DAY - 1, "Z", last)


def _link_offsets(transitions: TransitionTable, at: StateBlocks, last: int) -> None:
    """Add the transitions of an offset that is determined."""
    hour_start, unit, colon, ten, one = at.offset
    minute = np.arange(DAY, dtype=np.int32)
    hour, of_hour = minute // HOUR, minute % HOUR
    transitions.link_digits(hour_start + minute, hour // 10, unit + hour % 10 * HOUR + of_hour)
    minute_of_ten = np.arange(600, dtype=np.int32)
    transitions.link_digits(unit + minute_of_ten, minute_of_ten // HOUR, colon + minute_of_ten % HOUR)
    sixty, ten_digits = minute_of_ten[:HOUR], minute_of_ten[:10]
    transitions.link(colon + sixty, ":", ten + sixty)
    transitions.link_digits(ten + sixty, sixty // 10, one + sixty % 10)
    transitions.link_digits(one + ten_digits, ten_digits, last)


def _to_canonical_dfa(delta: Ints, last: int, alphabet: str) -> Dfa:
    """Return the Dfa, with states numbered breadth-first, layer by layer; T and Z also in lower case."""
    numbers = np.full(len(delta) + 1, -1, np.int32)  # The last one is for -1.
    layers, layer, count = [], np.zeros(1, np.int32), 0
    while len(layer):
        layers.append(layer)
        numbers[layer] = np.arange(count, count + len(layer), dtype=np.int32)
        count += len(layer)
        targets = delta[layer].ravel()
        targets = targets[(targets >= 0) & (numbers[targets] < 0)]
        layer = targets[np.sort(np.unique(targets, return_index=True)[1])]
    order = np.concatenate(layers)
    columns = {ord(char): column for column, char in enumerate(alphabet, 1)}
    columns.update({ord(char.lower()): columns[ord(char)] for char in alphabet if char.isalpha()})
    starts = sorted({0, *columns, *(code + 1 for code in columns)})
    accepting = np.zeros(count, np.bool_)
    accepting[numbers[last]] = True
    return Dfa.from_canonical(
        np.array(starts, "<i4"),
        np.array([columns.get(start, 0) for start in starts], "<i4"),
        np.ascontiguousarray(numbers[delta[order]], "<i4"),
        accepting,
    )
