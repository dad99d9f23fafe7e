"""LALR(1) conflicts of a grammar, each with an example text, and ambiguous texts.

A grammar whose table has no conflict is unambiguous. Where there is one, two parsers that also take the actions which
the table discards read the same text, from a shortest prefix where both actions are possible. If their stacks become
equal, the text has two derivations, and is then completed as briefly as possible. Otherwise only one token of lookahead
is too little, and a text that the table rejects for this reason is shown.

Source: a pair of parsers on one text is the idea of Schmitz, "Conservative ambiguity detection in context-free
grammars" (ICALP 2007), and of Isradisaikul and Myers, "Finding counterexamples from parsing conflicts" (PLDI 2015).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import count

from ...base.cached_property import cached_property
from ...lalr.lexeme_parser import Stack
from ...lalr.shortest_suffix import NEVER
from .written_grammar import WrittenGrammar

__all__ = ["Conflict", "ConflictFinder"]

MOST_PATHS = 3_000
"""Maximum number of paths to a conflict that are explored, shorter ones first."""
MOST_STACKS = 8
"""Maximum number of stacks from which a conflict is followed: the lower states decide whether both actions can
continue."""
MOST_PAIRS = 1_000
"""Maximum number of pairs of stacks that are followed from each of them, shorter texts first."""
MOST_REDUCTIONS = 200
"""Maximum number of reductions before one terminal: with more, a rule that derives itself repeats forever."""
MOST_SEQUENCES = 6
"""Maximum number of different reduction sequences before one terminal."""
MOST_TOKENS = 400
"""Maximum number of tokens of an example."""


@dataclass(frozen=True, slots=True)
class Conflict:
    """A possible reduction that the table discards in favour of another action.

    state, terminal, rule: the rule could be reduced in that state, before that terminal. taken: the rule that is
    reduced instead, -1 if the terminal is shifted. before: terminals of a shortest prefix up to there, None if none was
    found. ambiguous: terminals of a complete ambiguous text, None if none was found. other: terminals of a complete
    text that the discarded reduction would accept, None if none was found.
    """

    state: int
    terminal: int
    rule: int
    taken: int
    before: tuple[int, ...] | None = None
    ambiguous: tuple[int, ...] | None = None
    other: tuple[int, ...] | None = None


class ConflictFinder:
    """The conflicts of a grammar."""

    def __init__(self, written: WrittenGrammar) -> None:
        self.written = written
        self.productions = written.productions
        self.table = written.table
        self.end = len(self.table.terminals) - 1
        self.costs = written.endings.symbols
        self.also: dict[tuple[int, int], list[int]] = {}
        for state, terminal, rule in written.overruled:
            self.also.setdefault((state, terminal), []).append(rule)

    def find_conflicts(self, most: int) -> list[Conflict]:
        """Return one Conflict for each pair of a discarded rule and the action taken instead.

        most: number of conflicts, from the first on, for which texts are searched.
        """
        seen: dict[tuple[int, int], list[tuple[int, int]]] = {}
        for state, terminal, rule in self.written.overruled:
            act = int(self.table.action[state, terminal])
            seen.setdefault((rule, -1 - act if act < 0 else -1), []).append((state, terminal))
        out = []
        for number, ((rule, chosen), locations) in enumerate(seen.items()):
            if number < most:
                out.append(self.find_examples(rule, chosen, locations))
            else:
                out.append(Conflict(*locations[0], rule, chosen))
        return out

    def find_examples(self, rule: int, chosen: int, locations: list[tuple[int, int]]) -> Conflict:
        """Return the Conflict with texts, at the location that the shortest text reaches."""
        best: Conflict | None = None
        tried = 0
        for stack, terminal in self.iterate_stacks(locations):
            pairs = self.branch_stacks(stack, terminal, rule)
            if not pairs:
                continue
            tried += 1
            if tried > MOST_STACKS:
                break
            before = self.spell_stack(stack)
            if best is None:
                location = stack[-1], terminal
                other = min((self.complete_stack(after) for _, after in pairs), key=_length, default=None)
                best = Conflict(
                    *location, rule, chosen, before, None, None if other is None else (*before, terminal, *other)
                )
                if terminal == self.end:
                    best = Conflict(*location, rule, chosen, before, None, before)
            joined = self.find_join(pairs, terminal)
            if joined is not None:
                ambiguous = before if terminal == self.end else (*before, terminal, *joined)
                return Conflict(stack[-1], terminal, rule, chosen, best.before, ambiguous, best.other)
        return best or Conflict(*locations[0], rule, chosen)

    # ---- paths to a conflict -------------------------------------------------------------------------------------

    def iterate_stacks(self, locations: list[tuple[int, int]]) -> Iterator[tuple[Stack, int]]:
        """Yield stacks that end in one of the states, with the terminal there; those of shorter texts first."""
        terminals_at: dict[int, list[int]] = {}
        for state, terminal in locations:
            terminals_at.setdefault(state, []).append(terminal)
        distance = self.distances(set(terminals_at))
        tie = count()
        heap: list[tuple[int, int, int, Stack]] = [(distance[self.table.start], next(tie), 0, (self.table.start,))]
        for _ in range(MOST_PATHS):
            if not heap:
                return
            _, _, spent, stack = heappop(heap)
            for terminal in terminals_at.get(stack[-1], ()):
                yield stack, terminal
            for cost, after in self.steps[stack[-1]]:
                if distance[after] < NEVER and stack.count(after) < 3:
                    heappush(heap, (spent + cost + distance[after], next(tie), spent + cost, (*stack, after)))

    @cached_property
    def steps(self) -> list[list[tuple[int, int]]]:
        """For each state its transitions (cost of the symbol, target state), in the order of symbols."""
        terminals, nonterminals = self.costs
        out: list[list[tuple[int, int]]] = []
        for state, row in enumerate(self.table.action.tolist()):
            moves = [(max(1, terminals[t]), act - 1) for t, act in enumerate(row[:-1]) if act > 0]
            moves += [(nonterminals[n], s) for n, s in enumerate(self.table.goto[state].tolist()) if s >= 0]
            out.append([(cost, after) for cost, after in moves if cost < NEVER])
        return out

    @cached_property
    def symbol_of(self) -> dict[int, int]:
        """The symbol by which each state is entered; it is unique."""
        symbols: dict[int, int] = {}
        for row, gotos in zip(self.table.action.tolist(), self.table.goto.tolist()):
            symbols |= {act - 1: t for t, act in enumerate(row[:-1]) if act > 0}
            symbols |= {after: ~n for n, after in enumerate(gotos) if after >= 0}
        return symbols

    def distances(self, goals: set[int]) -> list[int]:
        """Return the least cost from each state to one of the goals."""
        into: list[list[tuple[int, int]]] = [[] for _ in self.steps]
        for state, moves in enumerate(self.steps):
            for cost, after in moves:
                into[after].append((cost, state))
        distance = [NEVER] * len(into)
        heap = [(0, goal) for goal in goals]
        while heap:
            cost, state = heappop(heap)
            if cost < distance[state]:
                distance[state] = cost
                for more, before in into[state]:
                    heappush(heap, (cost + more, before))
        return distance

    def spell_stack(self, stack: Stack) -> tuple[int, ...]:
        """Return the terminals of the cheapest text that leads to a stack."""
        return tuple(t for state in stack[1:] for t in self.sentence(self.symbol_of[state]))

    def sentence(self, symbol: int) -> tuple[int, ...]:
        """Return the terminals of the cheapest text of a symbol."""
        out, todo = [], [symbol]
        while todo:
            current = todo.pop()
            if current >= 0:
                out.append(current)
            else:
                todo += reversed(self.productions.right[self.cheapest[~current]])
        return tuple(out)

    @cached_property
    def cheapest(self) -> list[int]:
        """The rule of each nonterminal with the cheapest sentence, in an order in which no rule depends on itself."""
        terminals, _ = self.costs
        rules, costs, steps = (
            self.productions.by_left(),
            [NEVER] * len(self.productions.nonterminals),
            [0] * len(self.productions.nonterminals),
        )
        best = [0] * len(costs)
        changed = True
        while changed:
            changed = False
            for n, options in enumerate(rules):
                for rule in options:
                    right = self.productions.right[rule]
                    cost = sum(terminals[s] if s >= 0 else costs[~s] for s in right)
                    depth = 1 + max((steps[~s] for s in right if s < 0), default=0)
                    if (cost, depth) < (costs[n], steps[n] or NEVER) and cost < NEVER:
                        costs[n], steps[n], best[n], changed = cost, depth, rule, True
        return best

    # ---- two parsers on one text --------------------------------------------------------------------------------

    def reduce_stack(self, stack: Stack, rule: int) -> Stack | None:
        """Return the stack after a reduction, None if it is impossible."""
        stack = stack[: len(stack) - len(self.productions.right[rule])]
        after = int(self.table.goto[stack[-1], self.productions.left[rule]]) if stack else -1
        return (*stack, after) if after >= 0 else None

    def moves(self, stack: Stack, terminal: int) -> list[Stack]:
        """Return the stacks after a terminal, one for each sequence of reductions before it.

        Equal stacks of different sequences are both returned.
        """
        out: list[Stack] = []
        todo, work = [stack], 0
        while todo and work < MOST_REDUCTIONS and len(out) < MOST_SEQUENCES:
            current, work = todo.pop(), work + 1
            act = int(self.table.action[current[-1], terminal])
            if act > 0:
                out.append((*current, act - 1))
            for rule in ([-1 - act] if act < 0 else []) + self.also.get((current[-1], terminal), []):
                after = self.reduce_stack(current, rule)
                if after is not None:
                    todo.append(after)
        return out

    def branch_stacks(self, stack: Stack, terminal: int, rule: int) -> list[tuple[Stack, Stack]]:
        """Return pairs of stacks after the terminal: by the table's action, and by reducing the discarded rule."""
        act = int(self.table.action[stack[-1], terminal])
        if act > 0:
            first = [(*stack, act - 1)]
        else:
            alternative = self.reduce_stack(stack, -1 - act)
            first = self.moves(alternative, terminal) if alternative else []
        ended = self.reduce_stack(stack, rule)
        second = self.moves(ended, terminal) if ended else []
        return [(a, b) for a in first for b in second]

    def find_join(self, pairs: list[tuple[Stack, Stack]], terminal: int) -> tuple[int, ...] | None:
        """Return the terminals after which both stacks are equal, and those that complete the text.

        Return None if none were found.
        """
        if terminal == self.end:
            return ()
        tie, seen = count(), set(pairs)
        heap: list[tuple[int, int, int, tuple[Stack, Stack], tuple[int, ...]]] = [
            (self.estimate_cost(pair), next(tie), 0, pair, ()) for pair in pairs
        ]
        heap.sort()
        for _ in range(MOST_PAIRS):
            if not heap:
                return None
            estimate, _, spent, (a, b), text = heappop(heap)
            if estimate >= NEVER:
                return None
            if a == b:
                suffix = self.complete_stack(a)
                if suffix is not None:
                    return (*text, *suffix)
                continue
            if self.moves(a, self.end) and self.moves(b, self.end):
                return text
            for t in self.next_of(a, b):
                cost = spent + max(1, self.costs[0][t])
                for pair in ((x, y) for x in self.moves(a, t) for y in self.moves(b, t)):
                    if pair not in seen:
                        seen.add(pair)
                        heappush(heap, (cost + self.estimate_cost(pair), next(tie), cost, pair, (*text, t)))
        return None

    def next_of(self, *stacks: Stack) -> list[int]:
        """Return the terminals except $END for which every stack has an action."""
        rows = [self.table.action[stack[-1]] != 0 for stack in stacks]
        both = rows[0] if len(rows) == 1 else rows[0] & rows[1]
        return [t for t in both.nonzero()[0].tolist() if t != self.end]

    def estimate_cost(self, pair: tuple[Stack, Stack]) -> int:
        """Return a lower bound on the cost to complete both."""
        return max(self.written.endings.cost(pair[0]), self.written.endings.cost(pair[1]))

    def complete_stack(self, stack: Stack) -> tuple[int, ...] | None:
        """Return about as few terminals as possible that complete a text with this stack; None if none do."""
        out: list[int] = []
        cost = self.written.endings.cost
        while not self.moves(stack, self.end):
            options = [
                (self.costs[0][t] + cost(after), len(after), t, after)
                for t in self.next_of(stack)
                for after in self.moves(stack, t)
            ]
            if not options or len(out) >= MOST_TOKENS or (best := min(options))[0] >= NEVER:
                return None
            out.append(best[2])
            stack = best[3]
        return tuple(out)


def _length(text: tuple[int, ...] | None) -> int:
    return NEVER if text is None else len(text)
