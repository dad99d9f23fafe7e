"""Object cache: the machine code of all kernels in one file, from which a later process loads them in some 15 ms.

numba keeps each kernel in two files of its own and takes 4 ms to load one. A process that compiles (see `precompile`)
writes the object code of each of its kernels beside them; when all are compiled they are joined. A kernel that is not
in the joined file is taken from numba's files, or compiled.

All of these files hold machine code or pickles of numba. They are sealed files (`constrain.cache`): read only if
nobody but this user or root can have written them and their folder. They are, in this order: in NUMBA_CACHE_DIR, beside
the kernels, with the other cached files of this user. Where no such folder is trusted and writable, kernels are
compiled in memory by each process.
"""

from __future__ import annotations

import json
import os
import pickle
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from hashlib import blake2b, sha256
from io import BytesIO
from pathlib import Path
from typing import Any

import numba
from llvmlite import binding
from numba.core.caching import CompileResultCacheImpl, FunctionCache, IndexDataCacheFile, NullCache
from numba.core.registry import cpu_target

from ...cache.cache_folder import PACKAGE, cache_folder_path as cache_folder, default_cache_folder
from ...cache.file_trust import is_trusted
from ...cache.sealed_files import prune_folder, read_sealed, remove_file, write_sealed

__all__ = ["address", "function_cache", "is_complete", "join", "put"]

KERNELS = Path(__file__).parent.parent
BESIDE = KERNELS / "__pycache__"
SUFFIX = ".objects"
PART = ".part"
MODE = 0o644
"""Machine code is no secret: what root compiles beside the installed package, others may load."""
MOST_FILES, MOST_BYTES = 4, 64 << 20
"""Joined files that are kept, the latest: those of other versions and processors."""


@cache
def runtime() -> bytes:
    """Return what seals the files: this Python and numba."""
    return f"{numba.__version__} {sys.version}".encode()


def sources() -> list[Path]:
    """Return the files of the kernels and of what compiles them, in a fixed order."""
    return sorted(KERNELS.glob("*.py")) + sorted((KERNELS / "jit").glob("*.py"))


@cache
def identity() -> str:
    """Return a digest of the kernels as they are, of this Python, numba and processor."""
    digest = blake2b(runtime(), digest_size=8)
    processor, features = numba.config.CPU_NAME, numba.config.CPU_FEATURES  # None: this one, as numba understands it
    if processor is None:
        processor = binding.get_host_cpu_name()
    if features is None:
        features = binding.get_host_cpu_features().flatten()
    digest.update(f"{processor} {features}".encode())
    for path in sources():
        digest.update(path.read_bytes())
    return digest.hexdigest()


@cache
def place() -> tuple[Path, Path] | None:
    """Return the folder of the object cache, and the parent up to which it must be trusted; None if there is none."""
    if numba.config.CACHE_DIR:
        named = Path(numba.config.CACHE_DIR).absolute()
        return (named, named) if not named.exists() or is_trusted(named) else None
    if is_trusted(BESIDE if BESIDE.exists() else KERNELS, PACKAGE):
        known = BESIDE / f"{identity()}{SUFFIX}"
        if os.access(BESIDE if BESIDE.exists() else KERNELS, os.W_OK) or known.exists():
            return BESIDE, PACKAGE
    mine = cache_folder() or default_cache_folder()
    if mine is None or (mine.exists() and not is_trusted(mine)):
        return None
    return mine / "kernels", mine


def read(name: str) -> bytes | None:
    """Return the content of a file of the object cache, or None if it is missing, not trusted or damaged."""
    where = place()
    data = None if where is None else read_sealed(where[0] / name, runtime(), where[1])
    return None if data is None else bytes(data)


def write(name: str, content: bytes) -> None:
    """Write a file of the object cache, if there is one."""
    where = place()
    if where is not None:
        write_sealed(where[0] / name, runtime(), [content], MODE, where[1])


# ---- numba's own files, function by function -------------------------------------------------------------------------


class Source:
    """What numba calls a locator: where the file of a function is cached, and which text it was compiled from."""

    def __init__(self, function: Any) -> None:
        self.path = Path(function.__code__.co_filename)
        self.line = function.__code__.co_firstlineno
        self._py_file = str(self.path)  # numba names it in a warning

    def ensure_cache_path(self) -> None:
        """Do nothing: the folder is made when a file is written."""

    def get_disambiguator(self) -> str:
        """Return what tells apart functions of one name, in different installations too."""
        return f"{self.line}-{blake2b(str(self.path).encode(), digest_size=4).hexdigest()}"


class Serialiser(CompileResultCacheImpl):  # type: ignore[misc]
    """numba's serialiser of compiled functions, with files named by `Source`."""

    def __init__(self, function: Any) -> None:
        self._lineno = function.__code__.co_firstlineno
        self._locator = Source(function)
        name = f"{identity()}.{self._locator.path.stem}.{function.__qualname__}"
        self._filename_base = self.get_filename_base(name, getattr(sys, "abiflags", ""))


class SealedFiles(IndexDataCacheFile):  # type: ignore[misc]
    """numba's index and data files, as sealed files."""

    def _load_index(self) -> dict[Any, str]:
        data = read(self._index_name)
        if data is None:
            return {}
        file = BytesIO(data)
        if pickle.load(file) != self._version:
            return {}
        stamp, overloads = pickle.load(file)
        return overloads if stamp == self._source_stamp else {}

    def _load_data(self, name: str) -> Any:
        data = read(name)
        if data is None:
            raise FileNotFoundError(name)  # numba compiles anew
        return pickle.loads(data)

    @contextmanager
    def _open_for_write(self, filepath: str) -> Iterator[BytesIO]:
        file = BytesIO()
        yield file
        write(os.path.basename(filepath), file.getvalue())


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
    where = place()
    return NullCache() if where is None else SealedCache(function, where[0])


# ---- all kernels in one file -----------------------------------------------------------------------------------------


def put(symbol: str, made: Any) -> None:
    """Write the object code of a kernel, just compiled or loaded by numba, for `join`."""
    library = made._library
    code = library._compiled_object
    if code is None:  # numba had it on disk, and has handed it on
        kept = made._cache
        code = kept._cache_file.load(kept._index_key(made._sig, library.codegen))[0][2][0]
    # What calls itself is bound by numba when it loads it.
    if b".numba.unresolved" not in code:
        head = json.dumps([symbol, made._wrapper_name, len(code)]).encode() + b"\n"
        write(f"{identity()}.{symbol}{PART}", head + code)


def join() -> None:
    """Join the object code of all kernels into one file."""
    where = place()
    if where is None:
        return
    heads, codes = [], []
    for part in sorted(where[0].glob(f"{identity()}.*{PART}")):
        data = read(part.name)
        if data is not None:
            head, code = data.split(b"\n", 1)
            heads.append(json.loads(head))
            codes.append(code)
    write(f"{identity()}{SUFFIX}", json.dumps(heads).encode() + b"\n" + b"".join(codes))
    for part in where[0].glob(f"*{PART}"):
        remove_file(part)
    prune_folder(where[0], SUFFIX, MOST_FILES, MOST_BYTES)


class Loaded:
    """The joined file, and the engine that places its objects in memory."""

    def __init__(self, data: bytes) -> None:
        head, codes = data.split(b"\n", 1)
        self.places, first = {}, 0
        for symbol, name, length in json.loads(head):
            self.places[symbol] = name, codes[first : first + length]
            first += length
        cpu_target.target_context.codegen()  # which makes known what compiled code calls of Python
        machine = binding.Target.from_default_triple().create_target_machine()
        self.engine = binding.create_mcjit_compiler(binding.parse_assembly(""), machine)

    def address(self, symbol: str) -> int | None:
        """Return where a kernel was placed; None if it is not in the file. What it calls must have its address."""
        name, code = self.places.get(symbol, (None, b""))
        if name is None:
            return None
        self.engine.add_object_file(binding.ObjectFileRef.from_data(code))
        self.engine.finalize_object()
        return int(self.engine.get_function_address(name))


def is_complete() -> bool:
    """Whether the joined file of the kernels as they are is there and can be trusted."""
    return read(f"{identity()}{SUFFIX}") is not None


@cache
def _loaded() -> Loaded | None:
    data = read(f"{identity()}{SUFFIX}")
    return None if data is None else Loaded(data)


def address(symbol: str) -> int | None:
    """Return where a kernel is in memory; None if there is no joined file, or it is not in it."""
    loaded = _loaded()
    return loaded.address(symbol) if loaded else None
