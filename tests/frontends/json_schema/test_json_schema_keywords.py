"""The keyword table is true: the parser dispatches from it, and `describe_keywords` and the docs agree with it."""

from __future__ import annotations

import inspect
import sys
import threading
from types import CodeType, FrameType
from typing import Any

import pytest

from constrain.frontends.json_schema import KEYWORDS, Keyword, to_grammar
from constrain.frontends.json_schema.algebra.value_keywords import APPLICATORS
from constrain.frontends.json_schema.arrays.array_keywords import ARRAY_KEYWORDS
from constrain.frontends.json_schema.numbers.number_keywords import NUMBER_KEYWORDS
from constrain.frontends.json_schema.objects.object_keywords import OBJECT_KEYWORDS
from constrain.frontends.json_schema.reading.keywords import iterate_subschemas, keywords_of_draft, list_annotations
from constrain.frontends.json_schema.strings.string_keywords import STRING_KEYWORDS
from constrain.grammar.visitor import reached_rules

READ = APPLICATORS | {"type", "enum", "const"} | ARRAY_KEYWORDS | OBJECT_KEYWORDS | NUMBER_KEYWORDS | STRING_KEYWORDS


@pytest.mark.parametrize("row", KEYWORDS, ids=lambda row: row.name)
def test_a_row_is_complete(row: Keyword) -> None:
    assert callable(row.parse) and row.parse.__doc__
    assert row.since in (4, 6, 7, 2019, 2020) and row.since <= row.until
    assert callable(row.enforced_by) and row.enforced_by.__doc__
    # Every field that is filled is read by somebody, so nothing that was read is dropped.
    assert row.field in READ or row.how == "refused"


def test_every_field_has_a_row() -> None:
    assert {row.field for row in KEYWORDS} >= READ


def test_a_name_is_read_or_an_annotation() -> None:
    names = [row.name for row in KEYWORDS]
    assert len(set(names)) == len(names)
    assert not list_annotations() & set(names)


def test_dialects_differ() -> None:
    assert "const" not in keywords_of_draft(4) and "const" in keywords_of_draft(6)
    assert "dependencies" in keywords_of_draft(7) and "dependencies" not in keywords_of_draft(2019)
    assert "prefixItems" not in keywords_of_draft(2019) and "additionalItems" not in keywords_of_draft(2020)


def test_children_are_found_at_schema_positions_only() -> None:
    raw = {
        "properties": {"enum": {"a": 1}}, "enum": [{"b": 1}], "items": [{"c": 1}], "not": {"d": 1},
        "default": {"e": 1}, "dependencies": {"x": ["y"], "z": {"f": 1}}, "$defs": {"g": {"h": 1}},
    }  # fmt: skip
    found = dict(iterate_subschemas(raw, 7))
    assert found == {
        ("properties", "enum"): {"a": 1}, ("items", 0): {"c": 1}, ("not",): {"d": 1},
        ("dependencies", "x"): ["y"], ("dependencies", "z"): {"f": 1}, ("$defs", "g"): {"h": 1},
    }  # fmt: skip


DRAFT_7, DRAFT_2019 = "http://json-schema.org/draft-07/schema", "https://json-schema.org/draft/2019-09/schema"
OBJECT = {"$dynamicAnchor": "x", "type": "object"}
REQUIRES_A, REQUIRES_B = {"required": ["a"]}, {"required": ["b"]}
NOT_PLAIN = {"not": {"type": "object", "minProperties": 7}}
"""With this the keywords are not emitted by themselves (`emission.plain_rules`)."""

EXAMPLES: dict[str, Any] = {
    "$ref": {"$defs": {"a": OBJECT}, "$ref": "#/$defs/a", "minProperties": 1},
    "$dynamicRef": {"$defs": {"a": OBJECT}, "$dynamicRef": "#x", "minProperties": 1},
    "$recursiveRef": {"$schema": DRAFT_2019, "properties": {"a": {"$recursiveRef": "#", "minProperties": 1}}},
    "type": {"type": ["string", "object"]} | NOT_PLAIN, "enum": {"enum": [1, "a", []]}, "const": {"const": {"a": 1}},
    "minimum": {"minimum": 1.0625}, "maximum": {"maximum": 17.5}, "exclusiveMinimum": {"exclusiveMinimum": 3.125},
    "exclusiveMaximum": {"exclusiveMaximum": -3.125}, "multipleOf": {"multipleOf": 7.123},
    "minLength": {"minLength": 3}, "maxLength": {"maxLength": 5}, "pattern": {"pattern": "^row[0-3]"},
    "format": {"format": "ipv4"},
    "prefixItems": {"prefixItems": [{"type": "string"}]}, "items": {"items": {"type": "string"}},
    "additionalItems": {"$schema": DRAFT_7, "items": [{"type": "null"}], "additionalItems": {"type": "string"}},
    "minItems": {"minItems": 2}, "maxItems": {"maxItems": 2}, "uniqueItems": {"uniqueItems": True},
    "contains": {"contains": {"type": "null"}}, "minContains": {"contains": {"type": "null"}, "minContains": 2},
    "maxContains": {"contains": {"type": "null"}, "maxContains": 2},
    "properties": {"properties": {"a": {"type": "null"}}} | NOT_PLAIN, "required": REQUIRES_A | NOT_PLAIN,
    "patternProperties": {"patternProperties": {"^a": {"type": "null"}}},
    "additionalProperties": {"additionalProperties": {"type": "null"}} | NOT_PLAIN,
    "propertyNames": {"propertyNames": {"maxLength": 3}}, "minProperties": {"minProperties": 2},
    "maxProperties": {"maxProperties": 2}, "dependentRequired": {"dependentRequired": {"a": ["b"]}},
    "dependencies": {"$schema": DRAFT_7, "dependencies": {"a": ["b"]}},
    "allOf": {"allOf": [OBJECT, {"minProperties": 1}]}, "anyOf": {"anyOf": [REQUIRES_A, REQUIRES_B]},
    "oneOf": {"oneOf": [REQUIRES_A, REQUIRES_B]}, "not": {"not": REQUIRES_A},
    "if": {"if": REQUIRES_A, "then": REQUIRES_B}, "then": {"if": REQUIRES_A, "then": REQUIRES_B},
    "else": {"if": REQUIRES_A, "else": REQUIRES_B}, "dependentSchemas": {"dependentSchemas": {"a": REQUIRES_B}},
    "unevaluatedItems": {"prefixItems": [True], "unevaluatedItems": False},
    "unevaluatedProperties": {"properties": {"a": True}, "unevaluatedProperties": False},
}  # fmt: skip
"""By keyword: a schema in which it asserts something. The constants occur nowhere else, so no automaton is cached."""


def trace_calls(schema: Any) -> set[CodeType]:
    """Return the code of all functions that are called while a schema and all its rules are compiled."""
    called: set[CodeType] = set()

    def record(frame: FrameType, event: str, argument: object) -> None:
        if event == "call":
            called.add(frame.f_code)

    threading.setprofile(record)
    sys.setprofile(record)
    try:
        grammar = to_grammar(schema)
        reached_rules(grammar.start, grammar.rules)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
    return called


@pytest.mark.parametrize("row", KEYWORDS, ids=lambda row: row.name)
def test_the_named_function_enforces_the_keyword(row: Keyword) -> None:
    """It runs when a schema is compiled in which the keyword asserts something."""
    assert inspect.unwrap(row.enforced_by).__code__ in trace_calls(EXAMPLES[row.name])
