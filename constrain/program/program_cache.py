"""On-disk cache of Programs: the linked part of a source, so that a later process computes its first mask without
parsing.

A file is one int32 array: a header, then the links, leaves and code of a Program (`restored_program`). Its name is a
digest of the cache key and of the code that generates Programs. Files are written in the background (`WriteBehind`),
and again when more rules are linked; if a text needs rules that are not in the file, the source is compiled again.
Sources that depend on other files, such as Lark imports, are not cached here.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from .. import cache
from ..grammar.nodes import Grammar
from .byte_code import Bind
from .program import Program
from .restored_program import RECORD, LinkedProgram, RestoredProgram, extract_linked

__all__ = ["ProgramCache"]

SUFFIX = ".program"
DIGEST = 16
"""Bytes of the digest that names a file."""
HEAD = 6
"""Header words: entry, words of code, links, leaves, words of leaves, 0."""
SWEEP = 32
"""Number of files written between two evictions."""


class ProgramCache:
    """A disk cache of at most `most` files and `most_bytes` bytes, evicting the oldest; `most` = 0 disables it."""

    def __init__(self, most: int = 1024, most_bytes: int = 64 << 20) -> None:
        self.most, self.most_bytes = most, most_bytes
        self.writing = cache.WriteBehind(self._write, lambda program: len(program.links))
        self._written = 0

    def name(self, key: bytes) -> str | None:
        """Return the path of the file for a cache key, which need not exist; None if caching is disabled."""
        folder = cache.cache_folder_path() if self.most else None
        if folder is None:
            return None
        return f"{folder}/{blake2b(key, digest_size=DIGEST, key=cache.digest_code()).hexdigest()}{SUFFIX}"

    def fetch(self, path: str, remake: Callable[[], Grammar], bind: Bind | None) -> RestoredProgram | None:
        """Return the Program in the file, or None. `remake` returns the Grammar of the source if more of it is
        needed.
        """
        data = cache.read_sealed(Path(path), cache.digest_code())
        kept = None if data is None else _unpack(data)
        if kept is None:
            return None
        program = RestoredProgram(kept, remake, bind)
        program.on_link = self.writing.later(path, program)
        return program

    def keep(self, path: str, program: Program) -> None:
        """Schedule a Program to be written, now and whenever more of it is linked."""
        later = program.on_link = self.writing.later(path, program)
        later()

    def flush(self) -> None:
        """Write all pending files now."""
        self.writing.flush()

    def _write(self, path: str, program: Program) -> None:
        if program.generation:  # The stored code cannot be reproduced.
            cache.remove_file(Path(path))
            return
        kept = extract_linked(program)
        if kept is None or not len(kept.links):
            return
        words = _pack(kept)
        if words.nbytes > self.most_bytes // 8:
            return  # One source should not evict all others.
        cache.write_sealed(Path(path), cache.digest_code(), [words.data])
        self._written += 1
        if self._written % SWEEP == 1:
            cache.prune_folder(Path(path).parent, SUFFIX, self.most, self.most_bytes)


def _pack(kept: LinkedProgram) -> NDArray[np.int32]:
    parts = (kept.links, kept.records.ravel(), kept.arrays, kept.code)
    head = [kept.entry, len(kept.code), len(kept.links), len(kept.records), len(kept.arrays), 0]
    return np.concatenate([np.array(head, np.int32), *parts])


def _unpack(data: memoryview) -> LinkedProgram | None:
    """Decode the output of `_pack` as read-only views; None if the lengths are inconsistent."""
    if len(data) % 4 or len(data) < 4 * HEAD:
        return None
    words = np.frombuffer(data, np.int32)
    entry, code, links, leaves, arrays, _ = words[:HEAD].tolist()
    if min(entry, links, leaves, arrays) < 0 or entry >= code:
        return None
    if HEAD + links + RECORD * leaves + arrays + code != len(words):
        return None
    a = HEAD + links
    b = a + RECORD * leaves
    c = b + arrays
    records = words[a:b].reshape(-1, RECORD)
    return LinkedProgram(entry, words[c:], words[HEAD:a], records, words[b:c])
