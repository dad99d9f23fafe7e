"""Cases of objects against their definition, over all small objects: products, complements, clauses, settled cases."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest
from hypothesis import assume, given, settings, strategies as st

from constrain.errors import LimitError
from constrain.frontends.json_schema.algebra.algebra import Algebra
from constrain.frontends.json_schema.algebra.discriminators import split
from constrain.frontends.json_schema.algebra.literals import ANY, NEVER, Lits
from constrain.frontends.json_schema.objects import members, objects
from constrain.frontends.json_schema.objects.clauses import resolved
from constrain.frontends.json_schema.objects.demands import place
from constrain.frontends.json_schema.objects.derivatives import Factored
from constrain.frontends.json_schema.objects.members import Settled
from constrain.frontends.json_schema.objects.objects import ObjectCase
from constrain.frontends.json_schema.strings.languages import ALL, Lang
from tests.literal_sets import VALUES, holds, in_object_case, language_holds, literal_sets, made

ALGEBRA, SETS = made()
DECLARED, OTHERS = ("a", "b"), ("ac", "c")
ABSENT = object()


def objects_of(names: tuple[str, ...]) -> list[dict[str, Any]]:
    """All objects with these names, or some of them."""
    chosen = product((ABSENT, *VALUES), repeat=len(names))
    return [{name: one for name, one in zip(names, values) if one is not ABSENT} for values in chosen]


OBJECTS = objects_of(DECLARED + OTHERS)
MORE_OBJECTS = objects_of((*DECLARED, *OTHERS, "ad", "d"))
"""Enough undeclared names of each language for cases of two members at least."""

lits = literal_sets.map(SETS.__getitem__)
START_A: Lang = frozenset(((True, "pattern", "^a"),))
OTHER_START: Lang = frozenset(((False, "pattern", "^a"),))
languages = st.sampled_from([ALL, START_A, OTHER_START])
cells = st.one_of(
    st.just(((ALL, ANY),)), st.just(()), lits.map(lambda one: ((ALL, one),)),
    st.tuples(lits, lits).map(lambda pair: ((START_A, pair[0]), (OTHER_START, pair[1]))),
    lits.map(lambda one: ((START_A, one),)),
).map(lambda pairs: tuple(pair for pair in pairs if pair[1] != NEVER))  # fmt: skip
NEEDS = [(), (("a", frozenset("b")),), (("b", frozenset("a")),), (("a", frozenset("b")), ("b", frozenset("a")))]


@st.composite
def object_cases(draw: st.DrawFn, nested: bool = False, most: int = 3) -> ObjectCase:
    names = draw(st.lists(st.sampled_from(DECLARED), unique=True))
    values = tuple((name, draw(lits)) for name in names)
    case = ObjectCase(values, frozenset(name for name in names if draw(st.booleans())), cells=draw(cells))
    for kind in draw(st.lists(st.sampled_from(["mentioned", "low", "high", "needs", "somes", "clauses"]), max_size=3)):
        if kind == "mentioned":
            case = case._replace(mentioned=frozenset(names[:1]))
        elif kind == "low":
            case = case._replace(low=draw(st.integers(0, most)))
        elif kind == "high":
            case = case._replace(high=draw(st.integers(0, most)))
        elif kind == "needs" and len(names) == 2:
            case = case._replace(needs=draw(st.sampled_from(NEEDS)))
        elif kind == "somes":
            case = case._replace(somes=((draw(languages), draw(lits.filter(lambda one: one != NEVER))),))
        elif kind == "clauses" and nested:
            case = case._replace(clauses=tuple(draw(st.lists(unions, min_size=1, max_size=2))))
    return case


simple_cases = object_cases()
unions = st.lists(simple_cases, min_size=2, max_size=3, unique=True).map(tuple)
cases = object_cases(nested=True)
few = settings(max_examples=60, deadline=None)


def inside(found: Any, value: dict[str, Any]) -> bool:
    """Whether an object is in one of some cases."""
    return any(in_object_case(ALGEBRA, case, value) for case in found if case is not None)


def differing(found: Any, wanted: list[bool]) -> list[dict[str, Any]]:
    """The objects of which some cases and what is wanted say different things."""
    return [value for value, want in zip(OBJECTS, wanted) if inside(found, value) != want]


@few
@given(cases, cases)
def test_the_product_of_two_cases(one: ObjectCase, other: ObjectCase) -> None:
    wanted = [inside([one], value) and inside([other], value) for value in OBJECTS]
    assert differing([objects.meet(one, other, ALGEBRA)], wanted) == []


@few
@given(cases)
def test_the_complement_of_a_case(case: ObjectCase) -> None:
    assert differing(objects.complement(case, ALGEBRA), [not inside([case], value) for value in OBJECTS]) == []


@few
@given(cases)
def test_clauses_are_narrowed_and_resolved(case: ObjectCase) -> None:
    wanted = [inside([case], value) for value in OBJECTS]
    assert differing([objects.narrow(case, ALGEBRA)], wanted) == []
    told = list(resolved(case, ALGEBRA))
    assert not any(one.clauses for one in told)
    assert differing(told, wanted) == []


@few
@given(st.lists(st.one_of(simple_cases.map(lambda one: (one,)), unions), min_size=1, max_size=4), st.booleans())
def test_a_product_of_unions_kept_as_one_case(product_of: list[tuple[ObjectCase, ...]], splits: bool) -> None:
    wanted = [all(inside(union, value) for union in product_of) for value in OBJECTS]
    case = objects.factored(product_of, ALGEBRA)
    assert differing([case], wanted) == []
    if case is None:
        return
    bare = case._replace(clauses=())
    left = objects.without_excluded(product_of, case, ALGEBRA)
    assert not any(way.clauses == () and way not in union for union in left for way in union if not product_of)
    again = [inside([bare], value) and all(inside(union, value) for union in left) for value in OBJECTS]
    assert again == wanted


@few
@given(st.lists(cases, max_size=5))
def test_cases_within_others_are_left_out(given_cases: list[ObjectCase]) -> None:
    found = objects.distinct(given_cases)
    assert set(found) <= set(given_cases)
    assert differing(found, [inside(given_cases, value) for value in OBJECTS]) == []


@few
@given(st.lists(st.lists(cases, min_size=1, max_size=3).map(tuple), min_size=2, max_size=4))
def test_a_product_split_by_a_key(product_of: list[tuple[ObjectCase, ...]]) -> None:
    found = split(product_of, frozenset(), ALGEBRA)
    assume(found is not None)
    assert found is not None
    name, pieces = found
    assert name in DECLARED
    for value in OBJECTS:
        wanted = all(inside(union, value) for union in product_of)
        assert any(all(inside(union, value) for union in piece) for piece in pieces) == wanted, value
    assert split(product_of, frozenset(DECLARED), ALGEBRA) is None


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


def is_small(case: ObjectCase) -> bool:
    """Whether MORE_OBJECTS has an object of the case if there is any."""
    return len(case.somes) + case.low <= 2


@few
@given(object_cases(nested=True, most=2))
def test_settled_cases(case: ObjectCase) -> None:
    found = members.settle(case, ALGEBRA)
    assert not any(isinstance(one, Factored) for one in found)
    for value in OBJECTS:
        assert any(in_settled(one, value) for one in found) == inside([case], value), value  # type: ignore[arg-type]
    if not case.clauses:
        assert members.nonempty(case, ALGEBRA) == bool(found)


@few
@given(object_cases(nested=True, most=2))
def test_whether_there_is_an_object(case: ObjectCase) -> None:
    assume(len(case.somes) + sum(len(way.somes) for clause in case.clauses for way in clause) <= 1)
    assert members.nonempty(case, ALGEBRA) == any(inside([case], value) for value in MORE_OBJECTS)


@few
@given(object_cases(nested=False, most=2))
def test_each_key_of_a_settled_case_can_be_there(case: ObjectCase) -> None:
    for one in members.settle(case, ALGEBRA):
        assert isinstance(one, Settled)
        held = [value for value in MORE_OBJECTS if in_settled(one, value)]
        assert held
        assert {name for name, _ in one.names} <= {name for value in held for name in value}
        if one.low:
            assert len(one.required) < one.low
