"""Zeroed memory that is reserved generously and costs nothing until it is written."""

from __future__ import annotations

import mmap
import os
import sys

from .errors import LimitError

__all__ = ["map_pages"]

NO_RESERVE = 0x4000 if sys.platform == "linux" and os.uname().machine in ("x86_64", "aarch64") else 0
"""MAP_NORESERVE, which `mmap` does not export: without it Linux counts untouched pages as used, and a process with
hundreds of state caches or dozens of mask tables cannot be forked."""


def map_pages(size: int, owner: str, hint: str) -> mmap.mmap:
    """Return zeroed memory whose pages are allocated at the first access, and copied on fork.

    numpy would request huge pages, each of which takes 2 MB to clear at the first access.

    Parameters
    ----------
    size : int
        Number of bytes, at least 1.
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
    if hasattr(mmap, "MAP_PRIVATE") and hasattr(mmap, "MAP_ANONYMOUS"):
        try:
            return mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | NO_RESERVE)
        except OSError as error:
            raise LimitError(
                f"{owner} reserves {size:,} bytes of addresses, which this process lacks", hint=hint
            ) from error
    return mmap.mmap(-1, size)  # Windows, which has no fork
