"""Libraries of kernels that were compiled on this machine, kept for later processes.

What is compiled from the same sources is in one folder, `kernels-<source hash>`, next to the kernels (in `__pycache__`)
where this user may write there, else in this user's cache folder. The latest folders are retained. Files are machine
code, so they are used only if nobody but this user or root can have written them and their folder (`cache.file_trust`).
They are named by their content, `<platform>-<digest>`, which detects damaged ones:

    ....so        a shared library
    ....objects   objects, each after its length in eight bytes, where no linker was found
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path

from ...cache.cache_folder import PACKAGE, cache_folder_path, default_cache_folder
from ...cache.file_trust import is_trusted, make_folder, open_folder, read_file
from ...cache.sealed_files import replace_file

__all__ = ["find_folder", "keep_file", "list_libraries", "pack_objects", "read_objects"]

KERNELS = Path(__file__).parent.parent
BESIDE = KERNELS / "__pycache__"
FOLDER = "kernels-"
"""Start of the names of folders; a source hash follows."""
OBJECTS = ".objects"
MOST_FOLDERS = 4
"""Folders that are retained: the latest, for other versions of the sources."""
MOST_BYTES = 1 << 24
"""Most bytes of a file."""
MODE, FOLDER_MODE = 0o644, 0o755
"""Other users may load what root compiled next to the installed package."""


def find_folder(source_hash: str) -> tuple[Path, Path] | None:
    """Return the folder for a source hash, and the parent up to which it must be trusted; None if there is none."""
    name = FOLDER + source_hash
    beside = BESIDE if BESIDE.exists() else KERNELS
    if is_trusted(beside, PACKAGE) and (os.access(beside, os.W_OK) or (BESIDE / name).exists()):
        return BESIDE / name, PACKAGE
    home = cache_folder_path() or default_cache_folder()
    if home is None or (home.exists() and not is_trusted(home)):
        return None
    return home / name, home


def digest_content(content: bytes | memoryview) -> str:
    """Return the part of a file's name that depends on its content."""
    return blake2b(content, digest_size=16).hexdigest()


def read_files(source_hash: str, platform: str, suffix: str) -> Iterator[tuple[Path, memoryview]]:
    """Yield the files for a platform that are trusted and intact: path and content."""
    where = find_folder(source_hash)
    if where is None:
        return
    for path in sorted(where[0].glob(f"{platform}-*{suffix}")):
        with open_folder(*where) as folder:
            content = None if folder is None else read_file(folder, path.name, MOST_BYTES)
        if content is not None and path.name == f"{platform}-{digest_content(content)}{suffix}":
            yield path, content


def list_libraries(source_hash: str, platform: str, suffix: str) -> Iterator[Path]:
    """Yield the shared libraries for a platform: one for each level of its processor that was met."""
    return (path for path, _ in read_files(source_hash, platform, suffix))


def read_objects(source_hash: str, platform: str) -> list[bytes] | None:
    """Return the objects for a platform, or None."""
    for _, content in read_files(source_hash, platform, OBJECTS):
        return unpack_objects(bytes(content))
    return None


def pack_objects(objects: Iterable[bytes]) -> bytes:
    """Return objects as the content of a file."""
    return b"".join(len(one).to_bytes(8, "little") + one for one in objects)


def unpack_objects(content: bytes) -> list[bytes]:
    """Return the objects of a file."""
    found = []
    while content:
        end = 8 + int.from_bytes(content[:8], "little")
        found.append(content[8:end])
        content = content[end:]
    return found


def keep_file(source_hash: str, platform: str, suffix: str, content: bytes) -> Path | None:
    """Write a file for later processes. Return its path, or None if there is no folder for it."""
    where = find_folder(source_hash)
    if where is None:
        return None
    path, is_new = where[0] / f"{platform}-{digest_content(content)}{suffix}", not where[0].exists()
    try:
        make_folder(where[0])
        if is_new and where[1] == PACKAGE:
            where[0].chmod(FOLDER_MODE)
        with open_folder(*where) as folder:
            if folder is None:
                return None
            replace_file(folder, path.name, [content], MODE)
    except OSError:
        return None
    prune_folders(where[0].parent)
    return path


def prune_folders(parent: Path) -> None:
    """Remove all but the latest folders of compiled kernels. Errors are ignored: they only take space."""
    found = list[tuple[float, Path]]()
    for folder in parent.glob(f"{FOLDER}*"):
        with suppress(OSError):  # Another process was quicker.
            found.append((folder.stat().st_mtime, folder))
    for _, folder in sorted(found, reverse=True)[MOST_FOLDERS:]:
        with suppress(OSError):
            for path in folder.iterdir():
                path.unlink()
            folder.rmdir()
