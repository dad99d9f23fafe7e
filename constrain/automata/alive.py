"""From which stacks of an LALR parser acceptance is reachable, when conflicts were resolved or rules are unproductive.

A table without conflicts over productive rules has no dead ends: what was read can be finished. Where a shift won, or a
rule is unproductive, the parser is a deterministic pushdown automaton that may get stuck for good (`start: x "b"`,
`x: | "b" x`: every b is shifted, nothing is accepted). The stacks that can still accept form a regular language
(Büchi 1964; Bouajjani, Esparza and Maler, "Reachability analysis of pushdown automata", 1997), saturated here.

What a state can do with its stack is a set of *returns* (i, A, t): some text leads to popping i states, this one
included, and then making A with t read ahead. Read from the bottom, a stack is summed up by the returns of its top that
lead to acceptance: that is the state of the automaton `Alive`. It gives more than a yes or no: the terminals that can
be read next so that acceptance stays reachable.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .lalr import Lalr
from .productions import spread

__all__ = ["Alive", "Tables"]

Pieces = list[tuple[int, "tuple[int, int] | None", int]]
"""What each terminal leads to when it is read ahead: (terminals, kind, returns). With a kind (i, A) the return of that
kind with the terminal itself; without, all of `returns` for each of the terminals."""


@dataclass(frozen=True, slots=True, eq=False)
class Tables:
    """following: int32[k, LALR states], the state after one more LALR state is pushed, -1 where it never is.
    accepts: uint32[k, words], the terminals that can be read next, bit t % 32 of word t // 32. start: as in `Alive`.
    """

    following: NDArray[np.int32]
    accepts: NDArray[np.uint32]
    start: int

    @property
    def has_dead_ends(self) -> bool:
        """Whether some stack may be dead. If none is, a mask has to ask the parser's table alone.

        Stacks between reductions count too, and some of what can be pushed never is: False is certain, True is not.
        """
        return bool((self.accepts == 0).all(axis=1).any())


class Alive:
    """The automaton of the stacks that can accept, made state by state as it is asked.

    A stack is read from the bottom: `start` is the automaton's state after the table's start state alone,
    `step(state, q)` that after q is pushed. accepts(state): the terminals, as bits, that can be read next so that a
    text that is accepted remains; 0: the stack is dead.
    """

    def __init__(self, table: Lalr) -> None:
        self.width = len(table.terminals)
        self.root = len(table.nonterminals)  # stands for: the text is accepted
        self.action = table.action.tolist()
        self.left, self.length = table.left.tolist(), table.length.tolist()
        self.gotos = [{a: s for a, s in enumerate(row) if s >= 0} for row in table.goto.tolist()]
        self.shifts = [{t: act - 1 for t, act in enumerate(row) if act > 0} for row in self.action]
        self.shifts[table.end].pop(self.width - 1)
        self.action[table.end][self.width - 1] = 0
        self.end, self.first = table.end, table.start
        self.into: list[list[int]] = [[] for _ in self.gotos]
        for q, moves in enumerate(zip(self.gotos, self.shifts)):
            for s in {*moves[0].values(), *moves[1].values()}:
                self.into[s].append(q)
        self.ends: list[dict[tuple[int, int], int]] = [{} for _ in self.gotos]  # (length, A): before which terminals
        for q, row in enumerate(self.action):
            for t, act in enumerate(row):
                if act < 0:
                    rule = self.length[-1 - act], self.left[-1 - act]
                    self.ends[q][rule] = self.ends[q].get(rule, 0) | 1 << t
        self.ends[self.end][1, self.root] = 1 << (self.width - 1)
        self.places = self._places()
        self.after: list[Pieces] = [[] for _ in self.gotos]  # returns of a state with a terminal read ahead
        self.any = [0] * len(self.gotos)  # returns of a state with nothing read
        self.made: list[dict[int, Pieces]] = [{} for _ in self.gotos]  # of a state on which A is made
        self._saturate()
        self.states: list[tuple[int, int]] = []
        self.numbers: dict[tuple[int, int], int] = {}
        self.start = self._number(self.first, self._bit(self.first, 0, self.root, self.width - 1))

    # ---- the automaton ------------------------------------------------------------------------------------------

    def step(self, state: int, pushed: int) -> int:
        """The state behind a stack on which `pushed` comes to lie."""
        q, good = self.states[state]
        block = (1 << self.width) - 1
        known = 0
        for (i, made), place in self.places[pushed].items():
            if i > 1:
                bits = good >> self.places[q][i - 1, made] & block
            else:
                bits = self._leading(self.made[q].get(made, []), q, good)
            known |= bits << place
        return self._number(pushed, known)

    def accepts(self, state: int) -> int:
        """The terminals, as bits, that can be read next with acceptance still reachable; 0: dead."""
        q, good = self.states[state]
        return self._leading(self.after[q], q, good)

    def _leading(self, pieces: Pieces, q: int, good: int) -> int:
        """The terminals, as bits, whose returns of q are among the good ones."""
        found = 0
        for terminals, kind, returns in pieces:
            if kind is not None:
                found |= terminals & good >> self.places[q][kind]
            elif returns & good:
                found |= terminals
        return found

    def tables(self, most: int) -> Tables | None:
        """All of the automaton, if it has at most so many states."""
        successors = [sorted({*gotos.values(), *shifts.values()}) for gotos, shifts in zip(self.gotos, self.shifts)]
        rows: list[dict[int, int]] = []
        for state, (q, _) in enumerate(self.states):  # grows while it is read
            if len(self.states) > most:
                return None
            rows.append({pushed: self.step(state, pushed) for pushed in successors[q]})
        following = np.full((len(rows), len(self.gotos)), -1, dtype=np.int32)
        for state, row in enumerate(rows):
            following[state, list(row)] = list(row.values())
        words = (self.width + 31) // 32
        accepts = b"".join(self.accepts(state).to_bytes(4 * words, "little") for state in range(len(rows)))
        return Tables(following, np.frombuffer(accepts, dtype="<u4").reshape(-1, words), self.start)

    def _number(self, q: int, good: int) -> int:
        """good: the returns of q that lead to acceptance."""
        number = self.numbers.setdefault((q, good), len(self.states))
        if number == len(self.states):
            self.states.append((q, good))
        return number

    # ---- saturation ---------------------------------------------------------------------------------------------

    def _places(self) -> list[dict[tuple[int, int], int]]:
        """For each state its kinds of return, (i, A), and where their bits, one a terminal, begin."""
        kinds: list[dict[tuple[int, int], int]] = [{} for _ in self.gotos]
        todo = [(self.first, 0, self.root)]
        todo += [(q, *rule) for q, ends in enumerate(self.ends) for rule in ends if rule[0]]
        while todo:
            q, i, made = todo.pop()
            if (i, made) not in kinds[q]:
                kinds[q][i, made] = len(kinds[q]) * self.width
                if i > 1:
                    todo += [(p, i - 1, made) for p in self.into[q]]
        return kinds

    def _bit(self, q: int, i: int, made: int, terminal: int) -> int:
        return 1 << (self.places[q][i, made] + terminal)

    def _saturate(self) -> None:
        todo, waiting = list(range(len(self.gotos))), set(range(len(self.gotos)))
        while todo:
            q = todo.pop()
            waiting.discard(q)
            if self._improve(q):
                for p in self.into[q]:
                    if p not in waiting:
                        waiting.add(p)
                        todo.append(p)

    def _improve(self, q: int) -> bool:
        """Works out the returns of q from those of the states that follow it; whether there are more now."""
        sums: dict[tuple[int, int], int] = {}  # returns of a state that lies on q: their number as a node
        edges: list[list[int]] = []
        sets: list[int] = []
        made: dict[int, Pieces] = {}
        if q == self.first:
            made[self.root] = [(1 << (self.width - 1), (0, self.root), 0)]

        def node(s: int, returns: int) -> int:
            if (s, returns) not in sums:
                sums[s, returns] = len(sets)
                sets.append(0)
                edges.append([])
            return sums[s, returns]

        def making(a: int, within: int, met: tuple[int, ...]) -> Pieces:
            """As `made`, for these terminals only; a piece that is no single return has a node in place of the set."""
            if a in made:
                return [(t & within, kind, n) for t, kind, n in made[a] if t & within]
            found: Pieces = []
            for terminals, kind, returns in [] if a in met else self.after[self.gotos[q][a]]:
                if not (terminals := terminals & within):
                    continue
                if kind is None:
                    found.append((terminals, None, node(self.gotos[q][a], returns)))
                elif kind[0] > 1:
                    found.append((terminals, (kind[0] - 1, kind[1]), 0))
                else:  # rules of one symbol in a circle end nothing
                    found += making(kind[1], terminals, (*met, a))
            return found

        everything = (1 << self.width) - 1
        for a in self.gotos[q]:
            made[a] = making(a, everything, ())
        shifted = {t: node(s, self.any[s]) for t, s in self.shifts[q].items() if self.any[s]}
        for (s, returns), number in sums.items():
            for (i, a), place in self.places[s].items():
                block = returns >> place & everything
                if block and i > 1:
                    sets[number] |= block << self.places[q][i - 1, a]
                elif block:
                    for terminals, kind, other in making(a, block, ()):
                        if kind is None:
                            edges[number].append(other)
                        else:
                            sets[number] |= terminals << self.places[q][kind]
        spread(edges, sets)
        self.made[q] = {a: [(t, k, 0 if k else sets[n]) for t, k, n in pieces] for a, pieces in made.items()}
        after: Pieces = []
        alike: dict[int, int] = {}
        for t, number in shifted.items():
            alike[sets[number]] = alike.get(sets[number], 0) | 1 << t
        for (length, a), terminals in self.ends[q].items():
            if length:
                after.append((terminals, (length, a), 0))
                continue
            for within, kind, returns in self.made[q][a]:
                if kind is None and within & terminals:
                    alike[returns] = alike.get(returns, 0) | within & terminals
                elif within & terminals:
                    after.append((within & terminals, kind, 0))
        after += [(terminals, None, returns) for returns, terminals in alike.items() if returns]
        if sorted(after, key=repr) == self.after[q]:
            return False
        self.after[q] = sorted(after, key=repr)
        self.any[q] = 0
        for terminals, kind, returns in after:
            self.any[q] |= returns if kind is None else terminals << self.places[q][kind]
        return True
