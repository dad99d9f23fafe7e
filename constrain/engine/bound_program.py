"""BoundProgram: a Program bound to a Vocabulary, with one state cache per thread."""

from __future__ import annotations

import threading
from typing import Protocol

from ..base.options import Limits
from ..program.program import Program
from ..vocabulary.vocabulary import Vocabulary
from .spellable_positions import SpellablePositions
from .state_cache import StateCache

__all__ = ["BoundProgram", "Learned"]

MOST_STATE_CACHES = 64
"""Number of state caches of one program from which on those of finished threads are deleted."""


class Learned(Protocol):
    """Something that was learned about a constraint, such as a table of values for sampling."""

    @property
    def nbytes(self) -> int:
        """Its size in memory, which counts towards `BoundProgram.bytes_used`."""
        ...


class BoundProgram:
    """The part of a Constraint, its only subclass, that a Matcher needs: the program and its state caches.

    `spellable` is the search for positions that tokens can complete, for a vocabulary that lacks single bytes, and
    None for others.
    """

    def __init__(self, program: Program, vocabulary: Vocabulary, limits: Limits) -> None:
        self.program, self.vocabulary, self.limits = program, vocabulary, limits
        self.program.work = limits.work
        self.spellable = SpellablePositions(vocabulary) if vocabulary.missing_bytes else None
        self._state_caches: dict[tuple[int, int], StateCache] = {}  # by thread and worker slot
        self._epoch = -1  # the greatest of the state caches that were dropped
        self.learned: dict[type, Learned] = {}  # what other packages have learned about it from calls, by class

    @property
    def bytes_used(self) -> int:
        """Bytes of the code, of the filled parts of the state caches, and of what was learned."""
        state_caches = list(self._state_caches.values())
        learned = sum(one.nbytes for one in list(self.learned.values()))
        return self.program.code.nbytes + learned + sum(state_cache.bytes_filled() for state_cache in state_caches)

    def drop_state_caches(self) -> None:
        """Drop all state caches, and what was learned. May be called by any thread: a Matcher in use keeps its own
        until it is deleted.
        """
        self.learned.clear()
        dropped, self._state_caches = list(self._state_caches.values()), {}
        self._epoch = max([self._epoch, *(state_cache.epoch for state_cache in dropped)])

    def state_cache(self, slot: int = 0) -> StateCache:
        """Return this thread's state cache. State caches are never shared between threads, so masking takes no lock.

        `slot` is the worker slot: a thread has several where `fill_masks` distributes its matchers over the cores.
        """
        key = threading.get_ident(), slot
        state_cache = self._state_caches.get(key)
        if state_cache is None or state_cache.is_lost:
            if len(self._state_caches) >= MOST_STATE_CACHES:
                running = {t.ident for t in threading.enumerate()}
                for finished in [one for one in list(self._state_caches) if one[0] not in running]:
                    self._state_caches.pop(finished, None)
            epoch = self._epoch if state_cache is None else max(self._epoch, state_cache.epoch)
            state_cache = StateCache(self.program, self.vocabulary, self.limits, epoch)
            self._state_caches[key] = state_cache
        return state_cache
