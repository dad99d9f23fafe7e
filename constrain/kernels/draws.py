"""Inverse transform sampling of tokens from a row of logits under a mask, without an array of V floats (kernels).

A row is float32 or float64 [V], natural logs; a mask is int32 [words], 32 tokens per word. `sum_masses` makes one pass
and sums exp(row) over the allowed tokens of each word, and over groups of 64 words. `find_token` then scans the sums of
groups, the words of one group, and the tokens of one word. Only these sums are stored, and a token is chosen by the
same floats that were summed. NaN among the allowed tokens makes the sum NaN.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import float32, float64, types
from numba.extending import intrinsic, overload

from .call_layout import GROUP
from .jit.compilation import OPTIONS, entry, inlined

BLOCK_TOKENS = 128
"""Tokens that `list_above` tests together."""
FALL = 16.0
"""Factor by which `list_likeliest` lowers, round by round, what words must sum to."""
FAINT_SHARE = 1e-12
"""Share of the mass of a mask below which it takes all words in one round."""
CLOSE = 1 - 1e-6
"""Rounding: a word that sums to less than this times a mass has no token of that mass."""
ANY_ORDER = {"reassoc", "contract"}
"""fastmath flags that let sums be vectorised. Not for `compute_mass`, whose operations must not be reordered."""

LOW32, LOW64 = np.float32(-87.0), np.float64(-708.0)
"""exp(x) is taken as 0 below: there 2^n is subnormal."""
ROUND32, ROUND64 = np.float32(1.5 * 2**23 + 127), np.float64(1.5 * 2**52 + 1023)
"""Adding it to x rounds x to an integer n and leaves n + bias in the low bits, so a shift makes 2^n."""
LOG2E32, LOG2E64 = np.float32(1.4426950408889634), np.float64(1.4426950408889634)
HIGH32, TAIL32 = np.float32(0.693359375), np.float32(-2.12194440e-4)
HIGH64, TAIL64 = np.float64(6.93147180369123816490e-01), np.float64(1.90821492927058770002e-10)
"""log 2 in two parts (Cody and Waite, 1980); n times the first is exact."""
ONE32 = np.float32(1.0)
A2, A3, A4, A5, A6 = (
    np.float32(c)
    for c in (0.4999999403953552, 0.16666509211063385, 0.04166853055357933, 0.008370140567421913, 0.0013811651151627302)
)
"""Minimax coefficients of exp(r) - 1 - r on |r| <= log(2) / 2: within 4e-9."""


@intrinsic  # type: ignore[untyped-decorator]
def _power_of_2(typingctx: Any, rounded: Any) -> Any:
    """Return 2^n, given n + ROUND."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        integer = context.get_value_type(types.int32 if rounded == float32 else types.int64)
        shift = integer(23 if rounded == float32 else 52)
        bits = builder.shl(builder.bitcast(args[0], integer), shift)
        return builder.bitcast(bits, context.get_value_type(rounded))

    return rounded(rounded), codegen


@intrinsic  # type: ignore[untyped-decorator]
def _select_allowed(typingctx: Any, bits: Any, lane: Any, possible: Any, value: Any) -> Any:
    """Return `value` if bit `lane` of an int32 is set and `possible`, else 0; in 32 bits, where numba would use 64."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        word = context.get_value_type(types.int32)
        bit = builder.and_(args[0], builder.shl(word(1), builder.trunc(args[1], word)))
        both = builder.and_(builder.icmp_unsigned("!=", bit, word(0)), args[2])
        return builder.select(both, args[3], context.get_constant(value, 0))

    return value(types.int32, types.int64, types.boolean, value), codegen


@intrinsic  # type: ignore[untyped-decorator]
def _find_lowest_bit(typingctx: Any, bit: Any) -> Any:
    """Return the index of the lowest bit that is set."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], context.get_constant(types.boolean, 1))

    return types.int64(types.int64), codegen


@intrinsic  # type: ignore[untyped-decorator]
def _or_if_above(typingctx: Any, so_far: Any, x: Any, floor: Any) -> Any:
    """Return so_far | (x > floor or x is NaN), an int32, in 32 bits as `_select_allowed`."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        higher = builder.fcmp_unordered(">", args[1], args[2])
        return builder.or_(args[0], builder.zext(higher, context.get_value_type(types.int32)))

    return types.int32(types.int32, x, x), codegen


def compute_mass(x: Any, bits: Any, lane: Any) -> Any:
    """Return exp(x) for x < 80, NaN for NaN; 0 below LOW, and if bit `lane` of `bits` is not set.

    Relative error below 2e-7 for float32, 1e-15 for float64. Range reduction x = n log 2 + r, |r| <= log(2) / 2, and a
    polynomial of r times 2^n (Cody and Waite, 1980), without branches, so that it vectorises.
    """
    raise NotImplementedError


@overload(compute_mass, jit_options={**OPTIONS, "fastmath": {"contract"}})
def _mass_of(x: Any, bits: Any, lane: Any) -> Any:
    def single(x: Any, bits: Any, lane: Any) -> Any:
        y = LOW32 if x < LOW32 else x
        rounded = y * LOG2E32 + ROUND32
        n = rounded - ROUND32
        r = (y - n * HIGH32) - n * TAIL32
        p = ONE32 + r * (ONE32 + r * (A2 + r * (A3 + r * (A4 + r * (A5 + r * A6)))))
        return _select_allowed(bits, lane, not (x < LOW32), p * _power_of_2(rounded))

    def double(x: Any, bits: Any, lane: Any) -> Any:
        y = LOW64 if x < LOW64 else x
        rounded = y * LOG2E64 + ROUND64
        n = rounded - ROUND64
        r = (y - n * HIGH64) - n * TAIL64
        p = 1 / 6227020800.0  # Taylor's, up to r^13
        p = 1 / 479001600.0 + r * p
        p = 1 / 39916800.0 + r * p
        p = 1 / 3628800.0 + r * p
        p = 1 / 362880.0 + r * p
        p = 1 / 40320.0 + r * p
        p = 1 / 5040.0 + r * p
        p = 1 / 720.0 + r * p
        p = 1 / 120.0 + r * p
        p = 1 / 24.0 + r * p
        p = 1 / 6.0 + r * p
        p = 0.5 + r * p
        p = 1.0 + (r + r * r * p)
        return _select_allowed(bits, lane, not (x < LOW64), p * _power_of_2(rounded))

    return single if x == float32 else double


@intrinsic  # type: ignore[untyped-decorator]
def make_zero(typingctx: Any, row: Any) -> Any:
    """Return 0 of the row's dtype."""
    return row.dtype(row), lambda context, builder, signature, args: context.get_constant(row.dtype, 0)


def _row(dtype: Any) -> Any:
    return types.Array(dtype, 1, "C", readonly=True)


MASK = types.Array(types.int32, 1, "C", readonly=True)


@entry([float64(_row(t), MASK, float64[::1]) for t in (float32, float64)], fastmath=ANY_ORDER)
def sum_masses(row: Any, mask: Any, sums: Any) -> Any:
    """Return the sum of exp(row) over the tokens of a mask, and write the partial sums to `sums`.

    sums: float64 [words + ceil(words / GROUP)], written: of words, then of groups. No token of the mask may be beyond
    the row, and no allowed logit above 80.
    """
    words = len(mask)
    full_words = min(words, len(row) >> 5)
    total, zero = 0.0, make_zero(row)
    for group in range((words + GROUP - 1) // GROUP):
        group_sum = 0.0
        for word in range(group * GROUP, min(group * GROUP + GROUP, words)):
            bits, added = mask[word], zero
            if bits == 0:
                sums[word] = 0.0
                continue
            if word < full_words:
                for lane in range(32):
                    added += compute_mass(row[np.uintp(32 * word + lane)], bits, lane)
            else:
                for lane in range(len(row) & 31):
                    added += compute_mass(row[np.uintp(32 * word + lane)], bits, lane)
            sums[word] = added
            group_sum += added
        sums[words + group] = group_sum
        total += group_sum
    return total


@entry([types.int64(_row(t), MASK, float64[::1], float64) for t in (float32, float64)])
def find_token(row: Any, mask: Any, sums: Any, uniform: Any) -> Any:
    """Return the token whose cumulative mass first exceeds `uniform` times the total; never one of mass 0.

    sums: written by `sum_masses` for this row and mask, not all 0. uniform: in [0, 1).
    """
    words = len(mask)
    total = 0.0
    for group in range(words, len(sums)):
        total += sums[group]
    target, group, low, high = uniform * total, words, 0, words
    left = target  # the target relative to the group, then to the word
    for group in range(words, len(sums)):  # rounding may exceed the last sum: then take the last with mass
        if sums[group] > 0:
            low, total, left = GROUP * (group - words), sums[group], target
            if target < total:
                break
            target -= total
    target, high, word = min(left, total), min(low + GROUP, words), low
    left = target
    for at in range(low, high):
        if sums[at] > 0:
            word, total, left = at, sums[at], target
            if target < total:
                break
            target -= total
    target, token = min(left, total), 32 * word
    for lane in range(min(32, len(row) - 32 * word)):
        mass = float64(compute_mass(row[np.uintp(32 * word + lane)], mask[word], lane))
        if mass > 0:
            token = 32 * word + lane
            if target < mass:
                break
            target -= mass
    return token


@entry([float64(_row(t), types.int32[::1], float64[::1], types.int64[::1]) for t in (float32, float64)])
def remove_tokens(row: Any, mask: Any, sums: Any, tokens: Any) -> Any:
    """Remove tokens from a mask, and recompute the sums of their words and groups. Return the new total."""
    words = len(mask)
    for i in range(len(tokens)):
        word, added = tokens[i] >> 5, 0.0
        mask[word] &= ~(1 << (tokens[i] & 31))
        for lane in range(min(32, len(row) - 32 * word)):
            added += compute_mass(row[np.uintp(32 * word + lane)], mask[word], lane)
        sums[word] = added
        group, added = word // GROUP, 0.0
        for at in range(GROUP * group, min(GROUP * (group + 1), words)):
            added += sums[at]
        sums[words + group] = added
    total = 0.0
    for group in range(words, len(sums)):
        total += sums[group]
    return total


@inlined("void(float64[::1], float64)")
def replace_least(heap: Any, added: Any) -> Any:
    """Replace the least number of a heap, its first, by a larger one."""
    at, child = 0, 1
    while child < len(heap):
        if child + 1 < len(heap) and heap[child + 1] < heap[child]:
            child += 1
        if added <= heap[child]:
            break
        heap[at] = heap[child]
        at, child = child, 2 * child + 1
    heap[at] = added


@entry([types.int64(_row(t), MASK, float64[::1], types.int64[::1], float64[::1]) for t in (float32, float64)])
def list_likeliest(row: Any, mask: Any, sums: Any, tokens: Any, logs: Any) -> Any:
    """List the likeliest tokens of a mask with logits above -inf: as many as fit. Return their number.

    sums: written by `sum_masses` for this row and mask. tokens, logs: int64, float64 [n], n > 0, written: the tokens,
    ascending, and their logits. Of tokens with equal logits, the first are taken.

    No token is likelier than its word. So a heap of the n largest logits so far tells which words can be skipped,
    nearly all of them if those with much mass come first: words are taken by their sums, each round down to a FALL-th
    of the one before.
    """
    words, total, bar, upper = len(mask), 0.0, 0.0, np.inf
    for group in range(words, len(sums)):
        total += sums[group]
    lower = total / len(tokens)
    for i in range(len(logs)):
        logs[i] = -np.inf
    while True:
        for word in range(words):
            if not (lower < sums[word] <= upper) or sums[word] < bar:
                continue
            bits = types.int64(mask[word]) & 0xFFFFFFFF
            while bits:
                low = bits & -bits
                bits ^= low
                logit = float64(row[32 * word + _find_lowest_bit(low)])
                if logit > logs[0]:
                    replace_least(logs, logit)
            bar = float64(compute_mass(logs[0], np.int32(1), 0)) * CLOSE
        if bar >= lower:
            break
        upper, lower = lower, lower / FALL if lower > FAINT_SHARE * total else 0.0
    floor, ties, count = logs[0], 0, 0
    if floor > -np.inf:
        for i in range(len(logs)):
            ties += logs[i] == floor
    for word in range(words):
        if sums[word] == 0 or sums[word] < bar:
            continue
        bits = types.int64(mask[word]) & 0xFFFFFFFF
        while bits:
            low = bits & -bits
            bits ^= low
            token = 32 * word + _find_lowest_bit(low)
            logit = float64(row[token])
            if logit > floor or (ties > 0 and logit == floor):
                ties -= logit == floor
                tokens[count], logs[count] = token, logit
                count += 1
    return count


@entry([types.int64(MASK, types.int64[::1])])
def list_tokens(mask: Any, tokens: Any) -> Any:
    """Write the tokens of a mask to `tokens`, ascending. Return their number, or len(tokens) + 1 if there are more."""
    count = 0
    for word in range(len(mask)):
        bits = types.int64(mask[word]) & 0xFFFFFFFF
        while bits:
            if count == len(tokens):
                return count + 1
            low = bits & -bits
            tokens[count] = 32 * word + _find_lowest_bit(low)
            bits ^= low
            count += 1
    return count


@entry([types.int64(_row(t), t, types.int64[::1], float64[::1], float64[::1]) for t in (float32, float64)])
def list_above(row: Any, floor: Any, tokens: Any, masses: Any, edges: Any) -> Any:
    """List the tokens with a logit above `floor`, or NaN: as many as fit. Return the number of all.

    tokens, masses, edges: int64, float64, float64 [n], written: the tokens, ascending, exp of their logits (of 80 if
    above), and the cumulative sums of these.
    """
    count, total, limit = 0, 0.0, float64(80.0)
    for begin in range(0, len(row), BLOCK_TOKENS):
        end = min(begin + BLOCK_TOKENS, len(row))
        any_above = np.int32(0)
        for at in range(begin, end):
            any_above = _or_if_above(any_above, row[np.uintp(at)], floor)
        if any_above:
            for at in range(begin, end):
                if not (row[at] <= floor):
                    if count < len(tokens):
                        logit = float64(row[at])
                        mass = compute_mass(limit if logit > limit else logit, np.int32(1), 0)
                        total += mass
                        tokens[count], masses[count], edges[count] = at, mass, total
                    count += 1
    return count


@entry([types.int64(MASK, types.int64[::1], float64[::1], types.int32[::1], types.int64[::1], float64[::1])])
def split_mask(mask: Any, tokens: Any, masses: Any, others: Any, allowed: Any, edges: Any) -> Any:
    """Split a mask into some tokens, with masses, and all others. Return the number of the former that it allows.

    tokens: int64 [n], different ones; those beyond the mask are not allowed. masses: float64 [n]. others: int32
    [words], written: the mask without these tokens. allowed, edges: int64, float64 [n], written: those of these tokens
    that it allows, in the same order, and the cumulative sums of their masses. If no other token is left, -1 - number
    is returned.
    """
    any_other, count, total = np.int32(0), 0, 0.0
    for word in range(len(mask)):
        others[word] = mask[word]
    for i in range(len(tokens)):
        token = tokens[i]
        word, bit = token >> 5, np.int32(1 << (token & 31))
        if word < len(mask) and mask[word] & bit:
            others[word] &= ~bit
            total += masses[i]
            allowed[count], edges[count] = token, total
            count += 1
    for word in range(len(mask)):
        any_other |= others[word]
    return count if any_other else -1 - count
