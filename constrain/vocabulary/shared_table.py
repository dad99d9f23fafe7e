"""What the disk caches of a MaskTable need of it."""

from __future__ import annotations

from collections.abc import Mapping
from threading import Lock
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = ["SharedTable"]


class SharedTable(Protocol):
    """A `mask_table.MaskTable`, whose attributes and methods these are."""

    lock: Lock
    is_broken: bool
    fingerprint: str
    tokens: int
    words: int
    suffix_tries: dict[bytes, tuple[int, int]]
    trie_names: dict[int, bytes]

    @property
    def arrays(self) -> Mapping[int, NDArray[np.int32]]:
        """The arrays by slot."""
        ...

    def name_state(self, state: int) -> bytes | None:
        """Return a digest of a leaf state that is the same in every process, if it is known."""
        ...

    def store_row(self, row: NDArray[np.int32]) -> int:
        """Return the number of a row, storing it unless there is an equal one; -1 if the table is full."""
        ...

    def add_trie(self, name: bytes, place: tuple[int, int]) -> None:
        """Register a suffix trie."""
        ...
