"""The arrays that a schema allows, as one case of a Shape.

An `ArrayCase` has the sets of the first items, the set of all other items, an interval of lengths and
contains-constraints: how many items from a position on are in a set. `contains` is such a constraint, and so is the
complement of `items`. `arrays.array_cases` combines cases.
"""

from __future__ import annotations

from typing import NamedTuple

from ..core.schema_sets import ANY, SchemaSet

__all__ = ["ANY_ARRAY", "ArrayCase", "ContainsConstraint"]


class ContainsConstraint(NamedTuple):
    """low <= number of items at position `start` or later that are in the set `schemas` <= high (None: no bound)."""

    start: int
    schemas: SchemaSet
    low: int = 1
    high: int | None = None


class ArrayCase(NamedTuple):
    """Arrays with low <= length <= high (None: no bound) that satisfy all contains-constraints.

    prefix: the sets of the first items (`prefixItems`). items: the set of each further item (`items` of 2020-12).
    unique: no two items are equal. has_duplicates: some two items are equal, which is the complement of `uniqueItems`.
    """

    prefix: tuple[SchemaSet, ...] = ()
    items: SchemaSet = ANY
    low: int = 0
    high: int | None = None
    contains: tuple[ContainsConstraint, ...] = ()
    unique: bool = False
    has_duplicates: bool = False

    def at(self, position: int) -> SchemaSet:
        """Return the set of the item at a position."""
        return self.prefix[position] if position < len(self.prefix) else self.items


ANY_ARRAY = ArrayCase()
