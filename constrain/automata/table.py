"""Table: an automaton as plain lists in any numbering, for what is written in Python.

Lists are several times faster than arrays where elements are read or written one by one; `Dfa` makes the arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

__all__ = ["EMPTY", "LAST", "SURROGATES", "Table"]

LAST = 0x110000
"""One past the last code point."""

SURROGATES = (0xD800, 0xE000)
"""Half-open range of the surrogate code points: they are not characters, and every automaton is dead on them."""


class Table(NamedTuple):
    """An automaton as lists; `bounds` and `classes` are as in `Dfa`, and the start is state 0.

    `rows[state][class]` is the next state or -1. Every class contains code points, and every row is dead on surrogates.
    States that are not reachable from state 0 are ignored.
    """

    bounds: list[int]
    classes: list[int]
    rows: Sequence[Sequence[int]]
    accepting: Sequence[bool]


EMPTY = Table([0], [0], (), ())
