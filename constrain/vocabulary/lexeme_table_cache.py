"""Disk cache of lexeme tries: what a scanner makes of all tokens, so that another process need not scan them again.

There is one file for each tree of readers (`lexeme_trees`), named by a digest of the vocabulary, the scanner and the
state from which its root reads. A file is read when a mask first needs the root. It is written in the background, and
again when the tree has grown: a tree grows by the remainders that parsers meet. Files are sealed (`cache.sealed_files`)
and the least recently used ones are removed beyond MOST_FILES and MOST_BYTES.
"""

from __future__ import annotations

from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from .. import cache
from ..kernels import layout as at
from .lexeme_trees import PARTS, LexemeTree, extract_tree, find_root, insert_tree, list_roots, list_tree

if TYPE_CHECKING:
    from ..lalr.parser_code import Parser
    from .shared_table import SharedTable

__all__ = ["MOST_BYTES", "MOST_FILES", "SUFFIX", "LexemeTableCache"]

SUFFIX = ".lexemes"
MOST_FILES = 2048
MOST_BYTES = 64 << 20
"""Most bytes of all files. The texts of one language need 10 to 20 MB in a vocabulary of 128,000 tokens."""
LEAST_TOKENS = 2_048
"""The tokens of smaller vocabularies are scanned faster than a file is read."""
GROWTH = 8
"""A tree is written again when 1 / GROWTH more readers have been built than the file has."""
HEAD = len(PARTS)
"""Header words: the number of records of each part."""


class LexemeTableCache:
    """The lexeme tries of one MaskTable on disk. `numbers` are the numbers of scanners by `Parser.key`."""

    def __init__(self, table: SharedTable) -> None:
        self.table = table
        self.is_used = table.tokens >= LEAST_TOKENS
        self.numbers: dict[bytes, int] = {}
        self._stored: dict[tuple[int, int], int] = {}  # readers in the file of a scanner and state, as far as is known

    def scanner(self, parser: Parser) -> int:
        """Return the number of a parser's scanner, under which results for tokens are stored."""
        with self.table.lock:
            return self.numbers.setdefault(parser.key, len(self.numbers))

    def fetch(self, parser: Parser, state: int) -> bool:
        """Have a root reader in the table if it is on disk. Return whether it is in the table now.

        The caller holds the lock of the table. `state` is as in `lexemes.find_root_reader`.
        """
        scanner, folder = self.numbers[parser.key], self._folder()
        if find_root(self.table.arrays, scanner, state) >= 0:
            return True
        if folder is None or (scanner, state) in self._stored:
            return False
        path = self._path(folder, parser.key, state)
        data = cache.read_sealed(path, cache.digest_code())
        tree = None if data is None else _unpack(data)
        self._stored[scanner, state] = 0 if tree is None else len(tree.readers)
        if tree is None or insert_tree(self.table.arrays, tree, scanner) < 0:
            return False
        cache.touch_file(path)
        return True

    def later(self, parser: Parser) -> None:
        """Schedule what has been built of a parser's scanner to be written."""
        folder = self._folder()
        if folder is not None:
            WRITING.later(f"{folder}/{self.table.fingerprint[:16]}-{parser.key.hex()}", self)()

    def write(self, folder: Path, key: bytes) -> None:
        """Write the trees of a scanner that have grown since they were read or written."""
        scanner, arrays, written = self.numbers[key], self.table.arrays, False
        for state, root in list_roots(arrays, scanner):
            stored = self._stored.get((scanner, state), 0)
            with self.table.lock:
                chosen = list_tree(arrays, root)
                tree = extract_tree(arrays, chosen) if len(chosen) > stored + stored // GROWTH else None
            if tree is not None:
                counts = np.array([len(part) for part in tree], np.int32)
                parts = [part.data for part in (counts, *tree)]
                cache.write_sealed(self._path(folder, key, state), cache.digest_code(), parts)
                self._stored[scanner, state], written = len(chosen), True
        if written:
            cache.prune_folder(folder, SUFFIX, MOST_FILES, MOST_BYTES)

    def _folder(self) -> Path | None:
        """Return the folder of the files; None if caching is off or does not pay off."""
        return cache.cache_folder_path() if self.is_used else None

    def _path(self, folder: Path, key: bytes, state: int) -> Path:
        """Return the path of the file of a root reader, which need not exist."""
        name = blake2b(
            f"{self.table.fingerprint} {key.hex()} {state}".encode(), digest_size=16, key=cache.digest_code()
        )
        return folder / f"{name.hexdigest()}{SUFFIX}"


def _write(path: str, lexemes: LexemeTableCache) -> None:
    """Write what is pending of a table; `path` is the folder, the vocabulary and the key of the scanner."""
    if not lexemes.table.is_broken:
        lexemes.write(Path(path).parent, bytes.fromhex(Path(path).name.rpartition("-")[2]))


WRITING: cache.WriteBehind[LexemeTableCache] = cache.WriteBehind(
    _write, lambda lexemes: int(lexemes.table.arrays[at.TABLE][at.N_LEX_READERS])
)


def _unpack(data: memoryview) -> LexemeTree | None:
    """Decode a file as read-only views; None if the lengths are inconsistent."""
    words = np.frombuffer(data[: len(data) - len(data) % 4], np.int32)
    counts = words[:HEAD].tolist()
    widths = [width for _, _, width in PARTS]
    if len(counts) < HEAD or min(counts) < 0 or not counts[0]:
        return None
    ends = np.cumsum([HEAD, *(count * width for count, width in zip(counts, widths))]).tolist()
    if 4 * ends[-1] != len(data):
        return None
    readers, classes, exits, tokens = (words[first:last] for first, last in zip(ends, ends[1:]))
    return LexemeTree(
        readers.reshape(-1, at.READER_W), classes.reshape(-1, at.CLASS_W), exits.reshape(-1, at.EXIT_W), tokens
    )
