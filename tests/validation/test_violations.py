"""Messages, pointers and positions of violations; budgets on hostile schemas and instances; wrong arguments."""

from __future__ import annotations

import dataclasses
import json
from decimal import Decimal
from typing import Any

import pytest

import constrain
from constrain import ArgumentError, LimitError, Limits, SchemaError, SchemaWarning, Violation
from constrain.frontends.json_schema.reading.keywords import KEYWORDS
from constrain.validation import InstanceValidator
from constrain.validation.applicator_rules import UNEVALUATED_RULES
from constrain.validation.instance_judge import RULES

DRAFT4 = "http://json-schema.org/draft-04/schema#"
CAT = {"properties": {"kind": {"const": "cat"}, "lives": {"type": "integer"}}, "required": ["kind"]}
DOG = {"properties": {"kind": {"const": "dog"}, "breed": {"type": "string"}}, "required": ["kind"]}

MESSAGES: list[tuple[Any, Any, str, str, str, str]] = [
    # schema, instance, message, keyword, pointer, pointer in the schema
    ({"required": ["email"]}, {}, '"email" is required', "required", "", "/required"),
    ({"required": ["email"]}, {"emial": 1}, '"email" is required; is it "emial"?', "required", "", "/required"),
    ({"properties": {"age": {"maximum": 120}}}, {"age": 200}, "200 is above maximum 120", "maximum", "/age",
     "/properties/age/maximum"),
    ({"minimum": 0.5}, 0.25, "0.25 is below minimum 0.5", "minimum", "", "/minimum"),
    ({"exclusiveMinimum": 1}, 1, "1 is not above exclusiveMinimum 1", "exclusiveMinimum", "", "/exclusiveMinimum"),
    ({"$schema": DRAFT4, "maximum": 3, "exclusiveMaximum": True}, 3, "3 is not below exclusive maximum 3", "maximum",
     "", "/maximum"),
    ({"multipleOf": 0.1}, 0.35, "0.35 is not a multiple of 0.1 (multipleOf): the nearest are 0.3 and 0.4", "multipleOf",
     "", "/multipleOf"),
    ({"type": "integer"}, 1.5, "1.5 is not an integer", "type", "", "/type"),
    ({"type": "integer"}, "a", '"a" is a string, not an integer', "type", "", "/type"),
    ({"type": ["string", "null"]}, [1, 2], "an array of 2 items is not null or a string", "type", "", "/type"),
    ({"type": "integer", "$schema": DRAFT4}, 1.0, "1.0 is not an integer", "type", "", "/type"),
    ({"enum": ["red", "green"]}, "reed", '"reed" is not in enum: "red" or "green"; did you mean "red"?', "enum", "",
     "/enum"),
    ({"enum": [[1]]}, 2, "2 is not [1], the only value of enum", "enum", "", "/enum"),
    ({"const": {"a": None}}, 2, '2 is not the constant {"a": null}', "const", "", "/const"),
    ({"minLength": 2}, "é", '"é" has 1 character, fewer than minLength 2', "minLength", "", "/minLength"),
    ({"maxLength": 2}, "abc", '"abc" has 3 characters, more than maxLength 2', "maxLength", "", "/maxLength"),
    ({"pattern": "^[0-9]+$"}, "x", '"x" does not match the pattern "^[0-9]+$"', "pattern", "", "/pattern"),
    ({"format": "email"}, "x", '"x" is not an email address (format "email")', "format", "", "/format"),
    ({"minItems": 2}, [1], "1 item, fewer than minItems 2", "minItems", "", "/minItems"),
    ({"maxProperties": 1}, {"a": 1, "b": 2}, "2 properties, more than maxProperties 1", "maxProperties", "",
     "/maxProperties"),
    ({"uniqueItems": True}, [1, {"a": 1.0}, {"a": 1}], "items 1 and 2 are equal (an object with 1 property), and "
     "uniqueItems is true", "uniqueItems", "", "/uniqueItems"),
    ({"contains": {"type": "null"}}, [1, 2], "none of 2 items fits contains, and at least 1 must", "contains", "",
     "/contains"),
    ({"contains": True, "minContains": 2}, [1], "1 item (0) fits contains, fewer than minContains 2", "minContains", "",
     "/minContains"),
    ({"contains": True, "maxContains": 1}, [1, 2], "2 items (0 and 1) fit contains, more than maxContains 1",
     "maxContains", "", "/maxContains"),
    ({"prefixItems": [True], "items": False}, [1, 2], "item 1 is not allowed: items is false, at most 1 item may be "
     "there", "items", "/1", "/items"),
    ({"additionalProperties": False, "properties": {"age": True}}, {"agee": 1}, '"agee" is not allowed: '
     'additionalProperties is false; did you mean "age"?', "additionalProperties", "/agee", "/additionalProperties"),
    ({"properties": {"a": False}}, {"a": 1}, '"a" is not allowed: its schema is false', "properties", "/a",
     "/properties/a"),
    ({"propertyNames": {"maxLength": 1}}, {"ab": 1}, '"ab" has 2 characters, more than maxLength 1, by propertyNames',
     "maxLength", "/ab", "/propertyNames/maxLength"),
    ({"unevaluatedProperties": False, "properties": {"a": True}}, {"b": 1}, '"b" is not allowed: no other keyword '
     "allows it, and unevaluatedProperties is false", "unevaluatedProperties", "/b", "/unevaluatedProperties"),
    ({"unevaluatedItems": False}, [1], "item 0 is not allowed: no other keyword allows it, and unevaluatedItems is "
     "false", "unevaluatedItems", "/0", "/unevaluatedItems"),
    ({"dependentRequired": {"card": ["zip"]}}, {"card": 1}, '"zip" is required, since "card" is present',
     "dependentRequired", "", "/dependentRequired"),
    ({"dependentSchemas": {"a": {"maxProperties": 1}}}, {"a": 1, "b": 2}, "2 properties, more than maxProperties 1, "
     'since "a" is present', "maxProperties", "", "/dependentSchemas/a/maxProperties"),
    ({"if": {"required": ["a"]}, "then": {"required": ["b"]}}, {"a": 1}, '"b" is required, since the value fits if',
     "required", "", "/then/required"),
    ({"if": {"type": "null"}, "else": False}, 3, "3 is not allowed, since the value does not fit if", "else", "",
     "/else"),
    ({"not": {"type": "string"}}, "x", '"x" is a string, which not forbids', "not", "", "/not"),
    ({"not": {"required": ["a"]}}, {"a": 1}, 'an object with 1 property must not have "a" (not)', "not", "", "/not"),
    ({"not": {"enum": [1, 2]}}, 1, "1 is forbidden: it must not be 1 or 2 (not)", "not", "", "/not"),
    ({"not": {"minimum": 1, "maximum": 3}}, 2, "2 fits the schema of not, and must not", "not", "", "/not"),
    ({"oneOf": [{"type": "integer"}, {"minimum": 2}]}, 3, "the branches 0 and 1 of oneOf both fit 3, and exactly one "
     "must", "oneOf", "", "/oneOf"),
    ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "x", '"x" fits none of the 2 branches of anyOf: it is not '
     "null or an integer", "anyOf", "", "/anyOf"),
    ({"oneOf": [CAT, DOG]}, {"kind": "dog", "breed": 3}, "an object with 2 properties fits none of the 2 branches of "
     "oneOf; branch 1 comes closest: /breed: 3 is not a string", "oneOf", "", "/oneOf"),
    ({"allOf": [{"$ref": "#/$defs/a"}], "$defs": {"a": {"type": "null"}}}, 1, "1 is not null", "type", "",
     "/$defs/a/type"),
    ({"properties": {"a/b~": {"type": "null"}}}, {"a/b~": 1}, "1 is not null", "type", "/a~1b~0",
     "/properties/a~1b~0/type"),
    (False, 1, "1 is not allowed: the schema is false", "", "", ""),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "instance", "message", "keyword", "pointer", "place"), MESSAGES)
def test_messages(schema: Any, instance: Any, message: str, keyword: str, pointer: str, place: str) -> None:
    assert constrain.validate(schema, instance) == (Violation(message, keyword, pointer, place),)


def test_every_keyword_has_a_rule_and_a_message() -> None:
    """No keyword of the table is ignored, so a new one cannot be forgotten here."""
    judged_by_others = {"then", "else", "minContains", "maxContains", "$recursiveRef"}
    assert {row.name for row in KEYWORDS} == RULES.keys() | UNEVALUATED_RULES.keys() | judged_by_others
    shown = {name for schema, *_ in MESSAGES for name in json.dumps(schema).split('"')}
    untold = {"$dynamicRef", "$recursiveRef", "items", "additionalItems", "patternProperties", "dependencies"}
    assert {row.name for row in KEYWORDS} - shown <= untold | {"exclusiveMaximum", "minProperties", "maxItems"}


def test_all_violations_are_found_in_the_order_of_the_text() -> None:
    schema = {
        "properties": {"name": {"minLength": 2}, "tags": {"items": {"type": "string"}, "uniqueItems": True}},
        "required": ["email"], "additionalProperties": False,
    }  # fmt: skip
    text = '{\n "tags": ["é", 1,\n  1],\n "name": "x", "agé": 3}'
    found = constrain.validate(schema, text=text.encode())
    assert [(one.keyword, one.pointer, one.line, one.column) for one in found] == [
        ("required", "", 1, 1), ("uniqueItems", "/tags", 2, 10), ("type", "/tags/1", 2, 16), ("type", "/tags/2", 3, 3),
        ("minLength", "/name", 4, 10), ("additionalProperties", "/agé", 4, 15),
    ]  # fmt: skip
    assert str(found[-1]).startswith('line 4, column 15: /agé: "agé" is not allowed')
    assert dataclasses.is_dataclass(found[0]) and hash(found[0])


@pytest.mark.parametrize(
    ("text", "message", "place"),
    [
        ('{"a": 1, "b": {"c": 1, "c": 2}}', 'the key "c" is repeated', (1, 24)),
        ("[1,\n 2", "not JSON: Expecting ',' delimiter", (2, 3)),
        (r'["a", "\ud800"]', "a text contains half of a surrogate pair", (1, 7)),
        (b'["\xff"]', "not JSON: the byte 0xff is not UTF-8", (1, 3)),
        ("[1, NaN]", "not JSON: NaN is not a JSON number", (1, 5)),
        ("", "not JSON: Expecting value", (1, 1)),
        ("\ufeff1", "not JSON:", (1, 1)),
        ('"\ud800"', "a text contains half of a surrogate pair", (1, 1)),
    ],
)
def test_texts_that_are_not_json(text: str | bytes, message: str, place: tuple[int, int]) -> None:
    (found,) = constrain.validate({}, text=text)
    assert found.message.startswith(message) and found.keyword == ""
    assert (found.line, found.column) == place


def test_a_repeated_key_has_a_pointer() -> None:
    assert [one.pointer for one in constrain.validate({}, text='[{"a": [], "a/": 1, "a/": 2, "a": 3}]')] == [
        "/0/a~1", "/0/a",
    ]  # fmt: skip


def test_numbers_are_exact() -> None:
    assert not constrain.validate({"multipleOf": 0.1}, 0.3)
    assert not constrain.validate({"multipleOf": Decimal("0.01")}, text="1234567890123456789.07")
    assert constrain.validate({"maximum": 10**30}, 10**30 + 1)
    assert not constrain.validate({"enum": [1]}, 1.0) and constrain.validate({"enum": [1]}, True)
    assert not constrain.validate({"type": "string"}, "[1]") and constrain.validate({"type": "array"}, "[1]")


def test_references_lead_through_the_registry() -> None:
    registry = {"https://x.test/age": {"maximum": 120}}
    schema = {"properties": {"age": {"$ref": "age"}}}
    (found,) = constrain.validate(schema, {"age": 121}, registry=registry, base_uri="https://x.test/person")
    assert (found.pointer, found.schema_pointer) == ("/age", "https://x.test/age#/maximum")
    with pytest.raises(SchemaError, match="not in the registry"):
        constrain.validate({"$ref": "https://x.test/none"}, 1)


def test_a_validator_is_reused_and_formats_may_be_annotations() -> None:
    validator = InstanceValidator({"format": "date", "type": "string"}, formats="annotate")
    assert not validator.check_value("soon") and validator.check_value(1) and not validator.check_text('"x"')


def test_a_schema_in_the_place_of_the_instance_is_refused() -> None:
    with pytest.raises(ArgumentError, match="each other's place"):
        constrain.validate({"name": "Ada"}, {"type": "object"})
    assert constrain.validate({}, {"type": "object"}) == constrain.validate({"title": "x"}, {"type": 1}) == ()


def test_a_misspelt_keyword_warns() -> None:
    with pytest.warns(SchemaWarning, match="propertys"):
        constrain.validate({"propertys": {"a": {}}, "type": "object"}, {})


# ---- hostile input -----------------------------------------------------------------------------------------------

LOOP = {"$defs": {"a": {"anyOf": [{"$ref": "#/$defs/b"}, {"type": "null"}]}, "b": {"allOf": [{"$ref": "#/$defs/a"}]}},
        "$ref": "#/$defs/a"}  # fmt: skip
TWICE = {"anyOf": [{"items": {"$ref": "#"}, "type": "array"}, {"items": {"$ref": "#"}, "minItems": 1, "type": "array"}]}
CHAIN = {"$defs": {f"d{i}": {"allOf": [{"$ref": f"#/$defs/d{i + 1}"}], "minLength": 1} for i in range(2_000)}
         | {"d2000": {"type": "string"}}, "$ref": "#/$defs/d0"}  # fmt: skip


def test_a_schema_that_applies_itself_is_refused() -> None:
    with pytest.raises(SchemaError, match="applies itself to the same value"):
        constrain.validate(LOOP, 1)


@pytest.mark.parametrize("text", ["[" * 200 + "1" + "]" * 200, "[" * 200 + "]" * 200])
def test_choices_within_choices_take_no_exponential_work(text: str) -> None:
    """2 ** 200 paths lead through the schema, and 200 verdicts; the work that is allowed here bounds them."""
    found = constrain.validate(TWICE, text=text, limits=Limits(work=60_000))
    assert len(found) == text.count("1")


def test_long_chains_of_references_use_no_more_stack_than_there_is() -> None:
    (found,) = constrain.validate(CHAIN, 1)
    assert found.message == "1 is not a string"
    assert len(constrain.validate({**CHAIN, "unevaluatedProperties": False}, {"a": 1})) == 2


@pytest.mark.parametrize("pattern", ["^(a+)+$", "^(a|a)*$", "^(a*)*b$"])
def test_patterns_do_not_backtrack(pattern: str) -> None:
    assert constrain.validate({"pattern": pattern}, "a" * 3_000 + "!", limits=Limits(work=200_000))


LONG_KEY = '{"' + "k" * 10**6 + '": {' + ",".join(['"a":1'] * 2_000) + "}}"


def alias_bomb() -> Any:
    value: Any = [1]
    for _ in range(60):
        value = [value, value]
    return value


def cyclic() -> Any:
    value: list[Any] = []
    value.append(value)
    return value


@pytest.mark.parametrize(
    ("schema", "arguments"),
    [
        ({}, {"instance": alias_bomb(), "limits": Limits(work=100_000)}),
        ({}, {"instance": cyclic()}),
        ({}, {"text": "[" * 100_000}),
        ({"minimum": 1}, {"text": "1e99999999"}),
        ({"multipleOf": 7}, {"text": "1e-9999999"}),
        ({"uniqueItems": True}, {"instance": list(range(100_000)), "limits": Limits(work=50_000)}),
        ({"items": {"type": "string"}}, {"instance": [1] * 50_000, "limits": Limits(work=100_000)}),
        ({"additionalProperties": {"items": False}}, {"instance": {"k" * 10**6: [1] * 2_000},
                                                      "limits": Limits(work=10**6)}),
        ({}, {"text": LONG_KEY, "limits": Limits(work=10**6)}),
    ],
    ids=["aliases", "cycle", "nesting", "exponent", "small exponent", "unique", "errors", "long pointers", "long keys"],
)  # fmt: skip
def test_budgets(schema: Any, arguments: dict[str, Any]) -> None:
    with pytest.raises(LimitError):
        constrain.validate(schema, **arguments)


def test_similar_names_are_looked_for_in_the_first_messages_only() -> None:
    schema = {"items": {"enum": [f"name{i}" for i in range(300)]}}
    found = constrain.validate(schema, ["nam7"] * 500)
    assert len(found) == 500
    assert 0 < sum("did you mean" in one.message for one in found) <= 100


def test_the_closest_branch_is_named_in_the_first_messages_only() -> None:
    schema = {"items": {"anyOf": [{"minimum": limit, "type": "integer"} for limit in range(10, 40)]}}
    found = constrain.validate(schema, [1] * 500)
    assert len(found) == 500
    assert sum("comes closest" in one.message for one in found) == 200


def test_messages_are_short() -> None:
    long = "x" * 100_000
    found = constrain.validate(
        {"additionalProperties": False, "required": [long], "propertyNames": {"enum": [long + "y"]}}, {long + "z": 1}
    )
    assert len(found) == 3 and all(len(one.message) < 400 for one in found)


# ---- arguments ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "neither"), ({"instance": 1, "text": "1"}, "both"), ({"instance": b"1"}, "text="),
        ({"instance": {1: 2}}, "instance"), ({"instance": {"a": {2}}}, "instance at /a"), ({"text": 3}, "text is 3"),
    ],
)  # fmt: skip
def test_wrong_arguments(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        constrain.validate({}, **arguments)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "\ud800", {"\ud800": 1}])
def test_values_that_have_no_json_text(value: Any) -> None:
    with pytest.raises(ArgumentError):
        constrain.validate({}, [value])


def test_an_if_without_then_and_else_asserts_nothing() -> None:
    assert constrain.validate({"if": {"$ref": "#"}}, 1) == ()
    with pytest.raises(SchemaError, match="applies itself"):
        constrain.validate({"if": {"$ref": "#"}, "then": True}, 1)


def test_none_is_an_instance() -> None:
    assert constrain.validate({"type": "null"}, None) == ()
    assert json.dumps(dataclasses.asdict(constrain.validate({"type": "null"}, 1)[0]))
