"""Normalise an array case, so that it has no dead ends, and emit it.

A normalised case is non-empty, and its bounds can be reached. Without contains-constraints it becomes '[' items ']'
with the items after the prefix counted in a register; if items are counted by set or must differ, it becomes the
automaton of `item_counts`.
"""

from __future__ import annotations

from collections.abc import Iterator

from ....grammar.nodes import EMPTY, Choice, Literal, Node, Repeat, Sequence, Unique
from ..core.json_values import STRING
from ..core.node_building import sequence_of
from ..core.schema_sets import SchemaSet
from ..shapes.array_case import ArrayCase, ContainsConstraint
from ..shapes.schema_algebra import SchemaAlgebra
from ..shapes.value_emitter import ValueEmitter
from . import duplicate_items, item_counts, unique_items
from .array_cases import compute_max_items, min_bound, simplify_array
from .item_counts import ItemAutomaton

__all__ = ["list_item_sets", "emit_array", "is_array_satisfiable", "build_item_automaton", "normalise_array"]


def is_array_satisfiable(case: ArrayCase, algebra: SchemaAlgebra) -> bool:
    """Return whether the case has an array. Only the items that are required are tested, unless items are counted."""
    if case.high is not None and case.low > case.high:
        return False
    if case.has_duplicates and not case.contains:
        return _can_have_duplicates(case, algebra)
    if not case.contains and (not case.unique or case.low <= 1):
        # Only the required items matter: an optional one may be left out.
        return all(map(algebra.is_satisfiable, case.prefix[: case.low])) and (
            case.low <= len(case.prefix) or algebra.is_satisfiable(case.items)
        )
    return bool(normalise_array(case, algebra))


def _can_have_duplicates(case: ArrayCase, algebra: SchemaAlgebra) -> bool:
    """Return whether the case has an array with two equal items."""
    size, top = len(case.prefix), compute_max_items(case, algebra)
    if top is not None and top < max(case.low, 2):
        return False
    if top is None or top > size + 1:
        return True
    items = [case.at(first) for first in range(top)]
    return any(
        algebra.is_satisfiable(algebra.intersect(one, other))
        for position, one in enumerate(items)
        for other in items[:position]
    )


def normalise_array(case: ArrayCase, algebra: SchemaAlgebra) -> list[ArrayCase]:
    """Return non-empty cases that together have the same arrays and can be written.

    `has_duplicates` becomes contains-constraints where few values can be repeated, and redundant constraints are
    dropped.
    """
    out: list[ArrayCase] = []
    if any(constraint.high is not None and constraint.low > constraint.high for constraint in case.contains):
        return []
    for expanded in _expand_duplicates(case, algebra):
        resolved = _resolve_contains(expanded, algebra)
        high = compute_max_items(resolved, algebra)
        resolved = simplify_array(resolved._replace(high=high))
        if high is not None and resolved.low > high:
            continue
        if resolved.unique and ((high is not None and high <= 1) or unique_items.are_items_distinct(resolved, algebra)):
            resolved = resolved._replace(unique=False)
        if resolved.unique:
            resolved = unique_items.cap_length(resolved, algebra)
        if resolved.contains or resolved.unique:
            if resolved.high is not None and resolved.low > resolved.high:
                continue
            automaton = build_item_automaton(resolved, algebra)
            if not automaton.can_finish(automaton.start):
                continue
        out.append(resolved)
    return out


def _expand_duplicates(case: ArrayCase, algebra: SchemaAlgebra) -> list[ArrayCase]:
    """Return the case without `has_duplicates`: a union over the values that two items may share, each contained twice.

    With too many of these values the flag remains, if the engine can guard it (`duplicate_items`); otherwise raise
    UnsupportedError.
    """
    if not case.has_duplicates:
        return [case]
    if case.unique:
        return []
    high = compute_max_items(case, algebra)
    if high is not None and high < max(case.low, 2):
        return []
    case = simplify_array(case._replace(low=max(case.low, 2), high=high, has_duplicates=False))
    values = unique_items.list_shared_values(case, algebra)
    if values is None:
        if not duplicate_items.is_guardable(case, algebra):
            raise unique_items.too_many_duplicates(algebra)
        return [case._replace(has_duplicates=True)]
    twice = (ContainsConstraint(0, algebra.table.add_constant(value), 2) for value in values)
    return [simplify_array(case._replace(contains=(*case.contains, constraint))) for constraint in twice]


def _resolve_contains(case: ArrayCase, algebra: SchemaAlgebra) -> ArrayCase:
    """Return the case without the contains-constraints that the sets of its items or its bounds decide."""
    intersect, size = algebra.intersect, len(case.prefix)
    prefix, items, low, high = case[:4]
    remaining: list[ContainsConstraint] = []
    for constraint in case.contains:
        start, schemas, least, most = constraint
        if most == 0:
            outside = algebra.complement(schemas)
            size = max(len(prefix), start)
            prefix += (items,) * (size - len(prefix))
            prefix = prefix[:start] + tuple(intersect(item, outside) for item in prefix[start:])
            items = intersect(items, outside)
            continue
        possible_items = [*case.prefix[start:], *((case.items,) if case.high is None or case.high > size else ())]
        if all(intersect(item, schemas) == item for item in possible_items):
            low = max(low, start + least) if least else low
            high = high if most is None else min_bound(high, start + most)
        elif most is not None or _count_certain(case, constraint, algebra) < least:
            remaining.append(constraint)
    return case._replace(prefix=prefix, items=items, low=low, high=high, contains=tuple(remaining))


def _count_certain(case: ArrayCase, constraint: ContainsConstraint, algebra: SchemaAlgebra) -> int:
    """Return how many of the required items meet a contains-constraint whatever their values are."""
    required = case.prefix[constraint.start : case.low]
    count = sum(algebra.intersect(item, constraint.schemas) == item for item in required)
    beyond_prefix = case.low - max(constraint.start, len(case.prefix))
    return (
        count + beyond_prefix
        if beyond_prefix > 0 and algebra.intersect(case.items, constraint.schemas) == case.items
        else count
    )


def build_item_automaton(case: ArrayCase, algebra: SchemaAlgebra) -> ItemAutomaton:
    """Return the automaton of a normalised case whose items are counted or must differ."""
    return (
        unique_items.build_unique_automaton(case, algebra) if case.unique else ItemAutomaton(case, (), False, algebra)
    )


def list_item_sets(case: ArrayCase, algebra: SchemaAlgebra) -> Iterator[SchemaSet]:
    """Yield all sets with which an item of a normalised case is written."""
    if case.contains or case.unique:
        yield from (kind.schemas for kind in build_item_automaton(case, algebra).all_kinds())
        return
    yield from case.prefix
    if case.high is None or case.high > len(case.prefix):
        yield case.items


# ---- writing ---------------------------------------------------------------------------------------------------


OPEN, CLOSE = Literal(b"["), Literal(b"]")


def emit_array(case: ArrayCase, emitter: ValueEmitter, depth: int) -> Node:
    """Return the node of a normalised case: an array at `depth`."""
    space = emitter.spacing(depth)
    texts = _list_unique_texts(case, emitter)
    if texts is not None:
        return unique_items.emit_unique_texts(case, texts, space.texts, emitter.style)
    options: list[Node] = []
    if _may_be_empty(case, emitter):
        options.append(Sequence((OPEN, space.empty, CLOSE)))
    items = _emit_items(case, emitter, depth + 1)
    if items is not None:
        options.append(Sequence((OPEN, space.open, items, space.close, CLOSE)))
    return options[0] if len(options) == 1 else Choice(tuple(options))


def _list_unique_texts(case: ArrayCase, emitter: ValueEmitter) -> list[str] | None:
    """Return the items of an array of many different texts, of which nothing else is required; None for others."""
    if not case.unique or case.contains or case.prefix:
        return None
    plan = emitter.plan(case)
    if len(plan.values) < unique_items.MANY_TEXTS or not plan.lists_all:
        return None
    texts = [value[1] for value in plan.values if value[0] == STRING]
    return texts if len(texts) == len(plan.values) else None


def _may_be_empty(case: ArrayCase, emitter: ValueEmitter) -> bool:
    """Return whether the empty array is in the case."""
    if not case.contains:
        return case.low == 0 and not case.has_duplicates
    automaton = emitter.plan(case)
    return bool(automaton.may_end(automaton.start))


def _emit_items(case: ArrayCase, emitter: ValueEmitter, depth: int) -> Node | None:
    """Return the node of one item or more, with commas between them; None if there can be none."""
    if case.high == 0:
        return None
    if case.has_duplicates:
        return duplicate_items.emit_duplicate_items(case, depth)
    if case.unique:
        items = item_counts.emit_counted_items(case, emitter, depth)
        return items if items is None or emitter.plan(case).lists_all else Unique(items)
    return (
        item_counts.emit_counted_items(case, emitter, depth) if case.contains else emit_item_run(case, emitter, depth)
    )


def emit_item_run(case: ArrayCase, emitter: ValueEmitter, depth: int) -> Node:
    """Return the node of one item or more that are not counted by set: the prefix, then a counted repetition.

    This is where `minItems` and `maxItems` take effect. The repetition is a register of the frame, so large bounds cost
    no states.
    """
    comma = emitter.spacing(depth - 1).comma
    size = len(case.prefix)
    low, high = max(case.low, 1), case.high
    first = [emitter.value(schemas, depth) for schemas in case.prefix]
    tail: Node = EMPTY
    if high is None or high > size:
        item = emitter.value(case.items, depth)
        if not first:
            return sequence_of(
                item, _repeat_node(sequence_of(comma, item), low - 1, None if high is None else high - 1)
            )
        tail = _repeat_node(sequence_of(comma, item), max(0, low - size), None if high is None else high - size)
    for position in range(size - 1, 0, -1):
        tail = sequence_of(comma, first[position], tail)
        if position >= low:
            tail = Choice((EMPTY, tail))
    return sequence_of(first[0], tail)


def _repeat_node(node: Node, low: int, high: int | None) -> Node:
    """Return `node` low to high times; the empty node if high is 0."""
    return EMPTY if high == 0 else node if low == high == 1 else Repeat(node, low, high)
