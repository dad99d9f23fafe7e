"""Bare types have numbers of at most 18 digits where no style is given; everything else keeps the style of the call."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from enum import Enum
from typing import Annotated, Any, Literal

import pytest
from annotated_types import Ge

import constrain
from constrain import Style
from constrain.frontends.python_types import to_schema
from constrain.generation.generation_arguments import ConstraintRequest
from constrain.generation.type_styles import BARE_STYLE, choose_style, is_bare
from tests.model_factory import TableModel


@dataclass
class Point:
    x: int


class Colour(Enum):
    RED = "red"


@pytest.mark.parametrize(
    "tp",
    [int, float, str, bool, None, date, Colour, Literal[1, "a"], list[int], list[list[float]], tuple[int, str],
     set[int], int | None, int | list[str], Annotated[int, Ge(3)]],
)  # fmt: skip
def test_bare_types(tp: Any) -> None:
    assert is_bare(to_schema(tp))
    if tp is not None:
        assert choose_style(ConstraintRequest(type=tp), Style()) == BARE_STYLE
        assert choose_style(ConstraintRequest(type=tp), Style(digits=30)) == Style(digits=30)


@pytest.mark.parametrize("tp", [Point, dict[str, int], list[Point], Point | None, Any, list[Any], object])
def test_types_with_objects(tp: Any) -> None:
    assert not is_bare(to_schema(tp))
    assert choose_style(ConstraintRequest(type=tp), Style()) == Style()


def test_schemas_keep_their_style() -> None:
    assert choose_style(ConstraintRequest(schema={"type": "integer"}), Style()) == Style()
    assert choose_style(ConstraintRequest(regex="a"), Style()) == Style()


def test_a_bare_number_ends_after_18_digits_and_a_given_style_counts() -> None:
    vocabulary = constrain.Vocabulary.bytes()
    bias = dict.fromkeys(range(ord("1"), ord("9") + 1), 50.0)

    def digits(**arguments: Any) -> int:
        text = constrain.generate(
            TableModel(257), tokenizer=vocabulary, max_tokens=99, seed=1, logit_bias=bias, **arguments
        ).text
        return len(text.lstrip("-").partition(".")[0].partition("e")[0].partition("E")[0])

    assert digits(type=int) == 18
    assert digits(type=int, style=Style(digits=25)) == 25
    assert digits(schema={"type": "integer"}) == 40
    assert digits(type=Annotated[int, Ge(10**20)]) >= 21, "what the type asks for is allowed"


def test_an_engine_has_it_too() -> None:
    vocabulary = constrain.Vocabulary.bytes()
    bias = dict.fromkeys(range(ord("1"), ord("9") + 1), 50.0)
    with constrain.Engine(TableModel(257), vocabulary) as engine:
        one = engine.generate(None, type=int, max_tokens=99, seed=1, logit_bias=bias)
    assert len(one.text.lstrip("-")) == 18
