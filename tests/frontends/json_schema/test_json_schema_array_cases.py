"""Cases of arrays against their definition, over all short lists: products, complements, normalised cases, automata."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import product
from random import Random
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from constrain.base.errors import UnsatisfiableError, UnsupportedError
from constrain.base.options import Limits, Style
from constrain.frontends.json_schema import to_grammar
from constrain.frontends.json_schema.algebra.shape_algebra import ShapeAlgebra
from constrain.frontends.json_schema.arrays import array_cases, array_items
from constrain.frontends.json_schema.arrays.value_counts import count_values, list_values
from constrain.frontends.json_schema.core.json_values import to_constant
from constrain.frontends.json_schema.core.schema_sets import ANY, NEVER
from constrain.frontends.json_schema.reading.schema_parser import SchemaParser
from constrain.frontends.json_schema.shapes.array_case import ArrayCase, ContainsConstraint
from tests.dead_end_oracle import dead_parts
from tests.recogniser_oracle import accepts
from tests.schema_set_oracle import holds, made

ALGEBRA, SETS = made()
VALUES = (1, "x", "y", None, True)
"""Two values, where there are two, of each kind that the predicates of `schema_set_oracle` distinguish."""
MOST = 4
LISTS = [list(values) for length in range(MOST + 1) for values in product(VALUES, repeat=length)]
ALL_LISTS = frozenset(range(len(LISTS)))


def equal_pair(values: list[Any]) -> bool:
    """Whether two values are equal, where true is not 1."""
    typed = [(type(value), value) for value in values]
    return len(set(typed)) < len(typed)


def in_case(case: ArrayCase, values: list[Any]) -> bool:
    """Whether a list is in a case, as the docstrings of `ArrayCase` and `ContainsConstraint` say."""
    if len(values) < case.low or (case.high is not None and len(values) > case.high):
        return False
    if not all(
        holds(ALGEBRA, case.prefix[n] if n < len(case.prefix) else case.items, value) for n, value in enumerate(values)
    ):
        return False
    for start, schemas, low, high in case.contains:
        count = sum(holds(ALGEBRA, schemas, value) for value in values[start:])
        if count < low or (high is not None and count > high):
            return False
    return not (case.unique and equal_pair(values)) and (not case.has_duplicates or equal_pair(values))


@lru_cache(maxsize=10_000)
def meaning(case: ArrayCase) -> frozenset[int]:
    """Return the lists of a case, by their indices in LISTS."""
    return frozenset(n for n, values in enumerate(LISTS) if in_case(case, values))


def union(cases: Iterable[ArrayCase | None]) -> frozenset[int]:
    """The lists of some cases."""
    return frozenset().union(*(meaning(case) for case in cases if case is not None))


def random_case(random: Random, has_duplicates: bool = True) -> ArrayCase:
    """A case of arrays."""
    prefix = tuple(random.choice(SETS) for _ in range(random.choice([0, 0, 1, 2])))
    case = ArrayCase(prefix, random.choice([ANY, *SETS]))
    if random.random() < 0.4:
        case = case._replace(low=random.randint(0, 3))
    if random.random() < 0.4:
        case = case._replace(high=random.randint(0, 3))
    if random.random() < 0.5:
        contains = [
            ContainsConstraint(
                random.choice([0, 0, 1, 2]), random.choice(SETS), random.randint(0, 2), random.choice([None, 0, 1, 2])
            )
            for _ in range(random.randint(1, 2))
        ]
        case = case._replace(contains=tuple({(one.start, one.schemas): one for one in contains}.values()))
    if random.random() < 0.3:
        case = case._replace(unique=True)
    elif has_duplicates and random.random() < 0.2:
        case = case._replace(has_duplicates=True)
    return case


def randoms(count: int) -> Iterator[Random]:
    """Sources of random choices, the same ones in each run."""
    return map(Random, range(count))


def test_the_product_of_two_cases() -> None:
    for random in randoms(150):
        one, other = random_case(random), random_case(random)
        assert union([array_cases.intersect_arrays(one, other, ALGEBRA)]) == meaning(one) & meaning(other)


def test_one_form_of_a_case() -> None:
    for random in randoms(150):
        case = random_case(random)
        tidy = array_cases.simplify_array(case)
        assert meaning(tidy) == meaning(case)
        assert array_cases.simplify_array(tidy) == tidy
        assert not any(constraint.schemas == ANY for constraint in tidy.contains)
        assert not tidy.prefix or tidy.prefix[-1] != tidy.items
        assert tidy.items != NEVER or (tidy.high is not None and tidy.high <= len(tidy.prefix))


def test_the_complement_of_a_case() -> None:
    for random in randoms(150):
        case = random_case(random)
        assert union(array_cases.complement_array(array_cases.simplify_array(case), ALGEBRA)) == ALL_LISTS - meaning(
            case
        )


def weaker(case: ArrayCase) -> list[ArrayCase]:
    """Cases with one condition less each, or a laxer one."""
    out = [
        case,
        case._replace(low=max(0, case.low - 1)),
        case._replace(unique=False),
        case._replace(has_duplicates=False),
    ]
    out += [case._replace(prefix=(), items=ANY), case._replace(contains=case.contains[1:])]
    out += [case._replace(prefix=(ANY, *case.prefix[1:]))] if case.prefix else []
    out += [case._replace(high=None), case._replace(high=case.high + 1)] if case.high is not None else []
    for place, constraint in enumerate(case.contains):
        laxer = [constraint._replace(low=0), constraint._replace(high=None)]
        laxer += [constraint._replace(high=constraint.high + 1)] if constraint.high is not None else []
        out += [case._replace(contains=(*case.contains[:place], one, *case.contains[place + 1 :])) for one in laxer]
    return out


def test_syntactic_subset() -> None:
    for random in randoms(150):
        case, other = random_case(random), random_case(random)
        assert all(array_cases.is_array_subset(case, one) for one in weaker(case))
        for one in (*weaker(other), *weaker(case)):
            assert not array_cases.is_array_subset(one, case) or meaning(one) <= meaning(case)


# ---- normalised cases ------------------------------------------------------------------------------------------


def test_normalised_cases() -> None:
    for random in randoms(250):
        case = random_case(random, has_duplicates=False)
        found = array_items.normalise_array(case, ALGEBRA)
        lists = meaning(case)
        assert union(found) == lists
        assert array_items.is_array_satisfiable(case, ALGEBRA) == bool(found)
        for one in found:
            lengths = {len(LISTS[n]) for n in meaning(one)}
            needed = max([one.low, *(constraint.start + constraint.low for constraint in one.contains)])
            assert lengths or one.unique or needed + len(one.contains) > MOST
            if one.high is not None and one.high <= MOST and not one.contains and not one.unique:
                assert lengths == set(range(one.low, one.high + 1))


def test_entailed_constraints_are_dropped() -> None:
    one, text = SETS[2], SETS[3]
    for low in range(4):
        for fewest in range(1, 4):
            case = ArrayCase((one, text, one), ANY, low, contains=(ContainsConstraint(0, one, fewest),))
            met = sum(place in (0, 2) for place in range(low))
            [found] = array_items.normalise_array(case, ALGEBRA)
            assert bool(found.contains) == (met < fewest)


def runs(case: ArrayCase, values: list[Any]) -> tuple[bool, bool]:
    """Whether the automaton of a case can read a list, and whether it may end there."""
    plan = array_items.build_item_automaton(case, ALGEBRA)
    states = {plan.start} if plan.can_finish(plan.start) else set()
    for value in values:
        states = {step.after for state in states for step in plan.steps(state) if holds(ALGEBRA, step.schemas, value)}
    return bool(states), any(map(plan.may_end, states))


def test_automata_read_the_lists_of_a_case() -> None:
    short = [n for n, values in enumerate(LISTS) if len(values) <= 3]
    for random in randoms(60):
        for case in array_items.normalise_array(random_case(random, has_duplicates=False), ALGEBRA):
            case = case._replace(unique=False)  # What differs is not for the automaton to see.
            if not case.contains:
                continue
            lists = meaning(case)
            prefixes = {json.dumps(LISTS[n][:length]) for n in lists for length in (1, 2)}
            needed = max(case.low, *(constraint.start + constraint.low for constraint in case.contains))
            for n in random.sample(short, 40):
                reads, ends = runs(case, LISTS[n])
                assert ends == (n in lists), LISTS[n]
                if len(LISTS[n]) in (1, 2) and needed + len(case.contains) <= MOST:
                    assert reads == (json.dumps(LISTS[n]) in prefixes), LISTS[n]


# ---- how many values there are ---------------------------------------------------------------------------------

SCALARS = [1, 2, "a", True, False, None]
INSIDE = [*SCALARS, *([one] for one in SCALARS), [], *([one, other] for one in SCALARS for other in SCALARS)]
NAMES = ("a", "b")
UNIVERSE = [
    *INSIDE,
    *(list(values) for values in product(SCALARS, repeat=3)),
    *(
        {name: one for name, one in zip(NAMES, values) if one != "absent"}
        for values in product(("absent", *SCALARS), repeat=len(NAMES))
    ),
]
"""All values of the schemas of `random_schema`."""


def random_values(random: Random) -> Any:
    """A schema of few scalars."""
    return random.choice([
        {"enum": random.sample(SCALARS, random.randint(1, 3))}, {"type": "boolean"}, {"const": random.choice(SCALARS)},
        {"type": ["null", "boolean"]}, {"type": "integer", "minimum": 1, "maximum": random.randint(0, 2)},
        {"type": "number", "multipleOf": 1, "exclusiveMinimum": 0, "maximum": 2}, {"type": "string", "pattern": "^a$"},
        {"anyOf": [{"const": 1}, {"enum": [1, 2]}]}, False,
    ])  # fmt: skip


def random_schema(random: Random) -> Any:
    """A schema of few values, all in UNIVERSE."""
    if random.random() < 0.2:
        return random_values(random)
    if random.random() < 0.6:
        schema: dict[str, Any] = {"type": "array", "items": random_values(random), "maxItems": random.randint(0, 3)}
        if random.random() < 0.5:
            schema["prefixItems"] = [random_values(random) for _ in range(random.randint(1, 2))]
        if random.random() < 0.5:
            schema["minItems"] = random.randint(0, 3)
        if random.random() < 0.3:
            schema["uniqueItems"] = True
        if random.random() < 0.3:
            schema |= {
                "contains": random_values(random),
                random.choice(["minContains", "maxContains"]): random.randint(1, 2),
            }
        if random.random() < 0.1:
            schema["not"] = {"uniqueItems": True}
        return schema
    names = random.sample(NAMES, random.randint(0, 2))
    schema = {
        "type": "object", "additionalProperties": False, "properties": {name: random_values(random) for name in names},
        "required": [name for name in names if random.random() < 0.4],
    }  # fmt: skip
    if random.random() < 0.5:
        schema[random.choice(["minProperties", "maxProperties"])] = random.randint(0, 2)
    if random.random() < 0.3:
        schema["dependentRequired"] = {"a": ["b"]}
    if random.random() < 0.2:
        schema["not"] = {"required": ["a"]}
    return schema


@pytest.mark.parametrize("cap", [1, 2, 3, 4, 10])
def test_other_names_of_objects_are_counted(cap: int) -> None:
    schema = {
        "type": "object", "properties": {"a": False, "b": False}, "patternProperties": {"^[ab]$": {"const": 1}},
        "additionalProperties": False,
    }  # fmt: skip
    reader = SchemaParser(schema, None, Style.any(), Limits())
    assert count_values(reader.root, cap, ShapeAlgebra(reader, Style.any(), Limits())).least == 1
    reader = SchemaParser({"type": "object", "properties": {"a": True, "b": False}}, None, Style.any(), Limits())
    assert count_values(reader.root, cap, ShapeAlgebra(reader, Style.any(), Limits())) == (cap, None)


def test_count_values_and_list_values_match_enumeration() -> None:
    for random in randoms(50):
        schema = random_schema(random)
        if random.random() < 0.2:
            schema = {"anyOf": [schema, random_schema(random)]}
        judge = Draft202012Validator(schema)
        reader = SchemaParser(schema, None, Style.any(), Limits())
        algebra = ShapeAlgebra(reader, Style.any(), Limits())
        wanted = {to_constant(value, "") for value in UNIVERSE if judge.is_valid(value)}
        least, most = count_values(reader.root, 10_000, algebra)
        assert least <= len(wanted) and (most is None or most >= len(wanted)), json.dumps(schema)
        found = list_values(reader.root, algebra)
        assert found is not None and len(set(found)) == len(found), json.dumps(schema)
        assert set(found) == wanted, json.dumps(schema)
        for cap in {1, len(wanted), len(wanted) + 1} - {0}:
            capped = count_values(reader.root, cap, algebra)
            assert capped.least <= min(cap, len(wanted)), json.dumps(schema)
            assert capped.most is None or capped.most >= len(wanted), json.dumps(schema)


# ---- what is written -------------------------------------------------------------------------------------------


def random_array_schema(random: Random) -> dict[str, Any]:
    """A schema of arrays, with or without an end."""
    schema: dict[str, Any] = {"type": "array", "items": {"type": ["integer", "string"]}}
    keywords = {
        "items": lambda: random_values(random),
        "prefixItems": lambda: [random_values(random), {"type": "integer"}][: random.randint(1, 2)],
        "minItems": lambda: random.randint(0, 3), "maxItems": lambda: random.randint(0, 3),
        "contains": lambda: random_values(random), "minContains": lambda: random.randint(0, 2),
        "maxContains": lambda: random.randint(0, 2), "uniqueItems": lambda: True, "not": lambda: {"uniqueItems": True},
    }  # fmt: skip
    for keyword in random.sample(sorted(keywords), random.randint(1, 4)):
        schema[keyword] = keywords[keyword]()
    return schema


def test_written_arrays() -> None:
    style = Style(whitespace=2)
    for random in randoms(150):
        schema = random_array_schema(random)
        judge = Draft202012Validator(schema)
        lists = [random.choices(SCALARS, k=random.randint(0, 4)) for _ in range(12)] + [[], [1], [1, 1], [1, "a", 1]]
        whole = {"type": "object", "required": ["k"], "properties": {"k": schema}, "additionalProperties": False}
        try:
            grammar = to_grammar(whole, style=style)
        except UnsatisfiableError:
            assert not any(map(judge.is_valid, lists)), json.dumps(schema)
            continue
        except UnsupportedError:
            continue
        assert dead_parts(grammar) == [], json.dumps(schema)
        for values in lists:
            text = json.dumps({"k": values}, indent=2)
            assert accepts(grammar, text) == judge.is_valid(values), (json.dumps(schema), text)
