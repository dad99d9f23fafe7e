"""The automaton of a regular expression: subset construction over the items of its program (kernels).

What `frontends.regex.regex_positions` defines, for programs whose only anchors are those of the text: an *item* is an
instruction that reads a character. A set of items has bit 0 where the text may end, and a bit for each item after it.
Programs and the scratch are described in `pattern_layout`.
"""

from __future__ import annotations

from typing import Any

from numba import types

from . import automata_layout as automaton
from .automata_records import READ, WRITE, accepting_of, bounds_of, delta_of, find_table_size, mix
from .context_views import at, lowest_bit
from .jit.compilation import entry, inlined, kernel

from .pattern_layout import (  # isort: skip
    AT_END, BITS, CLASSES, FORK, INSTRUCTIONS, ITEMS, MATCH, PROGRAM_HEADER_W, RANGES, REACHES, READINGS,
    READ_SET, REST, SCRATCH_HEADER_W, STEPPED, STEPS_PER_STATE, TARGETS, VISITS,
)  # fmt: skip

NO_SPACE, TOO_MANY_STATES = automaton.NO_SPACE, automaton.TOO_MANY_STATES
ANY, END = 1, 2
"""What may follow a position: any character, the end of the text."""
TABLE_WORDS = 4
"""Most words of a hash table for each entry."""


@inlined("pointer(int64)")
def operations_of(p: Any) -> Any:
    """Return the operations of the program at an address."""
    return at(p + 4 * PROGRAM_HEADER_W)


@inlined("pointer(int64)")
def targets_of(p: Any) -> Any:
    """Return the targets of the program at an address."""
    return at(p + 4 * (PROGRAM_HEADER_W + 2 * at(p)[INSTRUCTIONS]))


@inlined("pointer(int64)")
def members_of(p: Any) -> Any:
    """Return the members of the classes of the program at an address, the bounds and the classes of ranges."""
    return at(p + 4 * (PROGRAM_HEADER_W + 2 * at(p)[INSTRUCTIONS] + at(p)[TARGETS]))


@kernel("int64(int64, int64, int64, int64, int64, int64)")
def reach_items(p: Any, w: Any, stack_at: Any, first: Any, is_begin: Any, target: Any) -> Any:
    """Add the items that can read at instruction `first` to the set at address `target`. Return 0.

    w: the scratch, in which `visited` and the items of instructions follow the header. stack_at: address of a stack of
    pairs (instruction, what may follow). is_begin: whether the text begins there.
    """
    n, operations, targets, found = at(p)[INSTRUCTIONS] + 0, operations_of(p), targets_of(p), at(target)
    head, visited, items, stack = at(w), at(w + 4 * SCRATCH_HEADER_W), at(w + 4 * SCRATCH_HEADER_W), at(stack_at)
    for k in range(n):
        visited[k] = 0
    head[REACHES] += 1
    stack[0], stack[1], top = first, ANY | END, 1
    while top > 0:
        top -= 1
        k, follows = stack[2 * top] + 0, stack[2 * top + 1] + 0
        while follows & ~visited[k]:
            if visited[k] == 0:
                head[VISITS] += 1
            visited[k] |= follows
            operation = operations[k] + 0
            if operation == FORK:
                place = operations[n + k] + 0
                for i in range(1, targets[place]):
                    stack[2 * top], stack[2 * top + 1] = targets[place + 1 + i], follows
                    top += 1
                k = targets[place + 1] + 0
                continue
            if operation == READ_SET:
                if follows & ANY:
                    item = 1 + items[n + k]
                    found[item // BITS] |= 1 << item % BITS
                break
            if operation == MATCH:
                if follows & END:
                    found[0] |= 1
                break
            if operation == AT_END:
                follows &= END
            elif not is_begin:
                follows = 0
            k += 1
    return 0


@inlined("int64(pointer, int64, pointer, int64, int64, int64)")
def find_set(sets: Any, count: Any, table: Any, mask: Any, words: Any, number: Any) -> Any:
    """Return the number of the set that equals that of number `number`, which is `count` if it is new.

    A new set is entered in the table.
    """
    h, made = 0, number * words
    for i in range(words):
        h = mix(h ^ sets[made + i])
    k = h & mask
    while table[k]:
        other, i = (table[k] - 1) * words, 0
        while i < words and sets[other + i] == sets[made + i]:
            i += 1
        if i == words:
            return table[k] - 1
        k = (k + 1) & mask
    table[k] = count + 1
    return count


@inlined("int64(int64, int64, int64, int64)")
def list_items(p: Any, w: Any, readers_at: Any, words: Any) -> Any:
    """Number the items, and write those that read each class to `readers_at`. Return 0."""
    n, classes, operations = at(p)[INSTRUCTIONS] + 0, at(p)[CLASSES] + 0, operations_of(p)
    items, members, readers = at(w + 4 * SCRATCH_HEADER_W), members_of(p), at(readers_at)
    for i in range(classes * words):
        readers[i] = 0
    count = 0
    for k in range(n):
        items[n + k] = -1
        if operations[k] == READ_SET:
            items[n + k], items[2 * n + count] = count, k
            count += 1
            for c in range(classes):
                if members[c] >> operations[n + k] & 1:
                    readers[c * words + count // BITS] |= 1 << count % BITS
    return 0


@inlined("int64(int64, int64, int64, int64, int64, int64)")
def step_item(p: Any, w: Any, known_at: Any, stack_at: Any, item: Any, target: Any) -> Any:
    """Add the items that can read after `item` has read to the set at address `target`. Return 0.

    known_at: whether those of each item are known, then the sets of these.
    """
    n, head, operations, items = at(p)[INSTRUCTIONS] + 0, at(w), operations_of(p), at(w + 4 * SCRATCH_HEADER_W)
    made, known = at(target), at(known_at)
    following = items[2 * n + item] + 1
    if operations[following] == READ_SET:  # as after most
        one = 1 + items[n + following]
        made[one // BITS] |= 1 << one % BITS
        return 0
    n_items = head[ITEMS] + 0
    words = n_items // BITS + 1
    head[STEPPED] += 1
    after = known_at + 4 * (n_items + item * words)
    if known[item] == 0:
        known[item] = 1
        for i in range(words):
            at(after)[i] = 0
        reach_items(p, w, stack_at, following, 0, after)
    for i in range(words):
        made[i] |= at(after)[i]
    return 0


@inlined("int64(pointer, int64, int64, int64)")
def simplify_set(sets: Any, made: Any, rest: Any, words: Any) -> Any:
    """Reduce a set that has the item `rest`, which accepts any text and so dominates all others. Return 0."""
    if rest and sets[made + rest // BITS] >> rest % BITS & 1:
        for i in range(words):
            sets[made + i] = 0
        sets[made + rest // BITS] |= 1 << rest % BITS
        sets[made] |= 1
    return 0


@entry([types.int64(READ, WRITE, WRITE, types.int64, types.int64)])
def determinise_pattern(program: Any, output: Any, scratch: Any, most: Any, most_units: Any) -> Any:
    """Write the record of the texts that match a program, not minimised, to `output`.

    most: limit of the states. most_units: units of work after which it ends, too. Return 0, NO_SPACE or
    TOO_MANY_STATES; the header of the scratch is set, and of that of
    the record the number of expanded states. ITEMS must be set.
    """
    p, out, w, length = program.ctypes.data, output.ctypes.data, scratch.ctypes.data, len(scratch)
    n, classes, ranges = at(p)[INSTRUCTIONS] + 0, at(p)[CLASSES] + 0, at(p)[RANGES] + 0
    head, items = at(w), at(w + 4 * SCRATCH_HEADER_W)
    n_items = head[ITEMS] + 0
    words = n_items // BITS + 1
    # The scratch: visited, items of instructions, instructions of items, readers, whether and which items follow each
    # item, the stack; then for each state and each set that has read a character its items, and a target of the latter.
    readers_at = w + 4 * (SCRATCH_HEADER_W + 3 * n)
    known_at = readers_at + 4 * classes * words
    stack_at = known_at + 4 * n_items * (1 + words)
    begin = (stack_at - w) // 4 + 4 * (n + at(p)[TARGETS]) + 4
    capacity = (length - begin) // (2 * words + 1 + 2 * TABLE_WORDS)
    capacity = min(capacity, (len(output) - automaton.HEADER_W - 2 * ranges) // (classes + 1))
    if capacity < 2:
        return NO_SPACE
    table_size = find_table_size(capacity) // 2  # at most full, since one entry is always free
    if table_size <= capacity:
        table_size *= 2
    states_at = w + 4 * begin
    states, readings = at(states_at), at(states_at + 4 * capacity * words)
    targets = at(states_at + 8 * capacity * words)
    table_at = states_at + 4 * capacity * (2 * words + 1)
    table, reading_table = at(table_at), at(table_at + 4 * table_size)
    for k in range(table_size):
        table[k], reading_table[k] = 0, 0
    head[REACHES], head[VISITS], head[READINGS], head[STEPPED] = 0, 0, 0, 0
    list_items(p, w, readers_at, words)
    readers, known = at(readers_at), at(known_at)
    for i in range(n_items):
        known[i] = 0
    rest = 1 + items[n + at(p)[REST]] if at(p)[REST] >= 0 else 0
    record = at(out)
    record[automaton.STATES], record[automaton.CLASSES], record[automaton.RANGES] = 0, classes, ranges
    bounds, divided = bounds_of(out), members_of(p)
    for k in range(2 * ranges):
        bounds[k] = divided[classes + k]
    delta = delta_of(out)
    for i in range(words):
        states[i] = 0
    reach_items(p, w, stack_at, 0, 1, states_at)
    simplify_set(states, 0, rest, words)
    count, k, n_readings = find_set(states, 0, table, table_size - 1, words, 0) + 1, 0, 0
    while k < count:
        for c in range(classes):
            reading, is_empty = n_readings * words, True
            for i in range(words):
                readings[reading + i] = states[k * words + i] & readers[c * words + i]
                is_empty = is_empty and readings[reading + i] == 0
            if is_empty:
                delta[k * classes + c] = -1
                continue
            found = find_set(readings, n_readings, reading_table, table_size - 1, words, n_readings)
            if found == n_readings:
                made = count * words
                for i in range(words):
                    states[made + i] = 0
                for i in range(words):
                    bits = readings[reading + i] & 0xFFFFFFFF
                    while bits:
                        step_item(p, w, known_at, stack_at, BITS * i + lowest_bit(bits) - 1, states_at + 4 * made)
                        bits &= bits - 1
                simplify_set(states, made, rest, words)
                is_empty = True
                for i in range(words):
                    is_empty = is_empty and states[made + i] == 0
                number = -1
                if not is_empty:
                    number = find_set(states, count, table, table_size - 1, words, count)
                    if number == count:
                        count += 1
                targets[found] = number
                n_readings += 1
                if count + 1 >= capacity or n_readings + 1 >= capacity:
                    return NO_SPACE
            delta[k * classes + c] = targets[found]
        k += 1
        steps = head[VISITS] + head[STEPPED]
        units = head[REACHES] + steps + n_readings + k * (2 + classes // 3)
        if count > most or steps > STEPS_PER_STATE * most or units > most_units:
            record[automaton.STATES], head[READINGS] = k, n_readings
            return TOO_MANY_STATES
    record[automaton.STATES], head[READINGS] = count, n_readings
    accepting = accepting_of(out)
    for k in range(count):
        accepting[k] = states[k * words] & 1
    return 0
