"""The parts of numba and llvmlite that are used here although they are not public, and the fallback without them.

Compiling each kernel alone, and joining all object code in one file (`compilation`, `object_cache`), needs classes and
attributes that numba does not document. All of them are listed in `INTERNALS` and looked up when this file is
imported. If one is missing, or if the version of numba or llvmlite was not tested with them, `report_problems` warns
and kernels are compiled through numba's public API (`public_api`): the results are equal, but the first compilation
takes minutes instead of some twenty seconds, and loading the kernels takes seconds instead of milliseconds.
"""

from __future__ import annotations

import importlib
import re
import sys
import warnings
from types import ModuleType
from typing import Any

import llvmlite
import numba

__all__ = [
    "CFunc", "CompileResultCacheImpl", "ExternalFunction", "FAULTS", "FunctionCache", "INTERNALS", "IndexDataCacheFile",
    "NullCache", "VERSIONS", "cpu_target", "find_problems", "normalize_signature", "object_code", "problems",
    "register_dispatcher", "report_problems",
]  # fmt: skip

VERSIONS = {"numba": ((0, 60), (0, 70)), "llvmlite": ((0, 43), (0, 52))}
"""The first version of each library with which the internals were tested, and the first with which they were not.

Equal to the requirements in pyproject.toml (a test compares)."""

INTERNALS = (
    "numba.core.caching.CompileResultCacheImpl.get_filename_base",
    "numba.core.caching.FunctionCache._index_key",
    "numba.core.caching.FunctionCache.enable",
    "numba.core.caching.FunctionCache.load_overload",
    "numba.core.caching.FunctionCache.save_overload",
    "numba.core.caching.IndexDataCacheFile._data_name",
    "numba.core.caching.IndexDataCacheFile._load_data",
    "numba.core.caching.IndexDataCacheFile._load_index",
    "numba.core.caching.IndexDataCacheFile._open_for_write",
    "numba.core.caching.IndexDataCacheFile._save_data",
    "numba.core.caching.IndexDataCacheFile._save_index",
    "numba.core.caching.IndexDataCacheFile.load",
    "numba.core.caching.NullCache",
    "numba.core.ccallback.CFunc.address",
    "numba.core.ccallback.CFunc.compile",
    "numba.core.codegen.JITCodeLibrary.enable_object_caching",
    "numba.core.compiler.CompileResult.entry_point",
    "numba.core.dispatcher.Dispatcher.compile",
    "numba.core.dispatcher.Dispatcher.disable_compile",
    "numba.core.registry.cpu_target.target_context",
    "numba.core.sigutils.normalize_signature",
    "numba.core.typeinfer.register_dispatcher",
    "numba.core.types.ExternalFunction",
    "numba.core.typing.templates.ConcreteTemplate",
    "numba.core.typing.templates.infer_global",
    "numba.core.typing.templates.signature",
    "llvmlite.binding.ObjectFileRef.from_data",
    "llvmlite.binding.add_symbol",
    "llvmlite.binding.create_mcjit_compiler",
)
"""Dotted names of the internals that are used: module, object, and perhaps an attribute of it."""

FAULTS = (AttributeError, ImportError, KeyError, TypeError)
"""Exceptions of numba when it is used in a way that it no longer supports.

Errors in a kernel itself are none of these: numba raises its own `TypingError` and the like."""


def find_internal(dotted: str) -> Any:
    """Return the object of a dotted name in `INTERNALS`. Raise ImportError or AttributeError if it is missing."""
    path, *names = dotted.split(".")
    found: Any = importlib.import_module(path)
    for name in names:
        path = f"{path}.{name}"
        if isinstance(found, ModuleType) and path not in sys.modules and not hasattr(found, name):
            found = importlib.import_module(path)
        else:
            found = getattr(found, name)
    return found


def find_or_object(dotted: str) -> Any:
    """Return the object of a dotted name; `object` if it is missing, which serves as a base class."""
    try:
        return find_internal(dotted)
    except (ImportError, AttributeError):
        return object


def find_problems() -> list[str]:
    """Return the reasons not to use the internals: versions that were not tested, and missing names."""
    found = []
    for library, (least, bound) in VERSIONS.items():
        version = {"numba": numba, "llvmlite": llvmlite}[library].__version__
        if not least <= tuple(int(n) for n in re.findall(r"\d+", version)[:2]) < bound:
            needed = f">={least[0]}.{least[1]},<{bound[0]}.{bound[1]}"
            found.append(f"{library} {version} is not one of the versions that were tried ({library}{needed})")
    for dotted in INTERNALS:
        try:
            find_internal(dotted)
        except (ImportError, AttributeError):
            found.append(f"{dotted} is missing in numba {numba.__version__} with llvmlite {llvmlite.__version__}")
    return found


CFunc: Any = find_or_object("numba.core.ccallback.CFunc")
CompileResultCacheImpl: Any = find_or_object("numba.core.caching.CompileResultCacheImpl")
ExternalFunction: Any = find_or_object("numba.core.types.ExternalFunction")
FunctionCache: Any = find_or_object("numba.core.caching.FunctionCache")
IndexDataCacheFile: Any = find_or_object("numba.core.caching.IndexDataCacheFile")
NullCache: Any = find_or_object("numba.core.caching.NullCache")
cpu_target: Any = find_or_object("numba.core.registry.cpu_target")
normalize_signature: Any = find_or_object("numba.core.sigutils.normalize_signature")
register_dispatcher: Any = find_or_object("numba.core.typeinfer.register_dispatcher")


def object_code(compiled: Any) -> bytes:
    """Return the object code (ELF, Mach-O or COFF) of a `CFunc` that was just compiled, or loaded by its cache."""
    library = compiled._library
    code = library._compiled_object
    if code is None:  # It was loaded from numba's cache, which does not keep it in memory.
        files = compiled._cache
        code = files._cache_file.load(files._index_key(compiled._sig, library.codegen))[0][2][0]
    return bytes(code)


problems: list[str] = []
"""The reasons why kernels are compiled through numba's public API; empty if they are not."""


def report_problems(found: list[str]) -> None:
    """Compile kernels through numba's public API from now on. Warn, in each process once."""
    first = not problems
    problems.extend(found)
    if first and found:
        warnings.warn(
            f"constrain: {'; '.join(found)}. Kernels are compiled through numba's public API instead: once per install "
            "this takes several minutes, and each later start some seconds. To avoid that, install "
            + " ".join(f"'{name}>={a}.{b},<{c}.{d}'" for name, ((a, b), (c, d)) in VERSIONS.items()),
            RuntimeWarning,
            stacklevel=2,
        )


report_problems(find_problems())
