"""Bodies are received in the loop and read in threads, in linear time and memory, however hostile they are."""

from __future__ import annotations

import asyncio
import json
import tracemalloc
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from constrain.serving import answer_service
from constrain.serving.operations_middleware import MOST_DISCARDED, Exchange
from constrain.serving.request_body import parse_body
from constrain.serving.request_errors import RequestError
from constrain.serving.request_record import RequestRecord
from constrain.serving.server_settings import ServerSettings
from tests.running_server import chat_body

SETTINGS = ServerSettings()
PAIR, HALF = r'"\ud83d\ude00"', r'"\ud83d"'


@pytest.mark.parametrize(
    ("text", "pointer"),
    [
        (rf'{{"a": [{PAIR}, {{"b/c": [0, {HALF}]}}]}}', "/a/1/b~1c/1"),
        (rf'{{"a": {{"x": [], "y": {{{HALF}: 1}}}}}}', "/a/y"),
        (rf"{{{HALF}: 1}}", ""),
        (r'{"a": [[], [[]], [["x\udc00"]]]}', "/a/2/0/0"),
    ],
)
def test_half_of_a_surrogate_pair_is_refused_at_its_place(text: str, pointer: str) -> None:
    with pytest.raises(RequestError, match="half of a surrogate pair") as found:
        parse_body(text.encode(), SETTINGS)
    assert found.value.pointer == pointer


def test_whole_pairs_and_what_looks_like_a_half_are_read() -> None:
    text = rf'{{"a": [{PAIR}, "\\ud83d"], {PAIR}: [{{}}, [1, 2.5, null, true]]}}'
    assert parse_body(text.encode(), SETTINGS) == json.loads(text)


def test_long_names_above_many_values_take_little_memory() -> None:
    """A pointer for each value would take 4 GB."""
    text = rf'{{"a": {PAIR}, "{"k" * 400_000}": [{",".join(["{}"] * 10_000)}]}}'
    tracemalloc.start()
    try:
        parse_body(text.encode(), SETTINGS)
        assert tracemalloc.get_traced_memory()[1] < 30 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/completions", "/v1/responses"])
def test_bodies_are_read_in_a_thread(client: TestClient, monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    has_loop = []

    def parse_and_look(data: bytes, settings: ServerSettings) -> dict[str, Any]:
        try:
            has_loop.append(bool(asyncio.get_running_loop()))
        except RuntimeError:
            has_loop.append(False)
        return parse_body(data, settings)

    monkeypatch.setattr(answer_service, "parse_body", parse_and_look)
    assert client.post(path, json={"model": "demo"}).status_code == 400
    assert has_loop == [False]


def test_requests_that_are_read_have_places_in_the_queue(served: FastAPI, client: TestClient) -> None:
    operations = served.state.operations
    places = operations.scheduler.slots + operations.settings.max_queue
    operations.reading += places
    try:
        assert client.post("/v1/chat/completions", json=chat_body(max_tokens=1)).status_code == 429
        operations.reading -= 1
        assert client.post("/v1/chat/completions", json=chat_body(max_tokens=1)).status_code == 200
        assert operations.reading == operations.queued_texts == places - 1
    finally:
        operations.reading = 0


def test_no_more_of_a_refused_body_is_discarded_than_stated() -> None:
    """Part by part, so that none of it is in memory."""
    taken = 0

    async def receive() -> dict[str, Any]:
        nonlocal taken
        taken += 1
        return {"type": "http.request", "body": b" " * (1 << 20), "more_body": True}

    async def send(message: Any) -> None:
        """Do nothing."""

    assert MOST_DISCARDED == 64 << 20  # docs/how-to/operate-a-server.md
    exchange = Exchange(RequestRecord("an-id", "POST"), receive, send)  # type: ignore[arg-type]
    asyncio.run(exchange.refuse(413, "body_too_large", "too large", discard_seconds=60))
    assert taken == 64
    assert exchange.is_complete
