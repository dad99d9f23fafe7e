"""Reading a context from compiled code: two loads, and a slot is a pointer that is indexed like an array.

A context is passed as its address, an int: entering a kernel costs the same however many arrays it reads, nothing
is counted or wrapped around, and inner loops vectorise. The price is that nothing checks an index: every kernel
compares with the length of the slot before it grows what is there, and asks for room by `layout.FULL`.
"""

from __future__ import annotations

from typing import Any

from numba import types
from numba.extending import intrinsic

__all__ = ["address", "at", "lowest", "ones", "size", "view"]


def _load(context: Any, builder: Any, address: Any, index: Any) -> Any:
    pointer = builder.inttoptr(address, context.get_value_type(types.CPointer(types.int64)))
    return builder.load(builder.gep(pointer, [index]))


def _begin(context: Any, builder: Any, ctx: Any, slot: Any) -> Any:
    return _load(context, builder, ctx, builder.shl(slot, context.get_constant(types.int64, 1)))


@intrinsic  # type: ignore[untyped-decorator]
def view(typingctx: Any, ctx: Any, slot: Any) -> Any:
    """The int32s in `slot` of the context at address `ctx`."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.inttoptr(_begin(context, builder, *args), context.get_value_type(signature.return_type))

    return types.CPointer(types.int32)(types.int64, types.int64), codegen


@intrinsic  # type: ignore[untyped-decorator]
def size(typingctx: Any, ctx: Any, slot: Any) -> Any:
    """How many int32s there are in `slot`."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        one = context.get_constant(types.int64, 1)
        return _load(context, builder, args[0], builder.add(builder.shl(args[1], one), one))

    return types.int64(types.int64, types.int64), codegen


@intrinsic  # type: ignore[untyped-decorator]
def address(typingctx: Any, ctx: Any, slot: Any) -> Any:
    """Where `slot` begins."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _begin(context, builder, *args)

    return types.int64(types.int64, types.int64), codegen


@intrinsic  # type: ignore[untyped-decorator]
def at(typingctx: Any, address: Any) -> Any:
    """The int32s at an address."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.inttoptr(args[0], context.get_value_type(signature.return_type))

    return types.CPointer(types.int32)(types.int64), codegen


@intrinsic  # type: ignore[untyped-decorator]
def lowest(typingctx: Any, bits: Any) -> Any:
    """The number of the lowest bit that is set; bits: not 0."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], context.get_constant(types.boolean, True))

    return types.int64(types.int64), codegen


@intrinsic  # type: ignore[untyped-decorator]
def ones(typingctx: Any, bits: Any) -> Any:
    """How many bits of an int32 are set."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.zext(builder.ctpop(args[0]), context.get_value_type(types.int64))

    return types.int64(types.int32), codegen
