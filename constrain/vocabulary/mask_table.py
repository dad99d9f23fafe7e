"""MaskTable: token rows of leaf states, which depend on the vocabulary but not on a constraint.

A MaskTable is created once per vocabulary, shared by all constraints, and stored on disk. For each visited leaf state
it holds 256 transitions, the row of tokens that stay inside the leaf, and the suffix trie of those that leave it
(kernels/leaves.py, kernels/trie.py); equal rows and equal suffix tries are stored once. A leaf is identified by the key
of its language and its encoding, so two schemas with the same pattern share rows. The states of a number are computed
here when they are reached (`number_leaves`). Everything is in flat int32 arrays that only grow and never move: threads
read them without a lock, and see new entries only once their indices are published. They grow under `lock`. The arrays
are reserved generously; memory that has not been written costs nothing.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Mapping
from fractions import Fraction
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..automata.dfa import Dfa
from ..automata.numerals.number_language import NumberLanguage
from ..base.fork_safety import fork_handlers
from ..base.reserved_memory import map_pages
from ..kernels import layout as at
from ..kernels.entry_points import (
    build_trie,
    expand_leaf,
    expand_leaves,
    fill_contents,
    find_unexpanded,
    hash_row,
    intern_leaf,
    make_row,
    make_suffix_trie,
    order_by_length,
    publish_word,
    write_dfa_block,
    write_quoted_subtrees,
)
from .byte_groups import BYTE_GROUPS
from .learned_row_cache import LearnedRowCache
from .learned_rows import NAME_BYTES, OVER_BUDGET
from .lexeme_table_cache import LexemeTableCache
from .number_leaves import TABLE_IS_FULL, NumberLeaves
from .token_order import order_tokens

if TYPE_CHECKING:
    from .vocabulary import Vocabulary

__all__ = ["MaskTable", "TableFull", "data_address"]

LEAF_STATES = 1 << 18
"""Most leaf states, of 1.1 KB each: those of some thousands of schemas. Then another table takes its place."""
ROW_BYTES = 96 << 20
TRIE_WORDS = 1 << 22
LEX_READERS = 1 << 16
LEX_WORDS = 1 << 26
BATCH = 8
"""Leaf states expanded per request, at about 2 µs each; the request itself costs as much."""
ASCII = 128
SUFFIX_BUDGET = 10_000
"""Most (exit, token) pairs merged for one leaf state, which take up to a millisecond. The digits of a number have some
3,000 in a vocabulary of 128k; where there are more, masks walk to the exits (`kernels.exit_walks`)."""


class TableFull(Exception):
    """The reserved memory is used up; the owner must create a new table."""


def data_address(array: NDArray[np.int32]) -> int:
    """Return the address of an array's data."""
    return int(array.__array_interface__["data"][0])


def reserve_table(length: int, filled: int = 0) -> NDArray[np.int32]:
    """Return an array of a table, all 0, of which only written pages take memory; `filled` words are written soon.

    These are in huge pages: walks of the trie go through megabytes, and wait less for the addresses of large pages.
    """
    hint = "Use fewer vocabularies at once."
    pages = map_pages(4 * max(1, length), "the mask table of the vocabulary", hint, 4 * filled)
    return np.frombuffer(pages, np.int32)


class MaskTable:
    """The part of mask computation that depends on the vocabulary only.

    `context` is int64[2 * SLOTS], an (address, length) pair per slot, filled from TABLE on (see `kernels.layout`).
    `tokens` is V, the number of tokens, and `words` that of the int32 words of a mask, ceil(V / 32). `is_broken` says
    whether another thread of the parent process was extending the table when this process was forked; it is then
    rebuilt.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        stored: Mapping[int, NDArray[np.int32]] | None = None,
        starts: Mapping[tuple[bytes, int], int] | None = None,
    ) -> None:
        self.lock = threading.Lock()
        self.is_broken = False
        fork_handlers.add(self)
        self.tokens, self.words = vocabulary.size, (vocabulary.size + 31) // 32
        self.fingerprint = vocabulary.fingerprint
        self.spare: list[Any] = []  # memory blocks of deleted state caches
        self.starts: dict[tuple[bytes, int], int] = dict(starts or {})
        self.row_numbers: dict[int, list[int]] = {}  # by the hash of the rows
        self.suffix_tries: dict[bytes, tuple[int, int]] = {}  # root and end by name
        self.trie_names: dict[int, bytes] = {}  # by root
        self.machine_keys: dict[int, tuple[bytes, int]] = {}  # key of the language, and mode
        nodes = int(vocabulary.offsets[-1]) + 2
        contents = at.CONTENTS_ROWS + at.CONTENT_ROWS * self.words
        filled = defaultdict(int, {slot: len(array) for slot, array in (stored or {}).items()})
        self.arrays: dict[int, NDArray[np.int32]] = {
            at.TABLE: np.zeros(at.HEAD_W, np.int32),
            at.ENDS: np.array(vocabulary.eos_ids, np.int32),
            at.LEAF_NEXT: reserve_table(LEAF_STATES * 256),
            at.LEAVES: reserve_table(LEAF_STATES * at.LEAF_W),
            at.LEAF_HASH: reserve_table(LEAF_STATES * 2),
            at.MACHINES: reserve_table(2 * LEAF_STATES),
            at.DFAS: reserve_table(TRIE_WORDS),
            at.ROWS: reserve_table(max(64, ROW_BYTES // (4 * self.words)) * self.words),
            at.TRIE: reserve_table(2 * (nodes + TRIE_WORDS), filled[at.TRIE]),
            at.TRIE_EDGES: reserve_table(nodes + TRIE_WORDS, filled[at.TRIE_EDGES]),
            at.TRIE_TOKENS: reserve_table(2 * (vocabulary.size + TRIE_WORDS), filled[at.TRIE_TOKENS]),
            at.TRIE_END: reserve_table(nodes, filled[at.TRIE_END]),
            at.BY_LENGTH: reserve_table(TRIE_WORDS),
            at.TRIE_TEMP: reserve_table(4 * TRIE_WORDS + 2 * nodes),
            at.BLOB: np.frombuffer(bytes(vocabulary.blob) + bytes(-len(vocabulary.blob) % 4 + 4), np.int32),
            at.OFFSETS: vocabulary.offsets,
            at.BELOW: reserve_table(at.BELOW_W * nodes, filled[at.BELOW]),
            at.CONTENTS: reserve_table(contents, contents),
            at.QUOTED: np.zeros(at.QUOTED_FIRST + at.QUOTED_W * at.MOST_QUOTED, np.int32),
            at.LEX_ROOTS: np.full(at.LEX_CHAINS, -1, np.int32),
            at.LEX_READERS: reserve_table(LEX_READERS * at.READER_W),
            at.LEX_CLASSES: reserve_table(16 * LEX_READERS * at.CLASS_W),
            at.LEX_EXITS: reserve_table(16 * LEX_READERS * at.EXIT_W),
            at.LEX_WORDS: reserve_table(LEX_WORDS),
            at.LEX_CACHE: reserve_table(4 * vocabulary.size),
        }
        self.arrays[at.TABLE][at.T_WORDS] = self.words
        # For single words: views take a third of the time that numpy's own indexing does.
        self._counts, self._leaves = self.arrays[at.TABLE].data, self.arrays[at.LEAVES].data
        self.numbers = NumberLeaves(self.arrays, LEAF_STATES)
        self.learned, self.lexemes = LearnedRowCache(self), LexemeTableCache(self)
        self.context = np.zeros(2 * at.SLOTS, np.int64)
        for slot, array in self.arrays.items():
            self.context[2 * slot : 2 * slot + 2] = data_address(array), array.size
        self.address = self.numbers.address = data_address(self.context)  # type: ignore[arg-type]
        self._leaves_address = data_address(self.arrays[at.LEAVES])
        if stored is None:
            self._build_trie(vocabulary)
        else:
            for slot, array in stored.items():
                self.arrays[slot][: len(array)] = array
            self._fill_leaf_hash()

    def after_fork(self) -> None:
        """Replace the lock. If it was held, the arrays may be inconsistent.

        The lock is tried: `locked()` is still false while the thread that has acquired it waits for the GIL.
        """
        is_held = not self.lock.acquire(blocking=False)
        self.lock, self.is_broken = threading.Lock(), self.is_broken or is_held

    def snapshot(self) -> dict[int, NDArray[np.int32]]:
        """Return copies of the used parts of the arrays.

        `MaskTable(vocabulary, snapshot, starts)` restores the table from them.
        """
        with self.lock:
            counts = self.arrays[at.TABLE]
            used = {
                at.TABLE: at.HEAD_W,
                at.LEAF_NEXT: 256 * counts[at.N_LEAVES],
                at.LEAVES: at.LEAF_W * counts[at.N_LEAVES],
                at.MACHINES: 2 * counts[at.N_MACHINES],
                at.DFAS: counts[at.N_DFAS],
                at.ROWS: self.words * counts[at.N_ROWS],
                at.TRIE: 2 * counts[at.N_TRIE],
                at.TRIE_EDGES: counts[at.N_TRIE_EDGES],
                at.TRIE_TOKENS: 2 * counts[at.N_TRIE_TOKENS],
                at.TRIE_END: self.arrays[at.TRIE_END][0],  # of the root: the number of nodes of the main trie
                at.BELOW: at.BELOW_W * self.arrays[at.TRIE_END][0],
                at.BY_LENGTH: counts[at.N_BY_LENGTH],
                at.CONTENTS: at.CONTENTS_ROWS + at.CONTENT_ROWS * self.words,
                at.QUOTED: len(self.arrays[at.QUOTED]),
            }
            return {slot: self.arrays[slot][: int(length)].copy() for slot, length in used.items()}

    def _fill_leaf_hash(self) -> None:
        """Enter the leaf states of a file into their hash table, which is not in it."""
        count = int(self.arrays[at.TABLE][at.N_LEAVES])
        slots = self.arrays[at.LEAVES][at.LEAF_SLOT : at.LEAF_W * count : at.LEAF_W]
        states = np.flatnonzero(slots >= 0)  # those of numbers are not hashed
        self.arrays[at.LEAF_HASH][slots[states]] = states + 1

    def _build_trie(self, vocabulary: Vocabulary) -> None:
        """Build the trie of all tokens, and their rows by the bytes that they have."""
        if build_trie(self.address, order_tokens(vocabulary.blob, vocabulary.offsets)) < 0:
            raise AssertionError("the trie of a vocabulary has no more nodes than its tokens have bytes")
        self.arrays[at.CONTENTS][at.CONTENTS_GROUPS : at.CONTENTS_GROUPS + 256] = BYTE_GROUPS
        fill_contents(self.address)

    # ---- requests of the kernels ----------------------------------------------------------------------------

    def start(self, language: Dfa | NumberLanguage, mode: int) -> int:
        """Return the start state of the leaf with this language and mode, after expanding it."""
        with self.lock:
            key = (language.key, mode)
            state = self.starts.get(key)
            if state is None:
                if isinstance(language, NumberLanguage):
                    machine = self._append_machine(NO_STATES, mode)
                    state = self.numbers.start(machine, language)
                else:
                    machine = self._append_machine(_dfa_block(language), mode)
                    state = intern_leaf(self.address, machine, 0, 0)
                if state < 0 or expand_leaves(self.address, state, 0) < 0:
                    raise TableFull
                self.starts[key], self.machine_keys[machine] = state, key
            return state

    def name_state(self, state: int) -> bytes | None:
        """Return a digest of a leaf state that is the same in every process; None if its machine is from a file."""
        if self.numbers.is_number(state):  # which the languages of several machines may share
            return blake2b(self.numbers.describe(state), digest_size=NAME_BYTES, salt=bytes([at.NUMBER])).digest()
        machine, decoder, dfa_state = self._leaves[state * at.LEAF_W : state * at.LEAF_W + 3].tolist()
        if machine not in self.machine_keys:
            return None
        language, mode = self.machine_keys[machine]
        described = b"%d %d" % (decoder, dfa_state)
        return blake2b(described, digest_size=NAME_BYTES, key=language, salt=bytes([mode])).digest()

    def is_number(self, state: int) -> bool:
        """Return whether a leaf state is one of a number."""
        return self.numbers.is_number(state)

    def least(self, state: int) -> int:
        """Return the least number of further bytes from a leaf state of a number."""
        with self.lock:
            return self.numbers.least(state)

    def few_values(self, state: int) -> frozenset[Fraction] | None:
        """Return the magnitudes that a number may have from a leaf state, if they are few."""
        with self.lock:
            return self.numbers.few_values(state)

    def is_written_out(self, state: int) -> bool:
        """Return whether no digit but 0 can follow in a number that has few values."""
        with self.lock:
            return self.numbers.is_written_out(state)

    def prepare(self, dfa: Dfa, mode: int) -> None:
        """Build the rows and suffix tries of all states of a leaf that need them."""
        leaves, following = self.arrays[at.LEAVES], self.arrays[at.LEAF_NEXT]
        todo = [self.start(dfa, mode)]
        seen = set(todo)
        while todo:
            state = todo.pop()
            if expand_leaf(self.address, state) < 0:
                raise TableFull
            if leaves[state * at.LEAF_W + at.LEAF_ROW] == -1:
                self.row(state)
                self.build_suffixes(state)
            targets = following[256 * state : 256 * state + 256]
            fresh = set(targets[targets >= 0].tolist()) - seen
            seen |= fresh
            todo.extend(sorted(fresh))

    def expand(self, state: int, ahead: int = BATCH) -> None:
        """Write the transitions of a leaf state and of `ahead` of the states that it leads to, breadth first."""
        with self.lock:
            is_number = self.numbers.is_number(state)
            if (self.numbers.expand(state) if is_number else expand_leaves(self.address, state, ahead)) < 0:
                raise TableFull

    def row(self, state: int) -> None:
        """Build the row of a leaf state and its suffix trie: one walk finds both.

        If the leaf refuses hardly any character (as most states of an unanchored pattern do), its row is nearly that of
        an arbitrary string, which is built first.
        """
        counts, leaves, record = self._counts, self._leaves, state * at.LEAF_W
        free = state
        if counts[at.FREE_ROW] == 0 and leaves[record + at.LEAF_FLAGS] & at.LEAF_CLOSES:
            free = self.start(Dfa.any_text(), at.JSON_STRING)
            if free != state:
                self.row(free)
        with self.lock:
            if leaves[record + at.LEAF_ROW] != -1 or self.learned.fetch(state):
                return
            exits = self._find_exits(state)
            self.publish_row(state)
            self._make_suffixes(state, exits)
            if leaves[record + at.LEAF_FLAGS] & at.LEAF_CLOSES and free == state and counts[at.FREE_ROW] == 0:
                counts[at.FREE_ROW] = leaves[record + at.LEAF_ROW] + 1
                if write_quoted_subtrees(self.address, state) < 0:
                    raise TableFull
            self.learned.learn(state)

    def build_suffixes(self, state: int) -> None:
        """Build the suffix trie of a leaf state that has a row."""
        with self.lock:
            leaves, record = self._leaves, state * at.LEAF_W
            if leaves[record + at.LEAF_SUFFIXES] != -1:
                return
            self._make_suffixes(state, self._find_exits(state))  # again, for the positions where the leaf is left
            self.learned.learn(state)

    def _find_exits(self, state: int) -> int:
        """Write the row of a leaf state, unless it has one, and the exits of its tokens. Return their number."""
        if self.numbers.is_number(state):
            found = self.numbers.make_row(state)
            if found == TABLE_IS_FULL:
                raise TableFull
            if found is not None:
                return found
            self._expand_inside_tokens(state)
        exits: int = make_row(self.address, state, SUFFIX_BUDGET)
        if exits < 0:
            raise TableFull
        return exits

    def _expand_inside_tokens(self, state: int) -> None:
        """Write the transitions of all states that tokens reach before their last byte from a state of a number."""
        temp = self.arrays[at.TRIE_TEMP]
        while count := find_unexpanded(self.address, state):
            if count < 0:
                raise TableFull
            for one in set(temp[at.MERGED_FIRST : at.MERGED_FIRST + count].tolist()):
                if self.numbers.expand(one) < 0:
                    raise TableFull

    def publish_row(self, state: int) -> None:
        """Store the row that `make_row` has just made for a leaf state, unless there is an equal one; the caller holds
        the lock.
        """
        row = self._counts[at.MADE_ROW]
        if row == self._counts[at.N_ROWS]:
            row = self._number_new_row()
        # Last, since other threads read the row as soon as this is set.
        publish_word(self._leaves_address, state * at.LEAF_W + at.LEAF_ROW, row)

    def store_row(self, row: NDArray[np.int32]) -> int:
        """Return the number of a row, storing it unless there is an equal one; -1 if the table is full. The caller
        holds the lock.
        """
        first, rows = self.words * self._counts[at.N_ROWS], self.arrays[at.ROWS]
        if first + self.words > rows.size:
            return -1
        rows[first : first + self.words] = row
        return self._number_new_row()

    def _number_new_row(self) -> int:
        """Return the number of the row that was written after the last one: that of an equal one, if there is one."""
        counts, rows, words = self._counts, self.arrays[at.ROWS], self.words
        row: int = counts[at.N_ROWS]
        if not self.row_numbers:  # rows from a file
            for known in range(row):
                self.row_numbers.setdefault(hash_row(self.address, known), []).append(known)
        same_hash = self.row_numbers.setdefault(hash_row(self.address, row), [])
        made = rows[row * words : (row + 1) * words].tobytes() if same_hash else b""
        for known in same_hash:
            if rows[known * words : (known + 1) * words].tobytes() == made:
                return known
        same_hash.append(row)
        counts[at.N_ROWS] = row + 1
        return row

    def _make_suffixes(self, state: int, exits: int) -> None:
        """Store the suffix trie of a leaf state whose exits were just found: that of equal exits, if there is one."""
        leaves, record, temp = self._leaves, state * at.LEAF_W, self.arrays[at.TRIE_TEMP]
        if exits > SUFFIX_BUDGET:  # each has at least one token
            publish_word(self._leaves_address, record + at.LEAF_SUFFIXES, OVER_BUDGET)
            return
        end = at.MERGED_FIRST + at.MERGED_W * exits
        closes = bytes([leaves[record + at.LEAF_FLAGS] & at.LEAF_CLOSES])
        name = blake2b(temp[at.MERGED_FIRST : end].data, digest_size=NAME_BYTES, salt=closes).digest()
        known = self.suffix_tries.get(name)
        if known is not None:
            leaves[record + at.LEAF_SUFFIXES_END] = known[1]
            publish_word(self._leaves_address, record + at.LEAF_SUFFIXES, known[0])
            return
        if make_suffix_trie(self.address, state, exits, SUFFIX_BUDGET) == -1:
            raise TableFull
        root, last = leaves[record + at.LEAF_SUFFIXES], leaves[record + at.LEAF_SUFFIXES_END]
        if root >= 0:
            self.add_trie(name, (root, last))

    def add_trie(self, name: bytes, place: tuple[int, int]) -> None:
        """Register a suffix trie under the digest of its exits. `place`: its root, and the node after its last one."""
        self.suffix_tries[name], self.trie_names[place[0]] = place, name

    def order(self, argument: int) -> None:
        """Sort short or long tokens of the row of a leaf state by length: see NEED_BY_LENGTH."""
        state, level = argument >> at.LEVEL_BITS, argument & ((1 << at.LEVEL_BITS) - 1)
        is_short = level < at.LONG_LEVEL
        least = 0 if is_short else at.LEAST_LISTED << level - at.LONG_LEVEL + 1
        most = (at.LEAST_LISTED << level) - 1 if is_short else at.ALL_LENGTHS
        with self.lock:
            field = at.LEAF_SHORT if is_short else at.LEAF_BY_LENGTH
            free = state
            if self._reads_any_text(state):  # many states of unanchored patterns do; most tables have this list
                free = self.starts.get((Dfa.any_text().key, at.JSON_STRING), state)
            leaves, listed = self.arrays[at.LEAVES], self.arrays[at.BY_LENGTH]
            known = int(leaves[free * at.LEAF_W + field])
            is_known = known >= 0 and listed[known + at.LISTED_FROM] <= least and listed[known + at.LISTED_TO] >= most
            if not is_known and order_by_length(self.address, free, least, most) < 0:
                raise TableFull
            if free != state:
                publish_word(self._leaves_address, state * at.LEAF_W + field, int(leaves[free * at.LEAF_W + field]))

    def _reads_any_text(self, state: int) -> bool:
        """Return whether any text may follow a leaf state of a JSON string, which is between two characters."""
        machine, decoder, dfa_state, flags = self.arrays[at.LEAVES][state * at.LEAF_W :][:4].tolist()
        if decoder or not flags & at.LEAF_CLOSES or flags >> at.LEAF_SAFE < at.HEIGHT:
            return False
        dfas = self.arrays[at.DFAS][self.arrays[at.MACHINES][at.MACHINE_W * machine + at.MACHINE_DFA] :]
        states, width, ranges = dfas[:3].tolist()
        accepting = 3 + 2 * ranges + ASCII
        following = dfas[accepting + 2 * states + dfa_state * width :][:width]
        return bool(dfas[accepting + dfa_state] and np.isin(following, (-1, dfa_state)).all())

    def _append_machine(self, block: NDArray[np.int32], mode: int) -> int:
        """Append the block of a Dfa to DFAS and return the number of the new machine."""
        counts = self.arrays[at.TABLE]
        machine, first = int(counts[at.N_MACHINES]), int(counts[at.N_DFAS])
        if first + len(block) > self.arrays[at.DFAS].size or machine >= LEAF_STATES:
            raise TableFull
        self.arrays[at.DFAS][first : first + len(block)] = block
        self.arrays[at.MACHINES][2 * machine : 2 * machine + 2] = mode, first
        counts[at.N_MACHINES], counts[at.N_DFAS] = machine + 1, first + len(block)
        return machine


NO_STATES = np.zeros(3, np.int32)
"""The block of a machine without a Dfa: no states, classes and ranges."""


def _dfa_block(dfa: Dfa) -> NDArray[np.int32]:
    """Return the arrays of a Dfa as one, in the layout of DFAS."""
    states, width = dfa.delta.shape
    block = np.empty(3 + 2 * len(dfa.bounds) + ASCII + states * (width + 4) + width, np.int32)
    return block[: write_dfa_block(dfa.record, dfa.distances(), block)]
