"""Access to a context from compiled code: a load of its (address, length) pair gives a slot as a typed pointer.

A context is passed as its address, an int: entering a kernel costs the same however many arrays it reads, there is no
reference counting and no index wraps around, so inner loops vectorise. In return, no
index is checked: every kernel compares with the length of a slot before it appends to it, and requests a larger slot
by `context_layout.FULL`.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types

from .jit.compiled_calls import define_call

__all__ = [
    "COMPARED", "address", "at", "copy_memory", "count_ones", "find_changed_words", "find_filled_words", "int64s_at",
    "load_acquire", "lowest_bit", "size", "store_release", "view",
]  # fmt: skip

INT, INT32, POINTER, POINTER64 = types.int64, types.int32, types.CPointer(types.int32), types.CPointer(types.int64)


def view(c: Any, slot: Any) -> Any:
    """Return a pointer to the int32s in `slot` of the context at address `c`."""
    raise NotImplementedError


def address(c: Any, slot: Any) -> Any:
    """Return the address of `slot`."""
    raise NotImplementedError


def size(c: Any, slot: Any) -> Any:
    """Return the number of int32s in `slot`."""
    raise NotImplementedError


def at(address: Any) -> Any:
    """Return a pointer to the int32s at an address."""
    raise NotImplementedError


def int64s_at(address: Any) -> Any:
    """Return a pointer to the int64s at an address."""
    raise NotImplementedError


def lowest_bit(bits: Any) -> Any:
    """Return the index of the lowest bit that is set; `bits` must not be 0."""
    raise NotImplementedError


def count_ones(bits: Any) -> Any:
    """Return the number of bits of an int32 that are set."""
    raise NotImplementedError


def copy_memory(target: Any, source: Any, count: Any) -> Any:
    """Copy int32s between addresses of memory that does not overlap. Return 0.

    By memcpy, which takes half the time of a loop for a mask: it need not read the memory that it overwrites.
    """
    raise NotImplementedError


COMPARED = 32
"""Words that are compared at once, by vector instructions in place of a loop."""


def find_changed_words(words: Any, others: Any) -> Any:
    """Return COMPARED bits, of which bit k is set if words[k] and others[k] differ."""
    raise NotImplementedError


def find_filled_words(words: Any) -> Any:
    """Return COMPARED bits, of which bit k is set if words[k] is not 0."""
    raise NotImplementedError


def load_acquire(words: Any, index: Any) -> Any:
    """Return words[index]; later loads see what its writer had written before (see `shared_words`)."""
    raise NotImplementedError


def store_release(words: Any, index: Any, value: Any) -> Any:
    """Write words[index], after all that was written before. Return 0."""
    raise NotImplementedError


def _load(context: Any, builder: Any, address: Any, index: Any) -> Any:
    pointer = builder.inttoptr(address, context.get_value_type(POINTER64))
    return builder.load(builder.gep(pointer, [index]))


def _begin(context: Any, builder: Any, c: Any, slot: Any) -> Any:
    return _load(context, builder, c, builder.shl(slot, INT_TYPE(1)))


def _length(context: Any, builder: Any, c: Any, slot: Any) -> Any:
    return _load(context, builder, c, builder.add(builder.shl(slot, INT_TYPE(1)), INT_TYPE(1)))


def _pointer(context: Any, builder: Any, address: Any) -> Any:
    return builder.inttoptr(address, context.get_value_type(POINTER))


def _load_block(builder: Any, words: Any) -> Any:
    return builder.load(builder.bitcast(words, BLOCK_TYPE.as_pointer()), align=4)


def _find_changed_words(context: Any, builder: Any, words: Any, others: Any) -> Any:
    changed = builder.icmp_signed("!=", _load_block(builder, words), _load_block(builder, others))
    return builder.zext(builder.bitcast(changed, ir.IntType(COMPARED)), INT_TYPE)


def _find_filled_words(context: Any, builder: Any, words: Any) -> Any:
    filled = builder.icmp_signed("!=", _load_block(builder, words), ir.Constant(BLOCK_TYPE, [0] * COMPARED))
    return builder.zext(builder.bitcast(filled, ir.IntType(COMPARED)), INT_TYPE)


def _copy_memory(context: Any, builder: Any, target: Any, source: Any, count: Any) -> Any:
    byte_pointer = ir.IntType(8).as_pointer()
    copy = builder.module.declare_intrinsic("llvm.memcpy", [byte_pointer, byte_pointer, INT_TYPE])
    ends = [builder.inttoptr(address, byte_pointer) for address in (target, source)]
    builder.call(copy, [*ends, builder.shl(count, INT_TYPE(2)), BIT_TYPE(0)])
    return INT_TYPE(0)


def _load_acquire(context: Any, builder: Any, words: Any, index: Any) -> Any:
    return builder.load_atomic(builder.gep(words, [index]), "acquire", 4)


def _store_release(context: Any, builder: Any, words: Any, index: Any, value: Any) -> Any:
    builder.store_atomic(builder.trunc(value, ir.IntType(32)), builder.gep(words, [index]), "release", 4)
    return INT_TYPE(0)


INT_TYPE, BIT_TYPE, BLOCK_TYPE = ir.IntType(64), ir.IntType(1), ir.VectorType(ir.IntType(32), COMPARED)
define_call(view, lambda context, builder, *values: _pointer(context, builder, _begin(context, builder, *values)),
            POINTER, INT, INT)  # fmt: skip
define_call(address, _begin, INT, INT, INT)
define_call(size, _length, INT, INT, INT)
define_call(at, _pointer, POINTER, INT)
define_call(int64s_at, lambda context, builder, address: builder.inttoptr(address, context.get_value_type(POINTER64)),
            POINTER64, INT)  # fmt: skip
define_call(copy_memory, _copy_memory, INT, INT, INT, INT)
define_call(find_changed_words, _find_changed_words, INT, POINTER, POINTER)
define_call(find_filled_words, _find_filled_words, INT, POINTER)
define_call(load_acquire, _load_acquire, INT32, POINTER, INT)
define_call(store_release, _store_release, INT, POINTER, INT, INT)
define_call(lowest_bit, lambda context, builder, bits: builder.cttz(bits, BIT_TYPE(1)), INT, INT)
define_call(count_ones, lambda context, builder, bits: builder.zext(builder.ctpop(bits), INT_TYPE), INT, INT32)
