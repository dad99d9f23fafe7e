"""TokenAutomaton: a Constraint as an explicit automaton over tokens, one state at a time.

A Constraint's positions are interned sets of configurations, so where two texts leave the same future they are at the
same one. Regular languages have finitely many; of others only those that few enough tokens reach are ever asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..errors import LimitError
from ..kernels import walk
from .masked import allowed_tokens

if TYPE_CHECKING:
    from ..compile import Constraint
    from ..matcher import Matcher

__all__ = ["TokenAutomaton"]

Arcs = tuple[NDArray[np.int64], NDArray[np.int32]]


class TokenAutomaton:
    """State 0 is the start. accepting: whether the text may end there, by state. For the thread that made it."""

    def __init__(self, constraint: Constraint, most_states: int) -> None:
        self.constraint, self.most_states = constraint, most_states
        self.numbers: dict[tuple[int, int], int] = {}
        self.accepting: list[bool] = []
        self._matchers: list[Matcher] = []
        self._arcs: dict[int, Arcs] = {}
        self._number(constraint.matcher())

    def __len__(self) -> int:
        return len(self._matchers)

    def _number(self, matcher: Matcher) -> int:
        state = matcher.state
        number = self.numbers.get(state)
        if number is None:
            if len(self._matchers) >= self.most_states:
                raise LimitError(
                    f"The tokens lead to more than {self.most_states:,} states of the constraint.",
                    hint="Allow fewer tokens or more states, or sample instead.",
                )
            number = self.numbers[state] = len(self._matchers)
            self._matchers.append(matcher)
            self.accepting.append(matcher.is_complete)
        return number

    def number(self, matcher: Matcher) -> int | None:
        """The state that a position is at; None if it is not known."""
        return self.numbers.get(matcher.state)

    def arcs(self, state: int) -> Arcs:
        """The tokens that may follow, ends left out (int64 [k], ascending), and the state after each (int32 [k])."""
        if state not in self._arcs:
            self._arcs[state] = self._explore(self._matchers[state])
        return self._arcs[state]

    def _explore(self, matcher: Matcher) -> Arcs:
        allowed = allowed_tokens(matcher.mask())
        tokens = allowed[~np.isin(allowed, self.constraint.vocabulary.eos_ids)]
        epoch, start = matcher.state
        arena = self.constraint.arena()
        after = [arena.run(walk.advance, start, token) for token in tokens.tolist()]
        found: dict[int, int] = {}
        for token, number in zip(tokens.tolist(), after):
            if number not in found:
                known = self.numbers.get((epoch, number))
                if known is None:
                    other = matcher.fork()
                    other.advance(token)
                    known = self._number(other)
                found[number] = known
        if arena.epoch != epoch:
            raise LimitError(
                "The constraint's states do not fit into Limits.arena_bytes.", hint="Raise Limits(arena_bytes=...)."
            )
        return tokens, np.array([found[number] for number in after], np.int32)
