"""Next masks: make the masks of the sets that may follow the set of a text, while a model computes.

Whichever token is chosen, the next step then finds its set and mask stored. `kernels.next_masks` lists what may follow,
likely tokens first, and makes some ten masks in a call; what a mask lacks (a rule, a row, memory) is its request, which
the caller of this serves or leaves. Masks of members that must differ are not made: their text makes each set unique.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from ..kernels import layout as at
from ..kernels.call_layout import FIRST_TOKEN
from ..kernels.entry_points import address_of, fill_next_masks, list_likely

if TYPE_CHECKING:
    from .state_cache import StateCache

__all__ = ["NextMasks"]

WORK_SHARE = 2
"""Divisor of Limits.work: the part that next masks may take for one state cache until it is evicted."""
MEMORY_SHARE = 8
"""Divisor of Limits.state_cache_bytes: the memory in use from which on no masks are made ahead."""
MOST_REQUESTS = 64
"""Most requests of one set of the text that are served: each is a unit of up to a millisecond."""
CALL_WORK = 20
"""Units of work that a call counts in addition to its closures and trie nodes."""


class NextMasks:
    """The next masks of the texts of one state cache.

    Attributes
    ----------
    finished : set of int
        Sets of configurations whose next masks are made, as far as they can be.
    work_left : int
        Units of work that may still be spent.
    """

    def __init__(self, words: int, work: int) -> None:
        self.finished: set[int] = set()
        self.work_left = work // WORK_SHARE
        self.likely, self.scratch = np.empty(words, np.int32), np.empty(words, np.int32)

    def list_units(self, cache: StateCache, number: int, serve: Callable[[int, int], bool]) -> Iterator[bool]:
        """Make masks after set `number` at each step of the iterator, and yield True.

        `serve` is called with the status and the argument of a request, and returns whether it has been served.
        """
        flags = cache.arrays[at.SETS][number * at.SET_W + at.SET_FLAGS]
        if number in self.finished or flags & (at.IS_MEMBER | at.HAS_CANDIDATES):
            return
        end, place, requests = FIRST_TOKEN + 32 * cache.table.words, -1, 0
        likely, scratch = address_of(self.likely), address_of(self.scratch)
        while place < end and self.may_go_on(cache):
            before = self._count_work(cache)
            if place < 0:
                result = -1 if list_likely(cache.address, number, likely) < 0 else 0
            else:
                result = fill_next_masks(cache.address, number, place, likely, scratch)
            self.work_left -= CALL_WORK + self._count_work(cache) - before
            if result >= 0:
                place = result
                yield True
                continue
            place = -1 - result if place >= 0 else -1
            requests += 1
            head = cache.arrays[at.HEAD]
            if requests <= MOST_REQUESTS and serve(int(head[at.STATUS]), int(head[at.ARGUMENT])):
                yield True
            elif place < 0:
                break
            else:
                place += 1
        self.finished.add(number)

    def may_go_on(self, cache: StateCache) -> bool:
        """Return whether the budgets allow more."""
        return self.work_left > 0 and MEMORY_SHARE * cache.bytes_filled() < cache.most_bytes

    def _count_work(self, cache: StateCache) -> int:
        """Return the work of kernels so far: closures, and eight trie nodes as one."""
        head = cache.arrays[at.HEAD]
        return int(head[at.CLOSURES]) + int(head[at.VISITED]) // 8
