"""Apply masks to logits: write minus infinity where a bit is not set, 32 logits at a time (kernels).

There is no arithmetic on logits, so they are integers of their width here, and minus infinity is a bit pattern. A word
of the mask becomes a vector `<32 x i1>`, so each SIMD register needs one select. Where all bits are set nothing is
written; where none is set nothing is read.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from .context_views import at, int64s_at
from .jit.compilation import entry, inlined

GROUP = 8
"""Words that are classified together: branches on single words would be mispredicted in a mixed mask."""
NONE_SET, SOME_SET, ALL_SET = 0, 1, 2
"""Kinds of a group of words: no bit is set, some are, all are."""


def _make_masked_store(width: int) -> Any:
    """Return an intrinsic (address, bits, pattern): write the pattern to those of 32 logits whose bit is not set."""

    @intrinsic  # type: ignore[untyped-decorator]
    def keep(typingctx: Any, place: Any, bits: Any, pattern: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            whole, lane = ir.IntType(width), ir.IntType(32)
            vector = ir.VectorType(whole, 32)
            undefined = ir.Constant(vector, ir.Undefined)
            one = builder.insert_element(undefined, builder.trunc(args[2], whole), lane(0))
            value = builder.shuffle_vector(one, undefined, ir.Constant(ir.VectorType(lane, 32), [0] * 32))
            chosen = builder.bitcast(builder.trunc(args[1], lane), ir.VectorType(ir.IntType(1), 32))
            pointer = builder.inttoptr(args[0], vector.as_pointer())
            found = builder.load(pointer, align=width // 8)
            builder.store(builder.select(chosen, found, value), pointer, align=width // 8)
            return context.get_dummy_value()

        return types.void(types.int64, types.int64, types.int64), codegen

    return keep


def _make_pointer_cast(kind: Any) -> Any:
    """Return an intrinsic that casts an address to a pointer to integers of a type."""

    @intrinsic  # type: ignore[untyped-decorator]
    def integers_at(typingctx: Any, address: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.inttoptr(args[0], context.get_value_type(signature.return_type))

        return types.CPointer(kind)(types.int64), codegen

    return integers_at


_store_masked16, _store_masked32, _store_masked64 = (
    _make_masked_store(16),
    _make_masked_store(32),
    _make_masked_store(64),
)
_at16, _at32, _at64 = _make_pointer_cast(types.int16), _make_pointer_cast(types.int32), _make_pointer_cast(types.int64)


@intrinsic  # type: ignore[untyped-decorator]
def classify_words(typingctx: Any, address: Any) -> Any:
    """Return the kind of the GROUP mask words at an address, compared as one wide integer."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        number, whole = ir.IntType(32 * GROUP), ir.IntType(64)
        found = builder.load(builder.inttoptr(args[0], number.as_pointer()), align=4)
        every = builder.icmp_unsigned("==", found, ir.Constant(number, (1 << 32 * GROUP) - 1))
        none = builder.icmp_unsigned("==", found, ir.Constant(number, 0))
        kind = builder.select(every, ir.Constant(whole, ALL_SET), ir.Constant(whole, SOME_SET))
        return builder.select(none, ir.Constant(whole, NONE_SET), kind)

    return types.int64(types.int64), codegen


@inlined("int64(int64, int64, int64, int64)")
def fill_logits(start: Any, count: Any, width: Any, pattern: Any) -> Any:
    """Write the pattern to `count` logits of `width` bits from address `start` on. Return 0."""
    if width == 32:
        for i in range(count):
            _at32(start)[i] = pattern
    elif width == 16:
        for i in range(count):
            _at16(start)[i] = pattern
    else:
        for i in range(count):
            _at64(start)[i] = pattern
    return 0


@inlined("int64(int64, int64, int64, int64, int64, int64)")
def mask_logits(start: Any, masks: Any, first: Any, count: Any, width: Any, pattern: Any) -> Any:
    """Write the pattern to those of 32 * count logits at `start` that words first .. first + count - 1 do not allow.

    masks: address of the mask. Return 0.
    """
    mask = at(masks)
    if width == 32:
        for w in range(count):
            _store_masked32(start + 128 * w, mask[first + w], pattern)
    elif width == 16:
        for w in range(count):
            _store_masked16(start + 64 * w, mask[first + w], pattern)
    else:
        for w in range(count):
            _store_masked64(start + 256 * w, mask[first + w], pattern)
    return 0


@entry("int64(int64, int64, int64, int64, int64, int64, int64, int64, int64, int64, int64)")
def apply_masks(
    logits: Any, stride: Any, columns: Any, masks: Any, mask_stride: Any, words: Any, rows: Any,
    first: Any, last: Any, width: Any, pattern: Any,
) -> Any:  # fmt: skip
    """Write `pattern` to the logits of `width` bits that masks first .. last - 1 do not allow. Return 0.

    logits, masks: addresses of row 0; stride, mask_stride: in bytes. columns: logits of a row. words: of a mask;
    columns beyond are not allowed. rows: address of int64s, the row of logits of each mask; 0: in order.
    """
    size = width // 8
    full_words = min(words, columns >> 5)
    for k in range(first, last):
        row, mask = logits + (int64s_at(rows)[k] if rows else k) * stride, masks + k * mask_stride
        for group in range(0, full_words - GROUP + 1, GROUP):
            kind = classify_words(mask + 4 * group)
            if kind == NONE_SET:
                fill_logits(row + 32 * size * group, 32 * GROUP, width, pattern)
            elif kind == SOME_SET:
                mask_logits(row + 32 * size * group, mask, group, GROUP, width, pattern)
        tail = full_words % GROUP
        mask_logits(row + 32 * size * (full_words - tail), mask, full_words - tail, tail, width, pattern)
        written = 32 * full_words
        if words > full_words:  # the last word is used in part
            for i in range(written, columns):
                if at(mask)[full_words] >> (i & 31) & 1 == 0:
                    fill_logits(row + size * i, 1, width, pattern)
            written = columns
        fill_logits(row + size * written, columns - written, width, pattern)
    return 0
