"""The Shape algebra: combinations, recursion, emptiness, budgets."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import assume, given, settings
from jsonschema import Draft202012Validator

from constrain.base.errors import LimitError, SchemaError, UnsatisfiableError, UnsupportedError
from constrain.base.options import Limits, Style
from constrain.frontends.json_schema import to_grammar
from constrain.frontends.json_schema.algebra.shape_algebra import ShapeAlgebra
from constrain.frontends.json_schema.core.static_types import are_disjoint
from constrain.frontends.json_schema.reading.schema_parser import SchemaParser
from tests.recogniser_oracle import accepts
from tests.schema_strategies import schemas, valid, values

FEW = Limits(cases=64)


def algebra_of(schema: Any) -> ShapeAlgebra:
    return ShapeAlgebra(SchemaParser(schema, None, Style(), FEW), Style(), FEW)


@pytest.mark.parametrize(
    "schema",
    [
        {"oneOf": [{"type": "integer"}, {"type": "number"}]},
        {"oneOf": [{"type": "integer"}, {"minimum": 2}]},
        {"oneOf": [{"pattern": "^a"}, {"pattern": "b$"}], "type": "string"},
        {"oneOf": [{}, {"const": 1}]},
        {"oneOf": [{"type": "string"}, {"type": "null"}, {"enum": ["a", None]}]},
        {"not": {"oneOf": [{"type": "integer"}, {"minimum": 2}]}},
        {"not": {"not": {"type": "integer"}}},
        {"not": {"allOf": [{"type": "integer"}, {"minimum": 2}]}},
        {"not": {"anyOf": [{"type": "integer"}, {"type": "string"}]}},
        {"not": {"enum": [1, "a", None, True]}},
        {"not": {}},
        {"not": False},
        {"if": {"type": "string"}, "then": {"maxLength": 1}, "else": {"type": "null"}},
        {"if": {"type": "string"}, "else": {"type": "null"}},
        {"then": False, "else": False},
        {"anyOf": [{"type": "string"}, {"minimum": 2}], "not": {"const": "a"}},
        {"allOf": [{"anyOf": [{"const": 1}, {"const": "a"}]}, {"anyOf": [{"type": "string"}, {"const": 3}]}]},
        {"type": ["string", "integer"], "minimum": 2, "maxLength": 1},
        {"const": 1, "enum": [1, 2]},
        {"$defs": {"a": {"type": "string"}}, "$ref": "#/$defs/a", "minLength": 2},
    ],
    ids=json.dumps,
)
def test_verdicts(schema: Any) -> None:
    samples = [None, True, False, 0, 1, 1.5, 2, 3, "", "a", "ab", "b", [], [1], {}, {"a": 1}]
    try:
        grammar = to_grammar(schema, style=Style.any())
    except UnsatisfiableError:
        assert not any(valid(schema, value) for value in samples)
        return
    for value in samples:
        assert accepts(grammar, json.dumps(value)) == valid(schema, value), value


TREE = {
    "$defs": {
        "tree": {
            "type": "object",
            "properties": {"value": {"type": "integer"}, "kids": {"type": "array", "items": {"$ref": "#/$defs/tree"}}},
            "required": ["value"],
            "additionalProperties": False,
        }
    },
    "$ref": "#/$defs/tree",
}


def test_recursion() -> None:
    grammar = to_grammar(TREE)
    assert accepts(grammar, '{"value": 1, "kids": [{"value": 2, "kids": []}, {"value": 3}]}')
    assert not accepts(grammar, '{"value": 1, "kids": [{"kids": []}]}')
    # Mutual, through unions, with a way out.
    expression = {
        "oneOf": [
            {"type": "number"},
            {
                "type": "array",
                "prefixItems": [{"const": "+"}, {"$ref": "#"}, {"$ref": "#"}],
                "minItems": 3,
                "items": False,
            },
        ]
    }
    assert accepts(to_grammar(expression), '["+", 1, ["+", 2, 3]]')
    assert not accepts(to_grammar(expression), '["+", 1]')


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]},
        {"type": "array", "prefixItems": [{"anyOf": [{"$ref": "#"}, False]}], "minItems": 1},
        {
            "$defs": {
                "a": {"type": "array", "items": {"$ref": "#/$defs/b"}, "minItems": 1},
                "b": {"type": "object", "required": ["x"], "properties": {"x": {"$ref": "#/$defs/a"}}},
            },
            "$ref": "#/$defs/a",
        },
    ],
)
def test_values_are_finite(schema: Any) -> None:
    with pytest.raises(UnsatisfiableError):
        to_grammar(schema)


def test_an_empty_branch_of_a_recursion_is_left_out() -> None:
    schema = {
        "$defs": {"never": {"type": "object", "properties": {"n": {"$ref": "#/$defs/never"}}, "required": ["n"]}},
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/never"}, "b": {"anyOf": [{"$ref": "#/$defs/never"}, {"type": "null"}]}},
    }
    grammar = to_grammar(schema, style=Style.any())
    assert accepts(grammar, '{"b": null}')
    assert not accepts(grammar, '{"a": {}}') and not accepts(grammar, '{"b": {"n": null}}')


@settings(max_examples=60)
@given(schemas, values)
def test_a_set_and_its_complement_part_all_values(schema: Any, value: Any) -> None:
    try:
        direct = to_grammar({"items": schema, "minItems": 1}, style=Style.any(), limits=FEW)
        opposite = to_grammar({"items": {"not": schema}, "minItems": 1}, style=Style.any(), limits=FEW)
    except (UnsupportedError, LimitError, SchemaError, UnsatisfiableError):
        assume(False)
    text = json.dumps([value])
    assert accepts(direct, text) != accepts(opposite, text)


@settings(max_examples=60)
@given(schemas, schemas)
def test_cheap_proofs_are_proofs(one: Any, other: Any) -> None:
    """What is plainly disjoint is disjoint."""
    try:
        algebra = algebra_of({"prefixItems": [one, other]})
        left, right = (
            algebra.table.parse_subschema(raw, algebra.table.references.main, f"/prefixItems/{n}")
            for n, raw in enumerate((one, other))
        )
        if are_disjoint(algebra.bound_of(left), algebra.bound_of(right)):
            assert not algebra.is_satisfiable(algebra.intersect(left, right))
    except (UnsupportedError, LimitError, SchemaError):
        assume(False)


@pytest.mark.parametrize(
    ("count", "limits"), [(80, FEW), pytest.param(200, Limits(), marks=pytest.mark.slow)], ids=["few", "default"]
)
def test_the_product_of_unions_has_a_budget(count: int, limits: Limits) -> None:
    pairs = [(f"a{n}", f"b{n}") for n in range(count)]
    many = {"allOf": [{"anyOf": [{"required": [one]}, {"required": [other]}]} for one, other in pairs]}
    with pytest.raises(LimitError) as caught:
        to_grammar(many, limits=limits)
    assert caught.value.pointer == ""
    assert "Limits.cases" in str(caught.value)


def test_discriminated_unions_of_many_branches_are_cheap() -> None:
    branches = [
        {"properties": {"kind": {"const": f"k{n}"}, "x": {"type": "integer"}}, "required": ["kind"]} for n in range(60)
    ]
    grammar = to_grammar({"type": "object", "oneOf": branches}, limits=Limits(cases=64))
    assert accepts(grammar, '{"kind": "k7", "x": 1}')
    assert not accepts(grammar, '{"kind": "k7", "x": "a"}') and not accepts(grammar, '{"kind": "k60"}')


def parity(levels: int) -> Any:
    """Objects that have an odd number of the keys a0, a1, ..."""
    schema: Any = {"type": "object", "required": ["a0"]}
    for level in range(1, levels):
        schema = {"oneOf": [schema, {"type": "object", "required": [f"a{level}"]}]}
    return schema


def test_nested_one_of_that_doubles_at_each_level() -> None:
    schema = parity(5)
    grammar = to_grammar(schema, style=Style.any())
    for chosen in range(32):
        value = {f"a{k}": None for k in range(5) if chosen >> k & 1}
        assert accepts(grammar, json.dumps(value)) == (len(value) % 2 == 1)
    with pytest.raises(LimitError, match="cases"):
        to_grammar(parity(40), style=Style.any(), limits=FEW)


@pytest.mark.parametrize(
    "schema",
    [
        {"propertyNames": {"$ref": "#"}, "minLength": 2},
        {"propertyNames": {"$ref": "#"}, "anyOf": [{"pattern": "^a"}, {"type": "object"}]},
        {"propertyNames": {"not": {"$ref": "#"}}, "type": "object"},
        {"propertyNames": {"$ref": "#"}, "oneOf": [{"minLength": 2}, {"pattern": "b"}]},
        {"propertyNames": {"$ref": "#"}, "enum": ["a", {"a": 1}, {"b": 1}]},
        {
            "propertyNames": {"if": {"$ref": "#"}, "then": {"maxLength": 2}},
            "type": ["object", "string"],
            "minLength": 2,
        },
    ],
)
def test_names_of_keys_by_the_schema_itself(schema: Any) -> None:
    grammar = to_grammar(schema, style=Style.any())
    judge = Draft202012Validator(schema)
    documents: list[Any] = [{}, "a", "abc", [], {"a": 1}, {"ab": 1}, {"abc": {}}, {"abc": {"a": 1}}, {"b": 1, "abc": 2}]
    for document in documents:
        assert accepts(grammar, json.dumps(document)) == judge.is_valid(document), document


def test_shapes_after_a_probe_are_checked_outside_of_the_probe() -> None:
    """A probe answers True where it meets a Shape that is being computed; after it, such Shapes are circular or not."""
    view = {"type": "object", "properties": {"z": {"type": "number"}}, "required": ["z"]}
    branches = [{"properties": {f"f{i}": view}, "required": [f"f{i}"], "additionalProperties": False} for i in range(3)]
    parser = SchemaParser({"oneOf": branches, "not": {"anyOf": [view, {"type": "null"}]}}, {}, Style(), Limits())
    algebra = ShapeAlgebra(parser, Style(), Limits())
    depths = []
    check = algebra._check_progress
    algebra._check_progress = lambda schemas: depths.append(algebra._probes) or check(schemas)  # type: ignore
    assert algebra.is_satisfiable(parser.root)
    algebra.normalise(parser.root)
    assert min(depths) == 0 and max(depths) > 0
    assert algebra._probes == 0
