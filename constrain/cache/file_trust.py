"""The trust check: whether only this user (or root) can have written a file.

Some cached files become machine code, or arrays that kernels index without bounds checks. Checksums
detect accidents, not attacks, because whoever can write a file can also recompute its checksum. So a file is trusted
only if nobody but this user or root can have written it:

* the file is a regular file, owned by this user or root, and neither group nor others may write it;
* the same holds for the folder that contains it, and for each parent up to the root of the cache;
* a symbolic link to that folder belongs to this user or root.

The checks use open descriptors, and files are opened relative to the folder that was checked, so replacing a path
between check and use has no effect.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..base.reserved_memory import HUGE_PAGE, map_buffer

__all__ = ["is_trusted", "make_folder", "open_folder", "read_file"]

FOREIGN = stat.S_IWGRP | stat.S_IWOTH
FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


def is_ours(status: os.stat_result) -> bool:
    """Return whether the owner is this user or root and nobody else may write."""
    return status.st_uid in (0, os.geteuid()) and not status.st_mode & FOREIGN


@contextmanager
def open_folder(folder: Path, root: Path | None = None) -> Iterator[int | None]:
    """Open a folder and yield its descriptor, or None if the folder is missing or not trusted.

    The parents of `folder` up to `root` are checked, too.
    """
    handle = None
    try:
        handle = _open_trusted(folder, root)
    except OSError:  # missing, not a folder, or not readable
        handle = None
    try:
        yield handle
    finally:
        if handle is not None:
            os.close(handle)


def _open_trusted(folder: Path, root: Path | None) -> int | None:
    """Return a descriptor of a folder; None if it is not trusted. Raise OSError if it cannot be opened."""
    parents = [] if root is None else [one for one in folder.parents if one == root or root in one.parents]
    if not all(is_ours(os.stat(one)) for one in parents):
        return None
    link = os.lstat(folder)
    if stat.S_ISLNK(link.st_mode) and link.st_uid not in (0, os.geteuid()):
        return None
    handle = os.open(folder, os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY)
    if is_ours(os.fstat(handle)):
        return handle
    os.close(handle)
    return None


def is_trusted(folder: Path, root: Path | None = None) -> bool:
    """Return whether a folder exists and is trusted."""
    with open_folder(folder, root) as handle:
        return handle is not None


def make_folder(folder: Path) -> None:
    """Create a folder and its missing parents with mode 0700. Raise OSError if that fails."""
    missing = []
    while not folder.exists():
        missing.append(folder)
        folder = folder.parent
    for one in reversed(missing):
        try:
            one.mkdir(mode=0o700)
        except FileExistsError:  # created by another process; whether it is trusted is checked on use
            continue


def read_file(folder: int, name: str, most: int) -> memoryview | None:
    """Read a trusted file of at most `most` bytes from an open folder. Return None if that is not possible.

    The file is copied rather than mapped into memory: if another process truncated a mapped file, reading it would kill
    this process (SIGBUS).
    """
    try:
        handle = os.open(name, FLAGS, dir_fd=folder)
    except OSError:
        return None
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode) or not is_ours(status) or status.st_size > most:
            return None
        return _read_all(handle, status.st_size)
    except OSError:
        return None
    finally:
        os.close(handle)


def _read_all(handle: int, size: int) -> memoryview | None:
    """Read `size` bytes; many begin at a page of memory. Return None if the file has become shorter."""
    buffer = map_buffer(size) if size >= HUGE_PAGE else memoryview(bytearray(size))
    first = 0
    while first < size:
        count = os.readv(handle, [buffer[first:]])
        if not count:
            return None
        first += count
    return buffer.toreadonly()
