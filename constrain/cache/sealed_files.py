"""Sealed files: content with a digest, read only if trusted and intact, written atomically, pruned by age.

    write_sealed(path, key, parts)      b"cnstrn2\\n", digest, content; under its name only when it is whole
    read_sealed(path, key)              the content; None unless the file is trusted (`trust`) and the digest is right

The digest is SHA-256 over the key, the file's name and the content; the key says what made the file (`made_by`), so
that a file of other code, a file under another name, and a damaged one are all simply not there, and made again.
Neither function raises: no room, no right to write or no home only mean that the next process has to compute again.
"""

from __future__ import annotations

import logging
import os
import secrets
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from hashlib import sha256
from pathlib import Path

from .file_trust import make_folder, open_folder, read_file

__all__ = ["ABANDONED", "TEMPORARY", "prune_folder", "read_sealed", "remove_file", "replace_file", "write_sealed"]

MAGIC = b"cnstrn2\n"
HEAD = len(MAGIC) + 32
"""Bytes before the content, a multiple of 8: arrays in the content may be used in place."""
MOST_BYTES = 1 << 30
"""No cached file is larger."""
PIECE = 2 << 20
"""Bytes that are hashed at once: pieces of a large file are shared out among threads."""
MOST_THREADS = 4
TEMPORARY = ".tmp-"
ABANDONED = 3600
"""Seconds after which a temporary file has no writer any more."""

Parts = Sequence["bytes | memoryview"]


def seal_file(key: bytes, name: str, parts: Parts) -> bytes:
    """Return the head of a sealed file."""
    total = sha256(b"%d %d " % (len(key), len(name)) + key + name.encode())
    for part in parts:
        total.update(_hash(memoryview(part).cast("B")))
    return MAGIC + total.digest()


def _hash(data: memoryview) -> bytes:
    """Return the digests of the pieces of some bytes, computed on several cores if there are many."""
    pieces = [data[first : first + PIECE] for first in range(0, len(data), PIECE)]
    if len(pieces) <= 1:
        return sha256(data).digest()
    found = [b""] * len(pieces)
    share = min(len(pieces), os.cpu_count() or 1, MOST_THREADS)

    def work(first: int) -> None:
        for k in range(first, len(pieces), share):
            found[k] = sha256(pieces[k]).digest()

    helpers = [threading.Thread(target=work, args=(first,)) for first in range(1, share)]
    for one in helpers:
        one.start()
    work(0)
    for one in helpers:
        one.join()
    return b"".join(found)


def read_sealed(path: Path, key: bytes, root: Path | None = None) -> memoryview | None:
    """Return the content of a sealed file, or None if it is missing, not trusted, damaged or made by something else.

    root: parents of the file up to this folder must be trusted, too.
    """
    with open_folder(path.parent, root) as folder:
        data = None if folder is None else read_file(folder, path.name, MOST_BYTES)
    if data is None or len(data) < HEAD:
        return None
    content = memoryview(data)[HEAD:]
    return content if data[:HEAD] == seal_file(key, path.name, [content]) else None


def write_sealed(
    path: Path, key: bytes, parts: Iterable[bytes | memoryview], mode: int = 0o600, root: Path | None = None
) -> bool:
    """Write a sealed file, creating its folder if needed. Return whether that succeeded.

    mode: the permissions of the file, whatever the umask. root: as of `read_sealed`.
    """
    content = b"".join(parts)
    try:
        make_folder(path.parent)
        with open_folder(path.parent, root) as folder:
            if folder is None:
                _warn(path.parent)
                return False
            replace_file(folder, path.name, [seal_file(key, path.name, [content]), content], mode)
    except OSError:
        return False
    return True


@lru_cache(16)
def _warn(folder: Path) -> None:
    """Say once that a folder is not used."""
    logging.getLogger("constrain").warning("%s is not used as a cache: it must belong to you and `chmod go-w`", folder)


def replace_file(
    folder: int, name: str, parts: Parts, mode: int = 0o600, sync: Callable[[int], object] | None = None
) -> None:
    """Write a file under a temporary name in an open folder, then rename it. On any error nothing is left behind.

    sync: called with the descriptor before the rename, `os.fsync` for what must survive a power failure.
    """
    temporary = f"{TEMPORARY}{os.getpid()}-{secrets.token_hex(8)}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    handle = os.open(temporary, flags, mode, dir_fd=folder)
    try:
        with os.fdopen(handle, "wb") as file:
            os.fchmod(handle, mode)
            file.writelines(parts)
            file.flush()
            if sync is not None:
                sync(handle)
        os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        _unlink(folder, temporary)
        raise


def remove_file(path: Path) -> None:
    """Remove a file if it exists and may be removed."""
    with open_folder(path.parent) as folder:
        if folder is not None:
            _unlink(folder, path.name)


def _unlink(folder: int, name: str) -> None:
    try:
        os.unlink(name, dir_fd=folder)
    except OSError:
        return  # Another process was quicker, or an administrator made the folder read-only.


def prune_folder(folder: Path, suffix: str, most: int, most_bytes: int) -> None:
    """Remove all but the latest files that end in `suffix`, and temporary files that their writers abandoned.

    most, most_bytes: files and bytes that stay. A time of modification in the future (a clock that was wrong) counts
    as the oldest, so that such files are the first to go instead of the last.
    """
    with open_folder(folder) as handle:
        if handle is None:
            return
        now = time.time()
        found, total = list[tuple[float, int, str]](), 0
        for name in _names(handle):
            try:
                status = os.stat(name, dir_fd=handle, follow_symlinks=False)
            except OSError:  # Another process was quicker.
                continue
            age = now - status.st_mtime
            if name.startswith(TEMPORARY):
                if not -ABANDONED < age < ABANDONED:
                    _unlink(handle, name)
            elif name.endswith(suffix):
                found.append((age if age > -ABANDONED else float("inf"), status.st_size, name))
        for count, (_, size, name) in enumerate(sorted(found), 1):
            total += size
            if count > most or total > most_bytes:
                _unlink(handle, name)


def _names(folder: int) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []
