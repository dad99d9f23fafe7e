"""Events of several texts come as they are written, and texts that are refused are drawn again, as by `generate`."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from itertools import groupby
from typing import Any

import pytest

from constrain import Engine, FinishEvent, LimitError, RetryEvent, TextEvent, ValueRefused, Vocabulary, generate
from constrain.checking import PrefixChecker, Verdict
from tests.model_factory import TableModel

pydantic = pytest.importorskip("pydantic")
BYTES = Vocabulary.bytes()


class Odd(pydantic.BaseModel):  # type: ignore[misc, name-defined]
    number: int = pydantic.Field(ge=1, le=4)

    @pydantic.field_validator("number")
    @classmethod
    def is_odd(cls, value: int) -> int:
        if value % 2 == 0:
            raise ValueError(f"{value} is even")
        return value


@pytest.fixture
def engine() -> Iterator[Engine]:
    with Engine(TableModel(BYTES.size, 2), BYTES) as one:
        yield one


def read_events(engine: Engine, **options: Any) -> list[Any]:
    async def read() -> list[Any]:
        return [event async for event in engine.stream(**options)]

    return asyncio.run(read())


def read_tries(events: list[Any], sample: int) -> list[str]:
    """Return the texts of a sample, in the order of its tries."""
    mine = [event for event in events if event.sample == sample]
    groups = groupby(mine, key=lambda event: isinstance(event, TextEvent))
    return ["".join(event.text for event in group) for is_text, group in groups if is_text]


def test_refused_texts_are_drawn_again_as_by_generate(engine: Engine) -> None:
    given: dict[str, Any] = {"schema": Odd, "n": 5, "seed": 3, "retries": 50}
    events, wanted = read_events(engine, **given), engine.generate(**given)
    ends = {event.sample: event.generation for event in events if isinstance(event, FinishEvent)}
    assert [ends[sample] for sample in range(5)] == wanted
    assert sum(len(one.refusals) for one in wanted) > 3
    for sample, made in enumerate(wanted):
        retries = [event for event in events if isinstance(event, RetryEvent) and event.sample == sample]
        assert [event.attempt for event in retries] == list(range(1, len(made.refusals) + 1))
        assert [event.reason for event in retries] == [one.reason for one in made.refusals]
        assert all("is even" in event.reason for event in retries)
        assert read_tries(events, sample) == [*(one.text for one in made.refusals), made.text]
    assert ends[4].stats.counts["refused"] == sum(len(one.refusals) for one in wanted)


def test_partial_values_begin_anew_with_each_try(engine: Engine) -> None:
    events = read_events(engine, schema=Odd, n=3, seed=3, retries=50)
    for sample in range(3):
        mine = [event for event in events if event.sample == sample]
        tries = [list(group) for is_text, group in groupby(mine, lambda one: isinstance(one, TextEvent)) if is_text]
        for group in tries:
            number = json.loads("".join(event.text for event in group))["number"]
            assert {event.partial.number for event in group} == {number}
    assert any(isinstance(event, RetryEvent) for event in events)


def test_the_last_refusal_is_the_error_of_its_text_only(engine: Engine) -> None:
    def is_sorted(text: str) -> bool:
        return list(text) == sorted(text)

    given: dict[str, Any] = {"regex": "[ab]{3}", "n": 12, "seed": 5, "retries": 1, "check": is_sorted}
    events = read_events(engine, **given)
    ends = {event.sample: event for event in events if isinstance(event, FinishEvent)}
    assert len(ends) == 12
    failed = [event for event in ends.values() if event.error is not None]
    assert failed and len(failed) < 12
    for event in ends.values():
        tries = read_tries(events, event.sample)
        if event.error is None:
            assert tries[-1] == event.generation.text and is_sorted(tries[-1])
        else:
            assert isinstance(event.error, ValueRefused)
            assert [one.text for one in event.error.refusals] == tries and len(tries) == 2


def test_texts_that_do_not_end_are_drawn_again(engine: Engine) -> None:
    """A check of prefixes that passes no token after b is a dead end, of which the stream tells."""

    def judge(text: str) -> Verdict:
        return "dead" if text == "bc" else "complete" if text == "ac" else "ok"

    given: dict[str, Any] = {"regex": "[ab]c", "n": 4, "seed": 1, "check": PrefixChecker(judge)}
    events, wanted = read_events(engine, **given), engine.generate(**given)
    assert {event.generation.text for event in events if isinstance(event, FinishEvent)} == {"ac"}
    assert [event.reason for event in events if isinstance(event, RetryEvent)] == [
        "no further token of the text passed the check"
    ] * int(wanted[0].stats.counts["unfinished"])
    never = read_events(
        engine, **{**given, "check": PrefixChecker(lambda text: "dead" if "c" in text else "ok"), "n": 2}
    )
    assert [type(event.error) for event in never if isinstance(event, FinishEvent)] == [LimitError] * 2


def test_other_texts_go_on_while_one_is_checked(engine: Engine) -> None:
    """The check of the first text waits until the other has ended: its events must not wait for the check."""
    other_ended = threading.Event()

    def check(text: str) -> bool:
        return not text.startswith("a") or other_ended.wait(30)

    async def read() -> list[int]:
        finished = []
        async for event in engine.stream(regex=["a", "[bc]{60}"], check=check, seed=1):
            if isinstance(event, TextEvent) and event.prompt == 1 and len(event.partial) == 60:
                other_ended.set()
            if isinstance(event, FinishEvent):
                assert event.error is None
                finished.append(event.prompt)
        return finished

    assert asyncio.run(read()) == [0, 1]


def test_an_error_while_a_stream_draws_again_ends_it(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(text: str) -> bool:
        engine.close()
        return False

    events = read_events(engine, regex="[ab]{2}", n=1, seed=1, check=lambda text: text == "")
    assert isinstance(events[-1].error, ValueRefused)
    with pytest.raises(Exception, match="closed"):
        read_events(engine, regex="[ab]{2}", n=1, seed=1, check=fail)


def test_pieces_of_several_texts_come_as_they_are_generated() -> None:
    pieces: list[Any] = []
    lm = TableModel(BYTES.size, 2)
    made = generate(lm, tokenizer=BYTES, regex=["[ab]{6}", "[cd]{9}"], n=3, seed=1, stream=pieces.append)
    for prompt, texts in enumerate(made):
        for sample, one in enumerate(texts):
            mine = [piece for piece in pieces if (piece.prompt, piece.sample) == (prompt, sample)]
            assert "".join(piece.text for piece in mine) == one.text
            assert [piece.partial for piece in mine][-1] is not None
    first = [(piece.prompt, piece.sample) for piece in pieces[:6]]
    assert sorted(first) == [(prompt, sample) for prompt in range(2) for sample in range(3)]
