"""Conversion of JSON texts to values of Python types."""

from __future__ import annotations

import datetime
import json
import typing
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable
from dataclasses import InitVar, dataclass, field, make_dataclass
from decimal import Decimal
from enum import Enum, IntEnum
from typing import Annotated, Any, ClassVar, Generic, Literal, NewType, TypeVar, Union
from uuid import UUID

import pytest
from hypothesis import given, strategies as st
from typing_extensions import NamedTuple, NotRequired, TypeAliasType, TypedDict

import constrain
from constrain.base.errors import LimitError, UnsupportedError
from constrain.frontends.json_schema import to_grammar
from constrain.frontends.python_types import to_schema
from constrain.integrations.python_values import Misfit, is_type, parse_json, to_value


class Colour(Enum):
    RED = "red"
    ONE = 1


class Level(IntEnum):
    LOW = 1


@dataclass
class Point:
    x: int
    y: float = 0.5
    tags: list[str] = field(default_factory=list)
    seen: bool = field(default=False, init=False)


class Place(TypedDict):
    name: str
    at: NotRequired[Point]


class Pair(NamedTuple):
    left: int
    right: Place | None = None


Name = NewType("Name", str)


class Odd:
    """Nothing is known of it."""


UTC = datetime.timezone.utc
ID = "9b2c1f0e-6a53-4b5e-8a3e-0f6c7d1e2a3b"

CASES = [
    (int, "3", 3),
    (int, "1e2", 100),
    (float, "3", 3.0),
    (bool, "true", True),
    (str, '"é"', "é"),
    (None, "null", None),
    (Any, '{"a": [1.5, null]}', {"a": [1.5, None]}),
    (Name, '"x"', "x"),
    (Annotated[int, "meta"], "4", 4),
    (Decimal, "0.1", Decimal("0.1")),
    (datetime.date, '"2024-02-29"', datetime.date(2024, 2, 29)),
    (datetime.datetime, '"2024-02-29T01:02:03Z"', datetime.datetime(2024, 2, 29, 1, 2, 3, tzinfo=UTC)),
    (datetime.datetime, '"2024-02-29T01:02:03.5Z"', datetime.datetime(2024, 2, 29, 1, 2, 3, 500_000, tzinfo=UTC)),
    (datetime.time, '"01:02:03"', datetime.time(1, 2, 3)),
    (datetime.time, '"01:02:03.1234567z"', datetime.time(1, 2, 3, 123_456, tzinfo=UTC)),
    (UUID, f'"{ID}"', UUID(ID)),
    (Literal["a", 1, True, None], "1", 1),
    (Literal["a", 1, True, None], "true", True),
    (Colour, '"red"', Colour.RED),
    (Colour, "1", Colour.ONE),
    (Level, "1", Level.LOW),
    (list[int], "[1, 2]", [1, 2]),
    (tuple[int, str], '[1, "a"]', (1, "a")),
    (tuple[int, ...], "[1, 2, 3]", (1, 2, 3)),
    (set[str], '["a", "a"]', {"a"}),
    (frozenset[int], "[1]", frozenset({1})),
    (dict[str, Point], '{"p": {"x": 1}}', {"p": Point(1)}),
    (dict[int, str], '{"1": "a"}', {1: "a"}),
    (list, "[1.5]", [1.5]),
    (Point, '{"x": 1.0, "tags": ["a"]}', Point(1, 0.5, ["a"])),
    (Place, '{"name": "n", "at": {"x": 2, "y": 3}}', {"name": "n", "at": Point(2, 3.0)}),
    (Pair, '{"left": 1, "right": {"name": "n"}}', Pair(1, {"name": "n"})),
    (Pair, "[1]", Pair(1)),
    (Union[int, str, None], '"1"', "1"),
    (Point | None, "null", None),
    (Union[Place, Point], '{"x": 1}', Point(1)),
    (int | list[int], "[1]", [1]),
]


@pytest.mark.parametrize(("tp", "text", "value"), CASES, ids=lambda case: str(case)[:40])
def test_a_text_becomes_a_value_of_its_type(tp: Any, text: str, value: Any) -> None:
    made = to_value(tp, text)
    assert made == value
    assert type(made) is type(value)


@pytest.mark.parametrize(
    ("tp", "text"),
    [(int, "1.5"), (int, "true"), (bool, "1"), (str, "1"), (Literal["a"], '"b"'), (Point, '{"y": 1}'), (Colour, "true"),
     (Point, '{"x": 1, "z": 1}'), (tuple[int], "[1, 2]"), (Union[int, str], "null"), (datetime.date, '"2023-02-29"'),
     (Odd, "1"), (list[Odd], "[1]")],
)  # fmt: skip
def test_invalid_values_are_refused(tp: Any, text: str) -> None:
    with pytest.raises((UnsupportedError, Misfit)):
        to_value(tp, text)


def test_pydantic_models_validate_themselves() -> None:
    pydantic = pytest.importorskip("pydantic")

    class Inner(pydantic.BaseModel):
        model_config = pydantic.ConfigDict(strict=True)
        when: datetime.date

    class Outer(pydantic.BaseModel):
        inner: Inner
        count: int = pydantic.Field(ge=1)

    assert to_value(Outer, '{"inner": {"when": "2024-01-02"}, "count": 2}') == Outer(
        inner=Inner(when=datetime.date(2024, 1, 2)), count=2
    )
    assert to_value(list[Inner], '[{"when": "2024-01-02"}]') == [Inner(when=datetime.date(2024, 1, 2))]
    assert to_value(Union[Inner, int], "3") == 3
    assert to_value(pydantic.SecretStr, '"x"').get_secret_value() == "x"
    assert to_value(list[datetime.timedelta], '["P1D"]') == [datetime.timedelta(days=1)]
    with pytest.raises(pydantic.ValidationError):
        to_value(Outer, '{"inner": {"when": "2024-01-02"}, "count": 0}')


def test_times_are_those_that_python_has() -> None:
    pydantic = pytest.importorskip("pydantic")
    for tp, text in [(datetime.datetime, "2016-12-31T23:59:60Z"), (datetime.time, "23:59:60Z")]:
        for holder in (tp, pydantic.create_model("Model", x=(tp, ...))):
            schema, wrap = to_schema(holder), '"{}"' if holder is tp else '{{"x": "{}"}}'
            to_grammar(schema)
            assert constrain.validate(schema, text=wrap.format(text))
            last = wrap.format(text.replace(":60", ":59"))
            assert not constrain.validate(schema, text=last)
            to_value(holder, last)


def test_naive_times_have_no_offset() -> None:
    pydantic = pytest.importorskip("pydantic")
    schema = to_schema(pydantic.NaiveDatetime)
    to_grammar(schema)
    text = '"2024-02-29T01:02:03.5"'
    assert not constrain.validate(schema, text=text)
    assert to_value(pydantic.NaiveDatetime, text) == datetime.datetime(2024, 2, 29, 1, 2, 3, 500_000)
    for wrong in ("2024-02-29T01:02:03Z", "2023-02-29T01:02:03", "2024-02-29T01:02:60", "2024-02-29"):
        assert constrain.validate(schema, wrong)
    assert not constrain.validate(to_schema(pydantic.AwareDatetime), "2024-02-29T01:02:03Z")


def test_a_text_that_no_value_has_is_refused_as_by_a_validator() -> None:
    assert issubclass(Misfit, ValueError)
    with pytest.raises(Misfit, match="year"):
        to_value(list[datetime.date], '["0000-01-01"]')


def test_items_of_a_set_that_have_no_hash_are_refused() -> None:
    frozen = make_dataclass("Frozen", [("rows", list[int])], frozen=True)
    for tp, text in [(set, '[[1]]'), (frozenset, '[{"a": 1}]'), (set[Any], "[1, []]"), (set[list[int] | int], "[[1]]"),
                     (typing.AbstractSet[Any], "[[]]"), (set[frozen], '[{"rows": []}]')]:  # fmt: skip
        assert not constrain.validate(to_schema(tp), text=text)
        with pytest.raises(Misfit, match="has no hash"):
            to_value(tp, text)
    assert to_value(set[Any], "[1, 2]") == {1, 2}


def test_pydantic_validators_and_types_are_applied_by_pydantic() -> None:
    pydantic = pytest.importorskip("pydantic")
    import annotated_types

    def check_even(number: int) -> int:
        if number % 2:
            raise ValueError("odd")
        return number + 2

    class Shout(str):
        @classmethod
        def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
            return pydantic.AfterValidator(str.upper).__get_pydantic_core_schema__(str, handler)

    even = Annotated[int, pydantic.AfterValidator(check_even)]
    holder = make_dataclass("Holder", [("n", Union[even, None]), ("many", dict[str, list[even]], field(default=None))])
    assert to_value(even, "2") == 4
    assert to_value(holder, '{"n": 2, "many": {"a": [4]}}') == holder(4, {"a": [6]})
    assert to_value(pydantic.Json[list[int]], '"[1, 2]"') == [1, 2]
    assert to_value(pydantic.Base64Str, '"YQ=="') == "a"
    assert to_value(Annotated[str, pydantic.StringConstraints(to_upper=True)], '"a"') == "A"
    assert to_value(list[Shout], '["a"]') == ["A"]
    assert to_value(Annotated[Decimal, annotated_types.Predicate(bool)], "0.12345678901234567") != 0
    later = Annotated[datetime.date, annotated_types.Ge(datetime.date(2020, 1, 1))]
    for tp, text in [(even, "3"), (holder, '{"n": 3}'), (pydantic.Json[list[int]], '"[a]"'),
                     (pydantic.Base64Str, '"a"'), (pydantic.FilePath, '"/no/such/file"'),
                     (Annotated[int, annotated_types.Predicate(bool)], "0"), (later, '"2019-12-31"')]:  # fmt: skip
        to_grammar(to_schema(tp))
        with pytest.raises(pydantic.ValidationError):
            to_value(tp, text)


@dataclass(frozen=True)
class Mark:
    """A mark like those of annotated-types."""

    ge: int | None = None
    gt: int | None = None
    lt: int | None = None
    le: int | None = None
    multiple_of: int | None = None
    min_length: int | None = None


UserId = NewType("UserId", int)
KEYS = [
    (UserId, {"12": 12, "-3": -3}, ["a", "1.5", "01"]),
    (Level, {"1": Level.LOW}, ["2", "LOW"]),
    (Colour, {"red": Colour.RED, "1": Colour.ONE}, ["RED"]),
    (Literal[1, 2, "a", True], {"1": 1, "a": "a", "true": True}, ["3", "True"]),
    (float, {"1.5": 1.5, "-0.25": -0.25, "7": 7.0}, ["1.50", "-0", "x"]),
    (Decimal, {"1.5": Decimal("1.5")}, ["1e", ""]),
    (bool, {"true": True, "false": False}, ["1"]),
    (Annotated[int, Mark(ge=3)], {"3": 3, "10": 10}, ["2", "-5"]),
    (Annotated[float, Mark(gt=-3, le=12)], {"-2.5": -2.5, "12": 12.0, "0": 0.0}, ["-3", "12.5"]),
    (Union[Annotated[int, Mark(gt=9)], datetime.date, None],
     {"10": 10, "2024-01-02": datetime.date(2024, 1, 2)}, ["9", "null"]),
    (UUID, {ID: UUID(ID)}, ["x"]),
]  # fmt: skip


@pytest.mark.parametrize(("tp", "valid", "invalid"), KEYS, ids=range(len(KEYS)))
def test_keys_of_a_dict_are_of_their_type(tp: Any, valid: dict[str, Any], invalid: list[str]) -> None:
    schema = to_schema(dict[tp, int])
    to_grammar(schema)
    for key, value in valid.items():
        text = json.dumps({key: 1})
        assert not constrain.validate(schema, text=text), text
        made = to_value(dict[tp, int], text)
        assert made == {value: 1} and type(next(iter(made))) is type(value)
    assert all(constrain.validate(schema, {key: 1}) for key in invalid)


def test_keys_that_are_no_text_are_refused() -> None:
    for tp in (tuple[int, int], Point, None, Annotated[int, Mark(multiple_of=3)]):
        with pytest.raises(UnsupportedError):
            to_schema(dict[tp, int])


def test_keys_of_pydantic_models_are_those_that_pydantic_reads() -> None:
    pydantic = pytest.importorskip("pydantic")
    for tp, valid, invalid in [(int, "12", "a"), (Level, "1", "LOW"), (Literal["a"], "a", "b"), (float, "1.5", "x"),
                               (bool, "true", "x"), (Annotated[str, pydantic.Field(pattern="^a")], "ab", "b"),
                               (datetime.date, "2024-01-02", "2")]:  # fmt: skip
        model = pydantic.create_model("Model", x=(dict[tp, str], pydantic.Field(min_length=1)))
        schema = to_schema(model)
        text = json.dumps({"x": {valid: "a"}})
        assert not constrain.validate(schema, text=text) and len(to_value(model, text).x) == 1
        assert constrain.validate(schema, {"x": {invalid: "a"}}), tp
    with pytest.raises(UnsupportedError, match="reads no key"):
        to_schema(pydantic.create_model("Model", x=(dict[Literal[1, 2], str], ...)))


T = TypeVar("T")
U = TypeVar("U")


@dataclass
class Box(Generic[T]):
    value: T
    boxes: list[Box[T]] = field(default_factory=list)


@dataclass
class Labelled(Box[list[U]], Generic[T, U]):
    label: T | None = None


@dataclass
class Dated(Labelled[int, datetime.date]):
    pass


class Entry(TypedDict, Generic[T]):
    at: T


class Noted(Entry[Annotated[datetime.date, "a remark"]]):
    note: NotRequired[str]


class Both(NamedTuple, Generic[T]):
    left: T
    right: Box[T] | None = None


DAY = datetime.date(2024, 1, 2)
GENERIC = [
    (Box[datetime.date], '{"value": "2024-01-02", "boxes": [{"value": "2024-01-02"}]}', Box(DAY, [Box(DAY)]), "1"),
    (Labelled[str, datetime.date], '{"value": ["2024-01-02"], "label": "x"}', Labelled([DAY], [], "x"), "[1]"),
    (Dated, '{"value": ["2024-01-02"], "label": 3}', Dated([DAY], [], 3), '["a"]'),
    (Entry[datetime.date], '{"at": "2024-01-02"}', {"at": DAY}, "1"),
    (Noted, '{"at": "2024-01-02", "note": "n"}', {"at": DAY, "note": "n"}, "1"),
    (Both[datetime.date], '{"left": "2024-01-02", "right": {"value": "2024-01-02"}}', Both(DAY, Box(DAY)), "1"),
]


@pytest.mark.parametrize(("tp", "text", "value", "wrong"), GENERIC, ids=range(len(GENERIC)))
def test_generic_classes_have_their_arguments(tp: Any, text: str, value: Any, wrong: str) -> None:
    schema = to_schema(list[tp])
    to_grammar(schema)
    assert not constrain.validate(schema, text=f"[{text}]")
    assert to_value(list[tp], f"[{text}]") == [value] and to_value(tp, text) == value
    assert constrain.validate(schema, text=f"[{text}]".replace('"2024-01-02"', wrong))


Json = TypeAliasType("Json", "Union[dict[str, Json], list[Json], str, int, None]")
Many = TypeAliasType("Many", "Union[T, list[Many[T]]]", type_params=(T,))
Ids = TypeAliasType("Ids", list[T], type_params=(T,))


def test_aliases_are_the_types_that_they_name() -> None:
    pydantic = pytest.importorskip("pydantic")
    assert to_schema(Ids[int]) == to_schema(list[int])
    assert to_value(Ids[datetime.date], '["2024-01-02"]') == [DAY]
    holder = make_dataclass("Holder", [("a", Json), ("b", Json)])
    plain = {"a": [{"b": [1, None]}], "b": "c"}
    for tp in (Json, holder, dict[str, Json], pydantic.JsonValue, dict[str, pydantic.JsonValue]):
        schema = to_schema(tp)
        to_grammar(schema)
        assert not constrain.validate(schema, plain)
        assert to_value(tp, json.dumps(plain)) == (holder(**plain) if tp is holder else plain)
    assert constrain.validate(to_schema(Json), {"a": [1.5]})
    assert constrain.validate(to_schema(Many[datetime.date]), [["x"]])
    assert to_value(Many[datetime.date], '[["2024-01-02"], "2024-01-02"]') == [[DAY], DAY]


def test_unresolved_names_and_endless_aliases_raise() -> None:
    nested = TypeAliasType("nested", list["Nowhere[T]"], type_params=(T,))  # type: ignore[name-defined]  # noqa: F821
    for tp in (nested[int], Endless[int]):
        with pytest.raises(UnsupportedError):
            to_schema(tp)


Endless = TypeAliasType("Endless", Union[T, list["Endless[list[T]]"]], type_params=(T,))


def test_generic_classes_of_pydantic() -> None:
    pydantic = pytest.importorskip("pydantic")

    @pydantic.dataclasses.dataclass
    class Checked(Generic[T]):
        value: T

    assert to_value(list[Checked[datetime.date]], '[{"value": "2024-01-02"}]') == [Checked(DAY)]


def test_decimals_have_their_digits() -> None:
    pydantic = pytest.importorskip("pydantic")
    price = pydantic.condecimal(max_digits=4, decimal_places=2, ge=-5)
    fine = pydantic.condecimal(decimal_places=6, multiple_of=Decimal("0.25"))
    short = pydantic.condecimal(max_digits=2)
    share = pydantic.condecimal(max_digits=2, decimal_places=2)
    model = pydantic.create_model("Model", x=(price, ...))
    for tp, valid, invalid in [(price, ["99.99", "0.01", "-5"], ["100", "0.001", "-5.01"]), (fine, ["0.5"], ["0.1"]),
                               (short, ["99", "0.01", "1.5", "-9.9"], ["100", "0.001", "1.25", "10.5"]),
                               (share, ["0.25"], ["1"]), (model, ['{"x": 1.25}'], ['{"x": 1.255}'])]:  # fmt: skip
        schema = to_schema(tp)
        to_grammar(schema)
        for text in valid:
            assert not constrain.validate(schema, text=text)
            to_value(tp, text)
        for text in invalid:
            assert constrain.validate(schema, text=text)
            with pytest.raises(pydantic.ValidationError):
                to_value(tp, text)


@given(st.integers(1, 6), st.decimals(-(10**7), 10**7, places=6) | st.decimals(-10, 10, places=5))
def test_decimals_without_places_have_their_digits(digits: int, value: Decimal) -> None:
    pydantic = pytest.importorskip("pydantic")
    number = pydantic.condecimal(max_digits=digits)
    text = f"{value:f}"
    try:
        to_value(number, text)
    except pydantic.ValidationError:
        assert constrain.validate(to_schema(number), text=text)
    else:
        assert not constrain.validate(to_schema(number), text=text)


@dataclass
class Circle:
    kind: ClassVar[str] = "circle"
    radius: float = field(init=False)
    diameter: InitVar[float]
    day: InitVar[datetime.date | None] = None

    def __post_init__(self, diameter: float, day: datetime.date | None) -> None:
        self.radius, self.day_given = diameter / 2, day


def test_dataclasses_take_init_vars() -> None:
    schema = to_schema(Circle)
    assert list(schema["properties"]) == ["diameter", "day"] and schema["required"] == ["diameter"]
    made = to_value(Circle, '{"diameter": 3, "day": "2024-01-02"}')
    assert (made.radius, made.day_given) == (1.5, DAY)


def test_subclasses_of_dict() -> None:
    for tp, text, value in [
        (typing.DefaultDict[str, int], '{"a": 1}', defaultdict(int, a=1)),  # noqa: UP006
        (defaultdict[datetime.date, list[int]], '{"2024-01-02": [1]}', defaultdict(list, {DAY: [1]})),
        (defaultdict[str, int | None], '{"a": 1}', defaultdict(None, a=1)),
        (defaultdict, '{"a": 1}', defaultdict(None, a=1)),
        (OrderedDict[str, bool], '{"a": true}', OrderedDict(a=True)),
        (Counter[datetime.date], '{"2024-01-02": 3}', Counter({DAY: 3})),
    ]:
        assert not constrain.validate(to_schema(tp), text=text)
        made = to_value(tp, text)
        assert made == value and type(made) is type(value)
        assert getattr(made, "default_factory", None) is getattr(value, "default_factory", None)


class Named(TypedDict):
    name: str


def test_a_union_takes_the_member_whose_schema_accepts_the_value() -> None:
    pydantic = pytest.importorskip("pydantic")

    class Empty(pydantic.BaseModel):
        note: str | None = None

    class Search(pydantic.BaseModel):
        query: str
        limit: int = 3

    class Even(pydantic.BaseModel):
        query: Annotated[str, pydantic.AfterValidator(int)]

    query, found = '{"query": "q"}', Search(query="q")
    assert to_value(Union[Empty, Search], query) == found
    assert to_value(list[Union[Empty, Search]], f"[{query}, {{}}]") == [found, Empty()]
    assert to_value(Union[list[Empty], dict[str, Empty], list[Search]], f"[{query}]") == [found]
    assert to_value(Union[Empty, Search, None], query) == found
    assert to_value(tuple[Empty | Search, int], f"[{query}, 1]") == (found, 1)
    assert to_value(Union[Even, Search], query) == found, "Even refuses it"
    with pytest.raises(pydantic.ValidationError):
        to_value(Union[Even, Empty], query)
    assert to_value(Union[Named, Place], '{"name": "n", "at": {"x": 1}}') == {"name": "n", "at": Point(1)}


def test_plain_json_is_exact() -> None:
    assert parse_json('{"a": [1, 1.5, null, true, "\\u00e9"]}') == {"a": [1, 1.5, None, True, "é"]}
    digits = "9" * 10_001
    assert parse_json(digits) == 10**10_001 - 1
    assert parse_json("-" + digits) == 1 - 10**10_001
    assert parse_json("1e400") == Decimal("1e400")


@pytest.mark.parametrize("read", [parse_json, lambda text: to_value(list[Any], text)])
def test_no_value_is_made_of_a_text_that_is_nested_without_end(read: Callable[[str], Any]) -> None:
    with pytest.raises(LimitError, match="nested deeper"):
        read("[" * 100_000 + "]" * 100_000)
    assert type(parse_json("1.0")) is float


def test_types_and_documents_are_distinguished() -> None:
    for tp in (Point, Place, Pair, Colour, list[int], Union[int, str], Literal["a"], Name, int):
        assert is_type(tp)
    for document in ({}, {"type": "string"}, '{"type": "string"}', True, False, None):
        assert not is_type(document)


@pytest.mark.parametrize(
    ("tp", "text"),
    [
        (int, "1e99999999"),
        (int, "-12.5e400000"),
        (list[Point], '[{"x": 1e99999999}]'),
        (Union[int, None], "1e99999999"),
        (dict[int, int], '{"1": 1e99999999999999999999999}'),
        (float, "1e309"),
        (float, "-" + "9" * 400),
        (float, "9" * 5000),
        (dict[float, int], '{"1e999": 1}'),
        (Annotated[float, Mark(lt=1)], "0.99999999999999999999"),
        (Annotated[Union[float, str], Mark(gt=0)], "1e-400"),
        (Annotated[set[Any], Mark(min_length=2)], "[1, 1.0]"),
        (Annotated[dict[datetime.datetime, int], Mark(min_length=2)],
         '{"2024-01-01T00:00:00Z": 1, "2024-01-01T00:00:00+00:00": 1}'),
    ],
)  # fmt: skip
def test_values_that_python_does_not_hold_are_refused(tp: Any, text: str) -> None:
    """At once: an exponent must not make a short text take long."""
    with pytest.raises(ValueError, match=r"zeros|digits|exponent|beyond|not below|not above|fewer than"):
        to_value(tp, text)


def test_exponents_and_fractions_of_integers_are_read_exactly() -> None:
    assert to_value(int, "1e4096") == 10**4096
    assert to_value(int, "12.50e1") == 125
    assert to_value(int, "-0.0e99999999") == 0
    assert to_value(int, "0e-999999999999999999") == 0  # without writing its zeros
    assert to_value(int, "-7" + "0" * 5000 + ".000") == -7 * 10**5000
    assert to_value(Union[int, Decimal], "1e5000") == Decimal("1e5000")


class Sized(NamedTuple):
    x: int

    def __len__(self) -> int:
        return 0


def test_lengths_of_classes_are_their_own() -> None:
    """A bound is one of the number of members, whatever `len` says of an instance."""
    assert to_value(Annotated[Sized, Mark(min_length=1)], '{"x": 1}').x == 1


def test_the_type_is_named_with_its_arguments() -> None:
    with pytest.raises(Misfit, match=r"it is no typing.Annotated\[float"):
        to_value(Annotated[float, Mark(lt=1)], "0.99999999999999999999")
