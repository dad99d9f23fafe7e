"""A step of every row's constraint on the card: from (state, token) to the next state, by four loads.

    states   int32 [S, 4]        home, base, otherwise, row
    classes  int32 [sum of V]    home + token -> the token's class: tokens that no state tells apart have the same
    slots    int32 [n, 2]        base + class -> (owner, next): next if the owner is the base, else `otherwise`

So a state's row of the table is its commonest successor, and the exceptions, fitted between those of other states
(row displacement, Tarjan and Yao 1979). Many constraints lie in one pool: their states are numbered through.
`integrations.cuda.automaton` builds it. State 0 is refused for good, and refuses all that follows.
"""

from __future__ import annotations

from typing import Any

from .cuda_device import cuda, kernel

__all__ = ["BASE", "HOME", "OTHERWISE", "REFUSED", "ROW", "advance"]

HOME, BASE, OTHERWISE, ROW = 0, 1, 2, 3
REFUSED = 0


@kernel
def advance(states: Any, classes: Any, slots: Any, width: Any, tokens: Any, current: Any, rows: Any) -> None:
    """Takes tokens[b] in state current[b], and tells the mask's row of the next one. Threads in all: at least B.

    tokens: int32 [B], -1: none was found. current: int32 [B], overwritten; rows: int32 [B], written. width: V.
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
