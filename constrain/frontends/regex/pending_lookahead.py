"""Pending lookaheads: languages that the remaining text must be in.

A *pending lookahead* is a state of a minimal automaton; it asserts that the remaining text is accepted from there. A
lookahead assertion adds the start state of its automaton, a negative one that of the complement (the universal states
of an alternating automaton: Chandra, Kozen, Stockmeyer 1981). All pending lookaheads of a thread must hold together,
so they are a frozenset, which is empty if there are none. Reading a character replaces each by its successor: one that
any text satisfies is dropped, and one that no text satisfies ends the match.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable

from ...automata.dfa import Dfa, Table

__all__ = ["PendingLookaheads", "LookaheadState", "PendingLookahead"]

LookaheadState = int
PendingLookaheads = frozenset[LookaheadState]

NEVER, ALWAYS = -1, -2
"""Constants instead of a pending lookahead: no text satisfies it; any text does."""


class PendingLookahead:
    """The pending lookaheads of one construction. bounds, classes: the character classes that its automata share."""

    def __init__(self, bounds: list[int], classes: list[int], dead: int) -> None:
        """dead: the class of the surrogates, which is in no text; -1 if there is none."""
        self.samples = [bounds[classes.index(index)] for index in range(max(classes) + 1)]
        self.dead = dead
        self.rows: list[tuple[LookaheadState, ...]] = []
        self.accepting: list[bool] = []
        self._known: dict[tuple[object, ...], LookaheadState] = {}
        self._after: dict[PendingLookaheads, list[PendingLookaheads | None]] = {}

    def add_language(self, table: Table, *, negated: bool) -> tuple[PendingLookaheads, ...]:
        """Return the alternatives under which the remaining text is in the language (negated: is not).

        There is no alternative if that is impossible, else one: without pending lookaheads if any text will do, or with
        a single pending lookahead.
        """
        dfa = Dfa.from_table(table)
        start = self._add_states((dfa.complement() if negated else dfa).table)
        return () if start == NEVER else (frozenset(() if start == ALWAYS else (start,)),)

    def _add_states(self, table: Table) -> LookaheadState:
        """Return the pending lookahead of a language: a state of its automaton, which is added unless it is known."""
        if not table.rows:
            return NEVER
        columns = [table.classes[bisect_right(table.bounds, sample) - 1] for sample in self.samples]
        rows = tuple(tuple(row[index] for index in columns) for row in table.rows)
        key = (rows, tuple(table.accepting))
        known = self._known.get(key)
        if known is None:
            base = len(self.rows)
            names = [base + state for state in range(len(rows))]
            for state, row in enumerate(rows):
                if table.accepting[state] and all(t == state or c == self.dead for c, t in enumerate(row)):
                    names[state] = ALWAYS
            names.append(NEVER)
            self.rows += [tuple(names[target] for target in row) for row in rows]
            self.accepting += table.accepting
            known = self._known[key] = names[0]
        return known

    def after(self, pending: PendingLookaheads) -> list[PendingLookaheads | None]:
        """Return the pending lookaheads after a character of each class; None where one of them fails."""
        successors = self._after.get(pending)
        if successors is None:
            columns = [{self.rows[pending_one][index] for pending_one in pending} for index in range(len(self.samples))]
            successors = [None if NEVER in column else frozenset(column - {ALWAYS}) for column in columns]
            self._after[pending] = successors
        return successors

    def ends(self, pending: Iterable[LookaheadState]) -> bool:
        """Return whether the text may end here."""
        return all(self.accepting[pending_one] for pending_one in pending)
