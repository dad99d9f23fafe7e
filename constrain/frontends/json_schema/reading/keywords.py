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
from ..arrays import items
from ..numbers import quantities
from ..objects import members
from ..strings import strings
from . import checks

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


TEXT, NUMERIC, LIST, MAP = strings.emit, quantities.emit, items.emit, members.emit
VALUE, COMBINE = formulas.own, formulas.formula

SCOPE = "by the way on which the subschema is reached"

KEYWORDS: tuple[Keyword, ...] = (
    Keyword("$ref", "ref", checks.reference, COMBINE, "mask", note="its siblings are ignored up to draft 7", noted=7),
    Keyword("$dynamicRef", "dynamicRef", checks.dynamic, COMBINE, "mask", since=2020, note=SCOPE),
    Keyword("$recursiveRef", "dynamicRef", checks.dynamic, COMBINE, "mask", since=2019, until=2019, note=SCOPE),
    Keyword("type", "type", checks.types, VALUE, "mask"),
    Keyword("enum", "enum", checks.values, VALUE, "mask"),
    Keyword("const", "const", checks.value_of, VALUE, "mask", since=6),
    # Numbers.
    Keyword("minimum", "minimum", checks.number, NUMERIC, "mask"),
    Keyword("maximum", "maximum", checks.number, NUMERIC, "mask"),
    Keyword("exclusiveMinimum", "exclusiveMinimum", checks.edge, NUMERIC, "mask", note="a boolean in draft 4", noted=4),
    Keyword("exclusiveMaximum", "exclusiveMaximum", checks.edge, NUMERIC, "mask", note="a boolean in draft 4", noted=4),
    Keyword("multipleOf", "multipleOf", checks.positive, NUMERIC, "mask"),
    # Strings.
    Keyword("minLength", "minLength", checks.at_least, TEXT, "counter"),
    Keyword("maxLength", "maxLength", checks.at_most, TEXT, "counter"),
    Keyword("pattern", "pattern", checks.pattern, TEXT, "mask", note="ECMA-262, anywhere in the text"),
    Keyword("format", "format", checks.format_name, TEXT, "mask", note="by its RFC; other names assert nothing"),
    # Arrays.
    Keyword("prefixItems", "prefixItems", checks.schemas, LIST, "mask", since=2020, holds="list"),
    Keyword("items", "items", checks.items, LIST, "mask", holds="schema or list"),
    Keyword("additionalItems", "additionalItems", checks.schema, LIST, "mask", until=2019, holds="schema"),
    Keyword("minItems", "minItems", checks.at_least, LIST, "counter"),
    Keyword("maxItems", "maxItems", checks.at_most, LIST, "counter"),
    Keyword("uniqueItems", "uniqueItems", checks.unique, LIST, "guard", note="its complement only of few values"),
    Keyword("contains", "contains", checks.schema, LIST, "mask", since=6, holds="schema"),
    Keyword("minContains", "minContains", checks.contained, LIST, "counter", since=2019),
    Keyword("maxContains", "maxContains", checks.at_most, LIST, "counter", since=2019),
    # Objects.
    Keyword("properties", "properties", checks.schema_map, MAP, "mask", holds="map"),
    Keyword("required", "required", checks.names, MAP, "guard"),
    Keyword("patternProperties", "patternProperties", checks.pattern_map, MAP, "mask", holds="map"),
    Keyword("additionalProperties", "additionalProperties", checks.additional, MAP, "mask", holds="schema"),
    Keyword("propertyNames", "propertyNames", checks.additional, MAP, "mask", since=6, holds="schema"),
    Keyword("minProperties", "minProperties", checks.at_least, MAP, "counter"),
    Keyword("maxProperties", "maxProperties", checks.at_most, MAP, "counter"),
    Keyword("dependentRequired", "dependentRequired", checks.name_lists, MAP, "guard", since=2019),
    Keyword("dependencies", "dependencies", checks.dependencies, MAP, "guard", until=7, holds="map"),
    # Schemas for the same value.
    Keyword("allOf", "allOf", checks.schemas, COMBINE, "mask", holds="list"),
    Keyword("anyOf", "anyOf", checks.schemas, COMBINE, "mask", holds="list"),
    Keyword("oneOf", "oneOf", checks.schemas, COMBINE, "mask", holds="list"),
    Keyword("not", "not", checks.schema, COMBINE, "mask", holds="schema"),
    Keyword("if", "if", checks.schema, COMBINE, "mask", since=7, holds="schema"),
    Keyword("then", "then", checks.schema, COMBINE, "mask", since=7, holds="schema"),
    Keyword("else", "else", checks.schema, COMBINE, "mask", since=7, holds="schema"),
    Keyword("dependentSchemas", "dependentSchemas", checks.schema_map, COMBINE, "mask", since=2019, holds="map"),
    # What all others leave over.
    Keyword("unevaluatedItems", "unevaluatedItems", checks.additional, COMBINE, "mask", since=2019, holds="schema"),
    Keyword(
        "unevaluatedProperties",
        "unevaluatedProperties",
        checks.additional,
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
