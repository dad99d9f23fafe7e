"""uniqueItems over few constants: a rule for each set of values that are left, made when it is reached."""

from __future__ import annotations

import json
from itertools import product
from typing import Any

import pytest

from constrain.errors import UnsatisfiableError, UnsupportedError
from constrain.frontends.json_schema import to_grammar
from constrain.style import Style
from tests.dead_ends import dead_parts
from tests.recogniser import accepts
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
    for size in range(4):
        for value in product(VALUES, repeat=size):
            assert accepts(grammar, json.dumps(value)) == valid(schema, list(value)), value


def test_one_number_in_two_spellings_is_one_value() -> None:
    grammar = to_grammar({"items": {"enum": [1, 2]}, "uniqueItems": True}, style=Style.any())
    assert accepts(grammar, "[1.0, 2]") and not accepts(grammar, "[1, 1.0]")


def test_an_indented_style() -> None:
    grammar = to_grammar({"items": {"enum": [1, 2]}, "uniqueItems": True}, style=Style(whitespace=2))
    assert accepts(grammar, json.dumps([2, 1], indent=2)) and not accepts(grammar, json.dumps([2, 2], indent=2))


def test_only_what_is_written_costs_rules() -> None:
    grammar = to_grammar({"type": "array", "items": {"enum": list(range(60))}, "uniqueItems": True})
    assert accepts(grammar, "[3, 5, 59]") and not accepts(grammar, "[3, 5, 3]")
    assert len(grammar.rules) < 200


def test_more_items_than_values() -> None:
    with pytest.raises(UnsatisfiableError):
        to_grammar({"type": "array", "items": {"type": "boolean"}, "uniqueItems": True, "minItems": 3})


@pytest.mark.parametrize("items", [{"type": "integer"}, {"enum": [[1], [2]]}, {"enum": list(range(200))}])
def test_other_items_are_refused(items: dict[str, Any]) -> None:
    with pytest.raises(UnsupportedError) as caught:
        to_grammar({"type": "array", "items": items, "uniqueItems": True})
    assert caught.value.pointer == "/uniqueItems"
