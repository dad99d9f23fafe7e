"""The block of a DFA in the arrays of a MaskTable (kernels): its record, and what leaf states need to know."""

from __future__ import annotations

from typing import Any

from numba import types

from .automata_layout import CLASSES, RANGES, STATES
from .automata_records import READ, WRITE, accepting_of, bounds_of, classes_of, delta_of
from .context_views import at
from .jit.compilation import entry, inlined
from .table_layout import LEAF_ENDLESS, LEAF_SAFE

ASCII = 128
LAST, FIRST_SURROGATE, LAST_SURROGATE = 0x10FFFF, 0xD800, 0xDFFF
ROUNDS = 64
"""Most rounds over all states of a search for shortest paths."""
ENDLESS = 1 << 20
"""In place of a number of characters that are certainly accepted, whichever they are: none is ever refused."""


@inlined("int64(int64, pointer)")
def mark_classes(record: Any, marks: Any) -> Any:
    """Write 1 for each class that has a character other than surrogates, else 0. Return 0."""
    bounds, classes, n = bounds_of(record), classes_of(record), at(record)[RANGES] + 0
    for c in range(at(record)[CLASSES]):
        marks[c] = 0
    for k in range(n):
        last = bounds[k + 1] - 1 if k + 1 < n else LAST
        if bounds[k] < FIRST_SURROGATE or last > LAST_SURROGATE:
            marks[classes[k]] = 1
    return 0


@inlined("int64(int64, pointer, pointer)")
def count_safe_characters(record: Any, marks: Any, safe: Any) -> Any:
    """Write for each state a number of characters, whichever they are, that are certainly accepted from it. Return 0.

    marks: the classes that count. The result is a lower bound.
    """
    delta, states, width = delta_of(record), at(record)[STATES] + 0, at(record)[CLASSES] + 0
    for s in range(states):
        safe[s] = ENDLESS
        for c in range(width):
            if marks[c] and delta[s * width + c] < 0:
                safe[s] = 0
    # Shortest paths (Bellman and Ford). States are numbered breadth first, so that most rounds go backwards along all
    # of a path. After r rounds, the paths of at most r characters are known, and all others are longer.
    changes, rounds = True, 0
    while changes and rounds < ROUNDS:
        changes, rounds = False, rounds + 1
        for s in range(states - 1, -1, -1):
            least = safe[s] + 0
            for c in range(width):
                if marks[c] and delta[s * width + c] >= 0:
                    least = min(least, safe[delta[s * width + c]] + 1)
            if least < safe[s]:
                safe[s], changes = least, True
    for s in range(states if changes else 0):
        safe[s] = min(safe[s], ROUNDS)
    return 0


@inlined("int64(int64, pointer)")
def mark_endless_states(record: Any, endless: Any) -> Any:
    """Write 1 for each state after which infinitely many texts remain whatever follows, else 0. Return 0.

    Such states lead to no state without a next one, in which the longest of finitely many texts would end. Where such
    states are found only in many rounds, none is marked.
    """
    delta, states, width = delta_of(record), at(record)[STATES] + 0, at(record)[CLASSES] + 0
    found = 0
    for s in range(states):
        endless[s] = 0
        for c in range(width):
            if delta[s * width + c] >= 0:
                endless[s] = 1
                break
        found += 1 - endless[s]
    # States are numbered breadth first, so that most rounds go backwards along all of a path.
    rounds = 0
    while found > 0 and rounds < ROUNDS:
        found, rounds = 0, rounds + 1
        for s in range(states - 1, -1, -1):
            if endless[s] == 0:
                continue
            for c in range(width):
                after = delta[s * width + c]
                if after >= 0 and endless[after] == 0:
                    endless[s] = 0
                    found += 1
                    break
    for s in range(states if found > 0 else 0):
        endless[s] = 0
    return 0


@entry([types.int64(READ, READ, WRITE)])
def write_dfa_block(record: Any, distances: Any, out: Any) -> Any:
    """Write the block of a DFA, in the layout of DFAS, given its record and the distance of each state to acceptance.

    out: as long as the block, and a word more for each class and each state. Return the length of the block.
    """
    r, words, distance = record.ctypes.data, at(out.ctypes.data), at(distances.ctypes.data)
    states, width, ranges = at(r)[STATES] + 0, at(r)[CLASSES] + 0, at(r)[RANGES] + 0
    bounds, classes, delta, accepting = bounds_of(r), classes_of(r), delta_of(r), accepting_of(r)
    words[0], words[1], words[2] = states, width, ranges
    p = 3
    for k in range(ranges):
        words[p + k], words[p + ranges + k] = bounds[k], classes[k]
    p += 2 * ranges
    k = 0
    for character in range(ASCII):
        while k + 1 < ranges and bounds[k + 1] <= character:
            k += 1
        words[p + character] = classes[k]
    p += ASCII
    for s in range(states):
        words[p + s], words[p + states + s] = accepting[s], distance[s]
    p += 2 * states
    for k in range(states * width):
        words[p + k] = delta[k]
    p += states * width
    marks = at(out.ctypes.data + 4 * (p + states))
    mark_classes(r, marks)
    safe, endless = at(out.ctypes.data + 4 * p), at(out.ctypes.data + 4 * (p + states + width))
    count_safe_characters(r, marks, safe)
    mark_endless_states(r, endless)
    for s in range(states):
        safe[s] = safe[s] << LEAF_SAFE | (LEAF_ENDLESS if endless[s] else 0)
    return p + states
