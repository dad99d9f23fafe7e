"""The productions of a context-free grammar over numbered symbols, and their basic analyses.

A symbol is one int: terminal `t` is `t` itself, nonterminal `n` is `~n` (that is, -1 - n). Rules are thus cheap to
compare and hash, and the sign tells terminals from nonterminals. Names are used in messages only.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

__all__ = ["Productions", "propagate_sets"]


@dataclass(frozen=True, slots=True)
class Productions:
    """A context-free grammar over numbered symbols.

    Attributes
    ----------
    terminals, nonterminals : tuple of str
        Names by number. Terminals may be unused.
    left : tuple of int
        The nonterminal that each rule defines.
    right : tuple of tuple of int
        The symbols of each rule: terminal t as t, nonterminal n as ~n.
    priority : tuple of int
        Priority of each rule in reduce/reduce conflicts (LALR only); 0 by default.
    start : int
        Number of the start nonterminal.
    display_names : dict
        Display names of symbols with generated names.
    """

    terminals: tuple[str, ...]
    nonterminals: tuple[str, ...]
    left: tuple[int, ...]
    right: tuple[tuple[int, ...], ...]
    priority: tuple[int, ...]
    start: int
    display_names: dict[int, str]

    def name(self, symbol: int) -> str:
        """Return the display name of a symbol."""
        return self.display_names.get(symbol) or (self.terminals[symbol] if symbol >= 0 else self.nonterminals[~symbol])

    def text(self, rule: int) -> str:
        """Return a rule in grammar notation, such as `expr: expr "+" term`."""
        right = " ".join(self.name(symbol) for symbol in self.right[rule])
        return f"{self.name(~self.left[rule])}: {right or '(nothing)'}"

    def nullable(self) -> frozenset[int]:
        """Return the nonterminals that derive the empty text."""
        return self._built_of(terminals=())

    def productive(self) -> frozenset[int]:
        """Return the nonterminals that derive some string of terminals."""
        return self._built_of(terminals=range(len(self.terminals)))

    def is_cyclic(self) -> bool:
        """Return whether some nonterminal derives itself alone."""
        nullable = self.nullable()
        ways: dict[int, set[int]] = {}
        for left, right in zip(self.left, self.right):
            full = [symbol for symbol in right if symbol >= 0 or ~symbol not in nullable]
            if not full:
                ways.setdefault(left, set()).update(~symbol for symbol in right)
            elif len(full) == 1 and full[0] < 0:
                ways.setdefault(left, set()).add(~full[0])
        for n in ways:
            seen, todo = set[int](), list(ways[n])
            while todo:
                one = todo.pop()
                if one == n:
                    return True
                if one not in seen:
                    seen.add(one)
                    todo.extend(ways.get(one, ()))
        return False

    def reachable(self) -> frozenset[int]:
        """Return the symbols (t or ~n) reachable from the start symbol, including itself."""
        seen, todo = {~self.start}, [self.start]
        rights = self.by_left()
        while todo:
            for rule in rights[todo.pop()]:
                for symbol in self.right[rule]:
                    if symbol not in seen:
                        seen.add(symbol)
                        if symbol < 0:
                            todo.append(~symbol)
        return frozenset(seen)

    def by_left(self) -> list[list[int]]:
        """Return the rules of each nonterminal, in order."""
        rules: list[list[int]] = [[] for _ in self.nonterminals]
        for rule, left in enumerate(self.left):
            rules[left].append(rule)
        return rules

    def _built_of(self, terminals: Iterable[int]) -> frozenset[int]:
        """Return the nonterminals that derive strings over these terminals, by counting the open symbols of
        each rule.
        """
        given = set(terminals)
        waiting = [0] * len(self.left)
        users: list[list[int]] = [[] for _ in self.nonterminals]
        found: set[int] = set()
        todo: list[int] = []
        for rule, right in enumerate(self.right):
            for symbol in right:
                if symbol < 0:
                    users[~symbol].append(rule)
                    waiting[rule] += 1
                elif symbol not in given:
                    waiting[rule] = len(right) + 1  # never reaches 0
                    break
            if not waiting[rule]:
                todo.append(self.left[rule])
        while todo:
            nonterminal = todo.pop()
            if nonterminal in found:
                continue
            found.add(nonterminal)
            for rule in users[nonterminal]:
                waiting[rule] -= 1
                if not waiting[rule]:
                    todo.append(self.left[rule])
        return frozenset(found)


def propagate_sets(edges: Sequence[Sequence[int]], sets: list[int]) -> None:
    """Union into each node's set (an int used as a bit set) the sets of all nodes reachable from it, in place.

    DeRemer and Pennello, "Efficient computation of LALR(1) look-ahead sets" (TOPLAS 1982), section 4, with Tarjan's
    strongly connected components, whose nodes share one set. Uses an explicit stack instead of recursion.
    """
    count = len(edges)
    done = count + 1
    low = [0] * count  # 0: unvisited; `done`: component finished; else depth of the lowest node reached
    path: list[int] = []
    for root in range(count):
        if low[root]:
            continue
        if not edges[root]:
            low[root] = done
            continue
        path.append(root)
        low[root] = len(path)
        calls = [(root, len(path), iter(edges[root]))]
        while calls:
            node, depth, rest = calls[-1]
            for other in rest:
                if not low[other]:
                    if edges[other]:
                        path.append(other)
                        low[other] = len(path)
                        calls.append((other, len(path), iter(edges[other])))
                        break
                    low[other] = done
                if low[other] < low[node]:
                    low[node] = low[other]
                sets[node] |= sets[other]
            else:
                calls.pop()
                if low[node] == depth:
                    joined = sets[node]
                    for member in path[depth - 1 :]:
                        low[member] = done
                        sets[member] = joined
                    del path[depth - 1 :]
                if calls:
                    parent = calls[-1][0]
                    if low[node] < low[parent]:
                        low[parent] = low[node]
                    sets[parent] |= sets[node]
