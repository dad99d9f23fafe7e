"""Sets of configurations: how one byte changes one, met lazily and remembered (kernels).

A configuration is (pc, point, node, register, extra): a byte-consuming instruction, the state inside its leaf or
string block (or -1), the stack of callers, the register of the running rule, and a number that the instruction
keeps: characters counted, or the name spelled so far. `step` moves every configuration of a set by a byte; `close`
follows the instructions that consume nothing; `intern` gives equal sets one id. Set x byte -> set is kept with the
set, so most steps are one load. This is the subset construction, done as the text comes, with a real stack.

Stacks form a graph (Scott and Johnstone, GLL Parsing, 2010): within one closure all calls of a rule share one node,
whose edges are the callers, so left recursion is a cycle and ambiguity does not multiply. Nodes are interned by
their edges (those on a cycle together), so equal stacks have equal ids and sets of equal futures meet again.

A kernel that needs something returns -1 and says in HEAD[STATUS] what: the caller provides it and calls again.
Whatever was appended meanwhile stays valid; a memo is written only when a step is whole.
"""

from __future__ import annotations

from typing import Any

from numba import njit

from .layout import *  # noqa: F403  (constants only; STAMPS below names the text they come from)
from .views import kernel, size, view

STAMPS = "layout.py cc1c views.py 0000"

i1, i2, i3, i4, i5, i6 = (f"int64({', '.join(['int64'] * n)})" for n in range(1, 7))


@njit(i3, **kernel)
def ask(c: Any, status: Any, argument: Any) -> Any:
    head = view(c, HEAD)
    head[STATUS] = status
    head[ARGUMENT] = argument
    return -1


@njit(i2, **kernel)
def mix(h: Any, x: Any) -> Any:
    """One round of a multiplicative hash; the high bits come down because tables are indexed by the low ones."""
    h = (h ^ x) * 0x9E3779B97F4A7C1
    return h ^ ((h >> 29) & 0x7FFFFFFFF)


# ---- names: chains of bytes and lists of names, interned ------------------------------------------------------


@njit(i3, **kernel)
def chain(c: Any, parent: Any, value: Any) -> Any:
    """The chain `parent` with `value` behind it: its id, or -1."""
    head, names, table = view(c, HEAD), view(c, NAMES), view(c, NAME_HASH)
    last = size(c, NAME_HASH) - 1
    h = mix(mix(0, parent), value) & last
    while True:
        k = table[h]
        if k < 0 or k >= head[N_NAMES] or names[3 * k + 2] != h:
            break
        if names[3 * k] == parent and names[3 * k + 1] == value:
            return k
        h = (h + 1) & last
    k = head[N_NAMES]
    if 3 * (k + 1) > size(c, NAMES) or 2 * k > last:
        return ask(c, FULL, NAMES)
    names[3 * k] = parent
    names[3 * k + 1] = value
    names[3 * k + 2] = h
    table[h] = k
    head[N_NAMES] = k + 1
    return k


@njit(i1, **kernel)
def hex_value(b: Any) -> Any:
    if 48 <= b <= 57:
        return b - 48
    if 97 <= b <= 102:
        return b - 87
    if 65 <= b <= 70:
        return b - 55
    return -1


@njit(i3, **kernel)
def spell_utf8(c: Any, x: Any, at: Any) -> Any:
    """Code point `x` as UTF-8 into BUFFER from `at` on: the place behind it."""
    buffer = view(c, BUFFER)
    if x < 0x80:
        buffer[at] = x
        return at + 1
    if x < 0x800:
        buffer[at] = 0xC0 | x >> 6
        buffer[at + 1] = 0x80 | x & 63
        return at + 2
    if x < 0x10000:
        buffer[at] = 0xE0 | x >> 12
        buffer[at + 1] = 0x80 | (x >> 6) & 63
        buffer[at + 2] = 0x80 | x & 63
        return at + 3
    buffer[at] = 0xF0 | x >> 18
    buffer[at + 1] = 0x80 | (x >> 12) & 63
    buffer[at + 2] = 0x80 | (x >> 6) & 63
    buffer[at + 3] = 0x80 | x & 63
    return at + 4


@njit(i2, **kernel)
def decode_name(c: Any, spelled: Any) -> Any:
    """The decoded bytes of a chain of spelled ones, into BUFFER: how many, or -1. An escape in the making is left out."""
    names, buffer = view(c, NAMES), view(c, BUFFER)
    n = 0
    k = spelled
    while k > UNKNOWN_NAMES:
        n += 1
        k = names[3 * k]
    if 2 * n + 8 > size(c, BUFFER):
        return ask(c, FULL, BUFFER)
    k = spelled
    for i in range(n):
        buffer[2 * n - 1 - i] = names[3 * k + 1]
        k = names[3 * k]
    # Reads from n on, writes from 0 on: what is written never passes what is read.
    read, end, written = n, 2 * n, 0
    while read < end:
        b = buffer[read]
        if b != 92:
            buffer[written] = b
            read += 1
            written += 1
            continue
        if read + 1 >= end:
            break
        b = buffer[read + 1]
        if b != 117:
            buffer[written] = 8 if b == 98 else 12 if b == 102 else 10 if b == 110 else 13 if b == 114 else 9 if b == 116 else b
            read += 2
            written += 1
            continue
        if read + 6 > end:
            break
        x = 0
        for i in range(4):
            x = 16 * x + hex_value(buffer[read + 2 + i])
        read += 6
        if 0xD800 <= x < 0xDC00:
            if read + 6 > end:
                break
            y = 0
            for i in range(4):
                y = 16 * y + hex_value(buffer[read + 2 + i])
            read += 6
            x = 0x10000 + ((x - 0xD800) << 10) + (y - 0xDC00)
        written = spell_utf8(c, x, written)
    return written


# ---- string points: places in a sorted block of strings --------------------------------------------------------


@njit("int64(int64, int64, int64, int64, int64)", **kernel)
def point(c: Any, block: Any, low: Any, high: Any, depth: Any) -> Any:
    """The place `depth` bytes into strings low .. high - 1 of `block`: its id, or -1."""
    head, points, table = view(c, HEAD), view(c, POINTS), view(c, POINT_HASH)
    last = size(c, POINT_HASH) - 1
    h = mix(mix(mix(block, low), high), depth) & last
    while True:
        k = table[h]
        if k < 0 or k >= head[N_POINTS] or points[5 * k + 4] != h:
            break
        p = 5 * k
        if points[p] == block and points[p + 1] == low and points[p + 2] == high and points[p + 3] == depth:
            return k
        h = (h + 1) & last
    k = head[N_POINTS]
    if 5 * (k + 1) > size(c, POINTS) or 2 * k > last:
        return ask(c, FULL, POINTS)
    points[5 * k] = block
    points[5 * k + 1] = low
    points[5 * k + 2] = high
    points[5 * k + 3] = depth
    points[5 * k + 4] = h
    table[h] = k
    head[N_POINTS] = k + 1
    return k


@njit("int64(int64, int64, int64, int64, int64, int64)", **kernel)
def bound(c: Any, block: Any, low: Any, high: Any, depth: Any, b: Any) -> Any:
    """The first string of low .. high - 1 whose byte at `depth` is at least `b` (one that ends there counts as -1)."""
    code = view(c, CODE)
    offsets = block + STR_OFFSETS
    while low < high:
        middle = (low + high) >> 1
        at = code[offsets + middle] + depth
        if at < code[offsets + middle + 1] and code[at] >= b:
            high = middle
        else:
            low = middle + 1
    return low


@njit("int64(int64, int64, int64, int64)", **kernel)
def any_allowed(c: Any, state: Any, low: Any, high: Any) -> Any:
    """The first key of ranks low .. high - 1 that object state `state` allows now, or -1."""
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


@njit("int64(int64, int64, int64)", **kernel)
def code_point(c: Any, at: Any, end: Any) -> Any:
    """The code point spelled in UTF-8 at `at` of CODE and, times 8, added: its number of bytes. -1 at the end."""
    code = view(c, CODE)
    if at >= end:
        return -1
    b = code[at]
    if b < 0x80:
        return b * 8 + 1
    if b < 0xE0:
        return ((b & 31) << 6 | code[at + 1] & 63) * 8 + 2
    if b < 0xF0:
        return ((b & 15) << 12 | (code[at + 1] & 63) << 6 | code[at + 2] & 63) * 8 + 3
    return ((b & 7) << 18 | (code[at + 1] & 63) << 12 | (code[at + 2] & 63) << 6 | code[at + 3] & 63) * 8 + 4


# ---- object states: the keys seen, and what follows from them ---------------------------------------------------


@njit("int64(int64, int64, int64)", **kernel)
def bit(c: Any, at: Any, i: Any) -> Any:
    """Bit i of the bit set at `at` of BUFFER."""
    return (view(c, BUFFER)[at + (i >> 5)] >> (i & 31)) & 1


@njit("int64(int64, int64, int64, int64)", **kernel)
def still_required(c: Any, block: Any, seen: Any, extra: Any) -> Any:
    """Into BUFFER behind `seen`: the keys that must still come once key `extra` (or -1) is there. How many.

    Closed over needs: a key that must come brings what it needs (JSON Schema 2020-12 validation, 6.5.4).
    """
    code, buffer = view(c, CODE), view(c, BUFFER)
    words, n = code[block + OBJ_WORDS], code[block + OBJ_COUNT]
    required, needs = code[block + OBJ_REQUIRED], code[block + OBJ_NEEDS]
    must = seen + words
    for w in range(words):
        buffer[must + w] = code[required + w]
    if needs > 0:
        changed = True
        while changed:
            changed = False
            for i in range(n):
                if i == extra or bit(c, seen, i) or bit(c, must, i):
                    for w in range(words):
                        more = buffer[must + w] | code[needs + i * words + w]
                        if more != buffer[must + w]:
                            buffer[must + w] = more
                            changed = True
    count = 0
    for i in range(n):
        if bit(c, seen, i) or i == extra:
            buffer[must + (i >> 5)] &= ~(1 << (i & 31))
        elif bit(c, must, i):
            count += 1
    return count


@njit("int64(int64, int64, int64, int64, int64)", **kernel)
def object_state(c: Any, block: Any, following: Any, members: Any, names: Any) -> Any:
    """The object state with these, and the keys seen in BUFFER[0 .. words): its offset in OBJECTS, or -1.

    Key i may come if every key that must still come then can still come and the count of members can be met. In
    schema order the undeclared keys come last, and a declared key that was passed over is gone.
    """
    head, objects, table, code = view(c, HEAD), view(c, OBJECTS), view(c, OBJECT_HASH), view(c, CODE)
    buffer = view(c, BUFFER)
    words, n = code[block + OBJ_WORDS], code[block + OBJ_COUNT]
    free = code[block + OBJ_ORDER]
    last = size(c, OBJECT_HASH) - 1
    h = mix(mix(mix(mix(0, block), following), members), names)
    for w in range(words):
        h = mix(h, buffer[w])
    h &= last
    while True:
        k = table[h]
        if k < 0 or k >= head[N_OBJECTS] or objects[k + O_SLOT] != h:
            break
        same = objects[k + O_BLOCK] == block and objects[k + O_NEXT] == following
        same = same and objects[k + O_MEMBERS] == members and objects[k + O_NAMES] == names
        for w in range(words):
            same = same and objects[k + O_BITS + w] == buffer[w]
        if same:
            return k
        h = (h + 1) & last
    k = head[N_OBJECTS]
    if k + O_BITS + 2 * words > size(c, OBJECTS) or k > 3 * last:
        return ask(c, FULL, OBJECTS)
    low, high = code[block + OBJ_LOW], code[block + OBJ_HIGH]
    others, needs = code[block + OBJ_OTHERS] > 0, code[block + OBJ_NEEDS] > 0
    ranks = code[block + OBJ_RANKS]
    allowed = k + O_BITS + words
    for w in range(words):
        objects[k + O_BITS + w] = buffer[w]
        objects[allowed + w] = 0
    flags = 0
    waiting = still_required(c, block, 0, -1)
    # The last key that may come in schema order: the first that must come.
    until = n - 1
    if free == 0:
        for i in range(following, n):
            if bit(c, words, i):
                until = i
                break
    left = 0  # declared keys that are not used up yet
    for i in range(following, n):
        left += 1 - bit(c, 0, i)
    for i in range(following, until + 1):
        if bit(c, 0, i):
            continue
        must = waiting - bit(c, words, i)
        fits = True
        if needs:
            must = still_required(c, block, 0, i)
            if free == 0:
                for j in range(i):
                    fits = fits and not bit(c, words, j)
        if high >= 0 and members + 1 + must > high:
            fits = False
        usable = left - 1 if free else n - i - 1
        if not others and members + 1 + usable < low:
            fits = False
        if fits:
            rank = code[ranks + i]
            objects[allowed + (rank >> 5)] |= 1 << (rank & 31)
            flags |= O_KEYS
        if needs:
            still_required(c, block, 0, -1)
    if others and (free or waiting == 0) and (high < 0 or members + 1 + waiting <= high):
        flags |= O_OTHER
    if waiting == 0 and members >= low:
        flags |= O_CLOSE
    objects[k + O_BLOCK] = block
    objects[k + O_NEXT] = following
    objects[k + O_MEMBERS] = members
    objects[k + O_NAMES] = names
    objects[k + O_FLAGS] = flags
    objects[k + O_SLOT] = h
    table[h] = k
    head[N_OBJECTS] = k + O_BITS + 2 * words
    return k


@njit("int64(int64, int64)", **kernel)
def buffer_for(c: Any, block: Any) -> Any:
    """Room in BUFFER for the bit sets of an object: 0 or -1."""
    return 0 if 2 * view(c, CODE)[block + OBJ_WORDS] + 8 < size(c, BUFFER) else ask(c, FULL, BUFFER)


@njit("int64(int64, int64)", **kernel)
def object_start(c: Any, block: Any) -> Any:
    """The state of an object with no member yet."""
    if buffer_for(c, block) < 0:
        return -1
    buffer = view(c, BUFFER)
    for w in range(view(c, CODE)[block + OBJ_WORDS]):
        buffer[w] = 0
    return object_state(c, block, 0, 0, NO_NAMES)


@njit("int64(int64, int64, int64, int64)", **kernel)
def object_after(c: Any, state: Any, key: Any, names: Any) -> Any:
    """The state after one more member: declared key number `key`, or -1 and the new list of names."""
    objects, code, buffer = view(c, OBJECTS), view(c, CODE), view(c, BUFFER)
    block = objects[state + O_BLOCK]
    if buffer_for(c, block) < 0:
        return -1
    following = objects[state + O_NEXT]
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
        following = key + 1 if key >= 0 else code[block + OBJ_COUNT]
        if code[block + OBJ_NEEDS] == 0:
            # Keys before `following` are gone whether seen or not: forgetting which keeps the states few.
            for i in range(following):
                buffer[i >> 5] |= 1 << (i & 31)
    return object_state(c, block, following, members, names)


@njit("int64(int64, int64, int64)", **kernel)
def object_named(c: Any, state: Any, spelled: Any) -> Any:
    """The state after an undeclared key spelled so: its offset, 0 if that key was there already, or -1."""
    names = view(c, NAMES)
    seen = view(c, OBJECTS)[state + O_NAMES]
    if seen == UNKNOWN_NAMES:
        return object_after(c, state, -1, UNKNOWN_NAMES)
    n = decode_name(c, spelled)
    if n < 0:
        return -1
    buffer = view(c, BUFFER)
    decoded = DECODED
    for i in range(n):
        decoded = chain(c, decoded, buffer[i])
        if decoded < 0:
            return -1
    k = seen
    while k != NO_NAMES:
        if names[3 * k + 1] == decoded:
            return 0
        k = names[3 * k]
    # Values of lists are ids of chains; + 256 would be needed only if lists and chains shared a root.
    longer = chain(c, seen, decoded)
    return -1 if longer < 0 else object_after(c, state, -1, longer)


# ---- closure ------------------------------------------------------------------------------------------------------


@njit(i1, **kernel)
def begin(c: Any) -> Any:
    head = view(c, HEAD)
    for k in (N_ITEMS, N_LOCALS, N_LEDGES, N_MISSING, ACCEPTS, UNSURE):
        head[k] = 0
    head[STAMP] += 1
    if head[STAMP] > 1 << 30:
        seen = view(c, SEEN)
        for k in range(size(c, SEEN)):
            seen[k] = 0
        head[STAMP] = 1
    return 0


@njit(i6, **kernel)
def push(c: Any, pc: Any, q: Any, node: Any, reg: Any, ext: Any) -> Any:
    """Puts an item on the list of the closure unless it is there: 0 or -1."""
    head, items, seen = view(c, HEAD), view(c, ITEMS), view(c, SEEN)
    last = size(c, SEEN) // 2 - 1
    n, stamp = head[N_ITEMS], head[STAMP]
    h = mix(mix(mix(mix(mix(0, pc), q), node), reg), ext) & last
    while seen[2 * h] == stamp:
        k = 5 * seen[2 * h + 1]
        same = items[k] == pc and items[k + 1] == q and items[k + 2] == node
        if same and items[k + 3] == reg and items[k + 4] == ext:
            return 0
        h = (h + 1) & last
    if 5 * (n + 1) > size(c, ITEMS) or 2 * n > last:
        return ask(c, FULL, ITEMS)
    seen[2 * h] = stamp
    seen[2 * h + 1] = n
    k = 5 * n
    items[k] = pc
    items[k + 1] = q
    items[k + 2] = node
    items[k + 3] = reg
    items[k + 4] = ext
    head[N_ITEMS] = n + 1
    return 0


@njit(i6, **kernel)
def emit(c: Any, pc: Any, q: Any, node: Any, reg: Any, ext: Any) -> Any:
    """Puts a configuration of the set in the making on the list."""
    return push(c, -pc - 1, q, node, reg, ext)


@njit("int64(int64, int64, int64, int64, int64)", **kernel)
def call(c: Any, cell: Any, pc: Any, node: Any, packed: Any) -> Any:
    """A call of rule `cell` that returns to `pc`: all such calls of one closure share a stack node. 0 or -1.

    packed: register << 1 | whether this round of a repetition is still empty.
    """
    head, code, calls, edges = view(c, HEAD), view(c, CODE), view(c, LOCALS), view(c, LEDGES)
    reg, ext = packed >> 1, -(packed & 1)
    which = -1
    for k in range(head[N_LOCALS]):
        if calls[4 * k] == cell:
            which = k
    if which < 0:
        which = head[N_LOCALS]
        if 4 * (which + 1) > size(c, LOCALS):
            return ask(c, FULL, LOCALS)
        calls[4 * which] = cell
        calls[4 * which + 1] = -1
        calls[4 * which + 2] = 0
        calls[4 * which + 3] = 0
        head[N_LOCALS] = which + 1
        if push(c, code[cell], -1, -which - 2, 0, 0) < 0:
            return -1
    e = calls[4 * which + 1]
    while e >= 0:
        k = 5 * e
        if edges[k] == pc and edges[k + 1] == reg and edges[k + 2] == ext and edges[k + 3] == node:
            return 0
        e = edges[k + 4]
    e = head[N_LEDGES]
    if 5 * (e + 1) > size(c, LEDGES):
        return ask(c, FULL, LEDGES)
    edges[5 * e] = pc
    edges[5 * e + 1] = reg
    edges[5 * e + 2] = ext
    edges[5 * e + 3] = node
    edges[5 * e + 4] = calls[4 * which + 1]
    calls[4 * which + 1] = e
    head[N_LEDGES] = e + 1
    if calls[4 * which + 2]:  # it came back already without taking a byte
        return push(c, pc, -1, node, reg, ext)
    return 0


@njit("int64(int64, int64)", **kernel)
def give_back(c: Any, node: Any) -> Any:
    """The end of a rule whose stack node is `node`: on with every caller. 0 or -1."""
    head = view(c, HEAD)
    if node == 0:
        head[ACCEPTS] = 1
        return 0
    if node > 0:
        nodes, edges = view(c, NODES), view(c, EDGES)
        first = nodes[4 * node]
        for e in range(first, first + nodes[4 * node + 1]):
            if push(c, edges[3 * e], -1, edges[3 * e + 2], edges[3 * e + 1], 0) < 0:
                return -1
        return 0
    calls, ledges = view(c, LOCALS), view(c, LEDGES)
    which = -node - 2
    calls[4 * which + 2] = 1
    e = calls[4 * which + 1]
    while e >= 0:
        k = 5 * e
        if push(c, ledges[k], -1, ledges[k + 3], ledges[k + 1], ledges[k + 2]) < 0:
            return -1
        e = ledges[k + 4]
    return 0


@njit(i1, **kernel)
def close(c: Any) -> Any:
    """Follows every item of the list through the instructions that take no byte. 0 or -1."""
    head, items, code = view(c, HEAD), view(c, ITEMS), view(c, CODE)
    starts, leaves, objects, points = view(c, STARTS), view(c, LEAVES), view(c, OBJECTS), view(c, POINTS)
    done = 0
    while done < head[N_ITEMS]:
        pc, q, node, reg, ext = (
            items[5 * done] + 0, items[5 * done + 1] + 0, items[5 * done + 2] + 0,
            items[5 * done + 3] + 0, items[5 * done + 4] + 0,
        )  # fmt: skip
        done += 1
        while pc >= 0:
            op = code[pc]
            if op < 256:
                if emit(c, pc, -1, node, reg, 0) < 0:
                    return -1
                break
            if op == LEAF:
                low, high = code[pc + 2], code[pc + 3]
                count, mark = ext, 0
                if q < 0:
                    q = starts[code[pc + 1]]
                    if q < 0:
                        return ask(c, NEED_START, code[pc + 1])
                    count, mark = 0, ext
                flags = leaves[q * LEAF_W + LEAF_FLAGS]
                if flags & LEAF_EXPANDED == 0:
                    return ask(c, NEED_LEAF, q)
                at_end = high >= 0 and count >= high and flags & LEAF_BOUNDARY and flags & LEAF_CLOSES == 0
                if leaves[q * LEAF_W + LEAF_ALLOWED] > 0 and not at_end:
                    if emit(c, pc, q, node, reg, count) < 0:
                        return -1
                if flags & LEAF_EXITS and count >= low:
                    pc, q, ext = pc + 4, -1, mark
                    continue
                break
            if op == SPLIT:
                for k in range(code[pc + 1]):
                    if push(c, code[pc + 2 + k], -1, node, reg, ext) < 0:
                        return -1
                break
            if op == CALL:
                cell = code[pc + 1]
                if code[cell] == 0:
                    if head[N_MISSING] >= size(c, MISSING):
                        return ask(c, FULL, MISSING)
                    view(c, MISSING)[head[N_MISSING]] = cell
                    head[N_MISSING] += 1
                    break
                if code[pc + 2] == END:  # a call at the end of a rule comes back to the caller's caller
                    if push(c, code[cell], -1, node, 0, 0) < 0:
                        return -1
                    break
                if call(c, cell, pc + 2, node, reg << 1 | (ext & 1)) < 0:
                    return -1
                break
            if op == END:
                if give_back(c, node) < 0:
                    return -1
                break
            if op == JUMP:
                pc = code[pc + 1]
            elif op == SET:
                block = code[pc + 1]
                n = code[block + STR_COUNT]
                q = point(c, block, 0, n, 0)
                if q < 0 or emit(c, pc, q, node, reg, 0) < 0:
                    return -1
                if code[block + STR_OFFSETS] < code[block + STR_OFFSETS + 1]:
                    break
                pc, q = pc + 2, -1
            elif op == ENTER:
                reg = 0
                pc += 1
            elif op == TEST:
                if reg >= code[pc + 1] and push(c, code[pc + 3], -1, node, 0, 0 if reg > 0 else ext) < 0:
                    return -1
                if code[pc + 2] >= 0 and reg >= code[pc + 2]:
                    break
                ext = -1
                pc += 4
            elif op == COUNT:
                if ext == -1:  # an empty round leads nowhere that this place does not
                    break
                reg = min(reg + 1, code[pc + 1])
                pc += 2
            elif op == INIT:
                reg = object_start(c, code[pc + 1])
                if reg < 0:
                    return -1
                pc += 2
            elif op == KEYS:
                if objects[reg + O_FLAGS] & O_KEYS:
                    block = code[code[pc + 1] + OBJ_KEYS]
                    q = point(c, block, 0, code[block + STR_COUNT], 0)
                    if q < 0 or emit(c, pc, q, node, reg, 0) < 0:
                        return -1
                break
            elif op == OTHER:
                if objects[reg + O_FLAGS] & O_OTHER:
                    q = starts[code[pc + 2]]
                    if q < 0:
                        return ask(c, NEED_START, code[pc + 2])
                    if leaves[q * LEAF_W + LEAF_FLAGS] & LEAF_EXPANDED == 0:
                        return ask(c, NEED_LEAF, q)
                    if objects[reg + O_NAMES] == UNKNOWN_NAMES:
                        head[UNSURE] = 1
                    if emit(c, pc, q, node, reg, SPELLED) < 0:
                        return -1
                break
            elif op == MORE:
                if objects[reg + O_FLAGS] & (O_KEYS | O_OTHER) == 0:
                    break
                pc += 2
            else:  # CLOSE
                if objects[reg + O_FLAGS] & O_CLOSE == 0:
                    break
                reg = 0
                pc += 2
    return 0


# ---- stack nodes ----------------------------------------------------------------------------------------------------


@njit("int64(int64, int64, int64)", **kernel)
def write_node(c: Any, which: Any, at: Any) -> Any:
    """The edges of call `which` into BUFFER at `at`: how many, then (pc, register, node) each. The place behind, or -1.

    Nodes below that have their final id are written as that, others as -index - 2 of LOCALS' visit order.
    """
    calls, ledges, buffer = view(c, LOCALS), view(c, LEDGES), view(c, BUFFER)
    n, first = 0, at + 1
    e = calls[4 * which + 1]
    while e >= 0:
        if first + 3 * n + 3 > size(c, BUFFER):
            return ask(c, FULL, BUFFER)
        pc, reg, below = ledges[5 * e], ledges[5 * e + 1], ledges[5 * e + 3] + 0
        if below < 0:
            below = calls[4 * (-below - 2) + 3]
        e = ledges[5 * e + 4]
        known = False
        for k in range(n):
            j = first + 3 * k
            known = known or (buffer[j] == pc and buffer[j + 1] == reg and buffer[j + 2] == below)
        if not known:
            j = first + 3 * n
            buffer[j] = pc
            buffer[j + 1] = reg
            buffer[j + 2] = below
            n += 1
    buffer[at] = n
    return first + 3 * n


@njit("int64(int64, int64, int64)", **kernel)
def intern_nodes(c: Any, count: Any, end: Any) -> Any:
    """The `count` stack nodes written in BUFFER[0 .. end), as one block: the id of the first, or -1."""
    head, nodes, edges, table = view(c, HEAD), view(c, NODES), view(c, EDGES), view(c, NODE_HASH)
    buffer = view(c, BUFFER)
    last = size(c, NODE_HASH) - 1
    h = mix(0, count)
    for k in range(end):
        h = mix(h, buffer[k])
    h &= last
    while True:
        base = table[h]
        if base <= 0 or base >= head[N_NODES] or nodes[4 * base + 3] != h:
            break
        same = nodes[4 * base + 2] == count
        at = 0
        for k in range(count if same else 0):
            n = buffer[at]
            at += 1
            same = same and nodes[4 * (base + k) + 1] == n
            for j in range(n if same else 0):
                e = 3 * (nodes[4 * (base + k)] + j)
                below = buffer[at + 3 * j + 2] + 0
                if below < 0:
                    below = base - below - 2
                same = same and edges[e] == buffer[at + 3 * j] and edges[e + 1] == buffer[at + 3 * j + 1]
                same = same and edges[e + 2] == below
            at += 3 * n
        if same:
            return base
        h = (h + 1) & last
    base = head[N_NODES]
    if 4 * (base + count) > size(c, NODES) or 2 * base > last:
        return ask(c, FULL, NODES)
    if 3 * (head[N_EDGES] + end) > size(c, EDGES):
        return ask(c, FULL, EDGES)
    at = 0
    for k in range(count):
        n = buffer[at]
        at += 1
        node = 4 * (base + k)
        nodes[node] = head[N_EDGES]
        nodes[node + 1] = n
        nodes[node + 2] = count if k == 0 else 0
        nodes[node + 3] = h if k == 0 else -1
        for j in range(n):
            e = 3 * head[N_EDGES]
            below = buffer[at + 2] + 0
            edges[e] = buffer[at]
            edges[e + 1] = buffer[at + 1]
            edges[e + 2] = below if below >= 0 else base - below - 2
            at += 3
            head[N_EDGES] += 1
    table[h] = base
    head[N_NODES] = base + count
    return base


@njit("int64(int64, int64)", **kernel)
def settle_cycle(c: Any, which: Any) -> Any:
    """As `settle`, for calls on a cycle: all that `which` reaches and that have no id yet become one block."""
    head, calls, ledges, stack = view(c, HEAD), view(c, LOCALS), view(c, LEDGES), view(c, STACK)
    for k in range(head[N_LOCALS]):
        if calls[4 * k + 3] < 0:
            calls[4 * k + 3] = 0
    # Numbered in the order in which they are reached: index i is written as -i - 2.
    calls[4 * which + 3] = -2
    stack[0] = which
    n, done = 1, 0
    while done < n:
        e = calls[4 * stack[done] + 1]
        done += 1
        while e >= 0:
            below = ledges[5 * e + 3]
            e = ledges[5 * e + 4]
            if below < 0 and calls[4 * (-below - 2) + 3] == 0:
                calls[4 * (-below - 2) + 3] = -n - 2
                stack[n] = -below - 2
                n += 1
    end = 0
    for k in range(n):
        end = write_node(c, stack[k], end)
        if end < 0:
            return -1
    base = intern_nodes(c, n, end)
    if base < 0:
        return -1
    for k in range(n):
        calls[4 * stack[k] + 3] = base + k
    return 0


@njit("int64(int64, int64)", **kernel)
def settle(c: Any, which: Any) -> Any:
    """Gives call `which` and all below it their final ids, in LOCALS[., 3]: 0 or -1.

    Nodes are interned from below; where calls lie on a cycle (left recursion), all of the closure's calls that are
    reached are interned as one block.
    """
    calls, ledges, stack = view(c, LOCALS), view(c, LEDGES), view(c, STACK)
    if 2 * view(c, HEAD)[N_LOCALS] + 4 > size(c, STACK):
        return ask(c, FULL, STACK)
    # Visit states: 0 new, -1 being visited, > 0 final id. STACK holds (call, edge to look at next).
    top = 0
    stack[0], stack[1] = which, calls[4 * which + 1]
    calls[4 * which + 3] = -1
    while top >= 0:
        k, e = stack[2 * top] + 0, stack[2 * top + 1] + 0
        deeper = False
        while e >= 0 and not deeper:
            below = ledges[5 * e + 3]
            e = ledges[5 * e + 4] + 0
            if below < 0:
                state = calls[4 * (-below - 2) + 3]
                if state == -1:
                    return settle_cycle(c, which)
                if state == 0:
                    deeper = True
                    stack[2 * top + 1] = e
                    top += 1
                    stack[2 * top] = -below - 2
                    stack[2 * top + 1] = calls[4 * (-below - 2) + 1]
                    calls[4 * (-below - 2) + 3] = -1
        if deeper:
            continue
        end = write_node(c, k, 0)
        if end < 0:
            return -1
        final = intern_nodes(c, 1, end)
        if final < 0:
            return -1
        calls[4 * k + 3] = final
        top -= 1
    return 0


# ---- sets ---------------------------------------------------------------------------------------------------------


@njit("int64(int64, int64, int64)", **kernel)
def allow(c: Any, s: Any, b: Any) -> Any:
    """Adds byte b to the allowed ones of set record s (while it is in the making: as bits in SET_NEXT)."""
    view(c, SETS)[s * SET_W + SET_NEXT + (b >> 5)] |= 1 << (b & 31)
    return 0


@njit("int64(int64, int64, int64, int64)", **kernel)
def allow_point(c: Any, s: Any, q: Any, state: Any) -> Any:
    """Adds the bytes that may follow at string point q; `state` is the object state whose keys they are, or -1."""
    code, points = view(c, CODE), view(c, POINTS)
    block, low, high, depth = points[5 * q], points[5 * q + 1] + 0, points[5 * q + 2], points[5 * q + 3]
    offsets = block + STR_OFFSETS
    while low < high:
        at = code[offsets + low] + depth
        if at >= code[offsets + low + 1]:
            low += 1
            continue
        b = code[at]
        until = bound(c, block, low, high, depth, b + 1)
        if state < 0 or any_allowed(c, state, low, until) >= 0:
            allow(c, s, b)
        low = until
    return 0


@njit("int64(int64, int64, int64, int64, int64)", **kernel)
def allow_escaped(c: Any, s: Any, q: Any, reg: Any, ext: Any) -> Any:
    """The bytes that may follow in a key spelled with any escapes (a few too many: a step decides)."""
    kind = ext >> KIND
    if kind == PLAIN:
        allow_point(c, s, q, reg)
        view(c, SETS)[s * SET_W + SET_NEXT] = 0  # control characters are never written as they are
        allow(c, s, 34)
        allow(c, s, 92)
    elif kind == ESCAPE:
        for b in (34, 47, 92, 98, 102, 110, 114, 116, 117):
            allow(c, s, b)
    elif kind == HIGH:
        allow(c, s, 92)
    elif kind == HIGH_ESCAPE:
        allow(c, s, 117)
    else:
        for b in range(48, 58):
            allow(c, s, b)
        for b in range(65, 71):
            allow(c, s, b)
            allow(c, s, b + 32)
    return 0


@njit("int64(int64, int64, int64)", **kernel)
def describe_allowed(c: Any, s: Any, first: Any) -> Any:
    """Writes which bytes set record s allows, from its configurations (CONFIGS from `first` on). 0 or -1."""
    head, sets, configs, code = view(c, HEAD), view(c, SETS), view(c, CONFIGS), view(c, CODE)
    leaves, points = view(c, LEAVES), view(c, POINTS)
    r = s * SET_W
    for w in range(8):
        sets[r + SET_NEXT + w] = 0
    for k in range(first, first + sets[r + SET_COUNT]):
        pc, q, reg, ext = configs[5 * k], configs[5 * k + 1], configs[5 * k + 3], configs[5 * k + 4]
        op = code[pc]
        if op < 256:
            allow(c, s, op)
        elif op == LEAF or op == OTHER:
            for w in range(8):
                sets[r + SET_NEXT + w] |= leaves[q * LEAF_W + LEAF_BYTES + w]
        elif op == SET:
            allow_point(c, s, q, -1)
        elif code[points[5 * q] + STR_ESCAPES] == 0:
            allow_point(c, s, q, reg)
        else:
            allow_escaped(c, s, q, reg, ext)
    n = 0
    for b in range(256):
        if sets[r + SET_NEXT + (b >> 5)] >> (b & 31) & 1:
            n += 1
    if n > NARROW:
        row = head[N_WIDE]
        if 256 * (row + 1) > size(c, WIDE):
            return ask(c, FULL, WIDE)
        wide = view(c, WIDE)
        for b in range(256):
            wide[256 * row + b] = -1
        head[N_WIDE] = row + 1
        sets[r + SET_ALLOWED] = NARROW + 1
        sets[r + SET_BYTES] = row
        return 0
    sets[r + SET_BYTES] = 0
    sets[r + SET_BYTES + 1] = 0
    k = 0
    for b in range(256):
        if sets[r + SET_NEXT + (b >> 5)] >> (b & 31) & 1:
            sets[r + SET_BYTES + (k >> 2)] |= b << (8 * (k & 3))
            k += 1
    sets[r + SET_ALLOWED] = n
    for w in range(8):
        sets[r + SET_NEXT + w] = -1
    return 0


@njit(i1, **kernel)
def intern(c: Any) -> Any:
    """The id of the set that the closure at work has made, or -1."""
    head, items, calls = view(c, HEAD), view(c, ITEMS), view(c, LOCALS)
    if head[N_MISSING] > 0:
        return ask(c, NEED_RULES, 0)
    configs, sets, table = view(c, CONFIGS), view(c, SETS), view(c, SET_HASH)
    first = head[N_CONFIGS]
    if 5 * (first + head[N_ITEMS]) > size(c, CONFIGS):
        return ask(c, FULL, CONFIGS)
    n = 0
    h = mix(0, head[ACCEPTS])
    for i in range(head[N_ITEMS]):
        if items[5 * i] >= 0:
            continue
        node = items[5 * i + 2] + 0
        if node < 0:
            if calls[4 * (-node - 2) + 3] <= 0 and settle(c, -node - 2) < 0:
                return -1
            node = calls[4 * (-node - 2) + 3]
        k = 5 * (first + n)
        configs[k] = -items[5 * i] - 1
        configs[k + 1] = items[5 * i + 1]
        configs[k + 2] = node
        configs[k + 3] = items[5 * i + 3]
        configs[k + 4] = items[5 * i + 4]
        for j in range(5):
            h = mix(h, configs[k + j])
        n += 1
    if n == 0 and head[ACCEPTS] == 0:
        return DEAD
    flags = (IS_ACCEPTING if head[ACCEPTS] else 0) | (IS_UNSURE if head[UNSURE] else 0)
    last = size(c, SET_HASH) - 1
    h &= last
    while True:
        s = table[h]
        if s <= 0 or s >= head[N_SETS] or sets[s * SET_W + SET_SLOT] != h:
            break
        same = sets[s * SET_W + SET_COUNT] == n and sets[s * SET_W + SET_FLAGS] == flags
        old = 5 * sets[s * SET_W + SET_FIRST]
        k = 0
        while same and k < 5 * n:
            same = configs[old + k] == configs[5 * first + k]
            k += 1
        if same:
            return s
        h = (h + 1) & last
    s = head[N_SETS]
    if SET_W * (s + 1) > size(c, SETS) or 2 * s > last:
        return ask(c, FULL, SETS)
    r = s * SET_W
    sets[r + SET_FIRST] = first
    sets[r + SET_COUNT] = n
    sets[r + SET_FLAGS] = flags
    sets[r + SET_MASK] = -1
    sets[r + SET_SLOT] = h
    if describe_allowed(c, s, first) < 0:
        return -1
    table[h] = s
    head[N_SETS] = s + 1
    head[N_CONFIGS] = first + n
    return s


@njit(i1, **kernel)
def start_set(c: Any) -> Any:
    """The set before any text, or -1."""
    head, code = view(c, HEAD), view(c, CODE)
    begin(c)
    cell = head[ENTRY]
    if code[cell] == 0:
        view(c, MISSING)[0] = cell
        head[N_MISSING] = 1
        return ask(c, NEED_RULES, 0)
    if push(c, code[cell], -1, 0, 0, 0) < 0 or close(c) < 0:
        return -1
    return intern(c)


# ---- one byte -----------------------------------------------------------------------------------------------------


@njit("int64(int64, int64, int64, int64, int64, int64, int64)", **kernel)
def step_leaf(c: Any, pc: Any, q: Any, node: Any, reg: Any, ext: Any, b: Any) -> Any:
    """A byte inside a leaf: 0 or -1."""
    code, leaves = view(c, CODE), view(c, LEAVES)
    after = view(c, LEAF_NEXT)[256 * q + b]
    if after < 0:
        return 0
    if code[pc] == OTHER:
        if leaves[after * LEAF_W + LEAF_FLAGS] & LEAF_EXPANDED == 0:
            return ask(c, NEED_LEAF, after)
        if leaves[after * LEAF_W + LEAF_FLAGS] & LEAF_EXITS:
            state = object_named(c, reg, ext)
            return state if state <= 0 else push(c, code[pc + 3], -1, node, state, 0)
        ext = chain(c, ext, b)
        return -1 if ext < 0 else emit(c, pc, after, node, reg, ext)
    low, high = code[pc + 2], code[pc + 3]
    closed = leaves[after * LEAF_W + LEAF_DECODER] >> KIND == DONE
    if leaves[q * LEAF_W + LEAF_FLAGS] & LEAF_BOUNDARY and not closed:
        ext += 1
    if closed:
        if ext < low:
            return 0
    elif high >= 0:
        if ext + leaves[after * LEAF_W + LEAF_NEED] > high:
            return 0
    elif ext > low:  # no upper bound: no use in counting on
        ext = low
    return push(c, pc, after, node, reg, ext)


@njit("int64(int64, int64, int64, int64, int64)", **kernel)
def finish_key(c: Any, pc: Any, node: Any, reg: Any, rank: Any) -> Any:
    """The declared key of that rank is complete: on with its value. 0 or -1."""
    code, objects = view(c, CODE), view(c, OBJECTS)
    block = code[pc + 1]
    key = 0
    while code[code[block + OBJ_RANKS] + key] != rank:
        key += 1
    state = object_after(c, reg, key, objects[reg + O_NAMES])
    if state < 0:
        return -1
    return push(c, code[code[block + OBJ_TARGETS] + key], -1, node, state, 0)


@njit("int64(int64, int64, int64, int64, int64, int64)", **kernel)
def step_point(c: Any, pc: Any, q: Any, node: Any, reg: Any, b: Any) -> Any:
    """A byte inside a string block whose strings are spelled as they stand: 0 or -1."""
    code, points, objects = view(c, CODE), view(c, POINTS), view(c, OBJECTS)
    block, depth = points[5 * q], points[5 * q + 3] + 1
    low = bound(c, block, points[5 * q + 1], points[5 * q + 2], depth - 1, b)
    high = bound(c, block, low, points[5 * q + 2], depth - 1, b + 1)
    if low >= high:
        return 0
    ends = code[block + STR_OFFSETS + low] + depth == code[block + STR_OFFSETS + low + 1]
    if code[pc] == SET:
        if ends:
            if push(c, pc + 2, -1, node, reg, 0) < 0:
                return -1
            low += 1
            if low >= high:
                return 0
    else:
        low = any_allowed(c, reg, low, high)
        if low < 0:
            return 0
        if code[block + STR_OFFSETS + low] + depth == code[block + STR_OFFSETS + low + 1]:
            return finish_key(c, pc, node, reg, low)
    after = point(c, block, low, high, depth)
    return -1 if after < 0 else emit(c, pc, after, node, reg, 0)


# Keys spelled with any escapes. The strings of the block are decoded UTF-8; `extra` holds what is pending:
# kind << KIND | digits left << LEFT | value, the kinds being those of a leaf's decoder.


@njit("int64(int64, int64, int64, int64, int64, int64)", **kernel)
def next_in_range(c: Any, q: Any, state: Any, least: Any, most: Any, low: Any) -> Any:
    """The first allowed key of rank `low` or above at point q whose next code point lies in least .. most, or -1."""
    code, points = view(c, CODE), view(c, POINTS)
    block, high, depth = points[5 * q], points[5 * q + 2], points[5 * q + 3]
    k = any_allowed(c, state, low, high)
    while k >= 0:
        x = code_point(c, code[block + STR_OFFSETS + k] + depth, code[block + STR_OFFSETS + k + 1])
        if x >= 0 and least <= x >> 3 <= most:
            return k
        k = any_allowed(c, state, k + 1, high)
    return -1


@njit("int64(int64, int64, int64, int64)", **kernel)
def digits_possible(c: Any, q: Any, state: Any, pending: Any) -> Any:
    """Whether some allowed key goes on with a character that the pending hexadecimal digits can still spell."""
    points = view(c, POINTS)
    low = points[5 * q + 1]
    kind, left, value = pending >> KIND, (pending >> LEFT) & 7, pending & VALUE
    least, most = value << 4 * left, ((value + 1) << 4 * left) - 1
    if kind == HEX:
        if next_in_range(c, q, state, least, min(most, 0xFFFF), low) >= 0:
            return 1
        # High surrogates spell the characters beyond U+FFFF, 1,024 each.
        least, most = max(least, 0xD800), min(most, 0xDBFF)
        if least > most:
            return 0
        least, most = 0x10000 + ((least - 0xD800) << 10), 0x10000 + ((most - 0xD800) << 10) + 0x3FF
        return 1 if next_in_range(c, q, state, least, most, low) >= 0 else 0
    # LOW: 10 bits of the high surrogate, then the digits so far of DC00 .. DFFF.
    bits, digits = value >> 12, value & 0xFFF
    least, most = digits << 4 * left, ((digits + 1) << 4 * left) - 1
    least, most = max(least, 0xDC00), min(most, 0xDFFF)
    if least > most:
        return 0
    base = 0x10000 + (bits << 10)
    return 1 if next_in_range(c, q, state, base + least - 0xDC00, base + most - 0xDC00, low) >= 0 else 0


@njit("int64(int64, int64, int64, int64, int64, int64)", **kernel)
def narrow_to(c: Any, pc: Any, q: Any, node: Any, reg: Any, x: Any) -> Any:
    """A whole character x inside keys, written as an escape: 0 or -1."""
    code, points, buffer = view(c, CODE), view(c, POINTS), view(c, BUFFER)
    block, low, high, depth = points[5 * q], points[5 * q + 1] + 0, points[5 * q + 2] + 0, points[5 * q + 3] + 0
    n = spell_utf8(c, x, 0)
    for i in range(n):
        low = bound(c, block, low, high, depth, buffer[i])
        high = bound(c, block, low, high, depth, buffer[i] + 1)
        depth += 1
    if any_allowed(c, reg, low, high) < 0:
        return 0
    after = point(c, block, low, high, depth)
    return -1 if after < 0 else emit(c, pc, after, node, reg, 0)


@njit("int64(int64, int64, int64, int64)", **kernel)
def waits_at_end(c: Any, q: Any, state: Any, offset: Any) -> Any:
    """The rank of the allowed key that ends at point q, or -1."""
    code, points = view(c, CODE), view(c, POINTS)
    block, low = points[5 * q], points[5 * q + 1]
    if low < points[5 * q + 2] and code[block + STR_OFFSETS + low] + points[5 * q + 3] == code[block + STR_OFFSETS + low + 1]:
        return any_allowed(c, state, low, low + 1)
    return -1


@njit("int64(int64, int64)", **kernel)
def unescape(b: Any, unused: Any) -> Any:
    """What backslash and b spell (RFC 8259 section 7), -1 if nothing."""
    if b == 34 or b == 92 or b == 47:
        return b
    return 8 if b == 98 else 12 if b == 102 else 10 if b == 110 else 13 if b == 114 else 9 if b == 116 else -1


@njit("int64(int64, int64, int64, int64, int64, int64, int64)", **kernel)
def step_escaped(c: Any, pc: Any, q: Any, node: Any, reg: Any, ext: Any, b: Any) -> Any:
    """A byte of a declared key that may be spelled with escapes: 0 or -1."""
    points = view(c, POINTS)
    kind, left, value = ext >> KIND, (ext >> LEFT) & 7, ext & VALUE
    if kind == PLAIN:
        if b == 34:
            rank = waits_at_end(c, q, reg, 0)
            return 0 if rank < 0 else finish_key(c, pc, node, reg, rank)
        if b == 92:
            if next_in_range(c, q, reg, 0, 0x10FFFF, points[5 * q + 1]) < 0:
                return 0
            return emit(c, pc, q, node, reg, ESCAPE << KIND)
        if b < 32:
            return 0
        block, depth = points[5 * q], points[5 * q + 3]
        low = bound(c, block, points[5 * q + 1], points[5 * q + 2], depth, b)
        high = bound(c, block, low, points[5 * q + 2], depth, b + 1)
        if any_allowed(c, reg, low, high) < 0:
            return 0
        after = point(c, block, low, high, depth + 1)
        return -1 if after < 0 else emit(c, pc, after, node, reg, 0)
    if kind == ESCAPE:
        if b == 117:
            pending = HEX << KIND | 4 << LEFT
            return emit(c, pc, q, node, reg, pending) if digits_possible(c, q, reg, pending) else 0
        x = unescape(b, 0)
        return 0 if x < 0 else narrow_to(c, pc, q, node, reg, x)
    if kind == HIGH or kind == HIGH_ESCAPE:
        if b != (92 if kind == HIGH else 117):
            return 0
        pending = HIGH_ESCAPE << KIND | value if kind == HIGH else LOW << KIND | 4 << LEFT | value << 12
        return emit(c, pc, q, node, reg, pending)
    digit = hex_value(b)
    if digit < 0:
        return 0
    if kind == HEX:
        value = value << 4 | digit
    else:
        value = (value & ~0xFFF) | ((value & 0xFFF) << 4 | digit)
        if left == 1:
            low_half = 0xD000 | (value & 0xFFF)
            x = 0x10000 + ((value >> 12 & 0x3FF) << 10) + (low_half - 0xDC00)
            return narrow_to(c, pc, q, node, reg, x) if low_half >= 0xDC00 else 0
    if left > 1:
        pending = kind << KIND | (left - 1) << LEFT | value
        return emit(c, pc, q, node, reg, pending) if digits_possible(c, q, reg, pending) else 0
    if 0xD800 <= value < 0xDC00:
        pending = HIGH << KIND | (value - 0xD800)
        base = 0x10000 + ((value - 0xD800) << 10)
        return emit(c, pc, q, node, reg, pending) if next_in_range(c, q, reg, base, base + 0x3FF, points[5 * q + 1]) >= 0 else 0
    return narrow_to(c, pc, q, node, reg, value) if value < 0xD800 or value > 0xDFFF else 0


@njit("int64(int64, int64, int64)", **kernel)
def place(c: Any, s: Any, b: Any) -> Any:
    """Where in SETS (or, as -place - 2, in WIDE) the step of set s by byte b is remembered; -1: b is refused."""
    sets = view(c, SETS)
    r = s * SET_W
    n = sets[r + SET_ALLOWED]
    if n > NARROW:
        if sets[r + SET_NEXT + (b >> 5)] >> (b & 31) & 1 == 0:
            return -1
        return -(256 * sets[r + SET_BYTES] + b) - 2
    for k in range(n):
        if sets[r + SET_BYTES + (k >> 2)] >> (8 * (k & 3)) & 255 == b:
            return r + SET_NEXT + k
    return -1


@njit("int64(int64, int64, int64)", **kernel)
def fresh_step(c: Any, s: Any, b: Any) -> Any:
    """The set after set s and byte b, worked out anew: its id, DEAD, or -1."""
    code, sets, configs, points = view(c, CODE), view(c, SETS), view(c, CONFIGS), view(c, POINTS)
    begin(c)
    first = sets[s * SET_W + SET_FIRST]
    for k in range(first, first + sets[s * SET_W + SET_COUNT]):
        pc, q, node = configs[5 * k], configs[5 * k + 1], configs[5 * k + 2]
        reg, ext = configs[5 * k + 3], configs[5 * k + 4]
        op = code[pc]
        status = 0
        if op < 256:
            if op == b:
                status = push(c, pc + 1, -1, node, reg, 0)
        elif op == LEAF or op == OTHER:
            status = step_leaf(c, pc, q, node, reg, ext, b)
        elif op == SET or code[points[5 * q] + STR_ESCAPES] == 0:
            status = step_point(c, pc, q, node, reg, b)
        else:
            status = step_escaped(c, pc, q, node, reg, ext, b)
        if status < 0:
            return -1
    return -1 if close(c) < 0 else intern(c)


@njit("int64(int64, int64, int64)", **kernel)
def step(c: Any, s: Any, b: Any) -> Any:
    """The set after set s and byte b: its id, DEAD if b is refused, or -1 (see HEAD[STATUS])."""
    at = place(c, s, b)
    if at == -1:
        return DEAD
    known = view(c, SETS)[at] if at >= 0 else view(c, WIDE)[-at - 2]
    if known >= 0:
        return known
    after = fresh_step(c, s, b)
    if after >= 0:
        if at >= 0:
            view(c, SETS)[at] = after
        else:
            view(c, WIDE)[-at - 2] = after
    return after


@njit("int64(int64, int64, int64)", **kernel)
def continuation(c: Any, k: Any, pc: Any) -> Any:
    """The set in which configuration k goes on at `pc` (having left its leaf), or -1.

    For an undeclared key whose name is not known (k < 0: configuration -k - 1) the list of names becomes UNKNOWN_NAMES.
    """
    configs = view(c, CONFIGS)
    which = k if k >= 0 else -k - 1
    node, reg = configs[5 * which + 2], configs[5 * which + 3] + 0
    begin(c)
    if k < 0:
        reg = object_after(c, reg, -1, UNKNOWN_NAMES)
        if reg < 0:
            return -1
    return -1 if push(c, pc, -1, node, reg, 0) < 0 or close(c) < 0 else intern(c)


# ---- growing -------------------------------------------------------------------------------------------------------


@njit("int64(int64, int64, int64)", **kernel)
def place_again(c: Any, hash_slot: Any, h: Any) -> Any:
    """The first free place of an emptied hash table for hash h."""
    table = view(c, hash_slot)
    last = size(c, hash_slot) - 1
    h &= last
    while table[h] != -1:
        h = (h + 1) & last
    return h


@njit(i1, **kernel)
def rehash(c: Any) -> Any:
    """Fills all hash tables anew after some have grown."""
    head, sets, configs, nodes, edges = view(c, HEAD), view(c, SETS), view(c, CONFIGS), view(c, NODES), view(c, EDGES)
    points, objects, names, code = view(c, POINTS), view(c, OBJECTS), view(c, NAMES), view(c, CODE)
    for slot in (SET_HASH, NODE_HASH, POINT_HASH, OBJECT_HASH, NAME_HASH):
        table = view(c, slot)
        for k in range(size(c, slot)):
            table[k] = -1
    for k in range(UNKNOWN_NAMES + 1, head[N_NAMES]):
        h = place_again(c, NAME_HASH, mix(mix(0, names[3 * k]), names[3 * k + 1]))
        names[3 * k + 2] = h
        view(c, NAME_HASH)[h] = k
    for k in range(head[N_POINTS]):
        p = 5 * k
        h = mix(mix(mix(points[p], points[p + 1]), points[p + 2]), points[p + 3])
        h = place_again(c, POINT_HASH, h)
        points[p + 4] = h
        view(c, POINT_HASH)[h] = k
    k = 1
    while k < head[N_OBJECTS]:
        words = code[objects[k + O_BLOCK] + OBJ_WORDS]
        h = mix(mix(mix(mix(0, objects[k + O_BLOCK]), objects[k + O_NEXT]), objects[k + O_MEMBERS]), objects[k + O_NAMES])
        for w in range(words):
            h = mix(h, objects[k + O_BITS + w])
        h = place_again(c, OBJECT_HASH, h)
        objects[k + O_SLOT] = h
        view(c, OBJECT_HASH)[h] = k
        k += O_BITS + 2 * words
    base = 1
    while base < head[N_NODES]:
        count = nodes[4 * base + 2]
        h = mix(0, count)
        for node in range(base, base + count):
            h = mix(h, nodes[4 * node + 1])
            for e in range(nodes[4 * node], nodes[4 * node] + nodes[4 * node + 1]):
                below = edges[3 * e + 2]
                inner = base <= below < base + count
                h = mix(mix(mix(h, edges[3 * e]), edges[3 * e + 1]), base - below - 2 if inner else below)
        h = place_again(c, NODE_HASH, h)
        nodes[4 * base + 3] = h
        view(c, NODE_HASH)[h] = base
        base += count
    for s in range(1, head[N_SETS]):
        r = s * SET_W
        h = mix(0, 1 if sets[r + SET_FLAGS] & IS_ACCEPTING else 0)
        first = 5 * sets[r + SET_FIRST]
        for k in range(first, first + 5 * sets[r + SET_COUNT]):
            h = mix(h, configs[k])
        h = place_again(c, SET_HASH, h)
        sets[r + SET_SLOT] = h
        view(c, SET_HASH)[h] = s
    return 0
