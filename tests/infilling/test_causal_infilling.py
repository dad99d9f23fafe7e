"""infill: gaps filled from a causal model; the draws have the distribution of any sampler."""

from __future__ import annotations

import json

import numpy as np
import pytest

import constrain
from constrain.base.errors import ArgumentError, UnsatisfiableError, UnsupportedError
from constrain.infilling import Gap, infill
from constrain.vocabulary.vocabulary import Vocabulary
from tests.model_factory import TableModel

BYTES = Vocabulary.bytes()
COMPACT = constrain.Style(whitespace="compact")
PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 4}, "age": {"type": "integer", "minimum": 0, "maximum": 150},
    },
    "required": ["name", "age"], "additionalProperties": False,
}  # fmt: skip


def test_gaps_within_a_constraint() -> None:
    constraint = constrain.compile(BYTES, schema=PERSON, style=COMPACT)
    spans = ['{"name":"', Gap(form=constrain.regex("[a-c]*")), '","age":', Gap(), "5}"]
    filled = infill(TableModel(257), spans, constraint, n=8, rng=np.random.default_rng(0), max_tokens=40)
    assert len(filled) == 8
    for one in filled:
        value = json.loads(one.text)
        assert one.text == f'{{"name":"{one.gaps[0]}","age":{one.gaps[1]}5}}'
        assert set(value["name"]) <= set("abc") and value["age"] % 10 == 5 and value["age"] <= 150


def test_gaps_with_constraints_of_their_own() -> None:
    nested = constrain.json_schema({"type": "array", "items": {"enum": [1, []]}, "maxItems": 2}, style=COMPACT)
    spans = ["x = ", Gap(form=nested), "; y = ", Gap(2, 2, form=constrain.regex("[0-9]+"))]
    filled = infill(TableModel(257, 1), spans, vocabulary=BYTES, n=5, rng=np.random.default_rng(1), max_tokens=40)
    for one in filled:
        assert isinstance(json.loads(one.gaps[0]), list) and len(one.gaps[1]) == 2
        assert one.text == f"x = {one.gaps[0]}; y = {one.gaps[1]}"


def test_the_first_gaps_are_as_short_as_possible() -> None:
    filled = infill(
        TableModel(257, 2), [Gap(), "a", Gap()], constrain.compile(BYTES, regex="a{5}"), rng=np.random.default_rng(1),
        max_tokens=9,
    )  # fmt: skip
    assert filled[0].gaps == ("", "aaaa")


def test_gaps_within_an_object_with_undeclared_keys() -> None:
    constraint = constrain.compile(BYTES, schema={"type": "object", "additionalProperties": {"type": "integer"}})
    rng = np.random.default_rng(1)
    for one in infill(TableModel(257, 1), ["{", Gap(), "7}"], constraint, n=5, rng=rng, max_tokens=60):
        pairs = json.loads(one.text, object_pairs_hook=list)
        assert len(dict(pairs)) == len(pairs) and str(pairs[-1][1]).endswith("7")


def test_infill_raises_for_invalid_or_unsatisfiable_input() -> None:
    model, rng = TableModel(257), np.random.default_rng(0)
    with pytest.raises(UnsatisfiableError, match="agrees with the spans"):
        infill(model, ["b", Gap()], constrain.compile(BYTES, regex="a*"), rng=rng, max_tokens=9)
    with pytest.raises(ArgumentError, match="vocabulary"):
        infill(model, ["b", Gap()], rng=rng, max_tokens=9)
    numbers = {"type": "array", "items": {"type": "integer"}, "uniqueItems": True}
    with pytest.raises(UnsupportedError, match="unique items"):
        infill(model, ["[", Gap()], constrain.compile(BYTES, schema=numbers), rng=rng, max_tokens=9)
    with pytest.raises(TypeError, match="a span is None"):
        infill(model, [None], vocabulary=BYTES, rng=rng, max_tokens=9)  # type: ignore[list-item]
