"""Suffix tries as separate arrays: copied from the arrays of a MaskTable, and appended to those of another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..kernels import layout as at

__all__ = ["SuffixTrie", "append_trie", "copy_trie"]

Ints = NDArray[np.int32]
Arrays = Mapping[int, Ints]
"""The arrays of a MaskTable by slot."""
PARTS = ((at.TRIE, at.N_TRIE, at.TRIE_W), (at.TRIE_EDGES, at.N_TRIE_EDGES, 1),
         (at.TRIE_TOKENS, at.N_TRIE_TOKENS, at.ENTRY_W))  # fmt: skip
"""Slot, field of TABLE with the count, and width of the records, of each part of a trie."""


class SuffixTrie(NamedTuple):
    """A suffix trie (kernels/trie.py) whose numbers begin with 0, the root.

    nodes: int32[n + 1, TRIE_W]; the last one only holds ends. edges: int32[e], child << 8 | byte. tokens: int32[t,
    ENTRY_W].
    """

    nodes: Ints
    edges: Ints
    tokens: Ints


def copy_trie(arrays: Arrays, root: int, end: int) -> SuffixTrie:
    """Copy the trie with this root from a table. `end` is the node after its last one, which holds the ends."""
    nodes = arrays[at.TRIE][at.TRIE_W * root : at.TRIE_W * (end + 1)].reshape(-1, at.TRIE_W)
    (first_edge, first_token), (last_edge, last_token) = nodes[0].tolist(), nodes[-1].tolist()
    edges = arrays[at.TRIE_EDGES][first_edge:last_edge]
    tokens = arrays[at.TRIE_TOKENS][at.ENTRY_W * first_token : at.ENTRY_W * last_token].reshape(-1, at.ENTRY_W)
    return _move(SuffixTrie(nodes, edges, tokens.copy()), (-root, -first_edge, -first_token))


def append_trie(arrays: Arrays, trie: SuffixTrie) -> tuple[int, int] | None:
    """Append a trie to the arrays of a table. Return its root and end there; None if there is too little space.

    The caller holds the lock of the table.
    """
    counts = arrays[at.TABLE]
    first = int(counts[at.N_TRIE]), int(counts[at.N_TRIE_EDGES]), int(counts[at.N_TRIE_TOKENS])
    if any(width * (start + len(part)) > arrays[slot].size
           for (slot, _, width), start, part in zip(PARTS, first, trie)):  # fmt: skip
        return None
    for (slot, count, width), start, part in zip(PARTS, first, _move(trie, first)):
        arrays[slot][width * start : width * start + part.size] = part.ravel()
        counts[count] = start + len(part)
    return first[0], first[0] + len(trie.nodes) - 1


def _move(trie: SuffixTrie, first: tuple[int, int, int]) -> SuffixTrie:
    """Return a trie with these numbers added to those of nodes, edges and tokens."""
    return SuffixTrie(trie.nodes + np.array(first[1:], np.int32), trie.edges + np.int32(first[0] << 8), trie.tokens)
