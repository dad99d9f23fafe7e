"""The vocabulary as a trie (kernels).

The main trie is stored in preorder (parents before children, children by byte), so the tokens of a subtree are
contiguous; the edges of a node are a sorted run of (child, byte).

Only the owner of the table (`vocabulary.mask_table`, under a lock) calls `build_trie`.
"""

from __future__ import annotations

from typing import Any

from .context_layout import (
    BLOB,
    LONGEST,
    N_TRIE,
    N_TRIE_EDGES,
    N_TRIE_TOKENS,
    OFFSETS,
    TABLE,
    TRIE,
    TRIE_EDGES,
    TRIE_END,
    TRIE_TEMP,
    TRIE_TOKENS,
)
from .context_views import size, view
from .jit.compilation import entry, inlined
from .subtree_summaries import summarise_subtrees
from .table_layout import ENTRY_CHARACTERS, ENTRY_TOKEN, ENTRY_W, TRIE_FIRST_EDGE, TRIE_FIRST_TOKEN, TRIE_W

TABLE_IS_FULL = -1


@inlined("int64(int64, int64)")
def read_byte(t: Any, i: Any) -> Any:
    """Return byte i of the concatenated tokens of the vocabulary."""
    return (view(t, BLOB)[i >> 2] >> (8 * (i & 3))) & 255


@inlined("int64(int64, int64, int64, int64)")
def find_edge(t: Any, b: Any, first: Any, last: Any) -> Any:
    """Return the first of the edges first .. last - 1 of a node whose byte is at least b, or `last`: binary search."""
    edges = view(t, TRIE_EDGES)
    stop = last
    while first < stop:
        middle = (first + stop) >> 1
        if edges[middle] & 255 < b:
            first = middle + 1
        else:
            stop = middle
    return first


@inlined("int64(int64, int64, int64)")
def find_child(t: Any, node: Any, b: Any) -> Any:
    """Return the child of a trie node by byte b, or -1."""
    trie, edges = view(t, TRIE), view(t, TRIE_EDGES)
    last = trie[TRIE_W * node + TRIE_W + TRIE_FIRST_EDGE] + 0
    e = find_edge(t, b, trie[TRIE_W * node + TRIE_FIRST_EDGE] + 0, last)
    return edges[e] >> 8 if e < last and edges[e] & 255 == b else -1


@entry("int64(int64, int32[::1])")
def build_trie(t: Any, order: Any) -> Any:
    """Build the main trie of the vocabulary. Return its number of nodes, or TABLE_IS_FULL.

    order: the tokens, sorted by their bytes, without empty ones.
    """
    counts, trie, edges, tokens = view(t, TABLE), view(t, TRIE), view(t, TRIE_EDGES), view(t, TRIE_TOKENS)
    end, path, offsets = view(t, TRIE_END), view(t, TRIE_TEMP), view(t, OFFSETS)
    # First the nodes in preorder: TRIE_FIRST_EDGE counts children for now, `path` holds the open nodes by depth.
    nodes, entries, depth = 1, 0, 0
    trie[TRIE_FIRST_EDGE], trie[TRIE_FIRST_TOKEN], path[0] = 0, 0, 0
    previous_at, previous_end, longest = 0, 0, 0
    for k in range(len(order)):
        token = order[k]
        start, stop = offsets[token], offsets[token + 1]
        common = 0
        limit = min(stop - start, previous_end - previous_at)
        while common < limit and read_byte(t, previous_at + common) == read_byte(t, start + common):
            common += 1
        if TRIE_W * (nodes + stop - start + 1) > size(t, TRIE) or ENTRY_W * (entries + 1) > size(t, TRIE_TOKENS):
            return TABLE_IS_FULL
        while depth > common:
            end[path[depth]] = nodes
            depth -= 1
        while depth < stop - start:
            trie[TRIE_W * path[depth] + TRIE_FIRST_EDGE] += 1
            depth += 1
            path[depth] = nodes
            trie[TRIE_W * nodes + TRIE_FIRST_EDGE] = 0
            trie[TRIE_W * nodes + TRIE_FIRST_TOKEN] = entries
            nodes += 1
        tokens[ENTRY_W * entries + ENTRY_TOKEN] = token
        tokens[ENTRY_W * entries + ENTRY_CHARACTERS] = 0
        entries += 1
        longest = max(longest, stop - start)
        previous_at, previous_end = start, stop
    while depth >= 0:
        end[path[depth]] = nodes
        depth -= 1
    if nodes > size(t, TRIE_EDGES):
        return TABLE_IS_FULL
    # Then the edges: prefix sums of the counts. Children in preorder are in the order of their bytes.
    total = 0
    for node in range(nodes):
        n = trie[TRIE_W * node + TRIE_FIRST_EDGE] + 0
        trie[TRIE_W * node + TRIE_FIRST_EDGE] = total
        total += n
    trie[TRIE_W * nodes + TRIE_FIRST_EDGE], trie[TRIE_W * nodes + TRIE_FIRST_TOKEN] = total, entries
    for node in range(nodes):
        child = node + 1
        for e in range(trie[TRIE_W * node + TRIE_FIRST_EDGE], trie[TRIE_W * node + TRIE_W + TRIE_FIRST_EDGE]):
            edges[e] = child << 8
            child = end[child]
    # The byte of an edge is that of any token of the child's subtree, at the depth of the parent.
    path[0] = 0
    for node in range(nodes):
        for e in range(trie[TRIE_W * node + TRIE_FIRST_EDGE], trie[TRIE_W * node + TRIE_W + TRIE_FIRST_EDGE]):
            child = edges[e] >> 8
            path[child] = path[node] + 1
            token = tokens[ENTRY_W * trie[TRIE_W * child + TRIE_FIRST_TOKEN] + ENTRY_TOKEN]
            edges[e] |= read_byte(t, offsets[token] + path[node])
    counts[N_TRIE], counts[N_TRIE_EDGES], counts[N_TRIE_TOKENS], counts[LONGEST] = nodes + 1, total, entries, longest
    summarise_subtrees(t, nodes)
    return nodes
