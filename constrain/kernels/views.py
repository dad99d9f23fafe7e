"""Reading a context from compiled code: two loads, and a slot is a pointer that is indexed like an array.

A context is passed as its address, an int: entering a kernel costs the same however many arrays it reads, nothing
is counted or wrapped around, and inner loops vectorise. The price is that nothing checks an index: every kernel
compares with the length of the slot before it grows what is there, and asks for room by `layout.FULL`.
"""

from __future__ import annotations

from typing import Any

from numba import types
from numba.core.typing.templates import ConcreteTemplate, infer_global, signature
from numba.extending import lower_builtin

__all__ = ["address", "at", "lowest", "ones", "size", "view"]


def _load(context: Any, builder: Any, address: Any, index: Any) -> Any:
    pointer = builder.inttoptr(address, context.get_value_type(types.CPointer(types.int64)))
    return builder.load(builder.gep(pointer, [index]))


def _begin(context: Any, builder: Any, ctx: Any, slot: Any) -> Any:
    return _load(context, builder, ctx, builder.shl(slot, context.get_constant(types.int64, 1)))


def view(context: Any, builder: Any, args: Any, result: Any) -> Any:
    """view(c, slot): the int32s in `slot` of the context at address `c`."""
    return builder.inttoptr(_begin(context, builder, *args), result)


def size(context: Any, builder: Any, args: Any, result: Any) -> Any:
    """size(c, slot): how many int32s there are in `slot`."""
    one = context.get_constant(types.int64, 1)
    return _load(context, builder, args[0], builder.add(builder.shl(args[1], one), one))


def address(context: Any, builder: Any, args: Any, result: Any) -> Any:
    """address(c, slot): where `slot` begins."""
    return _begin(context, builder, *args)


def at(context: Any, builder: Any, args: Any, result: Any) -> Any:
    """at(address): the int32s there."""
    return builder.inttoptr(args[0], result)


def lowest(context: Any, builder: Any, args: Any, result: Any) -> Any:
    """lowest(bits): the number of the lowest bit that is set; bits are not 0."""
    return builder.cttz(args[0], context.get_constant(types.boolean, True))


def ones(context: Any, builder: Any, args: Any, result: Any) -> Any:
    """ones(bits): how many bits of an int32 are set."""
    return builder.zext(builder.ctpop(args[0]), result)


INT, INT32, POINTER = types.int64, types.int32, types.CPointer(types.int32)


def _declare(build: Any, result: Any, *arguments: Any) -> None:
    """Lets kernels call `build` for what it builds.

    numba asks for the meaning of a call each time that it looks at it; where there is one signature, that is quick.
    """

    @infer_global(build)
    class Template(ConcreteTemplate):  # type: ignore[misc]
        key = build
        cases = (signature(result, *arguments),)

    @lower_builtin(build, *arguments)  # type: ignore[untyped-decorator]
    def lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return build(context, builder, args, context.get_value_type(result))


_declare(view, POINTER, INT, INT)
_declare(size, INT, INT, INT)
_declare(address, INT, INT, INT)
_declare(at, POINTER, INT)
_declare(lowest, INT, INT)
_declare(ones, INT, INT32)
