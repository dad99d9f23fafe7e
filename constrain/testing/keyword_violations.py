"""For each keyword that can be violated alone, the schema of the documents that violate it.

A *breakage* is a keyword at a location that instances pass through: the root, a property, the items, a branch of
`allOf`, or the target of a `$ref`. Only the path to that location is copied. At its end `{k: v, ...}` becomes `{...,
not: {k: v}}`; along the path the property is made required and the array gets an item. References lead to the original
schema. Such a document is therefore drawn from a Grammar as any other, and violates exactly that keyword there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple
from urllib.parse import unquote

__all__ = ["ORIGINAL", "Breakage", "find_violations"]

ORIGINAL = "urn:constrain:testing:original"
"""The URI by which the original schema can be referred to."""
DEEPEST = 6
"""Maximum number of steps down to a keyword: recursive schemas have infinitely many keywords."""
MOST = 400
"""Maximum number of breakages of one schema; those nearest to the root are used if there are more."""

NEGATED_TOGETHER: dict[str, tuple[str, ...]] = {
    "additionalProperties": ("properties", "patternProperties"),
    "additionalItems": ("items",),
    "contains": ("minContains", "maxContains"),
    "minContains": ("contains",), "maxContains": ("contains",),
    "maximum": ("exclusiveMaximum",), "minimum": ("exclusiveMinimum",),
    "if": ("then", "else"),
}  # fmt: skip
"""Keywords that have no effect without these adjacent keywords; a keyword on the left is negated together with them."""
BROKEN = frozenset(
    "type enum const multipleOf maximum exclusiveMaximum minimum exclusiveMinimum maxLength minLength pattern format "
    "maxItems minItems uniqueItems contains minContains maxContains maxProperties minProperties required dependencies "
    "dependentRequired dependentSchemas propertyNames patternProperties additionalProperties additionalItems "
    "anyOf oneOf not if".split()
)
"""Keywords that can be violated; those that only contain subschemas (properties, items, allOf, $ref) are passed
through."""
OPAQUE = frozenset(("unevaluatedProperties", "unevaluatedItems", "$dynamicRef", "$recursiveRef"))
"""Keywords beside which no nested keyword is violated, because they depend on the evaluation of adjacent subschemas."""
NOT_COPIED = frozenset(
    ("$ref", "$id", "id", "$defs", "definitions", "$anchor", "$dynamicAnchor", "title", "description", "default")
)
"""Keywords that are not copied: identifiers, definitions (to which references lead in the original schema), and
annotations."""
OLD = ("draft-03", "draft-04", "draft-06", "draft-07")
"""Dialects in which a `$ref` disables adjacent keywords."""


class Breakage(NamedTuple):
    """A keyword to violate: the schema whose instances violate it, its value, its location in the document and in the
    schema."""

    schema: Any
    keyword: str
    value: Any
    pointer: str
    schema_pointer: str


def find_violations(schema: Any, example: Callable[[Any], list[Any]]) -> list[Breakage]:
    """Return every keyword that may be violated, those near the root first, with the schema of the documents that
    violate it.

    example: a function that returns at most one instance of a schema whose references lead to the original schema.
    """
    if not isinstance(schema, dict):
        return []
    breakages = _ViolationFinder(schema, example).visit(schema, "", "", 0, frozenset())
    dialect = {"$schema": schema["$schema"]} if "$schema" in schema else {}
    first = sorted(breakages, key=lambda one: one.schema_pointer.count("/"))[:MOST]
    return [one._replace(schema={**dialect, **one.schema}) for one in first]


class _ViolationFinder:
    """Walks a schema; each breakage that it finds holds a copy of the schema around it."""

    def __init__(self, root: dict[str, Any], example: Callable[[Any], list[Any]]) -> None:
        self.root, self.example = root, example
        self.old = any(name in str(root.get("$schema", "")) for name in OLD)

    def visit(self, schema: Any, location: str, pointer: str, depth: int, refs: frozenset[str]) -> Iterator[Breakage]:
        """Yield the breakages of the schema at `location`.

        pointer: the location of its instances. The schemas found replace it.
        """
        if not isinstance(schema, dict) or depth > DEEPEST:
            return
        outer = {key: redirect_references(value) for key, value in schema.items() if key not in NOT_COPIED}
        if "$ref" in schema:
            yield from self.visit_reference(schema["$ref"], outer, pointer, depth, refs)
            if self.old:
                return
            outer["allOf"] = [*outer.get("allOf", []), redirect_references({"$ref": schema["$ref"]})]
        for keyword in schema:
            if keyword in BROKEN:
                yield self.build_breakage(outer, keyword, location, pointer)
        if OPAQUE & schema.keys():
            return
        parts = outer.get("allOf", [])
        for name, inner in schema.get("properties", {}).items():
            step = "/" + name.replace("~", "~0").replace("/", "~1")
            for breakage in self.visit(inner, f"{location}/properties{step}", pointer + step, depth + 1, refs):
                changes = {
                    "properties": {**outer["properties"], name: breakage.schema},
                    "allOf": [*parts, {"type": "object"}],
                }
                must = dict.fromkeys((*outer.get("required", ()), name))
                yield breakage._replace(schema={**outer, **changes, "required": list(must)})
        if "prefixItems" not in schema:
            for breakage in self.visit(schema.get("items"), f"{location}/items", pointer + "/0", depth + 1, refs):
                changes = {"items": breakage.schema, "minItems": max(1, outer.get("minItems", 1))}
                yield breakage._replace(schema={**outer, **changes, "allOf": [*parts, {"type": "array"}]})
        for index, part in enumerate(schema.get("allOf", ())):
            for breakage in self.visit(part, f"{location}/allOf/{index}", pointer, depth + 1, refs):
                yield breakage._replace(
                    schema={**outer, "allOf": [*parts[:index], breakage.schema, *parts[index + 1 :]]}
                )

    def visit_reference(
        self, target: Any, adjacent: dict[str, Any], pointer: str, depth: int, refs: frozenset[str]
    ) -> Iterator[Breakage]:
        """Yield the breakages of the target of a local reference, combined with the keywords beside the reference."""
        if not isinstance(target, str) or not target.startswith("#") or target in refs:
            return
        target_schema: Any = self.root
        try:
            for step in unquote(target[1:]).split("/")[1:]:
                step = step.replace("~1", "/").replace("~0", "~")
                target_schema = target_schema[int(step)] if isinstance(target_schema, list) else target_schema[step]
        except (KeyError, IndexError, ValueError, TypeError):  # an anchor or an invalid reference: not followed
            return
        for breakage in self.visit(target_schema, unquote(target[1:]), pointer, depth + 1, refs | {target}):
            if adjacent and not self.old:
                breakage = breakage._replace(
                    schema={**adjacent, "allOf": [*adjacent.get("allOf", []), breakage.schema]}
                )
            yield breakage

    def build_breakage(self, outer: dict[str, Any], keyword: str, location: str, pointer: str) -> Breakage:
        """Return the breakage of one keyword: the schema with that keyword negated."""
        at = (keyword, outer[keyword], pointer, f"{location}/{keyword}")
        if keyword == "uniqueItems" and "prefixItems" not in outer and not isinstance(outer.get("items"), list):
            for value in self.example(outer.get("items", {})):  # All items are this one.
                same = {"allOf": [outer.get("items", {}), {"enum": [value]}]}
                changes = {"items": same, "minItems": max(2, outer.get("minItems", 2)), "uniqueItems": False}
                return Breakage({**outer, **changes, "allOf": [*outer.get("allOf", []), {"type": "array"}]}, *at)
        adjacent = NEGATED_TOGETHER.get(keyword, ())
        negated = {keyword: outer[keyword], **{key: outer[key] for key in adjacent if key in outer}}
        if keyword == "additionalProperties":  # only names count: the values are validated by other keywords
            negated.update((key, {name: {} for name in outer[key]}) for key in adjacent if key in outer)
        remaining = {key: value for key, value in outer.items() if key != keyword}
        if keyword in ("if", "minContains", "maxContains", "minimum", "maximum"):
            remaining = {
                key: value
                for key, value in remaining.items()
                if key not in adjacent or not belongs_to(keyword, outer[key])
            }
        if "not" in remaining:
            remaining = {**remaining, "allOf": [*remaining.get("allOf", []), {"not": remaining.pop("not")}]}
        return Breakage({**remaining, "not": negated}, *at)


def belongs_to(keyword: str, value: Any) -> bool:
    """Return whether a keyword beside the violated one has no effect without it: draft 4's exclusiveMinimum is a
    boolean."""
    return isinstance(value, bool) if keyword in ("minimum", "maximum") else keyword == "if"


def redirect_references(value: Any) -> Any:
    """Return a copy whose local references lead to the original schema."""
    if isinstance(value, dict):
        return {
            key: ORIGINAL + item
            if key == "$ref" and isinstance(item, str) and item.startswith("#")
            else redirect_references(item)
            for key, item in value.items()
        }
    return [redirect_references(item) for item in value] if isinstance(value, list) else value
