"""AcceptedItems: the tokens and texts that a Matcher has accepted, with the set before each.

They are records in memory that kernels append to (`kernels.call_layout`), so that advancing a batch of positions is
one call without a line of Python for each.
"""

from __future__ import annotations

from array import array

from ..kernels.call_layout import AT_CAPACITY, AT_HISTORY, AT_LENGTH, HISTORY_ITEM, HISTORY_SET, HISTORY_W

__all__ = ["AcceptedItems"]

FIRST_CAPACITY = 32
"""Records of a new matcher: 256 bytes."""


class AcceptedItems:
    """The history of a position: what was accepted, and the set before each item.

    Parameters
    ----------
    position : array of int64
        The record of the position, which holds the length and the address of the history.
    copied : AcceptedItems, optional
        The history to begin with.
    """

    __slots__ = ("position", "records", "texts")

    def __init__(self, position: array[int], copied: AcceptedItems | None = None) -> None:
        self.position = position
        self.records: array[int]
        self.texts: list[bytes]
        if copied is None:
            self.records, self.texts = array("i", bytes(4 * HISTORY_W * FIRST_CAPACITY)), []
        else:
            self.records, self.texts = copied.records[:], copied.texts[:]
        address, size = self.records.buffer_info()
        position[AT_HISTORY], position[AT_CAPACITY] = address, size // HISTORY_W

    def _publish(self) -> None:
        """Tell the kernels where the records are, which have moved."""
        address, size = self.records.buffer_info()
        self.position[AT_HISTORY], self.position[AT_CAPACITY] = address, size // HISTORY_W

    def __len__(self) -> int:
        return self.position[AT_LENGTH]

    def __getitem__(self, index: int) -> int | bytes:
        """Return the token, or the text that was accepted as bytes, at an index from 0 on."""
        item = self.records[HISTORY_W * index + HISTORY_ITEM]
        return item if item >= 0 else self.texts[-1 - item]

    def set_before(self, index: int) -> int:
        """Return the set before an item."""
        return self.records[HISTORY_W * index + HISTORY_SET]

    def store_set(self, index: int, number: int) -> None:
        """Replace the set before an item, which has another id since the state cache was evicted."""
        self.records[HISTORY_W * index + HISTORY_SET] = number

    def reserve(self) -> None:
        """Make space for another record."""
        if len(self) >= self.position[AT_CAPACITY]:
            self.position[AT_CAPACITY] = 0  # the records move: no kernel may write to where they were
            self.records.frombytes(bytes(4 * HISTORY_W * max(FIRST_CAPACITY, len(self) // 2)))
            self._publish()

    def append(self, item: int | bytes, before: int) -> None:
        """Append an item and the set before it. The length is written last, so that an interrupt leaves no part."""
        self.reserve()
        number = item if isinstance(item, int) else -1 - len(self.texts)
        if not isinstance(item, int):
            self.texts.append(item)
        first = HISTORY_W * len(self)
        self.records[first + HISTORY_SET], self.records[first + HISTORY_ITEM] = before, number
        self.position[AT_LENGTH] += 1

    def truncate(self, length: int) -> None:
        """Drop all items after the first `length`."""
        dropped = self.records[HISTORY_W * length + HISTORY_ITEM : HISTORY_W * len(self) : HISTORY_W]
        self.position[AT_LENGTH] = length
        if self.texts:
            del self.texts[next((-1 - item for item in dropped if item < 0), len(self.texts)) :]

    def tokens(self) -> list[int]:
        """Return the tokens, without texts that were accepted as bytes."""
        items = self.records[HISTORY_ITEM : HISTORY_W * len(self) : HISTORY_W].tolist()
        return [item for item in items if item >= 0] if self.texts else items

    def to_list(self) -> list[int | bytes]:
        """Return all items."""
        items = self.records[HISTORY_ITEM : HISTORY_W * len(self) : HISTORY_W]
        return [item if item >= 0 else self.texts[-1 - item] for item in items]
