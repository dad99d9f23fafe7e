"""Reading a context from compiled code: two loads, and a slot is a pointer that is indexed like an array.

A context is passed as its address, an int: entering a kernel costs the same however many arrays it reads, nothing
is counted or wrapped around, and inner loops vectorise. The price is that nothing checks an index: every kernel
compares with the length of the slot before it grows what is there, and asks for room by `layout.FULL`.

numba asks for the meaning of a call each time that it looks at it. These functions have one signature each, so that
the answer is quick; as `intrinsic`s they were an eighth of the time that compiling all kernels takes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core.typing.templates import ConcreteTemplate, infer_global, signature
from numba.extending import lower_builtin

__all__ = ["address", "at", "lowest", "ones", "size", "view"]

INT, INT32, POINTER = types.int64, types.int32, types.CPointer(types.int32)


def view(c: Any, slot: Any) -> Any:
    """The int32s in `slot` of the context at address `c`."""
    raise NotImplementedError


def address(c: Any, slot: Any) -> Any:
    """Where `slot` begins."""
    raise NotImplementedError


def size(c: Any, slot: Any) -> Any:
    """How many int32s there are in `slot`."""
    raise NotImplementedError


def at(address: Any) -> Any:
    """The int32s at an address."""
    raise NotImplementedError


def lowest(bits: Any) -> Any:
    """The number of the lowest bit that is set; bits are not 0."""
    raise NotImplementedError


def ones(bits: Any) -> Any:
    """How many bits of an int32 are set."""
    raise NotImplementedError


def _load(context: Any, builder: Any, address: Any, index: Any) -> Any:
    pointer = builder.inttoptr(address, context.get_value_type(types.CPointer(types.int64)))
    return builder.load(builder.gep(pointer, [index]))


def _begin(context: Any, builder: Any, c: Any, slot: Any) -> Any:
    return _load(context, builder, c, builder.shl(slot, INT_TYPE(1)))


def _length(context: Any, builder: Any, c: Any, slot: Any) -> Any:
    return _load(context, builder, c, builder.add(builder.shl(slot, INT_TYPE(1)), INT_TYPE(1)))


def _pointer(context: Any, builder: Any, address: Any) -> Any:
    return builder.inttoptr(address, context.get_value_type(POINTER))


def _compile(function: Any, build: Callable[..., Any], result: Any, *arguments: Any) -> None:
    """What a call of the function is compiled to: the instructions that `build` makes."""

    @infer_global(function)
    class Template(ConcreteTemplate):  # type: ignore[misc]
        key = function
        cases = (signature(result, *arguments),)

    @lower_builtin(function, *arguments)  # type: ignore[untyped-decorator]
    def lower(context: Any, builder: Any, sig: Any, values: Any) -> Any:
        return build(context, builder, *values)


INT_TYPE, BIT_TYPE = ir.IntType(64), ir.IntType(1)
_compile(view, lambda context, builder, *values: _pointer(context, builder, _begin(context, builder, *values)),
         POINTER, INT, INT)  # fmt: skip
_compile(address, _begin, INT, INT, INT)
_compile(size, _length, INT, INT, INT)
_compile(at, _pointer, POINTER, INT)
_compile(lowest, lambda context, builder, bits: builder.cttz(bits, BIT_TYPE(1)), INT, INT)
_compile(ones, lambda context, builder, bits: builder.zext(builder.ctpop(bits), INT_TYPE), INT, INT32)
