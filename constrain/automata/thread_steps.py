"""The instructions of ordered programs, which the regex front end generates and `ordered_threads` executes.

A program is a segment of one list that all patterns share; an *address* is an index into it. After a step that reads or
asserts, execution continues at the next address. Of several jump targets, earlier ones are preferred.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Union

from .utf8 import Utf8

__all__ = ["BehindStep", "DoneStep", "EnterStep", "LeaveStep", "LookStep", "TerminalPrograms", "ReadStep", "Step"]


@dataclass(frozen=True, slots=True)
class ReadStep:
    """Read one character of the set at a root node of `Utf8`; `kind` is its class if a lookbehind may inspect it, or
    -1.
    """

    node: int
    kind: int = -1


@dataclass(frozen=True, slots=True)
class EnterStep:
    """Start of the body of a repetition that may match the empty text."""

    loop: int


@dataclass(frozen=True, slots=True)
class LeaveStep:
    """End of the body of a repetition: continue at `again` if this iteration consumed text, else at `out`."""

    loop: int
    again: int
    out: int


@dataclass(frozen=True, slots=True)
class LookStep:
    """Lookahead: the following text starts with (negated: does not start with) a text of the program at `start`.

    That program ends in `DoneStep(-1)`.
    """

    start: int
    negated: bool


@dataclass(frozen=True, slots=True)
class BehindStep:
    """Lookbehind: the kinds of the preceding characters match (negated: do not match) one of the options.

    An option has a set of kinds, as bits, for each of the last `width` characters of the lexeme.
    """

    options: tuple[tuple[int, ...], ...]
    width: int
    negated: bool


@dataclass(frozen=True, slots=True)
class DoneStep:
    """End of a program: `terminal` has matched; -1 at the end of the program of a lookahead."""

    terminal: int


Step = Union[ReadStep, tuple[int, ...], EnterStep, LeaveStep, LookStep, BehindStep, DoneStep]
"""An instruction; a tuple is a jump to one of its addresses, in order of preference."""


@dataclass(slots=True)
class TerminalPrograms:
    """The programs of the terminals of a grammar.

    Attributes
    ----------
    names : list of str
        Name of each terminal, for messages.
    source : callable
        Maps a terminal to the source text and the offset of its definition.
    starts : list of int
        Address of the program of each terminal, or -1.
    keywords : list of int
        Address of the program with which a terminal renames matches of others (as a keyword), or -1.
    renames : list of dict
        For each terminal, the keywords that rename it and the terminal they rename it to; the first match applies.
    code : list of Step
        The shared instructions.
    owners : list of int
        Terminal t that each address belongs to; `~t` for an address of a keyword program.
    utf8 : Utf8
        The byte graphs of the character sets.
    """

    names: list[str]
    source: Callable[[int], tuple[str, int]]
    starts: list[int]
    keywords: list[int]
    renames: list[dict[int, int]]
    code: list[Step] = field(default_factory=list)
    owners: list[int] = field(default_factory=list)
    utf8: Utf8 = field(default_factory=Utf8)
