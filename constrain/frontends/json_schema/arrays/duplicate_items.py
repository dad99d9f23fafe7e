"""Arrays with two equal items, the complement of `uniqueItems`, where infinitely many values may be the repeated one.

"Some two items are equal" is not a context-free language. So the items are written as `Member`s of a `Unique` node
until one equals an earlier one (`grammar.nodes.Member.again`); after that nothing has to be compared, and the array
may end. Without an upper bound of the length there is no dead end, since any item after the prefix can be repeated.
"""

from __future__ import annotations

from typing import NamedTuple

from ....grammar.nodes import EMPTY, Choice, Member, Node, Repeat, Rule, Sequence, Unique
from ..core.whitespace import spacing_at
from ..shapes.array_case import ArrayCase
from ..shapes.schema_algebra import SchemaAlgebra
from ..shapes.value_emitter import ValueEmitter

__all__ = ["DuplicateItems", "emit_duplicate_items", "emit_following_items", "is_guardable"]


class DuplicateItems(NamedTuple):
    """The name of a rule: what follows `position` items.

    duplicated: two of them are equal, and the remaining items follow; otherwise all differ, and an item comes next.
    """

    case: ArrayCase
    position: int
    depth: int
    duplicated: bool


def is_guardable(case: ArrayCase, algebra: SchemaAlgebra) -> bool:
    """Return whether the engine can guard a satisfiable case with reachable bounds: its length must be unbounded."""
    return case.high is None and not case.contains and algebra.is_satisfiable(case.items)


def emit_duplicate_items(case: ArrayCase, depth: int) -> Node:
    """Return the node of the items of a normalised case."""
    return Unique(Rule(DuplicateItems(case, 0, depth, duplicated=False)))


def emit_following_items(name: DuplicateItems, emitter: ValueEmitter) -> Node:
    """Return the node of a rule of this module."""
    return _emit_remaining_items(name, emitter) if name.duplicated else _emit_item(name, emitter)


def _emit_item(name: DuplicateItems, emitter: ValueEmitter) -> Node:
    """Return the next item and what follows it, whether or not it equals an earlier one."""
    case, position, depth, _ = name
    after = min(position + 1, max(len(case.prefix), case.low))
    after_duplicate = Rule(DuplicateItems(case, after, depth, duplicated=True)) if position else None
    comma = spacing_at(emitter.style, depth - 1).comma
    item = Member(emitter.value(case.at(position), depth), after_duplicate)
    return Sequence((item, comma, Rule(name._replace(position=after))))


def _emit_remaining_items(name: DuplicateItems, emitter: ValueEmitter) -> Node:
    """Return the remaining items, as many as the case allows."""
    case, position, depth, _ = name
    comma = spacing_at(emitter.style, depth - 1).comma
    item = Sequence((comma, emitter.value(case.at(position), depth)))
    if position >= len(case.prefix):
        return Repeat(item, max(0, case.low - position))
    tail = Sequence((*item.parts, Rule(name._replace(position=position + 1))))
    return Choice((EMPTY, tail)) if position >= case.low else tail
