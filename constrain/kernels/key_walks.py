"""Walks of a trie inside declared keys and constants: the strings of a sorted block against tokens (kernels).

Which declared keys may come depends on the keys so far, so the sets along a key differ in each object state, and there
would be one for each prefix of each key. Until a key ends, only the key itself decides: a walk carries a string cursor
instead of a set, and joins the sorted strings with the sorted edges of the trie node (leapfrog trie join: Veldhuizen,
2014). A set is made where a key ends, or where an escape begins.
"""

from __future__ import annotations

from typing import Any

from .closure import begin_closure, compute_closure
from .context_views import size, view
from .interned_names import request
from .interned_sets import intern_set
from .jit.compilation import inlined, kernel
from .object_states import first_allowed_key
from .program_layout import KEYS, SET, STR_ESCAPES, STR_OFFSETS
from .string_cursors import find_bound, intern_cursor
from .string_keys import find_ended_key, keys_state, step_cursor, step_escaped
from .trie_tokens import take_tokens
from .vocabulary_trie import find_child, find_edge

from .context_layout import CODE, CONFIGS, CURSORS, FULL, SETS, STACK, TRIE, TRIE_EDGES  # isort: skip
from .record_layout import (  # isort: skip
    CONFIG_EXTRA, CONFIG_NODE, CONFIG_PC, CONFIG_REGISTER, CONFIG_STATE, CONFIG_W, CURSOR_BLOCK, CURSOR_DEPTH,
    CURSOR_HIGH, CURSOR_LOW, CURSOR_W, DEAD, SET_COUNT, SET_FIRST, SET_W,
)  # fmt: skip
from .table_layout import (  # isort: skip
    TRIE_FIRST_EDGE, TRIE_W, WALK_BYTE, WALK_CONFIG, WALK_NODE, WALK_SET, WALK_W,
)  # fmt: skip


@inlined("int64(int64, int64)")
def is_key_prefix(c: Any, k: Any) -> Any:
    """Return whether configuration k is inside a declared key or a constant, and in no escape."""
    configs = view(c, CONFIGS)
    op = view(c, CODE)[configs[CONFIG_W * k + CONFIG_PC]] + 0
    return 1 if (op == KEYS or op == SET) and configs[CONFIG_W * k + CONFIG_EXTRA] == 0 else 0


@kernel("int64(int64, int64, int64, int64, int64, int64)")
def push_entry(c: Any, count: Any, node: Any, s: Any, byte: Any, k: Any) -> Any:
    """Push an entry on the STACK of a walk that has `count` entries. Return their new number, or -1."""
    stack = view(c, STACK)
    if WALK_W * (count + 1) > size(c, STACK) // 2:
        return request(c, FULL, STACK)
    stack[WALK_W * count + WALK_NODE], stack[WALK_W * count + WALK_SET] = node, s
    stack[WALK_W * count + WALK_BYTE], stack[WALK_W * count + WALK_CONFIG] = byte, k
    return count + 1


@kernel("int64(int64, int64, int64, int64, int64)")
def push_keys(c: Any, count: Any, node: Any, s: Any, byte: Any) -> Any:
    """Push the cursors of the configurations of set s that are inside a declared key or a constant.

    count: the number of entries on STACK. node, byte: fields of the new entries. Return the new number, or -1.
    """
    sets, configs = view(c, SETS), view(c, CONFIGS)
    first = sets[s * SET_W + SET_FIRST] + 0
    for k in range(first, first + sets[s * SET_W + SET_COUNT]):
        if is_key_prefix(c, k):
            count = push_entry(c, count, node, -1 - configs[CONFIG_W * k + CONFIG_STATE], byte, k)
            if count < 0:
                return -1
    return count


@kernel("int64(int64, int64, int64, int64)")
def step_key_alone(c: Any, k: Any, q: Any, b: Any) -> Any:
    """Return the set after configuration k alone, at cursor q, and byte b: its id, DEAD, or -1."""
    code, configs, cursors = view(c, CODE), view(c, CONFIGS), view(c, CURSORS)
    pc, node = configs[CONFIG_W * k + CONFIG_PC] + 0, configs[CONFIG_W * k + CONFIG_NODE] + 0
    reg = configs[CONFIG_W * k + CONFIG_REGISTER] + 0
    begin_closure(c)
    if code[cursors[CURSOR_W * q + CURSOR_BLOCK] + STR_ESCAPES]:
        status = step_escaped(c, pc, q, node, reg, 0, b)
    else:
        status = step_cursor(c, pc, q, node, reg, b)
    return -1 if status < 0 or compute_closure(c) < 0 else intern_set(c)


@kernel("int64(int64, int64, int64, int64, int64, int64)")
def walk_key(c: Any, count: Any, depth: Any, out: Any, least: Any, most: Any) -> Any:
    """Set the bits of the tokens one byte below the last entry of STACK, a cursor, and replace it by its successors.

    count: the number of entries on STACK. depth: bytes from the root of the walk to the successors. least, most: as in
    `trie_walks.walk_trie`. Return the number of entries, or -1.
    """
    code, configs, cursors, stack = view(c, CODE), view(c, CONFIGS), view(c, CURSORS), view(c, STACK)
    trie, edges = view(c, TRIE), view(c, TRIE_EDGES)
    count -= 1
    node, q = stack[WALK_W * count + WALK_NODE] + 0, -1 - stack[WALK_W * count + WALK_SET]
    k = stack[WALK_W * count + WALK_CONFIG] + 0
    state = keys_state(c, configs[CONFIG_W * k + CONFIG_PC] + 0, configs[CONFIG_W * k + CONFIG_REGISTER] + 0)
    p = CURSOR_W * q
    block, low = cursors[p + CURSOR_BLOCK] + 0, cursors[p + CURSOR_LOW] + 0
    high, position = cursors[p + CURSOR_HIGH] + 0, cursors[p + CURSOR_DEPTH] + 0
    offsets = block + STR_OFFSETS
    is_escaped = code[block + STR_ESCAPES] != 0
    if is_escaped:
        for b in (34, 92):
            child = find_child(c, node, b)
            if child < 0 or (b == 34 and find_ended_key(c, q, state) < 0):
                continue
            after = step_key_alone(c, k, q, b)
            if after < 0:
                return -1
            if after != DEAD:
                take_tokens(c, child, out, least, most)
                count = push_entry(c, count, child, after, depth << 8 | b, -1)
                if count < 0:
                    return -1
    if low < high and code[offsets + low] + position == code[offsets + low + 1]:
        low += 1  # this string ends here
    e, last = trie[TRIE_W * node + TRIE_FIRST_EDGE] + 0, trie[TRIE_W * node + TRIE_W + TRIE_FIRST_EDGE] + 0
    while low < high and e < last:
        b = code[code[offsets + low] + position] + 0
        e = find_edge(c, b, e, last)
        if e == last:
            break
        if edges[e] & 255 != b:
            low = find_bound(c, block, low, high, position, edges[e] & 255)
            continue
        child = edges[e] >> 8
        first, low = low, find_bound(c, block, low, high, position, b + 1)
        e += 1
        key = first_allowed_key(c, state, first, low)
        if key < 0 or (is_escaped and (b < 32 or b == 34 or b == 92)):
            continue
        if not is_escaped and code[offsets + key] + position + 1 == code[offsets + key + 1]:
            after, which = step_key_alone(c, k, q, b), -1
            if after < 0:
                return -1
            if after == DEAD:
                continue
        else:
            cursor, which = intern_cursor(c, block, key, low, position + 1), k
            if cursor < 0:
                return -1
            after = -1 - cursor
        take_tokens(c, child, out, least, most)
        if trie[TRIE_W * child + TRIE_FIRST_EDGE] < trie[TRIE_W * child + TRIE_W + TRIE_FIRST_EDGE]:
            count = push_entry(c, count, child, after, depth << 8 | b, which)
            if count < 0:
                return -1
    return count
