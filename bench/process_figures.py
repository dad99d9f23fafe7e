"""Read the memory and the CPU time of processes from Linux (proc(5))."""

from __future__ import annotations

import os
import resource
from pathlib import Path

__all__ = ["read_address_space", "read_cpu_seconds", "read_private_memory", "read_resident_memory"]


def read_resident_memory(field: str = "VmRSS", pid: int | str = "self") -> float:
    """Return MiB of physical memory of a process: VmRSS, now; VmHWM, at the peak."""
    with open(f"/proc/{pid}/status") as file:
        return next(int(line.split()[1]) / 1024 for line in file if line.startswith(field))


def read_private_memory() -> int:
    """Return bytes of pages that this process does not share (Private_Clean and Private_Dirty of smaps_rollup)."""
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    return sum(1024 * int(line.split()[1]) for line in lines if line.startswith("Private_"))


def read_address_space() -> int:
    """Return bytes of address space of this process (the first column of statm, in pages)."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[0]) * resource.getpagesize()


def read_cpu_seconds(pid: int) -> float:
    """Return seconds that a process has computed (proc(5), stat: utime and stime, the 14th and 15th value)."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            values = file.read().rpartition(")")[2].split()
    except FileNotFoundError:
        return 0.0
    return (int(values[11]) + int(values[12])) / os.sysconf("SC_CLK_TCK")
