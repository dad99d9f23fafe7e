"""uniqueItems: small sets of values are enumerated in rules, others compared by the engine; and the sizes of sets."""

from __future__ import annotations

import json
from itertools import permutations, product
from typing import Any

import pytest
from hypothesis import given, strategies as st

from constrain import Vocabulary, compile
from constrain.automata.dfa import Dfa
from constrain.base.errors import TokenRefused, UnsatisfiableError, UnsupportedError
from constrain.base.options import Limits, Style
from constrain.frontends.json_schema import to_grammar
from constrain.frontends.json_schema.algebra.shape_algebra import ShapeAlgebra
from constrain.frontends.json_schema.arrays.item_counts import has_matching
from constrain.frontends.json_schema.arrays.unique_items import MANY_TEXTS
from constrain.frontends.json_schema.arrays.value_counts import ValueCount, count_values, list_values
from constrain.frontends.json_schema.reading.schema_parser import SchemaParser
from constrain.grammar.nodes import Unique
from constrain.program.program import Program
from tests.dead_end_oracle import dead_parts
from tests.frontends.json_schema.test_json_schema_arrays import nodes_in
from tests.recogniser_oracle import accepts
from tests.schema_strategies import valid

VALUES = ["a", "b", 1, True, None, 2, 1.5]


@pytest.mark.parametrize("style", [Style(), Style.any()], ids=["default", "any"])
@pytest.mark.parametrize(
    "items",
    [
        {"items": {"enum": ["a", "b", 1, True, None]}},
        {"items": {"enum": [1, 2, 3]}, "minItems": 2, "maxItems": 2},
        {"items": {"type": "boolean"}, "minItems": 1},
        {"items": {"enum": [1, 1.0, 1.5]}, "minItems": 2},
        {"items": {"enum": ["a"]}},
        {"items": {"anyOf": [{"const": "a"}, {"type": "null"}]}, "maxItems": 5},
    ],
)
def test_verdicts(items: dict[str, Any], style: Style) -> None:
    schema = {"type": "array", "uniqueItems": True, **items}
    grammar = to_grammar(schema, style=style)
    assert dead_parts(grammar) == []
    for length in range(4):
        for value in product(VALUES, repeat=length):
            assert accepts(grammar, json.dumps(value)) == valid(schema, list(value)), value


def test_one_number_in_two_spellings_is_one_value() -> None:
    grammar = to_grammar({"items": {"enum": [1, 2]}, "uniqueItems": True}, style=Style.any())
    assert accepts(grammar, "[1.0, 2]") and not accepts(grammar, "[1, 1.0]")


def test_an_indented_style() -> None:
    grammar = to_grammar({"items": {"enum": [1, 2]}, "uniqueItems": True}, style=Style(whitespace=2))
    assert accepts(grammar, json.dumps([2, 1], indent=2)) and not accepts(grammar, json.dumps([2, 2], indent=2))


def test_rules_are_emitted_lazily() -> None:
    grammar = to_grammar({"type": "array", "items": {"enum": list(range(60))}, "uniqueItems": True})
    assert accepts(grammar, "[3, 5, 59]") and not accepts(grammar, "[3, 5, 3]")
    assert len(grammar.rules) < 200


@pytest.mark.parametrize("style", [Style(), Style.any()], ids=["default", "any"])
def test_many_different_texts_are_one_rule(style: Style) -> None:
    """The text may use all of them: a rule for each set of unused texts would be 200 rules of up to 200 options."""
    texts = [f"text {k}" for k in range(200)]
    schema = {"type": "array", "items": {"enum": texts}, "uniqueItems": True, "minItems": 1}
    program = Program(to_grammar(schema, style=style))
    matcher = compile(Vocabulary.bytes(), schema=schema, style=style).matcher()
    matcher.advance_bytes(json.dumps(texts).encode())
    assert matcher.is_complete
    program.link_ahead(10**6)
    assert len(program.links) < 8


@pytest.mark.parametrize("style", [Style(), Style.any(), Style(whitespace=2)], ids=["default", "any", "indented"])
@pytest.mark.parametrize("bounds", [{}, {"minItems": 1}, {"minItems": 2, "maxItems": 3}, {"minItems": 17}])
def test_verdicts_of_many_texts(bounds: dict[str, int], style: Style) -> None:
    texts = ["", "a", "ab", 'q"', "\n", "é", "/", *(f"t{k}" for k in range(10))]
    assert len(texts) == MANY_TEXTS
    schema = {"type": "array", "items": {"enum": texts}, "uniqueItems": True, **bounds}
    grammar = to_grammar(schema, style=style)
    assert dead_parts(grammar) == []
    indent = 2 if style.whitespace == 2 else None
    values = [[], ["a"], ["a", "ab"], ["a", "a"], ["a", "x"], [1], ["ab", "", "ab"], texts[:3], texts[:4], texts]
    for value in [*values, [*texts, "a"], texts[:-1]]:
        assert accepts(grammar, json.dumps(value, indent=indent, ensure_ascii=False)) == valid(schema, value), value


def test_more_items_than_values() -> None:
    with pytest.raises(UnsatisfiableError):
        to_grammar({"type": "array", "items": {"type": "boolean"}, "uniqueItems": True, "minItems": 3})


OBJECTS = {"type": "object", "properties": {"a": {"type": "boolean"}}, "additionalProperties": False}


@pytest.mark.parametrize("style", [Style(), Style.any()], ids=["default", "any"])
@pytest.mark.parametrize(
    "keywords",
    [
        {},
        {"items": {"type": ["integer", "boolean"]}},
        {"items": {"enum": [[1], [2], {"a": 1}, {}, "a"]}},
        {"minItems": 2},
        {"contains": {"const": 1}},
        {"contains": {"const": 1}, "maxItems": 2},
        {"contains": {"type": "boolean"}, "minContains": 2},
        {"contains": {"type": "string"}, "maxContains": 1, "minItems": 2},
        {"prefixItems": [{"enum": [1, 2]}, {"const": 1}], "minItems": 2},
        {"prefixItems": [True, {"type": "boolean"}, {"type": "boolean"}], "minItems": 3},
        {"prefixItems": [{"type": "boolean"}], "items": {"enum": [True, 1, "a"]}},
        {"prefixItems": [{"type": "integer"}], "items": {"type": "boolean"}, "minItems": 2},
        {"items": {"type": ["integer", "string"]}, "contains": {"enum": [1, 2, "a"]}, "minContains": 3},
    ],
    ids=json.dumps,
)
def test_any_items(keywords: dict[str, Any], style: Style) -> None:
    schema = {"type": "array", "uniqueItems": True, **keywords}
    grammar = to_grammar(schema, style=style)
    for length in range(4):
        for value in product([1, 2, "a", True, False, [1], {"a": 1}, {}], repeat=length):
            assert accepts(grammar, json.dumps(value)) == valid(schema, list(value)), value
    assert dead_parts(grammar) == []


def test_json_equality() -> None:
    grammar = to_grammar({"type": "array", "uniqueItems": True}, style=Style.any())
    for text in (
        "[1, 1.0]", "[100, 1e2]", r'["a", "\u0061"]', '[{"a": 1, "b": 2}, {"b": 2.0, "a": 1}]', "[[1], [1]]",
        "[1, [2], 3, [2]]", "[0, -0]",
    ):  # fmt: skip
        assert not accepts(grammar, text), text
    for text in ("[1, true]", "[0, false, null]", '["1", 1]', "[[1, 2], [2, 1]]", "[[1, 1], 1]", "[{}, []]"):
        assert accepts(grammar, text), text


def test_inner_arrays_have_their_own_uniqueness_checks() -> None:
    inner = {"type": "array", "items": {"type": "array", "uniqueItems": True}, "uniqueItems": True}
    grammar = to_grammar(inner)
    assert accepts(grammar, "[[1, 2], [2, 1]]") and accepts(grammar, "[[1], []]")
    assert not accepts(grammar, "[[1, 1]]") and not accepts(grammar, "[[1], [1]]")


def is_guarded(schema: dict[str, Any]) -> bool:
    grammar = to_grammar({"type": "array", "uniqueItems": True, **schema})
    start: Any = grammar.start
    return any(isinstance(node, Unique) for node in nodes_in(grammar.rules[start.name]))


def test_enumerated_values_need_no_uniqueness_check() -> None:
    assert not is_guarded({"items": {"enum": [1, [2], {"a": 3}]}})
    assert not is_guarded({"items": OBJECTS})
    assert not is_guarded({"prefixItems": [{"type": "string"}, {"type": "integer"}], "items": False})
    assert not is_guarded({"maxItems": 1})
    assert is_guarded({})
    assert is_guarded({"items": {"enum": list(range(600))}})
    assert is_guarded({"items": {"enum": list(range(60))}, "minItems": 50})


@pytest.mark.parametrize(
    ("items", "count"),
    [
        ({"enum": list(range(600))}, 600),
        ({"type": "integer", "minimum": 1, "maximum": 10**6}, 10**6),
        ({"type": "string", "pattern": "^[a-j][0-9]$"}, 100),
        ({"anyOf": [{"type": "string", "pattern": "^[0-9a-f]{4}$"}, {"enum": ["red", "0000"]}]}, 16**4 + 1),
        (OBJECTS, 3),
        ({"type": "array", "items": {"type": "boolean"}, "maxItems": 3}, 15),
    ],
)
def test_there_are_no_more_items_than_values(items: dict[str, Any], count: int) -> None:
    schema = {"type": "array", "items": items, "uniqueItems": True}
    assert to_grammar({**schema, "minItems": count})
    with pytest.raises(UnsatisfiableError):
        to_grammar({**schema, "minItems": count + 1})


@pytest.mark.parametrize(
    "keywords",
    [
        {"prefixItems": [{"type": "boolean"}, {"const": True}, {"const": False}], "minItems": 3},
        {"prefixItems": [{}, {}], "items": {"type": "boolean"}, "minItems": 5},
        {"contains": {"const": 1}, "minContains": 2},
        {"items": {"enum": [1, 2, "a"]}, "contains": {"type": "integer"}, "maxContains": 1, "minItems": 3},
    ],
)
def test_no_array(keywords: dict[str, Any]) -> None:
    with pytest.raises(UnsatisfiableError):
        to_grammar({"type": "array", "uniqueItems": True, **keywords})


NEAR = {"items": {"type": "integer", "minimum": 1, "maximum": 5000}, "prefixItems": [{"type": "integer"}]}


@pytest.mark.parametrize(
    "schema",
    [
        {"not": {"uniqueItems": True}, "maxItems": 9},
        {"uniqueItems": True, **NEAR},  # The first item may or may not be one of the 5,000 values of the others.
        {"uniqueItems": True, **NEAR, "minItems": 501},
    ],
    ids=json.dumps,
)
def test_undecidable_uniqueness_is_refused(schema: dict[str, Any]) -> None:
    with pytest.raises(UnsupportedError) as caught:
        to_grammar({"type": "array", **schema})
    assert caught.value.pointer is not None and caught.value.pointer.endswith("uniqueItems") and caught.value.hint


@pytest.mark.parametrize(
    "keywords",
    [
        {"items": {"enum": [1, 2, "a"]}},
        {"items": {"type": "boolean"}, "minItems": 3},
        {"prefixItems": [True, {"type": "boolean"}], "items": False},
        {"items": {"enum": [1, "a"]}, "contains": {"const": "a"}, "maxContains": 1},
    ],
)
def test_two_equal_items(keywords: dict[str, Any]) -> None:
    schema = {"type": "array", "not": {"uniqueItems": True}, **keywords}
    grammar = to_grammar(schema, style=Style.any())
    for length in range(5):
        for value in product([1, 2, "a", True, 1.0], repeat=length):
            assert accepts(grammar, json.dumps(value)) == valid(schema, list(value)), value
    assert dead_parts(grammar) == []


# ---- how many values a set has ---------------------------------------------------------------------------------

CAP = 10_000


def algebra_of(schema: Any) -> tuple[ShapeAlgebra, tuple[int, ...]]:
    reader = SchemaParser(schema, None, Style.any(), Limits())
    return ShapeAlgebra(reader, Style.any(), Limits()), reader.root


TREE = {"type": "object", "properties": {"kid": {"$ref": "#"}}, "additionalProperties": False}
ONE_OF_ITSELF = {"anyOf": [{"type": "null"}, {"type": "array", "items": {"$ref": "#"}, "minItems": 2,
                                              "uniqueItems": True}]}  # fmt: skip


@pytest.mark.parametrize(
    ("schema", "count"),
    [
        (True, CAP), (False, 0), ({"type": "boolean"}, 2), ({"enum": [1, 1.0, True, "a", [1], [1.0]]}, 4),
        ({"type": "integer", "minimum": -3, "exclusiveMaximum": 3}, 6), ({"type": "number", "minimum": 1}, CAP),
        ({"type": "number", "minimum": 1, "maximum": 1}, 1), ({"type": "number", "multipleOf": 0.5, "minimum": 0,
                                                               "maximum": 2}, 5),
        ({"type": "string", "maxLength": 0}, 1), ({"type": "string", "pattern": "^[ab]{0,2}$"}, 7),
        ({"type": "string", "pattern": "^a+$", "maxLength": 5}, 5), ({"type": "string"}, CAP),
        (OBJECTS, 3), ({**OBJECTS, "required": ["a"]}, 2), ({"type": "object", "maxProperties": 0}, 1),
        ({"type": "object"}, CAP), ({"type": "array", "items": {"type": "boolean"}, "maxItems": 2}, 7),
        ({"type": "array", "items": {"type": "boolean"}}, CAP), ({"type": "array", "maxItems": 0}, 1),
        ({"type": "array", "items": {"const": 1}, "maxItems": 5_000}, 5_001),
        pytest.param(TREE, CAP, marks=pytest.mark.slow), (ONE_OF_ITSELF, 1),
    ],
    ids=json.dumps,
)  # fmt: skip
def test_sizes(schema: Any, count: int) -> None:
    algebra, root = algebra_of(schema)
    least, most = count_values(root, CAP, algebra)
    assert least <= count and (most is None or most >= count)
    values = list_values(root, algebra)
    if count <= 100:
        assert values is not None and len(values) == len(set(values)) == count
    else:
        assert values is None and (ValueCount(least, most) == ValueCount(count, count) or (least, count) == (CAP, CAP))


@given(st.lists(st.lists(st.integers(0, 4), max_size=4), max_size=5))
def test_matching_agrees_with_enumeration(places: list[list[int]]) -> None:
    tried = any(
        all(value in place for value, place in zip(order, places)) for order in permutations(range(5), len(places))
    )
    assert has_matching(places) == tried


@pytest.mark.parametrize("low", [0, 1])
def test_an_empty_list_satisfies_contains_with_minimum_zero(low: int) -> None:
    """`maxContains` alone asks for no item, so lists without any are values that may differ."""
    inner = {"type": "array", "items": False, "contains": {"uniqueItems": True}, "minContains": low, "maxContains": low}
    constraint = compile(Vocabulary.bytes(), schema={"type": "array", "uniqueItems": True, "items": inner})
    for text, right in ((b"[]", True), (b"[[]]", low == 0), (b"[[],[]]", False)):
        matcher = constraint.matcher()
        try:
            matcher.advance_bytes(text)
        except TokenRefused:
            assert not right
        else:
            assert matcher.is_complete == right


@given(
    st.lists(st.lists(st.sampled_from(["", "a", "b", "ab", "é"]), min_size=1), min_size=1, max_size=3),
    st.integers(1, 6),
)
def test_texts_of_enums_are_counted_as_their_automaton_counts_them(enums: list[list[str]], cap: int) -> None:
    parser = SchemaParser({"anyOf": [{"enum": list(dict.fromkeys(texts))} for texts in enums]}, {}, Style(), Limits())
    algebra = ShapeAlgebra(parser, Style(), Limits())
    automaton = Dfa.from_strings({text for texts in enums for text in texts})
    assert count_values(parser.root, cap, algebra).least == automaton.count(cap)
