"""Arrays: prefixes, rests, counts, `contains`, `uniqueItems` where decided; and what is written for them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from constrain.errors import UnsatisfiableError, UnsupportedError
from constrain.frontends.json_schema import to_grammar
from constrain.frontends.json_schema.arrays import ArrayCase, meet, tidy, within
from constrain.frontends.json_schema.literals import ANY, NEVER, both
from constrain.grammar.nodes import Node, Repeat
from constrain.style import Style
from tests.recogniser import accepts
from tests.schema_strategies import valid

LISTS: list[Any] = [
    [], [1], [None], ["a"], [1, 2], [1, "a"], ["a", 1], [1, 2, 3], ["a", "b", "c"], [1, None, "a"], [1, 2, 3, 4], [[]],
    [{}], [[1], [2]], [1, 1], [True, 1],
]  # fmt: skip


@pytest.mark.parametrize(
    "schema",
    [
        {"items": {"type": "integer"}},
        {"items": False},
        {"items": {"type": "integer"}, "minItems": 2},
        {"minItems": 1, "maxItems": 3},
        {"maxItems": 0},
        {"prefixItems": [{"type": "integer"}, {"type": "string"}]},
        {"prefixItems": [{"type": "integer"}, {"type": "string"}], "items": False},
        {"prefixItems": [{"type": "integer"}, {"type": "string"}], "items": {"type": "null"}, "minItems": 1},
        {"prefixItems": [{"type": "integer"}, False]},
        {"prefixItems": [{"type": "integer"}], "maxItems": 1},
        {"contains": {"type": "string"}},
        {"contains": {"type": "string"}, "maxItems": 2},
        {"contains": {"type": "string"}, "minItems": 2, "maxItems": 3},
        {"contains": {"type": "string"}, "minItems": 3},
        {"contains": {"type": "string"}, "minContains": 0},
        {"contains": {"type": "string"}, "prefixItems": [{"type": "integer"}]},
        {"contains": {"const": "a"}, "items": {"enum": ["a", "b", "c"]}},
        {"contains": {"type": "integer"}, "items": {"type": "integer"}},
        {"contains": True},
        {"not": {"contains": {"type": "string"}}},
        {"not": {"items": {"type": "integer"}}},
        {"not": {"minItems": 2}},
        {"not": {"prefixItems": [{"type": "integer"}, {"type": "string"}]}},
        {"not": {"maxItems": 2}},
        {"allOf": [{"minItems": 1}, {"maxItems": 2}, {"items": {"type": ["integer", "null"]}}]},
        {"allOf": [{"prefixItems": [{"type": "integer"}]}, {"items": {"minimum": 2}}]},
        {"enum": [[1, "a"], [[]], 3]},
        {"const": [1, True]},
        {"oneOf": [{"items": {"type": "integer"}}, {"items": {"type": "string"}}]},
        {"oneOf": [{"minItems": 2}, {"maxItems": 2}]},
        {"uniqueItems": True, "maxItems": 1},
        {"uniqueItems": True, "prefixItems": [{"type": "integer"}, {"type": "string"}], "items": False},
        {"uniqueItems": False},
    ],
)
def test_verdicts(schema: dict[str, Any]) -> None:
    grammar = to_grammar(schema, style=Style.any())
    for value in [*LISTS, None, 1, {}]:
        assert accepts(grammar, json.dumps(value)) == valid(schema, value), value


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "array", "minItems": 2, "maxItems": 1},
        {"type": "array", "minItems": 1, "items": False},
        {"type": "array", "minItems": 2, "prefixItems": [{}, False]},
        {"type": "array", "contains": False},
        {"type": "array", "contains": {"type": "string"}, "items": {"type": "null"}},
        {"type": "array", "contains": {}, "maxItems": 0},
        {"type": "array", "items": {"$ref": "#"}, "minItems": 1},
    ],
)
def test_no_array(schema: dict[str, Any]) -> None:
    with pytest.raises(UnsatisfiableError):
        to_grammar(schema)


def nodes_in(node: Any) -> Iterator[Node]:
    todo = [node]
    while todo:
        node = todo.pop()
        yield node
        for name in getattr(node, "__slots__", ()):
            part = getattr(node, name)
            todo.extend(item for item in (part if isinstance(part, tuple) else (part,)) if hasattr(item, "__slots__"))


def test_counts_are_counted_and_not_unrolled() -> None:
    grammar = to_grammar({"type": "array", "items": {"type": "null"}, "minItems": 5_000, "maxItems": 1_000_000})
    body = grammar.rules[grammar.start.name]  # type: ignore[union-attr]
    found = list(nodes_in(body))
    assert [(node.low, node.high) for node in found if isinstance(node, Repeat)] == [(4_999, 999_999)]
    assert len(found) < 50


def test_contains_beside_large_bounds_is_refused() -> None:
    with pytest.raises(UnsupportedError) as caught:
        to_grammar({"type": "array", "contains": {"const": 1}, "maxItems": 1_000})
    assert caught.value.pointer == "/contains"
    assert to_grammar({"type": "array", "contains": {"const": 1}})


class Plain:
    """An algebra that sees only what is plain."""

    def nonempty(self, lits: tuple[int, ...]) -> bool:
        return lits != NEVER

    def both(self, one: tuple[int, ...], other: tuple[int, ...]) -> tuple[int, ...]:
        return both(one, other)


def test_cases_have_one_form() -> None:
    assert tidy(ArrayCase((ANY, ANY), ANY)) == ArrayCase()
    assert tidy(ArrayCase(((1,), NEVER, (2,)), ANY)) == ArrayCase(((1,),), NEVER, 0, 1)
    assert tidy(ArrayCase(((1,), (2,)), (3,), high=1)) == ArrayCase(((1,),), NEVER, 0, 1)
    one, other = ArrayCase(((1,),), (2,), 1), ArrayCase((), (3,), 0, 5)
    merged = meet(one, other, Plain())  # type: ignore[arg-type]
    assert merged == ArrayCase(((1, 3),), (2, 3), 1, 5)
    assert within(merged, one) and within(merged, other) and not within(one, merged)
