"""Growing: the hash tables of a state cache are filled anew after they were doubled (kernels)."""

from __future__ import annotations

from typing import Any

from .context_views import size, view
from .interned_names import mix, mix_config
from .jit.compilation import entry, kernel
from .layout import *  # noqa: F403  (constants only)


@kernel("int64(int64, int64, int64)")
def place_again(c: Any, hash_slot: Any, h: Any) -> Any:
    """The first free place of an emptied hash table for hash h."""
    table = view(c, hash_slot)
    last = size(c, hash_slot) - 1
    h &= last
    while table[h] != -1:
        h = (h + 1) & last
    return h


@entry("int64(int64)")
def rehash(c: Any) -> Any:
    """Fills all hash tables anew after some have grown."""
    head, sets, configs, nodes, edges = view(c, HEAD), view(c, SETS), view(c, CONFIGS), view(c, NODES), view(c, EDGES)
    points, objects, names, code = view(c, POINTS), view(c, OBJECTS), view(c, NAMES), view(c, CODE)
    for slot in (SET_HASH, NODE_HASH, POINT_HASH, OBJECT_HASH, NAME_HASH, GUARD_HASH, PAIR_HASH, LIST_HASH):
        table = view(c, slot)
        for k in range(size(c, slot)):
            table[k] = -1
    for k in range(ROOTS, head[N_NAMES]):
        h = place_again(c, NAME_HASH, mix(mix(0, names[3 * k]), names[3 * k + 1]))
        names[3 * k + 2] = h
        view(c, NAME_HASH)[h] = k
    for k in range(head[N_POINTS]):
        p = 5 * k
        h = mix(mix(mix(points[p], points[p + 1]), points[p + 2]), points[p + 3])
        h = place_again(c, POINT_HASH, h)
        points[p + 4] = h
        view(c, POINT_HASH)[h] = k
    guards = view(c, GUARDS)
    for k in range(head[N_GUARDS]):
        h = place_again(c, GUARD_HASH, mix(mix(0, guards[k * GUARD_W]), guards[k * GUARD_W + GUARD_TEXT]))
        guards[k * GUARD_W + GUARD_SLOT] = h
        view(c, GUARD_HASH)[h] = k
    pairs, lists = view(c, PAIRS), view(c, LISTS)
    for k in range(1, head[N_PAIRS]):
        p = PAIR_W * k
        h = place_again(c, PAIR_HASH, mix(mix(0, pairs[p]), pairs[p + PAIR_BELOW]))
        pairs[p + PAIR_SLOT] = h
        view(c, PAIR_HASH)[h] = k
    k = 1
    while k < head[N_LISTS]:
        h = mix(lists[k + LIST_BLOCK], lists[k])
        for i in range(LEXEME_W * lists[k]):
            h = mix(h, lists[k + LIST_FIRST + i])
        h = place_again(c, LIST_HASH, h)
        lists[k + LIST_SLOT] = h
        view(c, LIST_HASH)[h] = k
        k += LIST_FIRST + LEXEME_W * lists[k]
    k = 1
    while k < head[N_OBJECTS]:
        words = code[objects[k + O_BLOCK] + OBJ_WORDS]
        h = mix(mix(0, objects[k + O_BLOCK]), objects[k + O_NEXT])
        h = mix(mix(h, objects[k + O_MEMBERS]), objects[k + O_NAMES])
        for w in range(words):
            h = mix(h, objects[k + O_BITS + w])
        h = place_again(c, OBJECT_HASH, h)
        objects[k + O_SLOT] = h
        view(c, OBJECT_HASH)[h] = k
        k += O_BITS + 2 * words
    base = 1
    while base < head[N_NODES]:
        count = nodes[4 * base + 2] & ~IN_MEMBER
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
        records = sets[r + SET_COUNT] + (1 if sets[r + SET_FLAGS] & IS_MEMBER else 0)
        for k in range(first, first + 5 * records, 5):
            h = mix_config(h, configs[k], configs[k + 1], configs[k + 2], configs[k + 3], configs[k + 4])
        h = place_again(c, SET_HASH, h)
        sets[r + SET_SLOT] = h
        view(c, SET_HASH)[h] = s
    return 0
