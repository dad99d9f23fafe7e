"""Lengths of the texts of a canonical automaton (kernels; see `automata_layout`)."""

from __future__ import annotations

from typing import Any

from numba import types

from .automata_layout import CLASSES, NO_BOUND, STATES
from .automata_records import READ, WRITE, delta_of
from .context_views import at
from .jit.compilation import entry
from .minimal_automata import (
    CURSOR,
    DIRTY,
    DISTANCE,
    ELEMENTS,
    FIRST_SOURCE,
    PLACE,
    list_sources,
    order_by_distance,
    part,
)


@entry([types.int64(READ, WRITE, WRITE)])
def measure_lengths(record: Any, scratch: Any, distances: Any) -> Any:
    """Write the least number of characters from each state to acceptance to `distances`, int32[states].

    scratch: as for `minimise_automaton`. Return the greatest number of characters of a text, or NO_BOUND. The language
    must not be empty.
    """
    r, w = record.ctypes.data, scratch.ctypes.data
    states, width, delta = at(r)[STATES] + 0, at(r)[CLASSES] + 0, delta_of(r)
    at(w)[0] = states
    list_sources(r, w)
    order_by_distance(r, w)
    distance, first, mark, waiting = part(w, DISTANCE), part(w, FIRST_SOURCE), part(w, CURSOR), part(w, DIRTY)
    for s in range(states):
        distances[s] = distance[s]
    # Topological order: a state is listed after all its predecessors, unless a cycle is among them.
    order, longest = part(w, ELEMENTS), part(w, PLACE)
    for s in range(states):
        mark[s], longest[s], waiting[s] = 0, 0, first[s + 1] - first[s]  # the predecessors that are not listed yet
    n_listed, k, most = 0, 0, 0
    if waiting[0] == 0:
        order[0], n_listed = 0, 1
    while k < n_listed:
        s = order[k] + 0
        most = max(most, longest[s])
        for c in range(s * width, s * width + width):
            t = delta[c] + 0
            if t >= 0 and mark[t] != s + 1:
                mark[t] = s + 1
                longest[t] = max(longest[t], longest[s] + 1)
                waiting[t] -= 1
                if waiting[t] == 0:
                    order[n_listed] = t
                    n_listed += 1
        k += 1
    return most if n_listed == states else NO_BOUND
