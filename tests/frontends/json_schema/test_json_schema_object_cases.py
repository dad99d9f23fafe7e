"""Cases of objects against their definition, over all small objects: products, complements, clauses, normal forms."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import product
from math import prod
from random import Random
from typing import Any

import pytest

from constrain.frontends.json_schema.algebra.discriminators import split_by_discriminator
from constrain.frontends.json_schema.core.schema_sets import ANY, NEVER, SchemaSet
from constrain.frontends.json_schema.objects import object_cases, object_members
from constrain.frontends.json_schema.objects.member_constraints import (
    ResolvedObject,
    is_satisfied_by_any_member,
    resolve_constraints,
)
from constrain.frontends.json_schema.objects.normalised_object import NormalisedObject
from constrain.frontends.json_schema.objects.object_clauses import resolve_clauses
from constrain.frontends.json_schema.objects.object_derivatives import ClausalObject
from constrain.frontends.json_schema.shapes.object_case import ANY_OBJECT, NO_NAMES, Cell, ObjectCase
from constrain.frontends.json_schema.strings.string_languages import ALL, Language
from tests.schema_set_oracle import VALUES, holds, in_object_case, language_holds, made

ALGEBRA, SETS = made()
SOME_SETS = [schemas for schemas in SETS if schemas != NEVER]
DECLARED, OTHERS = ("a", "b"), ("ac", "c")
ABSENT = object()


def objects_of(others: tuple[str, ...], values: tuple[Any, ...]) -> list[dict[str, Any]]:
    """All objects with these names besides the declared ones, or some of them."""
    chosen = product(*[(ABSENT, *VALUES)] * len(DECLARED), *[(ABSENT, *values)] * len(others))
    return [{name: one for name, one in zip(DECLARED + others, row) if one is not ABSENT} for row in chosen]


OBJECTS = objects_of(OTHERS, VALUES[:2])
ALL_OBJECTS = frozenset(range(len(OBJECTS)))
MORE_OBJECTS = objects_of((*OTHERS, "ad", "d"), VALUES)
"""Enough undeclared names of each language for cases of two members at least."""

START_A: Language = frozenset(((True, "pattern", "^a"),))
OTHER_START: Language = frozenset(((False, "pattern", "^a"),))
FINITE: Language = frozenset(((True, "pattern", "^a[cd]?$"),))
OTHERS_THAN_FINITE: Language = frozenset(((False, "pattern", "^a[cd]?$"),))
NEEDS = [(), (("a", frozenset("b")),), (("b", frozenset("a")),), (("a", frozenset("b")), ("b", frozenset("a")))]


def random_cells(random: Random) -> tuple[Cell, ...]:
    """Disjoint languages of names, with sets of values."""
    langs = random.choice(
        [(), (ALL,), (ALL,), (START_A,), (START_A, OTHER_START), (FINITE,), (FINITE, OTHERS_THAN_FINITE)]
    )
    if langs == (ALL,) and random.random() < 0.5:
        return ANY_OBJECT.cells
    return tuple((lang, schemas) for lang in langs if (schemas := random.choice(SETS)) != NEVER)


def random_case(random: Random, clauses: bool = True, most: int = 3) -> ObjectCase:
    """A case of objects; most: of the bounds on the number of members."""
    names = random.sample(DECLARED, random.randrange(3))
    values = tuple((name, random.choice(SETS)) for name in names)
    case = ObjectCase(values, frozenset(name for name in names if random.random() < 0.5), cells=random_cells(random))
    if random.random() < 0.3:
        case = case._replace(mentioned=frozenset(names[:1]))
    if random.random() < 0.3:
        case = case._replace(low=random.randint(0, most))
    if random.random() < 0.3:
        case = case._replace(high=random.randint(0, most))
    if len(names) == 2 and random.random() < 0.3:
        case = case._replace(needs=random.choice(NEEDS))
    if random.random() < 0.3:
        langs = random.sample([ALL, START_A, OTHER_START, FINITE, OTHERS_THAN_FINITE], random.randint(1, 2))
        case = case._replace(existentials=tuple((lang, random.choice(SOME_SETS)) for lang in langs))
    if clauses and random.random() < 0.3:
        case = case._replace(clauses=tuple(random_union(random) for _ in range(random.randint(1, 2))))
    return case


def random_union(random: Random) -> tuple[ObjectCase, ...]:
    """Two or three cases without clauses."""
    return tuple(dict.fromkeys(random_case(random, clauses=False) for _ in range(random.randint(2, 3))))


def randoms(count: int) -> Iterator[Random]:
    """Sources of random choices, the same ones in each run."""
    return map(Random, range(count))


@lru_cache(maxsize=10_000)
def meaning(case: ObjectCase) -> frozenset[int]:
    """Return the objects of a case, by their indices in OBJECTS."""
    return frozenset(n for n, value in enumerate(OBJECTS) if in_object_case(ALGEBRA, case, value))


def union(found: Iterable[ObjectCase | None]) -> frozenset[int]:
    """The objects of some cases."""
    return frozenset().union(*(meaning(case) for case in found if case is not None))


def intersection(unions: Iterable[Iterable[ObjectCase]]) -> frozenset[int]:
    """The objects of a product of unions."""
    return ALL_OBJECTS.intersection(*map(union, unions))


def test_the_product_of_two_cases() -> None:
    for random in randoms(300):
        one, other = random_case(random), random_case(random)
        met = object_cases.intersect_objects(one, other, ALGEBRA)
        assert union([met]) == meaning(one) & meaning(other)
        for name in dict(met.names) if met is not None and not one.clauses and not other.clauses else ():
            telling = [case for case in (one, other) if name in dict(case.names)]
            assert (name in met.mentioned) == all(name in case.mentioned for case in telling)


def test_the_complement_of_a_case() -> None:
    for random in randoms(300):
        case = random_case(random)
        found = object_cases.complement_object(case, ALGEBRA)
        assert union(found) == ALL_OBJECTS - meaning(case)
        assert not any(schemas == NEVER for one in found for _, schemas in one.cells)
        if not case.clauses and not case.needs:  # Keys of `properties` stay such, so that they are written first.
            assert all((name in one.mentioned) == (name in case.mentioned) for one in found for name, _ in one.names)


def test_clauses_are_narrowed_and_resolved() -> None:
    for random in randoms(300):
        case = random_case(random)._replace(clauses=(random_union(random), random_union(random)))
        narrowed = object_cases.propagate_units(case, ALGEBRA)
        assert union([narrowed]) == meaning(case)
        assert narrowed is None or object_cases.propagate_units(narrowed, ALGEBRA) == narrowed
        resolved = list(resolve_clauses(case, ALGEBRA))
        assert not any(one.clauses for one in resolved)
        assert union(resolved) == meaning(case)


def test_factored_product_of_unions() -> None:
    for random in randoms(150):
        product_of = [
            (random_case(random),) if random.random() < 0.3 else random_union(random)
            for _ in range(random.randint(1, 4))
        ]
        wanted = intersection(product_of)
        case = object_cases.factor_unions(product_of, ALGEBRA)
        assert union([case]) == wanted
        if case is not None:
            left = object_cases.drop_excluded_cases(product_of, case, ALGEBRA)
            assert sum(map(len, left)) <= sum(map(len, product_of))
            assert meaning(case._replace(clauses=())) & intersection(left) == wanted


def test_subsumed_cases_are_removed() -> None:
    for random in randoms(300):
        given = [random_case(random) for _ in range(random.randint(0, 5))]
        found = object_cases.drop_subsumed(given)
        assert set(found) <= set(given)
        assert union(found) == union(given)


def weaker(case: ObjectCase) -> list[ObjectCase]:
    """Cases with one condition less each, or a laxer one."""
    out = [case._replace(low=max(0, case.low - 1)), case._replace(needs=()), case._replace(existentials=())]
    out += [case._replace(clauses=case.clauses[1:]), case._replace(cells=ANY_OBJECT.cells), case]
    out += [case._replace(required=case.required - {name}) for name in case.required]
    if case.high is not None:
        out += [case._replace(high=None), case._replace(high=case.high + 1)]
    if case.cells == ANY_OBJECT.cells:
        out += [case._replace(names=case.names[1:], required=NO_NAMES)]
        out += [case._replace(names=tuple((name, ANY) for name, _ in case.names))]
    return out


def test_a_case_is_within_one_with_less_conditions() -> None:
    for random in randoms(300):
        case = random_case(random)
        for other in weaker(case):
            for order in ([case, other], [other, case]):
                assert object_cases.drop_subsumed(order) in (
                    [other],
                    [case] if meaning(case) == meaning(other) else [other],
                )


EXCLUDING = [
    (ObjectCase(low=2), ObjectCase(high=1)),
    (ObjectCase((("a", SETS[2]),), frozenset("a")), ObjectCase((("a", SETS[3]),))),
    (ObjectCase((("a", SETS[2]),)), ObjectCase((("a", SETS[3]),), frozenset("a"))),
    (ObjectCase((("a", ANY),), frozenset("a")), ObjectCase(cells=())),
    (ObjectCase((("a", ANY),), frozenset("a")), ObjectCase((("b", ANY),), cells=((OTHER_START, ANY),))),
    (ObjectCase((("a", SETS[2]),), frozenset("a")), ObjectCase(cells=((ALL, SETS[3]),))),
]


@pytest.mark.parametrize(("case", "way"), [*EXCLUDING, *((way, case) for case, way in EXCLUDING)])
def test_excluded_cases_are_dropped(case: ObjectCase, way: ObjectCase) -> None:
    case = case._replace(names=(*case.names, ("c", ANY)))
    other, third = ObjectCase((("c", SETS[2]),)), ObjectCase((("c", SETS[4]),), low=1)
    narrowed = object_cases.propagate_units(case._replace(clauses=((way, other, third),)), ALGEBRA)
    assert narrowed is not None and narrowed.clauses == ((other, third),)
    narrowed = object_cases.propagate_units(case._replace(clauses=((way, other),)), ALGEBRA)
    assert narrowed is not None and not narrowed.clauses and dict(narrowed.names)["c"] == SETS[2]
    assert object_cases.propagate_units(case._replace(clauses=((way,),)), ALGEBRA) is None


def random_case_with_a(random: Random) -> ObjectCase:
    """A case that says something of the key `a`, and often of nothing else."""
    case = random_case(random) if random.random() < 0.5 else ANY_OBJECT
    names = (("a", random.choice(SETS)), *((name, other) for name, other in case.names if name != "a"))
    return case._replace(
        names=names, required=case.required | {"a"} if random.random() < 0.5 else case.required - {"a"}
    )


def test_a_product_split_by_a_key() -> None:
    count = 0
    for random in randoms(100):
        product_of = [
            tuple(dict.fromkeys(random_case_with_a(random) for _ in range(random.randint(2, 3))))
            for _ in range(random.randint(2, 4))
        ]
        if random.random() < 0.5:
            product_of.append((ObjectCase((("b", SETS[2]),)), ObjectCase((("b", SETS[3]),))))  # says nothing of `a`
        found = split_by_discriminator(product_of, frozenset(), ALGEBRA)
        assert split_by_discriminator(product_of, frozenset(DECLARED), ALGEBRA) is None
        if found is not None:
            count += 1
            name, pieces = found
            assert name in DECLARED
            assert (
                max(map(len, pieces), default=0) <= len(product_of) + 1
            )  # with one that says what the value of the key is
            assert not any(ANY_OBJECT in ways for piece in pieces for ways in piece)
            assert frozenset().union(*map(intersection, pieces)) == intersection(product_of)
            assert sum(prod(map(len, piece)) for piece in pieces) < prod(map(len, product_of))
    assert count > 10


# ---- normalised cases ------------------------------------------------------------------------------------------


def in_normalised_case(case: NormalisedObject, value: dict[str, Any]) -> bool:
    """Return whether an object is in a normalised case, as its docstring says."""
    names = dict(case.names)
    if not case.low <= len(value) <= (len(value) if case.high is None else case.high):
        return False
    if not case.required <= value.keys() or not value.keys().isdisjoint(case.forbidden):
        return False
    others = [name for name in value if name not in names]
    if any(name in value and not needed <= value.keys() for name, needed in case.needs.items()):
        return False
    if not all(holds(ALGEBRA, names[name], one) for name, one in value.items() if name in names):
        return False
    # Undeclared members: of each class at least one, a different one for each; each in some cell or class.
    kinds = [*case.classes, *case.cells]
    candidates = [
        [
            kind
            for kind, (lang, said) in enumerate(kinds)
            if language_holds(lang, name) and holds(ALGEBRA, said, value[name])
        ]
        for name in others
    ]
    wanted = set(range(len(case.classes)))
    return any(wanted <= set(chosen) for chosen in product(*candidates))


def test_normalised_cases() -> None:
    for random in randoms(300):
        case = random_case(random)
        found = object_members.normalise_object(case, ALGEBRA)
        for one in found if not case.existentials and not case.clauses else ():
            flags = [name in case.mentioned for name, _ in one.names]
            assert flags == sorted(flags)
        assert not any(isinstance(one, ClausalObject) for one in found)
        for number, value in enumerate(OBJECTS):
            assert any(in_normalised_case(one, value) for one in found) == (number in meaning(case)), value  # type: ignore[arg-type]
        assert object_members.is_object_satisfiable(case, ALGEBRA) == bool(found)


def test_object_satisfiability() -> None:
    for random in randoms(300):
        case = random_case(random, most=2)
        if len(case.existentials) + sum(len(way.existentials) for clause in case.clauses for way in clause) <= 2:
            there_is = any(in_object_case(ALGEBRA, case, value) for value in MORE_OBJECTS)
            assert object_members.is_object_satisfiable(case, ALGEBRA) == there_is


@pytest.mark.parametrize(
    ("case", "some", "will_do"),
    [
        (ObjectCase(), (ALL, ANY), True),
        (ObjectCase(), (ALL, SETS[2]), False),
        (ObjectCase(), (START_A, ANY), False),
        (ObjectCase(cells=((START_A, SETS[2]),)), (START_A, SETS[2]), True),
        (ObjectCase(cells=((START_A, SETS[2]),)), (ALL, SETS[2]), True),
        (ObjectCase(cells=((START_A, SETS[2]),)), (ALL, SETS[3]), False),
        (ObjectCase((("b", ANY),)), (START_A, ANY), False),
        (ObjectCase((("b", ANY),), cells=((START_A, ANY),)), (START_A, ANY), False),
        (ObjectCase((("b", ANY),), frozenset("b"), cells=((START_A, ANY),)), (START_A, ANY), True),
        (ObjectCase((("b", NEVER),), cells=((START_A, ANY),)), (START_A, ANY), True),
        (ObjectCase((("a", ANY),), cells=((START_A, ANY),)), (START_A, ANY), True),
        (ObjectCase((("a", SETS[3]),), frozenset("a"), cells=((START_A, SETS[2]),)), (START_A, SETS[2]), False),
        (ObjectCase((("a", SETS[3]),), cells=((START_A, SETS[2]),)), (START_A, SETS[2]), False),
    ],
)
def test_a_constraint_that_any_member_satisfies_becomes_a_count(case: ObjectCase, some: Cell, will_do: bool) -> None:
    assert is_satisfied_by_any_member(case, some, ALGEBRA) == will_do
    placed = list(resolve_constraints(case._replace(existentials=(some,)), ALGEBRA))
    if will_do:
        assert placed == [ResolvedObject(case._replace(low=len(case.required) + 1))]
    else:
        assert all(one.classes or len(one.case.required) > len(case.required) for one in placed)


def test_each_key_of_a_normalised_case_can_occur() -> None:
    for random in randoms(50):
        for one in object_members.normalise_object(random_case(random, clauses=False, most=2), ALGEBRA):
            assert isinstance(one, NormalisedObject)
            left = {name for name, _ in one.names}
            found = False
            for value in MORE_OBJECTS:
                if (not found or not left.isdisjoint(value)) and in_normalised_case(one, value):
                    found, left = True, left.difference(value)
            assert found and not left
            if one.low:
                assert len(one.required) < one.low


def test_dependencies_are_closed_transitively() -> None:
    names = "abcde"
    for random in randoms(100):
        needs = {name: frozenset(random.sample(names, random.choice([0, 1, 1, 2]))) - {name} for name in names}
        required = frozenset(random.sample(names, 1))
        dependencies = tuple((name, needed) for name, needed in needs.items() if needed)
        [found] = object_members.normalise_object(
            ObjectCase(tuple((name, ANY) for name in names), required, needs=dependencies), ALGEBRA
        )
        reached = {name: {name} for name in names}
        for _ in names:
            for name in names:
                reached[name] |= set().union(*(needs[other] for other in reached[name]))
        assert isinstance(found, NormalisedObject)
        assert found.required == set().union(*(reached[name] for name in required))
        assert found.needs == {
            name: reached[name] for name in names if len(reached[name]) > 1 and reached[name] - found.required
        }


PATTERNS = {"^a[a-h][0-9]$": 80, "^b[a-g][0-9]$": 70}


@pytest.mark.parametrize("declared", [(), ("ab0",), ("ab0", "ba0", "c")])
@pytest.mark.parametrize("schemas", [ANY, NEVER])
@pytest.mark.parametrize("low", [64, 65, 70, 71, 77, 78, 79, 80, 81, 82, 83, 147, 148, 149, 150, 151, 152])
def test_as_many_members_as_a_large_finite_class_has_names(
    low: int, schemas: SchemaSet, declared: tuple[str, ...]
) -> None:
    cells = tuple((frozenset(((True, "pattern", pattern),)), SETS[2]) for pattern in PATTERNS)
    others = 150 - sum(name != "c" for name in declared)
    case = ObjectCase(tuple((name, schemas) for name in declared), cells=cells, low=low)
    found = object_members.normalise_object(case, ALGEBRA)
    most = others + (len(declared) if schemas == ANY else 0)
    assert bool(found) == object_members.is_object_satisfiable(case, ALGEBRA) == (low <= most)
    for one in found:
        assert isinstance(one, NormalisedObject)
        if not one.cells:
            assert len(one.names) == most
        if one.cells:  # No class is used up before enough members are there.
            assert low <= 80 - ("ab0" in declared)
        else:
            assert low > 80 - len(declared)
