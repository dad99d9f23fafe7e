"""A program prepared for simulation: sets of positions are ints, so that one operation unites two of them.

A *position* is the address of an instruction that reads a character, as in the position automaton of Glushkov (1961).

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
    "LookbehindStates",
    "Readings",
    "ProgramRunner",
    "Threads",
    "find_readings",
    "make_runner",
]

ACCEPT = 1
"""The bit of a set of positions that means acceptance: the text may end here."""

NOTHING: PendingLookaheads = frozenset()

LookbehindStates = tuple[int, ...]
"""For each lookbehind the number of its state, or -1 if the state is not needed."""

Threads = frozenset[tuple[PendingLookaheads, int]]
"""Map from pending lookaheads to positions, as bits of an int (`ACCEPT`, then one for each character instruction)."""

Readings = tuple[tuple[PendingLookaheads, int], ...]
"""The threads that read a character: their pending lookaheads after it, and the positions that read it."""


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
    lookbehinds : frozenset of int
        The lookbehinds that it uses, directly or through others.
    bits : dict
        The bit of each character instruction, by position.
    positions : list of int
        The inverse: the position of each bit.
    chains : list of int
        Sets of bits of which a lower one dominates all higher ones.
    rest_bit : int
        The bit of the position from which any text is accepted, or 0.
    readers : list of int
        For each character class, the positions that read it.
    reached : dict
        Cache of `_LookaroundConstruction.reach`.
    steps : dict
        Transition cache: readings and the lookbehind states after them -> threads.
    states, numbers : list, dict
        Of a lookbehind, the sets of threads that it has been in, and their numbers.
    """

    code: Code
    lookbehinds: frozenset[int]
    bits: dict[int, int]
    positions: list[int]
    chains: list[int]
    rest_bit: int
    readers: list[int] = field(default_factory=list)
    reached: dict[int | tuple[int, LookbehindStates], tuple[tuple[PendingLookaheads, int], ...]] = field(
        default_factory=dict
    )
    steps: dict[tuple[Readings, LookbehindStates], Threads] = field(default_factory=dict)
    states: list[Threads] = field(default_factory=list)
    numbers: dict[Threads, int] = field(default_factory=dict)

    def number(self, threads: Threads) -> int:
        """Return the number of a set of threads of a lookbehind."""
        number = self.numbers.setdefault(threads, len(self.states))
        if number == len(self.states):
            self.states.append(threads)
        return number

    def set_readers(self, members: list[int]) -> None:
        """Set `readers`. members: for each class the sets that contain it, as bits."""
        by_set: dict[int, int] = {}
        for position, bit in self.bits.items():
            step = self.code[position]
            assert isinstance(step, int)
            by_set[step] = by_set.get(step, 0) | bit
        self.readers = [
            sum(bits for number, bits in by_set.items() if containing >> number & 1) for containing in members
        ]

    def find_dominated(self, positions: int) -> int:
        """Return the positions that threads at these positions dominate in threads with more pending lookaheads."""
        if positions & self.rest_bit:
            return -1
        for chain in self.chains:
            present = positions & chain
            if present:
                positions |= chain & -(present & -present)
        return positions


def find_readings(advanced: list[tuple[list[PendingLookaheads | None], int]], reader: int, index: int) -> Readings:
    """Return the threads that read a class: their pending lookaheads afterwards, and the positions that read it.

    advanced: for each thread its pending lookaheads after each class of characters, and its positions. reader: the
    positions that read the class `index`.
    """
    reading = []
    for rows, positions in advanced:
        remaining = rows[index]
        if positions & reader and remaining is not None:
            reading.append((remaining, positions & reader))
    return tuple(reading)


def make_runner(program: RegexProgram, code: Code, lookbehinds: frozenset[int]) -> ProgramRunner:
    """Return the runner of a program. code: its code with gates; lookbehinds: those that it uses."""
    positions = [-1, *(position for position, step in enumerate(code) if isinstance(step, int))]
    bits = {position: 1 << index for index, position in enumerate(positions) if position >= 0}
    chains = []
    for starts, length in program.chains:
        for offset in range(length):
            if starts[0] + offset in bits:
                chains.append(sum(bits[start + offset] for start in starts))
    return ProgramRunner(
        code, lookbehinds, bits, positions, chains, bits[program.rest_pc] if program.rest_pc >= 0 else 0
    )
