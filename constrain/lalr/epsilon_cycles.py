"""Detection of infinite cycles of epsilon reductions, in which a parser reduces for ever without reading input.

With `start: "(" start+ ")" | "a"?`, any number of empty `start` may follow `(`, and an LALR table that reduces one of
them goes on to reduce the next without end; Lark's parser then hangs. In an infinite run of reductions some state
`below` is never popped. The states on top of it form pairs (below, above), and the run is a walk over such pairs: a
unit rule replaces `above`, and an empty rule pushes a state.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..base.work import spend_work
from .lalr_tables import Lalr
from .productions import Productions

__all__ = ["find_epsilon_cycle", "has_epsilon_cycle"]

Pair = tuple[int, int]
"""A state and the one directly above it on the stack."""
Way = tuple[int, Pair]
"""The last rule reduced, and the pair that is then on top."""


def find_epsilon_cycle(table: Lalr, productions: Productions) -> list[int] | None:
    """Return the rules of an infinite cycle of reductions before one terminal, on some stack; None if there is none."""
    if not _may_be(productions):
        return None
    for terminal in range(len(table.terminals)):
        rules = [[-int(a) - 1] if a < 0 else [] for a in table.action[:, terminal]]
        found = _circle(table, rules)
        if found:
            return found
    return None


def has_epsilon_cycle(table: Lalr, productions: Productions) -> bool:
    """Return whether there is a cycle if reductions are applied regardless of their lookahead terminals."""
    if not _may_be(productions):
        return False
    return _circle(table, [sorted({-int(a) - 1 for a in row[row < 0]}) for row in table.action]) is not None


def _circle(table: Lalr, rules: list[list[int]]) -> list[int] | None:
    """Return the rules of a cycle of reductions, or None. `rules` lists the possible reductions of each state."""
    ways: dict[Pair, set[Way]] = {}
    pops: dict[Pair, set[tuple[int, int]]] = {}  # (states to pop, beginning with `below`; the rule that pops them)
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
                if table.length[last]:  # `other` has the same `below`
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
    """Return whether a cycle is possible: some nonterminal derives itself, or begins with itself after nullable
    symbols.
    """
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
    """Return the nodes reachable from a symbol by one or more edges."""
    found, todo = set[int](), [symbol]
    while todo:
        new = edges.get(todo.pop(), set()) - found
        found |= new
        todo += new
    return found


def _round(ways: dict[Pair, set[Way]]) -> list[int] | None:
    """Return the rules of a closed walk, or None."""
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
