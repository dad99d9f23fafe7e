"""Demands on objects: "at least one key of this language has a value in this set". NOT makes them of cells.

A demand is met by a declared key, by a name of a small cell, or by a member of a class that must have one
(`NameClass.required`). Each of these is a case. Since every required class has a member of its own, two demands that
one member may meet make a case more, with one class for both: so the cases cover every way of meeting all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ....automata.dfa import Dfa
from ....base.errors import LimitError
from ..algebra.schema_sets import NEVER, Lits
from ..strings.nested_regex_format import Nested
from ..strings.string_languages import Lang, Languages
from .object_cases import Algebra, Cell, ObjectCase

__all__ = ["FEW", "Placed", "fresh_names", "place"]

FEW = 64
"""Names of a finite class that are written out as declared keys, so that the number of keys left is exact."""


class Placed(NamedTuple):
    """A case without `somes`. classes: each must have a member of its own, with more than FEW names to choose from."""

    case: ObjectCase
    classes: tuple[Cell, ...] = ()


def place(case: ObjectCase, algebra: Algebra) -> Iterator[Placed]:
    """Cases that together are the objects of a case, all demands met; found one by one."""
    somes = weakest_last(case.somes, algebra)
    seen: set[tuple[int, Placed]] = set()
    todo = [(0, Placed(case._replace(somes=())))]
    while todo:
        depth, placed = todo.pop()
        if depth == len(somes):
            yield placed
            continue
        ways = [(depth + 1, way) for way in meet(placed, somes[depth], algebra)]
        todo += [way for way in reversed(ways) if way not in seen]
        seen.update(ways)
        if len(seen) > algebra.limits.cases * len(somes):
            raise LimitError(
                f"The demands on this object can be met in more than {algebra.limits.cases} ways.",
                pointer=algebra.refuse("", "not").pointer,
                hint="Raise Limits.cases, or use fewer patterns below `not` and `oneOf`.",
            )


def weakest_last(somes: Iterable[Cell], algebra: Algebra) -> list[Cell]:
    """The demands without those that another one entails."""
    out: list[Cell] = []
    for some in somes:
        if not any(entails(other, some, algebra) for other in out):
            out = [other for other in out if not entails(some, other, algebra)]
            out.append(some)
    return out


def entails(one: Cell, other: Cell, algebra: Algebra) -> bool:
    """Whether a member that meets the one plainly meets the other."""
    return one[0] >= other[0] and (one[1] == other[1] or algebra.both(one[1], other[1]) == one[1])


def meet(placed: Placed, some: Cell, algebra: Algebra) -> list[Placed]:
    """The ways to have a key of a language with a value in a set."""
    case, classes = placed
    lang, lits = some
    inside = [(name, value) for name, value in case.names if algebra.languages.accepts(lang, name)]
    if any(name in case.required and algebra.both(value, lits) == value for name, value in inside):
        return [placed]
    if any(entails(one, some, algebra) for one in classes):
        return [placed]
    if any_member_will_do(case, some, algebra):
        return [placed if classes else Placed(case._replace(low=max(case.low, len(case.required) + 1)))]
    ways: list[Placed] = []
    for name, value in inside:
        met = algebra.both(value, lits)
        if met != NEVER and algebra.nonempty(met):
            names = tuple((other, met if other == name else old) for other, old in case.names)
            ways.append(Placed(case._replace(names=names, required=case.required | {name}), classes))
    for index, (joined, value) in enumerate(classes):
        others = classes[:index] + classes[index + 1 :]
        ways += with_member(Placed(case, others), joined | lang, algebra.both(value, lits), algebra)
    for cell, value in case.cells:
        ways += with_member(placed, cell | lang, algebra.both(value, lits), algebra)
    return ways


def with_member(placed: Placed, lang: Lang, lits: Lits, algebra: Algebra) -> list[Placed]:
    """The ways to have one more member: an undeclared key of a language, with a value in a set."""
    case, classes = placed
    if lits == NEVER:
        return []
    names = fresh_names(lang, FEW, {name for name, _ in case.names}, algebra.languages)
    if names == [] or not algebra.nonempty(lits):
        return []
    if names is None:
        return [Placed(case, (*classes, (lang, lits)))]
    return [
        Placed(
            case._replace(
                names=(*case.names, (name, lits)), required=case.required | {name}, mentioned=case.mentioned | {name}
            ),
            classes,
        )
        for name in names
    ]


def fresh_names(lang: Lang, most: int, declared: set[str], languages: Languages) -> list[str] | None:
    """The names of a language that are not declared, by length and code point; None if they are more than `most`."""
    if all(kind == "texts" and not sign for sign, kind, _ in lang):
        return None
    nested = languages.nested(lang)
    if isinstance(nested, Nested) and nested.is_endless():
        return None
    dfa = languages.dfa(lang)
    reach = most + len(declared)
    if dfa.count(reach + 1) > reach:
        return None
    names = [name for name in dfa.enumerate(reach) if name not in declared]
    return names if len(names) <= most else None


def any_member_will_do(case: ObjectCase, some: Cell, algebra: Algebra) -> bool:
    """Whether every member beyond those that must be there meets a demand: then it is a number of members."""
    lang, lits = some
    for name, value in case.names:
        inside = algebra.languages.accepts(lang, name)
        if name in case.required:
            if inside:
                return False
        elif not (inside and algebra.both(value, lits) == value) and algebra.nonempty(value):
            return False
    declared = Dfa.from_strings([name for name, _ in case.names]) if case.names else Dfa.empty()
    for cell, value in case.cells:
        if value == NEVER or (cell >= lang and algebra.both(value, lits) == value):
            continue
        if algebra.languages.irregular(cell | lang):
            return False
        rest = algebra.languages.dfa(cell).subtract(algebra.languages.dfa(lang)).subtract(declared)
        if not (rest.is_empty and algebra.both(value, lits) == value) and algebra.nonempty(value):
            return False
    return True
