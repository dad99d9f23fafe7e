"""Programs without lookarounds and anchors of lines, as most are, become automata by one call of a kernel.

The result, its limits and its charges are those of `regex_dfa` and `regex_positions`.
"""

from __future__ import annotations

import numpy as np

from ...automata.compiled_operations import determinise_program, minimise_record
from ...automata.dfa import Dfa
from ...base.work import spend_work
from ...kernels.automata_layout import STATES, TOO_MANY_STATES
from ...kernels.pattern_layout import (
    AT_BEGIN,
    AT_END,
    FORK,
    MATCH,
    MOST_INSTRUCTIONS,
    MOST_SETS,
    REACHES,
    READ_SET,
    READINGS,
    STEPPED,
    VISITS,
)  # fmt: skip
from .charset import partition_charsets
from .lookaround_threads import pattern_too_large
from .regex_positions import PATTERN
from .regex_program import RegexProgram

__all__ = ["build_compiled"]

OPERATIONS = {"match": MATCH, "begin": AT_BEGIN, "end": AT_END}
"""Operations of instructions that are strings; those of other anchors are left to `regex_positions`."""


def build_compiled(program: RegexProgram, max_states: int) -> Dfa | None:
    """Return the Dfa of a program; None for one that the kernel does not know."""
    if len(program.code) > MOST_INSTRUCTIONS or len(program.sets) > MOST_SETS:
        return None
    operations, operands, targets = list[int](), list[int](), list[int]()
    for step in program.code:
        operand = 0
        if type(step) is int:
            operation, operand = READ_SET, step
        elif type(step) is tuple:
            operation, operand = FORK, len(targets)
            targets += (len(step), *step)
        else:
            known = OPERATIONS.get(step) if type(step) is str else None
            if known is None:
                return None
            operation = known
        operations.append(operation)
        operands.append(operand)
    bounds, classes, members = partition_charsets(program.sets)
    spend_work(1 + len(members) * len(program.sets) // 16, PATTERN)
    head = [len(operations), len(targets), len(members), len(bounds), program.rest_pc]
    request = np.array([*head, *operations, *operands, *targets, *members, *bounds, *classes], np.int32)
    status, record, scratch = determinise_program(request, operations.count(READ_SET), max_states)
    steps = sum(scratch[[REACHES, VISITS, READINGS, STEPPED]].tolist())
    spend_work(steps + int(record[STATES]) * (2 + len(members) // 3), PATTERN)
    if status == TOO_MANY_STATES:
        raise pattern_too_large(max_states)
    return Dfa(minimise_record(record))
