"""The table that a Constraint keeps between calls, so that only the first ones have to learn from nothing.

A call takes a copy, learns into it, and keeps that at its end: calls in other threads are not disturbed, and what the
last one learned remains. A table counts towards the memory of its Constraint (`Constraint.bytes_used`), is dropped with
its state caches, and renumbered if the program was relinked.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import NDArray

from .state_numbers import StateNumbers, renumber
from .value_table import PACES, ValueTable, empty_table

if TYPE_CHECKING:
    from ...engine.constraint import Constraint

__all__ = ["drop_table", "forget_rare", "keep_table", "new_table", "renumber_table", "take_table"]

Ints = NDArray[np.int64]

MOST_STATES = 50_000
"""States of a kept table; a table with more is not kept."""
MOST_PAIRS = 200_000
"""Pairs of a kept table: of more, those that were seen most often."""


def take_table(constraint: Constraint) -> ValueTable:
    """Return a copy of the table that a constraint keeps; an empty one if it has none."""
    table = cast("ValueTable | None", constraint.learned.get(ValueTable))
    if table is None:
        return new_table(constraint)
    if table.numbers.generation != constraint.program.generation:
        return renumber_table(table, constraint)
    return table.copy()


def keep_table(constraint: Constraint, table: ValueTable) -> None:
    """Keep a table with a constraint, unless the one that it keeps has learned from more populations.

    The caller must not change the table any more.
    """
    other = cast("ValueTable | None", constraint.learned.get(ValueTable))
    if other is not None and other.populations > table.populations:
        return
    if len(table.numbers) <= MOST_STATES:
        constraint.learned[ValueTable] = forget_rare(table, MOST_PAIRS)


def drop_table(constraint: Constraint) -> None:
    """Forget what was learned for a constraint."""
    constraint.learned.pop(ValueTable, None)


def new_table(constraint: Constraint) -> ValueTable:
    """Return a table for a constraint that has learned nothing."""
    return empty_table(StateNumbers(constraint.program.generation), constraint.vocabulary.size)


def forget_rare(table: ValueTable, most: int) -> ValueTable:
    """Return the table with at most that many pairs, those of the largest counts."""
    if len(table.pairs) <= most:
        return table
    kept = np.sort(np.argsort(-table.pair_counts, kind="stable")[:most])
    return replace(table, pairs=table.pairs[kept], pair_logs=table.pair_logs[kept], pair_counts=table.pair_counts[kept])


def renumber_table(table: ValueTable, constraint: Constraint) -> ValueTable:
    """Return the table with its states found again in the constraint's current program, by their examples.

    Values of states whose example is refused are dropped. Of states that have become one, the last counts.
    """
    numbers, found = renumber(constraint, table.numbers.examples)
    slots, rows = _renumber_codes(table.slots, PACES, found)
    pairs, places = _renumber_codes(table.pairs, table.size, found)
    return replace(
        table, numbers=numbers, slots=slots, logs=table.logs[rows], counts=table.counts[rows],
        spreads=table.spreads[rows], pairs=pairs, pair_logs=table.pair_logs[places],
        pair_counts=table.pair_counts[places],
    )  # fmt: skip


def _renumber_codes(codes: Ints, base: int, found: Ints) -> tuple[Ints, Ints]:
    """Return codes (state * base + rest) with the states' new numbers (-1: none), ascending, and the index of each."""
    states, rest = np.divmod(codes, base)
    new = np.where(found[states] >= 0, found[states] * base + rest, -1)
    unique, last = np.unique(new[::-1], return_index=True)
    kept = unique >= 0
    return unique[kept], len(codes) - 1 - last[kept]
