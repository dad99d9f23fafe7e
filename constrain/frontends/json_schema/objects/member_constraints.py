"""Existential constraints on objects: "at least one key of this language has a value in this set". NOT of cells makes
them.

A constraint is satisfied by a declared key, by a name of a small cell, or by a member of a class of names that must
have one (`NameClass.required`). Each of these is a case. Every required class needs a separate member, so two
constraints that one member may satisfy give one more case, with one class for both. The cases are exhaustive.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ....automata.dfa import Dfa
from ....base.errors import LimitError
from ....base.work import spend_work
from ..core.schema_sets import NEVER, SchemaSet
from ..shapes.object_case import Cell, ObjectCase
from ..shapes.schema_algebra import SchemaAlgebra
from ..strings.nested_regex_format import NestedTexts
from ..strings.string_languages import Language, LanguageCache

__all__ = ["MOST_SPELLED_NAMES", "ResolvedObject", "list_fresh_names", "resolve_constraints"]

MOST_SPELLED_NAMES = 64
"""Most names of a finite class that are written as declared keys, so that the number of unused keys is exact."""


class ResolvedObject(NamedTuple):
    """A case without existential constraints.

    classes: languages with more than MOST_SPELLED_NAMES names; each must have a separate member.
    """

    case: ObjectCase
    classes: tuple[Cell, ...] = ()


def resolve_constraints(case: ObjectCase, algebra: SchemaAlgebra) -> Iterator[ResolvedObject]:
    """Yield cases whose union is the objects of a case, with all existential constraints satisfied."""
    existentials = drop_entailed(case.existentials, algebra)
    visited: set[tuple[int, ResolvedObject]] = set()
    stack = [(0, ResolvedObject(case._replace(existentials=())))]
    while stack:
        depth, resolved = stack.pop()
        if depth == len(existentials):
            yield resolved
            continue
        options = [(depth + 1, option) for option in satisfy_constraint(resolved, existentials[depth], algebra)]
        stack += [option for option in reversed(options) if option not in visited]
        visited.update(options)
        if len(visited) > algebra.limits.cases * len(existentials):
            raise LimitError(
                f"The required kinds of members of this object make more than {algebra.limits.cases} cases.",
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
    """Return whether a member that satisfies the first constraint certainly satisfies the second (syntactic test)."""
    return one[0] >= other[0] and (one[1] == other[1] or algebra.intersect(one[1], other[1]) == one[1])


def satisfy_constraint(resolved: ResolvedObject, existential: Cell, algebra: SchemaAlgebra) -> list[ResolvedObject]:
    """Return the cases in which some key of a language has a value in a set."""
    case, classes = resolved
    lang, schemas = existential
    spend_work(10 + len(case.names) + len(case.cells), "members that an object must have")
    matching = [(name, value) for name, value in case.names if algebra.languages.accepts(lang, name)]
    if any(name in case.required and algebra.intersect(value, schemas) == value for name, value in matching):
        return [resolved]
    if any(entails_constraint(one, existential, algebra) for one in classes):
        return [resolved]
    if is_satisfied_by_any_member(case, existential, algebra):
        return [resolved if classes else ResolvedObject(case._replace(low=max(case.low, len(case.required) + 1)))]
    options: list[ResolvedObject] = []
    for name, value in matching:
        intersection = algebra.intersect(value, schemas)
        if intersection != NEVER and algebra.is_satisfiable(intersection):
            names = tuple((other, intersection if other == name else current) for other, current in case.names)
            options.append(ResolvedObject(case._replace(names=names, required=case.required | {name}), classes))
    for index, (class_lang, value) in enumerate(classes):
        others = classes[:index] + classes[index + 1 :]
        options += add_member(
            ResolvedObject(case, others), class_lang | lang, algebra.intersect(value, schemas), algebra
        )
    for cell, value in case.cells:
        options += add_member(resolved, cell | lang, algebra.intersect(value, schemas), algebra)
    return options


def add_member(
    resolved: ResolvedObject, lang: Language, schemas: SchemaSet, algebra: SchemaAlgebra
) -> list[ResolvedObject]:
    """Return the cases with one more member: an undeclared key of a language with a value in a set."""
    case, classes = resolved
    if schemas == NEVER:
        return []
    names = list_fresh_names(lang, MOST_SPELLED_NAMES, {name for name, _ in case.names}, algebra.languages)
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
    texts = languages.dfa(lang).list_texts(most + len(declared))
    if texts is None:
        return None
    names = [name for name in texts if name not in declared]
    return names if len(names) <= most else None


def is_satisfied_by_any_member(case: ObjectCase, existential: Cell, algebra: SchemaAlgebra) -> bool:
    """Return whether every member beyond the required ones satisfies a constraint.

    Then the constraint is a lower bound of the number of members.
    """
    lang, schemas = existential
    for name, value in case.names:
        matches = algebra.languages.accepts(lang, name)
        if name in case.required:
            if matches:
                return False
        elif not (matches and algebra.intersect(value, schemas) == value) and algebra.is_satisfiable(value):
            return False
    names = tuple(sorted(name for name, _ in case.names))
    declared = algebra.languages.dfa(frozenset(((True, "texts", names),))) if names else Dfa.empty()
    for cell, value in case.cells:
        if value == NEVER or (cell >= lang and algebra.intersect(value, schemas) == value):
            continue
        if algebra.languages.irregular(cell | lang):
            return False
        others = algebra.languages.dfa(cell).subtract(algebra.languages.dfa(lang)).subtract(declared)
        if not (others.is_empty and algebra.intersect(value, schemas) == value) and algebra.is_satisfiable(value):
            return False
    return True
