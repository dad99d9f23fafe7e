"""Products of unions of objects, discriminators first: unions that test the same key are split by its values.

Chains of `if`s, dependencies and branches that `oneOf` subtracts mostly test the value of one key, or its presence.
Given one value of that key, nearly every union has one case left, or none that asserts anything; so a product of 2^n
cases becomes n + 2 small ones: one for each value, one for any other value, one for the absent key.
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
    tested: Counter[str] = Counter()
    values: dict[str, dict[Constant, None]] = {}
    for union in unions:
        found = _tests(union, algebra) if len(union) > 1 else {}
        tested.update(found.keys())
        for name, constants in found.items():
            values.setdefault(name, {}).update(constants)
    best: tuple[str, list[list[ObjectUnion]]] | None = None
    least = prod(map(len, unions))
    names = [name for name, times in tested.most_common(MOST_KEYS) if times > 1 and name not in used]
    for name in names:
        if len(values[name]) <= MOST_VALUES:
            pieces = _pieces(unions, name, tuple(values[name]), algebra)
            size = sum(prod(map(len, piece)) for piece in pieces)
            if size < least:
                best, least = (name, pieces), size
    return best


def _pieces(
    unions: list[ObjectUnion], name: str, values: tuple[Constant, ...], algebra: SchemaAlgebra
) -> list[list[ObjectUnion]]:
    """Return the unions by the values of a key: the tested ones, equal consequences together; any other; absent."""
    pieces: dict[tuple[ObjectUnion, ...], list[Constant]] = {}
    for value in values:
        restricted = _restrict(unions, name, algebra.enum_set((value,)), algebra)
        if restricted is not None:
            pieces.setdefault(tuple(restricted), []).append(value)
    out = [[*piece, _having(name, algebra.enum_set(tuple(held)))] for piece, held in pieces.items()]
    others = algebra.complement(algebra.enum_set(values)) if values else ANY
    rest, none = _restrict(unions, name, others, algebra), _restrict(unions, name, NEVER, algebra)
    if rest is not None:
        out.append([*rest, _having(name, others)])
    if none is not None:
        out.append([*none, (ObjectCase(((name, NEVER),), mentioned=frozenset((name,))),)])
    return out


def _having(name: str, schemas: SchemaSet) -> ObjectUnion:
    return (ObjectCase(((name, schemas),), frozenset((name,)), frozenset((name,))),)


def _tests(union: ObjectUnion, algebra: SchemaAlgebra) -> dict[str, dict[Constant, None]]:
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


def _restrict(
    unions: list[ObjectUnion], name: str, schemas: SchemaSet, algebra: SchemaAlgebra
) -> list[ObjectUnion] | None:
    """Return the unions for one set of values of a key (NEVER: the key is absent), without those that assert nothing
    more.

    None if no object is in all of them.
    """
    out: list[ObjectUnion] = []
    for union in unions:
        if all(_leaves_open(case, name) for case in union):
            out.append(union)
            continue
        kept = dict.fromkeys(_restricted(case, name, schemas, algebra) for case in union)
        if SILENT in kept:
            continue
        cases = tuple(case for case in kept if case is not None)
        if not cases:
            return None
        out.append(cases)
    return out


def _leaves_open(case: ObjectCase, name: str) -> bool:
    """Return whether a case constrains neither a key nor the number of members, as far as its fields show."""
    if case.cells is not ANY_OBJECT.cells or case.existentials or case.clauses or case.low or case.high is not None:
        return False
    return all(other != name for other, _ in case.names)


SILENT = ANY_OBJECT
"""A case that asserts nothing."""


def _restricted(case: ObjectCase, name: str, schemas: SchemaSet, algebra: SchemaAlgebra) -> ObjectCase | None:
    """Return what a case asserts besides the value of a key; None if it excludes that value."""
    if case.clauses or _leaves_open(case, name):
        return case
    own = dict(case.names)
    old = own[name] if name in own else look_up_name(case.cells, name, algebra.languages)
    low, existentials = case.low, case.existentials
    left: SchemaSet = ANY
    if schemas != NEVER:
        if case.high is not None and case.high < len(case.required | {name}):
            return None
        met = algebra.intersect(schemas, old)
        if met == NEVER or not algebra.is_possible(met):
            return None
        left = tuple(literal for literal in old if algebra.is_possible(algebra.intersect(schemas, (-literal,))))
        low = 0 if low <= 1 else low
        existentials = tuple(cell for cell in existentials if not _meets(name, schemas, cell, algebra))
    elif name in case.required:
        return None
    own[name] = left
    case = case._replace(names=tuple(own.items()), required=case.required - {name}, low=low, existentials=existentials)
    silent = not any(own.values()) and case._replace(names=(), mentioned=NO_NAMES) == ANY_OBJECT
    return SILENT if silent else case


def _meets(name: str, schemas: SchemaSet, existential: Cell, algebra: SchemaAlgebra) -> bool:
    """Return whether a key with a value of a set meets an existential constraint."""
    lang, wanted = existential
    return algebra.languages.accepts(lang, name) and (not wanted or algebra.intersect(schemas, wanted) == schemas)
