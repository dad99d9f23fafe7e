"""Close the objects and arrays of a JSON Schema that says nothing about undeclared members.

XGrammar reads a schema in a structural tag so: where members are declared (`properties`, `prefixItems`), there are no
others, unless a keyword says that there may be. Here this is said in JSON Schema, by `additionalProperties` where that
is equivalent and by `unevaluatedProperties` where subschemas of the same value declare members too.
"""

from __future__ import annotations

from typing import Any

__all__ = ["close_schema"]

IN_PLACE = ("allOf", "anyOf", "oneOf")
IN_PLACE_ONE = ("if", "then", "else", "not")
MEMBERS = ("properties", "patternProperties", "dependentSchemas", "$defs", "definitions")
MEMBER = ("additionalProperties", "unevaluatedProperties", "items", "additionalItems", "unevaluatedItems", "contains",
          "propertyNames", "contentSchema")  # fmt: skip
OPENS_OBJECT = ("additionalProperties", "unevaluatedProperties")
OPENS_ARRAY = ("items", "additionalItems", "unevaluatedItems")


def close_schema(schema: Any) -> Any:
    """Return a copy of a schema in which declared objects and arrays are closed."""
    return _close_value(schema, schema)


def _close_value(schema: Any, root: Any) -> Any:
    """Return the closed schema of a value of its own: the root, a member, an item."""
    if not isinstance(schema, dict):
        return schema
    closed = _close_inside(schema, root)
    places = _subschemas_of_same_value(schema, root)
    inner = [key for key in (*IN_PLACE, *IN_PLACE_ONE, "$ref", "$dynamicRef", "dependentSchemas") if key in schema]
    for declares, opens, closing in (
        ("properties", OPENS_OBJECT, ("additionalProperties", "unevaluatedProperties")),
        ("prefixItems", OPENS_ARRAY, ("items", "unevaluatedItems")),
    ):
        declared = any(declares in place for place in places)
        if declared and not any(key in place for place in places for key in opens):
            closed[closing[1] if inner else closing[0]] = False
    return closed


def _close_inside(schema: dict[str, Any], root: Any) -> dict[str, Any]:
    """Return a copy of a schema in which the schemas of members are closed, but not the schema itself."""
    closed = dict(schema)
    for key, value in schema.items():
        if key in IN_PLACE and isinstance(value, list):
            closed[key] = [_close_inside(one, root) if isinstance(one, dict) else one for one in value]
        elif key in IN_PLACE_ONE and isinstance(value, dict) and key != "not":
            closed[key] = _close_inside(value, root)
        elif key in MEMBERS and isinstance(value, dict):
            close = _close_value if key in ("properties", "patternProperties") else _close_definition
            closed[key] = {name: close(one, root) for name, one in value.items()}
        elif key in MEMBER:
            closed[key] = _close_value(value, root)
        elif key == "prefixItems" and isinstance(value, list):
            closed[key] = [_close_value(one, root) for one in value]
    return closed


def _close_definition(schema: Any, root: Any) -> Any:
    """Return a definition with closed members; it is itself closed where it is referenced."""
    return _close_inside(schema, root) if isinstance(schema, dict) else schema


def _subschemas_of_same_value(schema: dict[str, Any], root: Any) -> list[dict[str, Any]]:
    """Return a schema and the schemas that it applies to the same value, through local references too."""
    found: list[dict[str, Any]] = []
    todo: list[Any] = [schema]
    seen: set[int] = set()
    while todo:
        one = todo.pop()
        if not isinstance(one, dict) or id(one) in seen:
            continue
        seen.add(id(one))
        found.append(one)
        for key in IN_PLACE:
            todo += one[key] if isinstance(one.get(key), list) else []
        todo += [one[key] for key in IN_PLACE_ONE if key != "not" and key in one]
        todo += list(one["dependentSchemas"].values()) if isinstance(one.get("dependentSchemas"), dict) else []
        reference = one.get("$ref")
        if isinstance(reference, str) and reference.startswith("#"):
            todo.append(_resolve(reference[1:], root))
    return found


def _resolve(pointer: str, root: Any) -> Any:
    """Return the value at a JSON pointer, None if there is none."""
    value = root
    for name in pointer.split("/")[1:]:
        name = name.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict):
            value = value.get(name)
        elif isinstance(value, list) and name.isdigit() and int(name) < len(value):
            value = value[int(name)]
        else:
            return None
    return value
