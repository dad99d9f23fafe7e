"""Reading: dialects, malformed keywords with their pointers, references of every kind."""

from __future__ import annotations

from typing import Any

import pytest

from constrain.base.errors import LimitError, SchemaError, UnsatisfiableError, UnsupportedError
from constrain.base.options import Limits, Style
from constrain.frontends.json_schema import to_grammar
from tests.recogniser_oracle import accepts

DRAFT4 = "http://json-schema.org/draft-04/schema#"
DRAFT6 = "http://json-schema.org/draft-06/schema#"
DRAFT7 = "http://json-schema.org/draft-07/schema#"
DRAFT2019 = "https://json-schema.org/draft/2019-09/schema"
DRAFT2020 = "https://json-schema.org/draft/2020-12/schema"


def judge(schema: Any, text: str, **options: Any) -> bool:
    return accepts(to_grammar(schema, style=Style.any(), **options), text)


@pytest.mark.parametrize(
    ("schema", "pointer"),
    [
        ({"type": "strng"}, "/type"),
        ({"type": []}, "/type"),
        ({"type": 3}, "/type"),
        ({"enum": "a"}, "/enum"),
        ({"minLength": -1}, "/minLength"),
        ({"minLength": 1.5}, "/minLength"),
        ({"maxItems": True}, "/maxItems"),
        ({"minimum": "3"}, "/minimum"),
        ({"minimum": True}, "/minimum"),
        ({"exclusiveMinimum": True}, "/exclusiveMinimum"),
        ({"multipleOf": 0}, "/multipleOf"),
        ({"pattern": 3}, "/pattern"),
        ({"pattern": "(a"}, "/pattern"),
        ({"format": 3}, "/format"),
        ({"required": "a"}, "/required"),
        ({"required": [1]}, "/required"),
        ({"properties": []}, "/properties"),
        ({"properties": {"a/b": {"type": 1}}}, "/properties/a~1b/type"),
        ({"properties": {"a": 3}}, "/properties/a"),
        ({"patternProperties": {"[": True}}, "/patternProperties/["),
        ({"allOf": []}, "/allOf"),
        ({"anyOf": {}}, "/anyOf"),
        ({"items": [{}]}, "/items"),
        ({"uniqueItems": 1}, "/uniqueItems"),
        ({"dependentRequired": {"a": "b"}}, "/dependentRequired/a"),
        ({"$schema": 4}, "/$schema"),
        ({"$ref": 4}, "/$ref"),
        ({"$ref": "#/$defs/none"}, "/$ref"),
        ({"$ref": "#none"}, "/$ref"),
        ({"items": {"$ref": "other.json"}}, "/items/$ref"),
        ({"$ref": "#"}, "/$ref"),
        ({"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"}, "/$defs/b/$ref"),
        ({"anyOf": [{"$ref": "#"}, {"type": "null"}]}, ""),
        ({"const": float("inf")}, "/const"),
    ],
)
def test_malformed_keywords_are_reported_by_pointer(schema: Any, pointer: str) -> None:
    with pytest.raises(SchemaError) as caught:
        to_grammar(schema)
    assert caught.value.pointer == pointer


@pytest.mark.parametrize(
    ("schema", "pointer"),
    [
        ({"type": "string", "format": "idn-hostname", "maxLength": 5}, "/format"),
        ({"$schema": "http://json-schema.org/draft-03/schema#"}, "/$schema"),
    ],
)
def test_unsupported_keywords_are_refused_by_pointer(schema: Any, pointer: str) -> None:
    with pytest.raises(UnsupportedError) as caught:
        to_grammar(schema)
    assert caught.value.pointer == pointer


def test_numbers_may_be_written_with_a_fraction() -> None:
    assert judge({"minLength": 2.0}, '"ab"')
    assert not judge({"minLength": 2.0}, '"a"')


@pytest.mark.parametrize(
    ("dialect", "schema", "text", "wanted"),
    [
        # Siblings of $ref are ignored up to draft 7.
        (DRAFT7, {"$ref": "#/definitions/a", "type": "null", "definitions": {"a": {}}}, "1", True),
        (DRAFT2019, {"$ref": "#/definitions/a", "type": "null", "definitions": {"a": {}}}, "1", False),
        # Keywords that the dialect does not have assert nothing.
        (DRAFT4, {"const": 1}, "2", True),
        (DRAFT6, {"const": 1}, "2", False),
        (DRAFT4, {"propertyNames": {"maxLength": 1}}, '{"ab": 1}', True),
        (DRAFT6, {"if": {}, "then": False}, "1", True),
        (DRAFT7, {"if": {"type": "string"}, "then": {"const": "a"}}, '"b"', False),
        (DRAFT2020, {"dependencies": {"a": ["b"]}}, '{"a": 1}', True),
        (DRAFT7, {"dependencies": {"a": ["b"]}}, '{"a": 1}', False),
        (DRAFT7, {"dependentRequired": {"a": ["b"]}}, '{"a": 1}', True),
        (DRAFT7, {"prefixItems": [{"type": "null"}]}, "[1]", True),
        (DRAFT2020, {"prefixItems": [{"type": "null"}]}, "[1]", False),
        # items as a list, and what comes after it.
        (DRAFT7, {"items": [{"type": "null"}], "additionalItems": False}, "[null, 1]", False),
        (DRAFT7, {"items": [{"type": "null"}], "additionalItems": False}, "[null]", True),
        (DRAFT7, {"items": {}, "additionalItems": False}, "[1, 2]", True),
        (DRAFT2020, {"additionalItems": False}, "[1]", True),
        # exclusiveMinimum was a boolean, and an integer a matter of spelling.
        (DRAFT4, {"minimum": 1, "exclusiveMinimum": True}, "1", False),
        (DRAFT4, {"minimum": 1, "exclusiveMinimum": False}, "1", True),
        (DRAFT4, {"exclusiveMinimum": True}, "1", True),
        (DRAFT7, {"exclusiveMinimum": 1}, "1", False),
        (DRAFT4, {"type": "integer"}, "1.0", False),
        (DRAFT4, {"type": "integer"}, "1", True),
        (DRAFT4, {"not": {"type": "integer"}}, "1.0", True),
        (DRAFT4, {"not": {"type": "integer"}}, "1", False),
        (DRAFT6, {"type": "integer"}, "1.0", True),
        # What no dialect knows.
        (DRAFT2020, {"nullable": True, "type": "string"}, "null", False),
        ("https://example.com/own", {"const": 1}, "2", False),
    ],
)
def test_dialects(dialect: str, schema: dict[str, Any], text: str, wanted: bool) -> None:
    assert judge({"$schema": dialect, **schema}, text) is wanted


@pytest.mark.parametrize(
    ("reference", "schema"),
    [
        ("#/$defs/a~1b", {"$defs": {"a/b": {"type": "null"}}}),
        ("#/$defs/a~0b", {"$defs": {"a~b": {"type": "null"}}}),
        ("#/$defs/a%25b", {"$defs": {"a%b": {"type": "null"}}}),
        ("#/$defs/a%22b", {"$defs": {'a"b': {"type": "null"}}}),
        ("#/components/0/x", {"components": [{"x": {"type": "null"}}]}),
        ("#here", {"$defs": {"a": {"$anchor": "here", "type": "null"}}}),
        ("a.json", {"$id": "http://x/root.json", "$defs": {"a": {"$id": "a.json", "type": "null"}}}),
        ("http://x/a#n", {"$defs": {"a": {"$id": "http://x/a", "$defs": {"b": {"$anchor": "n", "type": "null"}}}}}),
        ("a#/$defs/b", {"$id": "http://x/r", "$defs": {"a": {"$id": "a", "$defs": {"b": {"type": "null"}}}}}),
        ("#/$defs/a", {"$id": "http://x/r", "$defs": {"a": {"$ref": "r#/$defs/b"}, "b": {"type": "null"}}}),
    ],
)  # fmt: skip
def test_references(reference: str, schema: dict[str, Any]) -> None:
    whole = {**schema, "items": {"$ref": reference}}
    assert judge(whole, "[null]")
    assert not judge(whole, "[1]")


def test_references_resolve_in_the_registry_only() -> None:
    other = {"http://x/o.json": {"$defs": {"n": {"type": "null"}}, "items": {"$ref": "#/$defs/n"}}}
    schema = {"$ref": "http://x/o.json"}
    assert judge(schema, "[null]", registry=other)
    assert not judge(schema, "[1]", registry=other)
    with pytest.raises(SchemaError, match="nothing is ever fetched"):
        to_grammar(schema)


def test_ids_in_constants_and_keys_are_ignored() -> None:
    schema = {
        "$defs": {"a": {"$id": "http://x/a", "type": "null"}},
        "enum": [{"$id": "http://x/a", "type": "string"}, None],
        "anyOf": [{"$ref": "http://x/a"}],
    }
    assert judge(schema, "null")
    assert judge({"properties": {"$ref": {"type": "null"}}}, '{"$ref": null}')
    assert not judge({"properties": {"$ref": {"type": "null"}}}, '{"$ref": 1}')


def test_a_dynamic_reference_that_names_one_schema_only() -> None:
    tree = {"$dynamicAnchor": "node", "type": "object", "additionalProperties": {"$dynamicRef": "#node"}}
    assert judge(tree, '{"a": {"b": {}}}') and not judge(tree, '{"a": {"b": 1}}')
    old = {"$schema": DRAFT2019, "$recursiveAnchor": True, "type": "array", "items": {"$recursiveRef": "#"}}
    assert judge(old, "[[], [[]]]") and not judge(old, "[[1]]")


def test_counts_beyond_the_registers() -> None:
    assert judge({"maxLength": 10**400, "maxItems": 2**40}, '"a"')
    assert judge('{"maxProperties": 1e999999}', "{}")
    with pytest.raises(LimitError):
        to_grammar({"minLength": 2**31})


def test_references_share_the_node_of_their_target() -> None:
    grammar = to_grammar(
        {"$defs": {"n": {"type": "object"}}, "items": {"$ref": "#/$defs/n"}, "contains": {"$ref": "#/$defs/n"}}
    )
    assert accepts(grammar, "[{}]")
    assert not accepts(grammar, "[]")


def test_depth_has_a_limit() -> None:
    deep: dict[str, Any] = {"type": "null"}
    for _ in range(255):
        deep = {"items": deep}
    assert to_grammar(deep)
    with pytest.raises(LimitError, match=r"Limits\.nesting = 255 "):
        to_grammar(deep, limits=Limits(nesting=255))


def test_a_lone_surrogate_is_refused() -> None:
    with pytest.raises(UnsupportedError):
        to_grammar({"const": "\ud800"})


def test_false_at_the_root() -> None:
    with pytest.raises(UnsatisfiableError):
        to_grammar(False)
    assert judge(True, '{"a": [1, null]}')
