"""Tables of ranges, the common refinement of their classes, and the texts in exactly one of several languages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ..base.errors import LimitError
from ..base.work import spend_work
from .table import EMPTY, LAST, SURROGATES, Table

__all__ = [
    "accept_exactly_one",
    "find_universal_states",
    "make_any_text",
    "make_ranges",
    "merge_ranges",
    "too_many_states",
]


PRODUCT = "a product of patterns"
"""Name of the operation, for messages of the work budget."""


def too_many_states(what: str, max_states: int) -> LimitError:
    """Return the LimitError for the construction `what`, which exceeded `max_states` states or its work limit."""
    return LimitError(
        f"{what} needs more than {max_states} states (max_states), or as much work",
        hint="Simplify the pattern, or raise Limits.dfa_states.",
    )


def make_any_text() -> Table:
    """Return the Table of all texts."""
    return Table([0, *SURROGATES], [0, 1, 0], [(0, -1)], [True])


def make_ranges(ranges: Iterable[tuple[int, int]]) -> Table:
    """Return the Table of the texts of one character out of inclusive ranges of code points.

    Ranges may overlap and come in any order; surrogates are excluded. Raise ValueError for an invalid range.
    """
    bounds, classes = [0], [1]
    first, last = SURROGATES
    for low, high in sorted(ranges):
        if not 0 <= low <= high < LAST:
            raise ValueError(f"not a range of code points: {low:#x} to {high:#x}")
        parts = [(low, min(high, first - 1)), (max(low, last), high)] if low < last and high >= first else [(low, high)]
        for start, stop in parts:
            start = max(start, bounds[-1] if classes[-1] == 1 else 0)
            if start > stop:
                continue
            if start == bounds[-1]:
                classes[-1] = 0
            else:
                bounds.append(start)
                classes.append(0)
            if stop + 1 < LAST:
                bounds.append(stop + 1)
                classes.append(1)
    return Table(bounds, classes, [(1, -1), (-1, -1)], [False, True]) if 0 in classes else EMPTY


def merge_ranges(first: Table, second: Table) -> tuple[list[int], list[int], list[tuple[int, int]]]:
    """Return the common refinement of the character classes of two Tables, as (bounds, classes, pairs).

    `pairs[c]` holds the class of `first` and the class of `second` that the new class `c` corresponds to; only pairs
    that occur are listed.
    """
    spend_work((len(first.bounds) + len(second.bounds)) // 2, PRODUCT)
    bounds: list[int] = []
    classes: list[int] = []
    pairs: dict[tuple[int, int], int] = {}
    a_bounds, a_classes = first.bounds, first.classes
    b_bounds, b_classes = second.bounds, second.classes
    i, j, previous = 0, 0, -1
    a_count, b_count = len(a_bounds), len(b_bounds)
    bound = 0
    while True:
        number = pairs.setdefault((a_classes[i], b_classes[j]), len(pairs))
        if number != previous:
            bounds.append(bound)
            classes.append(number)
            previous = number
        a_next = a_bounds[i + 1] if i + 1 < a_count else LAST
        b_next = b_bounds[j + 1] if j + 1 < b_count else LAST
        bound = min(a_next, b_next)
        if bound == LAST:
            return bounds, classes, list(pairs)
        i += a_next == bound
        j += b_next == bound


# Exactly one of several languages: a product state holds the state of each automaton that is not dead. An automaton in
# a universal state is only counted, and two of these make the product state dead. For n patterns with little in common
# the cost is that of their union, whereas subtracting the others from each would build n products of n automata.

EXACTLY_ONE = "texts that match exactly one of several patterns"

State = tuple[int, tuple[tuple[int, int], ...]]
"""The number of automata in a universal state (0 or 1), and (automaton, state) of each other live automaton."""


class ExactlyOneTable(NamedTuple):
    """The Table of the texts in exactly one of several languages, not minimised.

    `overlapping` tells whether some text is in two or more of the languages.
    """

    table: Table
    overlapping: bool


def accept_exactly_one(tables: Sequence[Table], max_states: int) -> ExactlyOneTable:
    """Return the texts that exactly one of the tables accepts.

    The tables must be minimal. Raise LimitError for more than `max_states` states.
    """
    tables = [table for table in tables if table.rows]
    bounds, classes, columns = merge_all(tables)
    free = [find_universal_states(table) for table in tables]
    overlapping = False
    numbers: dict[State, int] = {}
    order: list[State] = []

    def intern_state(parts: list[tuple[int, int]], universal_count: int) -> int:
        nonlocal overlapping
        remaining = []
        for part in parts:
            if part[1] in free[part[0]]:
                universal_count += 1
            else:
                remaining.append(part)
        if universal_count > 1:
            overlapping = True
            return -1
        if not universal_count and not remaining:
            return -1
        state = (universal_count, tuple(remaining))
        number = numbers.get(state)
        if number is None:
            number = numbers[state] = len(order)
            if number >= max_states:
                raise too_many_states("Exactly one of several patterns", max_states)
            order.append(state)
        return number

    rows: list[list[int]] = []
    accepting: list[bool] = []
    if intern_state([(index, 0) for index in range(len(tables))], 0) < 0:
        return ExactlyOneTable(Table([0], [0], (), ()), overlapping)
    for universal_count, parts in order:
        spend_work(2 + len(parts) * len(columns) // 4, EXACTLY_ONE)
        row = []
        live = [(index, tables[index].rows[state]) for index, state in parts]
        for is_character, column in columns:
            if not is_character:
                row.append(-1)
                continue
            successors = [(index, targets[column[index]]) for index, targets in live if targets[column[index]] >= 0]
            row.append(intern_state(successors, universal_count))
        rows.append(row)
        count = universal_count + sum(tables[index].accepting[state] for index, state in parts)
        overlapping = overlapping or count > 1
        accepting.append(count == 1)
    return ExactlyOneTable(Table(bounds, classes, rows, accepting), overlapping)


def merge_all(tables: Sequence[Table]) -> tuple[list[int], list[int], list[tuple[bool, tuple[int, ...]]]]:
    """Return the common refinement of the character classes of all tables, as (bounds, classes, columns).

    `columns[c]` tells whether class `c` consists of characters (not surrogates), and lists its class in each table.
    """
    points = sorted({*SURROGATES, 0, *(bound for table in tables for bound in table.bounds)} - {LAST})
    spend_work(len(points) * (len(tables) + 1), EXACTLY_ONE)
    indices = [-1] * len(tables)
    bounds: list[int] = []
    classes: list[int] = []
    columns: dict[tuple[bool, tuple[int, ...]], int] = {}
    current = [0] * len(tables)
    for point in points:
        for index, table in enumerate(tables):
            next_index = indices[index] + 1
            if next_index < len(table.bounds) and table.bounds[next_index] == point:
                indices[index] = next_index
                current[index] = table.classes[next_index]
        column = (not SURROGATES[0] <= point < SURROGATES[1], tuple(current))
        bounds.append(point)
        classes.append(columns.setdefault(column, len(columns)))
    return bounds, classes, list(columns)


def find_universal_states(table: Table) -> frozenset[int]:
    """Return the states of a minimal table from which every text is accepted."""
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
