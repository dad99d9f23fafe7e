"""Sort the keys of a value by the order of `properties` in the schema, without asking an engine.

The subschemas that apply to a value are collected through local references and `allOf`, `anyOf`, `oneOf`, `if`. Keys
get the order in which they occur there, other keys are last.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

from .values import Value

__all__ = ["Order"]

TOGETHER = ("allOf", "anyOf", "oneOf")
ALONE = ("if", "then", "else")


class Order:
    """The order of keys under one schema."""

    def __init__(self, schema: Any) -> None:
        self.root = schema

    def __call__(self, value: Value) -> Value:
        """Return a value with sorted keys."""
        return self.sort_keys(value, [self.root])

    def sort_keys(self, value: Value, schemas: list[Any]) -> Value:
        """Return a value, to which these schemas apply, with sorted keys."""
        if not isinstance(value, list | dict):
            return value
        parts = list(self.list_subschemas(schemas, set()))
        if isinstance(value, list):
            return [self.sort_keys(item, list(list_item_schemas(parts, place))) for place, item in enumerate(value)]
        places: dict[str, int] = {}
        for part in parts:
            for name in part.get("properties") or ():
                places.setdefault(name, len(places))
        names = sorted(value, key=lambda name: places.get(name, len(places)))
        return {name: self.sort_keys(value[name], list(list_member_schemas(parts, name))) for name in names}

    def list_subschemas(self, schemas: list[Any], seen: set[int]) -> Iterator[dict[str, Any]]:
        """Yield all subschemas that apply to the same value."""
        for schema in schemas:
            if not isinstance(schema, dict) or id(schema) in seen:
                continue
            seen.add(id(schema))
            yield schema
            more = [schema[word] for word in ALONE if word in schema]
            for word in TOGETHER:
                if isinstance(schema.get(word), list):
                    more += schema[word]
            if isinstance(schema.get("$ref"), str):
                more.append(self.resolve_reference(schema["$ref"]))
            yield from self.list_subschemas(more, seen)

    def resolve_reference(self, reference: str) -> Any:
        """Return the target of a local reference, or None."""
        if not reference.startswith("#"):
            return None
        found = self.root
        for step in unquote(reference[1:]).split("/")[1:]:
            step = step.replace("~1", "/").replace("~0", "~")
            if isinstance(found, dict):
                found = found.get(step)
            elif isinstance(found, list) and step.isdigit() and int(step) < len(found):
                found = found[int(step)]
            else:
                return None
        return found


def list_item_schemas(parts: list[dict[str, Any]], place: int) -> Iterator[Any]:
    """Yield the subschemas that apply to an item."""
    for part in parts:
        for word in ("prefixItems", "items"):
            listed = part.get(word)
            if isinstance(listed, list):
                if place < len(listed):
                    yield listed[place]
                elif word == "items":
                    yield part.get("additionalItems")
            else:
                yield listed


def list_member_schemas(parts: list[dict[str, Any]], name: str) -> Iterator[Any]:
    """Yield the subschemas that apply to a member."""
    for part in parts:
        declared = part.get("properties")
        if isinstance(declared, dict) and name in declared:
            yield declared[name]
        patterns = part.get("patternProperties")
        for pattern, schema in patterns.items() if isinstance(patterns, dict) else ():
            try:
                if re.search(pattern, name):
                    yield schema
            except re.error:
                continue
        yield part.get("additionalProperties")
