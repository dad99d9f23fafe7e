"""Build: numba compiles all declared kernels, LLVM simplifies each module, and all are linked into one.

The module has, for each kernel, a plain function under its symbol, which other kernels call, and an entry point for
Python (`entry_code`). It says nothing of a processor: `targets` optimises it for each. Building it takes half a minute
of CPU time, most of it in numba, so several processes compile a *share* each:

    python -m constrain.kernels.jit.module_builder 1/3 FOLDER     compile the second share of three

writes the module of each kernel to a file and prints a line for each. They are linked in the order of the sources, so
the number of shares makes no difference.
"""

from __future__ import annotations

import gc
import importlib
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from llvmlite import binding

from ..native import native_library
from .compilation import Declared, declared
from .entry_code import define_entry_points, define_plain_function
from .numba_internals import check_versions, compile_unoptimised
from .targets import simplify_module

__all__ = ["compile_function", "link_module", "load_kernels"]

NOT_KERNELS = {"__init__", "entry_points"}
"""Files beside the kernels that are about compiled ones."""


def load_kernels() -> list[Declared]:
    """Import all files of kernels. Return the declared functions, in the order of files and lines."""
    for path in native_library.list_sources():
        if path.parent == native_library.KERNELS and path.stem not in NOT_KERNELS:
            importlib.import_module(f"constrain.kernels.{path.stem}")
    return sorted(declared.values(), key=lambda one: (one.function.__module__, one.function.__code__.co_firstlineno))


def name_symbols(function: Declared) -> list[str]:
    """Return the symbol of the plain function of each signature."""
    if len(function.signatures) == 1:
        return [function.symbol]
    return [f"{function.symbol}.{number}" for number in range(len(function.signatures))]


def take_share(functions: Iterable[Declared], part: int, parts: int) -> list[Declared]:
    """Return the functions of one of several shares: each function goes to the share with the least code so far."""
    load, taken = [0] * parts, []
    for one in functions:
        lightest = load.index(min(load))
        load[lightest] += (len(one.function.__code__.co_code) + 100) * len(one.signatures)
        if lightest == part:
            taken.append(one)
    return taken


def compile_function(function: Declared) -> Any:
    """Compile a function for all its signatures. Return an LLVM module with its plain functions, simplified."""
    whole = binding.parse_assembly("")
    for symbol, signature in zip(name_symbols(function), function.signatures):
        native, module = compile_unoptimised(function.function, signature, function.options)
        module.link_in(binding.parse_assembly(define_plain_function(symbol, native, signature)))
        for one in module.functions:
            if not one.is_declaration and one.name != symbol:
                one.linkage = "internal"
        whole.link_in(module)
    simplify_module(whole)
    return whole


def link_module(functions: Iterable[Declared], read: Callable[[Declared], bytes]) -> Any:
    """Return the module of all functions, with their entry points.

    read: returns the module of a function, as LLVM bitcode.
    """
    functions = list(functions)
    whole = binding.parse_assembly(define_entry_points([(one, name_symbols(one)) for one in functions]))
    for one in functions:
        whole.link_in(binding.parse_bitcode(read(one)))
    whole.verify()
    return whole


def main(arguments: Sequence[str]) -> None:
    """Compile a share of the functions, each to a file."""
    gc.disable()  # a tenth of the time: what numba makes is in use to the end, or not in cycles
    part, parts = (int(number) for number in arguments[0].split("/"))
    check_versions()
    for one in take_share(load_kernels(), part, parts):
        Path(arguments[1], one.name).write_bytes(compile_function(one).as_bitcode())
        print(flush=True)  # noqa: T201  (`precompile` counts the lines)


if __name__ == "__main__":
    main(sys.argv[1:])
