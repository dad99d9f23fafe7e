"""The switch of mutant schemata: which mutant is active, as Python and compiled code read it.

This file is copied into the scratch checkout as `constrain/switch.py`; nothing in the library imports it. The number is
64 bits of memory with a symbol, loaded atomically at each use: then no compiler folds it or moves it out of a loop.
"""

from __future__ import annotations

import os
from ctypes import addressof, c_int64
from typing import Any

from llvmlite import binding, ir
from numba import types
from numba.core.typing.templates import ConcreteTemplate, infer_global, signature
from numba.extending import lower_builtin

__all__ = ["VARIABLE", "activate", "active"]

VARIABLE = "MUTATE_ACTIVE"
"""Environment variable: the number of the mutant that is active from the start; 0 is none."""
SYMBOL = "mutate.active"
INT = ir.IntType(64)

_number = c_int64(int(os.environ.get(VARIABLE, "0")))
binding.add_symbol(SYMBOL, addressof(_number))


def active(number: int) -> bool:
    """Return whether the mutant of this number is active."""
    return _number.value == number


def activate(number: int) -> None:
    """Activate a mutant in this process and in those that it starts."""
    _number.value = number
    os.environ[VARIABLE] = str(number)


@infer_global(active)
class _Active(ConcreteTemplate):  # type: ignore[misc]
    key = active
    cases = (signature(types.boolean, types.int64),)


@lower_builtin(active, types.int64)  # type: ignore[untyped-decorator]
def _lower(context: Any, builder: Any, sig: Any, values: Any) -> Any:
    known = builder.module.globals
    place = known[SYMBOL] if SYMBOL in known else ir.GlobalVariable(builder.module, INT, SYMBOL)
    return builder.icmp_signed("==", builder.load_atomic(place, "monotonic", 8), values[0])
