"""The switch of mutant schemata: the active mutant, for Python and compiled code, and the mutants that were reached.

This file is copied into the scratch checkout as `constrain/switch.py`; nothing in the library imports it. The number is
64 bits of memory with a symbol, loaded atomically at each use, so that no compiler folds it or moves it out of a loop.
Each use also records its number as reached: a test that does not reach a mutant need not be run.
"""

from __future__ import annotations

import os
from ctypes import addressof, c_int64, c_uint8, memset, sizeof
from typing import Any

from llvmlite import binding, ir
from numba import types
from numba.core.typing.templates import ConcreteTemplate, infer_global, signature
from numba.extending import lower_builtin

__all__ = ["VARIABLE", "activate", "active", "take_reached"]

VARIABLE = "MUTATE_ACTIVE"
"""Environment variable: number of the mutant that is active at the start; 0 for none."""
SYMBOL, REACHED = "mutate.active", "mutate.reached"
MOST = 1 << 16
"""Upper bound of the numbers of mutants."""
INT, BYTE = ir.IntType(64), ir.IntType(8)

_number = c_int64(int(os.environ.get(VARIABLE, "0")))
_reached = (c_uint8 * MOST)()
binding.add_symbol(SYMBOL, addressof(_number))
binding.add_symbol(REACHED, addressof(_reached))


def active(number: int) -> bool:
    """Return whether the mutant of this number is active."""
    _reached[number] = 1
    return _number.value == number


def take_reached() -> list[int]:
    """Return the numbers of the mutants that were reached since the last call."""
    found = [number for number, is_reached in enumerate(bytes(_reached)) if is_reached]
    memset(_reached, 0, sizeof(_reached))
    return found


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
    place = _external(builder.module, SYMBOL, INT)
    reached = _external(builder.module, REACHED, ir.ArrayType(BYTE, MOST))
    builder.store(BYTE(1), builder.gep(reached, [INT(0), values[0]]))
    return builder.icmp_signed("==", builder.load_atomic(place, "monotonic", 8), values[0])


def _external(module: Any, symbol: str, kind: Any) -> Any:
    """Return the module variable that represents external memory."""
    return module.globals[symbol] if symbol in module.globals else ir.GlobalVariable(module, kind, symbol)
