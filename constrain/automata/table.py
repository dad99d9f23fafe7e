"""Table: an automaton under construction, as plain lists in any numbering, and its canonical form.

Schemas mostly need small automata (10 to 50 states), for which lists and dicts are several times faster than numpy,
where every call costs about a microsecond. `Dfa` creates the arrays once, at the end.

`canonicalize_table` trims, minimises, merges classes and renumbers; Tables of the same language have equal results.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..base.work import spend_work

__all__ = ["EMPTY", "LAST", "SURROGATES", "Table", "canonicalize_table", "find_distances"]

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


def canonicalize_table(table: Table) -> Table:
    """Return the trim, minimal Table of the same language.

    States are numbered in breadth-first order, classes by their first code point.
    """
    rows, accepting = table.rows, table.accepting
    spend_work(len(rows) * (4 + (max(table.classes) + 1) // 4), "a minimal automaton")
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
