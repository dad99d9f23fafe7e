"""Shapes: products, unions and complements of listed values; texts that exactly one of many branches holds."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from constrain.base.errors import UnsatisfiableError
from constrain.base.options import Limits, Style
from constrain.frontends.json_schema import to_grammar
from constrain.frontends.json_schema.algebra import value_keywords
from constrain.frontends.json_schema.algebra.one_of import MANY_BRANCHES
from constrain.frontends.json_schema.algebra.shape_algebra import ShapeAlgebra
from constrain.frontends.json_schema.algebra.shape_operations import (
    complement_shape,
    expand_enums,
    intersect_shapes,
    unite_shapes,
)
from constrain.frontends.json_schema.core.json_values import to_constant
from constrain.frontends.json_schema.reading.schema_parser import SchemaParser
from tests.recogniser_oracle import accepts

SCALARS = [1, 2, "a", "b", None, True]
LISTED: list[Any] = [
    *([one] for one in SCALARS), *([one, other] for one in SCALARS for other in SCALARS), [],
    *({name: one} for name in "ab" for one in SCALARS),
    *({"a": one, "b": other} for one in SCALARS for other in SCALARS),
]  # fmt: skip
"""Arrays and objects."""


def algebra_of(*schemas: Any) -> tuple[ShapeAlgebra, list[tuple[int, ...]]]:
    reader = SchemaParser({"prefixItems": list(schemas)}, None, Style.any(), Limits())
    algebra = ShapeAlgebra(reader, Style.any(), Limits())
    return algebra, [
        reader.parse_subschema(raw, reader.references.main, f"/prefixItems/{n}") for n, raw in enumerate(schemas)
    ]


def random_schema(random: Random) -> Any:
    return random.choice([
        {"enum": random.sample(LISTED, 40) + SCALARS[:2]}, {"enum": random.sample(LISTED, 4)}, {"type": "array"},
        {"type": "object"}, {"type": ["string", "number"]}, {"required": ["a"]}, {"minItems": 2},
        {"items": {"type": "string"}},
        {"properties": {"a": {"const": 1}}, "type": ["object", "null"]}, {"type": "boolean"},
    ])  # fmt: skip


@pytest.mark.parametrize("first_seed", range(0, 24, 2))
def test_enum_values_and_not_in_enum(first_seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(value_keywords, "MANY_VALUES", 10)
    for seed in range(first_seed, first_seed + 2):
        random = Random(seed)
        one, other = {"enum": random.sample(LISTED, 40) + SCALARS[:2]}, random_schema(random)
        algebra, (left, right) = algebra_of(one, other)
        shapes = [algebra.unfold(left), algebra.unfold(right)]
        assert len(shapes[0].enums) == 2
        expected = {
            "meet": intersect_shapes(*shapes, algebra=algebra), "join": unite_shapes(shapes),
            "negate": intersect_shapes(complement_shape(shapes[0], algebra), algebra.unfold(right), algebra=algebra),
            "spread": expand_enums(shapes[0], algebra.table),
        }  # fmt: skip
        judges = [Draft202012Validator(schema) for schema in (one, other)]
        for value in random.sample(LISTED, 5) + SCALARS[:3]:
            exact = algebra.unfold(algebra.table.add_constant(to_constant(value, "")))
            first, second = (judge.is_valid(value) for judge in judges)
            wanted = {
                "meet": first and second,
                "join": first or second,
                "negate": second and not first,
                "spread": first,
            }
            for name, shape in expected.items():
                met = intersect_shapes(
                    expand_enums(shape, algebra.table), expand_enums(exact, algebra.table), algebra=algebra
                )
                assert algebra._is_shape_satisfiable(met) == wanted[name], (name, one, other, value)


PATTERNS = ["^a", "b$", "^[ab]{2}$", "ab", "^.$", "^b", "a$", "^(ab)*$", "^$", "aa", "bb", "^.{3}$", "^c"]
TEXTS = [""] + [
    one + two + three for one in "abc" for two in ("", "a", "b") for three in ("", "a", "b") if two or not three
]


@pytest.mark.parametrize("constants", [0, 2])
@pytest.mark.parametrize("count", [MANY_BRANCHES - 1, MANY_BRANCHES, MANY_BRANCHES + 1, len(PATTERNS)])
def test_texts_that_exactly_one_of_many_branches_holds(count: int, constants: int) -> None:
    branches: list[Any] = [{"type": "string", "pattern": pattern} for pattern in PATTERNS[:count]]
    branches += [{"const": text} for text in ("ab", "cc")[:constants]] + [
        {"type": "integer"},
        {"minimum": 2, "type": "number"},
    ]
    schema = {"oneOf": branches}
    judge = Draft202012Validator(schema)
    for whole in (schema, {"not": schema}, {"not": schema, "type": "string"}, {"allOf": [schema, {"maxLength": 2}]}):
        grammar = to_grammar(whole, style=Style.any())
        judge = Draft202012Validator(whole)
        for value in [*TEXTS, 1, 2, 1.5, 2.5, None]:
            assert accepts(grammar, json.dumps(value)) == judge.is_valid(value), (whole, value)
    algebra, [schemas] = algebra_of(schema)
    texts = algebra.unfold(schemas).strings
    assert (len(texts) == 1 and {kind for _, kind, _ in texts[0].lang} == {"dfa"}) == (count > MANY_BRANCHES)


def test_no_text_is_in_exactly_one_of_many_branches() -> None:
    branches = [{"type": "string", "pattern": pattern} for pattern in ["a", "b"] * MANY_BRANCHES]
    with pytest.raises(UnsatisfiableError):
        to_grammar({"oneOf": branches})
    grammar = to_grammar({"oneOf": [*branches, {"const": "c"}, {"type": "null"}]})
    assert accepts(grammar, "null") and accepts(grammar, '"c"') and not accepts(grammar, '"a"')
    apart = [{"type": "string", "pattern": f"^{n}$", "maxLength": 9} for n in range(MANY_BRANCHES + 1)]
    algebra, [schemas] = algebra_of({"oneOf": apart})
    assert len(algebra.unfold(schemas).strings) == len(apart)
