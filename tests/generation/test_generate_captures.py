"""`Generation.captures`, with the embedded vocabulary of bytes and random models."""

from __future__ import annotations

import pickle
import re
from dataclasses import dataclass
from datetime import date
from typing import Annotated, Literal

import pytest

import constrain
from constrain import json_schema, regex
from constrain.captures.capture_program import build_capture_program
from constrain.forms.form import NamedForm
from constrain.frontends.python_types import to_schema
from constrain.generation.captured_values import capture_bytes
from constrain.vocabulary.vocabulary import Vocabulary
from tests.model_factory import TableModel

BYTES = Vocabulary.bytes()


def test_captures_of_a_form() -> None:
    line = "\n- " + regex("[a-z]{1,3}").named("item") + json_schema({"enum": [1, None, "x"]}).named("value")
    form = "Name: " + regex("[A-Z][a-z]{0,5}").named("name") + line.repeat(0, 3)
    for seed in range(4):
        out = constrain.generate(TableModel(257, seed), tokenizer=BYTES, grammar=form, seed=seed, max_tokens=60)
        assert re.match("Name: (.*)", out.text).group(1) == out.captures["name"]  # type: ignore[union-attr]
        parts = re.findall('\n- ([a-z]+)(1|null|"x")', out.text)
        assert out.captures["item"] == [item for item, _ in parts]
        assert out.captures["value"] == [{"1": 1, "null": None, '"x"': "x"}[value] for _, value in parts]


def test_captures_of_a_regex_and_without_names() -> None:
    lm = TableModel(257, 0)
    pattern = "(?P<a>[ab]{2})-(?P<b>c)?"
    out = constrain.generate(lm, tokenizer=BYTES, regex=pattern, seed=1)
    match = re.fullmatch(pattern, out.text)
    assert match is not None
    assert out.captures == {name: text for name, text in match.groupdict().items() if text is not None}
    assert constrain.generate(lm, tokenizer=BYTES, regex="[ab]", seed=1).captures == {}


def test_captures_of_other_samplers() -> None:
    form = regex("[ab]").named("x") + regex("[ab]").named("x")
    for out in constrain.generate(TableModel(257, 0), tokenizer=BYTES, grammar=form, sampler="exact", n=3, seed=1):
        assert out.captures == {"x": list(out.text)}


@dataclass(frozen=True)
class Point:
    x: int
    day: date


def test_captures_of_python_types_are_values_of_the_types() -> None:
    assert json_schema(Point).named("at").plain() == NamedForm(json_schema(to_schema(Point)), "at").plain()
    form = "at " + json_schema(Literal["a", 1]).named("either") + json_schema(Point).named("at")
    program = build_capture_program(form, BYTES)
    assert capture_bytes(program, b'at "a"{"x": 7, "day": "2020-02-29"}') == {
        "either": "a", "at": Point(7, date(2020, 2, 29)),
    }  # fmt: skip
    again = pickle.loads(pickle.dumps(json_schema(Point)))
    assert again == json_schema(Point) and again.python_type is Point


def test_a_validator_of_a_captured_type_refuses_the_text() -> None:
    pydantic = pytest.importorskip("pydantic")

    def refuse_odd(value: int) -> int:
        if value % 2:
            raise ValueError("odd")
        return value

    even = Annotated[int, pydantic.Field(ge=0, le=9), pydantic.AfterValidator(refuse_odd)]
    model = pydantic.create_model("Even", value=(even, ...))
    form = "n" + json_schema(model, style=constrain.Style(whitespace="compact")).named("n")
    lm = TableModel(257, 0)
    drawn = constrain.generate(lm, tokenizer=BYTES, grammar=form, seed=1, n=8, retries=50)
    assert all(one.captures["n"].value % 2 == 0 for one in drawn)
    assert any(one.refusals for one in drawn), "of eight digits, one is odd"


def test_captures_of_a_search() -> None:
    form = regex("[ab]").named("x") + json_schema(bool).named("y")
    found = constrain.generate(TableModel(257, 0), tokenizer=BYTES, grammar=form, search=constrain.BeamSearch(8), n=3)
    assert [one.text for one in found] == [one.captures["x"] + str(one.captures["y"]).lower() for one in found]
