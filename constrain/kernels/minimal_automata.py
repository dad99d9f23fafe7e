"""Minimal automata: trim, minimise, merge classes and renumber a record in place (kernels; see `automata_layout`).

Moore's refinement, from the distance to acceptance (which separates chains at once), block by block: a block is divided
by the blocks that its states lead to. Only *dirty* states are compared, those with a successor whose block has changed;
the other states of a block agree with one another. As in Hopcroft (1971), "An n log n algorithm for minimizing states
in a finite automaton", the largest part of a divided block keeps its number, so the block of a state changes at most
log2(n) times. Rows are hashed to find equal ones, and compared.

States are then numbered in breadth-first order, classes by their first code point: equal languages have equal records.
"""

from __future__ import annotations

from typing import Any

from numba import types

from .automata_layout import CLASSES, HEADER_W, RANGES, SCRATCH_HEADER_W, STATE_PARTS, STATES
from .automata_records import WRITE, accepting_of, bounds_of, classes_of, delta_of, find_table_size, mix
from .context_views import at
from .jit.compilation import entry, inlined, kernel

# Parts of the scratch, each of a length of states + 1:
ORDER, MARK = 0, 1
"""The reachable states, breadth first; 0 for a state that is not reachable."""
FIRST_SOURCE, CURSOR = 2, 3
"""The predecessors of s are SOURCES[FIRST_SOURCE[s]] to SOURCES[FIRST_SOURCE[s + 1] - 1]."""
DISTANCE = 4
"""The least number of characters to acceptance, or -1."""
ELEMENTS, PLACE = 5, 6
"""The live states, block by block, the dirty ones of a block first; and where each state is."""
BLOCK = 7
"""Block of state s at BLOCK + 1 + s; -1 at BLOCK, for the dead state -1."""
FIRST, PAST, DIRTY = 8, 9, 10
"""Of a block: its elements are those from FIRST to PAST - 1, of which the first DIRTY are dirty."""
TODO = 11
"""Blocks with dirty states."""
GROUP, COUNT, EXAMPLE, SLOT = 12, 13, 14, 15
"""The group of each dirty state of a block; of each group its size, a state of it, and where it is in the TABLE."""
MOVED = 16
"""The states whose block changes."""
NAMES, ENDS = 17, 18
"""Number of a block in the result; acceptance of the states of the result."""
TABLE = 19
"""A hash table, as long as four parts."""
SOURCES = STATE_PARTS
"""As long as delta; so is what follows it: the delta of the result before classes are merged."""

# Parts that follow, each of a length of classes:
COLUMN, HASH, MERGED, SEEN = 0, 1, 2, 3
"""The class that becomes column j; the hash of a column; the merged class of a column; a hash table of columns."""


@inlined("pointer(int64, int64)")
def part(scratch: Any, number: Any) -> Any:
    """Return a part of the scratch at an address."""
    return at(scratch + 4 * (SCRATCH_HEADER_W + number * (at(scratch)[0] + 1)))


@kernel("int64(int64, int64)")
def list_sources(r: Any, w: Any) -> Any:
    """Write ORDER, MARK, and the reachable predecessors of each state, without repeats. Return 0."""
    states, width, delta = at(r)[STATES] + 0, at(r)[CLASSES] + 0, delta_of(r)
    order, mark, first, cursor = part(w, ORDER), part(w, MARK), part(w, FIRST_SOURCE), part(w, CURSOR)
    sources = part(w, SOURCES)
    for s in range(states + 1):
        mark[s], first[s] = 0, 0
    n_reached, k = 1, 0
    order[0], mark[0] = 0, -1
    while k < n_reached:  # mark[t] is one more than the place in `order` of the last state that leads to t
        for c in range(order[k] * width, order[k] * width + width):
            t = delta[c] + 0
            if t >= 0 and mark[t] != k + 1:
                if mark[t] == 0:
                    order[n_reached] = t
                    n_reached += 1
                mark[t] = k + 1
                first[t + 1] += 1
        k += 1
    for s in range(states):
        first[s + 1] += first[s]
        cursor[s] = first[s]
    for k in range(n_reached):
        s = order[k] + 0
        for c in range(s * width, s * width + width):
            t = delta[c] + 0
            if t >= 0 and mark[t] != states + 1 + k:
                mark[t] = states + 1 + k
                sources[cursor[t]] = s
                cursor[t] += 1
    return 0


@kernel("int64(int64, int64)")
def order_by_distance(r: Any, w: Any) -> Any:
    """Write DISTANCE, and the states that reach acceptance to ELEMENTS, by distance. Return their number."""
    states, accepting, mark, distance = at(r)[STATES] + 0, accepting_of(r), part(w, MARK), part(w, DISTANCE)
    elements, first, sources = part(w, ELEMENTS), part(w, FIRST_SOURCE), part(w, SOURCES)
    n_alive, k = 0, 0
    for s in range(states):
        distance[s] = -1
        if accepting[s] and mark[s]:
            distance[s] = 0
            elements[n_alive] = s
            n_alive += 1
    while k < n_alive:
        s = elements[k] + 0
        for i in range(first[s], first[s + 1]):
            if distance[sources[i]] < 0:
                distance[sources[i]] = distance[s] + 1
                elements[n_alive] = sources[i]
                n_alive += 1
        k += 1
    return n_alive


@inlined("int64(pointer, int64, int64, pointer)")
def hash_row(delta: Any, state: Any, width: Any, block: Any) -> Any:
    """Return the hash of the blocks that a state leads to."""
    h = 0
    for c in range(state * width, state * width + width):
        h = mix(h ^ block[1 + delta[c]])
    return h


@inlined("boolean(pointer, int64, int64, int64, pointer)")
def are_rows_equal(delta: Any, one: Any, other: Any, width: Any, block: Any) -> Any:
    """Return whether two states lead to the same blocks."""
    c = 0
    while c < width and block[1 + delta[one * width + c]] == block[1 + delta[other * width + c]]:
        c += 1
    return c == width


@kernel("int64(int64, int64, int64)")
def group_by_rows(r: Any, w: Any, b: Any) -> Any:
    """Group the dirty states of a block by the blocks that they lead to: write GROUP, COUNT, EXAMPLE.

    The states that are not dirty have the group of a dirty one, or one of their own. Return 2 * the number of groups,
    + 1 if that group is there; it is the last then.
    """
    width, delta, block, elements = at(r)[CLASSES] + 0, delta_of(r), part(w, BLOCK), part(w, ELEMENTS)
    group, count, example, slot, table = (
        part(w, GROUP), part(w, COUNT), part(w, EXAMPLE), part(w, SLOT), part(w, TABLE),
    )  # fmt: skip
    begin, n_dirty = part(w, FIRST)[b] + 0, part(w, DIRTY)[b] + 0
    n_clean = part(w, PAST)[b] - begin - n_dirty
    mask, n_groups = find_table_size(n_dirty) - 1, 0
    for i in range(n_dirty):
        s = elements[begin + i] + 0
        k = hash_row(delta, s, width, block) & mask
        while table[k] and not are_rows_equal(delta, example[table[k] - 1], s, width, block):
            k = (k + 1) & mask
        if table[k] == 0:
            example[n_groups], slot[n_groups], count[n_groups] = s, k, 0
            n_groups += 1
            table[k] = n_groups
        group[i] = table[k] - 1
        count[group[i]] += 1
    clean_group = -1
    if n_clean > 0:
        s = elements[begin + n_dirty] + 0
        k = hash_row(delta, s, width, block) & mask
        while table[k] and not are_rows_equal(delta, example[table[k] - 1], s, width, block):
            k = (k + 1) & mask
        clean_group = table[k] - 1
    for g in range(n_groups):
        table[slot[g]] = 0
    if clean_group < 0:
        if n_clean > 0:
            count[n_groups] = 0
            n_groups += 1
    elif clean_group < n_groups - 1:
        last = n_groups - 1
        for i in range(n_dirty):
            group[i] = last if group[i] == clean_group else (clean_group if group[i] == last else group[i])
        count[clean_group], count[last] = count[last], count[clean_group]
    return 2 * n_groups + (1 if n_clean > 0 else 0)


@kernel("int64(int64, int64, int64, int64)")
def divide_block(r: Any, w: Any, b: Any, n_blocks: Any) -> Any:
    """Divide a block by the rows of its states, of which none is dirty afterwards. Return the new number of blocks.

    The states of new blocks are written to MOVED, from the place of each block's FIRST.
    """
    groups = group_by_rows(r, w, b)
    n_groups, has_clean = groups >> 1, groups & 1
    elements, place, block, first, past, dirty = (
        part(w, ELEMENTS), part(w, PLACE), part(w, BLOCK), part(w, FIRST), part(w, PAST), part(w, DIRTY),
    )  # fmt: skip
    group, count, moved, start = part(w, GROUP), part(w, COUNT), part(w, MOVED), part(w, SLOT)
    begin, end, n_dirty = first[b] + 0, past[b] + 0, dirty[b] + 0
    dirty[b] = 0
    if n_groups < 2:
        return n_blocks
    total = begin
    for g in range(n_groups):
        start[g] = total
        total += count[g]
    for i in range(n_dirty):
        moved[start[group[i]]] = elements[begin + i]
        start[group[i]] += 1
    for i in range(begin, begin + n_dirty):
        elements[i], place[moved[i]] = moved[i], i
    largest, most = 0, 0
    for g in range(n_groups):
        members = count[g] + (end - begin - n_dirty if has_clean and g == n_groups - 1 else 0)
        if members > most:
            largest, most = g, members
    at_element = begin
    for g in range(n_groups):
        after = end if g == n_groups - 1 else at_element + count[g]
        number = b
        if g != largest:
            number = n_blocks
            n_blocks += 1
            dirty[number] = 0
            for i in range(at_element, after):
                moved[i] = elements[i]
                block[1 + elements[i]] = number
        first[number], past[number] = at_element, after
        at_element = after
    return n_blocks


@kernel("int64(int64, int64, int64, int64)")
def mark_dirty(w: Any, first_block: Any, after_block: Any, n_todo: Any) -> Any:
    """Mark the predecessors of the states of new blocks as dirty. Return the new length of TODO."""
    elements, place, block, first, past, dirty = (
        part(w, ELEMENTS), part(w, PLACE), part(w, BLOCK), part(w, FIRST), part(w, PAST), part(w, DIRTY),
    )  # fmt: skip
    todo, moved, first_source, sources = part(w, TODO), part(w, MOVED), part(w, FIRST_SOURCE), part(w, SOURCES)
    for number in range(first_block, after_block):
        for m in range(first[number], past[number]):  # `elements` is reordered meanwhile, `moved` is not
            for i in range(first_source[moved[m]], first_source[moved[m] + 1]):
                s = sources[i] + 0
                b = block[1 + s] + 0
                if b < 0 or past[b] - first[b] < 2:
                    continue
                here, there = place[s] + 0, first[b] + dirty[b]
                if here < there:
                    continue
                other = elements[there] + 0
                elements[there], elements[here], place[s], place[other] = s, other, there, here
                if dirty[b] == 0:
                    todo[n_todo] = b
                    n_todo += 1
                dirty[b] += 1
    return n_todo


@kernel("int64(int64, int64, int64)")
def refine_blocks(r: Any, w: Any, n_alive: Any) -> Any:
    """Write the coarsest congruence of the live states to BLOCK, ELEMENTS and FIRST. Return the number of blocks."""
    states, distance, elements, place = at(r)[STATES] + 0, part(w, DISTANCE), part(w, ELEMENTS), part(w, PLACE)
    block, first, past, dirty, todo = (
        part(w, BLOCK), part(w, FIRST), part(w, PAST), part(w, DIRTY), part(w, TODO),
    )  # fmt: skip
    table, n_blocks, n_todo = part(w, TABLE), 0, 0
    for s in range(states + 1):
        block[s] = -1
    for i in range(n_alive):
        s = elements[i] + 0
        if i == 0 or distance[s] != distance[elements[i - 1]]:
            first[n_blocks] = i
            n_blocks += 1
        block[1 + s], place[s], past[n_blocks - 1] = n_blocks - 1, i, i + 1
    for b in range(n_blocks):
        dirty[b] = past[b] - first[b]
        if dirty[b] > 1:
            todo[n_todo] = b
            n_todo += 1
    for i in range(find_table_size(n_alive)):
        table[i] = 0
    while n_todo > 0:
        n_todo -= 1
        n_before = n_blocks
        n_blocks = divide_block(r, w, todo[n_todo], n_blocks)
        if n_blocks > n_before:
            n_todo = mark_dirty(w, n_before, n_blocks, n_todo)
    return n_blocks


@kernel("int64(int64, int64, int64, int64, int64)")
def merge_columns(columns: Any, width: Any, matrix: Any, n_rows: Any, n_columns: Any) -> Any:
    """Find the equal columns of a matrix. Return the number of different ones.

    matrix: address of int32[n_rows, n_columns]. Write MERGED, the number of each column in the order of their first,
    and COLUMN, the first column of each number.
    """
    quotient = at(matrix)
    column, hashes, merged, seen = (
        at(columns + 4 * COLUMN * width), at(columns + 4 * HASH * width), at(columns + 4 * MERGED * width),
        at(columns + 4 * SEEN * width),
    )  # fmt: skip
    mask = find_table_size(n_columns) - 1
    for k in range(mask + 1):
        seen[k] = 0
    for j in range(n_columns):
        hashes[j] = 0
    for s in range(n_rows):
        for j in range(n_columns):
            hashes[j] = hashes[j] * 16777619 + quotient[s * n_columns + j]
    n_different = 0
    for j in range(n_columns):
        k = mix(hashes[j]) & mask
        while seen[k]:
            other, s = column[seen[k] - 1] + 0, 0
            while s < n_rows and quotient[s * n_columns + j] == quotient[s * n_columns + other]:
                s += 1
            if s == n_rows:
                break
            k = (k + 1) & mask
        if seen[k] == 0:
            column[n_different] = j
            n_different += 1
            seen[k] = n_different
        merged[j] = seen[k] - 1
    return n_different


@kernel("int64(int64, int64)")
def write_quotient(r: Any, w: Any) -> Any:
    """Replace the record by its quotient, numbered canonically. Return its length."""
    states, width, n_ranges = at(r)[STATES] + 0, at(r)[CLASSES] + 0, at(r)[RANGES] + 0
    bounds, classes, delta, accepting = bounds_of(r), classes_of(r), delta_of(r), accepting_of(r)
    block, names, ends, order = part(w, BLOCK), part(w, NAMES), part(w, ENDS), part(w, ORDER)
    after_sources = w + 4 * (SCRATCH_HEADER_W + SOURCES * (states + 1) + states * width)
    quotient, columns = at(after_sources), after_sources + 4 * states * width
    column, merged = at(columns + 4 * COLUMN * width), at(columns + 4 * MERGED * width)
    # Classes by their first code point.
    for c in range(width):
        merged[c] = -1
    n_columns = 0
    for i in range(n_ranges):
        if merged[classes[i]] < 0:
            merged[classes[i]] = n_columns
            column[n_columns] = classes[i]
            n_columns += 1
    for i in range(n_ranges):
        classes[i] = merged[classes[i]]
    # States breadth first; any state of a block stands for it.
    for s in range(states):
        names[s] = -1
    names[block[1]] = 0
    order[0] = 0
    n_states, k = 1, 0
    while k < n_states:
        s = order[k] + 0
        ends[k] = accepting[s]
        for j in range(n_columns):
            t = delta[s * width + column[j]] + 0
            b = block[1 + t] + 0
            if b >= 0 and names[b] < 0:
                names[b] = n_states
                order[n_states] = t
                n_states += 1
            quotient[k * n_columns + j] = names[b] if b >= 0 else -1
        k += 1
    n_classes = merge_columns(columns, width, after_sources, n_states, n_columns)
    # The new record is shorter in each of its parts, and nothing of the old one is needed after its classes.
    n_new, previous = 0, -1
    for i in range(n_ranges):
        c = merged[classes[i]] + 0
        if c != previous:
            bounds[n_new], classes[n_new], previous = bounds[i], c, c
            n_new += 1
    at(r)[STATES], at(r)[CLASSES], at(r)[RANGES] = n_states, n_classes, n_new
    new_classes, new_delta, new_accepting = classes_of(r), delta_of(r), accepting_of(r)
    for i in range(n_new):
        new_classes[i] = classes[i]
    for s in range(n_states):
        for c in range(n_classes):
            new_delta[s * n_classes + c] = quotient[s * n_columns + column[c]]
        new_accepting[s] = ends[s]
    return HEADER_W + 2 * n_new + n_states * (n_classes + 1)


@entry([types.int64(WRITE, WRITE)])
def minimise_automaton(record: Any, scratch: Any) -> Any:
    """Replace a record, of which not all states need be reachable, by the canonical one of the same language.

    scratch: as long as STATE_PARTS and CLASS_PARTS say. Return the length of the record, which is never more than
    before.
    """
    r, w = record.ctypes.data, scratch.ctypes.data
    at(w)[0] = at(r)[STATES]
    if at(r)[STATES] > 0:
        list_sources(r, w)
        n_alive = order_by_distance(r, w)
        if n_alive > 0 and part(w, DISTANCE)[0] >= 0:
            refine_blocks(r, w, n_alive)
            return write_quotient(r, w)
    at(r)[STATES], at(r)[CLASSES], at(r)[RANGES] = 0, 1, 1
    bounds_of(r)[0] = 0
    classes_of(r)[0] = 0
    return HEADER_W + 2
