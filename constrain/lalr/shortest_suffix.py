"""The shortest suffix of a partly parsed text: the least number of bytes from a parser stack to the end of the text.

For each item `left: done . remaining` of the top state, this is the cost of the symbols `remaining` plus the cost of
the stack after the reduction to `left`. A symbol costs its shortest text (Knuth 1977, "A generalization of Dijkstra's
algorithm", computed by iteration); separators and resolved conflicts are ignored, so the result is a lower bound,
usually a tight one. The table of a product has no productions; its costs are those of `return_costs`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..base.cached_property import cached_property
from .parser_code import Parser
from .return_costs import compute_return_costs

__all__ = ["NEVER", "ShortestSuffixes"]

NEVER = 1 << 28
"""Greater than the cost of any text."""

Stack = tuple[int, ...]
"""States of the LALR table, bottom first."""
Item = tuple[int, int]
"""A rule (-1 for the added rule of the start symbol) and the number of symbols before the dot."""


class ShortestSuffixes:
    """Least costs in bytes for one Parser, computed on first use."""

    def __init__(self, parser: Parser) -> None:
        self.parser = parser
        self._costs: dict[Stack, int] = {(): 0}  # the bottom: the end of the text

    @cached_property
    def lexemes(self) -> NDArray[np.int32]:
        """int32[scanner states, terminals]: least number of bytes from a state to the acceptance of a terminal."""
        scanner, terminals = self.parser.scanner, self.parser.terminals
        n = len(scanner.delta)
        out = np.full((n, terminals), NEVER, np.int32)
        for row in range(1, len(scanner.accept_table)):
            terminals_accepted = np.unique(scanner.accept_table[row])
            out[np.ix_(scanner.accept == row, terminals_accepted[terminals_accepted >= 0])] = 0
        live = np.flatnonzero(scanner.delta.ravel() >= 0)
        source, target = np.divmod(np.unique(live // 256 * n + scanner.delta.ravel()[live]), max(n, 1))
        first = np.flatnonzero(np.diff(source, prepend=-1))
        sources = source[first]
        while len(sources):  # as many rounds as the longest shortest lexeme has bytes
            nearer = np.minimum(out[sources], np.minimum.reduceat(out[target] + 1, first))
            if (out[sources] == nearer).all():
                break
            out[sources] = nearer
        return out

    def _find_costs_by_state(self, paired: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return int32[states, terminals]: least bytes of a lexeme that begins in the same state of the regular
        language.
        """
        out = np.full((len(paired), self.parser.terminals), NEVER, np.int32)
        for state in np.unique(paired):
            starts = np.unique(self.parser.scan[paired == state])
            if (starts >= 0).any():
                out[paired == state] = self.lexemes[starts[starts >= 0]].min(0)
        return out

    @cached_property
    def symbols(self) -> tuple[list[int], list[int]]:
        """Least number of bytes of each terminal and of each nonterminal."""
        parser = self.parser
        starts = np.unique(parser.scan[parser.scan >= 0])
        terminals = self.lexemes[starts].min(0).tolist() if len(starts) else [NEVER] * parser.terminals
        terminals[-1] = 0
        if parser.layout:  # an indent costs one more blank, a dedent nothing
            terminals[parser.layout.indent], terminals[parser.layout.dedent] = 1, 0
        nonterminals = [NEVER] * len(parser.table.nonterminals)
        changed = True
        while changed:
            changed = False
            for left, right in zip(parser.productions.left, parser.productions.right):
                cost = sum(terminals[s] if s >= 0 else nonterminals[~s] for s in right)
                if cost < nonterminals[left]:
                    nonterminals[left], changed = cost, True
        return terminals, nonterminals

    @cached_property
    def kernels(self) -> list[tuple[Item, ...]]:
        """The kernel items of each state."""
        table, productions = self.parser.table, self.parser.productions
        by_left = productions.by_left()
        kernels: list[set[Item]] = [set() for _ in table.action]
        kernels[table.start] = {(-1, 0)}
        worklist, done = [table.start], set[int]()
        while worklist:
            state = worklist.pop()
            if state in done:
                continue
            done.add(state)
            items, expanded = list(kernels[state]), set[int]()
            for item in items:  # `items` grows during the loop
                symbol = self._remaining_symbols(item)[:1]
                if symbol and symbol[0] < 0 and symbol[0] not in expanded:
                    expanded.add(symbol[0])
                    items += [(rule, 0) for rule in by_left[~symbol[0]]]
            for rule, dot in items:
                for symbol_ in self._remaining_symbols((rule, dot))[:1]:
                    after = int(table.action[state, symbol_]) - 1 if symbol_ >= 0 else int(table.goto[state, ~symbol_])
                    if after >= 0:
                        kernels[after].add((rule, dot + 1))
                        worklist.append(after)
        return [tuple(sorted(kernel)) for kernel in kernels]

    def _remaining_symbols(self, item: Item) -> tuple[int, ...]:
        rule, dot = item
        right = (~self.parser.productions.start,) if rule < 0 else self.parser.productions.right[rule]
        return right[dot:]

    @cached_property
    def item_costs(self) -> list[list[tuple[int, int, int]]]:
        """For each state, its items as (remaining bytes, states to pop, nonterminal or -1 at the end of the text)."""
        if self.parser.product is not None:
            return compute_return_costs(self.parser.table, self._find_costs_by_state(self.parser.product.paired), NEVER)
        terminals, nonterminals = self.symbols
        out = []
        for kernel in self.kernels:
            items = []
            for rule, dot in kernel:
                remaining = sum(
                    terminals[s] if s >= 0 else nonterminals[~s] for s in self._remaining_symbols((rule, dot))
                )
                items.append((remaining, dot, -1 if rule < 0 else self.parser.productions.left[rule]))
            out.append(items)
        return out

    @cached_property
    def least(self) -> int:
        """Number of bytes of the shortest text."""
        return self.cost((self.parser.table.start,))

    def lexeme(self, stack: Stack, state: int, inside: bool) -> int:
        """Return the least number of bytes to the end of the text from within a lexeme.

        `state` is the scanner state; `inside` tells whether brackets are open, so that newlines are ignored.
        """
        parser, best = self.parser, NEVER
        reached = self.lexemes[state]
        for terminal in np.argsort(reached, kind="stable").tolist():
            remaining = int(reached[terminal])
            if remaining >= best:
                break
            newline = parser.layout is not None and terminal == parser.layout.newline
            if terminal in parser.ignored or (newline and inside):
                after: Stack | None = stack
            else:
                after = self.fed(stack, terminal)
            if after is not None:
                best = min(best, remaining + self.cost(after))
        return best

    def fed(self, stack: Stack, terminal: int) -> Stack | None:
        """Return the stack after a terminal, or None if the terminal is rejected."""
        table = self.parser.table
        unit_reductions = 0
        while unit_reductions <= len(
            table.action
        ):  # exceeded only if a symbol derives itself, see `kernels.parsing.feed_terminal`
            act = int(table.action[stack[-1], terminal])
            if act >= 0:
                return (*stack, act - 1) if act else None
            rule = -act - 1
            unit_reductions = unit_reductions + 1 if table.length[rule] < 2 else 0
            stack = stack[: len(stack) - int(table.length[rule])]
            stack = (*stack, int(table.goto[stack[-1], table.left[rule]]))
        return None

    def cost(self, stack: Stack) -> int:
        """Return the least number of bytes from a stack to the end of the text."""
        pending = [stack]
        while pending:  # iterative, since stacks may be as deep as texts are long
            current = pending[-1]
            if current in self._costs:
                pending.pop()
                continue
            level = self._reduce_level(current)
            unknown = [below for _, below in level if below not in self._costs]
            if unknown:
                pending += unknown
                continue
            self._store_cost(current, level)
            pending.pop()
        return self._costs[stack]

    def _reduce_level(self, stack: Stack) -> list[tuple[int, Stack]]:
        """Return (remaining bytes, lower stack) for the reductions from a stack, or from others of its height, to lower
        ones.
        """
        best: dict[Stack, int] = {stack: 0}
        lower: dict[Stack, int] = {}
        worklist = [stack]
        while worklist:
            current = worklist.pop()
            cost = best[current]
            for remaining, pops, left in self.item_costs[current[-1]]:
                if left < 0:
                    lower[()] = min(lower.get((), NEVER), cost + remaining)
                    continue
                below = current[: len(current) - pops]
                reduced = (*below, int(self.parser.table.goto[below[-1], left]))
                if reduced[-1] < 0 or remaining >= NEVER:
                    continue
                if len(reduced) < len(current):
                    lower[reduced] = min(lower.get(reduced, NEVER), cost + remaining)
                elif cost + remaining < best.get(reduced, NEVER):
                    best[reduced] = cost + remaining
                    worklist.append(reduced)
        return [(cost, below) for below, cost in lower.items()]

    def _store_cost(self, stack: Stack, level: list[tuple[int, Stack]]) -> None:
        self._costs[stack] = min((cost + self._costs[below] for cost, below in level), default=NEVER)
