"""Operations on Tables: boolean operations, concatenation, repetition and length bounds.

Boolean operations use the product construction, concatenation and repetition the subset construction. All of them build
reachable states only and raise LimitError when the result would have more than `max_states` states.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from operator import or_
from typing import NamedTuple

from ..base.errors import LimitError
from ..base.work import spend_work
from .table import EMPTY, LAST, SURROGATES, Table

__all__ = [
    "make_any_text", "concatenate_tables", "complement_table", "bound_lengths", "too_many_states", "make_ranges",
    "accept_exactly_one", "has_common_text", "merge_ranges", "product_of_tables", "repeat_table",
    "find_universal_states",
]  # fmt: skip

WORK = 64
"""Subset members that may be expanded per state of `max_states`; bounds constructions with few but large subsets."""


PRODUCT, CONCATENATION = "a product of patterns", "a concatenation or repetition of patterns"
"""Names of the operations, for messages of the work budget."""


def _spend_edges(states: int, width: int) -> None:
    """Charge the work budget for the transitions of `states` states over `width` classes and their sets."""
    spend_work(states * (2 + width // 4 + (states >> 10)), CONCATENATION)


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


def product_of_tables(first: Table, second: Table, accept: Callable[[bool, bool], bool], max_states: int) -> Table:
    """Return the product of two Tables, not minimised.

    A text is accepted if `accept(first accepts, second accepts)` is true; `accept(False, False)` must be False. Raise
    LimitError for more than `max_states` states.
    """
    keep_first, keep_second = accept(True, False), accept(False, True)
    bounds, classes, pairs = merge_ranges(first, second)
    units = 2 + len(pairs) // 4
    left, right = [a for a, _ in pairs], [b for _, b in pairs]
    dead_a, dead_b = (-1,) * (max(left) + 1), (-1,) * (max(right) + 1)
    a_start, b_start = 0 if first.rows else -1, 0 if second.rows else -1
    start = (a_start, b_start)
    numbers = {start: 0}
    # Pairs that cannot reach acceptance are skipped: both dead, or one dead where `accept` requires it.
    order = [start]
    rows: list[list[int]] = []
    accepting: list[bool] = []
    for a, b in order:
        spend_work(units, PRODUCT)
        a_row = first.rows[a] if a >= 0 else dead_a
        b_row = second.rows[b] if b >= 0 else dead_b
        row: list[int] = []
        for target in zip(map(a_row.__getitem__, left), map(b_row.__getitem__, right)):
            number = numbers.get(target)
            if number is None:
                number = -1
                if (target[0] >= 0 or keep_second) and (target[1] >= 0 or keep_first) and target != (-1, -1):
                    number = len(order)
                    if number >= max_states:
                        raise too_many_states("A combination of automata", max_states)
                    order.append(target)
                numbers[target] = number
            row.append(number)
        rows.append(row)
        accepting.append(accept(a >= 0 and first.accepting[a], b >= 0 and second.accepting[b]))
    return Table(bounds, classes, rows, accepting)


def has_common_text(first: Table, second: Table) -> bool:
    """Return whether two languages intersect, by a search of the product that stops at the first common text."""
    if not first.rows or not second.rows:
        return False
    pairs = merge_ranges(first, second)[2]
    left, right = [a for a, _ in pairs], [b for _, b in pairs]
    units = 1 + len(pairs) // 5
    seen = {(0, 0)}
    todo = [(0, 0)]
    while todo:
        spend_work(units, PRODUCT)
        a, b = todo.pop()
        if first.accepting[a] and second.accepting[b]:
            return True
        for target in zip(map(first.rows[a].__getitem__, left), map(second.rows[b].__getitem__, right)):
            if target[0] >= 0 and target[1] >= 0 and target not in seen:
                seen.add(target)
                todo.append(target)
    return False


def complement_table(table: Table) -> Table:
    """Return the Table of all texts that `table` does not accept.

    The dead state becomes an accepting sink, except on surrogates, which no text contains.
    """
    if not table.rows:
        return make_any_text()
    bounds, classes, pairs = merge_ranges(table, make_any_text())
    sink = len(table.rows)
    spend_work(sink * (1 + len(pairs) // 8), "the complement of a pattern")
    columns = [(index, other == 0) for index, other in pairs]
    full = [tuple(target if target >= 0 else sink for target in row) for row in [*table.rows, [-1] * len(pairs)]]
    rows = [[row[index] if text else -1 for index, text in columns] for row in full]
    return Table(bounds, classes, rows, [*(not accepts for accepts in table.accepting), True])


def concatenate_tables(first: Table, second: Table, max_states: int) -> Table:
    """Return the Table of a text of `first` followed by a text of `second`."""
    if not first.rows or not second.rows:
        return EMPTY
    bounds, classes, pairs = merge_ranges(first, second)
    split = len(first.rows)
    _spend_edges(split + len(second.rows), len(pairs))
    edges: list[list[int]] = [[row[a] for a, _ in pairs] for row in first.rows]
    edges += [[row[b] + split if row[b] >= 0 else -1 for _, b in pairs] for row in second.rows]
    closure = [1 << state | (1 << split if accepts else 0) for state, accepts in enumerate(first.accepting)]
    closure += [1 << (split + state) for state in range(len(second.rows))]
    final = sum(1 << (split + state) for state, accepts in enumerate(second.accepting) if accepts)
    return _subsets(bounds, classes, edges, closure, closure[0], final, max_states)


def repeat_table(table: Table, low: int, high: int | None, max_states: int) -> Table:
    """Return the Table of `low` to `high` consecutive texts of `table`; `high` is None for no upper bound."""
    if (high is not None and high < low) or (not table.rows and low > 0):
        return EMPTY
    if high == 0 or not table.rows:
        return Table([0], [0], [(-1,)], [True])
    if table.accepting[0]:
        low = 0  # Missing repetitions may be empty.
    copies = max(low, 1) if high is None else high
    size = len(table.rows)
    if copies > max_states:
        raise too_many_states(f"Repetition {copies} times", max_states)
    _spend_edges(copies * size, max(table.classes) + 1)
    edges = [[t + copy * size if t >= 0 else -1 for t in row] for copy in range(copies) for row in table.rows]
    closure = [0] * (copies * size)
    final = 0
    for copy in reversed(range(copies)):
        # `copy` texts precede this copy; where its own text is complete, the next copy may start.
        following = copy + 1 if copy + 1 < copies else (copy if high is None else -1)
        begin = 0 if following < 0 else (closure[following * size] if following != copy else 1 << copy * size)
        for state in range(size):
            position = copy * size + state
            closure[position] = 1 << position
            if table.accepting[state]:
                closure[position] |= begin
                if copy + 1 >= low:
                    final |= 1 << position
    start = closure[0]
    result = _subsets(table.bounds, table.classes, edges, closure, start, final, max_states)
    if low == 0 and not result.accepting[0]:
        # The start may be reached again within a text, so the empty text needs a separate start state.
        rows = [[t + 1 if t >= 0 else -1 for t in row] for row in result.rows]
        return Table(result.bounds, result.classes, [rows[0], *rows], [True, *result.accepting])
    return result


def _subsets(
    bounds: list[int],
    classes: list[int],
    edges: Sequence[Sequence[int]],
    closure: Sequence[int],
    start: int,
    final: int,
    max_states: int,
) -> Table:
    """Return the Table of the subset construction, with sets of states as bit masks.

    `closure[state]` is the set that is added when `state` is entered, `start` the initial set and `final` the set of
    accepting states.
    """
    moves = [[closure[target] if target >= 0 else 0 for target in row] for row in edges]
    nowhere = [0] * (max(classes) + 1)
    numbers = {start: 0}
    order = [start]
    rows: list[list[int]] = []
    work = WORK * max_states
    each = 1 + len(nowhere) * (8 + (len(closure) >> 10)) // 64
    for states in order:
        spend_work(len(nowhere) // 4 + 2 + each * states.bit_count(), CONCATENATION)
        targets = nowhere
        rest = states
        while rest:
            bit = rest & -rest
            rest ^= bit
            targets = list(map(or_, targets, moves[bit.bit_length() - 1]))
            work -= 1
        row = []
        for subset in targets:
            number = numbers.get(subset, -1) if subset else -1
            if subset and number < 0:
                number = numbers[subset] = len(order)
                order.append(subset)
            row.append(number)
        rows.append(row)
        if len(order) > max_states or work < 0:
            raise too_many_states("A concatenation or repetition of automata", max_states)
    return Table(bounds, classes, rows, [bool(states & final) for states in order])


def bound_lengths(table: Table, low: int, high: int | None, shortest: Sequence[int], max_states: int) -> Table:
    """Return the Table of the texts of `low` to `high` characters of `table`; `high` is None for no upper bound.

    `shortest[state]` is the least number of characters from a state to acceptance. Without an upper bound, characters
    are counted up to `low` only.
    """
    if not table.rows or (high is not None and high < low):
        return EMPTY
    start = (0, 0)
    numbers = {start: 0}
    order = [start]
    rows: list[list[int]] = []
    accepting: list[bool] = []
    units = 2 + (max(table.classes) + 1) // 4
    for state, length in order:
        spend_work(units, "a count of characters")
        row = []
        longer = length + 1 if high is not None else min(length + 1, low)
        for target in table.rows[state]:
            number = -1
            if target >= 0 and (high is None or longer + shortest[target] <= high):
                number = numbers.get((target, longer), -1)
                if number < 0:
                    number = numbers[target, longer] = len(order)
                    if number >= max_states:
                        raise too_many_states(f"A count of {low} to {high or 'any number of'} characters", max_states)
                    order.append((target, longer))
            row.append(number)
        rows.append(row)
        accepting.append(table.accepting[state] and low <= length and (high is None or length <= high))
    return Table(table.bounds, table.classes, rows, accepting)


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
