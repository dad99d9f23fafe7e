"""Subset construction over the positions of a regular expression (a kernel).

A set of positions is a bit set of int64s; bit 0 says that the text may end. Every position has the set of those that
may read after it. The input, an int64 array, is the header, then, each a number of sets: the START set, the set that
accepts any text (empty if there is none), the PLAIN positions, which are free of charge, for each class of characters
the positions that read it, and for each position the set after it.

Work is counted as `frontends.regex.regex_dfa` charges it: so many units for each state, and for each distinct set of
positions that read a character one and the number of those that are not plain.
"""

from __future__ import annotations

from typing import Any

from numba import types

from .automata_layout import NO_SPACE, TOO_MANY_STATES
from .automata_records import WRITE, find_table_size, mix
from .context_views import at, int64s_at, lowest_bit
from .jit.compilation import entry, inlined
from .position_sets_layout import (
    FOUND_STATES,
    FOUND_STEPS,
    FOUND_UNITS,
    FOUND_W,
    INPUT_CLASSES,
    INPUT_UNITS,
    INPUT_W,
    INPUT_WORDS,
    READINGS_PER_STATE,
)

READ64, WRITE64 = types.Array(types.int64, 1, "C", readonly=True), types.int64[::1]


@inlined("int64(int64, int64, int64, int64, int64)")
def intern_bits(sets: Any, words: Any, table: Any, mask: Any, count: Any) -> Any:
    """Return the number of the set that is equal to that of number `count`; `count` if it is new.

    sets, table: addresses.
    """
    slots, new, h = int64s_at(table), int64s_at(sets + 8 * words * count), 0
    for w in range(words):
        h = mix(h + new[w] + w)
    k = mix(h) & mask
    while slots[k]:
        other = int64s_at(sets + 8 * words * (slots[k] - 1))
        w = 0
        while w < words and other[w] == new[w]:
            w += 1
        if w == words:
            return slots[k] - 1
        k = (k + 1) & mask
    slots[k] = count + 1
    return count


@entry([types.int64(READ64, WRITE, WRITE64, types.int64, types.int64, types.int64)])
def determinise_positions(
    positions: Any, rows: Any, scratch: Any, capacity: Any, most_states: Any, most_units: Any
) -> Any:
    """Write the transitions of the states, and then whether each is accepting: classes + 1 int32s a state.

    rows: of `capacity` states. scratch: as long as `find_scratch_length` says; it begins with what was found. Return 0,
    NO_SPACE, or TOO_MANY_STATES if there are more than `most_states`. It also ends after `most_units` units of work.
    """
    given, found, delta = int64s_at(positions.ctypes.data), int64s_at(scratch.ctypes.data), at(rows.ctypes.data)
    words, width, units_of_state = given[INPUT_WORDS] + 0, given[INPUT_CLASSES] + 0, given[INPUT_UNITS] + 0
    start = int64s_at(positions.ctypes.data + 8 * INPUT_W)
    everything = int64s_at(positions.ctypes.data + 8 * (INPUT_W + words))
    plain = int64s_at(positions.ctypes.data + 8 * (INPUT_W + 2 * words))
    readers = int64s_at(positions.ctypes.data + 8 * (INPUT_W + 3 * words))
    after = int64s_at(positions.ctypes.data + 8 * (INPUT_W + (3 + width) * words))
    most_readings = READINGS_PER_STATE * capacity
    state_slots, reading_slots = find_table_size(capacity + 1), find_table_size(most_readings + 1)
    stepped = int64s_at(scratch.ctypes.data + 8 * FOUND_W)
    sets = scratch.ctypes.data + 8 * (FOUND_W + words)
    readings = sets + 8 * words * (capacity + 1)
    state_table = readings + 8 * words * (most_readings + 1)
    reading_table = state_table + 8 * state_slots
    numbers = int64s_at(reading_table + 8 * reading_slots)  # the state that each reading leads to, or -1
    for k in range(state_slots + reading_slots):
        int64s_at(state_table)[k] = 0
    accepts_all = 0
    for w in range(words):
        accepts_all |= everything[w]
        int64s_at(sets)[w] = start[w]
        stepped[w] = 0
    count, n_readings, k, units, steps = 0, 0, 0, 0, 0
    target = int64s_at(sets)
    reading = int64s_at(readings)
    number = -1
    c = -1  # first the start set is simplified and interned
    while True:
        if accepts_all:
            is_all = 1
            for w in range(words):
                if everything[w] & ~target[w]:
                    is_all = 0
            if is_all:
                for w in range(words):
                    target[w] = everything[w]
                target[0] |= 1
        filled = 0
        for w in range(words):
            filled |= target[w]
        number = -1
        if filled or c < 0:
            if count == capacity:
                return NO_SPACE
            number = intern_bits(sets, words, state_table, state_slots - 1, count)
            if number == count:
                count += 1
        if c >= 0:
            numbers[n_readings] = number
            n_readings += 1
            delta[k * (width + 1) + c] = number
        # The next reading that was not known before, or the end.
        is_new = 0
        while is_new == 0:
            c += 1
            if c == width:
                delta[k * (width + 1) + c] = int64s_at(sets)[k * words] & 1
                c = 0
                k += 1
                if count > most_states or units > most_units or k == count:
                    found[FOUND_STATES], found[FOUND_UNITS], found[FOUND_STEPS] = count, units, steps
                    return TOO_MANY_STATES if count > most_states else 0
            if c == 0:
                units += units_of_state
            if n_readings == most_readings:
                return NO_SPACE
            reading = int64s_at(readings + 8 * words * n_readings)
            filled = 0
            for w in range(words):
                reading[w] = int64s_at(sets)[k * words + w] & readers[c * words + w]
                filled |= reading[w]
            if filled == 0:
                delta[k * (width + 1) + c] = -1
            else:
                other = intern_bits(readings, words, reading_table, reading_slots - 1, n_readings)
                if other == n_readings:
                    is_new = 1
                else:
                    delta[k * (width + 1) + c] = numbers[other]
        target = int64s_at(sets + 8 * words * count)
        for w in range(words):
            target[w] = 0
        units += 1
        for w in range(words):
            bits = reading[w] + 0
            stepped[w] |= bits & ~plain[w]
            while bits:
                item = 64 * w + lowest_bit(bits)
                if plain[w] & (bits & -bits) == 0:
                    units += 1
                    steps += 1
                for v in range(words):
                    target[v] |= after[item * words + v]
                bits &= bits - 1
