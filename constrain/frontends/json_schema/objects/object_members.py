"""Objects without dead ends: a case is settled (which keys can be there at all?), then written as one Object node.

A settled case is non-empty, forbids every key without a value, knows its capacity, and has no `somes`: each demand
has been met by a declared key, by a name of a finite cell, by the number of members, or by a class of names that must
have a member (`demands`).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from math import prod
from typing import NamedTuple, Protocol

from ....base.errors import LimitError
from ....base.options import Limits, Style
from ....base.work import spend
from ....grammar.nodes import NameClass, Node, Object, Property
from ..algebra.schema_sets import NEVER, Lits
from ..strings.nested_regex_format import Nested
from ..strings.string_languages import Languages
from ..whitespace import spacing
from . import format_keys, object_cases, object_clauses, object_derivatives
from .member_demands import FEW, Placed, fresh_names, place
from .object_cases import Algebra as Objects, Cell, ObjectCase
from .object_derivatives import Factored, NotDerived

__all__ = ["Settled", "as_it_stands", "emit", "nonempty", "settle"]

MOST_RESOLVED = 32
"""Cases without clauses that are written one by one rather than by derivatives."""

MOST_NAMES = 4096
"""Names of a finite class that are written out where minProperties may need all of them: each is a declared key."""


class Algebra(Objects, Protocol):
    """What objects ask about their children and names, and how they are to be written."""

    languages: Languages
    limits: Limits
    style: Style

    def possible(self, case: ObjectCase) -> bool: ...


class Settled(NamedTuple):
    """An object case as it is written: `names` are the keys that may be there, in order; `forbidden` may not.

    cells: disjoint languages of other names. classes: others of which each must have a member of its own.
    """

    names: tuple[tuple[str, Lits], ...]
    required: frozenset[str]
    forbidden: tuple[str, ...]
    cells: tuple[Cell, ...]
    low: int
    high: int | None
    needs: dict[str, frozenset[str]]
    classes: tuple[Cell, ...] = ()


def nonempty(case: ObjectCase, algebra: Algebra) -> bool:
    """Whether there is such an object. Looks only at what must be there, unless members are counted."""
    if case.high is not None and len(case.required) > case.high:
        return False
    if case.clauses:
        return any(nonempty(told, algebra) for told in object_clauses.resolved(case, algebra))
    if not case.somes and case.low <= len(case.required) and not case.needs:
        return all(algebra.nonempty(lits) for name, lits in case.names if name in case.required)
    return any(_possible(placed, algebra) for placed in place(case, algebra))


def _possible(placed: Placed, algebra: Algebra) -> bool:
    case, classes = placed
    least = len(case.required) + len(classes)
    if case.low > least or case.needs:
        return any(True for _ in _cases(placed, algebra))
    if case.high is not None and least > case.high:
        return False
    return all(algebra.nonempty(lits) for name, lits in case.names if name in case.required)


def settle(case: ObjectCase, algebra: Algebra) -> list[Settled | Factored]:
    """The same objects as cases without dead ends."""
    if case.clauses:
        if prod(map(len, case.clauses)) > MOST_RESOLVED:
            try:
                return _derived(case, algebra)
            except NotDerived as signal:
                return _one_by_one(case, signal, algebra)
        told = object_cases.distinct(object_clauses.resolved(case, algebra))
        return [settled for one in told for settled in settle(one, algebra)]
    cases = (settled for placed in place(case, algebra) for settled in _cases(placed, algebra))
    most = MOST_RESOLVED if algebra.style.key_order in object_derivatives.KEY_ORDERS else algebra.limits.cases
    out: list[Settled | Factored] = list(islice(cases, most + 1))
    if len(out) <= most:
        return out
    try:
        return _derived(case, algebra)
    except NotDerived as signal:
        for settled in cases:
            out.append(settled)
            if len(out) > algebra.limits.cases:
                raise signal.error from None
    return out


def _one_by_one(case: ObjectCase, signal: NotDerived, algebra: Algebra) -> list[Settled | Factored]:
    """A case with clauses as cases without, if they are not too many."""
    most = algebra.limits.cases // 2
    told = list(islice(object_clauses.resolved(case, algebra), 4 * most))
    if len(told) == 4 * most:
        raise signal.error from None
    out = [settled for one in object_cases.distinct(told) for settled in settle(one, algebra)]
    if len(out) > most:
        raise signal.error from None
    return out


def _derived(case: ObjectCase, algebra: Algebra) -> list[Settled | Factored]:
    """The case to be written by derivatives; nothing if it is empty."""
    return [object_derivatives.settle(case, algebra)] if nonempty(case, algebra) else []


def as_it_stands(case: ObjectCase) -> Settled:
    """The case settled, where every value that it names is known to be possible and nothing is counted or demanded."""
    names = case.names
    if case.mentioned:
        names = tuple(sorted(names, key=lambda item: item[0] in case.mentioned))
    return Settled(names, case.required, (), case.cells, 0, None, {})


def _cases(placed: Placed, algebra: Algebra) -> Iterator[Settled]:
    """The case settled; by cases, if keys that need others are in the way of counting."""
    settled = _settle(placed, algebra)
    if settled is None:
        return
    name = _in_the_way(settled, algebra)
    if name is None:
        yield settled
        return
    case, classes = placed
    yield from _cases(Placed(case._replace(required=case.required | {name}), classes), algebra)
    without = tuple((other, NEVER if other == name else lits) for other, lits in case.names)
    yield from _cases(Placed(case._replace(names=without), classes), algebra)


def _in_the_way(settled: Settled, algebra: Algebra) -> str | None:
    """A key that needs others, so that not every number of members that seems possible is.

    Where an undeclared key may come, any number can be reached one by one. Else the keys alone must do. If none need
    each other in a circle they can be added one by one, each after those that it needs, so every number between that
    of the keys that must be there and that of all is reached. In schema order a key that needs an earlier one is gone
    with it, which nobody counts.
    """
    if not settled.low or not settled.needs or settled.cells or settled.classes:
        return None
    places = {name: index for index, (name, _) in enumerate(settled.names)}
    ordered = algebra.style.key_order == "schema"
    for name, closure in settled.needs.items():
        if name in settled.required:
            continue
        if ordered and any(places[other] < places[name] for other in closure - settled.required):
            return name
        if settled.high is not None and any(name in settled.needs.get(other, NONE) for other in closure - {name}):
            return name
    return None


def _settle(placed: Placed, algebra: Algebra) -> Settled | None:
    """The case without keys that cannot be there; None if it is empty."""
    case, classes = placed
    if case.high is not None and case.low > case.high:
        return None
    values = dict(case.names)
    if not all(algebra.nonempty(values[name]) for name in case.required):
        return None
    forbidden = {name for name, lits in case.names if name not in case.required and not algebra.nonempty(lits)}
    most = None if case.high is None else case.high - len(classes)
    closures = _closures(dict(case.needs))
    for name, closure in closures.items():
        if closure & forbidden or (most is not None and len(closure | case.required) > most):
            forbidden.add(name)
    required = case.required.union(*(closures[name] for name in case.required if name in closures))
    if required & forbidden or (most is not None and len(required) > most):
        return None
    room = most is None or most > len(required)
    least = len(required) + len(classes)
    listed = [(name, lits) for name, lits in case.names if name not in forbidden and (room or name in required)]
    cells = tuple(cell for cell in case.cells if _possible_cell(cell, algebra)) if room else ()
    barred = tuple(forbidden.union(values).difference(name for name, _ in listed))
    extra, kept = _spell_out(cells, case, len(listed), algebra)
    listed += extra
    if case.low > least and not kept and len(listed) + len(classes) < case.low:
        return None
    listed.sort(key=lambda item: item[0] in case.mentioned)
    needs = {name: closure for name, closure in closures.items() if name not in forbidden and closure - required}
    return Settled(
        tuple(listed), required, barred, kept, case.low if case.low > least else 0,
        case.high if kept or classes or case.high is None or case.high < len(listed) else None, needs, classes,
    )  # fmt: skip


def _possible_cell(cell: Cell, algebra: Algebra) -> bool:
    """Whether there may be a member of a cell: a name first, since values can lead anywhere."""
    lang, lits = cell
    if lits == NEVER or (len(lang) > 1 and not algebra.languages.holds_names(lang)):
        return False
    return algebra.nonempty(lits)


def _closures(needs: dict[str, frozenset[str]]) -> dict[str, frozenset[str]]:
    """Every name with all names that must be there if it is, itself included."""
    out: dict[str, frozenset[str]] = {}
    for name in needs:
        seen, todo = {name}, [name]
        while todo:
            for other in needs.get(todo.pop(), NONE):
                if other not in seen:
                    seen.add(other)
                    todo.append(other)
        spend(1 + len(seen) // 2, "the keys that depend on each other")
        out[name] = frozenset(seen)
    return out


def _spell_out(
    cells: tuple[Cell, ...], case: ObjectCase, listed: int, algebra: Algebra
) -> tuple[list[tuple[str, Lits]], tuple[Cell, ...]]:
    """Names of small finite cells as declared ones, and the other cells; empty ones are dropped.

    A cell is small if it has no more than FEW names; and if the members that there must be at least are more than any
    cell has, all are: then every name may be needed, and is counted.
    """
    extra: list[tuple[str, Lits]] = []
    kept: list[Cell] = []
    declared = {name for name, _ in case.names}
    for lang, lits in cells:
        names = fresh_names(lang, FEW, declared, algebra.languages)
        if names is None:
            kept.append((lang, lits))
        else:
            extra += [(name, lits) for name in names]
    if kept and case.low > listed + len(extra) and case.low > FEW:
        sizes = [algebra.languages.dfa(lang).count(case.low + len(declared)) - len(declared) for lang, _ in kept]
        if max(sizes) < case.low:
            spelled = [(fresh_names(lang, MOST_NAMES, declared, algebra.languages), lits) for lang, lits in kept]
            for names, lits in spelled:
                if names is None:
                    raise LimitError(
                        f"minProperties may need every one of more than {MOST_NAMES} possible names.",
                        pointer=algebra.refuse("", "minProperties").pointer, hint="Write a smaller number.",
                    )  # fmt: skip
                extra += [(name, lits) for name in names]
            kept = []
    return extra, tuple(kept)


# ---- writing ---------------------------------------------------------------------------------------------------


class Writer(Protocol):
    """What objects ask of the writer of values."""

    style: Style
    languages: Languages

    def value(self, lits: Lits, depth: int) -> Node: ...


def emit(case: Settled | Factored, writer: Writer, depth: int) -> Node:
    """The node of a settled case: an object at `depth`."""
    if isinstance(case, Factored):
        return object_derivatives.emit(case, writer, depth)
    if any(isinstance(writer.languages.nested(lang), Nested) for lang, _ in (*case.cells, *case.classes)):
        return format_keys.emit(case, writer, depth)
    properties = tuple(
        Property(name, writer.value(lits, depth + 1), name in case.required, case.needs.get(name, NONE) - {name})
        for name, lits in case.names
    )
    declared = tuple(sorted((*(name for name, _ in case.names), *case.forbidden)))
    others: list[NameClass] = []
    classes = [(cell, False) for cell in case.cells if cell not in case.classes]
    for (lang, lits), required in (*classes, *((cell, True) for cell in case.classes)):
        dfa = writer.languages.dfa(lang)
        if declared and not dfa.endless():  # else the object itself leaves the declared names out, and rows are shared
            dfa = writer.languages.dfa(lang | {(False, "texts", declared)})  # type: ignore[arg-type]
        if not dfa.is_empty:
            others.append(NameClass(dfa, writer.value(lits, depth + 1), required))
    style = writer.style
    layout = spacing(style, depth).layout
    excluded = tuple(case.forbidden)
    return Object(properties, tuple(others), layout, case.low, case.high, style.key_order, style.escapes, excluded)


NONE: frozenset[str] = frozenset()
