"""Doors into kernels: the way in without numba's dispatcher, and arrays as the addresses that kernels take.

The dispatcher looks at the type of every argument, to choose among versions; most of ours have one. `door` is that
version itself, 100 ns a call less. It believes its arguments: an int where an int is meant, an array of just that type.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import types
from numba.extending import intrinsic

from .compilation import entry

__all__ = ["address_of", "door", "int64s_at"]


def door(compiled: Any) -> Callable[..., int]:
    """An `entry` with one signature, to be called with arguments of exactly its types."""
    (version,) = compiled.overloads.values()
    return version.entry_point  # type: ignore[no-any-return]


@entry("int64(int32[::1])")
def address_of(array: Any) -> Any:
    """Where the data of an array begins: a twentieth of what `array.ctypes.data` costs."""
    return array.ctypes.data


@intrinsic  # type: ignore[untyped-decorator]
def int64s_at(typingctx: Any, address: Any) -> Any:
    """The int64s at an address."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.inttoptr(args[0], context.get_value_type(signature.return_type))

    return types.CPointer(types.int64)(types.int64), codegen
