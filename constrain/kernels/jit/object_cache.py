"""Object cache: the machine code of all kernels in one file, which a process loads in some 15 ms.

numba caches each compiled function in two files and takes 4 ms to load one. A process that compiles (see `precompile`)
also writes the object code of each of its kernels; when all are compiled, these parts are joined in one file. A kernel
that is not in the joined file is loaded from numba's files, or compiled.

The code compiled from the same sources is in one folder, `kernels-<digest>`, where the digest covers all kernel files,
Python, numba and the processor. The latest folders are retained. They hold machine code and pickles of numba, so their
files are sealed (`constrain.cache`): read only if nobody but this user or root can have written them and their folder.
The folder is the first of these that is trusted and writable: in NUMBA_CACHE_DIR, in `__pycache__` next to the kernels,
in this user's cache folder. Without any, each process compiles the kernels in memory.
"""

from __future__ import annotations

import json
import os
import pickle
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from hashlib import blake2b, sha256
from io import BytesIO
from pathlib import Path
from typing import Any

import llvmlite
import numba
from llvmlite import binding

from ...cache.cache_folder import PACKAGE, cache_folder_path as cache_folder, default_cache_folder
from ...cache.file_trust import is_trusted
from ...cache.sealed_files import read_sealed, remove_file, write_sealed
from .numba_internals import (
    CompileResultCacheImpl,
    FunctionCache,
    IndexDataCacheFile,
    NullCache,
    cpu_target,
    object_code,
)

__all__ = [
    "add_object", "find_address", "find_folder", "function_cache", "is_complete", "join_objects", "read_failure",
    "write_failure",
]  # fmt: skip

KERNELS = Path(__file__).parent.parent
BESIDE = KERNELS / "__pycache__"
FOLDER = "kernels-"
"""Start of the names of folders; a digest follows."""
JOINED = "joined.objects"
"""File of a folder: a line of JSON ([symbol, name of the function in the object, bytes] of each kernel), objects."""
PART = ".part"
"""End of the names of files that hold the object code of one kernel until it is joined."""
FAILURE = "failure.txt"
"""File of a folder: the reason why numba's internals could not compile these sources."""
MODE, FOLDER_MODE = 0o644, 0o755
"""Other users may load the machine code that root compiled next to the installed package."""
MOST_FOLDERS = 4
"""Folders that are retained: the latest, for other versions and processors."""


@cache
def describe_runtime() -> bytes:
    """Return the key that seals the files: the versions of numba, llvmlite and Python."""
    return f"{numba.__version__} {llvmlite.__version__} {sys.version}".encode()


def list_sources() -> list[Path]:
    """Return the files of the kernels and of what compiles them, in a fixed order."""
    return sorted(KERNELS.glob("*.py")) + sorted((KERNELS / "jit").glob("*.py"))


@cache
def compute_identity() -> str:
    """Return a digest of the kernel sources, this Python, numba and the processor."""
    digest = blake2b(describe_runtime(), digest_size=8)
    processor, features = numba.config.CPU_NAME, numba.config.CPU_FEATURES  # None: of this machine
    if processor is None:
        processor = binding.get_host_cpu_name()
    if features is None:
        features = binding.get_host_cpu_features().flatten()
    digest.update(f"{processor} {features}".encode())
    for path in list_sources():
        digest.update(path.read_bytes())
    return digest.hexdigest()


@cache
def find_folder() -> tuple[Path, Path] | None:
    """Return the folder of these sources, and the parent up to which it must be trusted; None if there is none."""
    name = FOLDER + compute_identity()
    if numba.config.CACHE_DIR:
        parent = Path(numba.config.CACHE_DIR).absolute()
        return (parent / name, parent) if not parent.exists() or is_trusted(parent) else None
    beside = BESIDE if BESIDE.exists() else KERNELS
    if is_trusted(beside, PACKAGE) and (os.access(beside, os.W_OK) or (BESIDE / name / JOINED).exists()):
        return BESIDE / name, PACKAGE
    home = cache_folder() or default_cache_folder()
    if home is None or (home.exists() and not is_trusted(home)):
        return None
    return home / name, home


def read_cached(name: str) -> bytes | None:
    """Return the content of a file of the folder, or None if it is missing, not trusted or damaged."""
    where = find_folder()
    data = None if where is None else read_sealed(where[0] / name, describe_runtime(), where[1])
    return None if data is None else bytes(data)


def write_cached(name: str, content: bytes) -> None:
    """Write a file of the folder, if there is one."""
    where = find_folder()
    if where is None:
        return
    folder, root = where
    new = not folder.exists()
    if (
        write_sealed(folder / name, describe_runtime(), [content], MODE, root)
        and new
        and folder.is_relative_to(PACKAGE)
    ):
        with suppress(OSError):
            folder.chmod(FOLDER_MODE)


def prune_folders(parent: Path) -> None:
    """Remove all but the latest folders of compiled kernels. Errors are ignored: they only take space."""
    found = []
    for folder in parent.glob(f"{FOLDER}*"):
        with suppress(OSError):  # Another process was quicker.
            found.append((folder.stat().st_mtime, folder))
    for _, folder in sorted(found, reverse=True)[MOST_FOLDERS:]:
        shutil.rmtree(folder, ignore_errors=True)


def write_failure(problem: str) -> None:
    """Write the reason why numba's internals cannot compile these sources, for `read_failure`."""
    write_cached(FAILURE, problem.encode())


def read_failure() -> str | None:
    """Return the reason why numba's internals could not compile these sources, or None if they could."""
    found = read_cached(FAILURE)
    return None if found is None else found.decode()


# ---- numba's own files, function by function -------------------------------------------------------------------------


class SourceLocator:
    """A locator in the sense of numba: the source file of a function, and where it is cached."""

    def __init__(self, function: Any) -> None:
        self.path = Path(function.__code__.co_filename)
        self.line = function.__code__.co_firstlineno
        self._py_file = str(self.path)  # numba names it in a warning

    def ensure_cache_path(self) -> None:
        """Do nothing: the folder is made when a file is written."""

    def get_disambiguator(self) -> str:
        """Return a string that distinguishes functions of one name, also between installations."""
        return f"{self.line}-{blake2b(str(self.path).encode(), digest_size=4).hexdigest()}"


class Serialiser(CompileResultCacheImpl):  # type: ignore[misc]
    """numba's serialiser of compiled functions, with files named by `SourceLocator`."""

    def __init__(self, function: Any) -> None:
        self._lineno = function.__code__.co_firstlineno
        self._locator = SourceLocator(function)
        name = f"{self._locator.path.stem}.{function.__qualname__}"
        self._filename_base = self.get_filename_base(name, getattr(sys, "abiflags", ""))


class SealedFiles(IndexDataCacheFile):  # type: ignore[misc]
    """numba's index and data files, as sealed files."""

    def _load_index(self) -> dict[Any, str]:
        data = read_cached(self._index_name)
        if data is None:
            return {}
        file = BytesIO(data)
        if pickle.load(file) != self._version:
            return {}
        source_stamp, overloads = pickle.load(file)
        return overloads if source_stamp == self._source_stamp else {}

    def _load_data(self, name: str) -> Any:
        data = read_cached(name)
        if data is None:
            raise FileNotFoundError(name)  # numba recompiles it
        return pickle.loads(data)

    def save(self, key: Any, data: Any) -> None:
        """Save the code of a function for one signature, in a file whose number is a digest of the key.

        numba counts these files: of two processes that compile a function for different signatures at the same time,
        both may choose the same number, and the index of one then names the code of the other.
        """
        overloads = self._load_index()
        if key not in overloads:
            overloads[key] = self._data_name(int.from_bytes(blake2b(repr(key).encode(), digest_size=8).digest(), "big"))
            self._save_index(overloads)
        self._save_data(overloads[key], data)

    @contextmanager
    def _open_for_write(self, filepath: str) -> Iterator[BytesIO]:
        file = BytesIO()
        yield file
        write_cached(os.path.basename(filepath), file.getvalue())


class SealedCache(FunctionCache):  # type: ignore[misc]
    """numba's cache of one function, whose files must be trusted."""

    def __init__(self, function: Any, folder: Path) -> None:
        self._name, self._py_func = repr(function), function
        self._impl = Serialiser(function)
        self._cache_path = str(folder)
        source = sha256(self._impl._locator.path.read_bytes()).hexdigest()
        self._cache_file = SealedFiles(str(folder), self._impl.filename_base, source)
        self.enable()


def function_cache(function: Any) -> Any:
    """Return numba's cache for one function: sealed files, or none where nothing can be trusted."""
    where = find_folder()
    return NullCache() if where is None else SealedCache(function, where[0])


# ---- all kernels in one file -----------------------------------------------------------------------------------------


def add_object(symbol: str, compiled: Any) -> None:
    """Write the object code of a kernel, just compiled or loaded by numba, for `join_objects`."""
    code = object_code(compiled)
    # numba binds functions that call themselves when it loads them; their object code alone cannot be placed.
    if b".numba.unresolved" not in code:
        head = json.dumps([symbol, compiled._wrapper_name, len(code)]).encode() + b"\n"
        write_cached(f"{symbol}{PART}", head + code)


def join_objects() -> None:
    """Join the object code of all kernels into one file, and remove the parts and folders of older sources."""
    where = find_folder()
    if where is None:
        return
    heads, codes = [], []
    parts = sorted(where[0].glob(f"*{PART}"))
    for part in parts:
        data = read_cached(part.name)
        if data is not None:
            head, code = data.split(b"\n", 1)
            heads.append(json.loads(head))
            codes.append(code)
    write_cached(JOINED, json.dumps(heads).encode() + b"\n" + b"".join(codes))
    for part in parts:
        remove_file(part)
    prune_folders(where[0].parent)


class LoadedObjects:
    """The joined file, and the LLVM engine that places its objects in memory."""

    def __init__(self, data: bytes) -> None:
        head, codes = data.split(b"\n", 1)
        self.objects, first = {}, 0
        for symbol, name, length in json.loads(head):
            self.objects[symbol] = name, codes[first : first + length]
            first += length
        cpu_target.target_context.codegen()  # makes known the symbols of Python that compiled code calls
        machine = binding.Target.from_default_triple().create_target_machine()
        self.engine = binding.create_mcjit_compiler(binding.parse_assembly(""), machine)

    def place(self, symbol: str) -> int | None:
        """Place a kernel in memory and return its address; None if it is not in the file.

        The kernels that it calls must have been placed before: their symbols are resolved now.
        """
        name, code = self.objects.get(symbol, (None, b""))
        if name is None:
            return None
        self.engine.add_object_file(binding.ObjectFileRef.from_data(code))
        self.engine.finalize_object()
        return int(self.engine.get_function_address(name))


def is_complete() -> bool:
    """Return whether the joined file of the current sources exists and is trusted."""
    return read_cached(JOINED) is not None


@cache
def _loaded() -> LoadedObjects | None:
    data = read_cached(JOINED)
    return None if data is None else LoadedObjects(data)


def find_address(symbol: str) -> int | None:
    """Return the address of a kernel, loading it; None if there is no joined file, or the kernel is not in it."""
    loaded = _loaded()
    return loaded.place(symbol) if loaded else None
