"""Access to the parts of the record of an automaton, and hashing (functions that are linked into kernels)."""

from __future__ import annotations

from typing import Any

from numba import types

from .automata_layout import CLASSES, HEADER_W, RANGES, STATES
from .context_views import at
from .jit.compilation import inlined

__all__ = [
    "READ",
    "READ_BYTES",
    "WRITE",
    "accepting_of",
    "bounds_of",
    "classes_of",
    "delta_of",
    "find_table_size",
    "mix",
]

READ, WRITE = types.Array(types.int32, 1, "C", readonly=True), types.int32[::1]
READ_BYTES = types.Array(types.uint8, 1, "C", readonly=True)
"""Types of the arrays that entry points read, and of those that they write."""

MULTIPLIER = 0x9E3779B97F4A7C15 - (1 << 64)
"""The odd number nearest to 2^64 divided by the golden ratio, as an int64 (Knuth, volume 3, section 6.4)."""


@inlined("pointer(int64)")
def bounds_of(record: Any) -> Any:
    """Return the bounds of the record at an address."""
    return at(record + 4 * HEADER_W)


@inlined("pointer(int64)")
def classes_of(record: Any) -> Any:
    """Return the classes of the record at an address."""
    return at(record + 4 * (HEADER_W + at(record)[RANGES]))


@inlined("pointer(int64)")
def delta_of(record: Any) -> Any:
    """Return the transitions of the record at an address."""
    return at(record + 4 * (HEADER_W + 2 * at(record)[RANGES]))


@inlined("pointer(int64)")
def accepting_of(record: Any) -> Any:
    """Return the acceptance of the states of the record at an address."""
    head = at(record)
    return at(record + 4 * (HEADER_W + 2 * head[RANGES] + head[STATES] * head[CLASSES]))


@inlined("int64(int64)")
def mix(h: Any) -> Any:
    """Return a hash of an int64, of which the low bits depend on all bits."""
    h = h * MULTIPLIER
    return h ^ ((h >> 32) & 0xFFFFFFFF)


@inlined("int64(int64)")
def find_table_size(entries: Any) -> Any:
    """Return the size of a hash table of so many entries: a power of 2, at most half full."""
    table_size = 4
    while table_size < 2 * entries:
        table_size *= 2
    return table_size
