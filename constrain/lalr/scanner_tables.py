"""The tables of a scanner, computed by `scanner.build_scanner` or read from a file: they work without its threads."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["END_OF_TEXT", "Scanner"]

END_OF_TEXT = 256
"""Column of `accept_table` for the end of the text."""


@dataclass(frozen=True, slots=True, eq=False)
class Scanner:
    """The tables of a scanner; a co-reachable DFA over bytes with read-only arrays.

    Attributes
    ----------
    delta : int32[n, 256]
        Next state, or -1 (dead).
    accept : int32[n]
        Row of `accept_table`; row 0 is all -1, for a state that accepts nothing.
    accept_table : int32[k, 257]
        The terminal accepted given the next byte (256: end of text), or -1.
    possible : uint64[n, words]
        The terminals that the state or a later one accepts, bit t % 64 of word t // 64.
    starts : int32[lists]
        Start state of each list, which accepts nothing; -1 if it never matches.
    """

    delta: NDArray[np.int32]
    accept: NDArray[np.int32]
    accept_table: NDArray[np.int32]
    possible: NDArray[np.uint64]
    starts: NDArray[np.int32]
