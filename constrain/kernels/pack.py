"""The pack: the machine code of all kernels in one file, from which a later process loads them in some 15 ms.

numba keeps each kernel in two files of its own and takes 4 ms to load one. A process that compiles (see `ahead`) puts
the object code of each of its kernels beside them; when all are done they are joined. A kernel that is not in the
pack is taken from numba's own files, or compiled.
"""

from __future__ import annotations

import json
import os
import sys
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numba
from llvmlite import binding
from numba.core.registry import cpu_target

__all__ = ["address", "file", "join", "put"]

ROOM = Path(__file__).parent


@cache
def file() -> Path:
    """Where the pack of the kernels as they are lies, for this Python, numba and processor."""
    digest = blake2b(f"{numba.__version__} {sys.version}".encode(), digest_size=8)
    processor, features = numba.config.CPU_NAME, numba.config.CPU_FEATURES  # None: this one, as numba understands it
    if processor is None:
        processor = binding.get_host_cpu_name()
    if features is None:
        features = binding.get_host_cpu_features().flatten()
    digest.update(f"{processor} {features}".encode())
    for path in sorted(ROOM.glob("*.py")):
        digest.update(path.read_bytes())
    return _folder() / f"kernels-{digest.hexdigest()}.pack"


def _folder() -> Path:
    """Beside the kernels, or with what is this user's where that may not be written."""
    if numba.config.CACHE_DIR:
        return Path(numba.config.CACHE_DIR)
    beside = ROOM / "__pycache__"
    writable = os.access(beside if beside.exists() else ROOM, os.W_OK)
    return beside if writable else Path.home() / ".cache" / "constrain"


def put(symbol: str, made: Any) -> None:
    """Writes the object code of a kernel, just compiled or kept by numba, for `join`."""
    library = made._library
    code = library._compiled_object
    if code is None:  # numba had it on disk, and has handed it on
        kept = made._cache
        code = kept._cache_file.load(kept._index_key(made._sig, library.codegen))[0][2][0]
    # What calls itself is bound by numba when it loads it.
    if b".numba.unresolved" not in code:
        head = json.dumps([symbol, made._wrapper_name, len(code)]).encode() + b"\n"
        file().parent.mkdir(parents=True, exist_ok=True)
        file().with_suffix(f".{symbol}.part").write_bytes(head + code)


def join() -> None:
    """Makes the pack of the parts, under its name only when it is whole."""
    parts = sorted(file().parent.glob(file().stem + ".*.part"))
    heads, codes = [], []
    for part in parts:
        head, code = part.read_bytes().split(b"\n", 1)
        heads.append(json.loads(head))
        codes.append(code)
    whole = file().with_suffix(f".{os.getpid()}.part")
    whole.write_bytes(json.dumps(heads).encode() + b"\n" + b"".join(codes))
    os.replace(whole, file())
    for part in parts:
        part.unlink(missing_ok=True)


class Loaded:
    """The pack, and the engine that places its objects in memory."""

    def __init__(self) -> None:
        head, codes = file().read_bytes().split(b"\n", 1)
        self.places, first = {}, 0
        for symbol, name, length in json.loads(head):
            self.places[symbol] = name, codes[first : first + length]
            first += length
        cpu_target.target_context.codegen()  # which makes known what compiled code calls of Python
        machine = binding.Target.from_default_triple().create_target_machine()
        self.engine = binding.create_mcjit_compiler(binding.parse_assembly(""), machine)

    def address(self, symbol: str) -> int | None:
        """Where a kernel was placed; None if it is not in the pack. What it calls must have its address already."""
        name, code = self.places.get(symbol, (None, b""))
        if name is None:
            return None
        self.engine.add_object_file(binding.ObjectFileRef.from_data(code))
        self.engine.finalize_object()
        return int(self.engine.get_function_address(name))


@cache
def _loaded() -> Loaded | None:
    return Loaded() if file().exists() else None


def address(symbol: str) -> int | None:
    """Where a kernel of the pack is in memory; None if there is no pack, or it is not in it."""
    loaded = _loaded()
    return loaded.address(symbol) if loaded else None
