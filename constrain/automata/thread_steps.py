"""The steps of ordered programs, as the regex front end writes them and `threads` runs them.

A program is a stretch of one list that all patterns share; a place is an index into it. A step that reads or checks
goes on at the next place. Where a jump has several targets, a match by way of an earlier one is preferred.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Union

from .utf8 import Utf8

__all__ = ["BehindStep", "DoneStep", "EnterStep", "LeaveStep", "LookStep", "TerminalPrograms", "ReadStep", "Step"]


@dataclass(frozen=True, slots=True)
class ReadStep:
    """One character of the set that begins at a node of `utf8`. kind: its class, if what it is will be asked for."""

    node: int
    kind: int = -1


@dataclass(frozen=True, slots=True)
class EnterStep:
    """The body of a repetition begins that may take no text."""

    loop: int


@dataclass(frozen=True, slots=True)
class LeaveStep:
    """That body ends: it goes on at `again` if it has taken text, else at `out`."""

    loop: int
    again: int
    out: int


@dataclass(frozen=True, slots=True)
class LookStep:
    """What follows begins (negated: does not) with a text of the program at `start`, which ends in Done(-1)."""

    start: int
    negated: bool


@dataclass(frozen=True, slots=True)
class BehindStep:
    """The characters just before have (negated: have not) kinds such as one of the options says.

    Each option has a set of kinds, as bits, for each of the `width` last characters of the lexeme.
    """

    options: tuple[tuple[int, ...], ...]
    width: int
    negated: bool


@dataclass(frozen=True, slots=True)
class DoneStep:
    """The end of a program: terminal matched, or -1 for what a look asks for."""

    terminal: int


Step = Union[ReadStep, tuple[int, ...], EnterStep, LeaveStep, LookStep, BehindStep, DoneStep]
"""A tuple jumps to one of its places, in this order of preference."""


@dataclass(slots=True)
class TerminalPrograms:
    """The programs of the terminals of a grammar.

    names: of each terminal, for messages. source: a text, and the position in it where a terminal is to be seen.
    starts, keywords: of each terminal the place of its program, and of the one that only renames; -1: none.
    owners: of each place the terminal it belongs to; of a program that only renames, its complement (~t).
    renames: of each terminal the keywords that rename it, and to which terminal: the first that fits does.
    """

    names: list[str]
    source: Callable[[int], tuple[str, int]]
    starts: list[int]
    keywords: list[int]
    renames: list[dict[int, int]]
    code: list[Step] = field(default_factory=list)
    owners: list[int] = field(default_factory=list)
    utf8: Utf8 = field(default_factory=Utf8)
