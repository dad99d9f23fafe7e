"""Python types as JSON Schemas: each way of writing a type, with and without Pydantic."""

from __future__ import annotations

import collections.abc
import datetime
import enum
import re
import types
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, make_dataclass
from decimal import Decimal
from typing import Annotated, Any, Generic, Literal, NamedTuple, NewType, Optional, TypedDict, TypeVar, Union
from uuid import UUID

import annotated_types
import pydantic
import pytest
from typing_extensions import TypeAliasType

import constrain
from constrain.base.errors import UnsupportedError
from constrain.frontends.json_schema import to_grammar
from constrain.frontends.python_types import to_schema
from constrain.vocabulary.vocabulary import Vocabulary
from tests.recogniser_oracle import accepts
from tests.text_acceptance import accepts_text

T = TypeVar("T")


class Color(enum.Enum):
    RED = "red"
    ONE = 1


@dataclass
class Point:
    x: int
    y: float = 0.0
    tags: list[str] = field(default_factory=list)
    hidden: int = field(default=0, init=False)


@dataclass
class Tree:
    value: Color
    kids: list[Tree] = field(default_factory=list)


class Movie(TypedDict, total=False):
    name: str
    year: int | None


class Pair(NamedTuple):
    left: int
    right: Union[str, None] = None


INT = {"type": "integer"}


class Gt:
    """A mark like those of annotated-types."""

    gt = 3

    def __repr__(self) -> str:  # without an address: the names of tests are the same in every process
        return "Gt(3)"


class Len:
    min_length = 1
    max_length = 2

    def __repr__(self) -> str:
        return "Len(1, 2)"


@pytest.mark.parametrize(
    ("tp", "schema"),
    [
        (None, {"type": "null"}),
        (bool, {"type": "boolean"}),
        (int, {"type": "integer"}),
        (Decimal, {"type": "number"}),
        (str, {"type": "string"}),
        (Any, {}),
        (datetime.date, {"type": "string", "format": "date"}),
        (UUID, {"type": "string", "format": "uuid"}),
        (Literal["a", 1, None], {"enum": ["a", 1, None]}),
        (Color, {"enum": ["red", 1]}),
        (int | None, {"anyOf": [{"type": "integer"}, {"type": "null"}]}),
        (Optional[str], {"anyOf": [{"type": "string"}, {"type": "null"}]}),  # noqa: UP045
        (list, {"type": "array"}),
        (list[int], {"type": "array", "items": {"type": "integer"}}),
        (set[int], {"type": "array", "items": {"type": "integer"}}),
        (Sequence[str], {"type": "array", "items": {"type": "string"}}),
        (tuple[int, ...], {"type": "array", "items": {"type": "integer"}}),
        (tuple[int, str], {"type": "array", "prefixItems": [INT, {"type": "string"}], "items": False, "minItems": 2}),
        (tuple[()], {"type": "array", "items": False, "maxItems": 0}),
        (dict, {"type": "object"}),
        (dict[str, int], {"type": "object", "additionalProperties": {"type": "integer"}}),
        (Mapping[Color, int], {"type": "object", "propertyNames": {"enum": ["red", "1"]}, "additionalProperties": INT}),
        (NewType("Name", str), {"type": "string"}),
        (Annotated[int, Gt(), "a remark"], {"type": "integer", "exclusiveMinimum": 3}),
        (Annotated[str, Len()], {"type": "string", "minLength": 1, "maxLength": 2}),
        (Annotated[list[int], Len()], {"type": "array", "items": {"type": "integer"}, "minItems": 1, "maxItems": 2}),
    ],
    ids=str,
)  # fmt: skip
def test_small_types(tp: Any, schema: dict[str, Any]) -> None:
    assert to_schema(tp) == schema
    to_grammar(to_schema(tp))


def test_classes_are_closed_objects_of_their_fields() -> None:
    assert to_schema(Point) == {
        "title": "Point",
        "type": "object",
        "properties": {
            "x": {"type": "integer"},
            "y": {"type": "number"},
            "tags": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["x"],
        "additionalProperties": False,
    }
    assert to_schema(Movie)["required"] == [] and list(to_schema(Movie)["properties"]) == ["name", "year"]
    assert to_schema(Pair)["required"] == ["left"]


def test_a_class_inside_itself() -> None:
    grammar = to_grammar(to_schema(Tree))
    assert accepts(grammar, '{"value": "red", "kids": [{"value": 1}]}')
    assert not accepts(grammar, '{"value": "red", "kids": [{"value": 2}]}')
    twice = to_schema(tuple[Point, Point])
    assert twice["prefixItems"] == [{"$ref": "#/$defs/Point"}] * 2


def test_unknown_names_are_reported() -> None:
    @dataclass
    class Lost:
        other: Nowhere  # type: ignore[name-defined]  # noqa: F821

    with pytest.raises(UnsupportedError, match="Nowhere"):
        to_schema(Lost)


def test_pydantic() -> None:
    pydantic = pytest.importorskip("pydantic")

    class Part(pydantic.BaseModel):
        price: Decimal
        tags: frozenset[str] = frozenset()

    class Open(pydantic.BaseModel):
        model_config = pydantic.ConfigDict(extra="allow")
        n: Annotated[int, pydantic.Field(ge=3)]

    Order = pydantic.create_model("Order", parts=(list[Part], ...), more=(Open | None, None))
    grammar = to_grammar(to_schema(Order))
    assert accepts(grammar, '{"parts": [{"price": 1.5, "tags": ["a", "a"]}], "more": {"n": 3, "x": 1}}')
    for text in ('{"parts": [], "z": 1}', '{"parts": [{"price": "a"}]}', '{"parts": [], "more": {"n": 2}}', "{}"):
        assert not accepts(grammar, text), text
    mixed = to_schema(dict[str, Union[Part, Point]])
    assert set(mixed["$defs"]) == {"Point"} or set(mixed["$defs"]) == {"Part", "Point"}
    assert accepts(to_grammar(mixed), '{"a": {"x": 1}, "b": {"price": 2}}')


@pytest.mark.parametrize(
    ("tp", "valid", "invalid"),
    [
        (Annotated[list[int] | None, Len()], ["null", "[1]", "[1, 2]"], ["[]", "[1, 2, 3]"]),
        (Annotated[list[int] | str | dict[str, int], Len()], ["[1]", '"a"', '{"a": 1}'], ["[]", '""', "{}"]),
        (Annotated[Any, Len()], ["[1]", '"a"', '{"a": 1}', "1"], ["[]", '""', "{}"]),
        (Annotated[int | str, Gt()], ["4", '""'], ["3"]),
        (Annotated[Movie, Len()], ['{"name": "a"}'], ["{}"]),
        (Annotated[tuple[int, str, int], Len()], [], ['[1, "a"]', "[1]"]),
        (
            Annotated[NewType("Big", Annotated[int, Gt()]), types.SimpleNamespace(gt=1, multiple_of=2)],
            ["4"],
            ["2", "5"],
        ),
        (Annotated[str, types.SimpleNamespace(max_length=0)], ['""'], ['"a"']),
    ],
    ids=range(8),
)
def test_bounds_hold_for_what_has_them(tp: Any, valid: list[str], invalid: list[str]) -> None:
    schema = to_schema(tp)
    for text in valid + invalid:
        assert bool(constrain.validate(schema, text=text)) == (text in invalid), text
    if valid:
        to_grammar(schema)


def test_definitions_of_pydantic_are_kept_and_named_apart() -> None:
    pydantic = pytest.importorskip("pydantic")
    kept = pydantic.AfterValidator(lambda value: value)
    inner = pydantic.create_model("Inner", x=(int, ...))
    model = pydantic.create_model("Model", inner=(inner, ...))
    nested = make_dataclass("Nested", [("model", model)])
    grammar = to_grammar(to_schema(nested))
    assert accepts(grammar, '{"model": {"inner": {"x": 1}}}')
    assert not accepts(grammar, '{"model": {"inner": {"x": "a"}}}')
    other = pydantic.create_model("Point", point=(inner, ...))
    tree = to_schema(tuple[Point, Annotated[Union[list[Point], dict[str, Point]], kept], dict[str, list[other]]])
    assert accepts(to_grammar(tree), '[{"x": 1}, [{"x": 1}], {"a": [{"point": {"x": 1}}]}]')


def test_discriminators_are_required() -> None:
    pydantic = pytest.importorskip("pydantic")

    class Cat(pydantic.BaseModel):
        kind: Literal["cat"] = pydantic.Field("cat", alias="type")
        lives: int = 9

    class Dog(pydantic.BaseModel):
        kind: Literal["dog"] = pydantic.Field("dog", alias="type")

    class Cow(pydantic.BaseModel):
        kind: Literal["cow"] = pydantic.Field("cow", alias="type")
        friend: Cat | None = None

    tagged = pydantic.Field(discriminator="kind")
    milk = Annotated[Union[Cow, Dog], tagged]
    model = pydantic.create_model("Model", pet=(Union[Cat, Dog], tagged))
    for schema in (to_schema(Annotated[Union[Cat, milk], tagged]), to_schema(model)["properties"]["pet"]):
        assert "oneOf" in schema
    grammar = to_grammar(to_schema(model))
    assert accepts(grammar, '{"pet": {"type": "cat"}}') and accepts(grammar, '{"pet": {"type": "dog"}}')
    assert not accepts(grammar, '{"pet": {}}') and not accepts(grammar, '{"pet": {"lives": 3}}')
    animals = to_schema(list[Annotated[Union[Cat, milk], tagged]])
    assert not constrain.validate(animals, [{"type": "cow", "friend": {"lives": 3}}, {"type": "dog"}])
    assert constrain.validate(animals, [{"friend": {}}]) and constrain.validate(animals, [{}])


@dataclass
class Doubled(Generic[T]):
    value: T
    pair: Doubled[tuple[T, T]] | None = None


@dataclass
class Boxed(Generic[T]):
    value: T


def test_types_without_end_are_refused_before_they_fill_the_memory() -> None:
    with pytest.raises(UnsupportedError, match="Doubled refers to itself with other arguments"):
        to_schema(Doubled[int])
    nested = Boxed[Boxed[Boxed[Boxed[int]]]]
    assert len(to_schema(list[nested])["$defs"]) == 4


def test_values_that_json_does_not_have_are_refused() -> None:
    pydantic = pytest.importorskip("pydantic")
    day = datetime.date(2024, 1, 2)
    dates, numbers, keys = enum.Enum("Dates", {"A": day}), enum.Enum("Nan", {"A": float("nan")}), {"A": {1: 2}}
    for tp, value in [(dates, "datetime.date"), (numbers, "nan"), (enum.Enum("Keys", keys), "{1: 2}"),
                      (Literal[b"x"], "b'x'"), (Literal["a", dates.A], "datetime.date")]:  # fmt: skip
        name = "Literal" if typing.get_origin(tp) is Literal else tp.__name__
        for holder in (tp, dict[str, tp], pydantic.create_model("Model", x=(tp, ...))):
            with pytest.raises(UnsupportedError, match=f"{re.escape(value)}.*, a value of .*{name}"):
                to_schema(holder)
    assert to_schema(enum.Enum("Tuples", {"A": (1, [2.5, None])})) == {"enum": [(1, [2.5, None])]}


def test_an_enum_that_reads_other_values_is_left_to_pydantic() -> None:
    pydantic = pytest.importorskip("pydantic")

    class Dates(enum.Enum):
        @classmethod
        def _missing_(cls, value: object) -> Dates:
            return cls(datetime.date.fromisoformat(str(value)))

    class Day(Dates):
        FIRST = datetime.date(2024, 1, 1)

    model = pydantic.create_model("Model", day=(Day, ...))
    assert accepts(to_grammar(to_schema(model)), '{"day": "2024-01-01"}')
    assert model.model_validate_json('{"day": "2024-01-01"}').day is Day.FIRST


def test_unknown_types_are_refused() -> None:
    with pytest.raises(UnsupportedError):
        to_schema(type("Own", (), {}))


Json = TypeAliasType("Json", "list[Json] | dict[str, Json]")
Row = NewType("Row", list[int])
Nest = TypeAliasType("Nest", "tuple[Nest | None, int]")


@dataclass(frozen=True)
class Fixed:
    x: int


UNHASHABLE = [list[int], dict[str, int], list, set[int], Sequence[int], Mapping[str, int], Point, Movie, Json, Row,
              tuple[int, list[int]], list[int] | Point, Annotated[list[int], Len()]]  # fmt: skip
HASHABLE = [Any, object, int, str, Fixed, Pair, Color, UUID, Nest, frozenset[int], tuple[list[int], ...], tuple[()],
            list[int] | int, tuple[int, str], Literal["a"]]  # fmt: skip


def test_items_of_a_set_that_have_no_hash_are_refused() -> None:
    for item in UNHASHABLE:
        for tp in (set[item], frozenset[item], collections.abc.Set[item], dict[str, set[item]]):
            with pytest.raises(UnsupportedError, match="A set cannot have items of the type"):
                to_schema(tp)
    for item in HASHABLE:
        assert to_schema(set[item])["type"] == "array"


def test_pydantic_refuses_items_of_a_set_that_have_no_hash() -> None:
    pydantic = pytest.importorskip("pydantic")
    model = pydantic.create_model("Model", x=(int, ...))
    frozen = pydantic.create_model("Frozen", x=(int, ...), __config__=pydantic.ConfigDict(frozen=True))
    for item in (list[int], dict[str, int], set[int], Point, model):
        holder = pydantic.create_model("Holder", item=(item, ...), items=(set[item], ...))
        for tp in (set[model], holder, pydantic.create_model("Holder", items=(frozenset[item], ...))):
            with pytest.raises(UnsupportedError, match="A set cannot have items of the type"):
                to_schema(tp)
    for item in (frozen, Fixed, tuple[int, ...], Any):
        to_schema(pydantic.create_model("Holder", item=(item, ...), items=(set[item], ...)))
    to_schema(set[frozen])


def test_classes_as_values_are_refused() -> None:
    pydantic = pytest.importorskip("pydantic")
    holder = make_dataclass("Holder", [("kind", type[Point])])
    model = pydantic.create_model("Model", kind=(type[int], ...))
    for tp in (type, type[int], typing.Type[int], list[type[str]], int | type[str], holder, model):  # noqa: UP006
        with pytest.raises(UnsupportedError, match="no JSON Schema for the type"):
            to_schema(tp)
    with pytest.raises(UnsupportedError, match=r"type\[int\]"):
        to_schema(type[int])


TWO_OR_MORE = types.SimpleNamespace(min_length=2)


@pytest.mark.parametrize(
    "tp",
    [
        Annotated[set[int], TWO_OR_MORE],
        Annotated[frozenset[int] | None, TWO_OR_MORE],
        Annotated[NewType("Some", set[int]), TWO_OR_MORE],
        Annotated[set[int], pydantic.Field(min_length=2)],
        pydantic.create_model("Held", x=(set[int], pydantic.Field(min_length=2))),
    ],
)
def test_repeated_items_do_not_count_as_items_of_a_set(tp: Any) -> None:
    constraint = constrain.compile(Vocabulary.bytes(), type=tp)
    form = '{"x":%s}' if isinstance(tp, type) else "%s"
    assert accepts_text(constraint, form % "[1, 2]")
    assert not accepts_text(constraint, form % "[1, 1]") and not accepts_text(constraint, form % "[1]")
    assert "uniqueItems" not in str(to_schema(set[int])) + str(to_schema(Annotated[set[int], Len()]))


@pytest.mark.parametrize(
    ("tp", "says"),
    [
        (Annotated[bool, annotated_types.Ge(1)], "Ge.* says nothing about bool"),
        (Annotated[int, annotated_types.MinLen(1)], "MinLen.* says nothing about int"),
        (Annotated[int | None, annotated_types.MinLen(1)], "MinLen.* says nothing about"),
        (Annotated[float, types.SimpleNamespace(pattern="a")], "says nothing about float"),
        (Annotated[datetime.datetime, annotated_types.Timezone("UTC")], "Timezone.*offset"),
        (Annotated[str, annotated_types.LowerCase], "is a type, and no mark of str"),
    ],
)
def test_marks_that_cannot_be_enforced_are_refused(tp: Any, says: str) -> None:
    with pytest.raises(UnsupportedError, match=says):
        to_schema(tp)


def test_a_time_zone_of_any_offset_is_no_condition() -> None:
    tp = Annotated[datetime.datetime, annotated_types.Timezone(...)]
    assert to_schema(tp) == to_schema(datetime.datetime)
