"""Object states: the keys of an object so far, and which keys may come or whether it may close (kernels).

States are interned, so objects with the same keys, in whatever order, are in one state. A key may come only if all keys
that are required after it can still come: an object that has begun can always be completed.
"""

from __future__ import annotations

from typing import Any

from .context_views import size, view
from .interned_names import decode_name, extend_chain, mix_hash, probe_slot, request, write_name_to_buffer
from .jit.compilation import inlined, kernel

from .context_layout import (  # isort: skip
    BUFFER, CODE, FULL, GUARDS, HEAD, NAMED_IN, NAMES, NEED_NAME_FREE, N_OBJECTS, OBJECTS, OBJECT_HASH, SPELLING,
)  # fmt: skip
from .program_layout import (  # isort: skip
    OBJ_COUNT, OBJ_COUNTED, OBJ_EXCLUDED, OBJ_HIGH, OBJ_LOW, OBJ_MARKS, OBJ_NEEDS, OBJ_ORDER, OBJ_OTHERS, OBJ_RANKS,
    OBJ_REQUIRED, OBJ_WORDS, STR_COUNT, STR_OFFSETS,
)  # fmt: skip
from .record_layout import (  # isort: skip
    DECODED, GUARD_ANSWER, GUARD_W, NAME_PARENT, NAME_VALUE, NAME_W, NO_NAMES, O_BITS, O_BLOCK, O_CLOSE, O_FLAGS,
    O_KEYS, O_MARK, O_MEMBERS, O_NAMES, O_NEXT, O_OTHER, O_SLOT, UNKNOWN_NAMES,
)  # fmt: skip
from .member_guards import find_guard
from .string_cursors import find_bound


@kernel("int64(int64, int64, int64, int64)")
def first_allowed_key(c: Any, state: Any, low: Any, high: Any) -> Any:
    """Return the first key of ranks low .. high - 1 that object state `state` allows now, or -1.

    state: -1 for a string block that is not of an object, all of whose strings are allowed.
    """
    if state < 0:
        return low if low < high else -1
    objects, code = view(c, OBJECTS), view(c, CODE)
    bits = state + O_BITS + code[objects[state + O_BLOCK] + OBJ_WORDS]
    while low < high:
        word = objects[bits + (low >> 5)] & 0xFFFFFFFF
        word >>= low & 31
        if word == 0:
            low = (low | 31) + 1
            continue
        while word & 1 == 0:
            word >>= 1
            low += 1
        return low if low < high else -1
    return -1


@inlined("int64(int64, int64, int64)")
def get_bit(c: Any, at: Any, i: Any) -> Any:
    """Return bit i of the bit set at `at` of BUFFER."""
    return (view(c, BUFFER)[at + (i >> 5)] >> (i & 31)) & 1


@kernel("int64(int64, int64, int64, int64)")
def collect_required(c: Any, block: Any, seen: Any, extra: Any) -> Any:
    """Write the bit set of keys that are still required after key `extra` (or -1) to BUFFER. Return their number.

    Transitively closed under dependentRequired (JSON Schema 2020-12 validation, 6.5.4). Marks count as keys.

    seen: offset in BUFFER of the bit set of the keys so far; the result follows it.
    """
    code, buffer = view(c, CODE), view(c, BUFFER)
    words, n = code[block + OBJ_WORDS], code[block + OBJ_COUNT]
    required, needs = code[block + OBJ_REQUIRED], code[block + OBJ_NEEDS]
    required_bits = seen + words
    for w in range(words):
        buffer[required_bits + w] = code[required + w]
    if needs > 0:
        changed = True
        while changed:
            changed = False
            for i in range(n):
                if i == extra or get_bit(c, seen, i) or get_bit(c, required_bits, i):
                    for w in range(words):
                        word = buffer[required_bits + w] | code[needs + i * words + w]
                        if word != buffer[required_bits + w]:
                            buffer[required_bits + w] = word
                            changed = True
    count = 0
    for i in range(n + code[block + OBJ_MARKS]):
        if get_bit(c, seen, i) or i == extra:
            buffer[required_bits + (i >> 5)] &= ~(1 << (i & 31))
        elif get_bit(c, required_bits, i):
            count += 1
    return count


@kernel("int64(int64, int64, int64, int64, int64)")
def intern_object(c: Any, block: Any, next_key: Any, members: Any, names: Any) -> Any:
    """Intern an object state whose keys so far are the bit set BUFFER[0 .. words): its offset in OBJECTS, or -1.

    Key i may come if all keys that are required after it can still come and the number of members can be met. In
    schema order the undeclared keys come last, and a declared key that was skipped cannot come any more.

    next_key: in schema order, the first key that may still come. members: their number. names: list of undeclared keys.
    """
    head, objects, table, code = view(c, HEAD), view(c, OBJECTS), view(c, OBJECT_HASH), view(c, CODE)
    buffer = view(c, BUFFER)
    words, n = code[block + OBJ_WORDS], code[block + OBJ_COUNT]
    is_free_order = code[block + OBJ_ORDER]
    last = size(c, OBJECT_HASH) - 1
    h = mix_hash(mix_hash(mix_hash(mix_hash(0, block), next_key), members), names)
    for w in range(words):
        h = mix_hash(h, buffer[w])
    h &= last
    while True:
        k = probe_slot(c, OBJECT_HASH, h, 0, head[N_OBJECTS], OBJECTS, 1, O_SLOT)
        if k < 0:
            break
        is_equal = objects[k + O_BLOCK] == block and objects[k + O_NEXT] == next_key
        is_equal = is_equal and objects[k + O_MEMBERS] == members and objects[k + O_NAMES] == names
        for w in range(words):
            is_equal = is_equal and objects[k + O_BITS + w] == buffer[w]
        if is_equal:
            return k
        h = (h + 1) & last
    k = head[N_OBJECTS]
    if k + O_BITS + 2 * words > size(c, OBJECTS) or k > 3 * last:
        return request(c, FULL, OBJECTS)
    low, high = code[block + OBJ_LOW], code[block + OBJ_HIGH]
    has_others, has_needs = code[block + OBJ_OTHERS] > 0, code[block + OBJ_NEEDS] > 0
    ranks = code[block + OBJ_RANKS]
    allowed = k + O_BITS + words
    for w in range(words):
        objects[k + O_BITS + w] = buffer[w]
        objects[allowed + w] = 0
    flags = 0
    missing = collect_required(c, block, 0, -1)
    # The last key that may come in schema order: the first that must come.
    last_key = n - 1
    if is_free_order == 0:
        for i in range(next_key, n):
            if get_bit(c, words, i):
                last_key = i
                break
    unused = 0  # declared keys that have not come yet
    for i in range(next_key, n):
        unused += 1 - get_bit(c, 0, i)
    for i in range(next_key, last_key + 1):
        if get_bit(c, 0, i):
            continue
        needed = missing - get_bit(c, words, i)
        is_possible = True
        if has_needs:
            needed = collect_required(c, block, 0, i)
            if is_free_order == 0:
                for j in range(i):
                    is_possible = is_possible and not get_bit(c, words, j)
        if high >= 0 and members + 1 + needed > high:
            is_possible = False
        still_usable = unused - 1 if is_free_order else n - i - 1
        if not has_others and members + 1 + still_usable < low:
            is_possible = False
        if is_possible:
            rank = code[ranks + i]
            objects[allowed + (rank >> 5)] |= 1 << (rank & 31)
            flags |= O_KEYS
        if has_needs:
            collect_required(c, block, 0, -1)
    missing_marks = 0
    for i in range(n, n + code[block + OBJ_MARKS]):
        missing_marks += get_bit(c, words, i)
    if has_others and (is_free_order or missing == missing_marks):
        if high < 0 or members + 1 + missing <= high:
            flags |= O_OTHER
        if missing_marks > 0 and (high < 0 or members + missing <= high):
            flags |= O_MARK
    if missing == 0 and members >= low:
        flags |= O_CLOSE
    objects[k + O_BLOCK] = block
    objects[k + O_NEXT] = next_key
    objects[k + O_MEMBERS] = members
    objects[k + O_NAMES] = names
    objects[k + O_FLAGS] = flags
    objects[k + O_SLOT] = h
    table[h] = k
    head[N_OBJECTS] = k + O_BITS + 2 * words
    return k


@kernel("int64(int64, int64)")
def reserve_buffer(c: Any, block: Any) -> Any:
    """Ensure that BUFFER can hold the bit sets of an object. Return 0 or -1."""
    return 0 if 2 * view(c, CODE)[block + OBJ_WORDS] + 8 < size(c, BUFFER) else request(c, FULL, BUFFER)


@kernel("int64(int64, int64)")
def start_object(c: Any, block: Any) -> Any:
    """Return the state of an object without members: its offset, or -1."""
    if reserve_buffer(c, block) < 0:
        return -1
    buffer = view(c, BUFFER)
    for w in range(view(c, CODE)[block + OBJ_WORDS]):
        buffer[w] = 0
    return intern_object(c, block, 0, 0, NO_NAMES)


@kernel("int64(int64, int64, int64, int64)")
def add_member(c: Any, state: Any, key: Any, names: Any) -> Any:
    """Return the state after a member: its offset, or -1.

    key: a declared key, the mark of an undeclared one, or -1. names: the list of undeclared keys with this one.
    """
    objects, code, buffer = view(c, OBJECTS), view(c, CODE), view(c, BUFFER)
    block = objects[state + O_BLOCK]
    if reserve_buffer(c, block) < 0:
        return -1
    next_key = objects[state + O_NEXT]
    members = 0
    if code[block + OBJ_COUNTED]:
        low, high = code[block + OBJ_LOW], code[block + OBJ_HIGH]
        members = objects[state + O_MEMBERS] + 1
        if high < 0 and members > low:
            members = low
    for w in range(code[block + OBJ_WORDS]):
        buffer[w] = objects[state + O_BITS + w]
    if key >= 0:
        buffer[key >> 5] |= 1 << (key & 31)
    if code[block + OBJ_ORDER] == 0:
        next_key = key + 1 if 0 <= key < code[block + OBJ_COUNT] else code[block + OBJ_COUNT] + 0
        if code[block + OBJ_NEEDS] == 0:
            # Keys before `next_key` cannot come any more: counting them as seen merges states.
            for i in range(next_key):
                buffer[i >> 5] |= 1 << (i & 31)
    return intern_object(c, block, next_key, members, names)


@kernel("int64(int64, int64, int64)")
def is_excluded(c: Any, state: Any, n: Any) -> Any:
    """Return whether the name in BUFFER[0 .. n) is excluded for undeclared keys of the object."""
    code, buffer = view(c, CODE), view(c, BUFFER)
    block = code[view(c, OBJECTS)[state + O_BLOCK] + OBJ_EXCLUDED]
    low, high = 0, code[block + STR_COUNT] + 0
    for i in range(n):
        low = find_bound(c, block, low, high, i, buffer[i])
        high = find_bound(c, block, low, high, i, buffer[i] + 1)
        if low >= high:
            return 0
    offsets = block + STR_OFFSETS + low
    return 1 if low < high and code[offsets + 1] - code[offsets] == n else 0


@kernel("int64(int64, int64, int64)")
def is_taken(c: Any, state: Any, n: Any) -> Any:
    """Return whether the name in BUFFER[0 .. n) is excluded for undeclared keys of the object, or one that it has."""
    names, buffer = view(c, NAMES), view(c, BUFFER)
    if is_excluded(c, state, n):
        return 1
    name_list = view(c, OBJECTS)[state + O_NAMES] + 0
    while name_list > UNKNOWN_NAMES:
        i, chain = n - 1, names[NAME_W * name_list + NAME_VALUE] + 0
        while i >= 0 and chain != DECODED and names[NAME_W * chain + NAME_VALUE] == buffer[i]:
            chain = names[NAME_W * chain + NAME_PARENT] + 0
            i -= 1
        if i < 0 and chain == DECODED:
            return 1
        name_list = names[NAME_W * name_list + NAME_PARENT] + 0
    return 0


@kernel("int64(int64, int64, int64)")
def is_taken_prefix(c: Any, state: Any, n: Any) -> Any:
    """Return whether BUFFER[0 .. n) is a prefix of an excluded or present key of the object: 1, 0 or -1."""
    code, objects, names, buffer = view(c, CODE), view(c, OBJECTS), view(c, NAMES), view(c, BUFFER)
    block = code[objects[state + O_BLOCK] + OBJ_EXCLUDED]
    low, high = 0, code[block + STR_COUNT] + 0
    for i in range(n):
        low = find_bound(c, block, low, high, i, buffer[i])
        high = find_bound(c, block, low, high, i, buffer[i] + 1)
    if low < high:
        return 1
    name_list = objects[state + O_NAMES] + 0
    while name_list > UNKNOWN_NAMES:
        m = write_name_to_buffer(c, names[NAME_W * name_list + NAME_VALUE], n)
        if m < 0:
            return -1
        is_equal = m >= n
        for i in range(min(n, m)):
            is_equal = is_equal and buffer[i] == buffer[n + i]
        if is_equal:
            return 1
        name_list = names[NAME_W * name_list + NAME_PARENT] + 0
    return 0


@kernel("int64(int64, int64, int64, int64)")
def is_name_free(c: Any, pc: Any, state: Any, spelled: Any) -> Any:
    """Return whether a spelled prefix can become a key that OTHER at `pc` accepts in an object state: 1, 0, or -1."""
    head = view(c, HEAD)
    n = decode_name(c, spelled)
    if n < 0:
        return -1
    taken = is_taken_prefix(c, state, n)
    if taken <= 0:
        return 1 if taken == 0 else -1
    k = find_guard(c, -state - 1, spelled, pc)
    if k >= 0:
        return view(c, GUARDS)[k * GUARD_W + GUARD_ANSWER]
    head[SPELLING], head[NAMED_IN] = spelled, state
    return request(c, NEED_NAME_FREE, pc)


@inlined("int64(int64, int64)")
def may_repeat(c: Any, state: Any) -> Any:
    """Return whether the object has excluded or present names, so that an undeclared key may be refused."""
    objects = view(c, OBJECTS)
    excluded = view(c, CODE)[objects[state + O_BLOCK] + OBJ_EXCLUDED]
    return 1 if objects[state + O_NAMES] != NO_NAMES or view(c, CODE)[excluded + STR_COUNT] > 0 else 0


@kernel("int64(int64, int64, int64)")
def may_set_mark(c: Any, state: Any, mark: Any) -> Any:
    """Return whether an undeclared key of a class with mark `mark` (-1: none) may come."""
    objects = view(c, OBJECTS)
    flags = objects[state + O_FLAGS]
    if flags & O_OTHER:
        return 1
    unset = mark >= 0 and objects[state + O_BITS + (mark >> 5)] >> (mark & 31) & 1 == 0
    return 1 if unset and flags & O_MARK else 0


@kernel("int64(int64, int64, int64, int64)")
def add_named_member(c: Any, state: Any, spelled: Any, mark: Any) -> Any:
    """Return the state after an undeclared key with spelling `spelled`: its offset, 0 if it is a duplicate, or -1."""
    names = view(c, NAMES)
    name_list = view(c, OBJECTS)[state + O_NAMES]
    if name_list == UNKNOWN_NAMES:
        return add_member(c, state, mark, UNKNOWN_NAMES)
    n = decode_name(c, spelled)
    if n < 0:
        return -1
    if is_excluded(c, state, n):
        return 0
    buffer = view(c, BUFFER)
    decoded = DECODED
    for i in range(n):
        decoded = extend_chain(c, decoded, buffer[i])
        if decoded < 0:
            return -1
    k = name_list
    while k != NO_NAMES:
        if names[NAME_W * k + NAME_VALUE] == decoded:
            return 0
        k = names[NAME_W * k + NAME_PARENT]
    # Values of lists are ids of chains, not bytes: lists and chains have different roots, so they cannot be confused.
    longer_list = extend_chain(c, name_list, decoded)
    return -1 if longer_list < 0 else add_member(c, state, mark, longer_list)
