"""Compile kernels through numba's public API: `njit` with its cache. The fallback if internals cannot be used.

numba links the callees of a function into it and optimises them again for each caller, so this takes several times as
long as `compilation`, and numba's cache has two files per function.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numba

from ...cache.file_trust import make_folder
from . import object_cache

__all__ = ["compile_function"]

OPTIONS = {"nogil": True, "error_model": "numpy"}


@contextmanager
def cached_in_folder() -> Iterator[bool]:
    """Let numba cache what is compiled in this block in the folder of the kernels. Yield whether there is one.

    numba checks only the file of a cached function for changes, not those of the functions that are linked into it;
    the folder is named by a digest of all of them.
    """
    folder, before = object_cache.find_folder(), numba.config.CACHE_DIR
    if folder is not None:
        try:
            make_folder(folder[0])
        except OSError:
            folder = None
    if folder is not None:
        numba.config.CACHE_DIR = str(folder[0])
    try:
        yield folder is not None
    finally:
        numba.config.CACHE_DIR = before


def compile_function(function: Callable[..., Any], signatures: list[Any], **options: Any) -> Any:
    """Compile a function for its signatures, or load it; without signatures, it is compiled with its callers.

    options: further options of `numba.njit`.
    """
    if not signatures:
        return numba.njit(**OPTIONS, **options)(function)
    with cached_in_folder() as cached:
        return numba.njit(signatures, cache=cached, **OPTIONS, **options)(function)
