"""On-disk cache of Programs: the linked part of a source, so that a later process computes its first mask without
parsing.

A file is one int32 array: a header, then the links, leaves and code of a Program (`restored_program`). Its name is a
digest of the cache key and of the code that generates Programs. Files are written in the background (`WriteBehind`) and
replaced when more rules are linked; if a text needs rules that are not in the file, the source is compiled again.
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

    def fetch(self, path: str, make_grammar: Callable[[], Grammar], bind: Bind | None) -> RestoredProgram | None:
        """Return the Program in the file, or None. `make_grammar` is called if more than the file holds is needed."""
        data = cache.read_sealed(Path(path), cache.digest_code())
        linked = None if data is None else _unpack(data)
        if linked is None:
            return None
        program = RestoredProgram(linked, make_grammar, bind)
        program.on_link = self.writing.later(path, program)
        return program

    def store(self, path: str, program: Program) -> None:
        """Schedule a Program to be written, now and whenever more of it is linked."""
        enqueue = program.on_link = self.writing.later(path, program)
        enqueue()

    def flush(self) -> None:
        """Write all pending files now."""
        self.writing.flush()

    def _write(self, path: str, program: Program) -> None:
        """Write the linked part of a Program to its file."""
        if program.generation:  # the stored code could not be reproduced
            cache.remove_file(Path(path))
            return
        linked = extract_linked(program)
        if linked is None or not len(linked.links):
            return
        words = _pack(linked)
        if words.nbytes > self.most_bytes // 8:
            return  # one source should not evict all others
        cache.write_sealed(Path(path), cache.digest_code(), [words.data])
        self._written += 1
        if self._written % SWEEP == 1:
            cache.prune_folder(Path(path).parent, SUFFIX, self.most, self.most_bytes)


def _pack(linked: LinkedProgram) -> NDArray[np.int32]:
    """Return the content of a file as one array."""
    parts = (linked.links, linked.records.ravel(), linked.arrays, linked.code)
    head = [linked.entry, len(linked.code), len(linked.links), len(linked.records), len(linked.arrays), 0]
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
    leaf_records = HEAD + links
    leaf_arrays = leaf_records + RECORD * leaves
    first_code = leaf_arrays + arrays
    records = words[leaf_records:leaf_arrays].reshape(-1, RECORD)
    return LinkedProgram(entry, words[first_code:], words[HEAD:leaf_records], records, words[leaf_arrays:first_code])
