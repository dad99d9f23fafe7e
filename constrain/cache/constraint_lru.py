"""LRU cache of Constraints: compiling an equal source again in one process is a lookup.

A Constraint includes its state caches, so all results computed for earlier texts are available from the first mask on.
They grow with every text, and are dropped before any Constraint is: computing states again takes less than compiling.
An evicted Constraint stays alive as long as a Matcher refers to it.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from typing import Any, Generic, Protocol, TypeVar

__all__ = ["LRU"]


SPARE_SHARE = 32
"""When `most_bytes` are exceeded, 1 / SPARE_SHARE of them is made free, so that objects are not visited at each `get`.

The memory of a process rises and falls by a multiple of this part, since state caches touch more pages than they fill.
"""
LARGE_SHARE = 16
"""An object that uses more than 1 / LARGE_SHARE of `most_bytes` without its state caches is evicted where those of
others are dropped: many small ones are worth more."""
MEASURED_AT_ONCE = 4
"""Objects that are measured at each access. One takes about 10 µs, which is why they take turns."""


class Sized(Protocol):
    """An object that can be cached: it belongs to a vocabulary, reports its size, and can become smaller."""

    vocabulary: Any

    @property
    def bytes_used(self) -> int:
        """Bytes of memory in use."""
        ...

    def drop_state_caches(self) -> None:
        """Free what can be computed again."""
        ...


_T = TypeVar("_T", bound=Sized)


class LRU(Generic[_T]):
    """A cache that evicts the least recently used objects beyond `most` objects or `most_bytes` bytes.

    Beyond `most_bytes`, first the state caches of objects are dropped, those of the least recently used ones before
    others, and with them objects that are large without their state caches. `most` = 0 disables the cache. `hits` and
    `misses` count the results of `get`. An object grows while it is in use, which may be long after it was asked for:
    its size is measured when another one becomes the most recently used, and then again and again, a few objects at
    each access.
    """

    def __init__(self, most: int = 64, most_bytes: int = 128 << 20) -> None:
        self.most, self.most_bytes = most, most_bytes
        self.hits = self.misses = 0
        self._objects: OrderedDict[tuple[int, Hashable], _T] = OrderedDict()
        self._sizes: dict[tuple[int, Hashable], int] = {}
        self._held: dict[tuple[int, Hashable], int] = {}
        self._turns: OrderedDict[tuple[int, Hashable], None]  # the first one is measured next
        self._total = 0
        self._latest: tuple[int, Hashable] | None = None
        self._is_updating = False  # also true after an update that an exception ended
        self._after_fork()
        os.register_at_fork(after_in_child=self._after_fork)

    def _after_fork(self) -> None:
        """Replace the lock, which a thread of the parent may hold, and recompute what it may have been updating."""
        self._lock = threading.Lock()
        self._recompute()

    def _begin_update(self) -> None:
        """Begin an update. The lock is held.

        An interrupt (KeyboardInterrupt) can end an update at any line, so what it left is recomputed before the next.
        """
        if self._is_updating:
            self._recompute()
        self._is_updating = True

    def _recompute(self) -> None:
        """Make everything agree with `_objects`."""
        self._sizes = {key: size for key, size in self._sizes.items() if key in self._objects}
        self._total = sum(self._sizes.values())
        self._turns = OrderedDict.fromkeys(self._objects)
        self._held = {key: self._held.get(key, 0) for key in self._objects}

    def __len__(self) -> int:
        return len(self._objects)

    @property
    def bytes_used(self) -> int:
        """The sum of the sizes that were measured."""
        return self._total

    def get(self, vocabulary: Any, key: Hashable) -> _T | None:
        """Return the object that is cached under a key for this vocabulary object, or None."""
        # The id is unique while the object is cached, since it refers to the vocabulary.
        entry = id(vocabulary), key
        with self._lock:
            cached = self._objects.get(entry)
            if cached is None:
                self.misses += 1
            else:
                self.hits += 1
            if cached is not None and self._latest != entry:
                self._begin_update()
                self._measure_some()
                self._latest = entry
                self._objects.move_to_end(entry)
                self._evict()
                self._is_updating = False
            return cached

    def put(self, key: Hashable, made: _T, held: int = 0) -> _T:
        """Cache an object. Return the cached one, which another thread may have stored first.

        `held` are bytes that it uses beyond its `bytes_used`, for ever.
        """
        if not self.most:
            return made
        entry = id(made.vocabulary), key
        with self._lock:
            self._begin_update()
            self._measure_some()
            self._held.setdefault(entry, held)  # first: it cannot be recomputed
            cached = self._objects.setdefault(entry, made)
            self._turns.setdefault(entry)
            self._objects.move_to_end(entry)
            self._latest = entry
            self._evict()
            self._is_updating = False
            return cached

    @contextmanager
    def resized(self, most: int, most_bytes: int) -> Iterator[None]:
        """Have other bounds within the block, and evict after it what exceeds the former ones."""
        before = self.most, self.most_bytes
        self.most, self.most_bytes = most, most_bytes
        try:
            yield
        finally:
            self.most, self.most_bytes = before
            if self.most:
                with self._lock:
                    self._begin_update()
                    self._evict()
                    self._is_updating = False
            else:
                self.clear()

    def clear(self) -> None:
        """Evict everything."""
        with self._lock:
            self._begin_update()
            self._objects.clear()
            self._sizes.clear()
            self._held.clear()
            self._turns.clear()
            self._total, self._latest = 0, None
            self._is_updating = False

    def _evict(self) -> None:
        """Evict what exceeds the bounds, but not the most recently used object. The lock is held."""
        if self._total > self.most_bytes:
            for entry in list(self._objects)[:-1]:
                self._objects[entry].drop_state_caches()
                self._measure(entry)
                if self._sizes[entry] > self.most_bytes // LARGE_SHARE:
                    self._remove(entry)
                if self._total <= self.most_bytes - self.most_bytes // SPARE_SHARE:
                    break
        while len(self._objects) > 1 and (len(self._objects) > self.most or self._total > self.most_bytes):
            self._remove(next(iter(self._objects)))

    def _remove(self, entry: tuple[int, Hashable]) -> None:
        """Evict an object."""
        del self._objects[entry], self._turns[entry], self._held[entry]
        self._total -= self._sizes.pop(entry, 0)

    def _measure_some(self) -> None:
        """Update the size of the most recently used object, whose position another one takes, and of a few others."""
        if self._latest is not None and self._latest in self._objects:
            self._measure(self._latest)
        for _ in range(min(MEASURED_AT_ONCE, len(self._turns))):
            entry = next(iter(self._turns))
            self._turns.move_to_end(entry)
            self._measure(entry)

    def _measure(self, entry: tuple[int, Hashable]) -> None:
        """Update the size of an object."""
        size = self._objects[entry].bytes_used + self._held[entry]
        self._total += size - self._sizes.get(entry, 0)
        self._sizes[entry] = size
