"""Zeroed memory: reserved generously, which costs nothing until it is written, or in huge pages, written at once."""

from __future__ import annotations

import mmap
import os
import sys
from contextlib import suppress

from .errors import LimitError

__all__ = ["HUGE_PAGE", "map_buffer", "map_pages"]

NO_RESERVE = 0x4000 if sys.platform == "linux" and os.uname().machine in ("x86_64", "aarch64") else 0
"""MAP_NORESERVE, which `mmap` does not export: without it Linux counts untouched pages as used, and a process with
hundreds of state caches or dozens of mask tables cannot be forked."""
HUGE_PAGE = 2 << 20
"""Bytes of a huge page (x86-64, and aarch64 with pages of 4 KB): one fault instead of 512, of a microsecond or more."""
ADVICE = getattr(mmap, "MADV_HUGEPAGE", None)


def map_buffer(size: int) -> memoryview:
    """Return `size` bytes of memory for content that is written at once, in huge pages if the system has them."""
    pages = map_pages(max(1, size), "a buffer", "Use fewer processes.", _round_up(size))
    return memoryview(pages)[:size]


def _round_up(size: int) -> int:
    """Return whole huge pages, since Linux aligns just such mappings to them."""
    return size + -size % HUGE_PAGE


def _advise(pages: mmap.mmap, size: int) -> None:
    """Ask for huge pages in the first `size` bytes of a mapping. Systems without them ignore or refuse that."""
    if ADVICE is not None and size:
        with suppress(OSError):
            pages.madvise(ADVICE, 0, size)


def map_pages(size: int, owner: str, hint: str, filled: int = 0) -> mmap.mmap:
    """Return zeroed memory whose pages are allocated at the first access, and copied on fork.

    numpy would request huge pages, each of which takes 2 MB to clear at the first access.

    Parameters
    ----------
    size : int
        Number of bytes, at least 1.
    filled : int
        Number of bytes at the beginning that the caller writes at once. Huge pages are requested for them, but not
        for a rest that fills less than half of one.
    owner, hint : str
        What the memory is for, and what to do if there is not enough, for the error message.

    Returns
    -------
    mmap.mmap
        Private pages; shared ones are the default of mmap.

    Raises
    ------
    LimitError
        If the process lacks so many addresses, as under `ulimit -v`.
    """
    filled += HUGE_PAGE // 2
    filled -= filled % HUGE_PAGE
    if filled:
        size = _round_up(size)
    if hasattr(mmap, "MAP_PRIVATE") and hasattr(mmap, "MAP_ANONYMOUS"):
        try:
            pages = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | NO_RESERVE)
        except OSError as error:
            raise LimitError(
                f"{owner} reserves {size:,} bytes of addresses, which this process lacks", hint=hint
            ) from error
        _advise(pages, min(filled, size))
        return pages
    return mmap.mmap(-1, size)  # Windows, which has no fork
