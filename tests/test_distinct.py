"""Different instances, and the list of all where there are few: beside brute force over what a schema can mean."""

from __future__ import annotations

import itertools
import json
from typing import Any

import numpy as np
import pytest

import constrain
from constrain.authoring.samples.distinct_instances import distinct_texts, value_of
from constrain.authoring.samples.text_enumeration import few_texts
from constrain.compilation.constraint_compiler import to_grammar

BYTES = constrain.Vocabulary.bytes()
FINITE: list[tuple[Any, int]] = [
    ({"enum": [1, 1.0, True, None, "a"]}, 4),
    ({"type": "boolean"}, 2),
    ({"type": "integer", "minimum": -3, "maximum": 3}, 7),
    ({"type": "string", "pattern": "^[ab]{0,2}$"}, 7),
    ({"type": "array", "items": {"enum": [1, 2]}, "minItems": 1, "maxItems": 2}, 6),
    ({"properties": {"a": {"enum": [1, 2]}, "b": {"const": 0}, "c": {"type": "null"}}, "type": "object",
      "additionalProperties": False, "required": ["b"], "maxProperties": 2}, 4),
    ({"properties": {"a": {"const": 1}, "b": {"const": 2}}, "type": "object", "additionalProperties": False,
      "dependentRequired": {"a": ["b"]}}, 3),
    ({"type": "object", "maxProperties": 0}, 1),
]  # fmt: skip


def drawn(schema: Any, n: int, **style: Any) -> list[bytes]:
    constraint = constrain.compile(BYTES, schema=schema, style=constrain.Style(**style))
    return list(distinct_texts(constraint, n, rng=np.random.default_rng(1)))


@pytest.mark.parametrize(("schema", "count"), FINITE)
def test_all_of_a_finite_schema(schema: Any, count: int) -> None:
    listed = few_texts(to_grammar(schema=schema), 100)
    assert listed is not None
    assert len({value_of(text) for text in listed}) == count
    made = drawn(schema, 30)
    assert len(made) == len({value_of(text) for text in made}) == count


RECURSIVE = {"$ref": "#/$defs/n", "$defs": {"n": {"items": {"$ref": "#/$defs/n"}}}}


@pytest.mark.parametrize(
    "schema", [True, {"type": "number"}, {"type": "object"}, {"minItems": 1, "type": "array"}, RECURSIVE]
)
def test_what_is_endless_is_not_listed(schema: Any) -> None:
    assert few_texts(to_grammar(schema=schema), 100) is None
    assert len({value_of(text) for text in drawn(schema, 50)}) == 50


def test_a_list_is_what_brute_force_finds() -> None:
    schema = {"type": "array", "items": {"enum": ["x", None, 2]}, "minItems": 1, "maxItems": 3}
    listed = few_texts(to_grammar(schema=schema), 1000)
    assert listed is not None
    every = [list(row) for size in (1, 2, 3) for row in itertools.product(["x", None, 2], repeat=size)]
    values = [json.loads(text) for text in listed]
    assert len(values) == len(every)
    assert all(value in values for value in every)


def test_the_opinion_of_another_counts() -> None:
    constraint = constrain.compile(BYTES, schema={"type": "integer", "minimum": 0, "maximum": 9})
    made = distinct_texts(constraint, 20, rng=np.random.default_rng(0), agree=lambda text: int(text) % 2 == 0)
    assert sorted(map(int, made)) == [0, 2, 4, 6, 8]


@pytest.mark.parametrize(("one", "other", "same"), [(b"1", b"1.0", True), (b"1", b"true", False), (b"[", b"[", True),
                                                    (b'{"a":1,"b":2}', b'{"b": 2, "a": 1}', True)])  # fmt: skip
def test_sameness_is_that_of_json_values(one: bytes, other: bytes, same: bool) -> None:
    assert (value_of(one) == value_of(other)) == same
