"""Leaf states of numbers, which Python computes, in the arrays of a MaskTable (kernels)."""

from __future__ import annotations

from typing import Any

from numba import types

from .automata_records import READ
from .context_views import at, store_release, view
from .jit.compilation import entry

from .context_layout import LEAF_NEXT, LEAVES, N_LEAVES, TABLE  # isort: skip
from .table_layout import (  # isort: skip
    LEAF_ALLOWED, LEAF_BY_LENGTH, LEAF_BYTES, LEAF_EXPANDED, LEAF_FLAGS, LEAF_MACHINE, LEAF_ROW, LEAF_SHORT, LEAF_SLOT,
    LEAF_STATE, LEAF_STAYING_DEPTH, LEAF_SUFFIXES, LEAF_W, WIDE_LEAF,
)  # fmt: skip


@entry("int64(int64, int64, int64, int64)", releases_gil=False)
def append_number_leaf(t: Any, machine: Any, state: Any, flags: Any) -> Any:
    """Append a leaf state without transitions, for which there is space, and return it."""
    counts, leaves = view(t, TABLE), view(t, LEAVES)
    q = counts[N_LEAVES] + 0
    record = LEAF_W * q
    for k in range(LEAF_W):
        leaves[record + k] = 0
    leaves[record + LEAF_MACHINE], leaves[record + LEAF_STATE], leaves[record + LEAF_FLAGS] = machine, state, flags
    leaves[record + LEAF_ROW] = leaves[record + LEAF_SUFFIXES] = -1
    leaves[record + LEAF_BY_LENGTH] = leaves[record + LEAF_SHORT] = leaves[record + LEAF_SLOT] = -1
    counts[N_LEAVES] = q + 1
    return q


@entry([types.int64(types.int64, types.int64, READ)], releases_gil=False)
def write_number_transitions(t: Any, q: Any, pairs: Any) -> Any:
    """Write the transitions of a leaf state, pairs of a byte and the leaf state after it. Return 0."""
    leaves, following, words = view(t, LEAVES), view(t, LEAF_NEXT), at(pairs.ctypes.data)
    record, count = LEAF_W * q, len(pairs) // 2
    for byte in range(256):
        following[256 * q + byte] = -1
    for w in range(8):
        leaves[record + LEAF_BYTES + w] = 0
    for k in range(count):
        byte = words[2 * k] + 0
        following[256 * q + byte] = words[2 * k + 1]
        leaves[record + LEAF_BYTES + (byte >> 5)] |= 1 << (byte & 31)
    leaves[record + LEAF_ALLOWED] = count
    leaves[record + LEAF_STAYING_DEPTH] = 0  # computed again, now that there are transitions
    if count < WIDE_LEAF:
        leaves[record + LEAF_ROW] = -2
    store_release(leaves, record + LEAF_FLAGS, leaves[record + LEAF_FLAGS] | LEAF_EXPANDED)
    return 0
