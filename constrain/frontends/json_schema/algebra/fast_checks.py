"""Fast path: conservative tests of a subschema by its keywords, which do not build a Shape.

Most subschemas are a type, a few keys, or a list of texts. For these the algebra is not needed before a value is
written, so the cost of a large schema depends on the parts that are used. The tests are sound but incomplete; anything
else is left to the algebra.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core.json_values import ARRAY, BOOLEAN, NULL, NUMBER, OBJECT, STRING, Constant
from ..core.schema_sets import ANY, NEVER, SchemaSet
from ..core.static_types import INTEGER, TYPES
from ..core.subschema_table import Subschema
from ..strings.schema_patterns import read_pattern

__all__ = ["find_children", "find_plain_types", "fast_satisfiable", "is_fully_satisfiable", "needs_rule"]

Nodes = list[Subschema | None]

TEXT_KEYWORDS = frozenset(("minLength", "maxLength", "pattern", "format"))
BOUND_KEYWORDS = frozenset(("minimum", "maximum"))
FAST_KEYWORDS = frozenset((
    "type", "enum", "const", *TEXT_KEYWORDS, *BOUND_KEYWORDS, "items", "minItems", "maxItems", "properties", "required",
    "additionalProperties",
))  # fmt: skip
"""Keywords that these tests understand; a subschema with any other keyword is left to the algebra."""
BRACKETS = ARRAY | OBJECT
SMALL_BOUND = 10**18
"""Bounds of numbers below which the automaton is certainly within `Limits.dfa_states`."""
MOST_DEPTH = 24
"""Levels of required keys that are followed."""


def fast_satisfiable(schemas: SchemaSet, nodes: Nodes, depth: int = 0) -> bool:
    """Return whether a set certainly has a value; False means that it is not known."""
    if len(schemas) != 1 or schemas[0] <= 0:
        return schemas == ANY
    node = nodes[schemas[0]]
    assert node is not None
    known = node.satisfiable
    if known is None:
        if depth > MOST_DEPTH or node.unparsed is not None:
            return False
        # Least fixpoint: a recursive path through this node has no finite value, so it counts as empty meanwhile.
        node.satisfiable = False
        known = node.satisfiable = _has_value(node, nodes, depth)
    return known


def _has_value(node: Subschema, nodes: Nodes, depth: int) -> bool:
    keywords = node.keywords
    if len(keywords) == 1 and "type" in keywords:
        return True
    if not FAST_KEYWORDS.issuperset(keywords):
        if len(keywords) == 1 and "anyOf" in keywords:
            return any(fast_satisfiable(schemas, nodes, depth + 1) for schemas in keywords["anyOf"])
        return False
    types = keywords.get("type", TYPES)
    if "enum" in keywords or "const" in keywords:
        return len(keywords.keys() - {"type"}) == 1 and any(value[0] & types for value in _enumerated_values(keywords))
    return bool(
        types & (NULL | BOOLEAN)
        or (types & STRING and _has_text(keywords))
        or (types & (NUMBER | INTEGER) and _has_number(keywords))
        or (types & ARRAY and _has_array(keywords, nodes, depth))
        or (types & OBJECT and _has_object(keywords, nodes, depth))
    )


def _enumerated_values(keywords: dict[str, Any]) -> tuple[Constant, ...]:
    values: tuple[Constant, ...] = keywords["enum"] if "enum" in keywords else keywords["const"]
    return values


def _has_text(keywords: dict[str, Any]) -> bool:
    if "pattern" in keywords or "format" in keywords:
        return len(TEXT_KEYWORDS & keywords.keys()) == 1 and (
            "format" in keywords or read_pattern(keywords["pattern"]).has_text
        )
    return bool(keywords.get("minLength", 0) <= keywords.get("maxLength", keywords.get("minLength", 0)))


def _has_number(keywords: dict[str, Any]) -> bool:
    """Return whether the bounds certainly allow a number: an interval longer than 1 holds an integer."""
    return "minimum" not in keywords or "maximum" not in keywords or keywords["maximum"] - keywords["minimum"] > 1


def _has_small_bounds(keywords: dict[str, Any]) -> bool:
    """Return whether the bounds are integers so small that their automaton cannot exceed the limit."""
    bounds = [keywords[field] for field in BOUND_KEYWORDS if field in keywords]
    return all(bound.denominator == 1 and abs(bound.numerator) < SMALL_BOUND for bound in bounds)


def _has_array(keywords: dict[str, Any], nodes: Nodes, depth: int) -> bool:
    low, items = keywords.get("minItems", 0), keywords.get("items", ANY)
    return low == 0 or (
        low <= keywords.get("maxItems", low) and type(items) is tuple and fast_satisfiable(items, nodes, depth + 1)
    )


def _has_object(keywords: dict[str, Any], nodes: Nodes, depth: int) -> bool:
    if "required" not in keywords:
        return True
    values, additional = keywords.get("properties", {}), keywords.get("additionalProperties", ANY)
    return all(fast_satisfiable(values.get(name, additional), nodes, depth + 1) for name in keywords["required"])


def find_children(schemas: SchemaSet, nodes: Nodes) -> list[SchemaSet] | None:
    """Return the sets of the values inside a value of the set, some of them perhaps empty; None if only the algebra
    knows.

    Where they are returned, the set itself has no contradiction and exceeds no limit.
    """
    if len(schemas) != 1 or schemas[0] <= 0:
        return [] if schemas == ANY else None
    node = nodes[schemas[0]]
    assert node is not None
    known = node.children
    if known is None:
        known = node.children = (_list_children(schemas, node, nodes),)
    return known[0]


def _list_children(schemas: SchemaSet, node: Subschema, nodes: Nodes) -> list[SchemaSet] | None:
    keywords = node.keywords
    if not FAST_KEYWORDS.issuperset(keywords):
        if len(keywords) == 1 and "anyOf" in keywords:
            return _list_children_of_alternatives(keywords["anyOf"], nodes)
        return None
    types = keywords.get("type", TYPES)
    if not types & BRACKETS and len(keywords) == 1:
        return []
    if "enum" in keywords or "const" in keywords:
        return (
            []
            if fast_satisfiable(schemas, nodes)
            and not any(value[0] & BRACKETS for value in _enumerated_values(keywords))
            else None
        )
    if types & STRING and not _has_text(keywords):
        return None
    if types & (NUMBER | INTEGER) and not (_has_number(keywords) and _has_small_bounds(keywords)):
        return None
    out: list[SchemaSet] = []
    if types & ARRAY:
        items = keywords.get("items", ANY)
        if type(items) is not tuple or keywords.get("maxItems", 1) == 0 or not _has_array(keywords, nodes, 0):
            return None
        out.append(items)
    if types & OBJECT:
        if not _has_object(keywords, nodes, 0):
            return None
        values = keywords.get("properties", {}).values()
        if NEVER in values:  # A forbidden key, which `normalised_object.normalise_plain_object` does not look for.
            return None
        out += dict.fromkeys(values)
        out.append(keywords.get("additionalProperties", ANY))
    return [other for other in out if other and other != NEVER]


def _list_children_of_alternatives(options: tuple[SchemaSet, ...], nodes: Nodes) -> list[SchemaSet] | None:
    """Return the children of alternatives that exclude each other by their types, and so are never merged."""
    types, out = 0, list[SchemaSet]()
    for schemas in options:
        node = nodes[schemas[0]] if len(schemas) == 1 and schemas[0] > 0 else None
        children = None if node is None or "type" not in node.keywords else find_children(schemas, nodes)
        if children is None or node is None or types & node.keywords["type"]:
            return None
        types |= node.keywords["type"]
        out += children
    return None if types & INTEGER and types & NUMBER else out


def needs_rule(schemas: SchemaSet, nodes: Nodes) -> bool:
    """Return whether the set certainly has arrays or objects, so that a rule is written for it."""
    if len(schemas) != 1 or schemas[0] <= 0:
        return schemas == ANY
    node = nodes[schemas[0]]
    assert node is not None
    keywords = node.keywords
    if not keywords.get("type", TYPES) & BRACKETS or not FAST_KEYWORDS.issuperset(keywords):
        return False
    if "enum" in keywords or "const" in keywords:
        return False
    return node.is_plain or find_children(schemas, nodes) is not None


def is_fully_satisfiable(node: Subschema, nodes: Nodes, is_satisfiable: Callable[[SchemaSet], bool]) -> bool:
    """Return whether the tests understand a subschema, other than alternatives, and all sets inside have a value."""
    keywords = node.keywords
    if not FAST_KEYWORDS.issuperset(keywords):
        return False
    if node.is_plain and (
        not keywords.get("type", TYPES) & INTEGER or ("enum" not in keywords and "const" not in keywords)
    ):
        return True
    children = find_children((node.number,), nodes)
    return children is not None and all(map(is_satisfiable, children))


def find_plain_types(schemas: SchemaSet, nodes: Nodes) -> tuple[int, int] | None:
    """Return the types and the draft of a set that is nothing but scalar types; None for any other."""
    node = nodes[schemas[0]] if len(schemas) == 1 and schemas[0] > 0 else None
    if node is None or not node.may_be_types_alone():
        return None
    if len(node.keywords) != 1 or node.keywords.get("type", BRACKETS) & BRACKETS:
        return None
    return node.keywords["type"], node.draft
