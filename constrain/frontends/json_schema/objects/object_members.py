"""Normalise an object case, so that it has no dead ends, and emit it as one Object node.

A normalised case is non-empty, forbids every key without a value, knows its capacity, and has no existential
constraints: each has been satisfied by a declared key, by a name of a finite cell, by the number of members, or by a
class of names that must have a member (`member_constraints`).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import islice, repeat
from math import prod
from typing import Any

from ....base.errors import LimitError
from ....base.work import spend_work
from ....grammar.nodes import NameClass, Node, Object, Property
from ..core.schema_sets import ANY, NEVER, SchemaSet
from ..shapes.object_case import Cell, ObjectCase
from ..shapes.schema_algebra import SchemaAlgebra
from ..shapes.value_emitter import ValueEmitter
from ..strings.nested_regex_format import NestedTexts
from ..strings.string_languages import ALL
from . import format_keys, object_cases, object_clauses, object_derivatives
from .member_constraints import MOST_SPELLED_NAMES, ResolvedObject, list_fresh_names, resolve_constraints
from .normalised_object import NormalisedObject
from .object_derivatives import ClausalObject, NotDerivable

__all__ = ["emit_object", "emit_plain_object", "is_object_satisfiable", "normalise_object"]

MOST_RESOLVED = 32
"""Most cases without clauses that are written as a choice of Object nodes; more are written by derivatives."""

MOST_NAMES = 4096
"""Names of a finite class that are written as declared keys where minProperties may need all of them."""


def is_object_satisfiable(case: ObjectCase, algebra: SchemaAlgebra) -> bool:
    """Return whether the case has an object. Only required keys are tested, unless members are counted."""
    if case.high is not None and len(case.required) > case.high:
        return False
    if case.clauses:
        return any(is_object_satisfiable(one, algebra) for one in object_clauses.resolve_clauses(case, algebra))
    if not case.existentials and case.low <= len(case.required) and not case.needs:
        return all(algebra.is_satisfiable(schemas) for name, schemas in case.names if name in case.required)
    return any(_is_possible(resolved, algebra) for resolved in resolve_constraints(case, algebra))


def _is_possible(resolved: ResolvedObject, algebra: SchemaAlgebra) -> bool:
    case, classes = resolved
    least = len(case.required) + len(classes)
    if case.low > least or case.needs:
        return any(True for _ in _normalise_resolved(resolved, algebra))
    if case.high is not None and least > case.high:
        return False
    return all(algebra.is_satisfiable(schemas) for name, schemas in case.names if name in case.required)


def normalise_object(case: ObjectCase, algebra: SchemaAlgebra) -> list[NormalisedObject | ClausalObject]:
    """Return cases without dead ends that together have the same objects."""
    if case.clauses:
        if prod(map(len, case.clauses)) > MOST_RESOLVED:
            try:
                return _normalise_by_derivatives(case, algebra)
            except NotDerivable as signal:
                return _resolve_all_clauses(case, signal, algebra)
        resolved = object_cases.drop_subsumed(object_clauses.resolve_clauses(case, algebra))
        return [normalised for one in resolved for normalised in normalise_object(one, algebra)]
    cases = (
        normalised
        for resolved_object in resolve_constraints(case, algebra)
        for normalised in _normalise_resolved(resolved_object, algebra)
    )
    most = MOST_RESOLVED if algebra.style.key_order in object_derivatives.KEY_ORDERS else algebra.limits.cases
    out: list[NormalisedObject | ClausalObject] = list(islice(cases, most + 1))
    if len(out) <= most:
        return out
    try:
        return _normalise_by_derivatives(case, algebra)
    except NotDerivable as signal:
        for normalised in cases:
            out.append(normalised)
            if len(out) > algebra.limits.cases:
                raise signal.error from None
    return out


def _resolve_all_clauses(
    case: ObjectCase, signal: NotDerivable, algebra: SchemaAlgebra
) -> list[NormalisedObject | ClausalObject]:
    """Return a case with clauses as cases without, if they are not too many; else raise the error of the signal."""
    most = algebra.limits.cases // 2
    resolved = list(islice(object_clauses.resolve_clauses(case, algebra), 4 * most))
    if len(resolved) == 4 * most:
        raise signal.error from None
    out = [normalised for one in object_cases.drop_subsumed(resolved) for normalised in normalise_object(one, algebra)]
    if len(out) > most:
        raise signal.error from None
    return out


def _normalise_by_derivatives(case: ObjectCase, algebra: SchemaAlgebra) -> list[NormalisedObject | ClausalObject]:
    """Return the case as one to be written by derivatives; nothing if it is empty."""
    return [object_derivatives.normalise_clausal_object(case, algebra)] if is_object_satisfiable(case, algebra) else []


def _normalise_resolved(resolved: ResolvedObject, algebra: SchemaAlgebra) -> Iterator[NormalisedObject]:
    """Yield the normalised cases of an object; more than one if dependent keys make counting ambiguous."""
    normalised = _drop_impossible_keys(resolved, algebra)
    if normalised is None:
        return
    name = _find_ambiguous_key(normalised, algebra)
    if name is None:
        yield normalised
        return
    case, classes = resolved
    yield from _normalise_resolved(ResolvedObject(case._replace(required=case.required | {name}), classes), algebra)
    without_key = tuple((other, NEVER if other == name else schemas) for other, schemas in case.names)
    yield from _normalise_resolved(ResolvedObject(case._replace(names=without_key), classes), algebra)


def _find_ambiguous_key(normalised: NormalisedObject, algebra: SchemaAlgebra) -> str | None:
    """Return a key whose dependencies make some number of members within the bounds impossible; None if there is none.

    With undeclared keys, every number is possible. Otherwise the declared keys must suffice: if no keys depend on each
    other in a cycle, they can be added in topological order, so every number from that of the required keys to that of
    all keys is possible. In schema order a key that needs an earlier, absent one is impossible, which the counter does
    not know.
    """
    if not normalised.low or not normalised.needs or normalised.cells or normalised.classes:
        return None
    positions = {name: index for index, (name, _) in enumerate(normalised.names)}
    ordered = algebra.style.key_order == "schema"
    for name, closure in normalised.needs.items():
        if name in normalised.required:
            continue
        if ordered and any(positions[other] < positions[name] for other in closure - normalised.required):
            return name
        if normalised.high is not None and any(name in normalised.needs.get(other, NONE) for other in closure - {name}):
            return name
    return None


def _drop_impossible_keys(resolved: ResolvedObject, algebra: SchemaAlgebra) -> NormalisedObject | None:
    """Return the case without impossible keys; None if it is empty."""
    case, classes = resolved
    if case.high is not None and case.low > case.high:
        return None
    values = dict(case.names)
    if not all(algebra.is_satisfiable(values[name]) for name in case.required):
        return None
    forbidden = {
        name for name, schemas in case.names if name not in case.required and not algebra.is_satisfiable(schemas)
    }
    most = None if case.high is None else case.high - len(classes)
    closures = _close_dependencies(dict(case.needs))
    for name, closure in closures.items():
        if closure & forbidden or (most is not None and len(closure | case.required) > most):
            forbidden.add(name)
    required = case.required.union(*(closures[name] for name in case.required if name in closures))
    if required & forbidden or (most is not None and len(required) > most):
        return None
    has_slot = most is None or most > len(required)
    least = len(required) + len(classes)
    names = [
        (name, schemas) for name, schemas in case.names if name not in forbidden and (has_slot or name in required)
    ]
    cells = tuple(cell for cell in case.cells if _is_cell_possible(cell, algebra)) if has_slot else ()
    excluded = tuple(forbidden.union(values).difference(name for name, _ in names))
    spelled, large_cells = _spell_small_cells(cells, case, len(names), algebra)
    names += spelled
    if case.low > least and not large_cells and len(names) + len(classes) < case.low:
        return None
    names.sort(key=lambda item: item[0] in case.mentioned)
    needs = {name: closure for name, closure in closures.items() if name not in forbidden and closure - required}
    return NormalisedObject(
        tuple(names), required, excluded, large_cells, case.low if case.low > least else 0,
        case.high if large_cells or classes or case.high is None or case.high < len(names) else None, needs, classes,
    )  # fmt: skip


def _is_cell_possible(cell: Cell, algebra: SchemaAlgebra) -> bool:
    """Return whether a cell may have a member: its name is tested first, since values can lead anywhere."""
    lang, schemas = cell
    if schemas == NEVER or (len(lang) > 1 and not algebra.languages.holds_names(lang)):
        return False
    return algebra.is_satisfiable(schemas)


def _close_dependencies(needs: dict[str, frozenset[str]]) -> dict[str, frozenset[str]]:
    """Return every name with all names that it requires, directly or not, itself included."""
    out: dict[str, frozenset[str]] = {}
    for name in needs:
        closure, worklist = {name}, [name]
        while worklist:
            for other in needs.get(worklist.pop(), NONE):
                if other not in closure:
                    closure.add(other)
                    worklist.append(other)
        spend_work(1 + len(closure) // 2, "the keys that depend on each other")
        out[name] = frozenset(closure)
    return out


def _spell_small_cells(
    cells: tuple[Cell, ...], case: ObjectCase, listed: int, algebra: SchemaAlgebra
) -> tuple[list[tuple[str, SchemaSet]], tuple[Cell, ...]]:
    """Return names of small finite cells as declared ones, and the other cells; empty ones are dropped.

    A cell is small if it has at most MOST_SPELLED_NAMES names. If more members are required than any cell has names,
    all cells are spelled out: then every name may be needed and is counted.
    """
    spelled: list[tuple[str, SchemaSet]] = []
    remaining: list[Cell] = []
    declared = {name for name, _ in case.names}
    for lang, schemas in cells:
        names = list_fresh_names(lang, MOST_SPELLED_NAMES, declared, algebra.languages)
        if names is None:
            remaining.append((lang, schemas))
        else:
            spelled += [(name, schemas) for name in names]
    if remaining and case.low > listed + len(spelled) and case.low > MOST_SPELLED_NAMES:
        sizes = [algebra.languages.dfa(lang).count(case.low + len(declared)) - len(declared) for lang, _ in remaining]
        if max(sizes) < case.low:
            enumerated = [
                (list_fresh_names(lang, MOST_NAMES, declared, algebra.languages), schemas)
                for lang, schemas in remaining
            ]
            for names, schemas in enumerated:
                if names is None:
                    raise LimitError(
                        f"minProperties may need every one of more than {MOST_NAMES} possible names.",
                        pointer=algebra.unsupported("", "minProperties").pointer, hint="Write a smaller number.",
                    )  # fmt: skip
                spelled += [(name, schemas) for name in names]
            remaining = []
    return spelled, tuple(remaining)


# ---- writing ---------------------------------------------------------------------------------------------------


def emit_object(case: NormalisedObject | ClausalObject, emitter: ValueEmitter, depth: int) -> Node:
    """Return the node of a normalised case: an object at `depth`.

    `required`, `minProperties`, `maxProperties` and dependencies take effect in the frame of the Object node, which
    holds the keys seen and the number of members.
    """
    if isinstance(case, ClausalObject):
        return object_derivatives.emit_clausal_object(case, emitter, depth)
    languages, needs, required_names = emitter.languages, case.needs, case.required
    cells = [*case.cells, *case.classes]
    for lang, _ in cells:
        if lang and isinstance(languages.nested(lang), NestedTexts):
            return format_keys.emit_format_object(case, emitter, depth)
    values = emitter.member_values([schemas for _, schemas in (*case.names, *cells)], depth + 1)
    if needs:
        properties = [
            Property(name, value, name in required_names, needs.get(name, NONE) - {name})
            for (name, _), value in zip(case.names, values)
        ]
    else:
        properties = [Property(name, value, name in required_names) for (name, _), value in zip(case.names, values)]
    others: list[NameClass] = []
    for k, (cell, value) in enumerate(zip(cells, values[len(properties) :])):
        is_class = k >= len(case.cells)
        if cell in case.classes and not is_class:
            continue
        lang = cell[0]
        dfa = languages.dfa(lang)
        if not dfa.is_endless and (case.names or case.forbidden):
            # An endless one stays as it is, and rows are shared: the object itself leaves the declared names out.
            declared = tuple(sorted((*(name for name, _ in case.names), *case.forbidden)))
            dfa = languages.dfa(lang | {(False, "texts", declared)})  # type: ignore[arg-type]
        if not dfa.is_empty:
            others.append(NameClass(dfa, value, is_class))
    style = emitter.style
    layout = emitter.spacing(depth).layout
    excluded = tuple(case.forbidden)
    return Object(
        tuple(properties), tuple(others), layout, case.low, case.high, style.key_order, style.escapes, excluded
    )


def emit_plain_object(keywords: dict[str, Any], emitter: ValueEmitter, depth: int) -> Node:
    """Return the node of `properties`, `required` and `additionalProperties` whose values are all possible.

    It equals that which `emit_object` returns for `normalised_object.build_plain_object` of these keywords.
    """
    properties: dict[str, SchemaSet] = keywords.get("properties", {})
    required: frozenset[str] = frozenset(keywords.get("required", ()))
    additional: SchemaSet = keywords.get("additionalProperties", ANY)
    if not properties.keys() >= required:
        properties = {**properties, **{name: additional for name in keywords["required"] if name not in properties}}
    sets = [*properties.values()]
    if additional != NEVER:
        sets.append(additional)
    values = emitter.member_values(sets, depth + 1)
    declared = zip(properties, values, [name in required for name in properties], repeat(NONE))
    others = (NameClass(emitter.languages.dfa(ALL), values[-1]),) if additional != NEVER else ()
    style, layout = emitter.style, emitter.spacing(depth).layout
    return Object(tuple(map(MAKE_PROPERTY, declared)), others, layout, 0, None, style.key_order, style.escapes)


NONE: frozenset[str] = frozenset()
MAKE_PROPERTY = partial(tuple.__new__, Property)
"""What `Property._make` does, without a frame of Python for each."""
