"""What can be said of a literal set without unfolding it: cheap proofs that two sets share no value.

They decide most `oneOf`s (by type, by the constant of a common required key, by a key that one requires and the other
forbids) and prune most products. They never claim more than is true; what they cannot prove is asked of the algebra.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from ..algebra.schema_sets import ANY, NEVER, Lits, both
from .json_values import NUMBER, OBJECT, Constant

if TYPE_CHECKING:
    from .schema_parser import Node

__all__ = ["INTEGER", "Static", "disjoint", "static"]

INTEGER = 64
"""The bit of `type: integer`, which is not a JSON type of its own."""

TYPES = 63


class Static(NamedTuple):
    """An upper bound of a set.

    types: bits of JSON types. values: all values, if they are listed. required: keys that an object must have, with
    the set of their values. closed: all keys that an object may have, or None. is_never: no value at all.
    """

    types: int = TYPES
    values: frozenset[Constant] | None = None
    required: Mapping[str, Lits] = MappingProxyType({})
    closed: frozenset[str] | None = None
    is_never: bool = False


UNKNOWN = Static()
NONE = Static(0, frozenset(), {}, frozenset(), True)
DEPTH = 12
"""Deepest chain of references that is followed."""


def static(lits: Lits, nodes: list[Node | None], depth: int = 0) -> Static:
    """The upper bound of a literal set."""
    if lits == NEVER:
        return NONE
    bound = UNKNOWN
    for literal in lits:
        node = nodes[abs(literal)]
        assert node is not None
        bound = _and(bound, _of(node, nodes, depth) if literal > 0 else _not(node, nodes), nodes, depth)
        if bound.is_never:
            return NONE
    return bound


def _of(node: Node, nodes: list[Node | None], depth: int) -> Static:
    if node.static is None or depth:
        if depth > DEPTH or node.waiting is not None:
            return UNKNOWN
        found = _compute(node, nodes, depth)
        if depth:
            return found
        node.static = found
    known: Static = node.static
    return known


def _compute(node: Node, nodes: list[Node | None], depth: int) -> Static:
    facts = node.facts
    types = facts.get("type", TYPES)
    if types & INTEGER:
        types = types & TYPES | NUMBER
    values: frozenset[Constant] | None = None
    for field in ("const", "enum"):
        if field in facts:
            listed = frozenset(facts[field])
            values = listed if values is None else values & listed
    if values is not None:
        if types != TYPES:
            values = frozenset(value for value in values if value[0] & types)
        types = 0
        for value in values:
            types |= value[0]
    properties = facts.get("properties", {})
    required = {name: properties.get(name, ANY) for name in facts.get("required", ())}
    closed = None
    if facts.get("additionalProperties") == NEVER and not facts.get("patternProperties"):
        closed = frozenset(properties)
    bound = Static(types, values, required, closed, types == 0)
    for lits in (facts.get("ref", ANY), facts.get("dynamicRef", ANY), *facts.get("allOf", ())):
        if lits:
            bound = _and(bound, static(lits, nodes, depth + 1), nodes, depth)
    for field in ("anyOf", "oneOf"):
        if field in facts and depth < 3:
            branches = [static(lits, nodes, depth + 1) for lits in facts[field]]
            types = 0
            for branch in branches:
                types |= branch.types
            bound = _and(bound, Static(types, None, {}, None, types == 0), nodes, depth)
    return bound


def _not(node: Node, nodes: list[Node | None]) -> Static:
    """The complement of a node is known where it speaks of types only."""
    if node.waiting is None and set(node.facts) == {"type"} and not node.facts["type"] & INTEGER:
        types = TYPES & ~node.facts["type"]
        return Static(types, None, {}, None, types == 0)
    return UNKNOWN


def _and(one: Static, other: Static, nodes: list[Node | None], depth: int) -> Static:
    if one is UNKNOWN or other is UNKNOWN:
        return other if one is UNKNOWN else one
    types = one.types & other.types
    values = one.values if other.values is None else other.values if one.values is None else one.values & other.values
    required = one.required
    if other.required:
        merged = dict(required)
        for name, lits in other.required.items():
            merged[name] = both(merged[name], lits) if name in merged else lits
        required = merged
    closed = one.closed if other.closed is None else other.closed if one.closed is None else one.closed & other.closed
    is_never = types == 0 or (values is not None and not values)
    if not is_never and types == OBJECT and required and depth < 2:
        is_never = closed is not None and not closed.issuperset(required)
        if not is_never and one.required and other.required:
            common = one.required.keys() & other.required.keys()
            is_never = any(static(required[name], nodes, depth + 1).is_never for name in common)
    return Static(types, values, required, closed, is_never)


def disjoint(one: Static, other: Static) -> bool:
    """Whether it is plain that no value is in both."""
    types = one.types & other.types
    if not types:
        return True
    if one.values is not None and other.values is not None:
        return not one.values & other.values
    if types != OBJECT:
        return False
    if other.closed is not None and not other.closed.issuperset(one.required):
        return True
    return one.closed is not None and not one.closed.issuperset(other.required)
