"""Objects: every keyword about keys, alone and together; patterns that overlap; capacity; and what is written."""

from __future__ import annotations

import json
from itertools import combinations, product
from typing import Any

import pytest

from constrain import Vocabulary, compile
from constrain.base.errors import TokenRefused, UnsatisfiableError
from constrain.base.options import Style
from constrain.frontends.json_schema import to_grammar
from constrain.grammar.nodes import Object, Sequence
from tests.recogniser_oracle import accepts
from tests.schema_strategies import valid

NAMES = ["a", "b", "ab", "zz"]
OBJECTS: list[dict[str, Any]] = [
    dict(zip(names, chosen))
    for size in range(4)
    for names in combinations(NAMES, size)
    for chosen in product([1, "x"], repeat=size)
]


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"a": {"type": "integer"}}},
        {"properties": {"a": {"type": "integer"}}, "required": ["a", "zz"]},
        {"properties": {"a": {"type": "integer"}}, "additionalProperties": False},
        {"properties": {"a": {"type": "integer"}}, "additionalProperties": {"type": "string"}},
        {"properties": {"a": False}},
        {"properties": {"a": False}, "additionalProperties": {"type": "string"}},
        {"patternProperties": {"^a": {"type": "integer"}}},
        {"patternProperties": {"^a": {"type": "integer"}}, "additionalProperties": False},
        {"patternProperties": {"^a": {"type": "integer"}, "b$": {"type": "string"}}},
        {"patternProperties": {"^a": {"type": "integer"}, "b$": {"type": "string"}}, "additionalProperties": False},
        {"patternProperties": {"^a": {"type": "integer"}}, "properties": {"ab": {"type": "string"}, "b": {}}},
        {"patternProperties": {"^a": False}, "properties": {"a": {}, "b": {}}, "additionalProperties": False},
        {"patternProperties": {"^": {"type": "integer"}}, "additionalProperties": {"type": "string"}},
        {"patternProperties": {"^a$|^b$": {}}, "additionalProperties": False, "minProperties": 2},
        {"required": ["ab"], "patternProperties": {"^a": {"type": "integer"}}},
        {"propertyNames": {"maxLength": 1}},
        {"propertyNames": {"enum": ["a", "zz"]}, "properties": {"b": {}}, "minProperties": 1},
        {"propertyNames": {"pattern": "^a"}, "patternProperties": {"b$": {"type": "integer"}}},
        {"propertyNames": False},
        {"propertyNames": {"not": {"const": "a"}}},
        {"propertyNames": {"type": "integer"}},
        {"minProperties": 2},
        {"maxProperties": 1},
        {"minProperties": 1, "maxProperties": 2, "required": ["a"]},
        {"minProperties": 2, "properties": {"a": {}, "b": {}}, "additionalProperties": False},
        {"maxProperties": 1, "required": ["a"], "properties": {"b": {}}},
        {"dependentRequired": {"a": ["b"]}},
        {"dependentRequired": {"a": ["b"], "b": ["ab"]}, "maxProperties": 2},
        {"dependentRequired": {"a": ["b"]}, "properties": {"b": False}},
        {"dependentRequired": {"a": ["b"]}, "required": ["a"]},
        {"dependentSchemas": {"a": {"required": ["b"]}, "b": {"maxProperties": 2}}},
        {"dependentSchemas": {"a": False}},
        {"allOf": [{"properties": {"a": {"type": "integer"}}}, {"additionalProperties": {"type": "string"}}]},
        {"allOf": [{"properties": {"a": {}}, "additionalProperties": False}, {"properties": {"b": {}}}]},
        {"allOf": [{"required": ["a"]}, {"required": ["b"]}], "maxProperties": 2},
        {"anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
        {"oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
        {"oneOf": [{"required": ["a"]}, {"required": ["b"]}, {"required": ["ab"]}],
         "additionalProperties": {"const": 1}},
        {"oneOf": [{"properties": {"a": {"const": 1}}, "required": ["a"]},
                   {"properties": {"a": {"const": "x"}}, "required": ["a"]}]},
        {"oneOf": [{"properties": {"a": {}}, "additionalProperties": False},
                   {"properties": {"b": {}}, "additionalProperties": False}]},
        {"not": {"required": ["a"]}},
        {"not": {"required": ["a", "b"]}},
        {"not": {"anyOf": [{"required": ["a"]}, {"required": ["b"]}]}},
        {"not": {"properties": {"a": {"type": "integer"}}}},
        {"not": {"minProperties": 2}},
        {"not": {"maxProperties": 0}},
        {"not": {"additionalProperties": False}},
        {"not": {"dependentRequired": {"a": ["b"]}}},
        {"not": {"propertyNames": {"maxLength": 1}}, "properties": {"a": {}, "ab": {}}, "additionalProperties": False},
        {"not": {"properties": {"a": {}}, "additionalProperties": False},
         "properties": {"a": {}, "b": {}},
         "additionalProperties": False},
        {"not": {"additionalProperties": {"type": "string"}}},
        {"not": {"patternProperties": {"^a": {"type": "string"}}}},
        {"not": {"patternProperties": {"^a": {"type": "string"}, "b$": {"type": "integer"}}}},
        {"not": {"anyOf": [{"patternProperties": {"^a": {"type": "string"}}},
                           {"patternProperties": {"b$": {"type": "null"}}},
                           {"additionalProperties": {"type": "integer"}}]}},
        {"not": {"anyOf": [{"patternProperties": {"^a": {"type": "string"}}}, {"patternProperties": {"b$": False}}]},
         "maxProperties": 1},
        {"not": {"anyOf": [{"patternProperties": {"^a": {"type": "string"}}}, {"patternProperties": {"b$": False}}]},
         "maxProperties": 2, "required": ["a"]},
        {"oneOf": [{"patternProperties": {"^a": {"type": "string"}}}, {"patternProperties": {"b$": {"type": "string"}}},
                   {"minProperties": 2}]},
        {"not": {"patternProperties": {"^[a-c]{1,2}$": {"type": "string"}}}, "properties": {"a": {"type": "string"}}},
        {"not": {"propertyNames": {"maxLength": 1}}, "additionalProperties": {"type": "integer"}},
        {"not": {"propertyNames": {"pattern": "b"}}, "minProperties": 2},
        {"dependentRequired": {"a": ["b", "ab"]}, "minProperties": 2, "maxProperties": 2},
        {"dependentRequired": {"a": ["b"], "b": ["a"]}, "minProperties": 3, "maxProperties": 3,
         "properties": {"a": {}, "b": {}, "ab": {}, "zz": {}}, "additionalProperties": False},
        {"dependentRequired": {"b": ["a"], "ab": ["b"]}, "minProperties": 2,
         "properties": {"a": {}, "b": {}, "ab": {}}, "additionalProperties": False},
        {"if": {"properties": {"a": {"const": 1}}}, "then": {"required": ["b"]}, "else": {"required": ["zz"]}},
        {"if": {"required": ["a"]}, "then": {"properties": {"b": {"const": 1}}}},
        {"enum": [{"a": 1}, {"b": "x", "a": 1}, {}]},
        {"const": {"a": 1, "b": 1}, "maxProperties": 2},
        {"enum": [{"a": 1}, {"b": 1}], "required": ["b"]},
    ],
    ids=json.dumps,
)  # fmt: skip
def test_verdicts(schema: dict[str, Any]) -> None:
    grammar = to_grammar(schema, style=Style.any())
    for value in [*OBJECTS, None, [], 1]:
        assert accepts(grammar, json.dumps(value)) == valid(schema, value), value
        if isinstance(value, dict):  # In the other order, too.
            assert accepts(grammar, json.dumps(dict(reversed(value.items())))) == valid(schema, value), value


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "required": ["a"], "additionalProperties": False},
        {"type": "object", "required": ["a"], "properties": {"a": False}},
        {"type": "object", "required": ["a", "b"], "maxProperties": 1},
        {"type": "object", "minProperties": 2, "maxProperties": 1},
        {"type": "object", "minProperties": 2, "properties": {"a": {}, "b": False}, "additionalProperties": False},
        {"type": "object", "minProperties": 3, "patternProperties": {"^[ab]$": {}}, "additionalProperties": False},
        {"type": "object", "required": ["ab"], "propertyNames": {"maxLength": 1}},
        {"type": "object", "required": ["a"], "dependentRequired": {"a": ["b"]}, "properties": {"b": False}},
        {"type": "object", "required": ["a"], "dependentRequired": {"a": ["b"]}, "maxProperties": 1},
        {"type": "object", "required": ["a"], "properties": {"a": {"$ref": "#"}}},
        {"type": "object", "not": {"additionalProperties": {"type": "string"}}, "additionalProperties": {"const": ""}},
        {"type": "object", "not": {"patternProperties": {"^a": {}}}},
        {
            "type": "object",
            "not": {"anyOf": [{"patternProperties": {"^a": False}}, {"patternProperties": {"^b": {"type": "string"}}}]},
            "maxProperties": 1,
        },
        {
            "type": "object",
            "dependentRequired": {"a": ["b"], "b": ["a"], "c": ["d"], "d": ["c"]},
            "properties": {"a": {}, "b": {}, "c": {}, "d": {}},
            "additionalProperties": False,
            "minProperties": 3,
            "maxProperties": 3,
        },
        {
            "type": "object",
            "patternProperties": {"^[a-z]{2}$": {}},
            "additionalProperties": False,
            "minProperties": 677,
        },
        {"type": "object", "required": ["a"], "patternProperties": {"^a": {"type": "null"}, "a$": {"type": "string"}}},
    ],
)
def test_no_object(schema: dict[str, Any]) -> None:
    with pytest.raises(UnsatisfiableError):
        to_grammar(schema)


def written(schema: dict[str, Any], style: Style = Style()) -> Object:
    grammar = to_grammar(schema, style=style)
    start = grammar.start.parts[1] if isinstance(grammar.start, Sequence) else grammar.start
    node = grammar.rules[start.name]  # type: ignore[union-attr]
    assert isinstance(node, Object)
    return node


def test_keys_are_in_the_order_of_first_mention() -> None:
    schema = {
        "type": "object",
        "required": ["late", "c"],
        "allOf": [{"properties": {"b": {}, "c": {}}}, {"required": ["x"]}],
        "properties": {"a": {}, "b": {}},
    }
    assert [item.name for item in written(schema).properties] == ["a", "b", "c", "late", "x"]
    base = {
        "$defs": {"base": {"properties": {"id": {}}}},
        "$ref": "#/$defs/base",
        "properties": {"z": {}},
        "type": "object",
    }
    assert [item.name for item in written(base).properties] == ["id", "z"]


def test_small_classes_are_written_out_and_large_ones_are_not() -> None:
    small = written({"type": "object", "patternProperties": {"^[a-z]$": {}}, "additionalProperties": False})
    assert [item.name for item in small.properties] == [chr(code) for code in range(97, 123)] and not small.others
    large = written({"type": "object", "patternProperties": {"^[a-z]{2}$": {}}, "additionalProperties": False})
    assert not large.properties and len(large.others) == 1


def open_names(node: Object, name: str) -> int:
    """How many classes a name is in that is neither declared nor excluded."""
    if name in node.excluded or name in {item.name for item in node.properties}:
        return 0
    return sum(item.names.accepts(name) for item in node.others)


def test_classes_leave_out_declared_names_and_each_other() -> None:
    schema = {
        "type": "object", "properties": {"ab": {}, "no": False}, "required": ["zz"],
        "patternProperties": {"^a": {"type": "integer"}, "b$": {"type": "string"}},
    }  # fmt: skip
    node = written(schema)
    assert {item.name for item in node.properties} == {"zz"}  # "ab" can be neither, "no" may not be.
    for name in ("ab", "no", "zz"):
        assert open_names(node, name) == 0
    for name in ("ax", "xb", "x", ""):
        assert open_names(node, name) == 1
    assert open_names(node, "axb") == 0


def test_duplicates_and_style() -> None:
    node = written({"type": "object"}, Style.any())
    assert (node.order, node.escapes) == ("any", "any")
    grammar = to_grammar({"type": "object"}, style=Style.any())
    assert not accepts(grammar, '{"a": 1, "\\u0061": 2}')


@pytest.mark.parametrize("style", [Style(), Style.any()], ids=["default", "any"])
@pytest.mark.parametrize(
    "none", [False, {"not": {}}, {"$ref": "#/$defs/none"}, {"enum": []}, {"type": "string", "const": 1}]
)
@pytest.mark.parametrize(
    "around",
    [
        lambda one: {"properties": {"b": one}},
        lambda one: {"type": "object", "properties": {"b": one}},
        lambda one: {"properties": {"a": {"type": "integer"}, "b": one}, "additionalProperties": False},
        lambda one: {"type": "object", "properties": {"b": one}, "additionalProperties": {"type": "null"}},
        lambda one: {"type": "array", "items": {"type": "object", "properties": {"b": one}}},
    ],
)  # fmt: skip
def test_a_key_that_has_no_value_is_not_begun(around: Any, none: Any, style: Style) -> None:
    schema = {**around(none), "$defs": {"none": False}}
    matcher = compile(Vocabulary.bytes(), schema=schema, style=style).matcher()
    matcher.advance_bytes(b'[{"' if "items" in schema else b'{"')
    with pytest.raises(TokenRefused):
        matcher.advance_bytes(b'b"')
    rest = matcher.shortest_completion()
    assert rest is not None
