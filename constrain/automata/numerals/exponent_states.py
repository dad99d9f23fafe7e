"""What may follow the e of a number: an exponent of a set of integers, in any spelling.

A set of integers is a tuple of disjoint ascending closed intervals, whose ends may be infinite. What may follow some
digits is described exactly: for each number of further digits, which of these are allowed. So states are equal if and
only if their languages are.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import inf

__all__ = ["IntegerSet", "contains_integer", "follow_digits", "magnitudes", "shortest_suffix", "unite_intervals"]

IntegerSet = tuple[tuple[float, float], ...]
Following = tuple[bool, tuple[IntegerSet, ...]]
"""Whether any number of further digits beyond the listed ones is allowed; the numbers that the next 0, 1, .. digits may
spell."""


def unite_intervals(parts: Iterable[tuple[float, float]]) -> IntegerSet:
    """Return the union of intervals of integers."""
    out: list[tuple[float, float]] = []
    for low, high in sorted(parts):
        if out and low <= out[-1][1] + 1:
            out[-1] = (out[-1][0], max(high, out[-1][1]))
        else:
            out.append((low, high))
    return tuple(out)


def contains_integer(integers: IntegerSet, value: int) -> bool:
    """Return whether a value is in a set."""
    return any(low <= value <= high for low, high in integers)


def magnitudes(integers: IntegerSet, negative: bool) -> IntegerSet:
    """Return the non-negative integers of a set, or the magnitudes of the others and zero."""
    if negative:
        integers = tuple((-high, -low) for low, high in integers[::-1])
    return tuple((max(low, 0), high) for low, high in integers if high >= 0)


def follow_digits(integers: IntegerSet, read: int) -> Following | None:
    """Return what may follow the digits of `read` > 0, so that the whole is in the set; None if nothing may.

    The integers are not negative.
    """
    greatest = max((high if high < inf else low for low, high in integers), default=-1)
    low, size, following = read, 1, list[IntegerSet]()
    while low <= greatest:
        cut = [(max(first, low), min(last, low + size - 1)) for first, last in integers]
        following.append(tuple((first - low, last - low) for first, last in cut if first <= last))
        low, size = low * 10, size * 10
    is_endless = bool(integers) and integers[-1][1] == inf
    while following:
        everything = ((0, 10 ** (len(following) - 1) - 1),)
        if following[-1] != (everything if is_endless else ()):
            break
        following.pop()
    return (is_endless, tuple(following)) if is_endless or following else None


def shortest_suffix(following: Following) -> int:
    """Return the least number of further digits."""
    return next((count for count, some in enumerate(following[1]) if some), len(following[1]))
