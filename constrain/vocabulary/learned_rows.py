"""Learned rows: the rows and suffix tries of leaf states by what these states are, as one file holds them.

A leaf state of a pattern, a format or a number is named by a digest of its language, of the encoding and of its state
(`MaskTable.name_state`), so that the name is the same in every process. Equal rows and equal tries are stored once, and
a row of few tokens as their list: most rows of numbers and formats have a hundred tokens.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..kernels import layout as at
from .suffix_tries import SuffixTrie

__all__ = ["NAME_BYTES", "LearnedRow", "LearnedRows", "expand_row", "pack_rows", "shorten_row", "unpack_rows"]

Ints = NDArray[np.int32]
NAME_BYTES = 16
"""Bytes of the name of a leaf state, and of that of a trie."""
NAME_WORDS = NAME_BYTES // 4
HEAD = 7
"""Header words: the number of leaf states, rows, words of rows, tries, nodes, edges and tokens."""
NOT_MADE, OVER_BUDGET = -1, -2
"""Suffix tries that are not there: as in LEAF_SUFFIXES."""


class LearnedRow(NamedTuple):
    """What is known about a leaf state.

    row: as `shorten_row` returns it. longest: LEAF_LONGEST. trie: the name of its suffix trie, NOT_MADE or OVER_BUDGET.
    """

    row: Ints
    longest: int
    trie: bytes | int


class LearnedRows(NamedTuple):
    """Leaf states by name, the most recently used ones first, and suffix tries by name."""

    states: Mapping[bytes, LearnedRow]
    tries: Mapping[bytes, SuffixTrie]


def shorten_row(row: Ints) -> Ints:
    """Return a row, int32[words], as the list of its tokens if that has fewer words."""
    tokens = np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little"))
    return tokens.astype(np.int32) if len(tokens) < len(row) else row


def expand_row(stored: Ints, words: int) -> Ints:
    """Return the row that `shorten_row` was given, with this number of words."""
    if len(stored) == words:
        return stored
    bits = np.zeros(32 * words, np.uint8)
    bits[stored] = 1
    return np.packbits(bits, bitorder="little").view(np.int32)


def pack_rows(learned: LearnedRows, most_bytes: int) -> list[Ints]:
    """Return the content of a file as arrays: as many leaf states as fit into `most_bytes`, in their order."""
    names, entries, rows, tries = list[bytes](), list[tuple[int, int, int]](), dict[bytes, int](), dict[bytes, int]()
    size = 4 * HEAD
    for name, state in learned.states.items():
        row, trie = state.row.tobytes(), state.trie
        size += NAME_BYTES + 12 + (0 if row in rows else 4 + len(row))
        if isinstance(trie, bytes) and trie not in tries:
            size += NAME_BYTES + 4 + sum(part.nbytes for part in learned.tries[trie])
        if size > most_bytes:
            break
        names.append(name)
        number = trie if isinstance(trie, int) else tries.setdefault(trie, len(tries))
        entries.append((rows.setdefault(row, len(rows)), state.longest, number))
    parts = [learned.tries[name] for name in tries]
    nodes, edges, tokens = (
        np.concatenate([np.empty(0, np.int32), *(part[k].ravel() for part in parts)]) for k in range(3)
    )
    row_words = np.frombuffer(b"".join(rows), np.int32)
    return [
        np.array([len(names), len(rows), len(row_words), len(tries), len(nodes), len(edges), len(tokens)], np.int32),
        np.frombuffer(b"".join(names), np.int32),
        np.array(entries, np.int32).ravel(),
        np.array([len(row) // 4 for row in rows], np.int32),
        row_words,
        np.frombuffer(b"".join(tries), np.int32),
        np.array([len(part.nodes) for part in parts], np.int32),
        nodes,
        edges,
        tokens,
    ]


def unpack_rows(data: memoryview) -> LearnedRows | None:
    """Decode the content of a file as read-only views; None if the lengths are inconsistent."""
    content: Ints = np.frombuffer(data[: len(data) - len(data) % 4], np.int32)
    counts = content[:HEAD].tolist()
    if len(counts) < HEAD or min(counts) < 0:
        return None
    n, n_rows, row_words, n_tries, *trie_words = counts
    lengths = [HEAD, NAME_WORDS * n, 3 * n, n_rows, row_words, NAME_WORDS * n_tries, n_tries, *trie_words]
    if 4 * sum(lengths) != len(data):
        return None
    _, names, entries, row_sizes, rows, trie_names, sizes, nodes, edges, tokens = np.split(
        content, np.cumsum(lengths)[:-1]
    )
    tries, first_node, first_edge, first_token = dict[bytes, SuffixTrie](), 0, 0, 0
    for name, size in zip(_split_names(trie_names), sizes.tolist()):
        own = nodes[at.TRIE_W * first_node : at.TRIE_W * (first_node + size)].reshape(-1, at.TRIE_W)
        last_edge, last_token = first_edge + int(own[-1, 0]), first_token + int(own[-1, 1])
        own_tokens = tokens[at.ENTRY_W * first_token : at.ENTRY_W * last_token].reshape(-1, at.ENTRY_W)
        tries[name] = SuffixTrie(own, edges[first_edge:last_edge], own_tokens)
        first_node, first_edge, first_token = first_node + size, last_edge, last_token
    all_rows, known = np.split(rows, np.cumsum(row_sizes)[:-1]), list(tries)
    states = {
        name: LearnedRow(all_rows[row], longest, known[trie] if trie >= 0 else trie)
        for name, (row, longest, trie) in zip(_split_names(names), entries.reshape(-1, 3).tolist())
    }
    return LearnedRows(states, tries)


def _split_names(words: Ints) -> list[bytes]:
    """Return the names in an array of words."""
    data = words.tobytes()
    return [data[first : first + NAME_BYTES] for first in range(0, len(data), NAME_BYTES)]
