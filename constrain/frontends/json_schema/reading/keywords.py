"""The table of keywords: who parses each one, the function that enforces it, how, and in which dialects it exists.

The parser dispatches from this table, so a keyword without a row cannot be parsed, and none can be forgotten. A name
that is in no row of the dialect asserts nothing (core specification, section 4.3.1); `keyword_report` lists it.

How: "mask": by the automaton itself, exact for every token; "counter": by a register in the frame of the array, string
or object; "guard": by the keys or values seen so far; "annotation": asserts nothing; "structure": holds schemas for
references; "refused": raises UnsupportedError.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field as dataclass_field
from functools import cache
from typing import Any, Literal

from ..algebra.formulas import build_formula
from ..algebra.one_of import unfold_one_of
from ..algebra.unevaluated import find_evaluation_cases
from ..algebra.value_keywords import build_value_shape, parse_const, parse_enum, parse_type
from ..arrays.array_items import emit_item_run
from ..arrays.array_keywords import parse_items, parse_min_contains, parse_unique_items
from ..arrays.item_counts import emit_counted_items
from ..arrays.unique_items import build_unique_automaton
from ..core.dialects import Dialect
from ..core.keyword_values import (
    parse_dynamic_reference,
    parse_maximum_count,
    parse_minimum_count,
    parse_reference,
    parse_remainder_schema,
    parse_schema,
    parse_schema_list,
    parse_schema_map,
)
from ..numbers.number_keywords import parse_exclusive_bound, parse_multiple_of, parse_number
from ..numbers.number_sets import emit_numbers
from ..objects.object_keywords import (
    build_object_case,
    parse_dependencies,
    parse_dependent_required,
    parse_pattern_properties,
    parse_required,
)
from ..objects.object_members import emit_object
from ..strings.formats import format_dfa
from ..strings.schema_patterns import pattern_dfa
from ..strings.string_keywords import parse_format, parse_pattern
from ..strings.string_sets import string_dfa

__all__ = ["KEYWORDS", "Keyword", "iterate_subschemas", "keywords_of_dialect", "keywords_of_draft", "list_annotations"]

How = Literal["mask", "counter", "guard", "annotation", "structure", "refused"]
Holds = Literal["", "schema", "list", "map", "schema or list"]
ValueKind = Literal["", "number", "string", "array", "object"]


@dataclass(frozen=True, slots=True)
class Keyword:
    """One row of the table.

    parse: called with the context, the name and the raw value; returns the parsed value (`core.keyword_context`).
    enforced_by: the function in which the keyword takes effect. applies_to: the type of the values that it constrains;
    "": any value. since, until: the first and the last dialect that has it (4, 6, 7, 2019, 2020). holds: how its value
    contains subschemas. note: a remark, for dialects up to `noted`. stored_as: the keyword under whose name the parsed
    value is stored, if it is another one. field: the name under which it is stored.
    """

    name: str
    parse: Callable[..., Any]
    enforced_by: Callable[..., Any]
    how: How
    applies_to: ValueKind = ""
    since: int = 4
    until: int = 2020
    holds: Holds = ""
    note: str = ""
    noted: int = 2020
    stored_as: str = ""
    field: str = dataclass_field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "field", self.stored_as or self.name)


DYNAMIC = "by the dynamic scope in which the subschema is reached"
BOOLEAN_BOUND = "a boolean in draft 4"

KEYWORDS: tuple[Keyword, ...] = (
    # References.
    Keyword("$ref", parse_reference, build_formula, "mask", note="its siblings are ignored up to draft 7", noted=7),
    Keyword("$dynamicRef", parse_dynamic_reference, build_formula, "mask", since=2020, note=DYNAMIC),
    Keyword("$recursiveRef", parse_dynamic_reference, build_formula, "mask", since=2019, until=2019, note=DYNAMIC,
            stored_as="$dynamicRef"),
    # Any value.
    Keyword("type", parse_type, build_value_shape, "mask"),
    Keyword("enum", parse_enum, build_value_shape, "mask"),
    Keyword("const", parse_const, build_value_shape, "mask", since=6),
    # Numbers.
    Keyword("minimum", parse_number, emit_numbers, "mask", "number"),
    Keyword("maximum", parse_number, emit_numbers, "mask", "number"),
    Keyword("exclusiveMinimum", parse_exclusive_bound, emit_numbers, "mask", "number", note=BOOLEAN_BOUND, noted=4),
    Keyword("exclusiveMaximum", parse_exclusive_bound, emit_numbers, "mask", "number", note=BOOLEAN_BOUND, noted=4),
    Keyword("multipleOf", parse_multiple_of, emit_numbers, "mask", "number"),
    # Strings.
    Keyword("minLength", parse_minimum_count, string_dfa, "counter", "string"),
    Keyword("maxLength", parse_maximum_count, string_dfa, "counter", "string"),
    Keyword("pattern", parse_pattern, pattern_dfa, "mask", "string", note="ECMA-262, anywhere in the text"),
    Keyword("format", parse_format, format_dfa, "mask", "string", note="by its RFC; other names assert nothing"),
    # Arrays.
    Keyword("prefixItems", parse_schema_list, emit_item_run, "mask", "array", since=2020, holds="list"),
    Keyword("items", parse_items, emit_item_run, "mask", "array", holds="schema or list"),
    Keyword("additionalItems", parse_schema, emit_item_run, "mask", "array", until=2019, holds="schema"),
    Keyword("minItems", parse_minimum_count, emit_item_run, "counter", "array"),
    Keyword("maxItems", parse_maximum_count, emit_item_run, "counter", "array"),
    Keyword("uniqueItems", parse_unique_items, build_unique_automaton, "guard", "array",
            note="its complement only of few values"),
    Keyword("contains", parse_schema, emit_counted_items, "mask", "array", since=6, holds="schema"),
    Keyword("minContains", parse_min_contains, emit_counted_items, "counter", "array", since=2019),
    Keyword("maxContains", parse_maximum_count, emit_counted_items, "counter", "array", since=2019),
    # Objects.
    Keyword("properties", parse_schema_map, emit_object, "mask", "object", holds="map"),
    Keyword("required", parse_required, emit_object, "guard", "object"),
    Keyword("patternProperties", parse_pattern_properties, build_object_case, "mask", "object", holds="map"),
    Keyword("additionalProperties", parse_remainder_schema, emit_object, "mask", "object", holds="schema"),
    Keyword("propertyNames", parse_remainder_schema, build_object_case, "mask", "object", since=6, holds="schema"),
    Keyword("minProperties", parse_minimum_count, emit_object, "counter", "object"),
    Keyword("maxProperties", parse_maximum_count, emit_object, "counter", "object"),
    Keyword("dependentRequired", parse_dependent_required, emit_object, "guard", "object", since=2019),
    Keyword("dependencies", parse_dependencies, emit_object, "guard", "object", until=7, holds="map"),
    # Schemas for the same value.
    Keyword("allOf", parse_schema_list, build_formula, "mask", holds="list"),
    Keyword("anyOf", parse_schema_list, build_formula, "mask", holds="list"),
    Keyword("oneOf", parse_schema_list, unfold_one_of, "mask", holds="list"),
    Keyword("not", parse_schema, build_formula, "mask", holds="schema"),
    Keyword("if", parse_schema, build_formula, "mask", since=7, holds="schema"),
    Keyword("then", parse_schema, build_formula, "mask", since=7, holds="schema"),
    Keyword("else", parse_schema, build_formula, "mask", since=7, holds="schema"),
    Keyword("dependentSchemas", parse_schema_map, build_formula, "mask", since=2019, holds="map"),
    # The items and keys that no other keyword evaluates.
    Keyword("unevaluatedItems", parse_remainder_schema, find_evaluation_cases, "mask", since=2019, holds="schema"),
    Keyword("unevaluatedProperties", parse_remainder_schema, find_evaluation_cases, "mask", since=2019, holds="schema"),
)  # fmt: skip

STRUCTURE: dict[str, Holds] = {"$defs": "map", "definitions": "map"}
"""Containers of schemas for `$ref`, which assert nothing themselves."""

ANNOTATIONS = frozenset((
    "$anchor", "$comment", "$dynamicAnchor", "$id", "$recursiveAnchor", "$schema", "$vocabulary", "contentEncoding",
    "contentMediaType", "contentSchema", "default", "deprecated", "description", "examples", "id", "readOnly", "title",
    "writeOnly",
))  # fmt: skip
"""Keywords that JSON Schema defines and that assert nothing about a value."""


@cache
def keywords_of_draft(draft: int) -> dict[str, Keyword]:
    """Return the keywords of a draft by name."""
    return {row.name: row for row in KEYWORDS if row.since <= draft <= row.until}


def list_annotations() -> frozenset[str]:
    """Return the keywords that assert nothing by design."""
    return ANNOTATIONS | STRUCTURE.keys()


def iterate_subschemas(raw: dict[str, Any], draft: int) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    """Yield the subschemas of a raw schema, with the reference tokens that lead to them."""
    table = keywords_of_draft(draft)
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


APPLICATOR_VOCABULARY = frozenset((
    "prefixItems", "items", "additionalItems", "contains", "properties", "patternProperties", "additionalProperties",
    "propertyNames", "allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas",
))  # fmt: skip
UNEVALUATED_VOCABULARY = frozenset(("unevaluatedItems", "unevaluatedProperties"))
"""Of the applicator vocabulary in 2019-09."""


@cache
def keywords_of_dialect(dialect: Dialect) -> dict[str, Keyword]:
    """Return the keywords that a dialect has, by name: those of its vocabularies, and always those of the core."""
    if dialect.vocabularies is None:
        return keywords_of_draft(dialect.draft)
    names = dialect.vocabularies

    def is_in_vocabularies(keyword: str) -> bool:
        if keyword.startswith("$"):
            return True
        if keyword in APPLICATOR_VOCABULARY:
            return "applicator" in names
        if keyword in UNEVALUATED_VOCABULARY:
            return ("applicator" if dialect.draft == 2019 else "unevaluated") in names
        return any(name.startswith("format") for name in names) if keyword == "format" else "validation" in names

    return {name: row for name, row in keywords_of_draft(dialect.draft).items() if is_in_vocabularies(name)}
