"""`unevaluatedProperties`, `unevaluatedItems`: against `jsonschema`, listed and random, and the official suite."""

from __future__ import annotations

import json
import tarfile
from itertools import combinations, product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given, settings, strategies as st

from constrain.base.errors import LimitError, SchemaError, UnsatisfiableError
from constrain.base.options import Limits, Style
from constrain.frontends.json_schema import to_grammar
from tests.recogniser_oracle import accepts
from tests.schema_strategies import evaluating, valid, values

DRAFT2019 = "https://json-schema.org/draft/2019-09/schema"
KEYS = ("a", "b", "ab")
OBJECTS = [
    dict(zip(keys, held)) for n in range(4) for keys in combinations(KEYS, n) for held in product((1, "x"), repeat=n)
]
ARRAYS = [list(held) for n in range(4) for held in product((1, "x"), repeat=n)]
NUMBER, TEXT = {"type": "integer"}, {"type": "string"}


def agree(schema: Any, samples: list[Any]) -> None:
    """The Grammar of the schema says what `jsonschema` says."""
    expected = [valid(schema, value) for value in samples]
    try:
        grammar = to_grammar(schema, style=Style.any())
    except UnsatisfiableError:
        assert not any(expected)
        return
    assert [accepts(grammar, json.dumps(value)) for value in samples] == expected


@pytest.mark.parametrize("rest", [False, TEXT], ids=json.dumps)
@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"properties": {"a": {}}},
        {"patternProperties": {"^a": NUMBER}},
        {"additionalProperties": NUMBER},
        {"properties": {"a": {}}, "additionalProperties": True},
        {"required": ["a"], "propertyNames": {"maxLength": 1}},
        {"allOf": [{"properties": {"a": {}}}, {"patternProperties": {"b$": {}}}]},
        {"allOf": [{"properties": {"a": {}}, "unevaluatedProperties": NUMBER}]},
        {"allOf": [{"unevaluatedProperties": True}]},
        {"anyOf": [{"properties": {"a": NUMBER}, "required": ["a"]}, {"properties": {"b": NUMBER}, "required": ["b"]}]},
        {"anyOf": [{"properties": {"a": NUMBER}}, {"properties": {"b": NUMBER}}, {"required": ["ab"]}]},
        {"anyOf": [{"properties": {"a": NUMBER}}, True]},
        {"oneOf": [{"properties": {"a": NUMBER}, "required": ["a"]}, {"properties": {"b": NUMBER}, "required": ["b"]}]},
        {"oneOf": [{"properties": {"a": NUMBER}}, {"patternProperties": {"b$": TEXT}}]},
        {"not": {"properties": {"a": NUMBER}}},
        {"not": {"not": {"properties": {"a": NUMBER}}}},
        {"if": {"properties": {"a": NUMBER}, "required": ["a"]}, "then": {"properties": {"b": {}}},
         "else": {"patternProperties": {"^ab$": {}}}},
        {"if": {"properties": {"a": NUMBER}}},
        {"if": {"required": ["a"]}, "else": {"properties": {"b": {}}}},
        {"then": {"properties": {"a": {}}}},
        {"dependentSchemas": {"a": {"properties": {"a": {}, "b": {}}}, "b": {"properties": {"ab": {}}}}},
        {"dependentRequired": {"a": ["b"]}},
        {"$defs": {"base": {"properties": {"a": {}}}}, "$ref": "#/$defs/base", "properties": {"b": NUMBER}},
        {"$defs": {"base": {"anyOf": [{"properties": {"a": {}}}, {"properties": {"b": {}}}]}}, "$ref": "#/$defs/base"},
        {"properties": {"a": {"properties": {"b": {}}, "unevaluatedProperties": False}}},
        {"minProperties": 2},
    ],
    ids=json.dumps,
)  # fmt: skip
def test_keys(schema: dict[str, Any], rest: Any) -> None:
    whole = {**schema, "unevaluatedProperties": rest}
    agree(whole, [*OBJECTS, 1, []])
    if "$defs" not in schema:
        agree({"not": whole}, [*OBJECTS, 1, []])


@pytest.mark.parametrize("draft", [DRAFT2019, ""], ids=["2019", "2020"])
@pytest.mark.parametrize("rest", [False, TEXT], ids=json.dumps)
@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"items": NUMBER},
        {"items": {}},
        {"first": [NUMBER]},
        {"first": [NUMBER, {}], "minItems": 1},
        {"allOf": [{"first": [NUMBER]}, {"first": [{}, TEXT]}]},
        {"allOf": [{"first": [NUMBER]}, {"items": {}}]},
        {"anyOf": [{"first": [NUMBER]}, {"first": [TEXT, TEXT]}]},
        {"oneOf": [{"first": [NUMBER]}, {"first": [NUMBER, TEXT]}]},
        {"if": {"first": [NUMBER]}, "then": {"first": [{}, {}]}, "else": {"maxItems": 2}},
    ],
    ids=json.dumps,
)
def test_items(schema: dict[str, Any], rest: Any, draft: str) -> None:
    text = json.dumps({**schema, "unevaluatedItems": rest}).replace('"first"', '"items"' if draft else '"prefixItems"')
    whole = {"$schema": draft, **json.loads(text)} if draft else json.loads(text)
    agree(whole, [*ARRAYS, 1, {}])


@pytest.mark.parametrize("rest", [False, TEXT], ids=json.dumps)
@pytest.mark.parametrize(
    "schema",
    [
        {"contains": NUMBER},
        {"allOf": [{"contains": NUMBER}], "prefixItems": [{}]},
        {"anyOf": [{"contains": NUMBER}, {"prefixItems": [TEXT]}]},
        {"not": {"contains": NUMBER}},
        {"contains": NUMBER, "minContains": 0},
    ],
    ids=json.dumps,
)
def test_contains_evaluates(schema: dict[str, Any], rest: Any) -> None:
    agree({**schema, "unevaluatedItems": rest}, [*ARRAYS, 1, {}])


def test_contains_evaluates_nothing_in_2019() -> None:
    """2019-09, 9.3.1.3: of `items`, `additionalItems` and this keyword only (`jsonschema` counts `contains`, too)."""
    schema = {"$schema": DRAFT2019, "contains": NUMBER, "unevaluatedItems": TEXT}
    grammar = to_grammar(schema, style=Style.any())
    assert not any(accepts(grammar, json.dumps(value)) for value in ARRAYS)
    grammar = to_grammar({**schema, "minContains": 0}, style=Style.any())
    assert [value for value in ARRAYS if accepts(grammar, json.dumps(value))] == [["x"] * n for n in range(4)]


@settings(max_examples=50)
@given(evaluating, st.lists(values, min_size=1, max_size=6))
def test_random_schemas(schema: Any, samples: list[Any]) -> None:
    try:
        expected = [valid(schema, value) for value in samples]
        grammar = to_grammar(schema, style=Style.any(), limits=Limits(cases=64))
    except UnsatisfiableError:
        assert not any(expected)
        return
    except (LimitError, SchemaError):
        assume(False)
    assert [accepts(grammar, json.dumps(value)) for value in samples] == expected


@pytest.mark.slow
def test_evaluation_cases_have_a_budget() -> None:
    many = {"anyOf": [{"properties": {f"a{n}": {}}} for n in range(12)], "unevaluatedProperties": False}
    with pytest.raises(LimitError, match=r"Limits\.cases") as caught:
        to_grammar(many)
    assert caught.value.pointer == ""


@pytest.mark.parametrize("draft", ["draft2019-09", "draft2020-12"])
@pytest.mark.parametrize("name", ["unevaluatedItems", "unevaluatedProperties"])
def test_official_suite(shared: Path, draft: str, name: str) -> None:
    with tarfile.open(shared / "data" / "json-schema-test-suite.tar.gz") as archive:
        file = archive.extractfile(f"tests/{draft}/{name}.json")
        assert file is not None
        cases = json.load(file)
    for case in cases:
        try:
            grammar = to_grammar(case["schema"], style=Style.any())
        except UnsatisfiableError:
            assert not any(test["valid"] for test in case["tests"])
            continue
        for test in case["tests"]:
            said = (case["description"], test["description"])
            assert accepts(grammar, json.dumps(test["data"])) == test["valid"], said
