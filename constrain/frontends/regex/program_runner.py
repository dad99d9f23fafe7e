"""A program prepared for simulation: places are bits of an int, so that one operation unites two sets of places.

A `ProgramRunner` also caches the results that `lookaround_threads` computes for its program.
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
"""The bit of a set of places that means acceptance: the text may end here."""

NOTHING: PendingLookaheads = frozenset()

Past = tuple[int, ...]
"""For each lookbehind the number of its state, or -1 if the state is not needed."""

Threads = frozenset[tuple[PendingLookaheads, int]]
"""Map from pending lookaheads to places, as bits of an int (`ACCEPT`, then one for each character instruction)."""

Readings = tuple[tuple[PendingLookaheads, int], ...]
"""The threads that read a character: their pending lookaheads after it, and the places that read it."""


@dataclass(frozen=True, slots=True)
class LookaroundGate:
    """An instruction that continues at the next one where a lookaround holds.

    program: the number of the lookaround's program among those of its direction.
    """

    direction: str
    program: int
    negated: bool


Code = list[Union[int, tuple[int, ...], str, LookaroundGate]]
"""The code of a RegexProgram, with gates for assertions."""


@dataclass(slots=True)
class ProgramRunner:
    """A program prepared for simulation, with caches.

    Attributes
    ----------
    code : Code
        The code of a RegexProgram, with gates for assertions and set numbers shared by all programs of the pattern.
    behinds : frozenset of int
        The lookbehinds that it uses, directly or through others.
    bits : dict
        The bit of each character instruction, by place.
    places : list of int
        The inverse: the place of each bit.
    ladders : list of int
        Sets of bits of which a lower one dominates all higher ones.
    rest : int
        The bit of the place from which any text is accepted, or 0.
    readers : list of int
        For each character class, the places that read it.
    reached : dict
        Cache of `_LookaroundConstruction.reach`.
    steps : dict
        Transition cache: readings and the past after them -> threads.
    states, numbers : list, dict
        Of a lookbehind, the sets of threads that it has been in, and their numbers.
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
        """Return the number of a set of threads of a lookbehind."""
        found = self.numbers.setdefault(threads, len(self.states))
        if found == len(self.states):
            self.states.append(threads)
        return found

    def read_by(self, members: list[int]) -> None:
        """Set `readers`. members: for each class the sets that contain it, as bits."""
        by_set: dict[int, int] = {}
        for place, bit in self.bits.items():
            step = self.code[place]
            assert isinstance(step, int)
            by_set[step] = by_set.get(step, 0) | bit
        self.readers = [sum(bits for number, bits in by_set.items() if inside >> number & 1) for inside in members]

    def superfluous(self, places: int) -> int:
        """Return the places that threads at these places dominate in threads with more pending lookaheads."""
        if places & self.rest:
            return -1
        for ladder in self.ladders:
            on = places & ladder
            if on:
                places |= ladder & -(on & -on)
        return places


def find_readings(owing: list[tuple[list[PendingLookaheads | None], int]], reader: int, index: int) -> Readings:
    """Return the threads that read a class: their pending lookaheads afterwards, and the places that read it.

    owing: for each thread its pending lookaheads after each class of characters, and its places. reader: the places
    that read the class `index`.
    """
    reading = []
    for rows, places in owing:
        owed = rows[index]
        if places & reader and owed is not None:
            reading.append((owed, places & reader))
    return tuple(reading)


def make_runner(program: RegexProgram, code: Code, behinds: frozenset[int]) -> ProgramRunner:
    """Return the runner of a program. code: its code with gates; behinds: the lookbehinds that it uses."""
    places = [-1, *(place for place, step in enumerate(code) if isinstance(step, int))]
    bits = {place: 1 << index for index, place in enumerate(places) if place >= 0}
    ladders = []
    for starts, length in program.ladders:
        for offset in range(length):
            if starts[0] + offset in bits:
                ladders.append(sum(bits[start + offset] for start in starts))
    return ProgramRunner(code, behinds, bits, places, ladders, bits[program.rest] if program.rest >= 0 else 0)
