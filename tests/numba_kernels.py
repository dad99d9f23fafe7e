"""The reference for the library of kernels: each kernel compiled by numba's just-in-time compiler, for this processor.

`tests.numba_plugin` runs tests on them. Compiling them takes a minute. Kernels call each other through stubs, which
load an address that is known only when all are compiled.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from llvmlite import binding
from numba import cfunc, njit

from constrain.kernels.jit.compilation import Kernel
from constrain.kernels.jit.entry_code import list_parameters
from constrain.kernels.jit.module_builder import load_kernels
from constrain.kernels.jit.object_loader import load_objects
from constrain.kernels.jit.targets import Target, make_machine

__all__ = ["compile_by_numba"]


def define_stub(kernel: Kernel) -> str:
    """Return a function of the symbol of a kernel, which calls the function at the address in a slot."""
    parameters = list_parameters(kernel.sig)
    named = ", ".join(f"{kind} %a{k}" for k, kind in enumerate(parameters))
    result = "double" if str(kernel.sig.return_type) == "float64" else "i64"
    return f"""
@"slot.{kernel.symbol}" = global ptr null
define {result} @"{kernel.symbol}"({named}) {{
  %function = load ptr, ptr @"slot.{kernel.symbol}"
  %value = call {result} %function({named})
  ret {result} %value
}}"""


def compile_by_numba() -> dict[str, Callable[..., Any]]:
    """Return all compiled functions by name."""
    functions = load_kernels()
    kernels = [one for one in functions if isinstance(one, Kernel)]
    stubs = binding.parse_assembly("\n".join(map(define_stub, kernels)))
    machine = make_machine(Target("", binding.get_process_triple(), ("",)), "")
    find = load_objects([machine.emit_object(stubs)])
    for one in kernels:
        binding.add_symbol(one.symbol, find(one.symbol))
    found: dict[str, Callable[..., Any]] = {}
    for one in functions:
        options = {name: value for name, value in one.options.items() if not name.startswith("no_")}
        if isinstance(one, Kernel):
            made = cfunc(one.sig, **options)(one.function)
            ctypes.c_void_p.from_address(find(f"slot.{one.symbol}") or 0).value = made.address
            found[one.name] = made.ctypes
            KEPT.append(made)
        else:
            found[one.name] = njit(one.signatures, **options)(one.function)
    return found


KEPT: list[Any] = []
"""numba's compiled functions: their machine code is freed with them."""
