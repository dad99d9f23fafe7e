"""The keywords, one row each: who reads it, which Shape field it fills, who enforces it, how, and in which dialects.

The reader dispatches from this table, so a keyword without a row cannot be read, and one with a row cannot be
forgotten. A name that is in no row of the dialect asserts nothing (JSON Schema says so) and `describe` reports it.

How: "mask" - the automaton itself, every token is exact; "counter" - a register of the array's or string's frame;
"guard" - the set of keys seen in the object's frame; "annotation" - asserts nothing; "structure" - where other
schemas are kept; "refused" - UnsupportedError.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from ..algebra import formulas
from ..arrays import array_items
from ..numbers import number_sets
from ..objects import object_members
from ..strings import string_sets
from . import keyword_values

__all__ = ["KEYWORDS", "Keyword", "by_draft", "children", "inert"]

How = Literal["mask", "counter", "guard", "annotation", "structure", "refused"]
Holds = Literal["", "schema", "list", "map", "schema or list"]


@dataclass(frozen=True, slots=True)
class Keyword:
    """One row. since, until: first and last dialect that has it (4, 6, 7, 2019, 2020). holds: the subschemas in it.

    note: what there is to say about it, in dialects up to `noted`.
    """

    name: str
    field: str
    read: Callable[..., Any]
    emitter: Callable[..., Any] | None
    how: How
    since: int = 4
    until: int = 2020
    holds: Holds = ""
    note: str = ""
    noted: int = 2020


TEXT, NUMERIC, LIST, MAP = string_sets.emit, number_sets.emit, array_items.emit, object_members.emit
VALUE, COMBINE = formulas.own, formulas.formula

SCOPE = "by the way on which the subschema is reached"

KEYWORDS: tuple[Keyword, ...] = (
    Keyword(
        "$ref", "ref", keyword_values.reference, COMBINE, "mask", note="its siblings are ignored up to draft 7", noted=7
    ),
    Keyword("$dynamicRef", "dynamicRef", keyword_values.dynamic, COMBINE, "mask", since=2020, note=SCOPE),
    Keyword("$recursiveRef", "dynamicRef", keyword_values.dynamic, COMBINE, "mask", since=2019, until=2019, note=SCOPE),
    Keyword("type", "type", keyword_values.types, VALUE, "mask"),
    Keyword("enum", "enum", keyword_values.values, VALUE, "mask"),
    Keyword("const", "const", keyword_values.value_of, VALUE, "mask", since=6),
    # Numbers.
    Keyword("minimum", "minimum", keyword_values.number, NUMERIC, "mask"),
    Keyword("maximum", "maximum", keyword_values.number, NUMERIC, "mask"),
    Keyword(
        "exclusiveMinimum",
        "exclusiveMinimum",
        keyword_values.edge,
        NUMERIC,
        "mask",
        note="a boolean in draft 4",
        noted=4,
    ),
    Keyword(
        "exclusiveMaximum",
        "exclusiveMaximum",
        keyword_values.edge,
        NUMERIC,
        "mask",
        note="a boolean in draft 4",
        noted=4,
    ),
    Keyword("multipleOf", "multipleOf", keyword_values.positive, NUMERIC, "mask"),
    # Strings.
    Keyword("minLength", "minLength", keyword_values.at_least, TEXT, "counter"),
    Keyword("maxLength", "maxLength", keyword_values.at_most, TEXT, "counter"),
    Keyword("pattern", "pattern", keyword_values.pattern, TEXT, "mask", note="ECMA-262, anywhere in the text"),
    Keyword(
        "format", "format", keyword_values.format_name, TEXT, "mask", note="by its RFC; other names assert nothing"
    ),
    # Arrays.
    Keyword("prefixItems", "prefixItems", keyword_values.schemas, LIST, "mask", since=2020, holds="list"),
    Keyword("items", "items", keyword_values.items, LIST, "mask", holds="schema or list"),
    Keyword("additionalItems", "additionalItems", keyword_values.schema, LIST, "mask", until=2019, holds="schema"),
    Keyword("minItems", "minItems", keyword_values.at_least, LIST, "counter"),
    Keyword("maxItems", "maxItems", keyword_values.at_most, LIST, "counter"),
    Keyword(
        "uniqueItems", "uniqueItems", keyword_values.unique, LIST, "guard", note="its complement only of few values"
    ),
    Keyword("contains", "contains", keyword_values.schema, LIST, "mask", since=6, holds="schema"),
    Keyword("minContains", "minContains", keyword_values.contained, LIST, "counter", since=2019),
    Keyword("maxContains", "maxContains", keyword_values.at_most, LIST, "counter", since=2019),
    # Objects.
    Keyword("properties", "properties", keyword_values.schema_map, MAP, "mask", holds="map"),
    Keyword("required", "required", keyword_values.names, MAP, "guard"),
    Keyword("patternProperties", "patternProperties", keyword_values.pattern_map, MAP, "mask", holds="map"),
    Keyword("additionalProperties", "additionalProperties", keyword_values.additional, MAP, "mask", holds="schema"),
    Keyword("propertyNames", "propertyNames", keyword_values.additional, MAP, "mask", since=6, holds="schema"),
    Keyword("minProperties", "minProperties", keyword_values.at_least, MAP, "counter"),
    Keyword("maxProperties", "maxProperties", keyword_values.at_most, MAP, "counter"),
    Keyword("dependentRequired", "dependentRequired", keyword_values.name_lists, MAP, "guard", since=2019),
    Keyword("dependencies", "dependencies", keyword_values.dependencies, MAP, "guard", until=7, holds="map"),
    # Schemas for the same value.
    Keyword("allOf", "allOf", keyword_values.schemas, COMBINE, "mask", holds="list"),
    Keyword("anyOf", "anyOf", keyword_values.schemas, COMBINE, "mask", holds="list"),
    Keyword("oneOf", "oneOf", keyword_values.schemas, COMBINE, "mask", holds="list"),
    Keyword("not", "not", keyword_values.schema, COMBINE, "mask", holds="schema"),
    Keyword("if", "if", keyword_values.schema, COMBINE, "mask", since=7, holds="schema"),
    Keyword("then", "then", keyword_values.schema, COMBINE, "mask", since=7, holds="schema"),
    Keyword("else", "else", keyword_values.schema, COMBINE, "mask", since=7, holds="schema"),
    Keyword(
        "dependentSchemas", "dependentSchemas", keyword_values.schema_map, COMBINE, "mask", since=2019, holds="map"
    ),
    # What all others leave over.
    Keyword(
        "unevaluatedItems", "unevaluatedItems", keyword_values.additional, COMBINE, "mask", since=2019, holds="schema"
    ),
    Keyword(
        "unevaluatedProperties",
        "unevaluatedProperties",
        keyword_values.additional,
        COMBINE,
        "mask",
        since=2019,
        holds="schema",
    ),
)

STRUCTURE: dict[str, Holds] = {"$defs": "map", "definitions": "map"}
"""Where schemas are kept that others refer to; they assert nothing where they stand."""

ANNOTATIONS = frozenset((
    "$anchor", "$comment", "$dynamicAnchor", "$id", "$recursiveAnchor", "$schema", "$vocabulary", "contentEncoding",
    "contentMediaType", "contentSchema", "default", "deprecated", "description", "examples", "id", "readOnly", "title",
    "writeOnly",
))  # fmt: skip
"""Keywords that JSON Schema defines and that assert nothing about a value."""


@cache
def by_draft(draft: int) -> dict[str, Keyword]:
    """The keywords of a dialect that are read."""
    return {row.name: row for row in KEYWORDS if row.since <= draft <= row.until}


def inert() -> frozenset[str]:
    """The keywords that assert nothing by design."""
    return ANNOTATIONS | STRUCTURE.keys()


def children(raw: dict[str, Any], draft: int) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    """The subschemas of a raw schema, with the reference tokens that lead to them."""
    table = by_draft(draft)
    for name, value in raw.items():
        row = table.get(name)
        holds = STRUCTURE.get(name, "") if row is None else row.holds
        if holds == "map" and isinstance(value, dict):
            for key, item in value.items():
                yield (name, key), item
        elif "list" in holds and isinstance(value, list):
            for index, item in enumerate(value):
                yield (name, index), item
        elif "schema" in holds:
            yield (name,), value
