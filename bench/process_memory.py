"""Read how much memory this process holds, as Linux counts it (proc(5))."""

from __future__ import annotations

import resource
from pathlib import Path

__all__ = ["read_address_space", "read_private_memory", "read_resident_memory"]


def read_resident_memory(field: str = "VmRSS") -> float:
    """Return MiB of physical memory: VmRSS, held now; VmHWM, at the peak."""
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) / 1024 for line in file if line.startswith(field))


def read_private_memory() -> int:
    """Return bytes of pages that are this process's own (Private_Clean and Private_Dirty of smaps_rollup)."""
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    return sum(1024 * int(line.split()[1]) for line in lines if line.startswith("Private_"))


def read_address_space() -> int:
    """Return bytes of address space (the first column of statm, in pages)."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[0]) * resource.getpagesize()
