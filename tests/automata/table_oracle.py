"""Automata in lists: the slow oracle of the compiled operations, which gives the same canonical Tables.

`test_dfa` checks both against brute force over short texts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import or_

from constrain.automata.boolean_operations import make_any_text, merge_ranges, too_many_states
from constrain.automata.table import EMPTY, Table

WORK = 64
"""Subset members that may be expanded per state of `max_states`."""


def canonicalize_table(table: Table) -> Table:
    """Return the trim, minimal Table of the same language.

    States are numbered in breadth-first order, classes by their first code point.
    """
    rows, accepting = table.rows, table.accepting
    predecessors = _predecessors(rows)
    distance = _nearest(predecessors, accepting)
    if not rows or distance[0] < 0:
        return EMPTY
    block, count = _refine(rows, predecessors, distance)
    kept = [-1] * count
    for state in range(len(rows) - 1, -1, -1):
        if block[state] >= 0:
            kept[block[state]] = state
    get = block.__getitem__
    quotient = [tuple(map(get, rows[state])) for state in kept]
    bounds, classes, columns = _merge_classes(table.bounds, table.classes, quotient)
    return _number(bounds, classes, columns, get(0), [accepting[state] for state in kept])


def find_distances(table: Table) -> list[int]:
    """Return the least number of characters from each state to acceptance; -1 if it is unreachable."""
    return _nearest(_predecessors(table.rows), table.accepting)


def _predecessors(rows: Sequence[Sequence[int]]) -> list[list[int]]:
    """Return, for each state, its reachable predecessors without repeats.

    The start also has the predecessor -1, so a state is reachable if and only if its list is not empty. The extra last
    list holds the predecessors of the dead state -1.
    """
    predecessors: list[list[int]] = [[] for _ in range(len(rows) + 1)]
    predecessors[0].append(-1)
    order = [0] if rows else []
    for state in order:
        for target in set(rows[state]):
            if not predecessors[target] and target >= 0:
                order.append(target)
            predecessors[target].append(state)
    return predecessors


def _nearest(predecessors: list[list[int]], accepting: Sequence[bool]) -> list[int]:
    """Return the least number of characters from each reachable state to acceptance; -1 if it is unreachable."""
    distance = [-1] * len(accepting)
    distance.append(0)  # For the predecessor -1 of the start, which is not a state: counts as visited.
    layer = [state for state, accepts in enumerate(accepting) if accepts and predecessors[state]]
    steps = 0
    while layer:
        following = []
        for state in layer:
            if distance[state] < 0:
                distance[state] = steps
                following += predecessors[state]
        layer = following
        steps += 1
    del distance[-1]
    return distance


def _refine(rows: Sequence[Sequence[int]], predecessors: list[list[int]], distance: list[int]) -> tuple[list[int], int]:
    """Return the coarsest congruence: the block of each state, and the number of blocks.

    Dead states have block -1; one more -1 is appended, for the dead state -1. Moore's refinement, starting from the
    distance to acceptance (which separates chains at once); later rounds only visit predecessors of states whose block
    changed. As in Hopcroft (1971), the largest part of a split block keeps its number, so the block of a state changes
    at most log2(n) times.
    """
    names = {steps: index for index, steps in enumerate(sorted(set(distance) - {-1}))}
    names[-1] = -1
    block = [names[steps] for steps in distance]
    block.append(-1)
    members: list[set[int]] = [set() for _ in range(len(names) - 1)]
    for state, index in enumerate(block):
        if index >= 0:
            members[index].add(state)
    dirty = [list(group) for group in members if len(group) > 1]
    while dirty:
        moves = []
        for states in dirty:
            home = block[states[0]]
            moves += [(home, group) for group in _split(rows, block, members[home], states)]
        stale: set[int] = set()
        for home, group in moves:
            fresh = len(members)
            members.append(set(group))
            members[home].difference_update(group)
            for state in group:
                block[state] = fresh
                stale.update(predecessors[state])
        stale.discard(-1)
        groups: dict[int, list[int]] = {}
        for state in stale:
            home = block[state]
            if home >= 0 and len(members[home]) > 1:
                groups.setdefault(home, []).append(state)
        dirty = list(groups.values())
    return block, len(members)


def _split(rows: Sequence[Sequence[int]], block: list[int], members: set[int], states: list[int]) -> list[list[int]]:
    """Return the parts that must be split off a block.

    Only `states` may differ; the other members of the block agree with one another.
    """
    get = block.__getitem__
    parts: dict[tuple[int, ...], list[int]] = {}
    for state in states:
        parts.setdefault(tuple(map(get, rows[state])), []).append(state)
    agreeing = len(members) - len(states)
    if agreeing:
        seen = set(states)
        witness = next(state for state in members if state not in seen)
        stays = tuple(map(get, rows[witness]))
    elif len(parts) == 1:
        return []
    else:
        stays = max(parts, key=lambda signature: len(parts[signature]))
    if agreeing and parts:
        # The largest part should keep the number; if it is not the part of the witness, that part is split off.
        largest = max(parts, key=lambda signature: len(parts[signature]))
        if largest != stays and len(parts[largest]) > agreeing + len(parts.get(stays, ())):
            parts.setdefault(stays, []).extend(state for state in members if state not in seen)
            stays = largest
    return [part for signature, part in parts.items() if signature != stays]


def _merge_classes(
    bounds: list[int], classes: list[int], rows: Sequence[tuple[int, ...]]
) -> tuple[list[int], list[int], list[tuple[int, ...]]]:
    """Merge classes with equal columns and number the classes by their first code point."""
    columns = list(zip(*rows))
    numbers: dict[tuple[int, ...], int] = {}
    kept: list[int] = [-1] * len(columns)
    new_bounds: list[int] = []
    new_classes: list[int] = []
    previous = -1
    for bound, index in zip(bounds, classes):
        number = kept[index]
        if number < 0:
            number = kept[index] = numbers.setdefault(columns[index], len(numbers))
        if number != previous:
            new_bounds.append(bound)
            new_classes.append(number)
            previous = number
    return new_bounds, new_classes, list(numbers)


def _number(
    bounds: list[int], classes: list[int], columns: list[tuple[int, ...]], start: int, accepting: list[bool]
) -> Table:
    """Return the Table with states numbered in breadth-first order of their classes."""
    rows = list(zip(*columns))
    names = [-1] * (len(rows) + 1)
    names[start] = 0
    order = [start]
    for state in order:
        for target in rows[state]:
            if target >= 0 and names[target] < 0:
                names[target] = len(order)
                order.append(target)
    get = names.__getitem__
    return Table(bounds, classes, [tuple(map(get, rows[s])) for s in order], [accepting[s] for s in order])


def product_of_tables(first: Table, second: Table, accept: Callable[[bool, bool], bool], max_states: int) -> Table:
    """Return the product of two Tables, not minimised.

    A text is accepted if `accept(first accepts, second accepts)` is true; `accept(False, False)` must be False. Raise
    LimitError for more than `max_states` states.
    """
    keep_first, keep_second = accept(True, False), accept(False, True)
    bounds, classes, pairs = merge_ranges(first, second)
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
    seen = {(0, 0)}
    todo = [(0, 0)]
    while todo:
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
    for states in order:
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
    for state, length in order:
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


def order_topologically(table: Table) -> list[int] | None:
    """Return the states in topological order; None if there is a cycle, so that the lengths of texts are unbounded."""
    incoming = [0] * (len(table.rows) + 1)
    for row in table.rows:
        for target in set(row):
            incoming[target] += 1
    order = [0] if table.rows and incoming[0] == 0 else []
    for state in order:
        for target in set(table.rows[state]):
            if target >= 0:
                incoming[target] -= 1
                if incoming[target] == 0:
                    order.append(target)
    return order if len(order) == len(table.rows) else None


def find_longest_length(table: Table) -> int | None:
    """Return the greatest number of characters of a text, None if it is unbounded, -1 if there is no text."""
    order = order_topologically(table)
    if order is None:
        return None
    reach = [-1] * (len(table.rows) + 1)
    for state in reversed(order):
        reach[state] = max((reach[t] + 1 for t in table.rows[state] if t >= 0), default=0)
    return reach[0] if table.rows else -1
