"""Partial instances: every prefix of a JSON text gives what is written so far, in the shape of its type."""

from __future__ import annotations

import datetime
import json
from dataclasses import dataclass, field
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Generic, Literal, TypeVar, Union

import pytest
from hypothesis import given, settings, strategies as st
from typing_extensions import NamedTuple, TypeAliasType, TypedDict

from constrain import partial_model
from constrain.decoding.partial_json import NOTHING, PartialJson
from constrain.integrations.partial_types import to_partial

pydantic = pytest.importorskip("pydantic")


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Tag:
    name: str
    colour: Colour = Colour.RED


class Place(TypedDict):
    city: str
    open: bool


class Pair(NamedTuple):
    left: int
    right: str


class Cat(pydantic.BaseModel):  # type: ignore[misc, name-defined]
    kind: Literal["cat"]
    lives: int


class Dog(pydantic.BaseModel):  # type: ignore[misc, name-defined]
    kind: Literal["dog"]
    name: str


class Node(pydantic.BaseModel):  # type: ignore[misc, name-defined]
    label: str
    children: list[Node] = pydantic.Field(default_factory=list)


class Person(pydantic.BaseModel):  # type: ignore[misc, name-defined]
    name: str = pydantic.Field(min_length=3)
    born: datetime.date = pydantic.Field(alias="bornOn")
    price: Decimal
    tags: list[Tag]
    place: Place | None = None
    pair: Annotated[Pair, "x"]
    pet: Union[Cat, Dog]
    colour: Colour
    code: Literal["abc", "abd"]
    extra: dict[str, Tag] = pydantic.Field(default_factory=dict)

    @pydantic.field_validator("name")
    @classmethod
    def no_part_is_valid(cls, value: str) -> str:
        assert value == "Annabel"
        return value


TEXT = (
    '{"name": "Annabel", "bornOn": "2001-02-03", "price": 1.50, "tags": [{"name": "x", "colour": "blue"},'
    ' {"name": "y"}], "place": {"city": "Rome", "open": true}, "pair": {"left": 1, "right": "r"},'
    ' "pet": {"kind": "dog", "name": "Rex"},'
    ' "colour": "red", "code": "abd", "extra": {"k": {"name": "z"}}}'
)


def partial_of(tp: Any, text: str) -> Any:
    parser = PartialJson(Decimal)
    parser.feed(text)
    return None if parser.value is NOTHING else to_partial(tp, parser.value, parser.open_path())


def test_a_whole_text_gives_all_fields() -> None:
    person = partial_of(Person, TEXT)
    assert isinstance(person, partial_model(Person))
    assert type(person).__name__ == "PartialPerson"
    assert (person.name, person.born, person.price) == ("Annabel", datetime.date(2001, 2, 3), Decimal("1.50"))
    assert [(tag.name, tag.colour) for tag in person.tags] == [("x", Colour.BLUE), ("y", None)]
    assert all(isinstance(tag, partial_model(Tag)) for tag in person.tags)
    assert person.place == {"city": "Rome", "open": True}
    assert person.pair == (1, "r") and isinstance(person.pair, partial_model(Pair))
    assert isinstance(person.pet, partial_model(Dog)) and person.pet.name == "Rex"
    assert (person.colour, person.code) == (Colour.RED, "abd")
    assert person.extra["k"].name == "z"


def test_every_prefix_gives_an_instance_that_only_grows() -> None:
    before: Any = None
    for length in range(len(TEXT) + 1):
        person = partial_of(Person, TEXT[:length])
        if person is None:
            continue
        assert isinstance(person, partial_model(Person))
        for name in ("born", "price", "colour", "code"):
            assert getattr(person, name) in (None, getattr(partial_of(Person, TEXT), name)), "complete or absent"
        if before is not None:
            assert (person.name or "").startswith(before.name or "")
            assert len(person.tags or ()) >= len(before.tags or ())
        before = person
    assert before is not None


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ('{"name": "An', "name", "An"),
        ('{"name": "An', "born", None),
        ('{"bornOn": "2001-02-0', "born", None),
        ('{"colour": "re', "colour", None),
        ('{"colour": "red"', "colour", Colour.RED),
        ('{"code": "ab', "code", None),
        ('{"price": 1.5', "price", None),
        ('{"price": 1.5,', "price", Decimal("1.5")),
        ('{"bornOn": "not a date"', "born", "not a date"),
        ('{"price": [1', "price", []),
    ],
)
def test_strings_of_other_types_are_shown_when_complete(text: str, name: str, value: Any) -> None:
    assert getattr(partial_of(Person, text), name) == value


def test_the_partial_type_is_made_once_and_nested() -> None:
    assert partial_model(Person) is partial_model(Person)
    made = partial_model(Person)
    assert all(not one.is_required() and one.default is None for one in made.model_fields.values())
    assert partial_model(list[Tag]) == list[partial_model(Tag)]
    assert partial_model(Tag | None) == Union[partial_model(Tag), None]
    assert partial_model(dict[str, Tag]) == dict[str, partial_model(Tag)]
    assert partial_model(Annotated[Tag, []]) is partial_model(Tag)
    assert partial_model(int) is int
    assert partial_model(Place).__required_keys__ == frozenset()
    assert partial_model(Pair)() == (None, None)
    assert partial_model(Tag)().name is None


def test_unions_take_the_member_that_the_keys_fit() -> None:
    assert isinstance(partial_of(Union[Cat, Dog], '{"kind": "do'), partial_model(Dog))
    assert isinstance(partial_of(Union[Cat, Dog], '{"kind": "cat", "lives": 9'), partial_model(Cat))
    assert isinstance(partial_of(Union[Cat, Dog], '{"name": "x'), partial_model(Dog))
    assert partial_of(Union[int, str, None], '"ab') == "ab"
    assert partial_of(Union[int, None], "null") is None
    assert partial_of(Union[list[int], str], "[1, 2") == [1]
    assert partial_of(Union[Tag, list[Tag]], '[{"name": "a') == [partial_model(Tag)("a")]
    assert partial_of(Union[bool, int], "[1,") == [1]


def test_recursive_classes() -> None:
    node = partial_of(Node, '{"label": "a", "children": [{"label": "b", "children": [{"label": "c')
    assert node.children[0].children[0].label == "c"
    assert isinstance(node.children[0], partial_model(Node))


T = TypeVar("T")


class Both(NamedTuple, Generic[T]):
    left: T
    right: list[T]


def test_generic_classes_have_their_arguments() -> None:
    text = '{"left": "2024-01-02", "right": ["2024-01-03", "2024'
    assert partial_of(Both[datetime.date], text) == (datetime.date(2024, 1, 2), [datetime.date(2024, 1, 3)])
    assert partial_of(Both[datetime.date], '["2024-01-02"').left == datetime.date(2024, 1, 2)
    assert partial_of(Both[Tag], '{"left": {"name": "a').left == partial_model(Tag)("a")


@dataclass
class Box(Generic[T]):
    value: T
    boxes: list[Box[T]]


@dataclass
class Shelf:
    box: Box[datetime.date]


Json = TypeAliasType("Json", "Union[dict[str, Json], list[Json], datetime.date, str, int]")


@dataclass
class Doubled(Generic[T]):
    value: T
    pair: Union[Doubled[tuple[T, T]], None] = None


def test_generic_classes_that_refer_to_themselves_with_ever_larger_arguments() -> None:
    assert partial_model(Doubled[int])(value=1) == partial_model(Doubled[int])(1, None)
    assert len(partial_model(list[Doubled[int]]).__args__) == 1


def test_recursive_generic_classes_and_aliases() -> None:
    shelf = partial_of(Shelf, '{"box": {"value": "2024-01-02", "boxes": [{"value": "2024-01-02"')
    assert shelf.box.boxes[0].value == shelf.box.value == datetime.date(2024, 1, 2)
    assert partial_model(Json) == Union[dict[str, Any], list[Any], datetime.date, str, int]
    assert partial_of(Json, '{"a": [{"b": [1, "x') == {"a": [{"b": [1]}]}
    assert partial_of(pydantic.JsonValue, '{"a": [{"b": [1, "x"') == {"a": [{"b": [1, "x"]}]}


class Days(pydantic.RootModel[dict[datetime.date, list[int]]]):  # type: ignore[misc, name-defined]
    pass


class Names(pydantic.RootModel[list[Tag]]):  # type: ignore[misc, name-defined]
    pass


def test_root_models_hold_what_is_written() -> None:
    day = datetime.date(2024, 1, 2)
    days = partial_of(Days, '{"2024-01-02": [1, 2')
    assert isinstance(days, partial_model(Days)) and days.root == {day: [1]}
    assert partial_of(Names, '[{"name": "a').root == [partial_model(Tag)("a")]
    assert isinstance(partial_of(Union[Days, Names], '[{"name": "a'), partial_model(Names))
    assert partial_of(Union[Names, Days], '{"2024-01-02": [').root == {day: []}
    assert partial_of(dict[datetime.date, list[str]], '{"2024-01-02": ["a').popitem() == (day, ["a"])
    assert partial_of(dict[int, str], '{"x": "a"}') == {"x": "a"}


def test_values_that_do_not_fit_their_type_stay_plain_json() -> None:
    assert partial_of(Tag, "[1, 2.5,") == [1, 2.5]
    assert partial_of(int, '"x"') == "x"
    assert partial_of(Pair, '[1, "r') == partial_model(Pair)(1, "r")
    assert partial_of(Any, '{"a": [1.5, "x') == {"a": [1.5, "x"]}


@dataclass
class Inner:
    text: str
    number: int


@dataclass
class Outer:
    items: list[Inner] = field(default_factory=list)
    names: tuple[str, ...] = ()


@given(st.lists(st.tuples(st.text(max_size=4), st.integers()), max_size=4), st.lists(st.text(max_size=3), max_size=3))
@settings(max_examples=25, deadline=None)
def test_every_prefix_agrees_with_plain_json(items: Any, names: Any) -> None:
    text = json.dumps({"items": [{"text": t, "number": n} for t, n in items], "names": names})
    for length in range(1, len(text) + 1):
        parser = PartialJson(Decimal)
        parser.feed(text[:length])
        shown, made = parser.snapshot(), to_partial(Outer, parser.value, parser.open_path())
        plain = {"items": shown.get("items"), "names": shown.get("names")}
        assert [vars(item) for item in made.items or ()] == [
            {"text": item.get("text"), "number": item.get("number")} for item in plain["items"] or ()
        ]
        assert made.names == plain["names"]
