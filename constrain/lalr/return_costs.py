"""The least costs of the reductions below a state of an LALR table, without its productions.

A *return* (i, A) of a state is a way from this state on top of the stack to a reduction to A that pops i states,
including this one (as in `coreachable_stacks`, here with costs and without lookaheads). It costs the terminals that are
read on the way. The least costs are those of a pushdown system with weights, computed in ascending order as by Knuth
("A generalization of Dijkstra's algorithm", 1977).
"""

from __future__ import annotations

from heapq import heappop, heappush

import numpy as np
from numpy.typing import NDArray

from ..base.work import spend_work
from .lalr_tables import Lalr

__all__ = ["compute_return_costs"]

WORK = "the shortest texts of a parser"
_Fact = tuple[int, int, int]
"""A state, the number of states that are popped, and a nonterminal; with 0 states, it is pushed on this state."""


def compute_return_costs(table: Lalr, terminals: NDArray[np.int32], never: int) -> list[list[tuple[int, int, int]]]:
    """Return, for each state, its returns as (cost, states to pop, nonterminal).

    `terminals` is int32[states, terminals], the costs of the terminals in each state; one of `never` or more is not
    read there. In the state of acceptance, and in
    the start state for whole texts, the nonterminal is -1.
    """
    returns = _ReturnCosts(table, terminals, never)
    returns.solve()
    out = [[(cost, pops, a) for (pops, a), cost in found.items() if pops] for found in returns.costs]
    start = table.goto[table.start]
    whole = [returns.costs[table.start].get((0, a), never) for a in np.flatnonzero(start == table.end).tolist()]
    out[table.start] = [(min(whole, default=never), 0, -1)]
    out[table.end] = [(0, 1, -1)]
    return out


class _ReturnCosts:
    """The costs by state and (states to pop, nonterminal)."""

    def __init__(self, table: Lalr, terminals: NDArray[np.int32], never: int) -> None:
        self.table = table
        self.costs: list[dict[tuple[int, int], int]] = [{} for _ in table.action]
        self.heap: list[tuple[int, _Fact]] = []
        self.shifted_from: list[dict[int, int]] = [{} for _ in table.action]  # by state below: the least cost
        self.pushed_from: list[list[tuple[int, int]]] = [[] for _ in table.action]  # (state below, nonterminal)
        self.goto = [{a: s for a, s in enumerate(row) if s >= 0} for row in table.goto.tolist()]
        for p, row in enumerate(table.action):
            for t in np.flatnonzero(row[:-1] > 0).tolist():
                above, cost = self.shifted_from[int(row[t]) - 1], int(terminals[p, t])
                if cost < never:
                    above[p] = min(above.get(p, never), cost)
            for rule in np.unique(-1 - row[row < 0]).tolist():
                self.heap.append((0, (p, int(table.length[rule]), int(table.left[rule]))))
            for a, s in self.goto[p].items():
                self.pushed_from[s].append((p, a))
        self.heap.sort()

    def solve(self) -> None:
        """Compute all costs."""
        while self.heap:
            cost, (state, pops, a) = heappop(self.heap)
            if (pops, a) in self.costs[state]:
                continue
            self.costs[state][pops, a] = cost
            spend_work(3, WORK)
            if pops == 0:
                self.extend_push(cost, state, a)
                continue
            for below, step in self.shifted_from[state].items():
                heappush(self.heap, (cost + step, (below, pops - 1, a)))
            for below, pushed in self.pushed_from[state]:
                push = self.costs[below].get((0, pushed))
                if push is not None:
                    heappush(self.heap, (cost + push, (below, pops - 1, a)))

    def extend_push(self, cost: int, state: int, a: int) -> None:
        """Combine a push with what is known of the state that it leads to."""
        above = self.goto[state].get(a)
        if above is not None:
            for (pops, made), more in list(self.costs[above].items()):
                if pops:
                    heappush(self.heap, (cost + more, (state, pops - 1, made)))
