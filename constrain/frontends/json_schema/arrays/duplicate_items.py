"""Arrays with two equal items, the complement of `uniqueItems`, where infinitely many values may be the equal ones.

"Some two items are equal" is no context-free language, so the items are written as `Member`s of a `Unique` until one
equals an earlier one (`grammar.nodes.Member.again`); from there on nothing is left to watch, and the array may end.
Without an upper bound on the number of items there is no dead end: any item of the rest can be written once more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from ....base.options import Style
from ....grammar.nodes import EMPTY, Choice, Member, Node, Repeat, Rule, Sequence, Unique
from ..algebra.schema_sets import Lits
from ..whitespace import spacing
from .array_cases import ArrayCase

if TYPE_CHECKING:
    from ..algebra.shape_algebra import Algebra

__all__ = ["Following", "emit_items", "follow", "is_guarded"]


class Following(NamedTuple):
    """The name of a rule: what follows `position` items.

    duplicated: two of them are equal, and the rest of the array follows; else all differ, and an item comes next.
    """

    case: ArrayCase
    position: int
    depth: int
    duplicated: bool


class Writer(Protocol):
    """What is asked of the writer of values."""

    style: Style

    def value(self, lits: Lits, depth: int) -> Node: ...


def is_guarded(case: ArrayCase, algebra: Algebra) -> bool:
    """Whether a non-empty case whose bounds are reached is one that can be written here: items without an end."""
    return case.high is None and not case.demands and algebra.nonempty(case.rest)


def emit_items(case: ArrayCase, depth: int) -> Node:
    """The items of an array of a settled case."""
    return Unique(Rule(Following(case, 0, depth, duplicated=False)))


def follow(name: Following, writer: Writer) -> Node:
    """What such a rule stands for."""
    return _rest(name, writer) if name.duplicated else _next(name, writer)


def _next(name: Following, writer: Writer) -> Node:
    """The next item, and what follows it, whether or not it equals an earlier one."""
    case, position, depth, _ = name
    after = min(position + 1, max(len(case.prefix), case.low))
    again = Rule(Following(case, after, depth, duplicated=True)) if position else None
    comma = spacing(writer.style, depth - 1).comma
    item = Member(writer.value(case.at(position), depth), again)
    return Sequence((item, comma, Rule(name._replace(position=after))))


def _rest(name: Following, writer: Writer) -> Node:
    """The other items, as many as the case allows."""
    case, position, depth, _ = name
    comma = spacing(writer.style, depth - 1).comma
    item = Sequence((comma, writer.value(case.at(position), depth)))
    if position >= len(case.prefix):
        return Repeat(item, max(0, case.low - position))
    rest = Sequence((*item.parts, Rule(name._replace(position=position + 1))))
    return Choice((EMPTY, rest)) if position >= case.low else rest
