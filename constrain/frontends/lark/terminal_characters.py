"""Convert the scanner of one terminal, over bytes, to its Dfa over characters: the texts that the terminal matches.

Runs of code points whose bytes lead to the same state are handled together, and the continuation bytes of UTF-8
sequences are evaluated once per state.
"""

from __future__ import annotations

import numpy as np

from ...automata.dfa import LAST, SURROGATES, Dfa, Table
from ...lalr.scanner_tables import Scanner

__all__ = ["find_terminal_dfa"]

LEADS = ((0xC2, 0xE0, 1, 0x1F), (0xE0, 0xF0, 2, 0x0F), (0xF0, 0xF5, 3, 0x07))
"""First lead byte, one past the last, number of continuation bytes, mask of the lead's code point bits."""

Run = tuple[int, int]
"""Number of consecutive code points, and the scanner state after each of them."""


def find_terminal_dfa(scanner: Scanner, start: int) -> Dfa | None:
    """Return the Dfa of what is accepted from a start state; None if acceptance depends on the next byte."""
    return _TerminalConverter(scanner).dfa(start)


class _TerminalConverter:
    def __init__(self, scanner: Scanner) -> None:
        self.delta, self.accept, self.accept_table = scanner.delta, scanner.accept, scanner.accept_table
        self.known: dict[tuple[int, int], list[Run]] = {}

    def dfa(self, start: int) -> Dfa | None:
        order, numbers = [start], {start: 0}
        changes: list[list[tuple[int, int]]] = []
        accepting = []
        for state in order:  # Grows during the iteration.
            accepted = self.accept_table[self.accept[state]]
            if (accepted != accepted[-1]).any():
                return None
            accepting.append(bool(accepted[-1] >= 0))
            row = []
            for point, target in self.characters(state):
                if target >= 0 and target not in numbers:
                    numbers[target] = len(order)
                    order.append(target)
                row.append((point, numbers[target] if target >= 0 else -1))
            changes.append(row)
        bounds = sorted({0, *SURROGATES, *(point for row in changes for point, _ in row)})
        rows = []
        for row in changes:
            points = np.array([point for point, _ in row])
            indices = np.searchsorted(points, bounds, side="right") - 1
            rows.append([row[k][1] for k in indices.tolist()])
        return Dfa.from_table(Table(bounds, list(range(len(bounds))), rows, accepting))

    def characters(self, state: int) -> list[tuple[int, int]]:
        """Return pairs (code point, next state) where the state after a character changes, in ascending order."""
        out = find_changes(0, [(1, int(target)) for target in self.delta[state, :0x80]], 0)
        for first, end, remaining, bits in LEADS:
            for lead in range(first, end):
                runs = self.find_runs(int(self.delta[state, lead]), remaining)
                out += find_changes((lead & bits) << 6 * remaining, runs, first_unreachable(remaining))
        return [change for change in out if change[0] < LAST]

    def find_runs(self, state: int, remaining: int) -> list[Run]:
        """Return the runs that `remaining` more bytes lead to, in order of code points."""
        if remaining == 0 or state < 0:
            return [(1 << 6 * remaining, state)]
        runs = self.known.get((state, remaining))
        if runs is None:
            runs = []
            for byte in range(0x80, 0xC0):
                for count, target in self.find_runs(int(self.delta[state, byte]), remaining - 1):
                    if runs and runs[-1][1] == target:
                        runs[-1] = (runs[-1][0] + count, target)
                    else:
                        runs.append((count, target))
            self.known[state, remaining] = runs
        return runs


def first_unreachable(remaining: int) -> int:
    """Return the first code point that needs `remaining` continuation bytes."""
    return (0x80, 0x800, 0x10000)[remaining - 1]


def find_changes(point: int, runs: list[Run], least: int) -> list[tuple[int, int]]:
    """Convert runs that start at a code point to points of change, from `least` on."""
    out = []
    for count, target in runs:
        if point + count > least:
            out.append((max(point, least), target))
        point += count
    return out
