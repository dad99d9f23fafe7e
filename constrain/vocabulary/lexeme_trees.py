"""Trees of readers as separate arrays: what is written to disk of a lexeme trie, and how it is read back.

The readers of a vocabulary (kernels/lexemes.py) lie in four arrays of its MaskTable, which those of all scanners share.
A reader of all tokens is the root of a tree: its exits have readers of the remainders, and so on. `extract_tree` copies
one tree into arrays whose numbers begin with 0; `insert_tree` appends such arrays to those of a table.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..kernels import layout as at

__all__ = ["LexemeTree", "extract_tree", "find_root", "insert_tree", "list_roots", "list_tree"]

Ints = NDArray[np.int32]
Arrays = Mapping[int, Ints]
"""The arrays of a MaskTable by slot."""
PARTS = (
    (at.LEX_READERS, at.N_LEX_READERS, at.READER_W),
    (at.LEX_CLASSES, at.N_LEX_CLASSES, at.CLASS_W),
    (at.LEX_EXITS, at.N_LEX_EXITS, at.EXIT_W),
    (at.LEX_WORDS, at.N_LEX_WORDS, 1),
)
"""Slot, field of TABLE with the count, and width of the records, of each part of a tree."""


class LexemeTree(NamedTuple):
    """A tree of readers; the first one is the root.

    Attributes
    ----------
    readers : int32[n, READER_W]
    classes : int32[m, CLASS_W]
    exits : int32[k, EXIT_W]
    words : int32[w]
        Tokens, remainders and rows of bits.
    """

    readers: Ints
    classes: Ints
    exits: Ints
    words: Ints


def find_root(arrays: Arrays, scanner: int, state: int) -> int:
    """Return the reader of all tokens from a scanner state, or -1 (see `lexemes.find_root_reader`)."""
    reader = int(arrays[at.LEX_ROOTS][_chain(scanner, state)])
    while reader >= 0:
        record = arrays[at.LEX_READERS][reader * at.READER_W : (reader + 1) * at.READER_W].tolist()
        if (record[at.READER_SCANNER], record[at.READER_STATE]) == (scanner, state):
            return reader
        reader = record[at.READER_NEXT]
    return -1


def list_roots(arrays: Arrays, scanner: int) -> list[tuple[int, int]]:
    """Return the pair (state, reader) of each reader of all tokens of a scanner."""
    readers = _records(arrays, at.LEX_READERS, at.N_LEX_READERS, at.READER_W)
    level, found = arrays[at.LEX_ROOTS][arrays[at.LEX_ROOTS] >= 0], list[tuple[int, int]]()
    while len(level):
        ours = level[readers[level, at.READER_SCANNER] == scanner]
        found += zip(readers[ours, at.READER_STATE].tolist(), ours.tolist())
        level = _existing(readers[level, at.READER_NEXT])
    return found


def list_tree(arrays: Arrays, root: int) -> Ints:
    """Return the readers of the tree of a root, which is the first of them."""
    readers = _records(arrays, at.LEX_READERS, at.N_LEX_READERS, at.READER_W)
    exits = _records(arrays, at.LEX_EXITS, at.N_LEX_EXITS, at.EXIT_W)
    level = np.array([root], np.int32)
    found = [level]
    while len(level):
        below = _ranges(readers[level, at.READER_EXITS], readers[level, at.READER_N_EXITS])
        siblings = _existing(exits[below, at.EXIT_READER])
        level = siblings
        while len(siblings):
            siblings = _existing(readers[siblings, at.READER_NEXT])
            level = np.concatenate([level, siblings])
        found.append(level)
    return np.concatenate(found)


def extract_tree(arrays: Arrays, chosen: Ints) -> LexemeTree:
    """Copy a tree. `chosen` are its readers as `list_tree` returns them. The caller holds the lock of the table."""
    row = int(arrays[at.TABLE][at.T_WORDS])
    all_readers = _records(arrays, at.LEX_READERS, at.N_LEX_READERS, at.READER_W)
    number = np.full(len(all_readers), -1, np.int32)
    number[chosen] = np.arange(len(chosen), dtype=np.int32)
    readers = all_readers[chosen]
    readers[:, at.READER_SCANNER] = 0
    readers[0, at.READER_NEXT] = -1  # of the root: another root
    classes, exits = (
        _records(arrays, slot, count, width)[_ranges(readers[:, first], readers[:, length])]
        for (slot, count, width), first, length in zip(
            PARTS[1:3], (at.READER_CLASSES, at.READER_EXITS), (at.READER_N_CLASSES, at.READER_N_EXITS)
        )
    )
    readers[:, at.READER_CLASSES] = _offsets(readers[:, at.READER_N_CLASSES])
    readers[:, at.READER_EXITS] = _offsets(readers[:, at.READER_N_EXITS])
    for records, field in ((readers, at.READER_NEXT), (exits, at.EXIT_READER)):
        records[:, field] = np.where(records[:, field] < 0, -1, number[records[:, field]])
    # The words that the records refer to, in this order: of classes, exits, doubtful tokens, bounds.
    bounded, words = readers[:, at.READER_BOUNDS] >= 0, arrays[at.LEX_WORDS]
    starts = [classes[:, at.CLASS_FIRST], exits[:, at.EXIT_FIRST], readers[:, at.READER_DOUBTS]]
    counts = [classes[:, at.CLASS_COUNT], exits[:, at.EXIT_COUNT], readers[:, at.READER_N_DOUBTS]]
    counts[0] = np.where(counts[0] < 0, row, counts[0])
    starts.append(readers[bounded, at.READER_BOUNDS])
    counts.append(1 + words[starts[3]] * (1 + row))
    lengths = np.concatenate(counts)
    copied = words[_ranges(np.concatenate(starts), lengths)]
    moved = np.split(_offsets(lengths), np.cumsum([len(one) for one in counts[:3]]))
    classes[:, at.CLASS_FIRST], exits[:, at.EXIT_FIRST], readers[:, at.READER_DOUBTS] = moved[:3]
    readers[bounded, at.READER_BOUNDS] = moved[3]
    return LexemeTree(readers, classes, exits, copied)


def insert_tree(arrays: Arrays, tree: LexemeTree, scanner: int) -> int:
    """Append a tree to the arrays of a table and return its root; -1 if there is too little space.

    The caller holds the lock of the table, and the table has no such root.
    """
    counts = arrays[at.TABLE]
    first = [int(counts[count]) for _, count, _ in PARTS]
    if any(width * start + part.size > arrays[slot].size
           for (slot, _, width), start, part in zip(PARTS, first, tree)):  # fmt: skip
        return -1
    readers, classes, exits = tree.readers.copy(), tree.classes.copy(), tree.exits.copy()
    readers[:, at.READER_SCANNER] = scanner
    for records, field, base in (
        (readers, at.READER_CLASSES, first[1]),
        (readers, at.READER_EXITS, first[2]),
        (readers, at.READER_DOUBTS, first[3]),
        (classes, at.CLASS_FIRST, first[3]),
        (exits, at.EXIT_FIRST, first[3]),
    ):
        records[:, field] += np.int32(base)
    for records, field, base in (
        (readers, at.READER_NEXT, first[0]),
        (exits, at.EXIT_READER, first[0]),
        (readers, at.READER_BOUNDS, first[3]),
    ):
        records[:, field] += np.where(records[:, field] < 0, 0, base).astype(np.int32)
    chain = _chain(scanner, int(readers[0, at.READER_STATE]))
    readers[0, at.READER_NEXT] = arrays[at.LEX_ROOTS][chain]
    for (slot, count, width), start, part in zip(PARTS, first, (readers, classes, exits, tree.words)):
        arrays[slot][width * start : width * start + part.size] = part.ravel()
        counts[count] = start + len(part)
    # Last, since other threads read the tree as soon as this is set.
    arrays[at.LEX_ROOTS][chain] = first[0]
    return first[0]


def _chain(scanner: int, state: int) -> int:
    """Return the hash chain of a reader of all tokens, as `lexemes.find_root_reader` computes it."""
    return (state * 31 + scanner * 1009) & (at.LEX_CHAINS - 1)


def _records(arrays: Arrays, slot: int, count: int, width: int) -> Ints:
    """Return the used part of a slot as int32[n, width], a view."""
    return arrays[slot][: width * int(arrays[at.TABLE][count])].reshape(-1, width)


def _existing(numbers: Ints) -> Ints:
    """Return the numbers that are not -1."""
    return numbers[numbers >= 0]


def _offsets(lengths: Ints) -> Ints:
    """Return where each of some pieces begins that follow each other from 0 on."""
    return (np.cumsum(lengths, dtype=np.int64) - lengths).astype(np.int32)


def _ranges(starts: Ints, lengths: Ints) -> NDArray[np.int64]:
    """Return the concatenation of the ranges that begin at `starts` and have these lengths."""
    ends = np.cumsum(lengths, dtype=np.int64)
    offsets: NDArray[np.int64] = np.repeat(starts - (ends - lengths), lengths)
    return offsets + np.arange(len(offsets))
