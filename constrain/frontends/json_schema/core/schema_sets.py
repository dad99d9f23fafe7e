"""Literal sets: what a child of a Shape is, until someone looks inside.

A subschema is a numbered node. A *literal* is `+node` or `-node` (its complement), and a sorted tuple of literals
means their AND. So `allOf`, sibling keywords and `$ref` combine by union of sets, NOT flips a sign, and a recursive
schema closes because the same set comes back. Nothing is unfolded before it is reached.
"""

from __future__ import annotations

__all__ = ["ANY", "NEVER", "SchemaSet", "intersect_sets", "is_subset_of"]

SchemaSet = tuple[int, ...]

ANY: SchemaSet = ()
"""Every value: the AND of nothing."""

NEVER: SchemaSet = (0,)
"""No value at all. No node has the number 0."""


def intersect_sets(one: SchemaSet, other: SchemaSet) -> SchemaSet:
    """The AND of two literal sets; NEVER if they hold a node and its complement."""
    if not one or one == other:
        return other
    if not other:
        return one
    if one == NEVER or other == NEVER:
        return NEVER
    merged = set(one)
    merged.update(other)
    if one[0] < 0 or other[0] < 0:
        for literal in merged:
            if -literal in merged:
                return NEVER
    return tuple(sorted(merged))


def is_subset_of(one: SchemaSet, other: SchemaSet) -> bool:
    """Whether every value of the one is plainly in the other."""
    return not other or one in (other, NEVER) or set(other).issubset(one)
