"""AND, OR and NOT of the arrays that schemas allow (`shapes.array_case.ArrayCase`).

A union is a tuple of cases, so only intersection, complement and the subset test need code.
"""

from __future__ import annotations

from ..core.schema_sets import ANY, NEVER, SchemaSet, is_subset_of
from ..shapes.array_case import ArrayCase, ContainsConstraint
from ..shapes.schema_algebra import SchemaAlgebra

__all__ = ["complement_array", "intersect_arrays", "simplify_array", "is_array_subset"]


def simplify_array(case: ArrayCase) -> ArrayCase:
    """Return the same case in a normal form.

    A prefix that `items` or the upper bound makes redundant is dropped, as is a contains-constraint that is only a
    bound of the length.
    """
    prefix, items, low, high, contains = case[:5]
    if contains:
        low, high, contains = _simplify_contains(case)
    if NEVER in prefix:
        prefix = prefix[: prefix.index(NEVER)]
        items = NEVER
    if items == NEVER and (high is None or high > len(prefix)):
        high = len(prefix)
    if high is not None and high <= len(prefix):
        prefix, items = prefix[:high], NEVER
    else:
        while prefix and prefix[-1] == items:
            prefix = prefix[:-1]
    return ArrayCase(prefix, items, low, high, contains, case.unique, case.has_duplicates)


def _simplify_contains(case: ArrayCase) -> tuple[int, int | None, tuple[ContainsConstraint, ...]]:
    """Return the bounds of the length that contains-constraints imply, and the constraints that remain.

    n items in a set are n items, and every item is in ANY.
    """
    low, high = case.low, case.high
    remaining: list[ContainsConstraint] = []
    for constraint in case.contains:
        if constraint.low:
            low = max(low, constraint.start + constraint.low)
        if constraint.schemas == ANY:
            if constraint.high is not None:
                most = constraint.start + constraint.high
                high = most if high is None else min(high, most)
        elif constraint.low or (constraint.high is not None and constraint.schemas != NEVER):
            remaining.append(constraint)
    return low, high, tuple(remaining)


def intersect_arrays(one: ArrayCase, other: ArrayCase, algebra: SchemaAlgebra) -> ArrayCase | None:
    """Return the arrays of both cases; None if lengths or counts alone exclude all."""
    size = max(len(one.prefix), len(other.prefix))
    prefix = tuple(algebra.intersect(one.at(position), other.at(position)) for position in range(size))
    low, high = max(one.low, other.low), min_bound(one.high, other.high)
    contains: dict[tuple[int, SchemaSet], ContainsConstraint] = {}
    for constraint in one.contains + other.contains:
        known = contains.setdefault((constraint.start, constraint.schemas), constraint)
        merged = known._replace(low=max(known.low, constraint.low), high=min_bound(known.high, constraint.high))
        if merged.high is not None and merged.low > merged.high:
            return None
        contains[constraint.start, constraint.schemas] = merged
    unique, has_duplicates = one.unique or other.unique, one.has_duplicates or other.has_duplicates
    items = algebra.intersect(one.items, other.items)
    case = simplify_array(ArrayCase(prefix, items, low, high, tuple(contains.values()), unique, has_duplicates))
    return None if (unique and has_duplicates) or (case.high is not None and case.low > case.high) else case


def min_bound(one: int | None, other: int | None) -> int | None:
    """Return the smaller of two upper bounds, where None is no bound."""
    return one if other is None else other if one is None else min(one, other)


def is_array_subset(case: ArrayCase, other: ArrayCase) -> bool:
    """Return whether every array of the case is in the other one, as far as a comparison part by part shows."""
    if case.low < other.low or (other.high is not None and (case.high is None or case.high > other.high)):
        return False
    if (other.unique and not case.unique) or (other.has_duplicates and not case.has_duplicates):
        return False
    if not all(
        any(_implies(own_constraint, constraint) for own_constraint in case.contains) for constraint in other.contains
    ):
        return False
    size = max(len(case.prefix), len(other.prefix)) + 1
    return all(is_subset_of(case.at(position), other.at(position)) for position in range(size))


def _implies(one: ContainsConstraint, other: ContainsConstraint) -> bool:
    """Return whether the first contains-constraint implies the second."""
    if one[:2] != other[:2] or one.low < other.low:
        return False
    return other.high is None or (one.high is not None and one.high <= other.high)


def complement_array(case: ArrayCase, algebra: SchemaAlgebra) -> list[ArrayCase]:
    """Return the arrays that are not in the case: one case for each condition that may be violated."""
    out: list[ArrayCase] = []
    if case.unique:
        out.append(ArrayCase(low=2, has_duplicates=True))
    if case.has_duplicates:
        out.append(ArrayCase(unique=True))
    if case.low:
        out.append(ArrayCase(high=case.low - 1))
    for position, schemas in enumerate(case.prefix):
        if schemas != ANY:
            out.append(ArrayCase((ANY,) * position + (algebra.complement(schemas),), ANY, position + 1))
    if case.high is not None:
        out.append(ArrayCase(low=case.high + 1))
    if case.items not in (ANY, NEVER):
        out.append(ArrayCase(contains=(ContainsConstraint(len(case.prefix), algebra.complement(case.items)),)))
    for start, schemas, low, high in case.contains:
        if low == 1:
            out.append(ArrayCase((ANY,) * start, algebra.complement(schemas)))
        elif low:
            out.append(ArrayCase(contains=(ContainsConstraint(start, schemas, 0, low - 1),)))
        if high is not None:
            out.append(ArrayCase(contains=(ContainsConstraint(start, schemas, high + 1),)))
    return [simplify_array(item) for item in out]


def compute_max_items(case: ArrayCase, algebra: SchemaAlgebra) -> int | None:
    """Return the maximal number of items, given that an array ends before the first position whose set is empty.

    Only as many sets are tested as needed. None: no bound.
    """
    for position, schemas in enumerate(case.prefix):
        if case.high is not None and position >= case.high:
            return case.high
        if not algebra.is_satisfiable(schemas):
            return position
    if (case.high is None or case.high > len(case.prefix)) and not algebra.is_satisfiable(case.items):
        return len(case.prefix)
    return case.high
