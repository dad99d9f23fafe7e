"""Detection of infinite cycles of epsilon reductions, in which a parser reduces for ever without reading input.

With `start: "(" start+ ")" | "a"?`, any number of empty `start` may follow `(`, and an LALR table that reduces one of
them reduces the next, and so on without end; Lark's parser then hangs. In an infinite run of reductions some state
`below` is never popped. The states on top of it form pairs (below, above), and the run is a walk over such pairs: a
unit rule replaces `above`, and an empty rule pushes a state. The walks are computed by saturation, as in a pushdown
system: a pair also has the steps that follow after a state which was pushed above it has been popped again.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..base.work import spend_work
from .lalr_tables import Lalr
from .productions import Productions

__all__ = ["find_epsilon_cycle", "has_epsilon_cycle"]

Pair = tuple[int, int]
"""A state and the one directly above it on the stack."""
Step = tuple[int, Pair]
"""The last rule reduced, and the pair that is then on top."""


def find_epsilon_cycle(table: Lalr, productions: Productions) -> list[int] | None:
    """Return the rules of an infinite cycle of reductions before one terminal, on some stack; None if there is none."""
    if not _may_have_cycle(productions):
        return None
    for terminal in range(len(table.terminals)):
        rules = [[-int(a) - 1] if a < 0 else [] for a in table.action[:, terminal]]
        cycle = _find_cycle(table, rules)
        if cycle:
            return cycle
    return None


def has_epsilon_cycle(table: Lalr, productions: Productions) -> bool:
    """Return whether there is a cycle if reductions are applied regardless of their lookahead terminals."""
    if not _may_have_cycle(productions):
        return False
    return _find_cycle(table, [sorted({-int(a) - 1 for a in row[row < 0]}) for row in table.action]) is not None


def _find_cycle(table: Lalr, rules: list[list[int]]) -> list[int] | None:
    """Return the rules of a cycle of reductions, or None. `rules` lists the possible reductions of each state."""
    steps: dict[Pair, set[Step]] = {}
    pops: dict[Pair, set[tuple[int, int]]] = {}  # (states to pop, beginning with `below`; the rule that pops them)
    dependents: dict[Pair, set[Pair]] = {}
    worklist: list[Pair] = []

    def visit(pair: Pair, user: Pair | None = None) -> None:
        if pair not in steps:
            steps[pair], pops[pair], dependents[pair] = set(), set(), set()
            worklist.append(pair)
        if user is not None:
            dependents[pair].add(user)

    def goto(state: int, rule: int) -> int:
        return int(table.goto[state, table.left[rule]])

    for state, row in enumerate(table.action):
        for above in {*(int(a) - 1 for a in row[row > 0]), *table.goto[state][table.goto[state] >= 0].tolist()}:
            if rules[above]:
                visit((state, above))
    while worklist:
        pair = below, above = worklist.pop()
        spend_work(10, "the search for infinite reductions")
        new_steps, new_pops = set(steps[pair]), set(pops[pair])
        for rule in rules[above]:
            length = int(table.length[rule])
            if length == 0:
                new_steps.add((rule, (above, goto(above, rule))))
            elif length > 1:
                new_pops.add((length - 1, rule))
            elif goto(below, rule) >= 0:
                new_steps.add((rule, (below, goto(below, rule))))
        for last, next_pair in tuple(new_steps):
            visit(next_pair, pair)
            for count, rule in pops[next_pair]:
                if table.length[last]:  # `other` has the same `below`
                    new_pops.add((count, rule))
                elif count > 1:
                    new_pops.add((count - 1, rule))
                elif goto(below, rule) >= 0:
                    new_steps.add((rule, (below, goto(below, rule))))
        for _, next_pair in new_steps:
            visit(next_pair, pair)
        if new_pops != pops[pair] or new_steps != steps[pair]:
            steps[pair], pops[pair] = new_steps, new_pops
            worklist += [pair, *dependents[pair]]
    return _find_closed_walk(steps)


def _may_have_cycle(productions: Productions) -> bool:
    """Return whether a cycle is possible: some nonterminal derives itself, or begins with itself after nullable
    symbols.
    """
    if productions.is_cyclic():
        return True
    nullable = productions.nullable()
    first_nonterminals: dict[int, set[int]] = {}
    after_nullable = set[tuple[int, int]]()
    for left, right in zip(productions.left, productions.right):
        for position, symbol in enumerate(right):
            if symbol < 0:
                first_nonterminals.setdefault(left, set()).add(~symbol)
                if position:
                    after_nullable.add((left, ~symbol))
            if symbol >= 0 or ~symbol not in nullable:
                break
    return any(left in {symbol, *_find_reachable(symbol, first_nonterminals)} for left, symbol in after_nullable)


def _find_reachable(symbol: int, edges: dict[int, set[int]]) -> set[int]:
    """Return the nodes reachable from a symbol by one or more edges."""
    reachable, worklist = set[int](), [symbol]
    while worklist:
        unvisited = edges.get(worklist.pop(), set()) - reachable
        reachable |= unvisited
        worklist += unvisited
    return reachable


def _find_closed_walk(steps: dict[Pair, set[Step]]) -> list[int] | None:
    """Return the rules of a closed walk, or None."""
    done: set[Pair] = set()
    for start in steps:
        if start in done:
            continue
        path: list[tuple[Pair, int, Iterable[Step]]] = [(start, -1, iter(sorted(steps[start])))]
        positions = {start: 0}
        while path:
            pair, _, remaining = path[-1]
            for rule, next_pair in remaining:
                if next_pair in positions:
                    return [*(step[1] for step in path[positions[next_pair] + 1 :]), rule]
                if next_pair not in done:
                    positions[next_pair] = len(path)
                    path.append((next_pair, rule, iter(sorted(steps[next_pair]))))
                    break
            else:
                path.pop()
                done.add(pair)
                del positions[pair]
    return None
