"""Floats as `json.dumps` writes them: under any constraint, exactly the valid ones are accepted."""

from __future__ import annotations

import json
import struct
from fractions import Fraction
from random import Random
from typing import Any

import pytest

from constrain.base.errors import UnsatisfiableError
from constrain.base.options import Style
from constrain.compilation.constraint_compiler import compile
from constrain.vocabulary.vocabulary import Vocabulary
from tests.text_acceptance import accepts_text

VOCABULARY = Vocabulary.bytes()
CONSTRAINTS, FLOATS = 500, 12
MULTIPLES = [0.5, 2.5, 3, 5, 1000, 7, 0.01, 0.1, 997, 1e-7, 0.123456789, 1e17, 12.5]


def exact(value: float) -> Fraction:
    """Return the number that the JSON text of a value spells."""
    return Fraction(json.dumps(value))


def is_valid(schema: dict[str, Any], value: Fraction) -> bool:
    """Judge a number by the keywords, JSON Schema Validation sections 6.1 and 6.2."""
    if "anyOf" in schema:
        return any(is_valid(one, value) for one in schema["anyOf"])
    return (
        ("multipleOf" not in schema or (value / exact(schema["multipleOf"])).denominator == 1)
        and ("minimum" not in schema or value >= exact(schema["minimum"]))
        and ("exclusiveMinimum" not in schema or value > exact(schema["exclusiveMinimum"]))
        and ("maximum" not in schema or value <= exact(schema["maximum"]))
        and ("exclusiveMaximum" not in schema or value < exact(schema["exclusiveMaximum"]))
        and ("not" not in schema or not is_valid(schema["not"], value))
        and ("enum" not in schema or value in map(exact, schema["enum"]))
        and (schema.get("type") != "integer" or value.denominator == 1)
    )


def random_float(random: Random) -> float:
    """Return a float: one of few digits, or one with any exponent, or any bits."""
    kind = random.random()
    if kind < 0.4:
        return float(random.randint(-2000, 2000)) / random.choice([1, 1, 2, 10, 100])
    if kind < 0.8:
        return random.choice([-1, 1]) * random.random() * 10.0 ** random.randint(-20, 30)
    value = float(struct.unpack("<d", random.randbytes(8))[0])
    return value if abs(value) < 1e308 else 0.0  # neither an infinity nor a NaN


def random_schema(random: Random, depth: int = 0) -> dict[str, Any]:
    """Return bounds, multiples, listed values, and combinations."""
    if depth == 0 and random.random() < 0.15:
        return {"anyOf": [random_schema(random, 1) for _ in range(2)]}
    if random.random() < 0.1:
        return {"enum": [random_float(random) for _ in range(random.randint(1, 5))]}
    schema: dict[str, Any] = {"type": random.choice(["number", "number", "integer"])}
    low, high = sorted([random_float(random), random_float(random)])
    if random.random() < 0.5:
        schema[random.choice(["minimum", "exclusiveMinimum"])] = low
    if random.random() < 0.5:
        schema[random.choice(["maximum", "exclusiveMaximum"])] = high
    if random.random() < 0.6:
        schema["multipleOf"] = random.choice(MULTIPLES)
    if random.random() < 0.1:
        schema["not"] = {"multipleOf": random.choice(MULTIPLES)}
    return schema


def floats_near(schema: dict[str, Any], random: Random) -> list[float]:
    """Return floats of which many are valid: around bounds, multiples, listed values."""
    parts = schema.get("anyOf", [schema])
    found = [value for part in parts for value in part.get("enum", ())]
    for _ in range(FLOATS):
        part = random.choice(parts)
        value = random_float(random)
        if "multipleOf" in part:
            value = float(part["multipleOf"]) * random.choice([random.randint(-99, 99), 2.0 ** random.randint(0, 90)])
        ends = [part[name] for name in part if name.endswith(("inimum", "aximum"))]
        if ends and random.random() < 0.3:
            value = random.choice(ends) + random.choice([0, 0, -1, 1]) * random.choice([1, 0.5, 1e-3, 1e16])
        found.append(float(value))
    return found


@pytest.mark.slow
def test_valid_floats_under_500_random_constraints() -> None:
    valid = 0
    for seed in range(CONSTRAINTS):
        random = Random(seed)
        schema = random_schema(random)
        values = floats_near(schema, random)
        try:
            constraint = compile(VOCABULARY, schema=schema, style=Style.any())
        except UnsatisfiableError:
            assert not any(is_valid(schema, exact(value)) for value in values), schema
            continue
        for value in values:
            wanted = is_valid(schema, exact(value))
            assert accepts_text(constraint, json.dumps(value)) == wanted, (schema, value)
            valid += wanted
    assert valid > 2 * CONSTRAINTS


@pytest.mark.parametrize("multiple", [0.5, 2.5, 3, 5, 1000])
def test_large_floats_under_multiples(multiple: float) -> None:
    """Of these, `json.dumps` writes an exponent."""
    constraint = compile(VOCABULARY, schema={"type": "number", "multipleOf": multiple}, style=Style.any())
    random, valid = Random(str(multiple)), 0
    for _ in range(300):
        value = random.random() * 10.0 ** random.randint(16, 300)
        wanted = (exact(value) / exact(multiple)).denominator == 1
        assert accepts_text(constraint, json.dumps(value)) == wanted, value
        valid += wanted
    assert valid > 50


@pytest.mark.parametrize(
    ("schema", "text", "is_member"),
    [
        ({"multipleOf": 2.5}, "0.025e2", True), ({"multipleOf": 2.5}, "0.026e2", False),
        ({"multipleOf": 0.5}, "8.73248e+22", True), ({"multipleOf": 0.5}, "8.73248e-2", False),
        ({"multipleOf": 0.123456789}, "0.123456789", True), ({"multipleOf": 0.123456789}, "1e308", False),
        ({"type": "integer", "multipleOf": 0.123456789}, "1e308", False),
        ({"type": "integer", "multipleOf": 1e-8}, "12391239123", True),
        ({"multipleOf": 0.0001}, "0.0075", True), ({"multipleOf": 0.0001}, "0.00751", False),
        ({"multipleOf": 0.01}, "4.35", True), ({"multipleOf": 1.5}, "35", False),
    ],
)  # fmt: skip
def test_spellings_that_were_narrowed_and_the_suite(schema: dict[str, Any], text: str, is_member: bool) -> None:
    constraint = compile(VOCABULARY, schema={"type": "number", **schema}, style=Style.any())
    assert accepts_text(constraint, text) == is_member
