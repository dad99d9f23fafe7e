"""Files of the store: where they are, who may have written them, how they come to be whole, and how many are kept.

What is in a file becomes arrays that compiled code follows without looking, so a file counts only if nobody but this
user (or root) can have written it, and if its checksum is right. Anything else is as if it were not there. Writing
never fails: no home, no room, no right to write only mean that the next process makes its things again.
"""

from __future__ import annotations

import mmap
import os
import stat
import tempfile
import time
from collections.abc import Iterable
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

__all__ = ["VARIABLE", "checksum", "folder", "made_by", "prune", "read", "remove", "write"]

VARIABLE = "CONSTRAIN_STORE"
"""The environment variable that names another folder, or "off"."""
MAPPED = 64 << 10
"""Bytes from which a file is mapped: below, reading costs less than the pages of a map."""
PIECE = 512
"""Words of 8 bytes: a page."""
HOUSE = Path(__file__).parents[1]
DECIDING = ("automata", "compile.py", "forms", "frontends", "grammar", "kernels", "store", "style.py", "tokens")
"""Rooms whose code decides what is in a file."""
FOREIGN = stat.S_IWGRP | stat.S_IWOTH
BEGUN = ".begun-"
ABANDONED = 3600
"""Seconds after which a file that was begun and is not whole has no writer any more."""


def folder() -> Path | None:
    """Where files are kept, `~/.cache/constrain` if CONSTRAIN_STORE does not say otherwise; None: nowhere.

    May be removed at any time.
    """
    return _folder(os.environ.get(VARIABLE), os.environ.get("HOME"))


@lru_cache(4)
def _folder(asked: str | None, home: str | None) -> Path | None:
    if asked is not None:
        return None if asked in ("", "off") else Path(asked)
    try:
        return Path.home() / ".cache" / "constrain"
    except RuntimeError:
        return None


@lru_cache(1)
def made_by() -> bytes:
    """A digest of the code that decides what is in a file: names, sizes and times of its files."""
    code, todo = blake2b(digest_size=16), [str(HOUSE / room) for room in reversed(DECIDING)]
    while todo:
        path = todo.pop()
        if path.endswith(".py"):
            facts = os.stat(path)
            code.update(f"{path[len(str(HOUSE)) :]} {facts.st_size} {facts.st_mtime_ns}\n".encode())
        elif os.path.isdir(path):
            todo += sorted((entry.path for entry in os.scandir(path) if entry.name != "__pycache__"), reverse=True)
    return code.digest()


def read(path: str | Path) -> memoryview | None:
    """What is in a file, by a map if it is large; None if there is none that this user can trust."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        facts = os.fstat(handle)
        if not stat.S_ISREG(facts.st_mode) or facts.st_mode & FOREIGN or facts.st_uid not in (0, os.geteuid()):
            return None
        if facts.st_size < MAPPED:
            return memoryview(os.read(handle, facts.st_size))
        return memoryview(mmap.mmap(handle, 0, access=mmap.ACCESS_READ))
    except (OSError, ValueError):
        return None
    finally:
        os.close(handle)


def write(path: Path, parts: Iterable[bytes | memoryview]) -> None:
    """Writes a file beside others, under its name only when it is whole."""
    name = None
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=BEGUN)  # Of mode 0600.
        with os.fdopen(handle, "wb") as file:
            file.writelines(parts)
        os.replace(name, path)
    except OSError:
        if name is not None:
            remove(Path(name))


def prune(room: Path, pattern: str, most: int, most_bytes: int) -> None:
    """Leaves the latest files of a pattern: at most so many, and so many bytes together."""
    found = []
    for path in room.glob(pattern):
        try:
            facts = path.stat()
        except OSError:  # Another process was quicker.
            continue
        found.append((facts.st_mtime_ns, facts.st_size, path))
    count = total = 0
    for _, size, path in sorted(found, reverse=True):
        count, total = count + 1, total + size
        if count > most or total > most_bytes:
            remove(path)
    for path in room.glob(f"{BEGUN}*"):
        try:
            if time.time() - path.stat().st_mtime > ABANDONED:
                remove(path)
        except OSError:
            continue


def remove(path: Path) -> None:
    """Removes a file, if it is there and ours to remove."""
    try:
        path.unlink(missing_ok=True)
    except OSError:
        return  # The folder is read-only, or gone: then nobody reads the file either, or an administrator put it there.


def checksum(words: NDArray[np.int32]) -> int:
    """Of an int32 array at the speed of memory, ten times that of a CRC: sums of pages, each weighted by its place.

    Finds what happens to files by accident: a change of one word, pages that are lost, zeroed or exchanged.
    """
    wide = words[: len(words) // 2 * 2].view(np.uint64)
    whole = len(wide) // PIECE * PIECE
    pages = wide[:whole].reshape(-1, PIECE).sum(axis=1)
    rest = wide[whole:] * np.arange(3, 2 * (len(wide) - whole) + 3, 2, dtype=np.uint64)
    total = int((pages * np.arange(1, 2 * len(pages) + 1, 2, dtype=np.uint64)).sum()) + int(rest.sum())
    return (total + (int(words[-1]) if len(words) % 2 else 0) + (len(words) << 32)) % (1 << 64)
