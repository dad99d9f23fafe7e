"""A value with its keys in the order of the schema's `properties`, as far as a look at the schema says it.

The subschemas that speak of a place are gathered through local references and `allOf`, `anyOf`, `oneOf`, `if`; names
come in the order in which they are met there, others last. No engine is asked.
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
    """Of one schema, a value as json reads it."""

    def __init__(self, schema: Any) -> None:
        self.root = schema

    def __call__(self, value: Value) -> Value:
        """Return the value in order."""
        return self.ordered(value, [self.root])

    def ordered(self, value: Value, schemas: list[Any]) -> Value:
        """Return a value of which these schemas speak."""
        if not isinstance(value, list | dict):
            return value
        parts = list(self.parts(schemas, set()))
        if isinstance(value, list):
            return [self.ordered(item, list(list_item_schemas(parts, place))) for place, item in enumerate(value)]
        places: dict[str, int] = {}
        for part in parts:
            for name in part.get("properties") or ():
                places.setdefault(name, len(places))
        names = sorted(value, key=lambda name: places.get(name, len(places)))
        return {name: self.ordered(value[name], list(list_member_schemas(parts, name))) for name in names}

    def parts(self, schemas: list[Any], seen: set[int]) -> Iterator[dict[str, Any]]:
        """Yield all subschemas that speak of the same place."""
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
                more.append(self.find(schema["$ref"]))
            yield from self.parts(more, seen)

    def find(self, reference: str) -> Any:
        """Return what a local reference points at; None if there is nothing."""
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
    """Yield the schemas of an item."""
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
    """Yield the schemas of a member."""
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
