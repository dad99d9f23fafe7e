"""A Dfa while it is being built (plain lists, any numbering), and `canonicalize_table`: the one Table of its language.

Small automata (10 to 50 states) are what schemas are made of, and for them lists and dicts are several times
faster than numpy, whose every call costs a microsecond. Arrays are made once, at the end, by `Dfa`.

canonical = trim -> minimise -> merge classes -> number. Two Tables of one language come out equal.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..base.work import spend_work

__all__ = ["EMPTY", "LAST", "SURROGATES", "Table", "canonicalize_table", "find_distances"]

LAST = 0x110000
"""One past the last code point."""

SURROGATES = (0xD800, 0xE000)
"""Code points that are no characters: in no text, so every automaton is dead on them."""


class Table(NamedTuple):
    """bounds, classes: as in Dfa. rows[state][class]: next state or -1. accepting[state]. Start is state 0.

    Every class has code points, and every row is dead on surrogates. Only states reachable from 0 count.
    """

    bounds: list[int]
    classes: list[int]
    rows: Sequence[Sequence[int]]
    accepting: Sequence[bool]


EMPTY = Table([0], [0], (), ())


def canonicalize_table(table: Table) -> Table:
    """The trimmed, minimal Table of the same language, states numbered breadth-first, classes by first code point."""
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
    """Least number of characters from each state to acceptance, -1 where there is none."""
    return _nearest(_predecessors(table.rows), table.accepting)


def _predecessors(rows: Sequence[Sequence[int]]) -> list[list[int]]:
    """For each state the reachable states with an edge to it, each once. The start has the predecessor -1; the extra
    last list takes the edges to -1. So a state is reachable exactly if it has a predecessor."""
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
    """Least number of characters from each reachable state to acceptance, -1 where there is none."""
    distance = [-1] * len(accepting)
    distance.append(0)  # For the predecessor -1 of the start, which is not a state: it counts as done.
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
    """The coarsest partition: block of each state (dead ones: -1, and one more -1 at the end), number of blocks.

    Moore's refinement that starts from the distance to acceptance (which separates chains at once) and then
    looks again only at predecessors of states that got a new block; the largest part of a block keeps its name,
    as in Hopcroft (1971), so a state is renamed at most log2(n) times.
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
    """The parts of one block that must leave it. Only `states` may differ; the others agree with one another."""
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
        # The part that keeps the name should be the largest; if that is not the witnesses', they are listed to leave.
        largest = max(parts, key=lambda signature: len(parts[signature]))
        if largest != stays and len(parts[largest]) > agreeing + len(parts.get(stays, ())):
            parts.setdefault(stays, []).extend(state for state in members if state not in seen)
            stays = largest
    return [part for signature, part in parts.items() if signature != stays]


def _merge_classes(
    bounds: list[int], classes: list[int], rows: Sequence[tuple[int, ...]]
) -> tuple[list[int], list[int], list[tuple[int, ...]]]:
    """Ranges and columns with equal columns made one class, classes numbered by their first code point."""
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
    """The Table with states in breadth-first order of their classes."""
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
