"""MemoryBlock: the initial memory of all slots of a state cache, in one allocation that later state caches reuse."""

from __future__ import annotations

import mmap
from contextlib import suppress
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ..base.reserved_memory import map_pages
from ..kernels import layout as at
from ..vocabulary.mask_table import MaskTable, data_address

__all__ = ["INITIAL_LENGTHS", "RESERVED", "MemoryBlock", "SlotArrays"]

INITIAL_LENGTHS: dict[int, int] = {
    at.SETS: 2048 * at.SET_W, at.CONFIGS: 32768 * 5, at.SET_HASH: 4096, at.WIDE: 4096 * 256,
    at.NODES: 1024 * 4, at.EDGES: 2048 * 3, at.NODE_HASH: 2048, at.CURSORS: 1024 * 5, at.CURSOR_HASH: 2048,
    at.OBJECTS: 8192, at.OBJECT_HASH: 2048, at.NAMES: 1024 * 3, at.NAME_HASH: 2048,
    at.STARTS: 64, at.ITEMS: 512 * 5, at.SEEN: 1024 * 2, at.CALLS: 256 * 4, at.PENDING_EDGES: 1024 * 5,
    at.MISSING: 4096,
    at.BUFFER: 8192, at.STACK: 16384, at.PATH: 1024,
    at.GUARDS: 512 * at.GUARD_W, at.GUARD_HASH: 2048, at.WORKLIST: 4096,
    at.PAIRS: 1024 * at.PAIR_W, at.PAIR_HASH: 2048, at.LISTS: 1024, at.LIST_HASH: 1024, at.MAY_SHIFT: 1024,
    at.QUESTIONS: 1024 * at.QUESTION_W, at.MASK_HASH: 2048,
    at.LISTING: at.MOST_LEXEMES * at.LEXEME_W, at.UNIONS: 16 * at.UNION_W, at.SCANNERS: 16, at.ROUTE: 512,
    at.INSIDE: 64 * at.INSIDE_W,
}  # fmt: skip
"""Initial length of each slot in int32s. Few constraints need more. A hash table has two entries for each record: a
larger one would take more of the processor's caches, since entries are spread over all of it."""
RESERVED = dict.fromkeys((at.SETS, at.CONFIGS, at.WIDE), 16)
"""Multiples of their initial lengths up to which slots grow in place, where copies of large ones would take longest."""
MASK_SLOTS, LEAST_MASKS = 128, 1 << 13
"""Length of MASKS, in masks and in int32s: masks of small vocabularies take hardly more than their headers."""
LINE = 16
"""int32s of a cache line; slots are aligned to it."""
CLEARED = (at.HEAD, at.STARTS, at.SCANNERS, at.LIST_HASH, at.MASK_HASH)
"""Slots with content in an empty state cache, in the order of the memory, which they begin. LIST_HASH and MASK_HASH are
zero: lists and masks have no fixed width, so an entry cannot be validated by its target."""


class MemoryBlock:
    """The initial memory of all slots of a state cache, in one allocation that later state caches reuse.

    `memory` is int32, over the mapping `pages`, `slices` the slice of each slot, `initial_bytes` the bytes of all of
    these, and `head` that of HEAD as a memoryview. After the slice of a slot is the memory reserved for its growth
    (`RESERVED`); `grown` are the slots that use it. `image` is the content
    of the slots of CLEARED in an empty state cache, `image_head` that of HEAD in it. `context`, at `address`, is the
    context of the state cache that has the block; `initial_context` is its content before a slot has grown. Other hash
    tables need no clearing, since an entry is valid only if its target refers back to it; so pages are touched only
    when used.
    """

    def __init__(self, table: MaskTable) -> None:
        words = table.words
        self.slices, offsets, length = _layout(words, tuple(INITIAL_LENGTHS.items()), tuple(RESERVED.items()))
        self.grown: set[int] = set()
        hint = "Make the constraint smaller, or lower Limits(state_cache_bytes=...)."
        self.pages = map_pages(4 * length, "the state cache of the constraint", hint)
        self.memory: NDArray[np.int32] = np.frombuffer(self.pages, np.int32)
        self.initial_bytes = 4 * sum(part.stop - part.start for part in self.slices.values())
        offsets = offsets.copy()
        offsets[::2] += data_address(self.memory)
        self.initial_context = np.concatenate([offsets, table.context[2 * at.TABLE :]])
        self.context = self.initial_context.copy()
        self.address = data_address(self.context)  # type: ignore[arg-type]
        self.views: dict[int, NDArray[np.int32]] = {}
        self.view(at.SETS)[at.SET_MASK] = -1
        self.view(at.NODES)[:4] = 0, 0, 1, -1
        self.view(at.NAMES)[: 3 * at.ROOTS] = -1
        self.image = np.zeros(self.slices[CLEARED[-1]].stop, np.int32)
        self.image[[at.N_SETS, at.N_NODES, at.N_OBJECTS, at.N_PAIRS, at.N_LISTS, at.N_MASKS]] = 1
        self.image[at.N_NAMES], self.image[at.WORDS] = at.ROOTS, words
        for slot in (at.STARTS, at.SCANNERS):
            self.image[self.slices[slot]] = -1
        self.head, self.image_head = self.view(at.HEAD).data, self.image[self.slices[at.HEAD]].data
        # Views for small writes and copies, which numpy's own machinery takes several times as long for.
        self.cleared_view, self.image_view = self.memory[: self.image.size].data, self.image.data
        self.context_view, self.initial_view = self.context.data, self.initial_context.data
        self.starts_view = self.view(at.STARTS).data

    def view(self, slot: int) -> NDArray[np.int32]:
        """Return the part of `memory` that a slot has initially."""
        view = self.views.get(slot)
        if view is None:
            view = self.views[slot] = self.memory[self.slices[slot]]
        return view

    def capacity(self, slot: int) -> int:
        """Return the int32s up to which a slot grows in place."""
        part = self.slices[slot]
        return RESERVED.get(slot, 1) * int(part.stop - part.start)

    def lengthen(self, slot: int, length: int) -> NDArray[np.int32]:
        """Return a slot with a greater length, up to its capacity."""
        self.grown.add(slot)
        first = self.slices[slot].start
        return self.memory[first : first + length]

    def shorten(self, slot: int) -> None:
        """Give the memory that a slot has grown by back to the system, where it can take it."""
        self.grown.discard(slot)
        part, page = self.slices[slot], mmap.PAGESIZE
        first = -(-4 * part.stop // page) * page
        end = 4 * (part.start + self.capacity(slot)) // page * page  # whole pages: the rest is of other slots
        if first < end and hasattr(mmap, "MADV_DONTNEED"):
            with suppress(OSError):
                self.pages.madvise(mmap.MADV_DONTNEED, first, end - first)

    def shorten_all(self) -> None:
        """Shorten all slots that have grown: each is then as long as in an empty state cache."""
        for slot in [*self.grown]:
            self.shorten(slot)


@lru_cache(4)
def _layout(
    words: int, first: tuple[tuple[int, int], ...], reserved: tuple[tuple[int, int], ...]
) -> tuple[dict[int, slice], NDArray[np.int64], int]:
    """Return the layout of a block: slices, (byte offset, length) of each slot, and the length with all reserves."""
    lengths = {at.HEAD: at.HEAD_W, **dict(first), at.MASKS: max(MASK_SLOTS * words, LEAST_MASKS), at.SPARE: words}
    lengths = {slot: lengths[slot] for slot in dict.fromkeys((*CLEARED, *lengths))}
    multiples, slices, offsets, total = dict(reserved), dict[int, slice](), np.zeros(2 * at.TABLE, np.int64), 0
    for slot, length in lengths.items():
        slices[slot] = slice(total, total + length)
        offsets[2 * slot : 2 * slot + 2] = 4 * total, length
        total += multiples.get(slot, 1) * length
        total += -total % LINE
    return slices, offsets, total


class SlotArrays(dict[int, NDArray[np.int32]]):
    """The array of each slot: a view of the block, created on access, until the slot outgrows it."""

    def __init__(self, block: MemoryBlock) -> None:
        super().__init__(block.views)
        self.block = block

    def __missing__(self, slot: int) -> NDArray[np.int32]:
        array = self[slot] = self.block.view(slot)
        return array
