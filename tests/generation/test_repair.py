"""`constrain.repair`: its arguments, the sketch-guided repair by a model, and what it returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pydantic
import pytest

import constrain
from tests.model_factory import build_model


@dataclass
class Point:
    x: int
    y: int


SCHEMA = {
    "type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"], "additionalProperties": False,
}  # fmt: skip


def test_a_valid_text_is_returned_unchanged() -> None:
    text = '{ "x" : 10 }\n'
    found = constrain.repair(text, schema=SCHEMA)
    assert (found.text, found.distance, found.edits, found.value) == (text, 0, (), {"x": 10})


def test_the_value_has_the_type() -> None:
    found = constrain.repair('{"x": 1, "y": 2', type=Point)
    assert found.value == Point(1, 2)
    assert (found.distance, found.is_nearest) == (1, True)


class Even(pydantic.BaseModel):
    n: int

    @pydantic.field_validator("n")
    @classmethod
    def check(cls, n: int) -> int:
        if n % 2:
            raise ValueError("odd")
        return n


@pytest.mark.parametrize(
    ("tp", "text", "repaired"),
    [(Even, '{"n": 3', '{"n": 3}'), (set, "[0, [1]", "[0, [1]]"), (int, "1e99999999", "1e99999999")],
)
def test_a_text_whose_value_the_type_rejects_is_refused(tp: Any, text: str, repaired: str) -> None:
    with pytest.raises(constrain.ValueRefused, match="the type rejects its value") as caught:
        constrain.repair(text, type=tp)
    assert caught.value.text == repaired


@pytest.mark.parametrize("kind", ["constraint", "form", "keyword"])
def test_a_constraint_is_given_in_three_ways(kind: str) -> None:
    loaded = build_model("llama")
    forms: dict[str, tuple[Any, dict[str, Any]]] = {
        "constraint": (constrain.compile(loaded.vocabulary, regex="a+b"), {}),
        "form": (constrain.regex("a+b"), {}),
        "keyword": (None, {"regex": "a+b"}),
    }
    positional, named = forms[kind]
    assert constrain.repair("aac", positional, **named).text == "aab"


def test_a_model_writes_the_text_again() -> None:
    loaded = build_model("llama")
    found = constrain.repair("x = 3", schema=SCHEMA, model=loaded, prompt="Give x.")
    assert constrain.repair(found.text, schema=SCHEMA).distance == 0
    assert found.distance > 0
    assert "x" in found.value
    assert constrain.repair('{"x":3}', schema=SCHEMA, model=loaded).text == '{"x":3}'


def test_wrong_calls() -> None:
    with pytest.raises(TypeError, match="text"):
        constrain.repair(b"x", regex="a")  # type: ignore[arg-type]
    with pytest.raises(constrain.ArgumentError, match="surrogate"):
        constrain.repair("\ud800", regex="a")
    with pytest.raises(constrain.ConstrainError, match="exactly one"):
        constrain.repair("x", constrain.regex("a"), regex="a")
    with pytest.raises(constrain.ConstrainError, match="exactly one"):
        constrain.repair("x")
    with pytest.raises(TypeError, match="constraint"):
        constrain.repair("x", 5)  # type: ignore[arg-type]
    with pytest.raises(constrain.ArgumentError, match="most_nodes"):
        constrain.repair("x", regex="a", most_nodes=0)
