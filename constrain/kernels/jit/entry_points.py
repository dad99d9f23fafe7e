"""Entry points of kernels: calls that bypass numba's dispatcher, and addresses of arrays.

The dispatcher inspects the type of every argument to select a specialisation; most of our functions have one. Calling
that one directly saves 100 ns per call. It does not check its arguments: they must have exactly its types.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import types
from numba.extending import intrinsic

from . import numba_internals
from .compilation import entry

__all__ = ["address_of", "entry_point", "int64s_at"]


def entry_point(compiled: Any) -> Callable[..., int]:
    """Return the specialisation of an `entry` with one signature, to be called with exactly its argument types."""
    if numba_internals.problems:
        return compiled  # type: ignore[no-any-return]
    (version,) = compiled.overloads.values()
    return version.entry_point  # type: ignore[no-any-return]


@entry("int64(int32[::1])")
def address_of(array: Any) -> Any:
    """Return the address of the data of an array, in a twentieth of the time that `array.ctypes.data` takes."""
    return array.ctypes.data


@intrinsic  # type: ignore[untyped-decorator]
def int64s_at(typingctx: Any, address: Any) -> Any:
    """Return a pointer to the int64s at an address."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.inttoptr(args[0], context.get_value_type(signature.return_type))

    return types.CPointer(types.int64)(types.int64), codegen
