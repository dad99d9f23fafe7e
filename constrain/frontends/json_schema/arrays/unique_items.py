"""`uniqueItems`: the part of it that the Grammar must enforce, besides the guard of the engine.

The engine refuses an item that equals an earlier one, and prefixes that can only lead to one. It does not know whether
enough values are left for the items that are still required. Sets of few values are therefore enumerated: the automaton
of `item_counts` tracks which of them are left. Any other set must have more values than can be used up before one of
them is needed, which `value_counts` proves by counting. Sets in between are refused.
"""

from __future__ import annotations

from ....base.errors import UnsupportedError
from ..core.json_values import Constant
from ..core.schema_sets import SchemaSet
from ..shapes.array_case import ArrayCase
from ..shapes.schema_algebra import SchemaAlgebra
from .array_cases import min_bound
from .item_counts import ItemAutomaton, find_pointer
from .value_counts import count_values, list_values

__all__ = ["are_items_distinct", "cap_length", "build_unique_automaton", "list_shared_values", "too_many_duplicates"]

ENDLESS = 2**31 - 1
"""A number of values that no array can use up: the upper limit of the engine's counters."""

MOST_ORDERS = 1_000
"""Orders of the required items for which values are enumerated: the search for a shortest array tries them."""

MOST_APART = 64
"""Most items of which every two are compared."""


def are_items_distinct(case: ArrayCase, algebra: SchemaAlgebra) -> bool:
    """Return whether no two items can be equal anyway."""
    if case.high is None or case.high > MOST_APART:
        return False
    items = [case.at(position) for position in range(case.high)]
    return not any(
        algebra.is_satisfiable(algebra.intersect(one, other))
        for position, one in enumerate(items)
        for other in items[:position]
    )


def cap_length(case: ArrayCase, algebra: SchemaAlgebra) -> ArrayCase:
    """Return the case with no more items than there are values for them."""
    if case.high is not None and case.high <= len(case.prefix):
        return case
    most = count_values(case.rest, ENDLESS, algebra).most
    return case if most is None else case._replace(high=min_bound(case.high, len(case.prefix) + most))


def build_unique_automaton(case: ArrayCase, algebra: SchemaAlgebra) -> ItemAutomaton:
    """Return the automaton of a case with `uniqueItems`; this decides which values are enumerated and which are
    guarded.
    """
    whole = ItemAutomaton(case, (), True, algebra)
    cells: dict[SchemaSet, int | None] = {}
    for position in range(whole.size + 1):
        if case.high is None or position < case.high:
            for kind in whole.kinds(position, whole.start.counts):
                cells[kind.schemas] = None
    values: dict[Constant, None] = {}
    ample: list[SchemaSet] = []
    for schemas in cells:
        found = list_values(schemas, algebra)
        if found is None:
            ample.append(schemas)
        else:
            values.update(dict.fromkeys(found))
    alone = (
        whole.size == 0 and not case.contains
    )  # Then there are enough values, since `cap_length` allows no further items.
    if alone and len(values) ** case.low > MOST_ORDERS:
        return ItemAutomaton(case, (), False, algebra)
    if all(count_values(schemas, ENDLESS, algebra).least >= ENDLESS for schemas in cells):
        return ItemAutomaton(case, (), False, algebra)
    for schemas in ample:
        _check_enough_values(case, schemas, len(values), whole.size, algebra)
    return ItemAutomaton(case, tuple(values), True, algebra)


def _check_enough_values(
    case: ArrayCase, schemas: SchemaSet, listed_values: int, first: int, algebra: SchemaAlgebra
) -> None:
    """Raise UnsupportedError for a set whose values may be used up before an item needs one of them."""
    found = count_values(schemas, ENDLESS, algebra)
    if found.least >= ENDLESS:
        return
    if case.contains:
        # While a constraint is unmet, its items beyond the prefix have been counted; others fill up to `low`.
        needed, possible = max([case.low, *(first + constraint.low for constraint in case.contains)]), case.high
    else:
        needed = _count_places(case, schemas, case.low, algebra)
        possible = _count_places(case, schemas, len(case.prefix) if case.high is None else case.high, algebra)
        if case.high is None and algebra.is_satisfiable(algebra.intersect(case.rest, schemas)):
            possible = None
    if needed > 1 and found.least - listed_values < needed:
        raise _unsupported(
            f"Of the items here {needed:,} must differ, and it could not be shown that there are so many values.",
            algebra,
        )
    if found.most is not None and (possible is None or found.least - listed_values < possible):
        raise _unsupported(
            f"An array here may use up the {found.most:,} values of a set that other items share.", algebra
        )


def _count_places(case: ArrayCase, schemas: SchemaSet, length: int, algebra: SchemaAlgebra) -> int:
    """Return how many of the first `length` items may have values of a set."""
    count = sum(algebra.is_satisfiable(algebra.intersect(item, schemas)) for item in case.prefix[:length])
    more = length - len(case.prefix)
    return count + more if more > 0 and algebra.is_satisfiable(algebra.intersect(case.rest, schemas)) else count


def list_shared_values(case: ArrayCase, algebra: SchemaAlgebra) -> list[Constant] | None:
    """Return the values that two items of a case can have in common; None if they are too many to enumerate."""
    size = len(case.prefix)
    sets = dict.fromkeys(case.prefix if case.high is None else case.prefix[: case.high])
    pairs = {algebra.intersect(one, other) for one in case.prefix for other in sets if one is not other}
    pairs |= {schemas for schemas in sets if case.prefix.count(schemas) > 1}
    if case.high is None or case.high > size:
        pairs |= {algebra.intersect(one, case.rest) for one in sets}
        if case.high is None or case.high > size + 1:
            pairs.add(case.rest)
    values: dict[Constant, None] = {}
    for schemas in pairs:
        found = list_values(schemas, algebra)
        if found is None:
            return None
        values.update(dict.fromkeys(found))
    return list(values)


def too_many_duplicates(algebra: SchemaAlgebra) -> UnsupportedError:
    """Return the error of arrays with two equal items whose values can be neither enumerated nor guarded."""
    cause = "Two equal items are demanded here (the complement of uniqueItems), of too many values for items with a"
    return _unsupported(f"{cause} bound on their number or with `contains`.", algebra)


def _unsupported(cause: str, algebra: SchemaAlgebra) -> UnsupportedError:
    return UnsupportedError(
        cause, pointer=find_pointer("uniqueItems", algebra),
        hint="Allow fewer items, or more values; or leave uniqueItems out and check it afterwards.",
    )  # fmt: skip
