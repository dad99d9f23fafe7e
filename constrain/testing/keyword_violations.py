"""For each keyword that can be violated alone, the schema of the documents that violate it.

A *breakage* is a keyword at a location that instances pass through: the root, a property, the items, a branch of
`allOf`, or the target of a `$ref`. Only the path to that location is copied. At its end `{k: v, ...}` becomes `{...,
not: {k: v}}`; along the path the property is made required and the array gets an item. References lead to the original
schema. Such a document is therefore drawn from a Grammar as any other, and violates exactly that keyword there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from copy import copy
from typing import Any, NamedTuple
from urllib.parse import unquote, urldefrag, urljoin

from ..frontends.json_schema.core.dialects import NEWEST, Dialect, resolve_dialect
from ..frontends.json_schema.reading.keywords import iterate_subschemas, keywords_of_dialect

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
    "maximum": ("exclusiveMaximum",), "minimum": ("exclusiveMinimum",),
    "if": ("then", "else"),
}  # fmt: skip
"""Keywords that have no effect without these adjacent keywords; a keyword on the left is negated together with them."""
COUNTED = ("contains", "minContains", "maxContains")
"""Keywords that count items. Too few of them violate `contains` and `minContains`, too many `maxContains`."""
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
ID_NAMES = {4: "id", **dict.fromkeys((6, 7, 2019, 2020), "$id")}
"""The keyword that gives a schema a base URI, by draft."""
LAST_EXCLUSIVE = 7
"""The last draft in which a `$ref` disables adjacent keywords."""


class Breakage(NamedTuple):
    """A keyword to violate: the schema whose instances violate it, its value, its location in the document and in the
    schema."""

    schema: Any
    keyword: str
    value: Any
    pointer: str
    schema_pointer: str


def find_violations(schema: Any, registry: Mapping[str, Any], example: Callable[[Any], list[Any]]) -> list[Breakage]:
    """Return every keyword that may be violated, those near the root first, with the schema of the documents that
    violate it.

    registry: documents by URI, for dialects. example: a function that returns at most one instance of a schema whose
    references lead to the original schema.
    """
    if not isinstance(schema, dict):
        return []
    finder = _ViolationFinder(schema, resolve_dialect(schema, NEWEST, "", registry), example)
    breakages = finder.visit(schema, "", "", 0, frozenset())
    dialect = {"$schema": schema["$schema"]} if "$schema" in schema else {}
    first = sorted(breakages, key=lambda one: one.schema_pointer.count("/"))[:MOST]
    return [one._replace(schema={**dialect, **one.schema}) for one in first]


class _ViolationFinder:
    """Walks a schema; each breakage that it finds holds a copy of the schema around it."""

    def __init__(self, root: dict[str, Any], dialect: Dialect, example: Callable[[Any], list[Any]]) -> None:
        self.root, self.example = root, example
        self.draft, self.known = dialect.draft, keywords_of_dialect(dialect)
        self.base = str(root.get(ID_NAMES[self.draft], ""))

    def visit(self, schema: Any, location: str, pointer: str, depth: int, refs: frozenset[str]) -> Iterator[Breakage]:
        """Yield the breakages of the schema at `location`.

        pointer: the location of its instances. The schemas found replace it.
        """
        if not isinstance(schema, dict) or depth > DEEPEST:
            return
        if location and self.is_resource(schema):  # its references are its own
            return
        outer = {key: value for key, value in self.redirect_references(schema).items() if key not in NOT_COPIED}
        if "$ref" in schema:
            yield from self.visit_reference(schema["$ref"], outer, pointer, depth, refs)
            if self.draft <= LAST_EXCLUSIVE:
                return
            outer["allOf"] = [*outer.get("allOf", []), self.redirect_references({"$ref": schema["$ref"]})]
        for keyword in schema:
            if keyword in BROKEN and keyword in self.known:
                yield from self.build_breakages(outer, keyword, location, pointer)
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
        is_pointer = isinstance(target, str) and (target == "#" or target.startswith("#/"))
        if not is_pointer or target in refs:  # an anchor, or another document: not followed
            return
        target_schema: Any = self.root
        try:
            for step in unquote(target[1:]).split("/")[1:]:
                step = step.replace("~1", "/").replace("~0", "~")
                target_schema = target_schema[int(step)] if isinstance(target_schema, list) else target_schema[step]
        except (KeyError, IndexError, ValueError, TypeError):  # an invalid reference: not followed
            return
        for breakage in self.visit(target_schema, unquote(target[1:]), pointer, depth + 1, refs | {target}):
            if adjacent and self.draft > LAST_EXCLUSIVE:
                breakage = breakage._replace(
                    schema={**adjacent, "allOf": [*adjacent.get("allOf", []), breakage.schema]}
                )
            yield breakage

    def is_resource(self, schema: dict[str, Any]) -> bool:
        """Return whether a subschema has a base URI of its own."""
        uri = schema.get(ID_NAMES[self.draft])
        return isinstance(uri, str) and not uri.startswith("#")

    def redirect_references(self, schema: Any) -> Any:
        """Return a copy of a schema whose references, and those of its subschemas, lead to the original schema.

        Subschemas with a base URI of their own stay as they are.
        """
        if not isinstance(schema, dict):
            return schema
        copied = dict(schema)
        if isinstance(schema.get("$ref"), str):
            copied["$ref"] = self.redirect_reference(schema["$ref"])
        for (name, *key), inner in iterate_subschemas(schema, self.draft):
            if isinstance(inner, dict) and not self.is_resource(inner):
                redirected = self.redirect_references(inner)
                if not key:
                    copied[name] = redirected
                else:
                    if copied[name] is schema[name]:
                        copied[name] = copy(schema[name])
                    copied[name][key[0]] = redirected
        return copied

    def redirect_reference(self, target: str) -> str:
        """Return the target of a reference, absolute if the original schema has a base URI."""
        uri, fragment = urldefrag(urljoin(self.base, target))
        is_local = target.startswith("#") or (self.base != "" and uri == urldefrag(self.base).url)
        return f"{ORIGINAL}#{fragment}" if is_local else urljoin(self.base, target)

    def build_breakages(self, outer: dict[str, Any], keyword: str, location: str, pointer: str) -> Iterator[Breakage]:
        """Yield the breakage of one keyword, the schema with that keyword negated; none if it asserts nothing."""
        at = (keyword, outer[keyword], pointer, f"{location}/{keyword}")
        others = outer.get("allOf", [])
        if keyword in COUNTED:
            yield from (Breakage(schema, *at) for schema in self.negate_count(outer, keyword))
            return
        if keyword == "uniqueItems" and "prefixItems" not in outer and not isinstance(outer.get("items"), list):
            for value in self.example(outer.get("items", {})) if outer[keyword] else ():
                same = {"allOf": [outer.get("items", {}), {"enum": [value]}]}  # all items are this one
                changes = {"items": same, "minItems": max(2, outer.get("minItems", 2)), "uniqueItems": False}
                yield Breakage({**outer, **changes, "allOf": [*others, {"type": "array"}]}, *at)
                return
        adjacent = NEGATED_TOGETHER.get(keyword, ())
        negated = {keyword: outer[keyword], **{key: outer[key] for key in adjacent if key in outer}}
        if keyword == "additionalProperties":  # only names count: the values are validated by other keywords
            negated.update((key, {name: {} for name in outer[key]}) for key in adjacent if key in outer)
        dropped = {keyword}
        if keyword in ("if", "minimum", "maximum"):
            dropped.update(key for key in adjacent if key in outer and belongs_to(keyword, outer[key]))
        remaining = {key: value for key, value in outer.items() if key not in dropped}
        yield Breakage(negate_within(remaining, negated), *at)

    def negate_count(self, outer: dict[str, Any], keyword: str) -> Iterator[dict[str, Any]]:
        """Yield the schema in which one of the keywords that count items is negated."""
        if "contains" not in outer:
            return
        counts = {key: outer[key] for key in COUNTED[1:] if key in outer and key in self.known}
        low = {key: value for key, value in outer.items() if key in ("contains", *counts) and key != "maxContains"}
        high = {"contains": outer["contains"], "minContains": 0, "maxContains": counts.get("maxContains")}
        remaining = {key: value for key, value in outer.items() if key not in COUNTED}
        asserted, negated = (low, high) if keyword == "maxContains" else (high, low)
        if "maxContains" in counts:
            remaining["allOf"] = [*remaining.get("allOf", []), asserted]
        yield negate_within(remaining, negated)


def negate_within(schema: dict[str, Any], negated: dict[str, Any]) -> dict[str, Any]:
    """Return a schema with one more schema negated."""
    if "not" in schema:
        rest = {key: value for key, value in schema.items() if key != "not"}
        schema = {**rest, "allOf": [*schema.get("allOf", []), {"not": schema["not"]}]}
    return {**schema, "not": negated}


def belongs_to(keyword: str, value: Any) -> bool:
    """Return whether a keyword beside the violated one has no effect without it: draft 4's exclusiveMinimum is a
    boolean."""
    return isinstance(value, bool) if keyword in ("minimum", "maximum") else keyword == "if"
