"""Walks to the exits of a leaf: the tokens that leave a leaf without a suffix trie (kernels).

Where a leaf may end after nearly every character (the flat text between the parentheses of `format: regex`), a suffix
trie would hold nearly all tokens once for each of their characters. But few tokens contain a byte that may follow the
leaf. So this follows the states of the leaf along the main trie, without the subtrees in which none of these bytes
occurs, and walks from each node where the leaf may end with the set that follows.
"""

from __future__ import annotations

from typing import Any

from .context_views import load_acquire, lowest_bit, size, view
from .interned_names import request
from .jit.compilation import inlined, kernel
from .subtree_summaries import bit_of
from .trie_tokens import NO_LIMIT
from .trie_walks import walk_trie
from .vocabulary_trie import find_edge

from .context_layout import (  # isort: skip
    BELOW, FULL, HEAD, INSIDE, LEAF_NEXT, LEAVES, MOST_STEPS, NEED_LEAF, SETS, SPENT, STEPS, TRIE, TRIE_EDGES, VISITED,
)  # fmt: skip
from .record_layout import NARROW, SET_ALLOWED, SET_BYTES, SET_NEXT, SET_W

from .table_layout import (  # isort: skip
    BELOW_HEIGHT, BELOW_W, INSIDE_CHARACTERS, INSIDE_EDGE, INSIDE_END, INSIDE_FIRST, INSIDE_STATE, INSIDE_W,
    LEAF_BOUNDARY, LEAF_BYTES, LEAF_EXITS, LEAF_EXPANDED, LEAF_FLAGS, LEAF_W, TRIE_FIRST_EDGE, TRIE_W,
)  # fmt: skip


@kernel("int64(int64, int64)")
def find_following_bytes(c: Any, after: Any) -> Any:
    """Write the bytes that set `after` may allow to the first words of INSIDE, as those of BELOW.

    Return whether BELOW has all of them.
    """
    inside, sets, r = view(c, INSIDE), view(c, SETS), after * SET_W
    for w in range(BELOW_HEIGHT):
        inside[w] = 0
    n = sets[r + SET_ALLOWED]
    if n <= NARROW:
        for i in range(n):
            k = bit_of((sets[r + SET_BYTES + (i >> 2)] >> (8 * (i & 3))) & 255)
            if k < 0:
                return 0
            inside[k >> 5] |= 1 << (k & 31)
        return 1
    for w in range(8):
        bits = sets[r + SET_NEXT + w] & 0xFFFFFFFF
        while bits:
            k = bit_of(32 * w + lowest_bit(bits))
            if k < 0:
                return 0
            inside[k >> 5] |= 1 << (k & 31)
            bits &= bits - 1
    return 1


@inlined("int64(int64, int64)")
def may_leave_below(c: Any, edge: Any) -> Any:
    """Return whether one of the following bytes occurs below an edge of the main trie."""
    below, inside = view(c, BELOW), view(c, INSIDE)
    found = 0
    for w in range(BELOW_HEIGHT):
        found |= below[BELOW_W * (1 + edge) + w] & inside[w]
    return 1 if found != 0 else 0


@inlined("int64(int64, int64, int64, int64)")
def find_allowed_edge(c: Any, state: Any, edge: Any, last: Any) -> Any:
    """Return the first of the edges edge .. last - 1, ascending by byte, whose byte a leaf state allows, or `last`.

    Bytes and edges are joined by leaps (Veldhuizen, 2014): the root has an edge for nearly every byte, and most leaves
    that are walked allow few of them.
    """
    leaves, edges = view(c, LEAVES), view(c, TRIE_EDGES)
    allowed = state * LEAF_W + LEAF_BYTES
    while edge < last:
        byte = edges[edge] & 255
        w = byte >> 5
        bits = (leaves[allowed + w] & 0xFFFFFFFF) >> (byte & 31) << (byte & 31)
        while bits == 0 and w < 7:
            w += 1
            bits = leaves[allowed + w] & 0xFFFFFFFF
        if bits == 0:
            return last
        following = 32 * w + lowest_bit(bits)
        if following == byte:
            return edge
        edge = find_edge(c, following, edge + 1, last)
    return last


@kernel("int64(int64, int64, int64, int64, int64, int64, int64, int64)")
def walk_exits(c: Any, q: Any, after: Any, exact: Any, origin: Any, out: Any, least: Any, most: Any) -> Any:
    """Set the bits of all tokens that leave a leaf from its state q, and that set `after` accepts from there on.

    The leaf must not end with a quote. Where it may end at once, the set of the mask has the configurations that follow
    already. exact, origin: as in `walk_trie`. least, most: the leaf is left after least .. most characters. Return 0
    or -1.
    """
    head, leaves, transitions = view(c, HEAD), view(c, LEAVES), view(c, LEAF_NEXT)
    trie, edges, inside = view(c, TRIE), view(c, TRIE_EDGES), view(c, INSIDE)
    is_known = find_following_bytes(c, after)
    at = INSIDE_FIRST
    inside[at + INSIDE_EDGE], inside[at + INSIDE_END] = trie[TRIE_FIRST_EDGE], trie[TRIE_W + TRIE_FIRST_EDGE]
    inside[at + INSIDE_STATE], inside[at + INSIDE_CHARACTERS] = q, 0
    while at >= INSIDE_FIRST:
        edge, state = inside[at + INSIDE_EDGE] + 0, inside[at + INSIDE_STATE] + 0
        edge = find_allowed_edge(c, state, edge, inside[at + INSIDE_END] + 0)
        if edge == inside[at + INSIDE_END]:
            at -= INSIDE_W
            continue
        inside[at + INSIDE_EDGE] = edge + 1
        if is_known and may_leave_below(c, edge) == 0:
            continue
        target, child = transitions[256 * state + (edges[edge] & 255)] + 0, edges[edge] >> 8
        if target < 0:
            continue
        flags = load_acquire(leaves, target * LEAF_W + LEAF_FLAGS) + 0
        if flags & LEAF_EXPANDED == 0:
            return request(c, NEED_LEAF, target)
        begins = leaves[state * LEAF_W + LEAF_FLAGS] & LEAF_BOUNDARY
        characters = inside[at + INSIDE_CHARACTERS] + (1 if begins else 0)
        head[STEPS] += 1
        head[VISITED] += 1
        if head[STEPS] > head[MOST_STEPS]:
            return request(c, SPENT, 0)
        if characters > most:
            continue
        if flags & LEAF_EXITS and characters >= least:
            if walk_trie(c, child, after, exact, origin, out, 0, NO_LIMIT) < 0:
                return -1
        at += INSIDE_W
        if at + INSIDE_W > size(c, INSIDE):
            return request(c, FULL, INSIDE)
        inside[at + INSIDE_EDGE] = trie[TRIE_W * child + TRIE_FIRST_EDGE]
        inside[at + INSIDE_END] = trie[TRIE_W * child + TRIE_W + TRIE_FIRST_EDGE]
        inside[at + INSIDE_STATE], inside[at + INSIDE_CHARACTERS] = target, characters
    return 0
