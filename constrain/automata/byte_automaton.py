"""The automaton over UTF-8 bytes of a Dfa over characters.

The states of the Dfa keep their numbers; further states lie within a character. Such a state is the number of bytes
that follow and the target of each range of what they can spell, so that equal ones are shared.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..base.work import spend_work
from .dfa import LAST, Dfa

__all__ = ["build_byte_automaton"]

_Slices = tuple[tuple[int, int, int], ...]
"""Disjoint, ascending half-open ranges of numbers, each with the state of the Dfa that it leads to."""

LEADS = ((1, 0, 0x80, 0), (2, 0x80, 0x800, 0xC0), (3, 0x800, 0x10000, 0xE0), (4, 0x10000, LAST, 0xF0))
"""Per encoded length: number of bytes, first code point, end of the code points, marker bits of the first byte."""

CONTINUATION = 0x80
WORK = "the bytes of a pattern"


def build_byte_automaton(dfa: Dfa) -> NDArray[np.int32]:
    """Return int32[states, 256]: the next state over each byte, or -1.

    The first rows are the states of the Dfa, in order; the others lie within a character.
    """
    table = dfa.table
    rows: list[list[int]] = [[-1] * 256 for _ in table.rows]
    numbers: dict[tuple[int, _Slices], int] = {}

    def fill_row(row: list[int], slices: _Slices, after: int, marker: int) -> None:
        """Enter the moves over a byte that `after` further bytes follow; `marker` is added to its payload."""
        size = 64**after
        parts: dict[int, list[tuple[int, int, int]]] = {}
        for low, high, target in slices:
            for block in range(low // size, (high - 1) // size + 1):
                start = block * size
                part = max(low, start) - start, min(high, start + size) - start, target
                parts.setdefault(block, []).append(part)
        spend_work(len(slices) + len(parts), WORK)
        for block, payloads in parts.items():
            row[marker + block] = payloads[0][2] if after == 0 else number_state(after, tuple(payloads))

    def number_state(after: int, slices: _Slices) -> int:
        """Return the number of a state within a character, which may be new."""
        number = numbers.setdefault((after, slices), len(rows))
        if number == len(rows):
            rows.append([-1] * 256)
            fill_row(rows[number], slices, after - 1, CONTINUATION)
        return number

    ends = [*table.bounds[1:], LAST]
    for row, targets in zip(rows[: len(table.rows)], table.rows):
        slices = _join_slices([(low, high, targets[c]) for low, high, c in zip(table.bounds, ends, table.classes)])
        for length, low, high, marker in LEADS:
            cut = tuple((max(a, low), min(b, high), t) for a, b, t in slices if a < high and b > low)
            fill_row(row, cut, length - 1, marker)
    return np.array(rows, dtype=np.int32).reshape(len(rows), 256)


def _join_slices(slices: list[tuple[int, int, int]]) -> _Slices:
    """Return the slices without dead ones, adjacent ones with equal targets joined."""
    joined: list[tuple[int, int, int]] = []
    for low, high, target in slices:
        if target < 0:
            continue
        if joined and joined[-1][1] == low and joined[-1][2] == target:
            joined[-1] = joined[-1][0], high, target
        else:
            joined.append((low, high, target))
    return tuple(joined)
