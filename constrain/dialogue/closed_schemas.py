"""Close the objects and arrays of a JSON Schema that says nothing about undeclared members.

XGrammar reads a schema in a structural tag so: where members are declared (`properties`, `prefixItems`), there are no
others, unless a keyword says that there may be. Here this is said in JSON Schema, by `additionalProperties` where that
is equivalent and by `unevaluatedProperties` where subschemas of the same value declare members too.
"""

from __future__ import annotations

from collections import defaultdict
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
SAID = {"properties", "prefixItems", *OPENS_OBJECT, *OPENS_ARRAY}
"""Keywords that declare members, or say whether there may be others."""


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
    """The closing of the schemas of one document, in time that is linear in its length.

    said: by id of a schema, those of SAID in it and in the schemas that it applies to the same value.
    """

    def __init__(self, resolver: ReferenceResolver) -> None:
        self.resolver = resolver
        self.said: dict[int, set[str]] = {}

    def close_value(self, schema: Any, scope: Scope) -> Any:
        """Return the closed schema of a value of its own: the root, a member, an item. scope: around the schema."""
        if not isinstance(schema, dict):
            return schema
        closed = self.close_inside(schema, scope)
        said = self.find_said(schema, scope)
        inner = [key for key in (*IN_PLACE, *IN_PLACE_ONE, *REFERENCES, "dependentSchemas") if key in schema]
        for declares, opens, closing in (
            ("properties", OPENS_OBJECT, ("additionalProperties", "unevaluatedProperties")),
            ("prefixItems", OPENS_ARRAY, ("items", "unevaluatedItems")),
        ):
            if declares in said and said.isdisjoint(opens):
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

    def find_said(self, schema: dict[str, Any], scope: Scope) -> set[str]:
        """Return those of SAID in a schema and in the schemas that it applies to the same value."""
        users, todo = defaultdict[int, list[int]](list), [(schema, scope)]
        while todo:
            one, around = todo.pop()
            if id(one) not in self.said:
                self.said[id(one)] = SAID & one.keys()
                for part in self.list_parts(one, around):
                    users[id(part[0])].append(id(one))
                    todo.append(part)
        changed = list(users)
        while changed:
            part_id = changed.pop()
            for user in users.get(part_id, ()):
                if not self.said[part_id] <= self.said[user]:
                    self.said[user] |= self.said[part_id]
                    changed.append(user)
        return self.said[id(schema)]

    def list_parts(self, schema: dict[str, Any], scope: Scope) -> list[tuple[dict[str, Any], Scope]]:
        """Return the schemas that a schema names for the same value, also by references within the document, each with
        the scope around it.
        """
        inside = self.enter(schema, scope)
        parts: list[Any] = [schema[key] for key in IN_PLACE_ONE if key != "not" and key in schema]
        for key in IN_PLACE:
            parts += schema[key] if isinstance(schema.get(key), list) else []
        dependent = schema.get("dependentSchemas")
        parts += dependent.values() if isinstance(dependent, dict) else []
        found = [(part, inside) for part in parts]
        for key in REFERENCES:
            if isinstance(schema.get(key), str):
                with suppress(ConstrainError):  # what it names is not there: compiling says so
                    target = self.resolver.resolve(schema[key], inside, "")
                    found.append((target.raw, target.scope))
        return [part for part in found if isinstance(part[0], dict)]

    def enter(self, schema: dict[str, Any], scope: Scope) -> Scope:
        """Return the scope inside a schema."""
        with suppress(ConstrainError):
            scope = self.resolver.enter(schema, scope, "")
        return scope
