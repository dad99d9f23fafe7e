"""Texts that exactly one of several languages holds, by one subset construction over all of their automata at once.

Taking each language without all others multiplies n automata n times over. Here a state is the set of the automata
that are still alive, each with its own state; an automaton that accepts whatever follows is only counted, and two of
those make a state dead. So n patterns of which no two have much in common cost what their union costs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..work import spend
from .algebra import exceeded
from .table import LAST, SURROGATES, Table

__all__ = ["Exactly", "exactly_one"]

WHAT = "texts that match exactly one of several patterns"

State = tuple[int, tuple[tuple[int, int], ...]]
"""How many automata accept whatever follows (0 or 1), and (number, state) of the others that are alive."""


class Exactly(NamedTuple):
    """table: the texts, not minimal. overlapping: whether some text is in two of the languages or more."""

    table: Table
    overlapping: bool


def exactly_one(tables: Sequence[Table], max_states: int) -> Exactly:
    """The texts of exactly one of the tables, which must be minimal. LimitError beyond `max_states`."""
    tables = [table for table in tables if table.rows]
    bounds, classes, columns = merge_all(tables)
    free = [_universal_states(table) for table in tables]
    overlapping = False
    numbers: dict[State, int] = {}
    order: list[State] = []

    def number(parts: list[tuple[int, int]], ones: int) -> int:
        nonlocal overlapping
        kept = []
        for part in parts:
            if part[1] in free[part[0]]:
                ones += 1
            else:
                kept.append(part)
        if ones > 1:
            overlapping = True
            return -1
        if not ones and not kept:
            return -1
        state = (ones, tuple(kept))
        found = numbers.get(state)
        if found is None:
            found = numbers[state] = len(order)
            if found >= max_states:
                raise exceeded(WHAT[:1].upper() + WHAT[1:], max_states)
            order.append(state)
        return found

    rows: list[list[int]] = []
    accepting: list[bool] = []
    if number([(index, 0) for index in range(len(tables))], 0) < 0:
        return Exactly(Table([0], [0], (), ()), overlapping)
    for ones, parts in order:
        spend(2 + len(parts) * len(columns) // 4, WHAT)
        row = []
        held = [(index, tables[index].rows[state]) for index, state in parts]
        for is_text, column in columns:
            if not is_text:
                row.append(-1)
                continue
            after = [(index, targets[column[index]]) for index, targets in held if targets[column[index]] >= 0]
            row.append(number(after, ones))
        rows.append(row)
        count = ones + sum(tables[index].accepting[state] for index, state in parts)
        overlapping = overlapping or count > 1
        accepting.append(count == 1)
    return Exactly(Table(bounds, classes, rows, accepting), overlapping)


def merge_all(tables: Sequence[Table]) -> tuple[list[int], list[int], list[tuple[bool, tuple[int, ...]]]]:
    """Common ranges of all tables: bounds, classes; for each class whether it is of characters, and all own classes."""
    points = sorted({*SURROGATES, 0, *(bound for table in tables for bound in table.bounds)} - {LAST})
    spend(len(points) * (len(tables) + 1), WHAT)
    places = [-1] * len(tables)
    bounds: list[int] = []
    classes: list[int] = []
    columns: dict[tuple[bool, tuple[int, ...]], int] = {}
    current = [0] * len(tables)
    for point in points:
        for index, table in enumerate(tables):
            following = places[index] + 1
            if following < len(table.bounds) and table.bounds[following] == point:
                places[index] = following
                current[index] = table.classes[following]
        column = (not SURROGATES[0] <= point < SURROGATES[1], tuple(current))
        bounds.append(point)
        classes.append(columns.setdefault(column, len(columns)))
    return bounds, classes, list(columns)


def _universal_states(table: Table) -> frozenset[int]:
    """The states of a minimal table from which every text is accepted."""
    texts = {
        index
        for bound, after, index in zip(table.bounds, [*table.bounds[1:], LAST], table.classes)
        if bound < SURROGATES[0] or after > SURROGATES[1]
    }
    return frozenset(
        state
        for state, row in enumerate(table.rows)
        if table.accepting[state] and all(row[index] == state for index in texts)
    )
