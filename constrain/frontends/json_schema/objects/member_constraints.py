"""Existential constraints on objects: "at least one key of this language has a value in this set". NOT of cells makes
them.

A constraint is met by a declared key, by a name of a small cell, or by a member of a class of names that must have one
(`NameClass.required`). Each of these is a case. Since every required class has a member of its own, two constraints
that one member may meet make one more case, with one class for both; so the cases cover every way to meet all
constraints.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ....automata.dfa import Dfa
from ....base.errors import LimitError
from ..core.schema_sets import NEVER, SchemaSet
from ..shapes.object_case import Cell, ObjectCase
from ..shapes.schema_algebra import SchemaAlgebra
from ..strings.nested_regex_format import NestedTexts
from ..strings.string_languages import Language, LanguageCache

__all__ = ["FEW", "ResolvedObject", "list_fresh_names", "resolve_constraints"]

FEW = 64
"""Names of a finite class that are written as declared keys, so that the number of keys left is exact."""


class ResolvedObject(NamedTuple):
    """A case without existential constraints.

    classes: each must have a member of its own, and has more than FEW names to choose from.
    """

    case: ObjectCase
    classes: tuple[Cell, ...] = ()


def resolve_constraints(case: ObjectCase, algebra: SchemaAlgebra) -> Iterator[ResolvedObject]:
    """Yield cases that together are the objects of a case, with all constraints met."""
    existentials = drop_entailed(case.existentials, algebra)
    seen: set[tuple[int, ResolvedObject]] = set()
    todo = [(0, ResolvedObject(case._replace(existentials=())))]
    while todo:
        depth, placed = todo.pop()
        if depth == len(existentials):
            yield placed
            continue
        ways = [(depth + 1, way) for way in satisfy_constraint(placed, existentials[depth], algebra)]
        todo += [way for way in reversed(ways) if way not in seen]
        seen.update(ways)
        if len(seen) > algebra.limits.cases * len(existentials):
            raise LimitError(
                f"The existentials on this object can be met in more than {algebra.limits.cases} ways.",
                pointer=algebra.unsupported("", "not").pointer,
                hint="Raise Limits.cases, or use fewer patterns below `not` and `oneOf`.",
            )


def drop_entailed(existentials: Iterable[Cell], algebra: SchemaAlgebra) -> list[Cell]:
    """Return the constraints without those that another one entails."""
    out: list[Cell] = []
    for existential in existentials:
        if not any(entails_constraint(other, existential, algebra) for other in out):
            out = [other for other in out if not entails_constraint(existential, other, algebra)]
            out.append(existential)
    return out


def entails_constraint(one: Cell, other: Cell, algebra: SchemaAlgebra) -> bool:
    """Return whether a member that meets the first constraint also meets the second, as far as their atoms show."""
    return one[0] >= other[0] and (one[1] == other[1] or algebra.intersect(one[1], other[1]) == one[1])


def satisfy_constraint(placed: ResolvedObject, existential: Cell, algebra: SchemaAlgebra) -> list[ResolvedObject]:
    """Return the ways to have a key of a language with a value in a set."""
    case, classes = placed
    lang, schemas = existential
    inside = [(name, value) for name, value in case.names if algebra.languages.accepts(lang, name)]
    if any(name in case.required and algebra.intersect(value, schemas) == value for name, value in inside):
        return [placed]
    if any(entails_constraint(one, existential, algebra) for one in classes):
        return [placed]
    if is_met_by_any_member(case, existential, algebra):
        return [placed if classes else ResolvedObject(case._replace(low=max(case.low, len(case.required) + 1)))]
    ways: list[ResolvedObject] = []
    for name, value in inside:
        met = algebra.intersect(value, schemas)
        if met != NEVER and algebra.is_satisfiable(met):
            names = tuple((other, met if other == name else old) for other, old in case.names)
            ways.append(ResolvedObject(case._replace(names=names, required=case.required | {name}), classes))
    for index, (joined, value) in enumerate(classes):
        others = classes[:index] + classes[index + 1 :]
        ways += add_member(ResolvedObject(case, others), joined | lang, algebra.intersect(value, schemas), algebra)
    for cell, value in case.cells:
        ways += add_member(placed, cell | lang, algebra.intersect(value, schemas), algebra)
    return ways


def add_member(
    placed: ResolvedObject, lang: Language, schemas: SchemaSet, algebra: SchemaAlgebra
) -> list[ResolvedObject]:
    """Return the ways to have one more member: an undeclared key of a language with a value in a set."""
    case, classes = placed
    if schemas == NEVER:
        return []
    names = list_fresh_names(lang, FEW, {name for name, _ in case.names}, algebra.languages)
    if names == [] or not algebra.is_satisfiable(schemas):
        return []
    if names is None:
        return [ResolvedObject(case, (*classes, (lang, schemas)))]
    return [
        ResolvedObject(
            case._replace(
                names=(*case.names, (name, schemas)), required=case.required | {name}, mentioned=case.mentioned | {name}
            ),
            classes,
        )
        for name in names
    ]


def list_fresh_names(lang: Language, most: int, declared: set[str], languages: LanguageCache) -> list[str] | None:
    """Return the undeclared names of a language, by length and code point; None if they are more than `most`."""
    if all(kind == "texts" and not sign for sign, kind, _ in lang):
        return None
    nested = languages.nested(lang)
    if isinstance(nested, NestedTexts) and nested.is_endless():
        return None
    dfa = languages.dfa(lang)
    reach = most + len(declared)
    if dfa.count(reach + 1) > reach:
        return None
    names = [name for name in dfa.enumerate(reach) if name not in declared]
    return names if len(names) <= most else None


def is_met_by_any_member(case: ObjectCase, existential: Cell, algebra: SchemaAlgebra) -> bool:
    """Return whether every member beyond the required ones meets a constraint.

    Then the constraint is a lower bound of the number of members.
    """
    lang, schemas = existential
    for name, value in case.names:
        inside = algebra.languages.accepts(lang, name)
        if name in case.required:
            if inside:
                return False
        elif not (inside and algebra.intersect(value, schemas) == value) and algebra.is_satisfiable(value):
            return False
    declared = Dfa.from_strings([name for name, _ in case.names]) if case.names else Dfa.empty()
    for cell, value in case.cells:
        if value == NEVER or (cell >= lang and algebra.intersect(value, schemas) == value):
            continue
        if algebra.languages.irregular(cell | lang):
            return False
        rest = algebra.languages.dfa(cell).subtract(algebra.languages.dfa(lang)).subtract(declared)
        if not (rest.is_empty and algebra.intersect(value, schemas) == value) and algebra.is_satisfiable(value):
            return False
    return True
