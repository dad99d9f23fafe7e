"""The library of compiled kernels of this process: found, checked, loaded, and its functions by name.

A wheel carries a library for each platform in `kernels/libraries`, which needs neither numba nor LLVM. A library names
the *source hash* of the kernels that it was compiled from, and is used only if the sources here have the same. In a
source checkout, and on other platforms, numba compiles the kernels at their first use (`jit.precompile`), and the
result is kept (`library_cache`). Where there is neither a library nor numba, the first use raises an error.

A library has code for several levels of its processor, and a function that tells the level of the one that it runs on.
Its functions are objects of CPython's own type for functions in C (`jit.entry_code` generates their code), which are
called faster than anything that numba or ctypes offers. They are made from the table of the library, without an
extension module, which would need a build for each version of Python.
"""

from __future__ import annotations

import ctypes
import importlib
import importlib.util
import logging
import os
import sys
from collections.abc import Callable, Mapping
from functools import cache
from hashlib import blake2b
from itertools import chain
from pathlib import Path
from typing import Any

from ...base.errors import ConstrainError
from .library_cache import list_libraries, read_objects

__all__ = [
    "KERNELS", "LEVEL", "LIBRARIES", "SOURCE_HASH", "SUFFIX", "TABLE", "FindSymbol", "compute_source_hash",
    "find_function", "list_functions", "list_sources", "name_platform", "on_progress", "open_library", "read_functions",
]  # fmt: skip

KERNELS = Path(__file__).parent.parent
LIBRARIES = KERNELS / "libraries"
"""The folder of the libraries that a wheel carries."""
SUFFIX = ".so"
"""End of the names of libraries, on all platforms."""
SOURCE_HASH, LEVEL, TABLE = "constrain_source_hash", "constrain_level", "constrain_functions_"
"""Symbols of a library: a string; a function that returns the level of the processor; the table of each level."""
BUILDER, OBJECT_LOADER = "constrain.kernels.jit.precompile", "constrain.kernels.jit.object_loader"
"""Modules that need numba, or llvmlite; imported by name where they are needed, as this package does without them."""

FindSymbol = Callable[[str], "int | None"]
"""Returns the address of a symbol of a library, or None if it has no such symbol."""

logger = logging.getLogger("constrain.kernels")


def log_start(done: int, count: int) -> None:
    """Log that a compilation begins.

    It is a warning, so that a program without a configuration of logging prints the line to stderr: it explains why the
    first mask takes so long. `logging.getLogger("constrain.kernels").setLevel(logging.ERROR)` disables it.
    """
    if done == 0:
        logger.warning("constrain: compiling %d kernels, once per checkout: about half a minute on two cores", count)


on_progress: Callable[[int, int], None] = log_start
"""Callback (compiled kernels, all kernels); the command line shows a progress bar."""


class Method(ctypes.Structure):
    """A row of a table of functions: CPython's `PyMethodDef`."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("address", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("text", ctypes.c_char_p),
    )


def name_platform() -> str:
    """Return the name of this operating system and processor, such as "linux-x86_64"."""
    return f"{sys.platform}-{os.uname().machine if hasattr(os, 'uname') else 'unknown'}"


def list_sources() -> list[Path]:
    """Return the files of the kernels and of what compiles them, in a fixed order."""
    return sorted(KERNELS.glob("*.py")) + sorted((KERNELS / "jit").glob("*.py"))


@cache
def compute_source_hash() -> str:
    """Return the digest of the sources: 32 hexadecimal digits."""
    digest = blake2b(digest_size=16)
    for path in list_sources():
        text = path.read_bytes()
        digest.update(b"%s %d\n%s" % (path.name.encode(), len(text), text))
    return digest.hexdigest()


def open_library(path: Path) -> FindSymbol | None:
    """Load a shared library. Return a function that finds its symbols; None if the system cannot load it."""
    try:
        library = ctypes.PyDLL(str(path))
    except OSError:
        return None

    def find(symbol: str) -> int | None:
        try:
            return ctypes.addressof(ctypes.c_char.in_dll(library, symbol))
        except ValueError:
            return None

    return find


def read_functions(find: FindSymbol | None, source_hash: str) -> dict[str, Callable[..., Any]] | None:
    """Return the functions of a library by name; None if it is of other sources, or has nothing for this processor."""
    place = find(SOURCE_HASH) if find else None
    if find is None or place is None or ctypes.string_at(place) != source_hash.encode():
        return None
    level = ctypes.CFUNCTYPE(ctypes.c_int)(find(LEVEL) or 0)()
    row = find(f"{TABLE}{level}")
    if row is None:
        return None
    new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)(
        ("PyCFunction_NewEx", ctypes.pythonapi)
    )
    found = {}
    while name := Method.from_address(row).name:
        found[name.decode()] = new(row, None, None)
        row += ctypes.sizeof(Method)
    return found


def find_compiled() -> dict[str, Callable[..., Any]] | None:
    """Return the functions of a library in this package, or kept by an earlier process; None if there is none."""
    source_hash, platform = compute_source_hash(), name_platform()
    for path in chain([LIBRARIES / f"{platform}{SUFFIX}"], list_libraries(source_hash, platform, SUFFIX)):
        if path.exists() and (found := read_functions(open_library(path), source_hash)):
            return found
    if importlib.util.find_spec("llvmlite") and (objects := read_objects(source_hash, platform)):
        return read_functions(importlib.import_module(OBJECT_LOADER).load_objects(objects), source_hash)
    return None


@cache
def list_functions() -> Mapping[str, Callable[..., Any]]:
    """Return the compiled functions of this process by name; compile them if there is no library that fits.

    Raise ConstrainError if that is not possible.
    """
    if found := find_compiled():
        return found
    if importlib.util.find_spec("numba") is None:
        raise ConstrainError(
            f"There are no compiled kernels for {name_platform()} with the source hash {compute_source_hash()}, and "
            "numba, which would compile them, is not installed.",
            hint='pip install "constrain-lm[build]"',
        )
    source_hash = compute_source_hash()
    found = read_functions(importlib.import_module(BUILDER).compile_for_host(source_hash, on_progress), source_hash)
    if found is None:
        raise ConstrainError(f"The kernels that were compiled for {name_platform()} cannot be loaded.")
    return found


def find_function(name: str) -> Callable[..., Any]:
    """Return a compiled function.

    name: its file and its own name, such as "masks.fill_mask". Raise ConstrainError if there are no compiled kernels.
    """
    return list_functions()[name]
