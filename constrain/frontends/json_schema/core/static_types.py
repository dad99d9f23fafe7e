"""Upper bounds of sets that are known without unfolding them: cheap proofs that two sets are disjoint.

They decide most `oneOf`s (by type, by the constant of a common required key, by a key that one requires and the other
forbids) and prune most products. The bounds are sound but not tight; what they cannot prove is left to the algebra.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from .json_values import ARRAY, BOOLEAN, NULL, NUMBER, OBJECT, STRING, Constant
from .schema_sets import ANY, NEVER, SchemaSet, intersect_sets
from .subschema_table import Subschema

__all__ = ["INTEGER", "TYPE_BITS", "StaticBound", "are_disjoint", "compute_bound"]

INTEGER = 64
"""The bit of `type: integer`, which is not a separate JSON type."""

TYPES = 63

TYPE_BITS = {
    "null": NULL, "boolean": BOOLEAN, "number": NUMBER, "integer": INTEGER,
    "string": STRING, "array": ARRAY, "object": OBJECT,
}  # fmt: skip
"""The bits of the names of types."""


class StaticBound(NamedTuple):
    """An upper bound of a set.

    types: bits of JSON types. values: all values, if they are enumerated. required: keys that an object must have, with
    the sets of their values. closed: all keys that an object may have, or None. is_never: no value at all.
    """

    types: int = TYPES
    values: frozenset[Constant] | None = None
    required: Mapping[str, SchemaSet] = MappingProxyType({})
    closed: frozenset[str] | None = None
    is_never: bool = False


UNKNOWN_BOUND = StaticBound()
EMPTY_BOUND = StaticBound(0, frozenset(), {}, frozenset(), True)
MOST_DEPTH = 12
"""The longest chain of references that is followed."""


def compute_bound(schemas: SchemaSet, nodes: list[Subschema | None], depth: int = 0) -> StaticBound:
    """Return the upper bound of a set."""
    if schemas == NEVER:
        return EMPTY_BOUND
    bound = UNKNOWN_BOUND
    for literal in schemas:
        node = nodes[abs(literal)]
        assert node is not None
        bound = _intersect_bounds(
            bound, _node_bound(node, nodes, depth) if literal > 0 else _complement_bound(node, nodes), nodes, depth
        )
        if bound.is_never:
            return EMPTY_BOUND
    return bound


def _node_bound(node: Subschema, nodes: list[Subschema | None], depth: int) -> StaticBound:
    if node.bound is None or depth:
        if depth > MOST_DEPTH or node.unparsed is not None:
            return UNKNOWN_BOUND
        bound = _compute_node_bound(node, nodes, depth)
        if depth:
            return bound
        node.bound = bound
    known: StaticBound = node.bound
    return known


def _compute_node_bound(node: Subschema, nodes: list[Subschema | None], depth: int) -> StaticBound:
    keywords = node.keywords
    types = keywords.get("type", TYPES)
    if types & INTEGER:
        types = types & TYPES | NUMBER
    values: frozenset[Constant] | None = None
    for field in ("const", "enum"):
        if field in keywords:
            listed = frozenset(keywords[field])
            values = listed if values is None else values & listed
    if values is not None:
        if types != TYPES:
            values = frozenset(value for value in values if value[0] & types)
        types = 0
        for value in values:
            types |= value[0]
    properties = keywords.get("properties", {})
    required = {name: properties.get(name, ANY) for name in keywords.get("required", ())}
    closed = None
    if keywords.get("additionalProperties") == NEVER and not keywords.get("patternProperties"):
        closed = frozenset(properties)
    bound = StaticBound(types, values, required, closed, types == 0)
    for schemas in (keywords.get("$ref", ANY), keywords.get("$dynamicRef", ANY), *keywords.get("allOf", ())):
        if schemas:
            bound = _intersect_bounds(bound, compute_bound(schemas, nodes, depth + 1), nodes, depth)
    for field in ("anyOf", "oneOf"):
        if field in keywords and depth < 3:
            branches = [compute_bound(schemas, nodes, depth + 1) for schemas in keywords[field]]
            types = 0
            for branch in branches:
                types |= branch.types
            bound = _intersect_bounds(bound, StaticBound(types, None, {}, None, types == 0), nodes, depth)
    return bound


def _complement_bound(node: Subschema, nodes: list[Subschema | None]) -> StaticBound:
    """Return the bound of the complement of a node, which is known for nodes that only have `type`."""
    keywords = node.keywords
    if len(keywords) == 1 and "type" in keywords and node.unparsed is None and not keywords["type"] & INTEGER:
        types = TYPES & ~keywords["type"]
        return StaticBound(types, None, {}, None, types == 0)
    return UNKNOWN_BOUND


def _intersect_bounds(one: StaticBound, other: StaticBound, nodes: list[Subschema | None], depth: int) -> StaticBound:
    if one is UNKNOWN_BOUND or other is UNKNOWN_BOUND:
        return other if one is UNKNOWN_BOUND else one
    types = one.types & other.types
    values = one.values if other.values is None else other.values if one.values is None else one.values & other.values
    required = one.required
    if other.required:
        merged = dict(required)
        for name, schemas in other.required.items():
            merged[name] = intersect_sets(merged[name], schemas) if name in merged else schemas
        required = merged
    closed = one.closed if other.closed is None else other.closed if one.closed is None else one.closed & other.closed
    is_never = types == 0 or (values is not None and not values)
    if not is_never and types == OBJECT and required and depth < 2:
        is_never = closed is not None and not closed.issuperset(required)
        if not is_never and one.required and other.required:
            common = one.required.keys() & other.required.keys()
            is_never = any(compute_bound(required[name], nodes, depth + 1).is_never for name in common)
    return StaticBound(types, values, required, closed, is_never)


def are_disjoint(one: StaticBound, other: StaticBound) -> bool:
    """Return whether the bounds show that no value is in both sets."""
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
