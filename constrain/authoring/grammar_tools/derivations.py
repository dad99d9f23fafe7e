"""Draw sentences from rules: a random derivation which, beyond a given size, uses only the cheapest rules.

It always terminates: each cheapest rule reduces the remaining cost of the derivation by its own cost.
"""

from __future__ import annotations

from random import Random

from ...base.errors import UnsatisfiableError
from ...lalr.productions import Productions
from ...lalr.shortest_suffix import NEVER

__all__ = ["Derivation", "compute_least_costs"]


def compute_least_costs(productions: Productions, terminals: list[int]) -> list[int]:
    """Return the cost of each nonterminal's cheapest sentence, given the costs of terminals; NEVER if it has none."""
    costs = [NEVER] * len(productions.nonterminals)
    users: list[list[int]] = [[] for _ in costs]
    for rule, right in enumerate(productions.right):
        for symbol in set(right):
            if symbol < 0:
                users[~symbol].append(rule)
    todo = list(range(len(productions.left)))
    while todo:
        rule = todo.pop()
        cost = sum(terminals[s] if s >= 0 else costs[~s] for s in productions.right[rule])
        if cost < costs[productions.left[rule]]:
            costs[productions.left[rule]] = cost
            todo += users[productions.left[rule]]
    return costs


class Derivation:
    """Draws strings of terminals. Raise UnsatisfiableError for a grammar whose start symbol has no sentence."""

    def __init__(self, productions: Productions) -> None:
        self.productions = productions
        # One more for each rule, so that the cheapest derivation is never cyclic.
        self.costs = self._heights()
        if self.costs[productions.start] >= NEVER:
            raise UnsatisfiableError(
                f"rule {productions.nonterminals[productions.start]} derives no text: each of its alternatives leads "
                "back to it",
                hint="Add an alternative without recursion to one of these rules.",
            )
        self.by_left = [[rule for rule in rules if self.cost(rule) < NEVER] for rules in productions.by_left()]

    def _heights(self) -> list[int]:
        costs = [NEVER] * len(self.productions.nonterminals)
        changed = True
        while changed:
            changed = False
            for left, right in zip(self.productions.left, self.productions.right):
                cost = 1 + sum(1 if s >= 0 else costs[~s] for s in right)
                if cost < costs[left]:
                    costs[left], changed = cost, True
        return costs

    def cost(self, rule: int) -> int:
        """Return the number of rules and terminals of the cheapest sentence of a rule."""
        return 1 + sum(1 if s >= 0 else self.costs[~s] for s in self.productions.right[rule])

    def draw(self, rng: Random, size: int) -> list[int]:
        """Return a random string of terminals.

        size: number of rules and terminals after which only the cheapest rules are used; the completion may exceed it.
        """
        stack, spent, pending_cost = [~self.productions.start], 0, self.costs[self.productions.start]
        out: list[int] = []
        while stack:
            symbol = stack.pop()
            if symbol >= 0:
                out.append(symbol)
                spent += 1
                pending_cost -= 1
                continue
            rules = self.by_left[~symbol]
            slack = size - spent - pending_cost
            fitting = [rule for rule in rules if self.cost(rule) - self.costs[~symbol] <= slack]
            rule = rng.choice(fitting) if fitting else min(rules, key=self.cost)
            pending_cost += self.cost(rule) - self.costs[~symbol] - 1
            spent += 1
            stack += reversed(self.productions.right[rule])
        return out
