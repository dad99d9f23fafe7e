"""Sets of subschemas: the unevaluated form of the children of a Shape.

A subschema is a numbered node. A *literal* is `+node` or `-node` (its complement), and a `SchemaSet` is a sorted tuple
of literals that denotes their conjunction. So `allOf`, sibling keywords and `$ref` combine by union of tuples, NOT
flips a sign, and a recursive schema terminates because the same set comes back. Nothing is unfolded before it is
reached.
"""

from __future__ import annotations

__all__ = ["ANY", "NEVER", "SchemaSet", "intersect_sets", "is_subset_of"]

SchemaSet = tuple[int, ...]

ANY: SchemaSet = ()
"""Every value: the empty conjunction."""

NEVER: SchemaSet = (0,)
"""No value at all. No node has the number 0."""


def intersect_sets(one: SchemaSet, other: SchemaSet) -> SchemaSet:
    """Return the conjunction of two sets; NEVER if a node and its complement are in it."""
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
    """Return whether every value of the first set is certainly in the second one (a test of their literals)."""
    return not other or one in (other, NEVER) or set(other).issubset(one)
