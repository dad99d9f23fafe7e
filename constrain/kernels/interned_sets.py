"""Interning of sets of configurations, each with the bytes that it allows (kernels).

The states of the subset construction (Rabin and Scott, 1959). Sets are hash-consed in a table with open addressing: a
set that was interned before gets the same id. The record of a set also holds the bytes that may follow and the memoised
steps by them.
"""

from __future__ import annotations

from typing import Any

from .context_views import count_ones, lowest_bit, size, view
from .interned_names import mix_config, mix_hash, probe_slot, request
from .jit.compilation import kernel
from .program_layout import ARG_FINITE, KEYS, LEAF, OTHER, P_ACCEPT, P_BYTES, P_FIRST, PARSE, SET, STR_ESCAPES
from .stacks import intern_call
from .string_keys import allow_byte, allow_cursor, allow_escaped, keys_state
from .table_layout import LEAF_BYTES, LEAF_W
from .unique_members import find_candidates

from .context_layout import (  # isort: skip
    ACCEPTS, BUFFER, CALLS, CANDIDATES, CODE, CONFIGS, CURSORS, CUT, FULL, GUARDS, HEAD, ITEMS, LEAVES, LISTS,
    NAMED, NEED_RULES, NODES, N_CONFIGS, N_ITEMS, N_MISSING, N_SETS, N_WIDE, SETS, SET_HASH, TEXT, UNSURE, WIDE,
)  # fmt: skip
from .record_layout import (  # isort: skip
    CALLED, CALL_NODE, CALL_W, CONFIG_EXTRA, CONFIG_NODE, CONFIG_PC, CONFIG_STATE, CONFIG_REGISTER, CONFIG_W,
    CURSOR_BLOCK, CURSOR_W, DEAD, DIFFER_KNOWN, GUARD_ANSWER, GUARD_W, HAS_CANDIDATES, HAS_KEYS, IN_MEMBER,
    IS_ACCEPTING, IS_CUT, IS_MEMBER, IS_NAMED, IS_NAMING, IS_OPEN, IS_UNSURE, LEXEME_STATE, LEXEME_W,
    LIST_BLOCK, LIST_FIRST, MEMBER_CANDIDATES, MEMBER_GUARD, MEMBER_TEXT, NARROW, NODE_BLOCK, NODE_W, NO_CANDIDATES,
    NO_STEP,
    OPEN_NAME, SET_ALLOWED, SET_BYTES, SET_COUNT, SET_FIRST, SET_FLAGS, SET_KEYLESS, SET_MASK, SET_NEXT, SET_SLOT,
    SET_W,
)  # fmt: skip


UNKNOWN, UNKNOWN_TO_LEAVES = -1, -2
"""Memoised steps in WIDE: not taken yet; not taken yet, and only configurations inside leaves can take it."""


@kernel("int64(int64, int64, int64)")
def allow_lexemes(c: Any, s: Any, q: Any) -> Any:
    """Add the bytes that continue a lexeme of list q, or begin the next one, to those of set record s. Return 0."""
    sets, lists, code = view(c, SETS), view(c, LISTS), view(c, CODE)
    block = lists[q + LIST_BLOCK]
    for i in range(lists[q]):
        state = lists[q + LIST_FIRST + LEXEME_W * i + LEXEME_STATE]
        scanner_state = state if state >= 0 else -1 - state
        for w in range(8):
            sets[s * SET_W + SET_NEXT + w] |= code[code[block + P_BYTES] + 8 * scanner_state + w]
            if state >= 0 and code[code[block + P_ACCEPT] + scanner_state] > 1:
                sets[s * SET_W + SET_NEXT + w] |= code[code[block + P_FIRST] + w]
    return 0


@kernel("int64(int64, int64)")
def add_wide_row(c: Any, usual: Any) -> Any:
    """Add a row to WIDE in which every step is `usual`. Return its number, or -1."""
    head = view(c, HEAD)
    row = head[N_WIDE] + 0
    if 256 * (row + 1) > size(c, WIDE):
        return request(c, FULL, WIDE)
    wide = view(c, WIDE)
    for b in range(256):
        wide[256 * row + b] = usual
    head[N_WIDE] = row + 1
    return row


@kernel("int64(int64, int64, int64)")
def describe_allowed(c: Any, s: Any, first: Any) -> Any:
    """Write the bytes that set record s allows, given its configurations (CONFIGS from `first` on). Return 0 or -1."""
    sets, configs, code = view(c, SETS), view(c, CONFIGS), view(c, CODE)
    leaves, cursors, byte_exact = view(c, LEAVES), view(c, CURSORS), view(c, BUFFER)
    r = s * SET_W
    for w in range(8):
        sets[r + SET_NEXT + w] = 0
    leaf_by_leaf, is_parsed = False, False
    for k in range(first, first + sets[r + SET_COUNT]):
        config = CONFIG_W * k
        pc, q = configs[config + CONFIG_PC], configs[config + CONFIG_STATE]
        reg, ext = configs[config + CONFIG_REGISTER], configs[config + CONFIG_EXTRA]
        op = code[pc]
        if op < 256:
            allow_byte(c, s, op)
        elif op == LEAF or (op == OTHER and code[pc + ARG_FINITE] == 0):
            leaf_by_leaf = True
        elif op == OTHER:
            for w in range(8):
                sets[r + SET_NEXT + w] |= leaves[q * LEAF_W + LEAF_BYTES + w]
        elif op == PARSE:
            is_parsed = True
            allow_lexemes(c, s, q)
        elif code[cursors[CURSOR_W * q + CURSOR_BLOCK] + STR_ESCAPES] == 0:
            allow_cursor(c, s, q, keys_state(c, pc, reg))
        else:
            allow_escaped(c, s, q, keys_state(c, pc, reg), ext)
    if leaf_by_leaf:
        for w in range(8):
            byte_exact[w] = sets[r + SET_NEXT + w]
        for k in range(first, first + sets[r + SET_COUNT]):
            op = code[configs[CONFIG_W * k + CONFIG_PC]]
            if op == LEAF or op == OTHER:
                for w in range(8):
                    sets[r + SET_NEXT + w] |= leaves[configs[CONFIG_W * k + CONFIG_STATE] * LEAF_W + LEAF_BYTES + w]
    n = 0
    for w in range(8):
        n += count_ones(sets[r + SET_NEXT + w])
    if n > NARROW and sets[r + SET_FLAGS] & (IS_NAMING | IS_MEMBER):
        # The known name or text makes each such set unique: memoising its steps is not worth 1 KB.
        sets[r + SET_ALLOWED] = NARROW + 1
        sets[r + SET_BYTES] = -1
        sets[r + SET_KEYLESS] = -1
        return 0
    if n > NARROW:
        sets[r + SET_ALLOWED] = NARROW + 1
        sets[r + SET_BYTES] = NO_STEP
        sets[r + SET_KEYLESS] = -1
        if is_parsed and not leaf_by_leaf:  # in a text that is being parsed nearly every set is stepped only once
            return 0
        row = add_wide_row(c, UNKNOWN_TO_LEAVES if leaf_by_leaf else UNKNOWN)
        if row < 0:
            return -1
        sets[r + SET_BYTES] = row
        if leaf_by_leaf:
            wide = view(c, WIDE)
            for w in range(8):
                bits = byte_exact[w] & 0xFFFFFFFF
                while bits:
                    wide[256 * row + 32 * w + lowest_bit(bits)] = UNKNOWN
                    bits &= bits - 1
        return 0
    packed, k = 0, 0
    for w in range(8):
        bits = sets[r + SET_NEXT + w] & 0xFFFFFFFF
        while bits:
            packed |= (32 * w + lowest_bit(bits)) << (8 * k)
            bits &= bits - 1
            k += 1
    sets[r + SET_BYTES] = packed
    sets[r + SET_BYTES + 1] = packed >> 32
    sets[r + SET_ALLOWED] = n
    for w in range(8):
        sets[r + SET_NEXT + w] = -1
    return 0


@kernel("int64(int64)")
def intern_set(c: Any) -> Any:
    """Intern the set of configurations of the current closure. Return its id, DEAD if it is empty, or -1."""
    head, items, calls, nodes = view(c, HEAD), view(c, ITEMS), view(c, CALLS), view(c, NODES)
    if head[N_MISSING] > 0:
        return request(c, NEED_RULES, 0)
    configs, sets, table, code = view(c, CONFIGS), view(c, SETS), view(c, SET_HASH), view(c, CODE)
    first = head[N_CONFIGS]
    if CONFIG_W * (first + head[N_ITEMS] + 1) > size(c, CONFIGS):
        return request(c, FULL, CONFIGS)
    n, naming, keys, inside = 0, 0, 0, 0
    h = mix_hash(0, head[ACCEPTS])
    for i in range(head[N_ITEMS]):
        if items[CONFIG_W * i + CONFIG_PC] >= 0 or items[CONFIG_W * i + CONFIG_PC] <= -CALLED:
            continue
        node = items[CONFIG_W * i + CONFIG_NODE] + 0
        if node < 0:
            if calls[CALL_W * (-node - 2) + CALL_NODE] <= 0 and intern_call(c, -node - 2) < 0:
                return -1
            node = calls[CALL_W * (-node - 2) + CALL_NODE]
            nodes = view(c, NODES)
        inside |= nodes[NODE_W * node + NODE_BLOCK] & IN_MEMBER
        k = CONFIG_W * (first + n)
        pc, q = -items[CONFIG_W * i + CONFIG_PC] - 1, items[CONFIG_W * i + CONFIG_STATE]
        reg, ext = items[CONFIG_W * i + CONFIG_REGISTER], items[CONFIG_W * i + CONFIG_EXTRA]
        configs[k + CONFIG_PC] = pc
        configs[k + CONFIG_STATE] = q
        configs[k + CONFIG_NODE] = node
        configs[k + CONFIG_REGISTER] = reg
        configs[k + CONFIG_EXTRA] = ext
        h = mix_config(h, pc, q, node, reg, ext)
        if ext >= 0 and code[pc] == OTHER:
            naming = IS_NAMING
        if ext == 0 and (code[pc] == KEYS or code[pc] == SET):
            keys = HAS_KEYS
        n += 1
    if n == 0 and head[ACCEPTS] == 0:
        return DEAD
    flags = (IS_ACCEPTING if head[ACCEPTS] else 0) | (IS_UNSURE if head[UNSURE] else 0) | naming
    flags |= (IS_NAMED if head[NAMED] else 0) | (IS_CUT if head[CUT] else 0)
    flags |= 0 if inside else keys
    records = n
    if inside and head[TEXT] == OPEN_NAME:
        flags |= IS_OPEN
    elif inside:
        flags |= IS_MEMBER
        records = n + 1
        guard = -1
        if head[CANDIDATES] != NO_CANDIDATES:
            guard = find_candidates(c)
            if guard < 0:
                return -1
            if view(c, GUARDS)[guard * GUARD_W + GUARD_ANSWER] != NO_CANDIDATES:
                flags |= HAS_CANDIDATES
            else:
                guard = -1
        k = CONFIG_W * (first + n)
        configs[k + MEMBER_TEXT] = head[TEXT]
        configs[k + MEMBER_CANDIDATES] = (
            view(c, GUARDS)[guard * GUARD_W + GUARD_ANSWER] if guard >= 0 else NO_CANDIDATES
        )
        configs[k + MEMBER_GUARD] = guard
        configs[k + 3] = 0
        configs[k + 4] = 0
        h = mix_config(h, configs[k + MEMBER_TEXT], configs[k + MEMBER_CANDIDATES], guard, 0, 0)
    last = size(c, SET_HASH) - 1
    h &= last
    while True:
        s = probe_slot(c, SET_HASH, h, 1, head[N_SETS], SETS, SET_W, SET_SLOT)
        if s < 0:
            break
        is_equal = sets[s * SET_W + SET_COUNT] == n and sets[s * SET_W + SET_FLAGS] & ~DIFFER_KNOWN == flags
        old = CONFIG_W * sets[s * SET_W + SET_FIRST]
        k = 0
        while is_equal and k < CONFIG_W * records:
            is_equal = configs[old + k] == configs[CONFIG_W * first + k]
            k += 1
        if is_equal:
            return s
        h = (h + 1) & last
    s = head[N_SETS]
    if SET_W * (s + 1) > size(c, SETS) or 2 * s > last:
        return request(c, FULL, SETS)
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
    head[N_CONFIGS] = first + records
    return s
