"""Sets of code points: a CharSet is the ascending tuple of code points at which membership changes.

(97, 123) is a to z; () is empty; (0, 0x110000) is everything. Ranges are half-open and never adjacent, so equal sets
are equal tuples. A CharSet may contain surrogates; the automaton leaves them out.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable

from ...automata.dfa import LAST, SURROGATES
from ...base.work import spend_work

__all__ = [
    "ALL",
    "CharSet",
    "complement_charset",
    "contains_point",
    "intersect_charsets",
    "charset_of",
    "partition_charsets",
    "charset_range",
    "list_ranges",
    "unite_charsets",
]

CharSet = tuple[int, ...]
ALL: CharSet = (0, LAST)


CLASSES = "the characters of a pattern"
"""Description of this work in errors about the work budget."""


def charset_of(point: int) -> CharSet:
    """Return the set of one code point."""
    return (point, point + 1)


def charset_range(first: int, last: int) -> CharSet:
    """Return the set of the code points from `first` to `last`, inclusive."""
    return (first, last + 1)


def list_ranges(charset: CharSet) -> list[tuple[int, int]]:
    """Return the set as inclusive ranges."""
    return [(charset[i], charset[i + 1] - 1) for i in range(0, len(charset), 2)]


def contains_point(charset: CharSet, point: int) -> bool:
    """Return whether a code point is in the set."""
    return bisect_right(charset, point) % 2 == 1


def unite_charsets(sets: Iterable[CharSet]) -> CharSet:
    """Return the union of sets."""
    parts = [(part[i], part[i + 1]) for part in sets for i in range(0, len(part), 2)]
    spend_work(len(parts) // 2, CLASSES)
    parts.sort()
    result: list[int] = []
    for start, end in parts:
        if result and start <= result[-1]:
            if end > result[-1]:
                result[-1] = end
        else:
            result += (start, end)
    return tuple(result)


def complement_charset(charset: CharSet) -> CharSet:
    """Return the complement of a set."""
    start = charset[1:] if charset[:1] == (0,) else (0, *charset)
    return start[:-1] if start[-1:] == (LAST,) else (*start, LAST)


def intersect_charsets(first: CharSet, second: CharSet) -> CharSet:
    """Return the intersection of two sets."""
    return complement_charset(unite_charsets((complement_charset(first), complement_charset(second))))


def partition_charsets(sets: list[CharSet]) -> tuple[list[int], list[int], list[int]]:
    """Partition the code points into classes that no set distinguishes.

    Returns `bounds`, the first code point of each range; `classes`, the class of each range; and for each class a bit
    set of the sets that contain it. Surrogates are in no set. Classes are numbered by their first code point.
    """
    toggles: dict[int, int] = {0: 0}
    for index, charset in enumerate(sets):
        bit = 1 << index
        for point in charset:
            toggles[point] = toggles.get(point, 0) ^ bit
    spend_work(len(toggles) * (2 + len(sets) // 2_000), CLASSES)
    if any(toggles):
        toggles.setdefault(SURROGATES[0], 0)
        toggles.setdefault(SURROGATES[1], 0)
    toggles.pop(LAST, None)
    bounds: list[int] = []
    classes: list[int] = []
    numbers: dict[int, int] = {}
    inside = 0
    previous = -1
    for point in sorted(toggles):
        inside ^= toggles[point]
        number = numbers.setdefault(0 if SURROGATES[0] <= point < SURROGATES[1] else inside, len(numbers))
        if number != previous:
            bounds.append(point)
            classes.append(number)
            previous = number
    return bounds, classes, list(numbers)
