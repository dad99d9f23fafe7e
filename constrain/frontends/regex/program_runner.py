"""A program made ready to run: places as bits of an int, so that a set of them is united in one operation.

A `ProgramRunner` also remembers, for `threads`, what has been found out about its program.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Union

from .pending_lookahead import PendingLookaheads
from .regex_program import RegexProgram

__all__ = [
    "ACCEPT",
    "NOTHING",
    "Code",
    "LookaroundGate",
    "Past",
    "Readings",
    "ProgramRunner",
    "Threads",
    "find_readings",
    "make_runner",
]

ACCEPT = 1
"""The bit of a set of places that says: the text may end here."""

NOTHING: PendingLookaheads = frozenset()

Past = tuple[int, ...]
"""For each look-behind the number of the state that it is in, -1 where nobody asks."""

Threads = frozenset[tuple[PendingLookaheads, int]]
"""Places as bits of an int (`ACCEPT`, then one for each character instruction), by what they owe."""

Readings = tuple[tuple[PendingLookaheads, int], ...]
"""Of threads that read a character: what they owe after it, and the places that read it."""


@dataclass(frozen=True, slots=True)
class LookaroundGate:
    """An instruction that goes on with the next one where a look holds. program: its number among those of its
    direction."""

    direction: str
    program: int
    negated: bool


Code = list[Union[int, tuple[int, ...], str, LookaroundGate]]
"""As of Program, with gates for assertions."""


@dataclass(slots=True)
class ProgramRunner:
    """A program made ready to run.

    code: as of Program, with gates for assertions and `sets` numbered as all programs of the pattern do. behinds: the
    look-behinds that it asks, itself or through others. bits: for each character instruction by place its bit, and
    places the other way round. ladders: bits of which a lower one makes all higher ones superfluous. rest: the bit of
    the place from where any text is taken, or 0. readers: for each class of characters who reads it. reached: what is
    known of `_Looking.reach`. steps: by what its threads read and owe, and the past after it, the threads after it.
    states, numbers: of a look-behind, the sets of threads that it has been in.
    """

    code: Code
    behinds: frozenset[int]
    bits: dict[int, int]
    places: list[int]
    ladders: list[int]
    rest: int
    readers: list[int] = field(default_factory=list)
    reached: dict[int | tuple[int, Past], tuple[tuple[PendingLookaheads, int], ...]] = field(default_factory=dict)
    steps: dict[tuple[Readings, Past], Threads] = field(default_factory=dict)
    states: list[Threads] = field(default_factory=list)
    numbers: dict[Threads, int] = field(default_factory=dict)

    def number(self, threads: Threads) -> int:
        """The number of a set of threads, of a look-behind."""
        found = self.numbers.setdefault(threads, len(self.states))
        if found == len(self.states):
            self.states.append(threads)
        return found

    def read_by(self, members: list[int]) -> None:
        """Set `readers`. members: for each class the sets that it is in, as bits."""
        by_set: dict[int, int] = {}
        for place, bit in self.bits.items():
            step = self.code[place]
            assert isinstance(step, int)
            by_set[step] = by_set.get(step, 0) | bit
        self.readers = [sum(bits for number, bits in by_set.items() if inside >> number & 1) for inside in members]

    def superfluous(self, places: int) -> int:
        """What threads at these places make superfluous in those that owe more."""
        if places & self.rest:
            return -1
        for ladder in self.ladders:
            on = places & ladder
            if on:
                places |= ladder & -(on & -on)
        return places


def find_readings(owing: list[tuple[list[PendingLookaheads | None], int]], reader: int, index: int) -> Readings:
    """Which of the threads, with what they owe after each class of characters, read one of this class."""
    reading = []
    for rows, places in owing:
        owed = rows[index]
        if places & reader and owed is not None:
            reading.append((owed, places & reader))
    return tuple(reading)


def make_runner(program: RegexProgram, code: Code, behinds: frozenset[int]) -> ProgramRunner:
    """A program with its places as bits."""
    places = [-1, *(place for place, step in enumerate(code) if isinstance(step, int))]
    bits = {place: 1 << index for index, place in enumerate(places) if place >= 0}
    ladders = []
    for starts, length in program.ladders:
        for offset in range(length):
            if starts[0] + offset in bits:
                ladders.append(sum(bits[start + offset] for start in starts))
    return ProgramRunner(code, behinds, bits, places, ladders, bits[program.rest] if program.rest >= 0 else 0)
