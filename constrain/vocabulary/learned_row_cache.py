"""Disk cache of learned rows: those of patterns, formats and numbers, shared by all schemas and processes.

There is one file for each vocabulary (`learned_rows`), besides that of the leaves which nearly every schema has
(`mask_table_cache`). It is read when a row is first missing, and written in the background when rows have been made.
What other processes have written meanwhile is retained; the leaf states that were used last come first, and those at
the end are left out beyond MOST_BYTES. Files are sealed (`cache.sealed_files`).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from .. import cache
from ..kernels import layout as at
from .learned_rows import NOT_MADE, LearnedRow, LearnedRows, expand_row, pack_rows, shorten_row, unpack_rows
from .suffix_tries import append_trie, copy_trie

if TYPE_CHECKING:
    from .shared_table import SharedTable

__all__ = ["MOST_BYTES", "MOST_FILES", "SUFFIX", "LearnedRowCache"]

SUFFIX = ".rows"
MOST_FILES = 8
MOST_BYTES = 8 << 20
"""Most bytes of a file, and of its copy in the memory of each process that uses it. What 600 schemas of MaskBench need
in a vocabulary of 128,000 tokens takes 5 MB."""
PAUSE = 5.0
"""Seconds from the first new row until the file is written."""
NOTHING = LearnedRows({}, {})


class LearnedRowCache:
    """The learned rows of one MaskTable.

    `is_used` says whether rows are looked up and written. Callers of `fetch` and `learn` hold the lock of the table.
    """

    def __init__(self, table: SharedTable) -> None:
        self.table = table
        self.is_used = False
        self._read: LearnedRows | None = None  # what is on disk, once it has been read
        self._used: dict[int, bytes | None] = {}
        """Leaf states of this table, the most recently used ones last, and their names as far as these were needed."""
        self._numbers: dict[int, int] = {}  # rows of this table by the id of a row in `_read`
        self._shortened: dict[int, NDArray[np.int32]] = {}  # rows of this table by number
        self._folder: Path | None = None  # of the function that schedules a write
        self._write_later: Callable[[], None]

    def fetch(self, state: int) -> bool:
        """Give a leaf state the row that is on disk, and its suffix trie. Return whether it is there."""
        if not self.is_used:
            return False
        if self._read is None:
            self._read = self._load(cache.cache_folder_path())
        name = self.table.name_state(state) if self._read.states else None
        if name is None or name not in self._read.states or not self._place(state, self._read.states[name]):
            return False
        self._use(state, name)
        return True

    def learn(self, state: int) -> None:
        """Schedule what was made of a leaf state to be written."""
        folder = cache.cache_folder_path() if self.is_used else None
        if folder is not None:
            self._use(state, None)
            if folder is not self._folder:
                self._folder, self._write_later = folder, WRITING.later(f"{folder}/{self.table.fingerprint}", self)
            self._write_later()

    def write(self, folder: Path) -> None:
        """Write the leaf states that this table has used, and those that are on disk."""
        ours = self._collect()
        on_disk = self._load(folder)
        states = {**ours.states, **{name: row for name, row in on_disk.states.items() if name not in ours.states}}
        packed = pack_rows(LearnedRows(states, {**on_disk.tries, **ours.tries}), MOST_BYTES)
        cache.write_sealed(self._path(folder), cache.digest_code(), [part.data for part in packed])
        cache.prune_folder(folder, SUFFIX, MOST_FILES, MOST_FILES * MOST_BYTES)

    def _use(self, state: int, name: bytes | None) -> None:
        """Make a leaf state the most recently used one."""
        self._used[state] = self._used.pop(state, None) or name

    def _place(self, state: int, learned: LearnedRow) -> bool:
        """Give a leaf state its row and suffix trie. Return whether there was enough space."""
        table = self.table
        number = self._numbers.get(id(learned.row))
        if number is None:
            number = table.store_row(expand_row(learned.row, table.words))
            if number < 0:
                return False
            self._numbers[id(learned.row)] = number
        place = table.suffix_tries.get(learned.trie) if isinstance(learned.trie, bytes) else None
        if isinstance(learned.trie, bytes) and place is None:
            assert self._read is not None
            place = append_trie(table.arrays, self._read.tries[learned.trie])
            if place is None:
                return False
            table.add_trie(learned.trie, place)
        record = state * at.LEAF_W
        leaves = table.arrays[at.LEAVES]
        leaves[record + at.LEAF_LONGEST] = learned.longest
        # Last of each, since other threads read the row or trie as soon as it is set.
        if place is not None:
            leaves[record + at.LEAF_SUFFIXES_END] = place[1]
            leaves[record + at.LEAF_SUFFIXES] = place[0]
        elif isinstance(learned.trie, int):
            leaves[record + at.LEAF_SUFFIXES] = learned.trie
        leaves[record + at.LEAF_ROW] = number
        return True

    def _collect(self) -> LearnedRows:
        """Copy what the table knows about the leaf states that it has used, the most recently used ones first.

        Rows and tries do not change once a leaf state has them, so the table is not locked while they are copied.
        """
        table, leaves, states, tries = self.table, self.table.arrays[at.LEAVES], dict[bytes, LearnedRow](), {}
        with table.lock:
            used = dict(reversed(self._used.items()))
        for state, known in used.items():
            name = used[state] = known or table.name_state(state)
            if name is None or name in states:  # of a machine from a file, or two states that are named alike
                continue
            record = leaves[state * at.LEAF_W : (state + 1) * at.LEAF_W].tolist()
            root = record[at.LEAF_SUFFIXES]
            trie = table.trie_names.get(root, NOT_MADE) if root >= 0 else root
            if isinstance(trie, bytes) and trie not in tries:
                tries[trie] = copy_trie(table.arrays, root, record[at.LEAF_SUFFIXES_END])
            row = self._shortened.get(record[at.LEAF_ROW])
            if row is None:
                first = table.words * record[at.LEAF_ROW]
                row = shorten_row(table.arrays[at.ROWS][first : first + table.words])
                self._shortened[record[at.LEAF_ROW]] = row
            states[name] = LearnedRow(row, record[at.LEAF_LONGEST], trie)
        with table.lock:
            self._used.update((state, name) for state, name in used.items() if state in self._used)
        return LearnedRows(states, tries)

    def _load(self, folder: Path | None) -> LearnedRows:
        """Return what is on disk."""
        data = None if folder is None else cache.read_sealed(self._path(folder), cache.digest_code())
        return NOTHING if data is None else unpack_rows(data) or NOTHING

    def _path(self, folder: Path) -> Path:
        """Return the path of the file, which need not exist."""
        return folder / f"{self.table.fingerprint[:32]}-{cache.digest_code().hex()[:8]}{SUFFIX}"


def _write(path: str, learned: LearnedRowCache) -> None:
    """Write the learned rows of a table; `path` is the folder and the vocabulary."""
    if not learned.table.is_broken:
        learned.write(Path(path).parent)


WRITING: cache.WriteBehind[LearnedRowCache] = cache.WriteBehind(_write, lambda learned: len(learned._used), PAUSE)
