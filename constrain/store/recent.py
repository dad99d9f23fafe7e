"""Recent: the Constraints compiled last in this process, so that compiling an equal source again is looking it up.

A Constraint comes with its arenas, so all that its earlier texts have taught is known from the first mask on. They are
kept by how lately they were used, up to a number and to a number of bytes. A Constraint that is driven out lives on
where a Matcher holds it.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Hashable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..compile import Constraint
    from ..tokens.vocabulary import Vocabulary

__all__ = ["Recent"]


class Recent:
    """most, most_bytes: Constraints kept and bytes that their arenas fill; most = 0 switches it off.

    Bytes are counted when a Constraint gives way to another, since what one fills grows while it is used.
    """

    def __init__(self, most: int = 64, most_bytes: int = 128 << 20) -> None:
        self.most, self.most_bytes = most, most_bytes
        self._unlock()
        os.register_at_fork(after_in_child=self._unlock)
        self._kept: OrderedDict[tuple[int, Hashable], Constraint] = OrderedDict()
        self._bytes: dict[tuple[int, Hashable], int] = {}
        self._total = 0
        self._latest: tuple[int, Hashable] | None = None

    def _unlock(self) -> None:
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._kept)

    @property
    def bytes_used(self) -> int:
        """Bytes that are counted."""
        return self._total

    def get(self, vocabulary: Vocabulary, asked: Hashable) -> Constraint | None:
        """The Constraint of what was asked for, if it is kept, for that very Vocabulary."""
        key = (
            id(vocabulary),
            asked,
        )  # Nothing else has this id while the Constraint, which holds the Vocabulary, is kept.
        with self._lock:
            found = self._kept.get(key)
            if found is not None and self._latest != key:
                self._weigh()
                self._latest = key
                self._kept.move_to_end(key)
            return found

    def put(self, asked: Hashable, made: Constraint) -> Constraint:
        """Keeps a Constraint. What is returned is the one that is kept: another thread may have been quicker."""
        if not self.most:
            return made
        key = id(made.vocabulary), asked
        with self._lock:
            self._weigh()
            found = self._kept.setdefault(key, made)
            self._kept.move_to_end(key)
            self._latest = key
            while len(self._kept) > 1 and (len(self._kept) > self.most or self._total > self.most_bytes):
                old, _ = self._kept.popitem(last=False)
                self._total -= self._bytes.pop(old, 0)
            return found

    def clear(self) -> None:
        """Forgets all."""
        with self._lock:
            self._kept.clear()
            self._bytes.clear()
            self._total, self._latest = 0, None

    def _weigh(self) -> None:
        """Counts the bytes of the latest, which is about to be that no more."""
        key = self._latest
        if key is not None and key in self._kept:
            weight = self._kept[key].bytes_used
            self._total += weight - self._bytes.get(key, 0)
            self._bytes[key] = weight
