"""Precompile: compile all kernels, in one process per core, for this machine or for the libraries of a wheel."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from ...base.errors import ConstrainError
from ..native.library_cache import OBJECTS, keep_file, pack_objects
from ..native.native_library import SUFFIX, name_platform, open_library
from .module_builder import link_module, load_kernels
from .numba_internals import check_versions
from .object_loader import load_objects
from .targets import emit_head, emit_level, find_target, link_for_host

if TYPE_CHECKING:
    from ..native.native_library import FindSymbol

__all__ = ["build_module", "compile_for_host"]

Report = Callable[[int, int], None]
"""Called with the number of compiled kernels, first 0, and of all kernels."""


def count_cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def build_module(report: Report, parts: int | None = None) -> bytes:
    """Compile all kernels to one LLVM module. Return it as bitcode, the same for any number of processes.

    parts: processes; by default one per core. Raise ConstrainError if numba has another version than those that were
    tested, or a process fails; what it said is on stderr.
    """
    check_versions()
    parts = parts or count_cores()
    with tempfile.TemporaryDirectory() as name:
        reading, writing = os.pipe()
        processes = [
            subprocess.Popen(
                [sys.executable, "-m", "constrain.kernels.jit.module_builder", f"{part}/{parts}", name],
                env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
                stdout=writing,
            )
            for part in range(parts)
        ]
        os.close(writing)
        functions = load_kernels()  # while the processes load them, too
        report(0, len(functions))
        with os.fdopen(reading) as lines:
            for done, _ in enumerate(lines, 1):
                report(done, len(functions))
        codes = [process.wait() for process in processes]
        if any(codes):
            raise ConstrainError("The kernels cannot be compiled: see above, on stderr.")
        return bytes(link_module(functions, lambda one: Path(name, one.name).read_bytes()).as_bitcode())


def compile_for_host(source_hash: str, report: Report, other_level: int | None = None) -> FindSymbol | None:
    """Compile all kernels for this machine, keep the result for later processes and load it.

    other_level: a lower level of the processor than its own, for an emulator that has no more. Return a function that
    finds symbols; None if the system cannot load what was linked.
    """
    target, level = find_target()
    level = level if other_level is None else other_level
    objects = [emit_head(target, source_hash), emit_level(target, level, build_module(report))]
    library, platform = link_for_host(objects), name_platform()
    if library is None:
        keep_file(source_hash, platform, OBJECTS, pack_objects(objects))
        return load_objects(objects)
    if path := keep_file(source_hash, platform, SUFFIX, library):
        return open_library(path)
    return load_objects(objects)  # Nothing can be kept: the next process compiles again.
