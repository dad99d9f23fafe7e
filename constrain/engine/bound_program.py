"""BoundProgram: a Program bound to a Vocabulary, with one state cache per thread."""

from __future__ import annotations

import threading

from ..base.options import Limits
from ..program.program import Program
from ..vocabulary.vocabulary import Vocabulary
from .spellable_positions import SpellablePositions
from .state_cache import StateCache

__all__ = ["BoundProgram"]

MOST_STATE_CACHES = 64
"""Number of state caches of one program from which on those of finished threads are deleted."""


class BoundProgram:
    """The part of a Constraint, its only subclass, that a Matcher needs: the program and its state caches.

    `spellable` is the search for positions that tokens can complete, for a vocabulary that lacks single bytes; else
    None.
    """

    def __init__(self, program: Program, vocabulary: Vocabulary, limits: Limits) -> None:
        self.program, self.vocabulary, self.limits = program, vocabulary, limits
        self.program.work = limits.work
        self.spellable = SpellablePositions.of(vocabulary)
        self._state_caches: dict[tuple[int, int], StateCache] = {}  # by thread and worker slot

    @property
    def bytes_used(self) -> int:
        """Bytes of the code and of the filled parts of the state caches."""
        state_caches = list(self._state_caches.values())
        return self.program.code.nbytes + sum(state_cache.bytes_filled() for state_cache in state_caches)

    def state_cache(self, slot: int = 0) -> StateCache:
        """Return this thread's state cache. State caches are never shared between threads, so masking takes no lock.

        `slot` is the worker slot: a thread has several where `fill_masks` distributes its matchers over the cores.
        """
        mine = threading.get_ident(), slot
        found = self._state_caches.get(mine)
        if found is None or found.is_lost:
            if len(self._state_caches) >= MOST_STATE_CACHES:
                running = {t.ident for t in threading.enumerate()}
                for gone in [key for key in list(self._state_caches) if key[0] not in running]:
                    self._state_caches.pop(gone, None)
            found = self._state_caches[mine] = StateCache(self.program, self.vocabulary, self.limits, found)
        return found
