"""Objects without dead ends: a case is settled (which keys can be there at all?), then written as one Object node.

A settled case is non-empty, forbids every key without a value, knows its capacity, and has no `somes`: each demand
has been met by a declared key, by a name of a finite cell, or by the number of members.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from ...automata.dfa import Dfa
from ...errors import UnsupportedError
from ...grammar.nodes import NameClass, Node, Object, Property
from ...style import Limits, Style
from .languages import Lang, Languages
from .literals import NEVER, Lits
from .objects import Cell, ObjectCase
from .spacing import spacing

__all__ = ["Settled", "emit", "nonempty", "settle"]

FEW = 64
"""Names of a finite class that are written out as declared keys, so that the number of keys left is exact."""


class Algebra(Protocol):
    """What objects ask about their children and names."""

    languages: Languages
    limits: Limits

    def nonempty(self, lits: Lits) -> bool: ...
    def opposite(self, lits: Lits) -> Lits: ...
    def both(self, one: Lits, other: Lits) -> Lits: ...
    def refuse(self, cause: str, field: str) -> UnsupportedError: ...


class Settled(NamedTuple):
    """An object case as it is written: `names` are the keys that may be there, in order; `forbidden` may not."""

    names: tuple[tuple[str, Lits], ...]
    required: frozenset[str]
    forbidden: tuple[str, ...]
    cells: tuple[Cell, ...]
    low: int
    high: int | None
    needs: dict[str, frozenset[str]]


def nonempty(case: ObjectCase, algebra: Algebra) -> bool:
    """Whether there is such an object. Looks only at what must be there, unless members are counted."""
    if case.somes or case.low > len(case.required) or (case.needs and (case.required or case.high is not None)):
        return any(_settle(placed, algebra, True) is not None for placed in _place(case, algebra))
    if case.high is not None and len(case.required) > case.high:
        return False
    return all(algebra.nonempty(lits) for name, lits in case.names if name in case.required)


def settle(case: ObjectCase, algebra: Algebra) -> list[Settled]:
    """The same objects as cases without dead ends."""
    found = (_settle(placed, algebra, False) for placed in _place(case, algebra))
    return [settled for settled in found if settled is not None]


def _settle(case: ObjectCase, algebra: Algebra, quick: bool) -> Settled | None:
    """The case without keys that cannot be there; None if it is empty. quick: only whether it is matters."""
    if case.high is not None and case.low > case.high:
        return None
    values = dict(case.names)
    for name in case.required:
        if not algebra.nonempty(values[name]):
            return None
    needs = dict(case.needs)
    counted = case.low > len(case.required)
    if quick and not counted and not needs:
        return Settled(case.names, case.required, (), case.cells, case.low, case.high, needs)
    forbidden = {name for name, lits in case.names if name not in case.required and not algebra.nonempty(lits)}
    closures = _closures(needs)
    for name, closure in closures.items():
        if closure & forbidden or (case.high is not None and len(closure | case.required) > case.high):
            forbidden.add(name)
    required = case.required.union(*(closures[name] for name in case.required if name in closures))
    if required & forbidden or (case.high is not None and len(required) > case.high):
        return None
    room = case.high is None or case.high > len(required)
    listed = [(name, lits) for name, lits in case.names if name not in forbidden and (room or name in required)]
    cells = tuple(cell for cell in case.cells if cell[1] != NEVER and algebra.nonempty(cell[1])) if room else ()
    barred = tuple(forbidden.union(name for name, _ in case.names).difference(name for name, _ in listed))
    extra, kept = _spell_out(cells, case, algebra)
    listed += extra
    if counted and not kept and len(listed) < case.low:
        return None
    if needs and case.high is not None and case.low > len(required):
        raise algebra.refuse("Keys that need others, beside minProperties and maxProperties.", "minProperties")
    listed.sort(key=lambda item: item[0] in case.mentioned)
    needs = {name: closure for name, closure in closures.items() if name not in forbidden and closure - required}
    return Settled(
        tuple(listed), required, barred, kept, case.low if case.low > len(required) else 0,
        case.high if kept or case.high is None or case.high < len(listed) else None, needs,
    )  # fmt: skip


def _closures(needs: dict[str, frozenset[str]]) -> dict[str, frozenset[str]]:
    """Every name with all names that must be there if it is, itself included."""
    out: dict[str, frozenset[str]] = {}
    for name in needs:
        seen, todo = {name}, [name]
        while todo:
            for other in needs.get(todo.pop(), frozenset()):
                if other not in seen:
                    seen.add(other)
                    todo.append(other)
        out[name] = frozenset(seen)
    return out


def _spell_out(
    cells: tuple[Cell, ...], case: ObjectCase, algebra: Algebra
) -> tuple[list[tuple[str, Lits]], tuple[Cell, ...]]:
    """Names of small finite cells as declared ones, and the other cells; empty ones are dropped."""
    extra: list[tuple[str, Lits]] = []
    kept: list[Cell] = []
    declared = {name for name, _ in case.names}
    for lang, lits in cells:
        if lang and any(kind != "texts" or sign for sign, kind, _ in lang):
            dfa = algebra.languages.dfa(lang)
            if dfa.count(FEW + len(declared) + 1) <= FEW + len(declared):
                words = [name for name in dfa.enumerate(FEW + len(declared)) if name not in declared]
                if len(words) <= FEW:
                    extra += [(name, lits) for name in words]
                    continue
        kept.append((lang, lits))
    return extra, tuple(kept)


def _place(case: ObjectCase, algebra: Algebra) -> list[ObjectCase]:
    """Cases without `somes`."""
    done: list[ObjectCase] = []
    todo = [case]
    while todo:
        case = todo.pop()
        if not case.somes:
            done.append(case)
            continue
        some, case = case.somes[0], case._replace(somes=case.somes[1:])
        todo += _meet_demand(case, some, algebra)
        if len(todo) + len(done) > algebra.limits.cases:
            raise algebra.refuse("Too many ways in which a key can fail the complement of a schema.", "not")
    return done


def _meet_demand(case: ObjectCase, some: Cell, algebra: Algebra) -> list[ObjectCase]:
    """The ways to have a key of a language with a value in a set."""
    lang, lits = some
    languages = algebra.languages
    ways: list[ObjectCase] = []
    inside = [(name, value) for name, value in case.names if languages.accepts(lang, name)]
    if any(name in case.required and algebra.both(value, lits) == value for name, value in inside):
        return [case]
    for name, value in inside:
        met = algebra.both(value, lits)
        if met != NEVER and algebra.nonempty(met):
            names = tuple((other, met if other == name else old) for other, old in case.names)
            ways.append(case._replace(names=names, required=case.required | {name}))
    cells = []
    for cell, value in case.cells:
        met = algebra.both(value, lits)
        dfa = languages.dfa(cell | lang)
        if dfa.is_empty or not algebra.nonempty(met):
            continue
        if dfa.count(FEW + 1) <= FEW:
            fresh = set(dfa.enumerate(FEW)) - {name for name, _ in case.names}
            for name in sorted(fresh):
                names = (*case.names, (name, met))
                ways.append(case._replace(
                    names=names, required=case.required | {name}, mentioned=case.mentioned | {name}
                ))  # fmt: skip
        else:
            cells.append((cell, value, dfa))
    if cells:
        ways.append(_by_count(case, some, cells, [name for name, _ in inside], algebra))
    return ways


def _by_count(
    case: ObjectCase, some: Cell, cells: list[tuple[Lang, Lits, Dfa]], inside: list[str], algebra: Algebra
) -> ObjectCase:
    """The demand as a number of members, where every member beyond those that must be there meets it."""
    lang, lits = some
    optional = [(name, value) for name, value in case.names if name not in case.required and algebra.nonempty(value)]
    surely = all(name in inside and algebra.both(value, lits) == value for name, value in optional)
    surely = surely and not any(name in inside for name in case.required)
    for cell, value in case.cells:
        if value == NEVER or not algebra.nonempty(value):
            continue
        rest = algebra.languages.dfa(cell).subtract(algebra.languages.dfa(lang))
        declared = Dfa.from_strings([name for name, _ in case.names]) if case.names else Dfa.empty()
        surely = surely and rest.subtract(declared).is_empty and algebra.both(value, lits) == value
    if not surely:
        raise algebra.refuse("The complement of a schema for additional keys is not supported here yet.", "not")
    return case._replace(low=max(case.low, len(case.required) + 1))


# ---- writing ---------------------------------------------------------------------------------------------------


class Writer(Protocol):
    """What objects ask of the writer of values."""

    style: Style
    languages: Languages

    def value(self, lits: Lits, depth: int) -> Node: ...


def emit(case: Settled, writer: Writer, depth: int) -> Node:
    """The node of a settled case: an object at `depth`."""
    properties = tuple(
        Property(name, writer.value(lits, depth + 1), name in case.required, case.needs.get(name, NONE) - {name})
        for name, lits in case.names
    )
    declared = tuple(sorted((*(name for name, _ in case.names), *case.forbidden)))
    others: list[NameClass] = []
    for lang, lits in case.cells:
        dfa = writer.languages.dfa(lang)
        if declared and not dfa.endless():  # else the object itself leaves the declared names out, and rows are shared
            dfa = writer.languages.dfa(lang | {(False, "texts", declared)})  # type: ignore[arg-type]
        if not dfa.is_empty:
            others.append(NameClass(dfa, writer.value(lits, depth + 1)))
    style = writer.style
    layout = spacing(style, depth).layout
    excluded = tuple(case.forbidden)
    return Object(properties, tuple(others), layout, case.low, case.high, style.key_order, style.escapes, excluded)


NONE: frozenset[str] = frozenset()
