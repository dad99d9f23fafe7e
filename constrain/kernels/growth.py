"""Rehashing: rebuild a hash table of a state cache after it was doubled (kernels)."""

from __future__ import annotations

from typing import Any

from .context_views import size, view
from .interned_names import mix_config, mix_hash
from .jit.compilation import entry, kernel
from .program_layout import OBJ_WORDS

from .context_layout import (  # isort: skip
    CODE, CONFIGS, CURSORS, CURSOR_HASH, EDGES, GUARDS, GUARD_HASH, HEAD, LISTS, LIST_HASH, NAMES, NAME_HASH, NODES,
    NODE_HASH, N_CURSORS, N_GUARDS, N_LISTS, N_NAMES, N_NODES, N_OBJECTS, N_PAIRS, N_SETS, OBJECTS, OBJECT_HASH, PAIRS,
    PAIR_HASH, SETS, SET_HASH,
)  # fmt: skip
from .record_layout import (  # isort: skip
    CONFIG_EXTRA, CONFIG_NODE, CONFIG_PC, CONFIG_STATE, CONFIG_REGISTER, CONFIG_W, CURSOR_BLOCK, CURSOR_DEPTH,
    CURSOR_HIGH, CURSOR_LOW, CURSOR_SLOT, CURSOR_W, EDGE_BELOW, EDGE_PC, EDGE_REGISTER, EDGE_W, GUARD_KEY, GUARD_SLOT,
    GUARD_TEXT, GUARD_W, IN_MEMBER, IS_ACCEPTING, IS_MEMBER, LEXEME_W, LIST_BLOCK, LIST_FIRST, LIST_SLOT, NAME_PARENT,
    NAME_SLOT, NAME_VALUE, NAME_W, NODE_BLOCK, NODE_EDGES, NODE_FIRST, NODE_SLOT, NODE_W, O_BITS, O_BLOCK, O_MEMBERS,
    O_NAMES, O_NEXT, O_SLOT, PAIR_BELOW, PAIR_SLOT, PAIR_VALUE, PAIR_W, ROOTS, SET_COUNT, SET_FIRST, SET_FLAGS,
    SET_SLOT, SET_W,
)  # fmt: skip


@kernel("int64(int64, int64, int64)")
def find_free_slot(c: Any, hash_slot: Any, h: Any) -> Any:
    """Return the first free slot for hash h of a hash table without stale entries, by linear probing."""
    table = view(c, hash_slot)
    last = size(c, hash_slot) - 1
    h &= last
    while table[h] != -1:
        h = (h + 1) & last
    return h


@kernel("int64(int64)")
def rehash_names(c: Any) -> Any:
    """Enter all names into their hash table, which is empty. Return 0."""
    head, names = view(c, HEAD), view(c, NAMES)
    for k in range(ROOTS, head[N_NAMES]):
        h = find_free_slot(
            c, NAME_HASH, mix_hash(mix_hash(0, names[NAME_W * k + NAME_PARENT]), names[NAME_W * k + NAME_VALUE])
        )
        names[NAME_W * k + NAME_SLOT] = h
        view(c, NAME_HASH)[h] = k
    return 0


@kernel("int64(int64)")
def rehash_cursors(c: Any) -> Any:
    """Enter all string cursors into their hash table, which is empty. Return 0."""
    head, cursors = view(c, HEAD), view(c, CURSORS)
    for k in range(head[N_CURSORS]):
        p = CURSOR_W * k
        h = mix_hash(mix_hash(cursors[p + CURSOR_BLOCK], cursors[p + CURSOR_LOW]), cursors[p + CURSOR_HIGH])
        h = find_free_slot(c, CURSOR_HASH, mix_hash(h, cursors[p + CURSOR_DEPTH]))
        cursors[p + CURSOR_SLOT] = h
        view(c, CURSOR_HASH)[h] = k
    return 0


@kernel("int64(int64)")
def rehash_guards(c: Any) -> Any:
    """Enter all guards into their hash table, which is empty. Return 0."""
    head, guards = view(c, HEAD), view(c, GUARDS)
    for k in range(head[N_GUARDS]):
        h = find_free_slot(
            c, GUARD_HASH, mix_hash(mix_hash(0, guards[k * GUARD_W + GUARD_KEY]), guards[k * GUARD_W + GUARD_TEXT])
        )
        guards[k * GUARD_W + GUARD_SLOT] = h
        view(c, GUARD_HASH)[h] = k
    return 0


@kernel("int64(int64)")
def rehash_pairs(c: Any) -> Any:
    """Enter all pairs into their hash table, which is empty. Return 0."""
    head, pairs = view(c, HEAD), view(c, PAIRS)
    for k in range(1, head[N_PAIRS]):
        p = PAIR_W * k
        h = find_free_slot(c, PAIR_HASH, mix_hash(mix_hash(0, pairs[p + PAIR_VALUE]), pairs[p + PAIR_BELOW]))
        pairs[p + PAIR_SLOT] = h
        view(c, PAIR_HASH)[h] = k
    return 0


@kernel("int64(int64)")
def rehash_lists(c: Any) -> Any:
    """Enter all lists of lexemes into their hash table, which is empty. Return 0."""
    head, lists = view(c, HEAD), view(c, LISTS)
    k = 1
    while k < head[N_LISTS]:
        h = mix_hash(lists[k + LIST_BLOCK], lists[k])
        for i in range(LEXEME_W * lists[k]):
            h = mix_hash(h, lists[k + LIST_FIRST + i])
        h = find_free_slot(c, LIST_HASH, h)
        lists[k + LIST_SLOT] = h
        view(c, LIST_HASH)[h] = k
        k += LIST_FIRST + LEXEME_W * lists[k]
    return 0


@kernel("int64(int64)")
def rehash_objects(c: Any) -> Any:
    """Enter all object states into their hash table, which is empty. Return 0."""
    head, objects, code = view(c, HEAD), view(c, OBJECTS), view(c, CODE)
    k = 1
    while k < head[N_OBJECTS]:
        words = code[objects[k + O_BLOCK] + OBJ_WORDS]
        h = mix_hash(mix_hash(0, objects[k + O_BLOCK]), objects[k + O_NEXT])
        h = mix_hash(mix_hash(h, objects[k + O_MEMBERS]), objects[k + O_NAMES])
        for w in range(words):
            h = mix_hash(h, objects[k + O_BITS + w])
        h = find_free_slot(c, OBJECT_HASH, h)
        objects[k + O_SLOT] = h
        view(c, OBJECT_HASH)[h] = k
        k += O_BITS + 2 * words
    return 0


@kernel("int64(int64)")
def rehash_nodes(c: Any) -> Any:
    """Enter all stack nodes into their hash table, which is empty. Return 0."""
    head, nodes, edges = view(c, HEAD), view(c, NODES), view(c, EDGES)
    base = 1
    while base < head[N_NODES]:
        count = nodes[NODE_W * base + NODE_BLOCK] & ~IN_MEMBER
        h = mix_hash(0, count)
        for node in range(base, base + count):
            first, n = nodes[NODE_W * node + NODE_FIRST], nodes[NODE_W * node + NODE_EDGES]
            h = mix_hash(h, n)
            for e in range(first, first + n):
                p = EDGE_W * e
                below = edges[p + EDGE_BELOW]
                inner = base <= below < base + count
                h = mix_hash(mix_hash(h, edges[p + EDGE_PC]), edges[p + EDGE_REGISTER])
                h = mix_hash(h, base - below - 2 if inner else below)
        h = find_free_slot(c, NODE_HASH, h)
        nodes[NODE_W * base + NODE_SLOT] = h
        view(c, NODE_HASH)[h] = base
        base += count
    return 0


@kernel("int64(int64)")
def rehash_sets(c: Any) -> Any:
    """Enter all sets into their hash table, which is empty. Return 0."""
    head, sets, configs = view(c, HEAD), view(c, SETS), view(c, CONFIGS)
    for s in range(1, head[N_SETS]):
        r = s * SET_W
        h = mix_hash(0, 1 if sets[r + SET_FLAGS] & IS_ACCEPTING else 0)
        first = CONFIG_W * sets[r + SET_FIRST]
        records = sets[r + SET_COUNT] + (1 if sets[r + SET_FLAGS] & IS_MEMBER else 0)
        for k in range(first, first + CONFIG_W * records, CONFIG_W):
            h = mix_config(
                h, configs[k + CONFIG_PC], configs[k + CONFIG_STATE], configs[k + CONFIG_NODE],
                configs[k + CONFIG_REGISTER], configs[k + CONFIG_EXTRA],
            )  # fmt: skip
        h = find_free_slot(c, SET_HASH, h)
        sets[r + SET_SLOT] = h
        view(c, SET_HASH)[h] = s
    return 0


@entry("int64(int64, int64)")
def rehash_table(c: Any, slot: Any) -> Any:
    """Rebuild a hash table of the state cache after it has grown. Return 0.

    slot: the slot of the hash table.
    """
    table = view(c, slot)
    for k in range(size(c, slot)):
        table[k] = -1
    if slot == SET_HASH:
        return rehash_sets(c)
    if slot == NODE_HASH:
        return rehash_nodes(c)
    if slot == CURSOR_HASH:
        return rehash_cursors(c)
    if slot == OBJECT_HASH:
        return rehash_objects(c)
    if slot == NAME_HASH:
        return rehash_names(c)
    if slot == GUARD_HASH:
        return rehash_guards(c)
    if slot == PAIR_HASH:
        return rehash_pairs(c)
    if slot == LIST_HASH:
        return rehash_lists(c)
    return 0
