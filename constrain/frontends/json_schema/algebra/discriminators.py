"""Products of unions of objects, discriminators first: unions that test the same key are split by its values.

Chains of `if`s, dependencies and branches that `oneOf` subtracts mostly test the value of one key, or its presence.
Given one value of that key, nearly every union has one case left, or none that asserts anything. So this Shannon
expansion turns a product of 2^n cases into n + 2 small ones: one per value, one for any other value, one for the absent
key.
"""

from __future__ import annotations

from collections import Counter
from math import prod

from ..core.json_values import Constant
from ..core.schema_sets import ANY, NEVER, SchemaSet
from ..objects.object_cases import look_up_name
from ..shapes.object_case import ANY_OBJECT, NO_NAMES, Cell, ObjectCase
from ..shapes.schema_algebra import SchemaAlgebra

__all__ = ["ObjectUnion", "split_by_discriminator"]

ObjectUnion = tuple[ObjectCase, ...]

MOST_KEYS = 6
"""Most keys that are tried, the most frequently tested first."""

MOST_VALUES = 64
"""Most values of a discriminator: with more, splitting does not reduce the number of cases."""


def split_by_discriminator(
    unions: list[ObjectUnion], used: frozenset[str], algebra: SchemaAlgebra
) -> tuple[str, list[list[ObjectUnion]]] | None:
    """Return the key to split by, and lists of unions whose products together are the product; None if none helps.

    It is the key whose pieces have the fewest cases to multiply out. used: keys that have been split by before.
    """
    frequency: Counter[str] = Counter()
    values: dict[str, dict[Constant, None]] = {}
    for union in unions:
        tested_keys = _find_tested_keys(union, algebra) if len(union) > 1 else {}
        frequency.update(tested_keys.keys())
        for name, constants in tested_keys.items():
            values.setdefault(name, {}).update(constants)
    best: tuple[str, list[list[ObjectUnion]]] | None = None
    least = prod(map(len, unions))
    names = [name for name, count in frequency.most_common(MOST_KEYS) if count > 1 and name not in used]
    for name in names:
        if len(values[name]) <= MOST_VALUES:
            pieces = _split_unions(unions, name, tuple(values[name]), algebra)
            size = sum(prod(map(len, piece)) for piece in pieces)
            if size < least:
                best, least = (name, pieces), size
    return best


def _split_unions(
    unions: list[ObjectUnion], name: str, values: tuple[Constant, ...], algebra: SchemaAlgebra
) -> list[list[ObjectUnion]]:
    """Split the unions by the value of a key: tested values, where equal results are merged; other values; absent."""
    pieces: dict[tuple[ObjectUnion, ...], list[Constant]] = {}
    for value in values:
        restricted = _restrict_unions(unions, name, algebra.enum_set((value,)), algebra)
        if restricted is not None:
            pieces.setdefault(tuple(restricted), []).append(value)
    out = [[*piece, _require_value(name, algebra.enum_set(tuple(constants)))] for piece, constants in pieces.items()]
    others = algebra.complement(algebra.enum_set(values)) if values else ANY
    other, absent = _restrict_unions(unions, name, others, algebra), _restrict_unions(unions, name, NEVER, algebra)
    if other is not None:
        out.append([*other, _require_value(name, others)])
    if absent is not None:
        out.append([*absent, (ObjectCase(((name, NEVER),), mentioned=frozenset((name,))),)])
    return out


def _require_value(name: str, schemas: SchemaSet) -> ObjectUnion:
    return (ObjectCase(((name, schemas),), frozenset((name,)), frozenset((name,))),)


def _find_tested_keys(union: ObjectUnion, algebra: SchemaAlgebra) -> dict[str, dict[Constant, None]]:
    """Return the keys whose presence or value some case tests, with the values that are tested."""
    out: dict[str, dict[Constant, None]] = {}
    for case in union:
        for name, schemas in case.names:
            if name in case.required or schemas != ANY:
                out.setdefault(name, {})
            for literal in schemas if schemas != NEVER else ():
                values = algebra.bound_of((abs(literal),)).values
                if values is not None:
                    out.setdefault(name, {}).update(dict.fromkeys(sorted(values, key=repr)))
    return out


def _restrict_unions(
    unions: list[ObjectUnion], name: str, schemas: SchemaSet, algebra: SchemaAlgebra
) -> list[ObjectUnion] | None:
    """Return the unions for one set of values of a key (NEVER: the key is absent), without those that assert nothing
    more.

    None if no object is in all of them.
    """
    out: list[ObjectUnion] = []
    for union in unions:
        if all(_is_indifferent_to(case, name) for case in union):
            out.append(union)
            continue
        restricted = dict.fromkeys(_restrict_case(case, name, schemas, algebra) for case in union)
        if UNCONSTRAINED in restricted:
            continue
        cases = tuple(case for case in restricted if case is not None)
        if not cases:
            return None
        out.append(cases)
    return out


def _is_indifferent_to(case: ObjectCase, name: str) -> bool:
    """Return whether a case certainly constrains neither the key nor the number of members."""
    if case.cells is not ANY_OBJECT.cells or case.existentials or case.clauses or case.low or case.high is not None:
        return False
    return all(other != name for other, _ in case.names)


UNCONSTRAINED = ANY_OBJECT
"""A case that asserts nothing."""


def _restrict_case(case: ObjectCase, name: str, schemas: SchemaSet, algebra: SchemaAlgebra) -> ObjectCase | None:
    """Return what a case asserts besides the value of a key; None if it excludes that value."""
    if case.clauses or _is_indifferent_to(case, name):
        return case
    names = dict(case.names)
    current = names[name] if name in names else look_up_name(case.cells, name, algebra.languages)
    low, existentials = case.low, case.existentials
    remaining: SchemaSet = ANY
    if schemas != NEVER:
        if case.high is not None and case.high < len(case.required | {name}):
            return None
        intersection = algebra.intersect(schemas, current)
        if intersection == NEVER or not algebra.is_possible(intersection):
            return None
        remaining = tuple(
            literal for literal in current if algebra.is_possible(algebra.intersect(schemas, (-literal,)))
        )
        low = 0 if low <= 1 else low
        existentials = tuple(cell for cell in existentials if not _satisfies_existential(name, schemas, cell, algebra))
    elif name in case.required:
        return None
    names[name] = remaining
    case = case._replace(
        names=tuple(names.items()), required=case.required - {name}, low=low, existentials=existentials
    )
    unconstrained = not any(names.values()) and case._replace(names=(), mentioned=NO_NAMES) == ANY_OBJECT
    return UNCONSTRAINED if unconstrained else case


def _satisfies_existential(name: str, schemas: SchemaSet, existential: Cell, algebra: SchemaAlgebra) -> bool:
    """Return whether a key with a value of a set meets an existential constraint."""
    lang, wanted = existential
    return algebra.languages.accepts(lang, name) and (not wanted or algebra.intersect(schemas, wanted) == schemas)
