"""Rules that a rule begins with: those that its first mask needs, too (kernels).

Where a text reaches a rule, its mask follows the code up to the first byte, and beyond an opening bracket, since tokens
such as `["` or `[{` join it with what follows. Rules that are called there are linked at the same time.
"""

from __future__ import annotations

from typing import Any

from numba import types

from .automata_records import READ, WRITE
from .context_views import at
from .jit.compilation import entry
from .program_layout import (
    ARG_COUNT,
    ARG_EXIT,
    ARG_LOW,
    ARG_RULE,
    ARG_TARGET,
    ARG_TARGETS,
    CALL,
    ENTER,
    JUMP,
    LEAF,
    MEMBER,
    PASS,
    SPLIT,
    TEST,
    UNIQUE,
)

BRACKET = 91


@entry([types.int64(READ, types.int64, WRITE)], releases_gil=False)
def list_near_calls(code: Any, pc: Any, out: Any) -> Any:
    """Write the cells of unlinked rules that may be called from address `pc` on before a byte, or after one bracket.

    out: the first half is for the cells, the second for addresses that are still to be followed; what does not fit is
    left out. Return the number of cells.
    """
    words, cells, half = at(code.ctypes.data), at(out.ctypes.data), len(out) // 2
    todo = at(out.ctypes.data + 4 * half)
    todo[0], count, done, added = 2 * pc, 0, 0, 1
    while done < added:
        pc, is_inside = todo[done] >> 1, todo[done] & 1
        done += 1
        op = words[pc] + 0
        first, n = pc, 0
        if op == BRACKET and is_inside == 0:
            first, n, is_inside = pc + 1, 1, 1
        elif op == LEAF and words[pc + ARG_LOW] == 0:
            first, n = pc + 4, 1
        elif op == ENTER or op == UNIQUE:
            first, n = pc + 1, 1
        elif op == MEMBER:
            first, n = pc + 2, 1
        elif op == JUMP:
            first, n = words[pc + ARG_TARGET] + 0, 1
        elif op == TEST:
            first, n = pc + 4, 1
            if added < half:
                todo[added] = 2 * words[pc + ARG_EXIT] + is_inside
                added += 1
        elif op == CALL or op == PASS:
            cell, k = words[pc + ARG_RULE] + 0, 0
            while k < count and cells[k] != cell:
                k += 1
            if k == count and count < half and words[cell] == 0:
                cells[count] = cell
                count += 1
        elif op == SPLIT:
            for k in range(min(words[pc + ARG_COUNT], half - added)):
                todo[added] = 2 * words[pc + ARG_TARGETS + k] + is_inside
                added += 1
        if n and added < half:
            todo[added] = 2 * first + is_inside
            added += 1
    return count
