"""Partial values of streamed texts: of Pieces, of events, and by `stream_values`."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from datetime import date
from typing import Any, Literal

import pytest

import constrain
from constrain import Style, Vocabulary, generate, partial_model, stream_values
from constrain.generation.generation_arguments import ConstraintRequest
from constrain.generation.partial_values import PartialReader
from tests.model_factory import TableModel

BYTES = Vocabulary.bytes()
COMPACT = Style(whitespace="compact")
SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 6}, "tags": {"type": "array", "items": {"type": "integer"}}},
    "required": ["name", "tags"],
    "additionalProperties": False,
}


@dataclass
class Point:
    name: str
    x: int


def ask(seed: int = 0, **more: Any) -> Any:
    return generate(TableModel(BYTES.size, 1), tokenizer=BYTES, seed=seed, max_tokens=90, style=COMPACT, **more)


def test_pieces_have_the_value_so_far() -> None:
    for seed in range(4):
        pieces: list[tuple[str, Any]] = []
        one = ask(seed, schema=SCHEMA, stream=lambda piece: pieces.append((piece.text, piece.partial)))  # noqa: B023
        reader, values = PartialReader(ConstraintRequest(schema=SCHEMA)), []
        for text, _ in pieces:
            reader.feed(text)
            values.append(reader.read())
        assert [value for _, value in pieces] == values
        assert values[-1] == one.value
        assert values[0] == {}
        assert {} in values and {"name": ""} in values


def test_the_value_is_read_up_to_the_latest_piece_and_then_stays() -> None:
    pieces: list = []
    one = ask(schema=SCHEMA, stream=pieces.append)
    assert pieces[0].partial == one.value
    kept = pieces[0].partial
    assert kept is not pieces[1].partial or kept == pieces[1].partial
    assert pieces[0] == pieces[0] and "reader" not in repr(pieces[0])


def test_types_have_partial_instances_and_other_constraints_text() -> None:
    values: list = []
    one = ask(2, type=Point, stream=stream_values(values.append))
    assert all(isinstance(value, partial_model(Point)) for value in values)
    assert vars(values[-1]) == vars(one.value)
    assert values[0] == partial_model(Point)()
    names = [value.name for value in values if value.name is not None]
    assert all(one.value.name.startswith(name) for name in names)
    texts: list = []
    word = ask(2, regex="[ab]{5}", stream=stream_values(texts.append))
    assert texts == [word.text[:length] for length in range(1, 6)]


def test_values_are_passed_on_when_they_change() -> None:
    values: list = []
    one = ask(3, schema=SCHEMA, stream=stream_values(values.append))
    assert all(a != b for a, b in zip(values, values[1:]))
    assert values[-1] == one.value
    both: list = []
    two = ask(3, schema=SCHEMA, stream=stream_values(both.append), n=2)
    assert [value for value in both if value in (two[0].value, two[1].value)][-1] == two[1].value
    with pytest.raises(TypeError, match="receive is 5"):
        stream_values(5)  # type: ignore[arg-type]


def test_strings_of_other_types_are_passed_on_once_when_they_are_complete() -> None:
    values: list = []
    one = ask(31, type=list[date], stream=stream_values(values.append))
    assert len(one.value) > 1
    assert values == [one.value[:length] for length in range(len(one.value) + 1)]
    alone: list = []
    word = ask(2, type=Literal["one", "two"], stream=stream_values(alone.append))
    assert alone == [None, word.value]


def test_a_retry_begins_a_new_value() -> None:
    pieces: list = []
    tries: list[str] = []

    def check(text: str) -> bool:
        tries.append(text)
        return len(tries) == 3

    one = ask(1, schema=SCHEMA, stream=lambda piece: pieces.append((piece.attempt, piece.text, piece.partial)),
              check=check)  # fmt: skip
    assert [attempt for attempt, _, _ in pieces] == sorted(attempt for attempt, _, _ in pieces)
    for attempt, text in enumerate(tries):
        assert "".join(part for number, part, _ in pieces if number == attempt) == text
        last = [value for number, _, value in pieces if number == attempt][-1]
        assert last == json.loads(text)
    assert one.text == tries[2]
    assert [refusal.text for refusal in one.refusals] == tries[:2]


def test_events_have_the_value_so_far() -> None:
    async def read() -> list:
        with constrain.Engine(TableModel(BYTES.size, 1), BYTES) as engine:
            options: Any = {"schema": [SCHEMA, None], "seed": 1, "max_tokens": 60, "style": COMPACT}
            return [(event, getattr(event, "partial", None)) async for event in engine.stream([None, None], **options)]

    events = asyncio.run(read())
    for prompt in (0, 1):
        own = [(event, value) for event, value in events if event.prompt == prompt]
        finish, (_, last) = own[-1][0], own[-2]
        assert finish.generation.value == last
        text = ""
        for event, value in own[:-1]:
            text += event.text
            assert value == text if prompt else value is None or isinstance(value, dict)


def test_nesting_is_no_limit() -> None:
    reader = PartialReader(ConstraintRequest(type=list[Any]))
    reader.feed("[" * 20_000)
    value = reader.read()
    for _ in range(19_999):
        [value] = value
    assert value == []
