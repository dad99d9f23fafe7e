"""LRU cache of Constraints: compiling an equal source again in one process is a lookup.

A Constraint comes with its state caches, so all that its earlier texts have computed is known from the first mask on.
An evicted Constraint lives on where a Matcher holds it.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Hashable
from typing import Any, Generic, Protocol, TypeVar

__all__ = ["LRU"]


class Sized(Protocol):
    """A cached object: belongs to a vocabulary and knows its size."""

    vocabulary: Any

    @property
    def bytes_used(self) -> int:
        """Bytes of memory in use."""
        ...


_T = TypeVar("_T", bound=Sized)


class LRU(Generic[_T]):
    """Least recently used objects are evicted beyond `most` objects or `most_bytes`; most = 0 switches the cache off.

    The bytes of an object are counted when another becomes the latest, since they grow while it is used.
    """

    def __init__(self, most: int = 64, most_bytes: int = 128 << 20) -> None:
        self.most, self.most_bytes = most, most_bytes
        self._kept: OrderedDict[tuple[int, Hashable], _T] = OrderedDict()
        self._bytes: dict[tuple[int, Hashable], int] = {}
        self._total = 0
        self._latest: tuple[int, Hashable] | None = None
        self._after_fork()
        os.register_at_fork(after_in_child=self._after_fork)

    def _after_fork(self) -> None:
        """Replace the lock, which a thread of the parent may hold, and count anew what that thread was counting."""
        self._lock = threading.Lock()
        self._bytes = {key: size for key, size in self._bytes.items() if key in self._kept}
        self._total = sum(self._bytes.values())

    def __len__(self) -> int:
        return len(self._kept)

    @property
    def bytes_used(self) -> int:
        """Bytes that are counted."""
        return self._total

    def get(self, vocabulary: Any, key: Hashable) -> _T | None:
        """Return the object cached under a key for this very vocabulary, or None."""
        # Nothing else has this id while the object, which holds the vocabulary, is cached.
        place = id(vocabulary), key
        with self._lock:
            found = self._kept.get(place)
            if found is not None and self._latest != place:
                self._weigh()
                self._latest = place
                self._kept.move_to_end(place)
            return found

    def put(self, key: Hashable, made: _T) -> _T:
        """Cache an object. Return the one that is cached, which another thread may have put there first."""
        if not self.most:
            return made
        place = id(made.vocabulary), key
        with self._lock:
            self._weigh()
            found = self._kept.setdefault(place, made)
            self._kept.move_to_end(place)
            self._latest = place
            while len(self._kept) > 1 and (len(self._kept) > self.most or self._total > self.most_bytes):
                old, _ = self._kept.popitem(last=False)
                self._total -= self._bytes.pop(old, 0)
            return found

    def clear(self) -> None:
        """Evict everything."""
        with self._lock:
            self._kept.clear()
            self._bytes.clear()
            self._total, self._latest = 0, None

    def _weigh(self) -> None:
        """Count the bytes of the latest object, which another is about to follow."""
        place = self._latest
        if place is not None and place in self._kept:
            size = self._kept[place].bytes_used
            self._total += size - self._bytes.get(place, 0)
            self._bytes[place] = size
