"""Products of automata: boolean operations, a common text, a count of characters (kernels; see `automata_layout`).

States of the result are pairs, interned in a hash table and expanded breadth first, so only reachable pairs are built.
The record is written to the begin of an array that the caller provides; the pairs and the table are at its end.
"""

from __future__ import annotations

from typing import Any

from numba import types

from .automata_layout import CLASSES, HEADER_W, NO_BOUND, NO_SPACE, RANGES, STATES, TOO_MANY_STATES
from .automata_records import READ, WRITE, accepting_of, bounds_of, classes_of, delta_of, find_table_size, mix
from .context_views import at
from .jit.compilation import entry, inlined, kernel

PAIR_W = 7
"""int32s for each state besides its row: its acceptance, its pair, and at most 4 slots of the table."""
LAST = 0x110000
"""One past the last code point."""


@kernel("int64(int64, int64, int64, int64)")
def merge_ranges(a: Any, b: Any, out: Any, length: Any) -> Any:
    """Write the bounds and classes of the common refinement of the classes of two records, and their numbers.

    out: address of `length` int32s. The pairs of classes that occur are written to its end: with n = the ranges of both
    records, first n int32s of the classes of a, then n of those of b. Return their number, or NO_SPACE.
    """
    n_a, n_b, width = at(a)[RANGES] + 0, at(b)[RANGES] + 0, at(b)[CLASSES] + 0
    a_bounds, a_classes, b_bounds, b_classes = bounds_of(a), classes_of(a), bounds_of(b), classes_of(b)
    most = n_a + n_b
    table_size = find_table_size(most)
    if HEADER_W + 4 * most + table_size > length:
        return NO_SPACE
    left, right = at(out + 4 * (length - 2 * most)), at(out + 4 * (length - most))
    bounds, classes, table = bounds_of(out), at(out + 4 * (HEADER_W + most)), at(out + 4 * (HEADER_W + 2 * most))
    for k in range(table_size):
        table[k] = 0
    i, j, n_ranges, n_pairs, previous, bound = 0, 0, 0, 0, -1, 0
    while bound < LAST:
        x, y = a_classes[i] + 0, b_classes[j] + 0
        k = mix(x * width + y) & (table_size - 1)
        while table[k] and (left[table[k] - 1] != x or right[table[k] - 1] != y):
            k = (k + 1) & (table_size - 1)
        if table[k] == 0:
            left[n_pairs], right[n_pairs] = x, y
            n_pairs += 1
            table[k] = n_pairs
        if table[k] - 1 != previous:
            previous = table[k] - 1
            bounds[n_ranges], classes[n_ranges] = bound, previous
            n_ranges += 1
        a_next = a_bounds[i + 1] + 0 if i + 1 < n_a else LAST
        b_next = b_bounds[j + 1] + 0 if j + 1 < n_b else LAST
        bound = min(a_next, b_next)
        if a_next == bound:
            i += 1
        if b_next == bound:
            j += 1
    at(out)[STATES], at(out)[CLASSES], at(out)[RANGES] = 0, n_pairs, n_ranges
    final_classes = classes_of(out)
    for k in range(n_ranges):
        final_classes[k] = classes[k]
    return n_pairs


@inlined("int64(pointer, int64, pointer, int64, int64, int64)")
def find_pair(table: Any, mask: Any, pairs: Any, x: Any, y: Any, count: Any) -> Any:
    """Return the number of a pair, or `count` if it is new; then it gets that number."""
    k = mix(x * 0x100000000 + y) & mask
    while table[k]:
        number = table[k] - 1
        if pairs[2 * number] == x and pairs[2 * number + 1] == y:
            return number
        k = (k + 1) & mask
    table[k] = count + 1
    pairs[2 * count], pairs[2 * count + 1] = x, y
    return count


@entry([types.int64(READ, READ, WRITE, types.int64, types.int64)])
def product_automaton(first: Any, second: Any, output: Any, operation: Any, most: Any) -> Any:
    """Write the record of a boolean operation of two languages, not minimised, to the begin of `output`.

    operation: a truth table, as UNION. most: limit of the states. Return 0, NO_SPACE or TOO_MANY_STATES.
    """
    a, b, out, length = first.ctypes.data, second.ctypes.data, output.ctypes.data, len(output)
    n_pairs = merge_ranges(a, b, out, length)
    end = length - 2 * (at(a)[RANGES] + at(b)[RANGES])
    left, right = at(out + 4 * end), at(out + 4 * (end + at(a)[RANGES] + at(b)[RANGES]))
    begin = HEADER_W + 2 * at(out)[RANGES]
    capacity = (end - begin - 8) // (n_pairs + PAIR_W)
    if n_pairs < 0 or capacity < 1:
        return NO_SPACE
    keeps_first, keeps_second = operation >> 2 & 1, operation >> 1 & 1
    table_size = find_table_size(capacity)
    pairs, table, delta = (
        at(out + 4 * (end - 2 * capacity)),
        at(out + 4 * (end - 2 * capacity - table_size)),
        delta_of(out),
    )
    for k in range(table_size):
        table[k] = 0
    a_delta, b_delta, a_width, b_width = delta_of(a), delta_of(b), at(a)[CLASSES] + 0, at(b)[CLASSES] + 0
    # -1 is the dead state; pairs that cannot reach acceptance are dead.
    find_pair(table, table_size - 1, pairs, 0 if at(a)[STATES] else -1, 0 if at(b)[STATES] else -1, 0)
    count, s = 1, 0
    while s < count:
        x, y = pairs[2 * s] + 0, pairs[2 * s + 1] + 0
        for c in range(n_pairs):
            x_next = a_delta[x * a_width + left[c]] + 0 if x >= 0 else -1
            y_next = b_delta[y * b_width + right[c]] + 0 if y >= 0 else -1
            number = -1
            if (x_next >= 0 or (keeps_second and y_next >= 0)) and (y_next >= 0 or keeps_first):
                if count == capacity:
                    return NO_SPACE
                number = find_pair(table, table_size - 1, pairs, x_next, y_next, count)
                if number == count:
                    if count >= most:
                        at(out)[STATES] = s + 1
                        return TOO_MANY_STATES
                    count += 1
            delta[s * n_pairs + c] = number
        s += 1
    at(out)[STATES] = count
    a_accepting, b_accepting, accepting = accepting_of(a), accepting_of(b), accepting_of(out)
    for s in range(count):
        x, y = pairs[2 * s] + 0, pairs[2 * s + 1] + 0
        column = 2 * (a_accepting[x] if x >= 0 else 0) + (b_accepting[y] if y >= 0 else 0)
        accepting[s] = operation >> column & 1
    return 0


@entry([types.int64(READ, READ, WRITE)])
def have_common_text(first: Any, second: Any, scratch: Any) -> Any:
    """Return whether two languages, not empty, have a text in common (1 or 0), or NO_SPACE.

    The search, depth first, ends at the first such text. The number of expanded pairs of states is written to the field
    STATES of `scratch`, that of the pairs of classes to CLASSES.
    """
    a, b, out, length = first.ctypes.data, second.ctypes.data, scratch.ctypes.data, len(scratch)
    n_pairs = merge_ranges(a, b, out, length)
    end = length - 2 * (at(a)[RANGES] + at(b)[RANGES])
    left, right = at(out + 4 * end), at(out + 4 * (end + at(a)[RANGES] + at(b)[RANGES]))
    begin = HEADER_W + 2 * at(out)[RANGES]
    capacity = (end - begin - 8) // PAIR_W
    if n_pairs < 0 or capacity < 1:
        return NO_SPACE
    table_size = find_table_size(capacity)
    todo, pairs, table = at(out + 4 * begin), at(out + 4 * (begin + capacity)), at(out + 4 * (begin + 3 * capacity))
    for k in range(table_size):
        table[k] = 0
    a_delta, b_delta, a_width, b_width = delta_of(a), delta_of(b), at(a)[CLASSES] + 0, at(b)[CLASSES] + 0
    a_accepting, b_accepting = accepting_of(a), accepting_of(b)
    find_pair(table, table_size - 1, pairs, 0, 0, 0)
    count, n_todo, n_expanded = 1, 1, 0
    todo[0] = 0
    while n_todo > 0:
        n_todo -= 1
        n_expanded += 1
        at(out)[STATES] = n_expanded
        x, y = pairs[2 * todo[n_todo]] + 0, pairs[2 * todo[n_todo] + 1] + 0
        if a_accepting[x] and b_accepting[y]:
            return 1
        for c in range(n_pairs):
            x_next, y_next = a_delta[x * a_width + left[c]] + 0, b_delta[y * b_width + right[c]] + 0
            if x_next >= 0 and y_next >= 0:
                if count == capacity:
                    return NO_SPACE
                if find_pair(table, table_size - 1, pairs, x_next, y_next, count) == count:
                    todo[n_todo] = count
                    n_todo += 1
                    count += 1
    return 0


@entry([types.int64(READ, READ, WRITE, types.int64, types.int64, types.int64)])
def bound_lengths(automaton: Any, distances: Any, output: Any, low: Any, high: Any, most: Any) -> Any:
    """Write the record of the texts of low to high characters of a language, not minimised, to the begin of `output`.

    distances: int32[states], the least number of characters to acceptance. high: NO_BOUND for none; then characters are
    counted up to `low` only. most: limit of the states. Return 0, NO_SPACE or TOO_MANY_STATES.
    """
    a, out, end = automaton.ctypes.data, output.ctypes.data, len(output)
    shortest = at(distances.ctypes.data)
    width, n_ranges = at(a)[CLASSES] + 0, at(a)[RANGES] + 0
    capacity = (end - HEADER_W - 2 * n_ranges - 8) // (width + PAIR_W)
    if capacity < 1:
        return NO_SPACE
    at(out)[STATES], at(out)[CLASSES], at(out)[RANGES] = 0, width, n_ranges
    copied, ranges = bounds_of(out), bounds_of(a)
    for k in range(2 * n_ranges):
        copied[k] = ranges[k]
    table_size = find_table_size(capacity)
    pairs, table = at(out + 4 * (end - 2 * capacity)), at(out + 4 * (end - 2 * capacity - table_size))
    for k in range(table_size):
        table[k] = 0
    a_delta, delta = delta_of(a), delta_of(out)
    find_pair(table, table_size - 1, pairs, 0, 0, 0)
    count, s = 1, 0
    while s < count:
        x, longer = pairs[2 * s] + 0, pairs[2 * s + 1] + 1
        if high == NO_BOUND:
            longer = min(longer, low)
        for c in range(width):
            target, number = a_delta[x * width + c] + 0, -1
            if target >= 0 and (high == NO_BOUND or longer + shortest[target] <= high):
                if count == capacity:
                    return NO_SPACE
                number = find_pair(table, table_size - 1, pairs, target, longer, count)
                if number == count:
                    if count >= most:
                        at(out)[STATES] = s + 1
                        return TOO_MANY_STATES
                    count += 1
            delta[s * width + c] = number
        s += 1
    at(out)[STATES] = count
    a_accepting, accepting = accepting_of(a), accepting_of(out)
    for s in range(count):
        n = pairs[2 * s + 1] + 0
        accepting[s] = 1 if a_accepting[pairs[2 * s]] and low <= n and (high == NO_BOUND or n <= high) else 0
    return 0
