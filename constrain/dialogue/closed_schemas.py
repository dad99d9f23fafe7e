"""Close the objects and arrays of a JSON Schema that says nothing about undeclared members.

XGrammar reads a schema in a structural tag so: where members are declared (`properties`, `prefixItems`), there are no
others, unless a keyword says that there may be. Here this is said in JSON Schema, by `additionalProperties` where that
is equivalent and by `unevaluatedProperties` where subschemas of the same value declare members too.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from ..base.errors import ConstrainError
from ..frontends.json_schema.core.dialects import Scope
from ..frontends.json_schema.reading.schema_references import ReferenceResolver

__all__ = ["close_schema"]

IN_PLACE = ("allOf", "anyOf", "oneOf")
IN_PLACE_ONE = ("if", "then", "else", "not")
MEMBERS = ("properties", "patternProperties", "dependentSchemas", "$defs", "definitions")
MEMBER = ("additionalProperties", "unevaluatedProperties", "items", "additionalItems", "unevaluatedItems", "contains",
          "propertyNames", "contentSchema")  # fmt: skip
OPENS_OBJECT = ("additionalProperties", "unevaluatedProperties")
OPENS_ARRAY = ("items", "additionalItems", "unevaluatedItems")
REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")


def close_schema(schema: Any) -> Any:
    """Return a copy of a schema in which declared objects and arrays are closed.

    A schema that cannot be read, because of its `$schema` or `$id`, is returned as it is: compiling it says why.
    """
    try:
        resolver = ReferenceResolver(schema, None)
    except ConstrainError:
        return schema
    return _Closing(resolver).close_value(schema, resolver.main)


class _Closing:
    """The closing of the schemas of one document."""

    def __init__(self, resolver: ReferenceResolver) -> None:
        self.resolver = resolver

    def close_value(self, schema: Any, scope: Scope) -> Any:
        """Return the closed schema of a value of its own: the root, a member, an item. scope: around the schema."""
        if not isinstance(schema, dict):
            return schema
        closed = self.close_inside(schema, scope)
        places = self.list_same_value(schema, scope)
        inner = [key for key in (*IN_PLACE, *IN_PLACE_ONE, *REFERENCES, "dependentSchemas") if key in schema]
        for declares, opens, closing in (
            ("properties", OPENS_OBJECT, ("additionalProperties", "unevaluatedProperties")),
            ("prefixItems", OPENS_ARRAY, ("items", "unevaluatedItems")),
        ):
            declared = any(declares in place for place in places)
            if declared and not any(key in place for place in places for key in opens):
                closed[closing[1] if inner else closing[0]] = False
        return closed

    def close_inside(self, schema: Any, scope: Scope) -> Any:
        """Return a copy of a schema in which the schemas of members are closed, but not the schema itself."""
        if not isinstance(schema, dict):
            return schema
        scope, closed = self.enter(schema, scope), dict(schema)
        for key, value in schema.items():
            if key in IN_PLACE and isinstance(value, list):
                closed[key] = [self.close_inside(one, scope) for one in value]
            elif key in IN_PLACE_ONE and key != "not":
                closed[key] = self.close_inside(value, scope)
            elif key in MEMBERS and isinstance(value, dict):  # a definition is closed where it is referenced
                close = self.close_value if key in ("properties", "patternProperties") else self.close_inside
                closed[key] = {name: close(one, scope) for name, one in value.items()}
            elif key in MEMBER:
                closed[key] = self.close_value(value, scope)
            elif key == "prefixItems" and isinstance(value, list):
                closed[key] = [self.close_value(one, scope) for one in value]
        return closed

    def list_same_value(self, schema: dict[str, Any], scope: Scope) -> list[dict[str, Any]]:
        """Return a schema and the schemas that it applies to the same value, through references within the document
        too.
        """
        found, seen = list[dict[str, Any]](), set[int]()
        todo: list[tuple[Any, Scope]] = [(schema, scope)]
        while todo:
            one, around = todo.pop()
            if not isinstance(one, dict) or id(one) in seen:
                continue
            seen.add(id(one))
            found.append(one)
            inside = self.enter(one, around)
            parts: list[Any] = [one[key] for key in IN_PLACE_ONE if key != "not" and key in one]
            for key in IN_PLACE:
                parts += one[key] if isinstance(one.get(key), list) else []
            parts += one["dependentSchemas"].values() if isinstance(one.get("dependentSchemas"), dict) else []
            todo += [(part, inside) for part in parts]
            for key in REFERENCES:
                if isinstance(one.get(key), str):
                    with suppress(ConstrainError):  # what it names is not there: compiling says so
                        target = self.resolver.resolve(one[key], inside, "")
                        todo.append((target.raw, target.scope))
        return found

    def enter(self, schema: dict[str, Any], scope: Scope) -> Scope:
        """Return the scope inside a schema."""
        with suppress(ConstrainError):
            scope = self.resolver.enter(schema, scope, "")
        return scope
