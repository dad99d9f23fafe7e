"""A context of small arrays on which single kernels are called. Guard words around each array must not change."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from constrain.engine.state_cache import HASHES
from constrain.kernels import layout as at
from constrain.kernels.growth import rehash_table
from constrain.vocabulary.mask_table import data_address

GAP, MARK = 256, 0x5A5A5A5A
INTERNED = (at.SETS, at.CONFIGS, at.NODES, at.EDGES, at.CURSORS, at.OBJECTS, at.NAMES, at.GUARDS, at.PAIRS, at.LISTS,
            at.CODE)  # fmt: skip


class Context:
    """A context whose slots have these lengths, filled with `rubbish`, as kernels must not rely on cleared memory.

    arrays: int32 values of each slot. mark: the guard words, which may look like a record. HEAD and the first records
    are as in a state cache after a reset.
    """

    def __init__(self, lengths: dict[int, int], rubbish: int = 0, mark: int = MARK) -> None:
        self.rubbish, self.mark = rubbish, mark
        self.arrays: dict[int, NDArray[np.int32]] = {}
        self._memory: dict[int, NDArray[np.int32]] = {}
        self.context = np.zeros(2 * at.SLOTS, np.int64)
        self.address = data_address(self.context)  # type: ignore[arg-type]
        small = dict.fromkeys(HASHES.values(), 16) | dict.fromkeys(INTERNED, 64)  # what `rehash_table` looks at
        for slot, length in {at.HEAD: at.HEAD_W, **small, **lengths}.items():
            self.put(slot, [rubbish] * length)
        if at.SEEN in lengths:
            self[at.SEEN][:] = 0
        self[at.LIST_HASH][:] = 0
        self.reset()

    def __getitem__(self, slot: int) -> NDArray[np.int32]:
        return self.arrays[slot]

    @property
    def head(self) -> NDArray[np.int32]:
        return self.arrays[at.HEAD]

    def put(self, slot: int, values: Sequence[int] | NDArray[np.int32]) -> None:
        """Set the values of a slot."""
        memory = np.full(len(values) + 2 * GAP, self.mark, np.int32)
        memory[GAP : GAP + len(values)] = values
        self._memory[slot] = memory
        self.arrays[slot] = memory[GAP : GAP + len(values)]
        self.context[2 * slot : 2 * slot + 2] = data_address(self.arrays[slot]), len(values)

    def double(self, slot: int) -> None:
        """Double the length of a slot, as a state cache does; the new part has rubbish, or zeros in SEEN."""
        old = self.arrays[slot]
        fill = 0 if slot == at.SEEN else self.rubbish
        self.put(slot, np.concatenate([old, np.full(len(old), fill, np.int32)]))

    def reset(self) -> None:
        """Reset the counts, and leave the memory as it is."""
        closures = int(self.head[at.CLOSURES]) if self.head[at.CLOSURES] != self.rubbish else 0
        self.head[:] = 0
        self.head[at.CLOSURES] = closures
        for field in (at.N_SETS, at.N_NODES, at.N_OBJECTS, at.N_PAIRS, at.N_LISTS):
            self.head[field] = 1
        self.head[at.N_NAMES] = at.ROOTS
        first = {at.SETS: [-1] * at.SET_W, at.NODES: [0, 0, 1, -1], at.NAMES: [-1] * (3 * at.ROOTS)}
        for slot, values in first.items():
            if slot in self.arrays:
                self.arrays[slot][: len(values)] = values

    def check(self) -> None:
        """Assert that no guard word has changed."""
        for slot, memory in self._memory.items():
            assert (memory[:GAP] == self.mark).all() and (memory[-GAP:] == self.mark).all(), (
                f"written beyond slot {slot}"
            )

    def call(self, kernel: Callable[..., int], *arguments: int) -> int:
        """Call a kernel and return its result: -1 if it requests something."""
        result = kernel(self.address, *arguments)
        self.check()
        return int(result)

    def run(self, kernel: Callable[..., int], *arguments: int) -> int:
        """As `call`, growing arrays on request. Return -1 if the kernel requests anything else."""
        while True:
            result = self.call(kernel, *arguments)
            if result != -1 or self.request[0] != at.FULL:
                return result
            slot = self.request[1]
            for part in dict.fromkeys([slot, HASHES.get(slot, slot)]):
                self.double(part)
            if slot in HASHES:
                rehash_table(self.address, HASHES[slot])
                self.check()

    @property
    def request(self) -> tuple[int, int]:
        """Return the request of a kernel that returned -1: the status, and the slot, rule, leaf or state."""
        return int(self.head[at.STATUS]), int(self.head[at.ARGUMENT])
