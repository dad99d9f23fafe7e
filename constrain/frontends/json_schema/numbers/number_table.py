"""The character classes of JSON numbers, and the Table of an automaton that is given by its transition function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ....automata.dfa import Table
from ....base.work import spend_work
from .number_parts import too_many_states

__all__ = ["BOUNDS", "CLASSES", "DIGIT", "MINUS", "POINT", "explore_states", "row_of"]

BOUNDS = [0, 0x2B, 0x2C, 0x2D, 0x2E, 0x2F, *range(0x30, 0x3A), 0x3A, 0x45, 0x46, 0x65, 0x66]
CLASSES = [0, 1, 0, 2, 3, 0, *range(4, 14), 0, 14, 0, 14, 0]
"""Classes: 0 all others, 1 `+`, 2 `-`, 3 `.`, 4 to 13 the digits, 14 `e` and `E`."""
MINUS, POINT, DIGIT = 2, 3, 4

STATE = 20
"""Units of work for a state whose successors a function computes."""


def row_of(
    *, digits: Sequence[Any], plus: Any = None, minus: Any = None, point: Any = None, e: Any = None
) -> tuple[Any, ...]:
    """Return the successors of a state, one for each class (None: dead)."""
    return (None, plus, minus, point, *digits, e)


def explore_states(start: Any, successors: Callable[[Any], tuple[Sequence[Any], bool]], max_states: int) -> Table:
    """Return the Table of all states reachable from start. successors(state): its row, and whether it accepts."""
    names: dict[Any, int] = {None: -1, start: 0}
    order, rows, accepting = [start], [], []
    for state in order:
        spend_work(STATE, "an automaton of numbers")
        row, accepts = successors(state)
        numbers = []
        for target in row:
            number = names.get(target)
            if number is None:
                number = names[target] = len(order)
                order.append(target)
            numbers.append(number)
        if len(order) > max_states:
            raise too_many_states(max_states)
        rows.append(numbers)
        accepting.append(accepts)
    return Table(BOUNDS, CLASSES, rows, accepting)
