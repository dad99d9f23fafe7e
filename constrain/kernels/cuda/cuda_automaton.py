"""A step of the constraint of every row on the GPU: from (state, token) to the next state, by four loads.

    states   int32 [S, 4]        home, base, otherwise, row
    classes  int32 [sum of V]    home + token -> class of the token: tokens that no state distinguishes share one
    slots    int32 [n, 2]        base + class -> (owner, next): next if the owner is the base, else `otherwise`

A row of the transition table is stored as its most frequent successor and the exceptions, which are overlaid with those
of other states (row displacement, Tarjan and Yao 1979). The constraints of a pool share one numbering of states.
`integrations.cuda.token_tables` builds the tables. State 0 is the sink of refused texts.
"""

from __future__ import annotations

from typing import Any

from .cuda_device import cuda, kernel

__all__ = ["BASE", "HOME", "OTHERWISE", "REFUSED", "ROW", "advance"]

HOME, BASE, OTHERWISE, ROW = 0, 1, 2, 3
REFUSED = 0


@kernel
def advance(states: Any, classes: Any, slots: Any, width: Any, tokens: Any, current: Any, rows: Any) -> None:
    """Step state current[b] by tokens[b], and write the row of its mask. Total threads: at least B.

    tokens: int32 [B], -1: no token. current: int32 [B], overwritten; rows: int32 [B], written. width: V.
    """
    batch = cuda.grid(1)
    if batch >= current.size:
        return
    state, token = current[batch], tokens[batch]
    after = REFUSED
    if 0 <= token < width:
        slot = states[state, BASE] + classes[states[state, HOME] + token]
        after = slots[slot, 1] if slots[slot, 0] == states[state, BASE] else states[state, OTHERWISE]
    current[batch] = after
    rows[batch] = states[after, ROW]
