"""Sets of small integers as the bits of an int."""

from __future__ import annotations

__all__ = ["list_members"]


def list_members(bits: int) -> list[int]:
    """Return the positions of the set bits, ascending."""
    positions = []
    while bits:
        low = bits & -bits
        positions.append(low.bit_length() - 1)
        bits ^= low
    return positions
