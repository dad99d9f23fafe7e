"""Arrays without dead ends: a case is settled (which items can be there at all?), then written.

A settled case is non-empty and its bounds are those that can be reached. One without contains is '[' items ']' with
the rest counted in a register; one whose items are counted or must differ is the automaton of `counts`.
"""

from __future__ import annotations

from collections.abc import Iterator

from ....grammar.nodes import EMPTY, Choice, Literal, Node, Repeat, Sequence, Unique
from ..core.node_building import sequence_of
from ..core.schema_sets import SchemaSet
from ..core.whitespace import spacing_at
from ..shapes.array_case import ArrayCase, ContainsConstraint
from ..shapes.schema_algebra import SchemaAlgebra
from ..shapes.value_emitter import ValueEmitter
from . import duplicate_items, item_counts, unique_items
from .array_cases import compute_max_items, min_bound, simplify_array
from .item_counts import ItemAutomaton

__all__ = ["list_item_sets", "emit_array", "is_array_satisfiable", "build_item_automaton", "normalise_array"]


def is_array_satisfiable(case: ArrayCase, algebra: SchemaAlgebra) -> bool:
    """Whether there is such an array."""
    if case.high is not None and case.low > case.high:
        return False
    if case.has_duplicates and not case.contains:
        return _some_alike(case, algebra)
    if not case.contains and (not case.unique or case.low <= 1):
        # Only the items that must be there matter, and all of them have to be possible.
        return all(map(algebra.is_satisfiable, case.prefix[: case.low])) and (
            case.low <= len(case.prefix) or algebra.is_satisfiable(case.rest)
        )
    return bool(normalise_array(case, algebra))


def _some_alike(case: ArrayCase, algebra: SchemaAlgebra) -> bool:
    """Whether there is an array with two equal items."""
    size, top = len(case.prefix), compute_max_items(case, algebra)
    if top is not None and top < max(case.low, 2):
        return False
    if top is None or top > size + 1:
        return True
    items = [case.at(position) for position in range(top)]
    return any(
        algebra.is_satisfiable(algebra.intersect(one, other))
        for place, one in enumerate(items)
        for other in items[:place]
    )


def normalise_array(case: ArrayCase, algebra: SchemaAlgebra) -> list[ArrayCase]:
    """The same arrays as cases that can be written: non-empty, `has_duplicates` told by counts, idle contains left out."""
    out: list[ArrayCase] = []
    if any(constraint.high is not None and constraint.low > constraint.high for constraint in case.contains):
        return []
    for told in _tell_alike(case, algebra):
        placed = _place(told, algebra)
        high = compute_max_items(placed, algebra)
        placed = simplify_array(placed._replace(high=high))
        if high is not None and placed.low > high:
            continue
        if placed.unique and ((high is not None and high <= 1) or unique_items.are_items_distinct(placed, algebra)):
            placed = placed._replace(unique=False)
        if placed.unique:
            placed = unique_items.cap_length(placed, algebra)
        if placed.contains or placed.unique:
            if placed.high is not None and placed.low > placed.high:
                continue
            automaton = build_item_automaton(placed, algebra)
            if not automaton.can_finish(automaton.start):
                continue
        out.append(placed)
    return out


def _tell_alike(case: ArrayCase, algebra: SchemaAlgebra) -> list[ArrayCase]:
    """`has_duplicates` as a union over the values that two items may share: each is there twice at least.

    Where these are too many it stays, if the machine can watch for two equal items (`duplicates`).
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


def _place(case: ArrayCase, algebra: SchemaAlgebra) -> ArrayCase:
    """The case without contains that its sets or its bounds decide."""
    both, size = algebra.intersect, len(case.prefix)
    prefix, rest, low, high = case[:4]
    kept: list[ContainsConstraint] = []
    for constraint in case.contains:
        start, schemas, fewest, most = constraint
        if most == 0:
            outside = algebra.complement(schemas)
            size = max(len(prefix), start)
            prefix += (rest,) * (size - len(prefix))
            prefix = prefix[:start] + tuple(both(item, outside) for item in prefix[start:])
            rest = both(rest, outside)
            continue
        items = [*case.prefix[start:], *((case.rest,) if case.high is None or case.high > size else ())]
        if all(both(item, schemas) == item for item in items):
            low = max(low, start + fewest) if fewest else low
            high = high if most is None else min_bound(high, start + most)
        elif most is not None or _surely(case, constraint, algebra) < fewest:
            kept.append(constraint)
    return case._replace(prefix=prefix, rest=rest, low=low, high=high, contains=tuple(kept))


def _surely(case: ArrayCase, constraint: ContainsConstraint, algebra: SchemaAlgebra) -> int:
    """How many of the items that must be there meet a constraint whatever they are."""
    first = case.prefix[constraint.start : case.low]
    count = sum(algebra.intersect(item, constraint.schemas) == item for item in first)
    more = case.low - max(constraint.start, len(case.prefix))
    return count + more if more > 0 and algebra.intersect(case.rest, constraint.schemas) == case.rest else count


def build_item_automaton(case: ArrayCase, algebra: SchemaAlgebra) -> ItemAutomaton:
    """The automaton of a settled case whose items are counted or must differ."""
    return (
        unique_items.build_unique_automaton(case, algebra) if case.unique else ItemAutomaton(case, (), False, algebra)
    )


def list_item_sets(case: ArrayCase, algebra: SchemaAlgebra) -> Iterator[SchemaSet]:
    """All literal sets that an item of a settled case is written with."""
    if case.contains or case.unique:
        yield from (kind.schemas for kind in build_item_automaton(case, algebra).all_kinds())
        return
    yield from case.prefix
    if case.high is None or case.high > len(case.prefix):
        yield case.rest


# ---- writing ---------------------------------------------------------------------------------------------------


OPEN, CLOSE = Literal(b"["), Literal(b"]")


def emit_array(case: ArrayCase, emitter: ValueEmitter, depth: int) -> Node:
    """The node of a settled case: an array at `depth`."""
    space = spacing_at(emitter.style, depth)
    options: list[Node] = []
    if _may_be_empty(case, emitter):
        options.append(Sequence((OPEN, space.empty, CLOSE)))
    items = _items(case, emitter, depth + 1)
    if items is not None:
        options.append(Sequence((OPEN, space.open, items, space.close, CLOSE)))
    return options[0] if len(options) == 1 else Choice(tuple(options))


def _may_be_empty(case: ArrayCase, emitter: ValueEmitter) -> bool:
    if not case.contains:
        return case.low == 0 and not case.has_duplicates
    automaton = emitter.plan(case)
    return bool(automaton.may_end(automaton.start))


def _items(case: ArrayCase, emitter: ValueEmitter, depth: int) -> Node | None:
    """One item or more, with commas between; None if there can be none."""
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
    comma = spacing_at(emitter.style, depth - 1).comma
    size = len(case.prefix)
    low, high = max(case.low, 1), case.high
    first = [emitter.value(schemas, depth) for schemas in case.prefix]
    tail: Node = EMPTY
    if high is None or high > size:
        rest = emitter.value(case.rest, depth)
        if not first:
            return sequence_of(rest, _repeat(sequence_of(comma, rest), low - 1, None if high is None else high - 1))
        tail = _repeat(sequence_of(comma, rest), max(0, low - size), None if high is None else high - size)
    for position in range(size - 1, 0, -1):
        tail = sequence_of(comma, first[position], tail)
        if position >= low:
            tail = Choice((EMPTY, tail))
    return sequence_of(first[0], tail)


def _repeat(node: Node, low: int, high: int | None) -> Node:
    """`node` low to high times; nothing at all if high is 0."""
    return EMPTY if high == 0 else node if low == high == 1 else Repeat(node, low, high)
