"""Rows of numbers, found by arithmetic on the digits of tokens instead of walks through states.

With a multiple of 997 nearly each run of digits leads to another state, and a mask would make a thousand states that no
text reaches. So the tokens that are runs of digits are judged together (`digit_runs`), and other tokens are read byte
by byte. The result is that of the kernels `find_unexpanded` and `make_row`: a row, and the trie nodes at which the
number may end inside a token.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..automata.numerals.digit_runs import mark_digit_runs, read_run, read_unsure_runs
from ..automata.numerals.number_reader import NumberReader
from ..automata.numerals.number_states import ZERO, Mantissa, State
from ..kernels import layout as at
from ..kernels.digit_run_layout import ALIVE
from ..kernels.entry_points import write_run_tokens

__all__ = ["TABLE_IS_FULL", "NumberRows"]

TABLE_IS_FULL = -1
MOST_LENGTH = 6
"""Most digits of the runs that are judged together."""
ZERO_BYTE, NINE_BYTE = b"09"
SYNTAX = list(b"+-.0123456789Ee")
"""The bytes of numbers."""
Edge = tuple[int, int]
"""A byte and the child of a trie node."""
Arrays = Mapping[int, NDArray[np.int32]]


class NumberRows:
    """Makes rows in the arrays of a MaskTable, whose lock the caller holds. `address` is that of its context.

    It begins by listing the runs of digits in the trie of the vocabulary, by length and number of zeros before the
    first other digit. `lengths` and `groups` begin with the longest runs, since a prefix of what can be completed can
    be completed.
    """

    def __init__(self, arrays: Arrays, address: int) -> None:
        self.arrays, self.address = arrays, address
        self.words = int(arrays[at.TABLE][at.T_WORDS])
        lengths: dict[int, slice] = {}
        groups: dict[tuple[int, int], slice] = {}
        nodes, values, sizes = [], [], []
        count = 0
        for length, found, zeros, spelled in _list_runs(arrays):
            for number in range(length + 1):
                group = zeros == number
                size = int(group.sum())
                if size:
                    groups[length, number] = slice(count, count + size)
                    nodes.append(found[group])
                    values.append(spelled[group])
                    count += size
            lengths[length] = slice(count - len(found), count)
            sizes.append(np.full(len(found), length))
        empty = [np.zeros(0, np.int64)]
        self.nodes, self.values = np.concatenate(nodes or empty), np.concatenate(values or empty)
        self.sizes = np.concatenate(sizes or empty).astype(np.int32)
        self.lengths = [
            (length, part, self._are_prefixes(part, lengths.get(length + 1)))
            for length, part in reversed(lengths.items())
        ]
        self.groups = [
            (length, zeros, part, self._are_prefixes(part, groups.get((length + 1, zeros))))
            for (length, zeros), part in reversed(groups.items())
        ]
        edges, owners = _gather(arrays, self.nodes, at.TRIE_FIRST_EDGE)
        has_edges = np.bincount(owners, minlength=count) > 0
        self.exit_nodes = np.where(has_edges, self.nodes, -1).astype(np.int32)
        bytes_of_edges = arrays[at.TRIE_EDGES][edges] & 255
        is_other = ~_are_digits(bytes_of_edges) | (self.sizes[owners] == MOST_LENGTH)
        self.with_others = np.unique(owners[is_other & np.isin(bytes_of_edges, SYNTAX)]).tolist()
        self.trie = _NumberTrie(arrays)
        self.others = self._list_others(0, 0)
        entries, token_runs = _gather(arrays, self.nodes, at.TRIE_FIRST_TOKEN)
        self.token_runs = token_runs.astype(np.int32)
        self.tokens = arrays[at.TRIE_TOKENS][at.ENTRY_W * entries + at.ENTRY_TOKEN]

    def _are_prefixes(self, part: slice, longer: slice | None) -> bool:
        """Return whether each run of a group is a prefix of a run, one digit longer, of another group."""
        return longer is not None and bool(np.isin(self.values[part], self.values[longer] // 10).all())

    def make(self, reader: NumberReader, state: Mantissa, leaf: int) -> int:
        """Write the row of a leaf state that may have digits as MADE_ROW, and its exits to TRIE_TEMP.

        Return the number of exits, or TABLE_IS_FULL.
        """
        rows, counts, temp = self.arrays[at.ROWS], self.arrays[at.TABLE], self.arrays[at.TRIE_TEMP]
        row = int(counts[at.N_ROWS])
        if self.words * (row + 1) > rows.size:
            return TABLE_IS_FULL
        walk = _Walk(self.trie, reader, rows[self.words * row : self.words * (row + 1)])
        count = self._add_runs(walk, state)
        walk.follow(state, self.others, 0)
        first = at.MERGED_FIRST + at.MERGED_W * count
        end = first + len(walk.exits)
        if end > temp.size:
            return TABLE_IS_FULL
        temp[first:end] = walk.exits
        self.arrays[at.LEAVES][leaf * at.LEAF_W + at.LEAF_LONGEST] = 0  # the characters of a number are not limited
        counts[at.MADE_ROW] = row
        return count + len(walk.exits) // at.MERGED_W

    def _add_runs(self, walk: _Walk, state: Mantissa) -> int:
        """Write the row of the tokens that begin with digits, and the exits after these. Return their number."""
        marks = np.zeros(len(self.nodes), np.uint8)
        if state.digits:
            are_alive = False
            for length, part, is_prefix in self.lengths:
                are_alive = mark_digit_runs(
                    walk.reader, state, length, 0, self.values[part], marks[part], are_alive=are_alive and is_prefix
                )
        else:
            alive = set[int]()  # numbers of zeros for which the longer runs are alive
            is_integer = state.phase < ZERO  # then it begins with 0 only if that is all of it
            for length, zeros, part, is_prefix in self.groups:
                if zeros and length > 1 and is_integer:
                    continue
                are_alive = is_prefix and zeros in alive
                alive.discard(zeros)
                if mark_digit_runs(
                    walk.reader, state, length, zeros, self.values[part], marks[part], are_alive=are_alive
                ):
                    alive.add(zeros)
        read_unsure_runs(walk.reader, state, self.sizes, self.values, marks)
        count = write_run_tokens(self.address, marks, self.exit_nodes, self.sizes, self.token_runs, self.tokens)
        for index in self.with_others:
            if marks[index] & ALIVE:
                length = int(self.sizes[index])
                after = read_run(walk.reader, state, length, int(self.values[index]))
                assert after is not None
                walk.follow(after, self._list_others(int(self.nodes[index]), length), length)
        return count

    def _list_others(self, node: int, length: int) -> list[Edge]:
        """Return the edges of the node of a run, of this length, that lead to no run."""
        edges = self.trie.read_node(node).edges
        return [edge for edge in edges if length == MOST_LENGTH or not ZERO_BYTE <= edge[0] <= NINE_BYTE]


class _Node(NamedTuple):
    """A node of the trie: its tokens, the edges by bytes of numbers, and whether it has any edges."""

    tokens: list[int]
    edges: list[Edge]
    has_edges: bool


class _NumberTrie:
    """The nodes of the trie that numbers reach, each read once."""

    def __init__(self, arrays: Arrays) -> None:
        self.arrays = arrays
        self.nodes: dict[int, _Node] = {}

    def read_node(self, number: int) -> _Node:
        """Return a node."""
        node = self.nodes.get(number)
        if node is None:
            first_edge, first, last_edge, last = self.arrays[at.TRIE][at.TRIE_W * number :][: 2 * at.TRIE_W].tolist()
            edges = [(edge & 255, edge >> 8) for edge in self.arrays[at.TRIE_EDGES][first_edge:last_edge].tolist()]
            tokens = self.arrays[at.TRIE_TOKENS][at.ENTRY_W * first + at.ENTRY_TOKEN : at.ENTRY_W * last : at.ENTRY_W]
            node = _Node(tokens.tolist(), [edge for edge in edges if edge[0] in SYNTAX], bool(edges))
            self.nodes[number] = node
        return node


class _Walk:
    """A walk of the trie with the states of a number.

    row: a bit for each token. exits: trie nodes, each followed by the number of bytes before it.
    """

    def __init__(self, trie: _NumberTrie, reader: NumberReader, row: NDArray[np.int32]) -> None:
        self.trie, self.reader, self.row = trie, reader, row.view(np.uint8).data
        self.exits: list[int] = []

    def follow(self, state: State, edges: list[Edge], depth: int) -> None:
        """Add the tokens along some edges after a state, which `depth` bytes of the token have reached."""
        todo = [(state, edge, depth + 1) for edge in edges]
        while todo:
            before, (byte, number), depth = todo.pop()
            after = self.reader.follow(before, byte)
            if after is None:
                continue
            node = self.trie.read_node(number)
            for token in node.tokens:
                self.row[token >> 3] |= 1 << (token & 7)
            if node.has_edges and self.reader.may_end(after):
                self.exits += number, depth
            todo += [(after, edge, depth + 1) for edge in node.edges]


def _list_runs(
    arrays: Arrays,
) -> Iterator[tuple[int, NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]]:
    """Yield the runs of digits of each length with which tokens begin.

    For each, the length, and arrays of the nodes of the trie, the numbers of zeros before the first other digit, and
    the values.
    """
    nodes = zeros = values = np.zeros(1, np.int64)
    for length in range(1, MOST_LENGTH + 1):
        edges, owners = _gather(arrays, nodes, at.TRIE_FIRST_EDGE)
        words = arrays[at.TRIE_EDGES][edges]
        is_digit = _are_digits(words)
        words, owners = words[is_digit], owners[is_digit]
        if not len(words):
            return
        nodes = (words >> 8).astype(np.int64)
        values = 10 * values[owners] + (words & 255) - ZERO_BYTE
        zeros = np.where(values > 0, zeros[owners], length)
        yield length, nodes, zeros, values


def _gather(arrays: Arrays, nodes: NDArray[np.int64], field: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the indices of the edges or tokens of some nodes, and for each the index of its node in `nodes`.

    field: TRIE_FIRST_EDGE or TRIE_FIRST_TOKEN.
    """
    first = arrays[at.TRIE][at.TRIE_W * nodes + field].astype(np.int64)
    counts = arrays[at.TRIE][at.TRIE_W * (nodes + 1) + field] - first
    owners = np.repeat(np.arange(len(nodes)), counts)
    return np.arange(len(owners)) + (first - np.cumsum(counts) + counts)[owners], owners


def _are_digits(edges: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Return which edges are of digits."""
    found: NDArray[np.bool_] = (edges & 255 >= ZERO_BYTE) & (edges & 255 <= NINE_BYTE)
    return found
