"""Layout of what `position_sets` reads and writes (constants, and the length of its scratch)."""

from __future__ import annotations

__all__ = ["find_scratch_length"]

INPUT_WORDS, INPUT_CLASSES, INPUT_UNITS = 0, 1, 2
"""Fields of the header of the input: int64s of a set, classes of characters, units of work for a state."""
INPUT_W = 3
"""Length of that header."""
FOUND_STATES, FOUND_UNITS, FOUND_STEPS = 0, 1, 2
"""Fields of the header of the scratch: states, units of work, and positions that were united one by one."""
FOUND_W = 3
"""Length of that header. After it is the set of the positions that were united one by one."""
READINGS_PER_STATE = 6
"""Distinct sets of positions that read a character for which there is space, for each state."""


def find_scratch_length(words: int, capacity: int) -> int:
    """Return the length of the scratch in int64s, for sets of so many words and so many states."""
    readings = READINGS_PER_STATE * capacity
    tables = _find_table_size(capacity + 1) + _find_table_size(readings + 1)
    return FOUND_W + words * (capacity + readings + 3) + tables + readings


def _find_table_size(entries: int) -> int:
    """Return what `automata_records.find_table_size` does."""
    return max(4, 1 << (2 * entries - 1).bit_length())
