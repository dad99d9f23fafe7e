"""Times with all leap seconds: `hh:mm:60` with the offset that makes it 23:59:60 UTC (RFC 3339, section 5.7).

The offset comes last and is determined by the time: 15:59:60-08:00, 00:29:60+00:30. So an automaton has to remember one
of 1,440 minutes from the minute to the offset, in each of the seven positions between: some 11,000 states. Every
`date-time` needs it, so it is not built state by state: its states form blocks, one state per minute, and whole blocks
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
    """First state of each block, in the order of a text; the names show what remains to be read.

    begun: hh:mm (0), h:mm (3: by the first digit), :mm (24: by the hour), mm (24), m (144). left, six with a state per
    minute: `:60`, `60`, `0`, then `.` or the offset, a digit of the fraction, a digit or the offset. owed: hh:mm
    (1,440), h:mm (600), :mm (60), mm (60), m (10): the rest of an offset that is determined.
    """

    begun: tuple[int, ...]
    left: tuple[int, ...]
    owed: tuple[int, ...]
    rest: int
    end: int


class TransitionDrawing:
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


def times_with_leap_seconds(prefix: Dfa, rest: Dfa) -> Dfa:
    """Return the Dfa of prefix followed by a leap second with its offset, or by hh:mm: and rest, which begins with 0 to
    5.

    prefix must be prefix-free, and rest must end in one state without transitions.
    """
    alphabet = "+-.0123456789:" + ("" if prefix.accepting[0] else "T") + "Z"
    at = _blocks(0 if prefix.accepting[0] else prefix.delta.shape[0] - 1, rest)
    wires = TransitionDrawing(at.end, alphabet)
    last = at.rest + int(np.flatnonzero(rest.accepting)[0])
    if not prefix.accepting[0]:
        wires.copy(prefix, 0)
        # Its last state, which nothing follows, is where the time begins.
        assert prefix.accepting.nonzero()[0].tolist() == [at.begun[0]], "the prefix has one end"
    wires.copy(rest, at.rest)
    _link_begun(wires, at)
    _link_left(wires, at, rest, last)
    _link_owed(wires, at, last)
    return _numbered(wires.delta, last, _distances(at, prefix, rest), alphabet)


def _blocks(first: int, rest: Dfa) -> StateBlocks:
    sizes = (1, 3, 24, 24, 144, *(DAY,) * 6, DAY, 600, 60, 60, 10)
    starts = [first]
    for size in sizes:
        starts.append(starts[-1] + size)
    return StateBlocks(
        tuple(starts[:5]), tuple(starts[5:11]), tuple(starts[11:16]), starts[16], starts[16] + rest.delta.shape[0]
    )


def _link_begun(wires: TransitionDrawing, at: StateBlocks) -> None:
    """Draw the transitions of hh:mm, which leads to a state of its own for each minute."""
    whole, unit, colon, ten, one = at.begun
    hour = np.arange(24, dtype=np.int32)
    minute = np.arange(DAY, dtype=np.int32)
    wires.link_digits(np.full(3, whole, np.int32), hour[:3], unit + hour[:3])
    wires.link_digits(unit + hour // 10, hour % 10, colon + hour)
    wires.link(colon + hour, ":", ten + hour)
    sixth = minute[:144]
    wires.link_digits(ten + sixth // 6, sixth % 6, one + sixth)
    wires.link_digits(one + minute // 10, minute % 10, at.left[0] + minute)


def _link_left(wires: TransitionDrawing, at: StateBlocks, rest: Dfa, last: int) -> None:
    """Draw the transitions of `:60` and its fraction for each minute, or of the rest of another time."""
    colon, six, zero, dot, digit, more = at.left
    minute = np.arange(DAY, dtype=np.int32)
    wires.link(colon + minute, ":", six + minute)
    wires.link(six + minute, "6", zero + minute)
    for char in "012345":
        wires.link(six + minute, char, at.rest + rest.step(0, char))
    wires.link(zero + minute, "0", dot + minute)
    wires.link(dot + minute, ".", digit + minute)
    for state in (digit, more):
        wires.link(state + minute, "0123456789", more + minute)
    for state in (dot, more):
        wires.link(state + minute, "+", at.owed[0] + (minute + 1) % DAY)
        wires.link(state + minute, "-", at.owed[0] + DAY - 1 - minute)
        wires.link(state + DAY - 1, "Z", last)


def _link_owed(wires: TransitionDrawing, at: StateBlocks, last: int) -> None:
    """Draw the transitions of an offset that is determined."""
    whole, unit, colon, ten, one = at.owed
    minute = np.arange(DAY, dtype=np.int32)
    hour, of_hour = minute // HOUR, minute % HOUR
    wires.link_digits(whole + minute, hour // 10, unit + hour % 10 * HOUR + of_hour)
    left = np.arange(600, dtype=np.int32)
    wires.link_digits(unit + left, left // HOUR, colon + left % HOUR)
    sixty, ten_digits = left[:HOUR], left[:10]
    wires.link(colon + sixty, ":", ten + sixty)
    wires.link_digits(ten + sixty, sixty // 10, one + sixty % 10)
    wires.link_digits(one + ten_digits, ten_digits, last)


def _distances(at: StateBlocks, prefix: Dfa, rest: Dfa) -> Ints:
    """Return the length of the shortest suffix of each state, by block; Dfa would compute it state by state."""
    out = np.zeros(at.end, np.int32)
    out[at.rest :] = rest.distances()
    for place, (first, end) in enumerate(zip(at.owed, (*at.owed[1:], at.rest))):
        out[first:end] = 5 - place
    more = np.full(DAY, 6, np.int32)
    more[-1] = 1  # Z
    plain = 1 + min(out[at.rest + rest.step(0, char)] for char in "012345")
    six = np.minimum(2 + more, plain)
    for first, steps in zip(at.left, (1 + six, six, 1 + more, more, 1 + more, more)):
        out[first : first + DAY] = steps
    for place, (first, end) in enumerate(zip(at.begun, (*at.begun[1:], at.left[0]))):
        out[first:end] = plain + 6 - place
    if at.begun[0]:
        out[: at.begun[0] + 1] = prefix.distances() + out[at.begun[0]]
    return out


def _numbered(delta: Ints, last: int, distances: Ints, alphabet: str) -> Dfa:
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
        distances[order].tolist(),
    )
