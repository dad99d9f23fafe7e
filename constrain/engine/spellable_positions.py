"""SpellablePositions: which positions can be completed by tokens, for a vocabulary that lacks single-byte tokens.

A usual vocabulary has all 256 bytes as tokens, so tokens can complete whatever bytes can. A list of words cannot: after
`b"ab"` the language may require a `b"c"` that no token starts with. With such a vocabulary, a position is valid only if
some sequence of tokens reaches the end. This is determined by search, and memoised per set in the state cache.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush

import numpy as np
from numpy.typing import NDArray

from ..kernels import entry_points, layout as at
from ..vocabulary.vocabulary import Vocabulary
from .shortest_completion import STEP_SHARE, SearchBudget, completion_search
from .state_cache import StateCache

__all__ = ["SpellablePositions"]

SET, FOLLOWED = 20, 5
"""Units of work for a set that is expanded, and for a token that is followed."""
LENGTH = 100
"""Tokens of a text that make each further one a unit dearer: names that are written take longer to compare."""
HINT = "Use a vocabulary with a token for every byte, or raise Limits(work=...)."


class SpellablePositions:
    """The search for positions that tokens can complete, for vocabularies that lack single bytes."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary

    def narrow(self, mask: NDArray[np.int32], allows: Callable[[int], bool]) -> NDArray[np.int32]:
        """Remove from a mask the tokens after which no tokens can complete the text."""
        for token in _list_tokens(mask):
            if token not in self.vocabulary.eos_ids and not allows(token):
                mask.view(np.uint32)[token >> 5] &= ~np.uint32(1 << (token & 31))
        return mask

    def can_finish(self, state_cache: StateCache, start: int) -> bool:
        """Return whether some sequence of tokens leads from a set to the end of the text.

        Raise LimitError if a search takes more than its share of `Limits.work`.
        """
        known: dict[int, bool] = state_cache.derived.setdefault(SpellablePositions, {})
        if start in known:
            return known[start]
        parents: dict[int, list[int]] = {start: []}
        # Expand sets near the end first, so that the search does not descend into brackets forever.
        search = completion_search(state_cache)
        budget = SearchBudget(state_cache.work // STEP_SHARE, HINT)
        todo, out = [(0, start, 0)], np.empty(state_cache.table.words, np.int32)
        while todo and not known.get(start):
            _, current, length = heappop(todo)
            if int(state_cache.arrays[at.SETS][current * at.SET_W + at.SET_FLAGS]) & at.IS_ACCEPTING:
                _mark_completable(known, current, parents)
                continue
            state_cache.run(entry_points.write_mask, current, out)
            tokens = _list_tokens(out)
            budget.spend(SET + (FOLLOWED + length // LENGTH) * len(tokens), "the search for tokens that end the text")
            for token in tokens:
                after = state_cache.run(entry_points.advance_token, current, token)
                if known.get(after):
                    _mark_completable(known, current, parents)
                elif after in parents:
                    parents[after].append(current)
                elif after not in known:
                    parents[after] = [current]
                    heappush(todo, (search.cost(after), after, length + 1))
        if not known.get(start):  # the search was exhaustive
            for reached in parents:
                known.setdefault(reached, False)
        return known[start]


def _mark_completable(known: dict[int, bool], finishing: int, parents: dict[int, list[int]]) -> None:
    """Record that a set, and all sets that lead to it, can be completed."""
    todo = [finishing]
    while todo:
        current = todo.pop()
        if not known.get(current):
            known[current] = True
            todo.extend(parents.get(current, []))


def _list_tokens(mask: NDArray[np.int32]) -> list[int]:
    """Return the tokens of a mask, ascending."""
    bits = np.unpackbits(mask.view(np.uint8), bitorder="little")
    return np.flatnonzero(bits).tolist()  # type: ignore[no-any-return]
