"""Precompile: compile all kernels once per install, before the first is used, in one process per core.

The result is joined in one file (`object_cache`), which later processes load. If that cannot be written, or no process
can be started, kernels are compiled as they are imported, which only takes longer.
"""

from __future__ import annotations

import logging
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numba

from . import numba_internals, object_cache

__all__ = ["SHARE", "compile_all", "ensure_compiled", "is_compiled", "on_progress"]

SHARE = "CONSTRAIN_KERNELS_SHARE"
"""Environment variable of a process that compiles a part of the kernels: "1/3" is the second part of three."""
MARKED = re.compile(r"^@(?:kernel|entry)\(", re.M)


logger = logging.getLogger("constrain.kernels")


def log_start(done: int, count: int) -> None:
    """Log that a compilation begins.

    It is a warning, so that a program without a configuration of logging prints the line to stderr: it explains why the
    first mask takes so long. `logging.getLogger("constrain.kernels").setLevel(logging.ERROR)` disables it.
    """
    if done == 0:
        logger.warning("constrain: compiling %d kernels, once per install: some 20 seconds on two cores", count)


on_progress: Callable[[int, int], None] = log_start
"""Callback (compiled kernels, all kernels); the command line shows a progress bar."""


def is_compiled() -> bool:
    """Return whether all kernels are compiled from the current sources, in files that are trusted."""
    return object_cache.is_complete()


def ensure_compiled() -> None:
    """Compile all kernels unless they are on disk already, or cannot be written there."""
    if not numba.config.DISABLE_JIT and object_cache.find_folder() is not None and not is_compiled():
        compile_all()


def module_of(path: Path) -> str:
    """Return the dotted name of a file of the kernels."""
    return ".".join(("constrain.kernels", *path.relative_to(object_cache.KERNELS).with_suffix("").parts))


def compile_all() -> None:
    """Compile all kernels, each process a share, and join them on disk.

    Each process prints a line per kernel, to report progress. Do nothing if numba's internals cannot be used: kernels
    are then compiled as they are imported.
    """
    if numba_internals.problems:
        return
    failure = object_cache.read_failure()
    if failure is not None:
        numba_internals.report_problems([failure])
        return
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    texts = {module_of(path): path.read_text(encoding="utf-8") for path in object_cache.list_sources()}
    modules = [name for name, text in texts.items() if MARKED.search(text)]
    count = sum(len(MARKED.findall(text)) for text in texts.values())
    work = f"import importlib\nfor name in {modules!r}: importlib.import_module(name)"
    on_progress(0, count)
    reading, writing = os.pipe()
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", work],
            env={**os.environ, SHARE: f"{part}/{cores}", "PYTHONPATH": os.pathsep.join(sys.path)},
            stdout=writing,
        )
        for part in range(cores)
    ]
    os.close(writing)
    with os.fdopen(reading) as lines:
        for done, _ in enumerate(lines, 1):
            on_progress(done, count)
    codes = [process.wait() for process in processes]
    failure = object_cache.read_failure()
    if failure is not None:
        numba_internals.report_problems([failure])
    elif not any(codes):
        object_cache.join_objects()
