"""Reductions that never end: rules of no text that follow each other in a circle, so that a parser reads nothing more.

`start: "(" start+ ")" | "a"?`: behind `(` any number of empty `start` may stand, and an LALR table that reduces one of
them reduces the next, for ever. Lark's parser then hangs. In an infinite run of reductions the stack is lowest
somewhere, at a state `below` that is never taken off again; what stands on it are pairs (below, above), and a run is a
walk over them, as a rule of one symbol replaces `above`, and one of none puts a state on top.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..base.work import spend_work
from .lalr_tables import Lalr
from .productions import Productions

__all__ = ["find_epsilon_cycle", "has_epsilon_cycle"]

Pair = tuple[int, int]
"""A state, and the one that stands on it."""
Way = tuple[int, Pair]
"""The rule that is reduced last, and the pair that is on top then."""


def find_epsilon_cycle(table: Lalr, productions: Productions) -> list[int] | None:
    """Rules that are reduced again and again before one terminal, on some stack; None if there are none."""
    if not _may_be(productions):
        return None
    for terminal in range(len(table.terminals)):
        rules = [[-int(a) - 1] if a < 0 else [] for a in table.action[:, terminal]]
        found = _circle(table, rules)
        if found:
            return found
    return None


def has_epsilon_cycle(table: Lalr, productions: Productions) -> bool:
    """Whether reductions go round if each is tried, whichever terminals it waits for."""
    if not _may_be(productions):
        return False
    return _circle(table, [sorted({-int(a) - 1 for a in row[row < 0]}) for row in table.action]) is not None


def _circle(table: Lalr, rules: list[list[int]]) -> list[int] | None:
    """rules: those that may be reduced, by state."""
    ways: dict[Pair, set[Way]] = {}
    pops: dict[Pair, set[tuple[int, int]]] = {}  # (states to take off, `below` first; the rule that does)
    users: dict[Pair, set[Pair]] = {}
    todo: list[Pair] = []

    def reached(pair: Pair, user: Pair | None = None) -> None:
        if pair not in ways:
            ways[pair], pops[pair], users[pair] = set(), set(), set()
            todo.append(pair)
        if user is not None:
            users[pair].add(user)

    def after(state: int, rule: int) -> int:
        return int(table.goto[state, table.left[rule]])

    for state, row in enumerate(table.action):
        for above in {*(int(a) - 1 for a in row[row > 0]), *table.goto[state][table.goto[state] >= 0].tolist()}:
            if rules[above]:
                reached((state, above))
    while todo:
        pair = below, above = todo.pop()
        spend_work(10, "the search for reductions without an end")
        found, off = set(ways[pair]), set(pops[pair])
        for rule in rules[above]:
            length = int(table.length[rule])
            if length == 0:
                found.add((rule, (above, after(above, rule))))
            elif length > 1:
                off.add((length - 1, rule))
            elif after(below, rule) >= 0:
                found.add((rule, (below, after(below, rule))))
        for last, other in tuple(found):
            reached(other, pair)
            for count, rule in pops[other]:
                if table.length[last]:  # it stands where this one does
                    off.add((count, rule))
                elif count > 1:
                    off.add((count - 1, rule))
                elif after(below, rule) >= 0:
                    found.add((rule, (below, after(below, rule))))
        for _, other in found:
            reached(other, pair)
        if off != pops[pair] or found != ways[pair]:
            ways[pair], pops[pair] = found, off
            todo += [pair, *users[pair]]
    return _round(ways)


def _may_be(productions: Productions) -> bool:
    """Whether a nonterminal becomes itself, or begins with itself behind what has no text: else nothing can."""
    if productions.is_cyclic():
        return True
    nullable = productions.nullable()
    begins: dict[int, set[int]] = {}
    behind = set[tuple[int, int]]()
    for left, right in zip(productions.left, productions.right):
        for place, symbol in enumerate(right):
            if symbol < 0:
                begins.setdefault(left, set()).add(~symbol)
                if place:
                    behind.add((left, ~symbol))
            if symbol >= 0 or ~symbol not in nullable:
                break
    return any(left in {symbol, *_from(symbol, begins)} for left, symbol in behind)


def _from(symbol: int, edges: dict[int, set[int]]) -> set[int]:
    """What is reached from a symbol by one edge or more."""
    found, todo = set[int](), [symbol]
    while todo:
        new = edges.get(todo.pop(), set()) - found
        found |= new
        todo += new
    return found


def _round(ways: dict[Pair, set[Way]]) -> list[int] | None:
    """The rules of a closed walk."""
    done: set[Pair] = set()
    for start in ways:
        if start in done:
            continue
        path: list[tuple[Pair, int, Iterable[Way]]] = [(start, -1, iter(sorted(ways[start])))]
        places = {start: 0}
        while path:
            pair, _, rest = path[-1]
            for rule, other in rest:
                if other in places:
                    return [*(step[1] for step in path[places[other] + 1 :]), rule]
                if other not in done:
                    places[other] = len(path)
                    path.append((other, rule, iter(sorted(ways[other]))))
                    break
            else:
                path.pop()
                done.add(pair)
                del places[pair]
    return None
