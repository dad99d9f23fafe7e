"""Which runs of digits begin a member of a set of numbers, or are one: by remainders (kernels).

The questions are those of `automata.numerals.digit_runs`; see `digit_run_layout`.
"""

from __future__ import annotations

from typing import Any

from numba import types

from .context_views import int64s_at
from .digit_run_layout import ALIVE, BOUNDS, ENDS, KIND, MEMBER_W, MEMBERS, MULTIPLE_W, REQUEST_HEADER_W, UNSURE
from .jit.compilation import entry, inlined


@inlined("int64(int64, int64, int64)")
def find_member(asked: Any, place: Any, value: Any) -> Any:
    """Return the mark of a run of this value that the alternatives at a place of the request give."""
    request = int64s_at(asked)
    count, k = request[place] + 0, place + 1
    while count > 0:
        step, size, most, periods = request[k] + 0, request[k + 1] + 0, request[k + 3] + 0, request[k + 4] + 0
        if step <= 0:
            return ALIVE if step == 0 else UNSURE
        first = value * size + request[k + 2]
        number, last = (first - 1) // step + 1, (first + (size - 1)) // step
        while most > 0 and number <= last:
            i = 0
            while i < periods and number % request[k + MEMBER_W - 1 + i] != 0:
                i += 1
            if i == periods:
                return ALIVE
            number += 1
            most -= 1
        k += MEMBER_W + periods
        count -= 1
    return 0


@inlined("int64(int64, int64, int64)")
def is_member(asked: Any, place: Any, value: Any) -> Any:
    """Return whether the run of this value is in some alternative at a place of the request."""
    request = int64s_at(asked)
    count, k = request[place] + 0, place + 1
    while count > 0:
        others, i = request[k + 2] + 0, 0
        if value % request[k] == request[k + 1]:
            while i < others and value % request[k + MULTIPLE_W + 2 * i] != request[k + MULTIPLE_W + 2 * i + 1]:
                i += 1
            if i == others:
                return 1
        k += MULTIPLE_W + 2 * others
        count -= 1
    return 0


@entry([types.int64(types.int64[::1], types.int64[::1], types.uint8[::1])])
def mark_runs(values: Any, request: Any, marks: Any) -> Any:
    """Set the bits of a request in the marks of runs. Return the number of runs whose bit ALIVE is not set.

    values: of the runs, as integers. marks: uint8, of each run.
    """
    asked = request.ctypes.data
    words, bounds, missing = int64s_at(asked), request[BOUNDS], 0
    for i in range(len(values)):
        value, gap = values[i], 0
        while gap < bounds and words[REQUEST_HEADER_W + gap] < value:
            gap += 1
        if gap < bounds and words[REQUEST_HEADER_W + gap] == value:
            marks[i] |= UNSURE
        else:
            place = words[REQUEST_HEADER_W + bounds + gap] + 0
            if place and words[KIND] == MEMBERS:
                if not marks[i] & ALIVE:
                    marks[i] |= find_member(asked, place, value)
            elif place and is_member(asked, place, value):
                marks[i] |= ENDS
        if not marks[i] & ALIVE:
            missing += 1
    return missing
