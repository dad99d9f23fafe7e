"""The productions of a context-free grammar as numbers, and what can be said of them without a parser.

A symbol is one int: terminal `t` is `t` itself, nonterminal `n` is `~n` (that is, -1 - n). So rules compare and hash
fast, and the sign says which is which. Names are kept for messages only.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

__all__ = ["Productions", "propagate_sets"]


@dataclass(frozen=True, slots=True)
class Productions:
    """A context-free grammar over numbered symbols.

    terminals, nonterminals: names; a symbol's number is its place. Terminals that no rule uses may be among them.
    left: int[rules], the nonterminal that a rule defines. right: its symbols, terminals as t, nonterminals as ~n.
    priority: int[rules], 0 unless said: decides between two rules that could both end (LALR only).
    start: number of the nonterminal that a text is.
    shown: how the rules' symbols are called in messages, for those whose name was made up: {symbol: words}.
    """

    terminals: tuple[str, ...]
    nonterminals: tuple[str, ...]
    left: tuple[int, ...]
    right: tuple[tuple[int, ...], ...]
    priority: tuple[int, ...]
    start: int
    shown: dict[int, str]

    def name(self, symbol: int) -> str:
        """What a symbol is called in a message."""
        return self.shown.get(symbol) or (self.terminals[symbol] if symbol >= 0 else self.nonterminals[~symbol])

    def text(self, rule: int) -> str:
        """A rule as one would write it: `expr: expr "+" term`."""
        right = " ".join(self.name(symbol) for symbol in self.right[rule])
        return f"{self.name(~self.left[rule])}: {right or '(nothing)'}"

    def nullable(self) -> frozenset[int]:
        """Nonterminals that can be the empty text."""
        return self._built_of(terminals=())

    def productive(self) -> frozenset[int]:
        """Nonterminals from which some string of terminals comes: the others can never be finished."""
        return self._built_of(terminals=range(len(self.terminals)))

    def is_cyclic(self) -> bool:
        """Whether some nonterminal can become itself and nothing else."""
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
        """Symbols (t or ~n) that occur in what the start symbol can turn into, itself included."""
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
        """The rules of each nonterminal, in their order."""
        rules: list[list[int]] = [[] for _ in self.nonterminals]
        for rule, left in enumerate(self.left):
            rules[left].append(rule)
        return rules

    def _built_of(self, terminals: Iterable[int]) -> frozenset[int]:
        """Nonterminals that turn into strings of these terminals: each rule counts what it still waits for."""
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
                    waiting[rule] = len(right) + 1  # more than will ever be found
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
    """Joins to each node's set (an int, one bit a member) those of all nodes that it leads to, in place.

    DeRemer and Pennello, "Efficient computation of LALR(1) look-ahead sets" (TOPLAS 1982), section 4: Tarjan's
    strongly connected components, whose nodes have one set. A stack of its own, so that depth costs no recursion.
    """
    count = len(edges)
    done = count + 1
    low = [0] * count  # 0: not met, `done`: its component is finished, else the depth of the lowest node it reaches
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
