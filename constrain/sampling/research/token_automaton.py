"""TokenAutomaton: a Constraint as an explicit automaton over tokens, built one state at a time.

Positions of a Constraint are interned sets of configurations, so texts with the same configurations, and hence the same
continuations, share a state. Regular languages have finitely many states; for others only the states that a limited
number of tokens reaches are built.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...base.errors import LimitError
from ...kernels import entry_points
from ..core.masked_sampling import allowed_tokens

if TYPE_CHECKING:
    from ...engine.constraint import Constraint
    from ...engine.matcher import Matcher
    from ...engine.state_cache import StateCache
    from ...vocabulary.vocabulary import Vocabulary

__all__ = ["ByteSteps", "TokenAutomaton"]

Arcs = tuple[NDArray[np.int64], NDArray[np.int32]]
UNKNOWN = -1


class TokenAutomaton:
    """An automaton over tokens; state 0 is the start. accepting: whether the text may end, by state. Not thread-safe:
    use it in the thread that made it.
    """

    def __init__(self, constraint: Constraint, most_states: int) -> None:
        self.constraint, self.most_states = constraint, most_states
        self.numbers: dict[tuple[int, int], int] = {}
        self.accepting: list[bool] = []
        self._matchers: list[Matcher] = []
        self._allowed: dict[int, NDArray[np.int64]] = {}
        self._after: dict[int, NDArray[np.int64]] = {}
        self._steps = ByteSteps(constraint.vocabulary)
        self._number(constraint.matcher())

    def __len__(self) -> int:
        return len(self._matchers)

    def _number(self, matcher: Matcher) -> int:
        state = matcher.state
        number = self.numbers.get(state)
        if number is None:
            if len(self._matchers) >= self.most_states:
                raise LimitError(
                    f"the tokens lead to more than {self.most_states:,} states of the constraint",
                    hint="Lower max_tokens, raise most_states, or use another sampler.",
                )
            number = self.numbers[state] = len(self._matchers)
            self._matchers.append(matcher)
            self.accepting.append(matcher.is_complete)
        return number

    def number(self, matcher: Matcher) -> int | None:
        """Return the state of a position; None if it is unknown."""
        return self.numbers.get(matcher.state)

    def arcs(self, state: int) -> Arcs:
        """Return the allowed tokens, without end tokens (int64 [k], ascending), and the state after each (int32 [k]);
        cached.
        """
        allowed = self.allowed(state)
        return allowed, self.follow(state, allowed)

    def allowed(self, state: int) -> NDArray[np.int64]:
        """Return the allowed tokens, without end tokens: int64 [k], ascending; cached."""
        if state not in self._allowed:
            self._allowed[state] = self._list_allowed(state)
        return self._allowed[state]

    def follow(self, state: int, tokens: NDArray[np.int64]) -> NDArray[np.int32]:
        """Return the state after each of some allowed tokens (int64 [k], ascending): int32 [k]; cached by token."""
        return self.number_sets(state, tokens, self.sets_after(state, tokens))

    def sets_after(self, state: int, tokens: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the set of configurations after each of some allowed tokens (int64 [k], ascending): int64 [k]; cached
        by token. Tokens with the same set lead to the same state, which has no number yet.
        """
        allowed = self.allowed(state)
        if state not in self._after:
            self._after[state] = np.full(len(allowed), UNKNOWN)
        after = self._after[state]
        places = np.searchsorted(allowed, tokens)
        new = places[after[places] == UNKNOWN]
        if len(new):
            after[new] = self._sets_after(state, allowed[new])
        return after[places]

    def number_sets(self, state: int, tokens: NDArray[np.int64], sets: NDArray[np.int64]) -> NDArray[np.int32]:
        """Return the numbers of the states of `sets` (int64 [k]), to which `tokens` lead: int32 [k]. New ones are
        numbered in the order of the tokens.
        """
        matcher, different = self._matchers[state], np.unique(sets, return_index=True, return_inverse=True)
        epoch, numbers = matcher.state[0], np.empty(len(different[0]), np.int32)
        for index in np.argsort(different[1]).tolist():
            known = self.numbers.get((epoch, int(different[0][index])))
            if known is None:
                other = matcher.fork()
                other.advance(int(tokens[different[1][index]]))
                known = self._number(other)
            numbers[index] = known
        self._check_epoch(epoch)
        return numbers[different[2]]

    def matcher(self, state: int) -> Matcher:
        """Return a position at a state. The caller must not advance it."""
        return self._matchers[state]

    def explore(self, state: int) -> Arcs:
        """Compute the same as `arcs` without caching, for callers that visit each state once."""
        tokens = self._list_allowed(state)
        return tokens, self.number_sets(state, tokens, self._sets_after(state, tokens))

    def _list_allowed(self, state: int) -> NDArray[np.int64]:
        allowed = allowed_tokens(self._matchers[state].mask())
        return allowed[~np.isin(allowed, self.constraint.vocabulary.eos_ids)]

    def _sets_after(self, state: int, tokens: NDArray[np.int64]) -> NDArray[np.int64]:
        epoch, start = self._matchers[state].state
        sets = self._steps.after(self.constraint.state_cache(), start, tokens)
        self._check_epoch(epoch)
        return sets

    def _check_epoch(self, epoch: int) -> None:
        """Raise LimitError if the state cache was evicted: all sets have new numbers then."""
        if self.constraint.state_cache().epoch != epoch:
            raise LimitError(
                "the states of the constraint do not fit into Limits.state_cache_bytes",
                hint="Raise Limits(state_cache_bytes=...).",
            )


class ByteSteps:
    """The transition table from configuration set and byte to set, filled lazily. It follows all tokens of a state in
    parallel.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.octets = np.frombuffer(vocabulary.blob, np.uint8)
        self.offsets = vocabulary.offsets.astype(np.int64)
        self.epoch = -1

    def after(self, state_cache: StateCache, start: int, tokens: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the set after a set and each of some tokens that it allows: int64 [k]."""
        if self.epoch != state_cache.epoch:
            self.epoch, self.ids, self.numbers_of_sets = state_cache.epoch, list[int](), dict[int, int]()
            self.table = np.full((64, 256), UNKNOWN, np.int32)
        at, last = self.offsets[tokens], self.offsets[tokens + 1]
        current = np.full(len(tokens), self._number_of(start), np.int32)
        live = np.arange(len(tokens))
        while len(live := live[at[live] < last[live]]):
            octets, numbers_of_sets = self.octets[at[live]], current[live]
            unknown = np.flatnonzero(self.table[numbers_of_sets, octets] == UNKNOWN)
            if len(unknown):
                for pair in np.unique(numbers_of_sets[unknown].astype(np.int64) * 256 + octets[unknown]).tolist():
                    self._step(state_cache, *divmod(pair, 256))
            current[live] = self.table[numbers_of_sets, octets]
            at[live] += 1
        return np.array(self.ids, np.int64)[current]

    def _step(self, state_cache: StateCache, state: int, octet: int) -> None:
        self.table[state, octet] = self._number_of(
            state_cache.run(entry_points.advance_bytes, self.ids[state], np.frombuffer(bytearray((octet,)), np.uint8))
        )

    def _number_of(self, set_id: int) -> int:
        state = self.numbers_of_sets.setdefault(set_id, len(self.ids))
        if state == len(self.ids):
            self.ids.append(set_id)
            if len(self.ids) > len(self.table):
                self.table = np.concatenate([self.table, np.full_like(self.table, UNKNOWN)])
        return state
