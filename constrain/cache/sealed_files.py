"""Sealed files: content with a digest, read only if trusted and intact, written atomically, pruned by age.

    write_sealed(path, key, parts)      write b"cnstrn2\\n", a digest and the content, under a temporary name first
    read_sealed(path, key)              return the content; None unless the file is trusted (`file_trust`) and intact

The digest is SHA-256 over the key, the name of the file and the content. The key identifies the code that wrote the
file (`cache_folder.digest_code`), so files of other code, renamed files and damaged ones count as missing and are
written again. Neither function raises: without disk space, permission or a home folder, the next process computes the
content again.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from hashlib import sha256
from pathlib import Path

from .file_trust import make_folder, open_folder, read_file

__all__ = ["ABANDONED", "TEMPORARY", "prune_folder", "read_sealed", "remove_file", "replace_file", "touch_file",
           "write_sealed"]  # fmt: skip

MAGIC = b"cnstrn2\n"
HEAD = len(MAGIC) + 32
"""Bytes before the content, a multiple of 8, so that arrays in the content are aligned."""
MOST_BYTES = 1 << 30
"""Most bytes of a cached file; larger ones are not read."""
PIECE = 2 << 20
"""Bytes of a piece: the pieces of a large file are hashed by several threads."""
MOST_THREADS = 4
TEMPORARY = ".tmp-"
ABANDONED = 3600
"""Seconds after which the writer of a temporary file is taken to have ended."""

Parts = Sequence["bytes | memoryview"]


def seal_file(key: bytes, name: str, parts: Parts) -> bytes:
    """Return the head of a sealed file."""
    total = sha256(b"%d %d " % (len(key), len(name)) + key + name.encode())
    for part in parts:
        total.update(_hash(memoryview(part).cast("B")))
    return MAGIC + total.digest()


def _hash(data: memoryview) -> bytes:
    """Return the concatenated digests of the pieces of `data`, computed by several threads."""
    pieces = [data[first : first + PIECE] for first in range(0, len(data), PIECE)]
    if len(pieces) <= 1:
        return sha256(data).digest()
    digests = [b""] * len(pieces)
    share = min(len(pieces), os.cpu_count() or 1, MOST_THREADS)

    def hash_share(first: int) -> None:
        for k in range(first, len(pieces), share):
            digests[k] = sha256(pieces[k]).digest()

    helpers, own = list[threading.Thread](), [0]
    for first in range(1, share):
        helper = threading.Thread(target=hash_share, args=(first,))
        try:
            helper.start()
        except RuntimeError:  # the system refuses the thread, or the process is ending
            own.append(first)
        else:
            helpers.append(helper)
    for first in own:
        hash_share(first)
    for one in helpers:
        one.join()
    return b"".join(digests)


def read_sealed(path: Path, key: bytes, root: Path | None = None) -> memoryview | None:
    """Return the content of a sealed file, or None if it is missing, not trusted, damaged or written by other code.

    Parents of the file up to `root` must be trusted, too.
    """
    with open_folder(path.parent, root) as folder:
        data = None if folder is None else read_file(folder, path.name, MOST_BYTES)
    if data is None or len(data) < HEAD:
        return None
    content = data[HEAD:]
    return content if data[:HEAD] == seal_file(key, path.name, [content]) else None


def write_sealed(
    path: Path, key: bytes, parts: Iterable[bytes | memoryview], mode: int = 0o600, root: Path | None = None
) -> bool:
    """Write a sealed file, creating its folder if needed. Return whether that succeeded.

    `mode` are the permissions of the file, regardless of the umask. `root` is as for `read_sealed`.
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
    """Log, once per folder, that it is not used."""
    reason = "it must belong to you and `chmod go-w`" if os.path.isdir(folder) else "it is not a folder"
    logging.getLogger("constrain").warning("%s is not used as a cache: %s", folder, reason)


def replace_file(
    folder: int, name: str, parts: Parts, mode: int = 0o600, sync: Callable[[int], object] | None = None
) -> None:
    """Write a file under a temporary name in an open folder, then rename it. On an error the temporary file is removed.

    `sync` is called with the descriptor before the rename: `os.fsync` for a file that must survive a power failure.
    """
    temporary = f"{TEMPORARY}{os.getpid()}-{os.urandom(8).hex()}"
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


def touch_file(path: Path) -> None:
    """Make a file count as written now, so that `prune_folder` removes files that are used after others."""
    with open_folder(path.parent) as folder:
        if folder is not None:
            try:
                os.utime(path.name, dir_fd=folder, follow_symlinks=False)
            except OSError:
                return  # another process removed it, or the folder is read-only


def remove_file(path: Path) -> None:
    """Remove a file if it exists and may be removed."""
    with open_folder(path.parent) as folder:
        if folder is not None:
            _unlink(folder, path.name)


def _unlink(folder: int, name: str) -> None:
    """Remove a file of an open folder. Ignore errors."""
    try:
        os.unlink(name, dir_fd=folder)
    except OSError:
        return  # another process removed it, or the folder is read-only


def prune_folder(folder: Path, suffix: str, most: int, most_bytes: int) -> None:
    """Remove old files that end in `suffix`, and abandoned temporary files.

    The latest files remain, at most `most` files and `most_bytes` bytes. A modification time in the future (from a
    wrong clock) counts as the oldest, so that such files are removed first rather than last.
    """
    with open_folder(folder) as handle:
        if handle is None:
            return
        now = time.time()
        files, total = list[tuple[float, int, str]](), 0
        for name in _list_names(handle):
            try:
                status = os.stat(name, dir_fd=handle, follow_symlinks=False)
            except OSError:  # removed by another process
                continue
            age = now - status.st_mtime
            if name.startswith(TEMPORARY):
                if not -ABANDONED < age < ABANDONED:
                    _unlink(handle, name)
            elif name.endswith(suffix):
                files.append((age if age > -ABANDONED else float("inf"), status.st_size, name))
        for count, (_, size, name) in enumerate(sorted(files), 1):
            total += size
            if count > most or total > most_bytes:
                _unlink(handle, name)


def _list_names(folder: int) -> list[str]:
    """Return the names in an open folder; none if it cannot be read."""
    try:
        return os.listdir(folder)
    except OSError:
        return []
