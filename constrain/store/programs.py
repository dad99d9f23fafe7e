"""Programs on disk: what of a source was linked, so that a later process has its first mask without a front end.

A file is one int32 array: a head, then the links, leaves and code of a Program (`automata.restored`). It is named by a
digest of what was asked for, spelled out (`asked`), and of the code that makes Programs from it. Files are written
behind the user's back (`writing`) and again when more was linked; a text that leaves what is kept has the source read
once more. What depends on other files, as Lark's imports, is not kept here.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from ..automata.program import Bind, Program
from ..automata.restored import RECORD, Linked, Restored, linked
from ..grammar.nodes import Grammar
from . import files
from .writing import Writing

__all__ = ["Programs"]

MAGIC = 0x50434E53
SUFFIX = ".program"
DIGEST = 16
"""Bytes that name a file."""
HEAD = 14
"""Words: magic, length of all, checksum, 0, digest (4), entry, words of code, links, leaves, words of leaves, 0."""
CHECKED = 4
"""From there on."""
SWEEP = 32
"""Files written between two looks at how many there are."""


class Programs:
    """The Programs of one store. most, most_bytes: files kept, the latest first; most = 0 switches it off."""

    def __init__(self, most: int = 1024, most_bytes: int = 64 << 20) -> None:
        self.most, self.most_bytes = most, most_bytes
        self.writing = Writing(self._write)
        self._written = 0

    def name(self, asked: bytes) -> str | None:
        """The file of what was asked for, there or not; None: nothing is kept."""
        room = files.folder() if self.most else None
        if room is None:
            return None
        return f"{room}/{blake2b(asked, digest_size=DIGEST, key=files.made_by()).hexdigest()}{SUFFIX}"

    def fetch(self, path: str, remake: Callable[[], Grammar], bind: Bind | None) -> Restored | None:
        """The Program of that file. remake: the Grammar of the same source, called if more of it is wanted."""
        data = files.read(path)
        kept = None if data is None else _unpack(data, path)
        if kept is None:
            return None
        program = Restored(kept, remake, bind)
        program.on_link = self.writing.later(path, program)
        return program

    def keep(self, path: str, program: Program) -> None:
        """Has a Program written soon, and again when more of it was linked."""
        later = program.on_link = self.writing.later(path, program)
        later()

    def flush(self) -> None:
        """Writes now what waits to be written."""
        self.writing.flush()

    def _write(self, path: str, program: Program) -> None:
        if program.generation:  # What is kept does not come out again.
            files.remove(Path(path))
            return
        kept = linked(program)
        if kept is None or not len(kept.links):
            return
        words = _pack(kept, path)
        if words.nbytes > self.most_bytes // 8:
            return  # One source should not drive out all others.
        files.write(Path(path), [words.data])
        self._written += 1
        if self._written % SWEEP == 1:
            files.prune(Path(path).parent, f"*{SUFFIX}", self.most, self.most_bytes)


def _digest(path: str) -> bytes:
    """What a file is named by."""
    return bytes.fromhex(path[-2 * DIGEST - len(SUFFIX) : -len(SUFFIX)])


def _pack(kept: Linked, path: str) -> NDArray[np.int32]:
    parts = (kept.links, kept.records.ravel(), kept.arrays, kept.code)
    words: NDArray[np.int32] = np.concatenate([np.zeros(HEAD, np.int32), *parts])
    words[:2] = MAGIC, len(words)
    words[4:8] = np.frombuffer(_digest(path), np.int32)
    words[8:13] = kept.entry, len(kept.code), len(kept.links), len(kept.records), len(kept.arrays)
    words.view(np.uint32)[2] = crc32(words[CHECKED:].data)
    return words


def _unpack(data: memoryview, path: str) -> Linked | None:
    """What `_pack` wrote, its arrays read-only and in place; None if it is anything else."""
    if len(data) % 4 or len(data) < 4 * HEAD:
        return None
    words = np.frombuffer(data, np.int32)
    magic, length, *_ = head = words[:HEAD].tolist()
    if magic != MAGIC or length != len(words) or data[16:32] != _digest(path):
        return None
    if data[8:12] != crc32(words[CHECKED:].data).to_bytes(4, "little"):
        return None
    entry, code, links, leaves, arrays = head[8:13]
    if min(entry, links, leaves, arrays) < 0 or entry >= code:
        return None
    if HEAD + links + RECORD * leaves + arrays + code != length:
        return None
    a = HEAD + links
    b = a + RECORD * leaves
    c = b + arrays
    records = words[a:b].reshape(-1, RECORD)
    return Linked(entry, words[c:], words[HEAD:a], records, words[b:c])
