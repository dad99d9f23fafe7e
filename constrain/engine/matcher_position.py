"""MatcherPosition: the position of a Matcher, and how it is recomputed.

A position is the id of a set of configurations in this thread's state cache, so `fork` and `rollback` copy integers.
The accepted tokens and bytes are stored too: if the state cache is evicted (its size is bounded), or another thread
continues, they are replayed to recompute the position.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from threading import get_ident
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from ..base.errors import ConstrainError, LimitError, describe_value
from ..kernels import entry_points, layout as at
from ..kernels.call_layout import AT_CONTEXT, AT_EPOCH, AT_LENGTH, AT_PLAIN, AT_SELF, AT_SET, AT_THREAD, POSITION_W
from ..program.program import Program
from .accepted_items import AcceptedItems
from .bound_program import BoundProgram
from .state_cache import StateCache, StateCacheEvicted

__all__ = ["MatcherPosition"]

MOST_ATTEMPTS = 3
"""Evictions of the state cache that one call survives.

Each leaves the cache empty, so more attempts would not help.
"""

_T = TypeVar("_T")


def _too_small(state_cache_bytes: int) -> LimitError:
    """Return the LimitError for a state cache too small for one text and one step."""
    return LimitError(
        f"One text and one step of this constraint do not fit into Limits.state_cache_bytes = {state_cache_bytes:,}.",
        hint="Raise Limits(state_cache_bytes=...).",
    )


class MatcherPosition:
    """The part of a Matcher, its only subclass, that keeps the position valid.

    Raises TypeError if `constraint` is not a Constraint.
    """

    __slots__ = (
        "_accepted",
        "_address",
        "_ended",
        "_out",
        "_position",
        "_state_cache",
        "_worker_slot",
        "constraint",
    )

    def __init__(self, constraint: BoundProgram) -> None:
        if not isinstance(getattr(constraint, "program", None), Program):
            raise TypeError(f"constraint is {describe_value(constraint)}: give what constrain.compile returned")
        self.constraint = constraint
        self._set_record(array("q", bytes(8 * POSITION_W)), None)
        self._ended = 0  # accepted end tokens: these do not change the set
        self._worker_slot = 0  # index among this thread's state caches, see `engine.batches.parallel_fill`
        self._out: NDArray[np.int32] | None = None  # the array of the last mask; its description is in `_position`
        self._update_plain_tokens()
        self._replay()

    def _set_record(self, position: array[int], accepted: AcceptedItems | None) -> None:
        """Use `position` as the record of the position (`kernels.call_layout`), with a copy of what was accepted."""
        self._position = position
        self._address = self._position[AT_SELF] = position.buffer_info()[0]
        self._accepted = AcceptedItems(position, accepted)

    def _replay(self) -> None:
        """Replay all accepted tokens and bytes in this thread's state cache."""
        for _ in range(MOST_ATTEMPTS):
            try:
                position = self._position
                position[AT_EPOCH] = -1  # an interrupt leaves an invalid position, which is recomputed
                state_cache = self._state_cache = self.constraint.state_cache(self._worker_slot)
                position[AT_CONTEXT], position[AT_THREAD] = state_cache.address, state_cache.thread
                position[AT_SET], accepted = state_cache.start, self._accepted
                for index in range(position[AT_LENGTH]):
                    accepted.store_set(index, self._set)
                    if index < len(accepted) - self._ended:
                        self._set = self._set_after(state_cache, accepted[index])
                position[AT_EPOCH] = state_cache.epoch
                return
            except StateCacheEvicted:
                continue
        raise _too_small(self.constraint.limits.state_cache_bytes)

    def _invalidate(self) -> None:
        """Invalidate the position after an interrupt. It is recomputed from `_accepted`."""
        accepted, ends = self._accepted, self.constraint.vocabulary.eos_ids
        self._ended = int(len(accepted) > 0 and accepted[len(accepted) - 1] in ends)
        self._position[AT_EPOCH] = -1
        self._update_plain_tokens()

    def _move_to_slot(self, worker_slot: int) -> None:
        """Continue in another of this thread's state caches."""
        self._worker_slot = worker_slot
        self._replay()

    @property
    def _set(self) -> int:
        return self._position[AT_SET]

    @_set.setter
    def _set(self, number: int) -> None:
        self._position[AT_SET] = number

    def _update_plain_tokens(self) -> None:
        """Update which tokens can be accepted by their bytes alone."""
        constraint = self.constraint
        plain = len(constraint.vocabulary.tokens) if constraint.spellable is None else 0
        self._position[AT_PLAIN] = -1 if self._ended else plain

    def _is_valid(self) -> bool:
        """Return whether the position is valid in this thread."""
        return self._position[AT_EPOCH] == self._state_cache.epoch and self._position[AT_THREAD] == get_ident()

    def _valid_state_cache(self) -> StateCache:
        """Return the state cache, after making the position valid in it."""
        if not self._is_valid():
            self._replay()
        return self._state_cache

    def _set_after(self, state_cache: StateCache, item: int | bytes) -> int:
        """Return the set after a token or bytes: at.DEAD if a token is refused, -2 - i if byte i is refused."""
        if isinstance(item, int):
            return state_cache.run(entry_points.advance_token, self._set, item)
        return state_cache.advance_bytes(self._set, item)

    def _retry_evicted(self, query: Callable[[StateCache], _T]) -> _T:
        """Call `query` with this matcher's state cache and return the result. Retry after an eviction."""
        for _ in range(MOST_ATTEMPTS):
            try:
                return query(self._valid_state_cache())
            except StateCacheEvicted:
                continue
            except ConstrainError:
                raise
            except BaseException:  # KeyboardInterrupt: the state cache may be inconsistent
                self._state_cache.lose()
                raise
        raise _too_small(self.constraint.limits.state_cache_bytes)

    def _completable_set_after(self, state_cache: StateCache, token: int) -> int:
        """Return the set after a token.

        Return at.DEAD if the token is refused or no tokens can complete the text after it.
        """
        after, spellable = self._set_after(state_cache, token), self.constraint.spellable
        return after if after <= 0 or spellable is None or spellable.can_finish(state_cache, after) else at.DEAD
