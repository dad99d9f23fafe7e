"""States within an undeclared key, without its text.

Keys of an object must differ, so each spelling of an undeclared key is a state of its own, and every token of the
vocabulary may lead to another one. What they have in common is the keyless state (`kernels.sets.make_keyless`). It is
free if every printable character leads back to it. Then of all texts that extend the key by SPARE characters, at least
one differs from any keys that there are or may follow: PLAIN ** SPARE is far above the number of keys of a text. So

    a completion after one token of a keyless state, after SPARE more characters of the key, applies after all others

which bounds the shortest completion after each of them without making its state.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..kernels import layout as at
from ..kernels.entry_points import advance_by_each, advance_bytes, make_keyless

if TYPE_CHECKING:
    from ..vocabulary.vocabulary import Vocabulary
    from .matcher import Matcher
    from .state_cache import StateCache

__all__ = ["SPARE", "find_keyless_state", "free_states_after", "list_plain_tokens"]

SPARE = 4
"""Number of characters that make a key differ from all others."""
PLAIN = [byte for byte in range(32, 127) if byte not in b'"\\']
"""The printable characters that stand for themselves in a JSON string."""
UNCERTAIN = at.IS_MEMBER | at.IS_OPEN | at.IS_UNSURE | at.HAS_CANDIDATES
"""Flags of sets whose future depends on more than the keys."""


def list_plain_tokens(vocabulary: Vocabulary) -> NDArray[np.bool_]:
    """Return which tokens cannot end a JSON string or begin an escape in it: bool [V]."""
    return np.array([token is not None and not {34, 92} & set(token) for token in vocabulary.tokens], np.bool_)


def find_keyless_state(matcher: Matcher) -> int:
    """Return the state without the text of the undeclared key that is being written; 0 if none is."""
    return matcher._retry_evicted(lambda state_cache: _find_keyless(matcher, state_cache))


def free_states_after(matcher: Matcher, tokens: NDArray[np.integer]) -> NDArray[np.int64]:
    """Return the free keyless state after each of some plain tokens; 0 if the state after it is not free.

    tokens: ids [n], of `list_plain_tokens`. Returns int64 [n].
    """

    def find(state_cache: StateCache) -> NDArray[np.int64]:
        keyless, address = _find_keyless(matcher, state_cache), state_cache.address
        states = np.empty(len(tokens), np.int64)
        advance_by_each(address, keyless, np.ascontiguousarray(tokens, np.int64), states)
        for state in np.unique(states).tolist():
            if state <= 0 or not _is_free(state_cache, state):
                states[states == state] = 0
        return states

    return matcher._retry_evicted(find)


def _find_keyless(matcher: Matcher, state_cache: StateCache) -> int:
    flags = state_cache.arrays[at.SETS][matcher._set * at.SET_W + at.SET_FLAGS]
    if matcher._ended or not flags & at.IS_NAMING or flags & UNCERTAIN:
        return at.DEAD
    return state_cache.run(make_keyless, matcher._set)


def _is_free(state_cache: StateCache, state: int) -> bool:
    """Return whether every plain character leads from a keyless state back to it."""
    if state_cache.arrays[at.SETS][state * at.SET_W + at.SET_FLAGS] & UNCERTAIN:
        return False
    return all(state_cache.run(advance_bytes, state, np.array([byte], np.uint8), length=1) == state for byte in PLAIN)
