"""Subset construction of concatenations and repetitions of automata (kernels; see `automata_layout`).

A nondeterministic automaton is that of one or two records, in numbered copies of `period` states: the transitions of
all copies are those of the first. Entering a state also enters the state that FOLLOWING names, and so on, which is how
a text that is complete is followed by the next one.

A subset is an unordered list of states in the pool. Its hash does not depend on the order, and lists of equal length
are equal if all states of one are visited with the other. Scratch is the *pool*: a header, MEMBER_PARTS arrays with an
entry for each state, the transitions of a concatenation, then the subsets.
"""

from __future__ import annotations

from typing import Any

from numba import types

from .automata_layout import (
    CLASSES,
    HEADER_W,
    MEMBER_PARTS,
    MEMBERS,
    MEMBERS_PER_STATE,
    NO_BOUND,
    NO_SPACE,
    POOL_HEADER_W,
    RANGES,
    STATES,
    TOO_MANY_STATES,
)  # fmt: skip
from .automata_records import READ, WRITE, accepting_of, bounds_of, delta_of, find_table_size, mix
from .automaton_products import merge_ranges
from .context_views import at
from .jit.compilation import entry, inlined, kernel

SUBSET_W = 6
"""int32s for each state besides its row: its acceptance, the begin of its subset, and at most 4 slots of the table."""
FOLLOWING, FINAL, VISITED = 0, 1, 2
"""Arrays of the pool: the state that is entered with a state, or -1; whether a text may end there; the last visit."""


@inlined("pointer(int64, int64, int64)")
def member_part(pool: Any, states: Any, number: Any) -> Any:
    """Return an array of the pool at an address."""
    return at(pool + 4 * (POOL_HEADER_W + number * states))


@inlined("int64(int64, int64, int64, int64, int64, int64)")
def enter_state(pool: Any, states: Any, state: Any, visit: Any, free: Any, pool_end: Any) -> Any:
    """Append a state and those that follow it to the pool at `free`, but for those of this visit.

    Return their number, or NO_SPACE.
    """
    lists, following, visited = at(pool), member_part(pool, states, FOLLOWING), member_part(pool, states, VISITED)
    added = 0
    while state >= 0 and visited[state] != visit:
        if free + added == pool_end:
            return NO_SPACE
        visited[state], lists[free + added] = visit, state
        added += 1
        state = following[state] + 0
    return added


@inlined("int64(int64, pointer, pointer, pointer, int64, int64, int64)")
def intern_subset(pool: Any, visited: Any, first: Any, table: Any, mask: Any, count: Any, visit: Any) -> Any:
    """Return the number of the subset whose list is that of number `count`; `count` if it is new.

    visit: the number of the visit of its states.
    """
    lists, h, size = at(pool), 0, first[count + 1] - first[count]
    for i in range(first[count], first[count + 1]):
        h += mix(lists[i] + 1)
    k = mix(h) & mask
    while table[k]:
        other = table[k] - 1
        if first[other + 1] - first[other] == size:
            i = first[other] + 0
            while i < first[other + 1] and visited[lists[i]] == visit:
                i += 1
            if i == first[other + 1]:
                return other
        k = (k + 1) & mask
    table[k] = count + 1
    return count


@kernel("int64(int64, int64, int64, int64, int64, int64, int64, int64, int64)")
def determinise(
    out: Any, end: Any, pool: Any, subsets: Any, pool_end: Any, edges: Any, period: Any, states: Any, most: Any
) -> Any:
    """Write the states of the record at `out`, whose ranges are written already, by the subset construction.

    end: int32s that may be used there. subsets, pool_end: where lists begin in the pool, and its length. edges: address
    of int32[period, classes]. states: of all copies. most: limit of the states.
    """
    width, begin = at(out)[CLASSES] + 0, HEADER_W + 2 * at(out)[RANGES]
    capacity = (end - begin - 9) // (width + SUBSET_W)
    if capacity < 1:
        return NO_SPACE
    table_size = find_table_size(capacity)
    first, table = at(out + 4 * (end - capacity - 1)), at(out + 4 * (end - capacity - 1 - table_size))
    for k in range(table_size):
        table[k] = 0
    lists, moves, delta = at(pool), at(edges), delta_of(out)
    final, visited = member_part(pool, states, FINAL), member_part(pool, states, VISITED)
    for s in range(states):
        visited[s] = 0
    lists[MEMBERS] = 0
    n_start = enter_state(pool, states, 0, 1, subsets, pool_end)
    if n_start < 0:
        return NO_SPACE
    first[0], first[1] = subsets, subsets + n_start
    intern_subset(pool, visited, first, table, table_size - 1, 0, 1)
    count, k, visit, members = 1, 0, 1, 0
    while k < count:
        members += first[k + 1] - first[k]
        for c in range(width):
            visit += 1
            free = first[count] + 0
            for i in range(first[k], first[k + 1]):
                base = lists[i] // period * period
                target = moves[(lists[i] - base) * width + c] + 0
                if target >= 0:
                    added = enter_state(pool, states, target + base, visit, free, pool_end)
                    if added < 0:
                        return NO_SPACE
                    free += added
            number = -1
            if free > first[count]:
                if count == capacity:
                    return NO_SPACE
                first[count + 1] = free
                number = intern_subset(pool, visited, first, table, table_size - 1, count, visit)
                if number == count:
                    count += 1
            delta[k * width + c] = number
        k += 1
        if count > most or members > MEMBERS_PER_STATE * most:
            at(out)[STATES], lists[MEMBERS] = k, members
            return TOO_MANY_STATES
    at(out)[STATES], lists[MEMBERS] = count, members
    accepting = accepting_of(out)
    for k in range(count):
        accepting[k] = 0
        for i in range(first[k], first[k + 1]):
            accepting[k] |= final[lists[i]]
    return 0


@kernel("int64(int64)")
def add_empty_text(out: Any) -> Any:
    """Add a start state that accepts to a record. The old one may be reached again within a text. Return 0."""
    states, width, delta = at(out)[STATES] + 0, at(out)[CLASSES] + 0, delta_of(out)
    for k in range(states * (width + 1) - 1, states * width - 1, -1):  # the acceptance, then the rows, from their ends
        delta[k + width + 1] = delta[k]
    for k in range(states * width - 1, -1, -1):
        delta[k + width] = delta[k] + 1 if delta[k] >= 0 else -1
    for c in range(width):
        delta[c] = delta[width + c]
    at(out)[STATES] = states + 1
    accepting_of(out)[0] = 1
    return 0


@entry([types.int64(READ, READ, WRITE, WRITE, types.int64)])
def concatenate_automata(first: Any, second: Any, output: Any, scratch: Any, most: Any) -> Any:
    """Write the record of the texts of a language followed by those of another, not minimised, to `output`.

    The languages must not be empty. scratch: the pool. most: limit of the states. Return 0, NO_SPACE or
    TOO_MANY_STATES; of the pool's header MEMBERS is set.
    """
    a, b, out, pool, length = (
        first.ctypes.data,
        second.ctypes.data,
        output.ctypes.data,
        scratch.ctypes.data,
        len(output),
    )
    width = merge_ranges(a, b, out, length)
    n_ranges, split = at(a)[RANGES] + at(b)[RANGES], at(a)[STATES] + 0
    end, states = length - 2 * n_ranges, at(a)[STATES] + at(b)[STATES]
    subsets = POOL_HEADER_W + (MEMBER_PARTS + width) * states
    if width < 0 or subsets > len(scratch):
        return NO_SPACE
    following, final = member_part(pool, states, FOLLOWING), member_part(pool, states, FINAL)
    edges = member_part(pool, states, MEMBER_PARTS)
    left, right = at(out + 4 * end), at(out + 4 * (length - n_ranges))
    a_delta, b_delta, a_width, b_width = delta_of(a), delta_of(b), at(a)[CLASSES] + 0, at(b)[CLASSES] + 0
    a_accepting, b_accepting = accepting_of(a), accepting_of(b)
    for s in range(split):
        following[s], final[s] = split if a_accepting[s] else -1, 0
        for c in range(width):
            edges[s * width + c] = a_delta[s * a_width + left[c]]
    for s in range(states - split):
        following[split + s], final[split + s] = -1, b_accepting[s]
        for c in range(width):
            target = b_delta[s * b_width + right[c]] + 0
            edges[(split + s) * width + c] = target + split if target >= 0 else -1
    return determinise(
        out, end, pool, subsets, len(scratch), pool + 4 * (subsets - width * states), states, states, most
    )


@entry([types.int64(READ, WRITE, WRITE, types.int64, types.int64, types.int64)])
def repeat_automaton(automaton: Any, output: Any, scratch: Any, low: Any, high: Any, most: Any) -> Any:
    """Write the record of low to high consecutive texts of a language, not minimised, to `output`.

    The language must not be empty, and low <= high, 0 < high. high: NO_BOUND for none. scratch, most and what is
    returned: as for `concatenate_automata`.
    """
    a, out, pool = automaton.ctypes.data, output.ctypes.data, scratch.ctypes.data
    period, width, n_ranges = at(a)[STATES] + 0, at(a)[CLASSES] + 0, at(a)[RANGES] + 0
    copies = max(low, 1) if high == NO_BOUND else high
    states = copies * period
    subsets = POOL_HEADER_W + MEMBER_PARTS * states
    if subsets > len(scratch) or HEADER_W + 2 * n_ranges + width + 1 > len(output):
        return NO_SPACE
    following, final, a_accepting = (
        member_part(pool, states, FOLLOWING),
        member_part(pool, states, FINAL),
        accepting_of(a),
    )
    for copy in range(copies):
        after = copy + 1 if copy + 1 < copies else (copy if high == NO_BOUND else -1)
        for s in range(period):
            place = copy * period + s
            following[place] = after * period if a_accepting[s] and after >= 0 else -1
            final[place] = 1 if a_accepting[s] and copy + 1 >= low else 0
    at(out)[STATES], at(out)[CLASSES], at(out)[RANGES] = 0, width, n_ranges
    copied, ranges = bounds_of(out), bounds_of(a)
    for k in range(2 * n_ranges):
        copied[k] = ranges[k]
    end = len(output) - width - 1
    found = determinise(out, end, pool, subsets, len(scratch), a + 4 * (HEADER_W + 2 * n_ranges), period, states, most)
    if found == 0 and low == 0 and not accepting_of(out)[0]:
        add_empty_text(out)
    return found
