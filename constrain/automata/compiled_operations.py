"""Operations on automata by compiled kernels: arrays for their results, limits of states, charges to the work budget.

Automata are records (`kernels.automata_layout`). A construction writes to an array of an estimated length; where that
is too short, it is called again with a longer one. Charges are computed from the states that it expanded, so they do
not depend on the estimate.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..base.work import UNLIMITED, active_budget, spend_work
from ..kernels import pattern_layout
from ..kernels.automata_layout import (
    CLASS_PARTS,
    CLASSES,
    DIFFERENCE,
    HEADER_W,
    INTERSECTION,
    MEMBER_PARTS,
    MEMBERS,
    NO_BOUND,
    NO_SPACE,
    POOL_HEADER_W,
    RANGES,
    REVERSED_DIFFERENCE,
    SCRATCH_HEADER_W,
    STATE_PARTS,
    STATES,
    TOO_MANY_STATES,
    UNION,
)  # fmt: skip
from ..kernels.entry_points import (
    bound_lengths,
    concatenate_automata,
    determinise_pattern,
    have_common_text,
    measure_lengths,
    minimise_automaton,
    product_automaton,
    repeat_automaton,
)
from .boolean_operations import PRODUCT, too_many_states

__all__ = [
    "DIFFERENCE", "INTERSECTION", "REVERSED_DIFFERENCE", "UNION", "Record", "bound_record_lengths", "combine_records",
    "concatenate_records", "determinise_program", "measure_record", "minimise_record", "pack_record",
    "records_intersect", "repeat_record",
]  # fmt: skip

Record: TypeAlias = NDArray[np.int32]
"""An automaton, int32[...]: see `kernels.automata_layout`."""

CONCATENATION = "a concatenation or repetition of patterns"
"""Name of the construction, for messages of the work budget."""

WIDE = 300
"""States above which each costs less work."""

LEAST_LENGTH = 2_048
"""Least length of the array of a result."""


def pack_record(
    bounds: Sequence[int] | NDArray[Any],
    classes: Sequence[int] | NDArray[Any],
    delta: NDArray[Any],
    accepting: Sequence[bool] | NDArray[Any],
) -> Record:
    """Return the record of an automaton.

    bounds, classes: of the ranges of code points. delta: [states, classes], the next state or -1. accepting: of each
    state.
    """
    states, width = delta.shape
    ranges = len(bounds)
    record = np.empty(HEADER_W + 2 * ranges + states * (width + 1), np.int32)
    record[:HEADER_W] = states, width, ranges
    record[HEADER_W : HEADER_W + ranges] = bounds
    end = HEADER_W + 2 * ranges
    record[HEADER_W + ranges : end] = classes
    record[end : end + states * width] = delta.reshape(-1)
    record[end + states * width :] = accepting
    return record


def minimise_record(record: Record) -> Record:
    """Return the canonical record of the same language. `record` is overwritten."""
    states, width = int(record[STATES]), int(record[CLASSES])
    if states <= WIDE:
        units = states * (4 + width // 4)
    else:
        units = states * width // 16 + states * (32 + width) // 64
    spend_work(units, "a minimal automaton")
    length = minimise_automaton(record, _make_scratch(states, width))
    return np.array(record[:length])


def _make_scratch(states: int, width: int) -> Record:
    """Return the scratch of `minimise_automaton`."""
    return np.empty(SCRATCH_HEADER_W + STATE_PARTS * (states + 1) + 2 * states * width + CLASS_PARTS * width, np.int32)


def combine_records(first: Record, second: Record, operation: int, max_states: int) -> Record:
    """Return the canonical record of a boolean operation, one of UNION, INTERSECTION, DIFFERENCE, REVERSED_DIFFERENCE.

    Raise LimitError for more than `max_states` states of the product.
    """
    states = int(first[STATES]) + int(second[STATES])
    estimate = _estimate_length(first, second, states)
    status, output = _enlarge(estimate, lambda out: product_automaton(first, second, out, operation, max_states))
    expanded, width = int(output[STATES]), int(output[CLASSES])
    if max(first[STATES], second[STATES]) > WIDE:
        units = expanded * (4 + width) // 32
    elif operation == REVERSED_DIFFERENCE:
        units = expanded * (1 + width // 8)
    else:
        units = expanded * (2 + width // 4)
    spend_work(units + _count_merged(first, second), PRODUCT)
    if status == TOO_MANY_STATES:
        raise too_many_states("A combination of automata", max_states)
    return minimise_record(output)


def records_intersect(first: Record, second: Record) -> bool:
    """Return whether two languages have a text in common; the search stops at the first."""
    if not first[STATES] or not second[STATES]:
        return False
    estimate = 8 * int(first[STATES] + second[STATES]) + 16 * int(first[RANGES] + second[RANGES])
    found, scratch = _enlarge(estimate, lambda scratch: have_common_text(first, second, scratch))
    units = int(scratch[STATES]) * (1 + int(scratch[CLASSES]) // 5)
    spend_work(units + _count_merged(first, second), PRODUCT)
    return found == 1


def bound_record_lengths(record: Record, distances: Record, low: int, high: int | None, max_states: int) -> Record:
    """Return the canonical record of the texts of `low` to `high` characters; `high` is None for no upper bound.

    distances: of `measure_record`. Without an upper bound, characters are counted up to `low` only. The language must
    not be empty.
    """
    width, most = int(record[CLASSES]), NO_BOUND if high is None else high
    estimate = 64 + 2 * int(record[RANGES]) + 2 * int(record[STATES]) * (width + 8)
    status, output = _enlarge(estimate, lambda out: bound_lengths(record, distances, out, low, most, max_states))
    spend_work(int(output[STATES]) * (2 + width // 4), "a count of characters")
    if status == TOO_MANY_STATES:
        raise too_many_states(f"A count of {low} to {high or 'any number of'} characters", max_states)
    return minimise_record(output)


def concatenate_records(first: Record, second: Record, max_states: int) -> Record:
    """Return the canonical record of a text of `first` followed by a text of `second`. Neither must be empty."""
    spend_work(_count_merged(first, second), PRODUCT)
    states = int(first[STATES]) + int(second[STATES])
    estimate = _estimate_length(first, second, states)
    width = int(first[CLASSES]) + int(second[CLASSES])
    scratch = POOL_HEADER_W + (MEMBER_PARTS + width) * states + 4 * states
    return _determinise(
        states, states, estimate, scratch, lambda out, pool: concatenate_automata(first, second, out, pool, max_states),
        max_states,
    )  # fmt: skip


def repeat_record(record: Record, low: int, high: int | None, max_states: int) -> Record:
    """Return the canonical record of `low` to `high` consecutive texts; `high` is None for no upper bound.

    The language must not be empty, and 0 < high >= low.
    """
    copies = max(low, 1) if high is None else high
    if copies > max_states:
        raise too_many_states(f"Repetition {copies} times", max_states)
    states, width = copies * int(record[STATES]), int(record[CLASSES])
    spend_work(_count_edges(states, width), CONCATENATION)
    least = 0 if record[-int(record[STATES])] else low  # Missing repetitions may be empty.
    most = NO_BOUND if high is None else high
    estimate = 64 + 2 * int(record[RANGES]) + 2 * states * (width + 8)
    scratch = POOL_HEADER_W + (MEMBER_PARTS + 4) * states
    return _determinise(
        states, 0, estimate, scratch, lambda out, pool: repeat_automaton(record, out, pool, least, most, max_states),
        max_states,
    )  # fmt: skip


def determinise_program(program: Record, items: int, max_states: int) -> tuple[int, Record, Record]:
    """Return the status of a subset construction over the program of a pattern, its output, and its scratch.

    program: see `kernels.pattern_layout`. items: its instructions that read a character. It ends when the active budget
    would be spent. The caller charges for it, and minimises the output.
    """
    states, words, width = 16 + 2 * items, 1 + items // pattern_layout.BITS, int(program[pattern_layout.CLASSES])
    estimate = HEADER_W + 2 * int(program[pattern_layout.RANGES]) + states * (width + 1)
    fixed = 3 * len(program) + (width + items) * (words + 1) + 4 * len(program)
    scratches: list[Record] = []
    budget = active_budget()
    most_units = UNLIMITED if budget is None else max(budget.limit - budget.spent, 0)

    def attempt(output: Record) -> int:
        scratches[:] = [np.empty(fixed + states * (2 * words + 9) * (1 + len(output) // estimate), np.int32)]
        scratches[0][pattern_layout.ITEMS] = items
        return determinise_pattern(program, output, scratches[0], max_states, most_units)

    status, output = _enlarge(estimate, attempt)
    return status, output, scratches[0]


def _count_merged(first: Record, second: Record) -> int:
    """Return the units of work of the common refinement of the classes of two automata."""
    return int(first[RANGES] + second[RANGES]) // 2


def _count_edges(states: int, width: int) -> int:
    """Return the units of work of the transitions of a nondeterministic automaton."""
    return states * (2 + width // 4 + (states >> 10))


def _determinise(
    states: int,
    copied: int,
    estimate: int,
    scratch: int,
    construct: Callable[[Record, Record], int],
    max_states: int,
) -> Record:
    """Return the canonical record of a subset construction over `states` states.

    copied: the states whose transitions it copies. estimate, scratch: lengths of the arrays to begin with.
    """
    pools: list[Record] = []

    def attempt(output: Record) -> int:
        pools[:] = [np.empty(scratch * (1 + len(output) // estimate) // 2, np.int32)]
        return construct(output, pools[0])

    status, output = _enlarge(estimate, attempt)
    members, width = int(pools[0][MEMBERS]), int(output[CLASSES])
    expanded = int(output[STATES])
    each = 1 + width * (8 + (states >> 10)) // 64
    spend_work(_count_edges(copied, width) + expanded * (width // 4 + 2) + each * members, CONCATENATION)
    if status == TOO_MANY_STATES:
        raise too_many_states("A concatenation or repetition of automata", max_states)
    return minimise_record(output)


def _estimate_length(first: Record, second: Record, states: int) -> int:
    """Return the length of an array that probably suffices for a product of two automata."""
    width = int(first[CLASSES]) + int(second[CLASSES])
    return 64 + 16 * int(first[RANGES] + second[RANGES]) + 2 * states * (width + 8)


def _enlarge(estimate: int, construct: Callable[[Record], int]) -> tuple[int, Record]:
    """Call a construction with longer and longer arrays until one suffices. Return its result and the array."""
    length = max(estimate, LEAST_LENGTH)
    while True:
        output = np.empty(length, np.int32)
        status = construct(output)
        if status != NO_SPACE:
            return status, output
        length *= 4


def measure_record(record: Record) -> tuple[Record, int | None]:
    """Return int32[states], the least number of characters from each state to acceptance, and the length of a longest
    text (None: unbounded). The language must not be empty.
    """
    distances = np.empty(record[STATES], np.int32)
    longest = measure_lengths(record, _make_scratch(int(record[STATES]), int(record[CLASSES])), distances)
    return distances, None if longest == NO_BOUND else longest
