"""Reading byte-code: which instructions may follow one within its rule (see `kernels.program_layout`)."""

from __future__ import annotations

from collections.abc import Sequence

from ..kernels import layout as at

__all__ = ["list_following"]


def list_following(code: Sequence[int], pc: int) -> list[int]:
    """Return the addresses that may follow the instruction at `pc` within its rule, a byte or an opcode."""
    op = code[pc]
    if op < 256:
        return [pc + 1]
    if op == at.JUMP:
        return [code[pc + at.ARG_TARGET]]
    if op == at.SPLIT:
        return list(code[pc + at.ARG_TARGETS : pc + at.ARG_TARGETS + code[pc + at.ARG_COUNT]])
    if op == at.END:
        return []
    if op == at.TEST:
        return [pc + at.LENGTHS[op - 256], code[pc + at.ARG_EXIT]]
    if op == at.KEYS:
        targets, count = code[code[pc + at.ARG_OBJECT] + at.OBJ_TARGETS], code[code[pc + at.ARG_OBJECT] + at.OBJ_COUNT]
        return list(code[targets : targets + count])
    if op == at.OTHER:
        return [code[pc + at.ARG_NEXT]]
    if op == at.MEMBER_END and code[pc + at.ARG_EQUAL]:
        return [pc + at.LENGTHS[op - 256], code[pc + at.ARG_EQUAL]]
    return [pc + at.LENGTHS[op - 256]]
