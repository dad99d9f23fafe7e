"""Products of many unions: split by the key that distinguishes their cases, and still exactly the product."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, given, settings, strategies as st

from constrain.base.errors import LimitError, UnsatisfiableError
from constrain.base.options import Limits, Style
from constrain.base.work import work_budget
from constrain.frontends.json_schema import to_grammar
from constrain.frontends.json_schema.algebra import shape_operations
from constrain.frontends.json_schema.objects import object_derivatives, object_members
from tests.recogniser_oracle import accepts
from tests.schema_strategies import valid

KEYS = st.sampled_from(["a", "b", "c"])
asked = st.one_of(
    st.just({}), st.just(False), st.just({"type": "string"}),
    st.sampled_from(["x", "y", 1]).map(lambda v: {"const": v}),
    st.lists(st.sampled_from(["x", "y", "z", 1]), min_size=1, max_size=3, unique=True).map(lambda v: {"enum": v}),
)  # fmt: skip
branches = st.fixed_dictionaries(
    {},
    optional={
        "properties": st.dictionaries(KEYS, asked, min_size=1, max_size=2),
        "required": st.lists(KEYS, max_size=2, unique=True),
        "additionalProperties": st.sampled_from([False, {"type": "string"}]),
        "patternProperties": st.dictionaries(st.sampled_from(["^a", "[bc]$"]), asked, max_size=1),
        "minProperties": st.integers(0, 2),
        "maxProperties": st.integers(0, 3),
        "not": st.fixed_dictionaries({"required": st.lists(KEYS, min_size=1, max_size=2)}),
    },
)
unions = st.one_of(
    st.lists(branches, min_size=2, max_size=3).map(lambda options: {"anyOf": options}),
    st.lists(branches, min_size=2, max_size=3).map(lambda options: {"oneOf": options}),
    st.lists(branches, min_size=2, max_size=3).map(lambda options: {"not": {"allOf": options}}),
    st.tuples(branches, branches).map(lambda pair: {"if": pair[0], "then": pair[1]}),
)
values = st.dictionaries(st.sampled_from(["a", "b", "c", "d"]), st.sampled_from(["x", "y", "z", 1, None]), max_size=4)


@settings(max_examples=25)
@given(st.lists(unions, min_size=3, max_size=6), st.lists(values, min_size=4, max_size=8))
def test_a_split_product_is_the_product(parts: list[Any], samples: list[Any]) -> None:
    schema = {"type": "object", "allOf": parts}
    expected = [valid(schema, value) for value in samples]
    try:
        grammar = to_grammar(schema, style=Style.any())
    except UnsatisfiableError:
        assert not any(expected)
        return
    except LimitError:
        assume(False)
    assert [accepts(grammar, json.dumps(value)) for value in samples] == expected


@settings(max_examples=25)
@given(
    st.lists(unions, min_size=2, max_size=4),
    st.lists(values, min_size=4, max_size=8),
    st.sampled_from(["any", "schema"]),
)
def test_a_product_that_is_not_multiplied_out_is_the_product(
    parts: list[Any], samples: list[Any], key_order: Any
) -> None:
    """With clauses and derivatives from the first case on: what is accepted is valid, and all of it in any order."""
    schema = {"type": "object", "allOf": parts}
    expected = [valid(schema, value) for value in samples]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shape_operations, "MOST_OBJECTS", 1)
        patch.setattr(shape_operations, "split_by_discriminator", lambda *_: None)
        patch.setattr(object_members, "MOST_RESOLVED", 0)
        patch.setattr(object_derivatives, "KEY_ORDERS", ("any", "schema"))
        try:
            grammar = to_grammar(schema, style=replace(Style.any(), key_order=key_order))
            found = [accepts(grammar, json.dumps(value)) for value in samples]
        except UnsatisfiableError:
            assert not any(expected)
            return
        except LimitError:
            assume(False)
    if key_order == "any":
        assert found == expected
    assert all(right for got, right in zip(found, expected, strict=True) if got)


@pytest.mark.parametrize("count", [8, 12])
def test_alternatives_of_different_keys_are_not_multiplied_out(count: int) -> None:
    pairs = [(f"a{n}", f"b{n}") for n in range(count)]
    schema = {"allOf": [{"anyOf": [{"required": [one]}, {"required": [other]}]} for one, other in pairs]}
    with work_budget(200_000):
        grammar = to_grammar({"type": "object", **schema}, limits=Limits(cases=64))
    chosen = {pair[n % 2]: n for n, pair in enumerate(pairs)}
    assert accepts(grammar, json.dumps(chosen))
    for name in chosen:
        assert not accepts(grammar, json.dumps({key: value for key, value in chosen.items() if key != name}))


def test_a_chain_of_ifs_has_as_many_cases_as_values() -> None:
    chain = [
        {"if": {"properties": {"type": {"const": f"t{n}"}}, "required": ["type"]}, "then": {"required": [f"r{n}"]},
         "else": {"not": {"required": [f"r{n}"]}}}
        for n in range(40)
    ]  # fmt: skip
    grammar = to_grammar({"type": "object", "allOf": chain}, limits=Limits(cases=64), style=Style.any())
    assert accepts(grammar, '{"type": "t3", "r3": 1}') and accepts(grammar, '{"r7": 1, "type": "t7"}')
    assert accepts(grammar, '{"type": "other"}') and accepts(grammar, "{}")
    assert not accepts(grammar, '{"type": "t3"}') and not accepts(grammar, '{"type": "t3", "r3": 1, "r4": 1}')


def test_dependencies_on_one_key() -> None:
    kinds = [f"t{n}" for n in range(12)]
    schema = {
        "type": "object", "properties": {"type": {"enum": kinds}},
        "dependentSchemas": {
            f"k{n}": {"properties": {"type": {"enum": [kind for m, kind in enumerate(kinds) if (n + m) % 3]}}}
            for n in range(17)
        },
    }  # fmt: skip
    grammar = to_grammar(schema, limits=Limits(cases=64), style=Style.any())
    for value in (
        {"type": "t0", "k1": 1},
        {"type": "t0", "k3": 1},
        {"k3": 1, "k4": 1},
        {"k4": 1, "type": "t4", "k5": 1},
    ):
        assert accepts(grammar, json.dumps(value)) == valid(schema, value), value


@pytest.mark.parametrize("count", [200, 201])
def test_nested_complements(count: int) -> None:
    schema: Any = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    for _ in range(count):
        schema = {"not": schema}
    grammar = to_grammar(schema, style=Style.any())
    assert accepts(grammar, '{"a": 1}') == (count % 2 == 0) == (not accepts(grammar, "[]"))
