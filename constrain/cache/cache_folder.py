"""The folder of cached files, and a digest of the code that writes them."""

from __future__ import annotations

import os
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path

__all__ = ["PACKAGE", "VARIABLE", "default_cache_folder", "cache_folder_path", "digest_code"]

VARIABLE = "CONSTRAIN_STORE"
"""The environment variable that names another folder, or "off"."""
PACKAGE = Path(__file__).parents[1]
"""The folder of the installed package."""
DECIDING = (
    "automata", "base", "cache", "compilation", "export", "forms", "frontends", "grammar", "kernels", "lalr", "program",
    "vocabulary",
)  # fmt: skip
"""Packages whose code determines the content of cached files."""


def cache_folder_path() -> Path | None:
    """Return the folder of cached files: CONSTRAIN_STORE, else `~/.cache/constrain`; None if caching is off.

    Files in it may be removed at any time.
    """
    return _folder(os.environ.get(VARIABLE), os.environ.get("HOME"))


def default_cache_folder() -> Path | None:
    """Return `~/.cache/constrain`; None if there is no home directory."""
    return _folder(None, os.environ.get("HOME"))


@lru_cache(4)
def _folder(named: str | None, home: str | None) -> Path | None:
    if named is not None:
        return None if named in ("", "off") else Path(named).absolute()
    try:
        return Path.home().absolute() / ".cache" / "constrain"
    except RuntimeError:
        return None


@lru_cache(1)
def digest_code() -> bytes:
    """Return a digest of the code that determines the content of files: names, sizes and times of its source files."""
    code, todo = blake2b(digest_size=16), [str(PACKAGE / one) for one in reversed(DECIDING)]
    while todo:
        path = todo.pop()
        if path.endswith(".py"):
            status = os.stat(path)
            code.update(f"{path[len(str(PACKAGE)) :]} {status.st_size} {status.st_mtime_ns}\n".encode())
        elif os.path.isdir(path):
            todo += sorted((entry.path for entry in os.scandir(path) if entry.name != "__pycache__"), reverse=True)
    return code.digest()
