"""Schemas of growing size, for which a compiler that unrolls counts or multiplies alternatives takes too long.

list_growing_cases()     yields Growing(group, ...) in the order of the table; texts are built on use
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any, NamedTuple

__all__ = ["Growing", "list_growing_cases"]


class Growing(NamedTuple):
    """One schema. group: what grows. size: its size."""

    group: str
    size: str
    schema: Any

    @property
    def name(self) -> str:
        """The name in the table and for `--only`."""
        return f"{self.group}, {self.size}"

    @property
    def text(self) -> str:
        """Return the schema as JSON text."""
        return json.dumps(self.schema, ensure_ascii=False)


def list_growing_cases() -> Iterator[Growing]:
    """Yield every case of the table."""
    yield from grow_bounds()
    yield from grow_constants()
    yield from grow_keys()
    yield from grow_nesting()
    yield from grow_references()
    yield from grow_patterns()
    yield from grow_values()


def grow_bounds() -> Iterator[Growing]:
    """Yield schemas with large counts, which must not be unrolled."""
    text, each = {"type": "string"}, {"type": "integer", "minimum": 0}
    for size in (10**3, 10**5, 10**7):
        n, half = f"{size:,}", size // 2
        yield Growing("maxLength", n, text | {"maxLength": size})
        yield Growing("minLength and maxLength", n, text | {"minLength": half, "maxLength": size})
        yield Growing("pattern and maxLength", n, text | {"pattern": "^[a-z]", "maxLength": size})
        yield Growing("maxItems", n, {"type": "array", "items": each, "maxItems": size})
        yield Growing("minItems and maxItems", n, {"type": "array", "minItems": half, "maxItems": size})
        yield Growing("maxProperties", n, {"type": "object", "maxProperties": size})
        yield Growing("contains with maxItems", n, {
            "type": "array", "items": each, "contains": {"maximum": 9}, "maxItems": size})  # fmt: skip
        yield Growing("minContains, maxContains and maxItems", n, {
            "type": "array", "items": each, "contains": {"maximum": 9}, "minContains": 3, "maxContains": half,
            "maxItems": size})  # fmt: skip


def grow_constants() -> Iterator[Growing]:
    """Yield schemas with long lists of values."""
    for size in (10**3, 10**4, 10**5):
        n = f"{size:,}"
        draw = random.Random(size)
        words = [f"{draw.choice(SYLLABLES)}{draw.choice(SYLLABLES)}-{number:x}" for number in range(size)]
        yield Growing("enum of strings", n, {"enum": words})
        yield Growing("enum of numbers", n, {"enum": [7 * number for number in range(size)]})
        yield Growing("enum of fractions", n, {"enum": [number / 8 for number in range(size)]})
        yield Growing("enum of small objects", n, {
            "enum": [{"id": number, "name": word} for number, word in enumerate(words)]})  # fmt: skip
        yield Growing("enum of strings beside pattern and minLength", n, {
            "type": "string", "enum": words, "pattern": "a", "minLength": 4})  # fmt: skip


SYLLABLES = ("ba", "ke", "lo", "mi", "nu", "ra", "so", "ti", "zu", "ä", "日", "😀")


def grow_keys() -> Iterator[Growing]:
    """Yield schemas with many optional keys: 2^n subsets, n! orders."""
    for size in (50, 500, 5_000):
        names = [f"key {number}" for number in range(size)]
        members = {name: {"type": ("string", "integer", "boolean")[len(name) % 3]} for name in names}
        closed = {"type": "object", "properties": members, "additionalProperties": False}
        yield Growing("optional keys", f"{size:,}", closed)
        yield Growing("optional keys, open object", f"{size:,}", {"type": "object", "properties": members})
        yield Growing("optional keys with dependentRequired", f"{size:,}", closed
            | {"dependentRequired": {one: [other] for one, other in zip(names, names[1:])}})  # fmt: skip
        yield Growing("required keys", f"{size:,}", closed | {"required": names})


def grow_nesting() -> Iterator[Growing]:
    """Yield schemas of nested oneOf; each level doubles the number of combinations."""
    for size in (3, 6, 12):
        levels = f"{size} levels"
        yield Growing("oneOf nested in members, disjoint", levels, grow_tagged_unions(size))
        yield Growing("oneOf nested in members, overlapping", levels, grow_overlapping_patterns(size))
        yield Growing("oneOf nested on one value, disjoint", levels, grow_type_unions(size))
        yield Growing("oneOf nested on one value, overlapping", levels, grow_exclusive_unions(size))
        yield Growing("anyOf nested on one value, overlapping", levels, grow_exclusive_unions(size, keyword="anyOf"))


def grow_tagged_unions(levels: int) -> dict[str, Any]:
    """Return a union of two objects, distinguished by a constant; one contains the next level."""
    inner = grow_tagged_unions(levels - 1) if levels else {"type": "string"}
    kinds = {"leaf": {"value": {"type": "string"}}, "node": {"next": inner}}
    return {"oneOf": [
        {"type": "object", "properties": {"kind": {"const": kind}} | members, "required": ["kind", *members]}
        for kind, members in kinds.items()
    ]}  # fmt: skip


def grow_overlapping_patterns(levels: int) -> dict[str, Any]:
    """Return a union of two objects that overlap unless a key excludes it."""
    inner = grow_overlapping_patterns(levels - 1) if levels else {"type": "integer"}
    return {"type": "object", "oneOf": [
        {"properties": {"a": {"type": "string"}, "next": inner}, "required": ["a"]},
        {"properties": {"b": {"type": "string"}, "next": {"type": "array"}}, "required": ["b"]},
    ]}  # fmt: skip


def grow_type_unions(levels: int) -> dict[str, Any]:
    """Return a union of types, selected by `kind` at every level."""
    here = {"type": "object", "properties": {"kind": {"const": f"k{levels}"}}, "required": ["kind"]}
    return {"oneOf": [here, grow_type_unions(levels - 1)]} if levels else here


def grow_exclusive_unions(levels: int, keyword: str = "oneOf") -> dict[str, Any]:
    """Return an object in which a key is allowed only if the other alternative does not match."""
    here = {"type": "object", "required": [f"k{levels}"]}
    return {keyword: [here, grow_exclusive_unions(levels - 1, keyword)]} if levels else here


def grow_references() -> Iterator[Growing]:
    """Yield schemas of many definitions, each used by the next and by an earlier one."""
    for size in (10, 100, 1_000):
        yield Growing("$defs in a chain, recursive", f"{size:,}", {
            "$ref": "#/$defs/d0",
            "$defs": {f"d{number}": {
                "type": "object",
                "properties": {"name": {"type": "string"}, "next": {"$ref": f"#/$defs/d{(number + 1) % size}"},
                               "back": {"$ref": f"#/$defs/d{number * 7 % size}"}},
                "required": ["name"], "additionalProperties": False,
            } for number in range(size)},
        })  # fmt: skip
        yield Growing("$defs in an anyOf", f"{size:,}", {
            "type": "array", "items": {"anyOf": [{"$ref": f"#/$defs/d{number}"} for number in range(size)]},
            "$defs": {f"d{number}": {
                "type": "object", "properties": {"type": {"const": f"d{number}"}, "value": {"type": "number"}},
                "required": ["type", "value"],
            } for number in range(size)},
        })  # fmt: skip
        yield Growing("$defs in a oneOf by a discriminator", f"{size:,}", {
            "oneOf": [{"$ref": f"#/$defs/d{number}"} for number in range(size)],
            "$defs": {f"d{number}": {
                "type": "object", "properties": {"type": {"const": f"d{number}"}, "value": {"type": "number"}},
                "required": ["type", "value"],
            } for number in range(size)},
        })  # fmt: skip


def grow_patterns() -> Iterator[Growing]:
    """Yield patterns that are long, counted, ambiguous or have lookahead."""
    draw = random.Random(0)
    for size in (10, 100, 1_000):
        words = "|".join(f"{draw.choice(SYLLABLES)}{number:x}" for number in range(size))
        yield Growing("pattern of alternatives", f"{size:,}", {"type": "string", "pattern": f"^({words})$"})
    for size in (10, 100, 1_000):
        yield Growing("pattern with a count", f"{size:,}", {
            "type": "string", "pattern": f"^[a-z0-9-]{{1,{size}}}$"})  # fmt: skip
        yield Growing("pattern that stands anywhere", f"{size:,}", {
            "type": "string", "pattern": "a" * size})  # fmt: skip
    for size in (4, 8, 12):
        yield Growing("pattern with the n-th letter before the end", str(size), {
            "type": "string", "pattern": f"^[ab]*a[ab]{{{size}}}$"})  # fmt: skip
    yield Growing("pattern that looks ahead", "a password", {
        "type": "string", "pattern": r"^(?=.*[A-Z])(?=.*[a-z])(?=.*\d)(?=.*[^\w\s]).{8,64}$"})  # fmt: skip
    yield Growing("pattern and format", "uri", {"type": "string", "format": "uri", "pattern": "^https://"})
    yield Growing("pattern and format", "date-time, email", {"properties": {
        "at": {"type": "string", "format": "date-time", "pattern": "Z$"},
        "by": {"type": "string", "format": "email", "maxLength": 254}}, "type": "object"})  # fmt: skip


def grow_values() -> Iterator[Growing]:
    """Yield schemas of unique items and of multiples."""
    for size in (10**3, 10**5, 10**7):
        n = f"{size:,}"
        yield Growing("uniqueItems over strings", n, {
            "type": "array", "items": {"type": "string"}, "uniqueItems": True, "maxItems": size})  # fmt: skip
        yield Growing("uniqueItems over integers in a range", n, {
            "type": "array", "items": {"type": "integer", "minimum": 0, "maximum": size}, "uniqueItems": True,
            "minItems": size // 2})  # fmt: skip
        yield Growing("multipleOf 0.01 with bounds", n, {
            "type": "number", "multipleOf": 0.01, "minimum": -0.005, "maximum": size + 0.995})  # fmt: skip
        yield Growing("multipleOf 7 with bounds", n, {
            "type": "integer", "multipleOf": 7, "minimum": -size, "exclusiveMaximum": 3 * size})  # fmt: skip
    for size in (10, 97, 997):
        yield Growing("multipleOf", f"{size:,}", {"type": "integer", "multipleOf": size})
        yield Growing("uniqueItems over an enum", f"{size:,}", {
            "type": "array", "items": {"enum": [f"e{n}" for n in range(size)]}, "uniqueItems": True})  # fmt: skip
