"""The co-reachable stacks of an LALR parser (those from which acceptance is reachable), after resolved conflicts.

A table without conflicts over productive rules has no dead ends: every viable prefix can be completed. If a shift won a
conflict, or a rule is unproductive, the parser is a deterministic pushdown automaton that may get stuck
(`start: x "b"`, `x: | "b" x`: every b is shifted and nothing is accepted). The stacks that can still accept form a
regular language (Büchi 1964; Bouajjani, Esparza and Maler, "Reachability analysis of pushdown automata", 1997), which
is computed here by saturation.

The effect of a state on the stack below it is a set of *returns* (i, A, t): some text leads to popping i states,
including this one, and then reducing to A with lookahead t. Read from the bottom, a stack is summarised by the returns
of its top state that lead to acceptance; this summary is the state of the automaton `CoReachableStacks`. It yields not
only whether the stack is co-reachable, but also the terminals that keep acceptance reachable.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..base.work import spend_work
from .lalr_tables import Lalr
from .lexeme_boundaries import ContextTerminals
from .productions import propagate_sets

__all__ = ["CoReachableStacks", "StackTables", "lexer_forbids"]

WORK = "the stacks from which a text can be finished"

Pieces = list[tuple[int, "tuple[int, int] | None", int]]
"""The returns for each lookahead terminal, as (terminals, kind, returns).

With a kind (i, A): the return of that kind with the terminal itself. Without: all of `returns`, for each of the
terminals.
"""


@dataclass(frozen=True, slots=True, eq=False)
class StackTables:
    """The complete automaton of `CoReachableStacks` as arrays.

    Attributes
    ----------
    following : int32[k, LALR states]
        The next state after one more LALR state is pushed, or -1 if it cannot be pushed.
    accepts : uint32[k, words]
        The terminals that can be read next, bit t % 32 of word t // 32.
    start : int
        As in `CoReachableStacks`.
    """

    following: NDArray[np.int32]
    accepts: NDArray[np.uint32]
    start: int

    @property
    def has_dead_ends(self) -> bool:
        """Whether some stack may be dead. If none is, masks only need the parser's table.

        Conservative: intermediate stacks between reductions and pushes that never occur are included, so True may be
        wrong.
        """
        return bool((self.accepts == 0).all(axis=1).any())


class CoReachableStacks:
    """The automaton of the co-reachable stacks, built lazily state by state.

    `letters` is None if the lexer allows any terminal after any other; otherwise "terminal" means a letter throughout.

    The automaton reads a stack from the bottom: `start` is its state after the table's start state, and
    `step(state, q)` its state after q is pushed. `accepts(state)` gives, as bits, the terminals that can be read next
    so that acceptance stays reachable; 0 means that the stack is dead.
    """

    def __init__(self, table: Lalr, letters: ContextTerminals | None = None) -> None:
        self.letters = letters
        self.width = len(table.terminals) if letters is None else len(letters.terminal)
        self.eof = len(table.terminals) - 1
        self.root = len(table.nonterminals)  # pseudo-nonterminal of the accepted text
        action = table.action if letters is None else table.action[:, list(letters.terminal)]
        spend_work(action.size // 4, WORK)
        self.action = action.tolist()
        self.left, self.length = table.left.tolist(), table.length.tolist()
        self.gotos = [{a: s for a, s in enumerate(row) if s >= 0} for row in table.goto.tolist()]
        self.shifts = [{t: act - 1 for t, act in enumerate(row) if act > 0} for row in self.action]
        self.shifts[table.end].pop(self.eof)
        self.action[table.end][self.eof] = 0
        self.end, self.first = table.end, table.start
        self.predecessors: list[list[int]] = [[] for _ in self.gotos]
        for q, moves in enumerate(zip(self.gotos, self.shifts)):
            for s in {*moves[0].values(), *moves[1].values()}:
                self.predecessors[s].append(q)
        self.reductions: list[dict[tuple[int, int], int]] = [
            {} for _ in self.gotos
        ]  # by (length, A): the lookahead terminals of the reduction
        for q, row in enumerate(self.action):
            for t, act in enumerate(row):
                if act < 0:
                    rule = self.length[-1 - act], self.left[-1 - act]
                    self.reductions[q][rule] = self.reductions[q].get(rule, 0) | 1 << t
        self.reductions[self.end][1, self.root] = 1 << self.eof
        self.offsets = self._find_return_kinds()
        self.after: list[Pieces] = [[] for _ in self.gotos]  # by state: its returns, by lookahead terminal
        self.any: list[dict[int, int]] = [
            {} for _ in self.gotos
        ]  # by state: cache of its returns, by the set of terminals that may follow
        self.made: list[dict[int, Pieces]] = [
            {} for _ in self.gotos
        ]  # by state and A: the returns after a reduction to A on that state
        self._saturate()
        self.states: list[tuple[int, int]] = []
        self.steps: dict[tuple[int, int], int] = {}
        self.numbers: dict[tuple[int, int], int] = {}
        self.start = self._number(self.first, self._bit(self.first, 0, self.root, self.eof))

    # ---- the automaton ------------------------------------------------------------------------------------------

    def step(self, state: int, pushed: int) -> int:
        """Return the state of the automaton after `pushed` is pushed."""
        known_step = self.steps.get((state, pushed))
        if known_step is None:
            known_step = self.steps[state, pushed] = self._step(state, pushed)
        return known_step

    def _step(self, state: int, pushed: int) -> int:
        """Compute `step`."""
        q, good = self.states[state]
        block = (1 << self.width) - 1
        known = 0
        for (i, made), offset in self.offsets[pushed].items():
            if i > 1:
                bits = good >> self.offsets[q][i - 1, made] & block
            else:
                bits = self._find_leading_terminals(self.made[q].get(made, []), q, good)
            known |= bits << offset
        return self._number(pushed, known)

    def accepts(self, state: int) -> int:
        """Return the terminals, as bits, that can be read next with acceptance still reachable; 0 for a dead stack."""
        q, good = self.states[state]
        return self._find_leading_terminals(self.after[q], q, good)

    def _find_leading_terminals(self, pieces: Pieces, q: int, good: int) -> int:
        """Return the terminals, as bits, with a return of q among the good ones."""
        reachable = 0
        for terminals, kind, returns in pieces:
            if kind is not None:
                reachable |= terminals & good >> self.offsets[q][kind]
            elif returns & good:
                reachable |= terminals
        return reachable

    def tables(self, most: int) -> StackTables | None:
        """Return the complete automaton, or None if it has more than `most` states."""
        successors = [sorted({*gotos.values(), *shifts.values()}) for gotos, shifts in zip(self.gotos, self.shifts)]
        rows: list[dict[int, int]] = []
        for state, (q, _) in enumerate(self.states):  # `states` grows during the loop
            if len(self.states) > most:
                return None
            spend_work(10 * len(successors[q]) + len(self.gotos) // 16, WORK)
            rows.append({pushed: self.step(state, pushed) for pushed in successors[q]})
        following = np.full((len(rows), len(self.gotos)), -1, dtype=np.int32)
        for state, row in enumerate(rows):
            following[state, list(row)] = list(row.values())
        words = (self.width + 31) // 32
        accepts = b"".join(self.accepts(state).to_bytes(4 * words, "little") for state in range(len(rows)))
        return StackTables(following, np.frombuffer(accepts, dtype="<u4").reshape(-1, words), self.start)

    def _number(self, q: int, good: int) -> int:
        """Return the number of the state with top q and the returns `good` of q that lead to acceptance."""
        number = self.numbers.setdefault((q, good), len(self.states))
        if number == len(self.states):
            self.states.append((q, good))
        return number

    # ---- saturation ---------------------------------------------------------------------------------------------

    def _find_return_kinds(self) -> list[dict[tuple[int, int], int]]:
        """Return, for each state, its kinds of returns (i, A) with their bit offsets; a kind has one bit per
        terminal.
        """
        kinds: list[dict[tuple[int, int], int]] = [{} for _ in self.gotos]
        worklist = [(self.first, 0, self.root)]
        worklist += [(q, *rule) for q, reductions in enumerate(self.reductions) for rule in reductions if rule[0]]
        while worklist:
            q, i, nonterminal = worklist.pop()
            if (i, nonterminal) not in kinds[q]:
                kinds[q][i, nonterminal] = len(kinds[q]) * self.width
                if i > 1:
                    worklist += [(p, i - 1, nonterminal) for p in self.predecessors[q]]
        return kinds

    def _bit(self, q: int, i: int, made: int, terminal: int) -> int:
        """Return the bit of the return (i, made, terminal) of state q."""
        return 1 << (self.offsets[q][i, made] + terminal)

    def _saturate(self) -> None:
        """Update the returns of all states until nothing changes: the least fixpoint, by a worklist."""
        worklist, queued = deque(reversed(range(len(self.gotos)))), set(range(len(self.gotos)))
        while worklist:  # FIFO: with a LIFO worklist some states are recomputed ten times as often
            q = worklist.popleft()
            queued.discard(q)
            if self._update_returns(q):
                for p in self.predecessors[q]:
                    if p not in queued:
                        queued.add(p)
                        worklist.append(p)

    def _update_returns(self, q: int) -> bool:
        """Recompute the returns of q from those of its successors. Return whether there are new ones."""
        spend_work(
            20 + 4 * len(self.gotos[q]) + 4 * len(self.shifts[q]) + len(self.offsets[q]) * self.width // 64, WORK
        )
        node_numbers: dict[tuple[int, int], int] = {}  # (state above q, its returns): number of the node
        edges: list[list[int]] = []
        sets: list[int] = []
        made: dict[int, Pieces] = {}
        if q == self.first:
            made[self.root] = [(1 << self.eof, (0, self.root), 0)]

        def node(s: int, returns: int) -> int:
            if (s, returns) not in node_numbers:
                node_numbers[s, returns] = len(sets)
                sets.append(0)
                edges.append([])
            return node_numbers[s, returns]

        def returns_after_reduction(a: int, within: int) -> Pieces:
            """As `made`, restricted to these terminals; a piece without a kind has a node instead of returns."""
            pieces: Pieces = []
            visited: dict[int, int] = {}  # by nonterminal: the terminals done; cycles of unit rules add no returns
            worklist = [(a, within)]
            while worklist:
                a, within = worklist.pop()
                within &= ~visited.get(a, 0)
                if not within:
                    continue
                visited[a] = visited.get(a, 0) | within
                if a in made:
                    spend_work(len(made[a]) // 16, WORK)
                    pieces += [(t & within, kind, n) for t, kind, n in made[a] if t & within]
                    continue
                following = self.after[self.gotos[q][a]]
                spend_work(1 + len(following) // 8, WORK)
                for terminals, kind, returns in following:
                    if not (terminals := terminals & within):
                        continue
                    if kind is None:
                        pieces.append((terminals, None, node(self.gotos[q][a], returns)))
                    elif kind[0] > 1:
                        pieces.append((terminals, (kind[0] - 1, kind[1]), 0))
                    else:
                        worklist.append((kind[1], terminals))
            return pieces

        all_terminals = (1 << self.width) - 1
        for a in self.gotos[q]:
            made[a] = returns_after_reduction(a, all_terminals)
        shifted = {t: node(s, bits) for t, s in self.shifts[q].items() if (bits := self._returns_after_letter(s, t))}
        for (s, returns), number in node_numbers.items():
            spend_work(len(self.offsets[s]) * (returns.bit_length() // 16_384), WORK)
            for (i, a), offset in self.offsets[s].items():
                block = returns >> offset & all_terminals
                if block and i > 1:
                    sets[number] |= block << self.offsets[q][i - 1, a]
                elif block:
                    for terminals, kind, other in returns_after_reduction(a, block):
                        if kind is None:
                            edges[number].append(other)
                        else:
                            sets[number] |= terminals << self.offsets[q][kind]
        propagate_sets(edges, sets)
        self.made[q] = {a: [(t, k, 0 if k else sets[n]) for t, k, n in pieces] for a, pieces in made.items()}
        after: Pieces = []
        by_return: dict[int, int] = {}
        for t, number in shifted.items():
            by_return[sets[number]] = by_return.get(sets[number], 0) | 1 << t
        for (length, a), terminals in self.reductions[q].items():
            if length:
                after.append((terminals, (length, a), 0))
                continue
            for within, kind, returns in self.made[q][a]:
                if kind is None and within & terminals:
                    by_return[returns] = by_return.get(returns, 0) | within & terminals
                elif within & terminals:
                    after.append((within & terminals, kind, 0))
        after += [(terminals, None, returns) for returns, terminals in by_return.items() if returns]
        after.sort(key=lambda piece: (piece[0], piece[1] or (-1, -1), piece[2]))
        if after == self.after[q]:
            return False
        self.after[q] = after
        self.any[q] = {}
        return True

    def _returns_after_letter(self, q: int, letter: int) -> int:
        """Return the returns of a state just after a letter led to it, for the letters that may follow that letter."""
        within = -1 if self.letters is None else self.letters.following.get((q, letter), 0)
        union = self.any[q].get(within)
        if union is None:
            union = 0
            for terminals, kind, returns in self.after[q]:
                if terminals & within:
                    union |= returns if kind is None else (terminals & within) << self.offsets[q][kind]
            self.any[q][within] = union
        return union


def lexer_forbids(table: Lalr, letters: ContextTerminals, most: int) -> bool:
    """Return whether some stack accepts a terminal after which, with the lexer's restrictions, no text can be
    completed.

    The automata with and without these restrictions are explored in parallel. Conservative: stacks that never occur are
    included, so True may be wrong. Also return True if there are more than `most` pairs of states.
    """
    plain, exact = CoReachableStacks(table), CoReachableStacks(table, letters)
    by_terminal = [0] * len(table.terminals)
    for letter, terminal in enumerate(letters.terminal):
        by_terminal[terminal] |= 1 << letter
    readable = {table.start: letters.start}  # letters that can be read in a state, after ignored ones
    skipped: dict[int, list[int]] = {}
    for (state, letter), bits in letters.following.items():
        readable[state] = readable.get(state, 0) | bits
        if letters.terminal[letter] in letters.ignored:
            skipped.setdefault(state, []).append(bits)
    if not letters.start & exact.accepts(exact.start):
        return True
    pairs = [(plain.start, exact.start)]
    visited = set(pairs)
    for one, other in pairs:  # `pairs` grows during the loop
        q = plain.states[one][0]
        spend_work(20, WORK)
        if q in readable:
            bits, allowed, expected = plain.accepts(one), exact.accepts(other), 0
            for terminal, letters_of_terminal in enumerate(by_terminal):
                if bits >> terminal & 1:
                    expected |= letters_of_terminal
            if expected & readable[q] & ~allowed or (bits and not all(after & allowed for after in skipped.get(q, ()))):
                return True
        for pushed in {*plain.gotos[q].values(), *plain.shifts[q].values()}:
            pair = plain.step(one, pushed), exact.step(other, pushed)
            if pair not in visited:
                visited.add(pair)
                pairs.append(pair)
                if len(pairs) > most:
                    return True
    return False
