"""`uniqueItems`: the part of it that the Grammar must enforce, besides the guard of the engine.

The engine refuses an item that equals an earlier one, and prefixes that can only lead to one. It does not know whether
enough values remain for the items that are still required. Small finite sets are therefore enumerated: the automaton of
`item_counts` tracks which of their values are unused; many texts are the keys of an Object, which does the same. Any
other set must have more values than can be used up before one of them is needed, which `value_counts` proves by
counting. Sets in between are refused.
"""

from __future__ import annotations

from ....base.errors import UnsupportedError
from ....base.options import Style
from ....grammar.nodes import EMPTY, Layout, Node, Object, Property
from ..core.json_values import Constant
from ..core.schema_sets import SchemaSet
from ..shapes.array_case import ArrayCase
from ..shapes.schema_algebra import SchemaAlgebra
from .array_cases import min_bound
from .item_counts import ItemAutomaton, find_pointer
from .value_counts import count_values, list_values

__all__ = [
    "are_items_distinct",
    "cap_length",
    "build_unique_automaton",
    "emit_unique_texts",
    "list_shared_values",
    "too_many_duplicates",
]

INEXHAUSTIBLE = 2**31 - 1
"""A number of values that no array can use up: the upper limit of the engine's counters."""

MOST_ORDERS = 1_000
"""Orders of the required items for which values are enumerated: the search for a shortest array tries them."""

MOST_COMPARED = 64
"""Most items of which every two are compared."""

MANY_TEXTS = 17
"""Texts from which an array of different ones is an Object: a rule for each set of unused texts would list them all."""


def are_items_distinct(case: ArrayCase, algebra: SchemaAlgebra) -> bool:
    """Return whether no two items can be equal anyway."""
    if case.high is None or case.high > MOST_COMPARED:
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
    most = count_values(case.items, INEXHAUSTIBLE, algebra).most
    return case if most is None else case._replace(high=min_bound(case.high, len(case.prefix) + most))


def build_unique_automaton(case: ArrayCase, algebra: SchemaAlgebra) -> ItemAutomaton:
    """Return the automaton of a case with `uniqueItems`; this decides which values are enumerated and which are
    guarded.
    """
    unguarded = ItemAutomaton(case, (), True, algebra)
    cells: dict[SchemaSet, int | None] = {}
    for position in range(unguarded.size + 1):
        if case.high is None or position < case.high:
            for kind in unguarded.kinds(position, unguarded.start.counts):
                cells[kind.schemas] = None
    values: dict[Constant, None] = {}
    large: list[SchemaSet] = []
    for schemas in cells:
        listed = list_values(schemas, algebra)
        if listed is None:
            large.append(schemas)
        else:
            values.update(dict.fromkeys(listed))
    # Without other conditions there are enough values, since `cap_length` allows no further items.
    only_unique = unguarded.size == 0 and not case.contains
    if only_unique and len(values) ** case.low > MOST_ORDERS:
        return ItemAutomaton(case, (), False, algebra)
    if all(count_values(schemas, INEXHAUSTIBLE, algebra).least >= INEXHAUSTIBLE for schemas in cells):
        return ItemAutomaton(case, (), False, algebra)
    for schemas in large:
        _check_enough_values(case, schemas, len(values), unguarded.size, algebra)
    return ItemAutomaton(case, tuple(values), True, algebra)


def _check_enough_values(
    case: ArrayCase, schemas: SchemaSet, listed_values: int, first: int, algebra: SchemaAlgebra
) -> None:
    """Raise UnsupportedError for a set whose values may be used up before an item needs one of them."""
    count = count_values(schemas, INEXHAUSTIBLE, algebra)
    if count.least >= INEXHAUSTIBLE:
        return
    if case.contains:
        # While a constraint is unmet, its items beyond the prefix have been counted; others fill up to `low`.
        needed, possible = max([case.low, *(first + constraint.low for constraint in case.contains)]), case.high
    else:
        needed = _count_positions(case, schemas, case.low, algebra)
        possible = _count_positions(case, schemas, len(case.prefix) if case.high is None else case.high, algebra)
        if case.high is None and algebra.is_satisfiable(algebra.intersect(case.items, schemas)):
            possible = None
    if needed > 1 and count.least - listed_values < needed:
        raise _unsupported(
            f"At least {needed:,} items must differ here, and their schemas were not proved to have that many values.",
            algebra,
        )
    if count.most is not None and (possible is None or count.least - listed_values < possible):
        raise _unsupported(
            f"An array here may use up the {count.most:,} values of a set that other items share.", algebra
        )


def _count_positions(case: ArrayCase, schemas: SchemaSet, length: int, algebra: SchemaAlgebra) -> int:
    """Return how many of the first `length` items may have values of a set."""
    count = sum(algebra.is_satisfiable(algebra.intersect(item, schemas)) for item in case.prefix[:length])
    beyond_prefix = length - len(case.prefix)
    return (
        count + beyond_prefix
        if beyond_prefix > 0 and algebra.is_satisfiable(algebra.intersect(case.items, schemas))
        else count
    )


def emit_unique_texts(case: ArrayCase, texts: list[str], layout: Layout, style: Style) -> Node:
    """Return the node of an array of different texts: an Object whose keys are the items and whose values are empty.

    Its frame holds the set of those that have occurred, so that it is one rule. All texts can follow each other, hence
    `low` cannot lead to a dead end.
    """
    items = tuple([Property(text, EMPTY) for text in texts])
    high = None if case.high is None or case.high >= len(texts) else case.high  # there are no more keys in any case
    return Object(items, (), layout, case.low, high, "any", style.escapes)


def list_shared_values(case: ArrayCase, algebra: SchemaAlgebra) -> list[Constant] | None:
    """Return the values that two items of a case can have in common; None if they are too many to enumerate."""
    size = len(case.prefix)
    sets = dict.fromkeys(case.prefix if case.high is None else case.prefix[: case.high])
    pairs = {algebra.intersect(one, other) for one in case.prefix for other in sets if one is not other}
    pairs |= {schemas for schemas in sets if case.prefix.count(schemas) > 1}
    if case.high is None or case.high > size:
        pairs |= {algebra.intersect(one, case.items) for one in sets}
        if case.high is None or case.high > size + 1:
            pairs.add(case.items)
    values: dict[Constant, None] = {}
    for schemas in pairs:
        listed = list_values(schemas, algebra)
        if listed is None:
            return None
        values.update(dict.fromkeys(listed))
    return list(values)


def too_many_duplicates(algebra: SchemaAlgebra) -> UnsupportedError:
    """Return the error of arrays with two equal items whose values can be neither enumerated nor guarded."""
    cause = "Two equal items are required here (the complement of uniqueItems), which is not supported for so large a"
    return _unsupported(f"{cause} set of values with a bound on the number of items or with `contains`.", algebra)


def _unsupported(cause: str, algebra: SchemaAlgebra) -> UnsupportedError:
    return UnsupportedError(
        cause, pointer=find_pointer("uniqueItems", algebra),
        hint="Allow fewer items, or more values; or leave uniqueItems out and check it afterwards.",
    )  # fmt: skip
