"""Arrays without dead ends: a case is settled (which items can be there at all?), then written.

A settled case is non-empty and its bounds are those that can be reached. One without demands is '[' items ']' with
the rest counted in a register; one whose items are counted or must differ is the automaton of `counts`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Protocol

from ....base.options import Style
from ....grammar.nodes import EMPTY, Choice, Literal, Node, Repeat, Sequence, Unique
from ..algebra.schema_sets import Lits
from ..whitespace import spacing
from . import duplicate_items, item_counts, unique_items
from .array_cases import ArrayCase, Demand, bound, least, tidy
from .item_counts import Plan

if TYPE_CHECKING:
    from ..algebra.shape_algebra import Algebra

__all__ = ["children", "emit", "nonempty", "plan", "settle"]


def nonempty(case: ArrayCase, algebra: Algebra) -> bool:
    """Whether there is such an array."""
    if case.high is not None and case.low > case.high:
        return False
    if case.alike and not case.demands:
        return _some_alike(case, algebra)
    if not case.demands and (not case.unique or case.low <= 1):
        # Only the items that must be there matter, and all of them have to be possible.
        return all(map(algebra.nonempty, case.prefix[: case.low])) and (
            case.low <= len(case.prefix) or algebra.nonempty(case.rest)
        )
    return bool(settle(case, algebra))


def _some_alike(case: ArrayCase, algebra: Algebra) -> bool:
    """Whether there is an array with two equal items."""
    size, top = len(case.prefix), bound(case, algebra)
    if top is not None and top < max(case.low, 2):
        return False
    if top is None or top > size + 1:
        return True
    items = [case.at(position) for position in range(top)]
    return any(algebra.nonempty(algebra.both(one, other)) for place, one in enumerate(items) for other in items[:place])


def settle(case: ArrayCase, algebra: Algebra) -> list[ArrayCase]:
    """The same arrays as cases that can be written: non-empty, `alike` told by counts, idle demands left out."""
    out: list[ArrayCase] = []
    if any(demand.high is not None and demand.low > demand.high for demand in case.demands):
        return []
    for told in _tell_alike(case, algebra):
        placed = _place(told, algebra)
        high = bound(placed, algebra)
        placed = tidy(placed._replace(high=high))
        if high is not None and placed.low > high:
            continue
        if placed.unique and ((high is not None and high <= 1) or unique_items.apart(placed, algebra)):
            placed = placed._replace(unique=False)
        if placed.unique:
            placed = unique_items.capped(placed, algebra)
        if placed.demands or placed.unique:
            if placed.high is not None and placed.low > placed.high:
                continue
            automaton = plan(placed, algebra)
            if not automaton.alive(automaton.start):
                continue
        out.append(placed)
    return out


def _tell_alike(case: ArrayCase, algebra: Algebra) -> list[ArrayCase]:
    """`alike` as a union over the values that two items may share: each is there twice at least.

    Where these are too many it stays, if the machine can watch for two equal items (`duplicates`).
    """
    if not case.alike:
        return [case]
    if case.unique:
        return []
    high = bound(case, algebra)
    if high is not None and high < max(case.low, 2):
        return []
    case = tidy(case._replace(low=max(case.low, 2), high=high, alike=False))
    values = unique_items.repeated(case, algebra)
    if values is None:
        if not duplicate_items.is_guarded(case, algebra):
            raise unique_items.too_many_equal(algebra)
        return [case._replace(alike=True)]
    twice = (Demand(0, algebra.reader.constant(value), 2) for value in values)
    return [tidy(case._replace(demands=(*case.demands, demand))) for demand in twice]


def _place(case: ArrayCase, algebra: Algebra) -> ArrayCase:
    """The case without demands that its sets or its bounds decide."""
    both, size = algebra.both, len(case.prefix)
    prefix, rest, low, high = case[:4]
    kept: list[Demand] = []
    for demand in case.demands:
        start, lits, fewest, most = demand
        if most == 0:
            outside = algebra.opposite(lits)
            size = max(len(prefix), start)
            prefix += (rest,) * (size - len(prefix))
            prefix = prefix[:start] + tuple(both(item, outside) for item in prefix[start:])
            rest = both(rest, outside)
            continue
        items = [*case.prefix[start:], *((case.rest,) if case.high is None or case.high > size else ())]
        if all(both(item, lits) == item for item in items):
            low = max(low, start + fewest) if fewest else low
            high = high if most is None else least(high, start + most)
        elif most is not None or _surely(case, demand, algebra) < fewest:
            kept.append(demand)
    return case._replace(prefix=prefix, rest=rest, low=low, high=high, demands=tuple(kept))


def _surely(case: ArrayCase, demand: Demand, algebra: Algebra) -> int:
    """How many of the items that must be there meet a demand whatever they are."""
    first = case.prefix[demand.start : case.low]
    count = sum(algebra.both(item, demand.lits) == item for item in first)
    more = case.low - max(demand.start, len(case.prefix))
    return count + more if more > 0 and algebra.both(case.rest, demand.lits) == case.rest else count


def plan(case: ArrayCase, algebra: Algebra) -> Plan:
    """The automaton of a settled case whose items are counted or must differ."""
    return unique_items.plan(case, algebra) if case.unique else Plan(case, (), False, algebra)


def children(case: ArrayCase, algebra: Algebra) -> Iterator[Lits]:
    """All literal sets that an item of a settled case is written with."""
    if case.demands or case.unique:
        yield from (kind.lits for kind in plan(case, algebra).all_kinds())
        return
    yield from case.prefix
    if case.high is None or case.high > len(case.prefix):
        yield case.rest


# ---- writing ---------------------------------------------------------------------------------------------------


class Writer(Protocol):
    """What arrays ask of the writer of values."""

    style: Style

    def value(self, lits: Lits, depth: int) -> Node: ...
    def plan(self, case: ArrayCase) -> Plan: ...


OPEN, CLOSE = Literal(b"["), Literal(b"]")


def emit(case: ArrayCase, writer: Writer, depth: int) -> Node:
    """The node of a settled case: an array at `depth`."""
    space = spacing(writer.style, depth)
    options: list[Node] = []
    if _may_be_empty(case, writer):
        options.append(Sequence((OPEN, space.empty, CLOSE)))
    items = _items(case, writer, depth + 1)
    if items is not None:
        options.append(Sequence((OPEN, space.open, items, space.close, CLOSE)))
    return options[0] if len(options) == 1 else Choice(tuple(options))


def _may_be_empty(case: ArrayCase, writer: Writer) -> bool:
    if not case.demands:
        return case.low == 0 and not case.alike
    automaton = writer.plan(case)
    return automaton.stops(automaton.start)


def _items(case: ArrayCase, writer: Writer, depth: int) -> Node | None:
    """One item or more, with commas between; None if there can be none."""
    if case.high == 0:
        return None
    if case.alike:
        return duplicate_items.emit_items(case, depth)
    if case.unique:
        items = item_counts.first(case, writer, depth)
        return items if items is None or writer.plan(case).lists_all else Unique(items)
    return item_counts.first(case, writer, depth) if case.demands else _run(case, writer, depth)


def _run(case: ArrayCase, writer: Writer, depth: int) -> Node:
    comma = spacing(writer.style, depth - 1).comma
    size = len(case.prefix)
    low, high = max(case.low, 1), case.high
    first = [writer.value(lits, depth) for lits in case.prefix]
    tail: Node = EMPTY
    if high is None or high > size:
        rest = writer.value(case.rest, depth)
        if not first:
            return _sequence(rest, _repeat(_sequence(comma, rest), low - 1, None if high is None else high - 1))
        tail = _repeat(_sequence(comma, rest), max(0, low - size), None if high is None else high - size)
    for position in range(size - 1, 0, -1):
        tail = _sequence(comma, first[position], tail)
        if position >= low:
            tail = Choice((EMPTY, tail))
    return _sequence(first[0], tail)


def _sequence(*parts: Node) -> Node:
    """The parts one after the other, flat and without empty ones."""
    flat: list[Node] = []
    for part in parts:
        flat.extend(part.parts if isinstance(part, Sequence) else () if part is EMPTY else (part,))
    return flat[0] if len(flat) == 1 else Sequence(tuple(flat))


def _repeat(node: Node, low: int, high: int | None) -> Node:
    """`node` low to high times; nothing at all if high is 0."""
    return EMPTY if high == 0 else node if low == high == 1 else Repeat(node, low, high)
