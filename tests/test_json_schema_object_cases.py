"""Cases of objects against their definition, over all small objects: products, complements, clauses, settled cases."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import product
from math import prod
from random import Random
from typing import Any

from constrain.frontends.json_schema.algebra.discriminators import split
from constrain.frontends.json_schema.algebra.literals import NEVER
from constrain.frontends.json_schema.objects import members, objects
from constrain.frontends.json_schema.objects.clauses import resolved
from constrain.frontends.json_schema.objects.derivatives import Factored
from constrain.frontends.json_schema.objects.members import Settled
from constrain.frontends.json_schema.objects.objects import ANY_OBJECT, Cell, ObjectCase
from constrain.frontends.json_schema.strings.languages import ALL, Lang
from tests.literal_sets import VALUES, holds, in_object_case, language_holds, made

ALGEBRA, SETS = made()
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

START_A: Lang = frozenset(((True, "pattern", "^a"),))
OTHER_START: Lang = frozenset(((False, "pattern", "^a"),))
NEEDS = [(), (("a", frozenset("b")),), (("b", frozenset("a")),), (("a", frozenset("b")), ("b", frozenset("a")))]


def random_cells(random: Random) -> tuple[Cell, ...]:
    """Disjoint languages of names, with sets of values."""
    langs = random.choice([(), (ALL,), (ALL,), (START_A,), (START_A, OTHER_START)])
    if langs == (ALL,) and random.random() < 0.5:
        return ANY_OBJECT.cells
    return tuple((lang, lits) for lang in langs if (lits := random.choice(SETS)) != NEVER)


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
        lits = random.choice([lits for lits in SETS if lits != NEVER])
        case = case._replace(somes=((random.choice([ALL, START_A, OTHER_START]), lits),))
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
    """The objects of a case, by their places in OBJECTS."""
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
        assert union([objects.meet(one, other, ALGEBRA)]) == meaning(one) & meaning(other)


def test_the_complement_of_a_case() -> None:
    for random in randoms(300):
        case = random_case(random)
        assert union(objects.complement(case, ALGEBRA)) == ALL_OBJECTS - meaning(case)


def test_clauses_are_narrowed_and_resolved() -> None:
    for random in randoms(300):
        case = random_case(random)._replace(clauses=(random_union(random), random_union(random)))
        assert union([objects.narrow(case, ALGEBRA)]) == meaning(case)
        told = list(resolved(case, ALGEBRA))
        assert not any(one.clauses for one in told)
        assert union(told) == meaning(case)


def test_a_product_of_unions_kept_as_one_case() -> None:
    for random in randoms(300):
        product_of = [
            (random_case(random),) if random.random() < 0.3 else random_union(random)
            for _ in range(random.randint(1, 4))
        ]
        wanted = intersection(product_of)
        case = objects.factored(product_of, ALGEBRA)
        assert union([case]) == wanted
        if case is not None:
            left = objects.without_excluded(product_of, case, ALGEBRA)
            assert sum(map(len, left)) <= sum(map(len, product_of))
            assert meaning(case._replace(clauses=())) & intersection(left) == wanted


def test_cases_within_others_are_left_out() -> None:
    for random in randoms(300):
        given = [random_case(random) for _ in range(random.randint(0, 5))]
        found = objects.distinct(given)
        assert set(found) <= set(given)
        assert union(found) == union(given)


def random_case_with_a(random: Random) -> ObjectCase:
    """A case that says something of the key `a`."""
    case = random_case(random)
    names = (("a", random.choice(SETS)), *((name, other) for name, other in case.names if name != "a"))
    return case._replace(names=names, required=case.required | {"a"} if random.random() < 0.5 else case.required - {"a"})


def test_a_product_split_by_a_key() -> None:
    count = 0
    for random in randoms(100):
        product_of = [
            tuple(dict.fromkeys(random_case_with_a(random) for _ in range(random.randint(2, 3))))
            for _ in range(random.randint(2, 4))
        ]
        found = split(product_of, frozenset(), ALGEBRA)
        assert split(product_of, frozenset(DECLARED), ALGEBRA) is None
        if found is not None:
            count += 1
            name, pieces = found
            assert name in DECLARED
            assert frozenset().union(*map(intersection, pieces)) == intersection(product_of)
            assert sum(prod(map(len, piece)) for piece in pieces) < prod(map(len, product_of))
    assert count > 10


# ---- settled cases ---------------------------------------------------------------------------------------------


def in_settled(case: Settled, value: dict[str, Any]) -> bool:
    """Whether an object is in a settled case, as its docstring says."""
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
    ways = [
        [place for place, (lang, said) in enumerate(kinds) if language_holds(lang, name) and holds(ALGEBRA, said, value[name])]
        for name in others
    ]
    wanted = set(range(len(case.classes)))
    return any(wanted <= set(chosen) for chosen in product(*ways))


def test_settled_cases() -> None:
    for random in randoms(300):
        case = random_case(random)
        found = members.settle(case, ALGEBRA)
        assert not any(isinstance(one, Factored) for one in found)
        for number, value in enumerate(OBJECTS):
            assert any(in_settled(one, value) for one in found) == (number in meaning(case)), value  # type: ignore[arg-type]
        assert members.nonempty(case, ALGEBRA) == bool(found)


def test_whether_there_is_an_object() -> None:
    for random in randoms(300):
        case = random_case(random, most=2)
        if len(case.somes) + sum(len(way.somes) for clause in case.clauses for way in clause) <= 1:
            there_is = any(in_object_case(ALGEBRA, case, value) for value in MORE_OBJECTS)
            assert members.nonempty(case, ALGEBRA) == there_is


def test_each_key_of_a_settled_case_can_be_there() -> None:
    for random in randoms(50):
        for one in members.settle(random_case(random, clauses=False, most=2), ALGEBRA):
            assert isinstance(one, Settled)
            left = {name for name, _ in one.names}
            found = False
            for value in MORE_OBJECTS:
                if (not found or not left.isdisjoint(value)) and in_settled(one, value):
                    found, left = True, left.difference(value)
            assert found and not left
            if one.low:
                assert len(one.required) < one.low
